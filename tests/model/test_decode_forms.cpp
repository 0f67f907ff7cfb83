// Forms of a step of one token: plain launches, a graph, one persistent kernel.
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/small_model.hpp"
#include "support/support.hpp"
#include "tessera/model/session.hpp"

namespace test_decode_forms {

using namespace tessera::internal;

namespace {

bool is_gpu() { return test_device_name().starts_with("cuda"); }

TransformerConfig gated_model() {
  TransformerConfig config = small_model();
  config.norm = Norm::rms, config.position_encoding = PositionEncoding::rotary;
  config.activation = Activation::silu, config.gated = true, config.key_value_heads = 1;
  return config;
}

/// The logits behind a prompt and behind each of `count` greedy tokens.
std::vector<std::vector<float>> logits_of(const TransformerConfig& config, Compute type, DecodeForm form, int count,
                                          std::vector<std::int32_t> prompt, DecodeReport& report) {
  const Model model(generated_device(), config, 7, Computation(type, false, form));
  Session session(model, 1, config.positions);
  std::vector<std::vector<std::int32_t>> tokens{std::move(prompt)};
  std::vector<std::vector<float>> all;
  for (int i = 0; i <= count; ++i) {
    session.append(tokens);
    all.push_back(session.logits());
    tokens[0] = session.sample({.temperature = 0});
  }
  report = session.decode_report();
  return all;
}

}  // namespace

TEST_CASE("steps of one token have the same bits in every form", "[model]") {
  const int count = is_gpu() ? 50 : 5;
  for (const TransformerConfig& config : {small_model(), gated_model()})
    for (const Compute type : {Compute::bf16, Compute::tf32})
      for (int first = 1; first <= (is_gpu() ? 20 : 1); ++first) {
        INFO("gated " << config.gated << ", type " << static_cast<int>(type) << ", prompt " << first);
        DecodeReport plain, graph, persistent;
        const std::vector<std::int32_t> prompt{first, 2, 3};
        const auto expected = logits_of(config, type, DecodeForm::plain, count, prompt, plain);
        CHECK(logits_of(config, type, DecodeForm::graph, count, prompt, graph) == expected);
        CHECK(logits_of(config, type, DecodeForm::persistent, count, prompt, persistent) == expected);
        CHECK(plain.form == DecodeForm::plain);
        CHECK(graph.form == (generated_device().shares_host_memory() ? DecodeForm::plain : DecodeForm::graph));
        CHECK((persistent.form == DecodeForm::persistent) == runs_generated_code());
        CHECK((persistent.why_not == "") == runs_generated_code());
      }
}

TEST_CASE("the form of steps is measured, or says why it is another one", "[model]") {
  DecodeReport report;
  logits_of(small_model(), Compute::bf16, DecodeForm::automatic, 3, {1}, report);
  CHECK(report.why_not == "");
  CHECK(report.form != DecodeForm::automatic);
  // On the CPU there is no persistent kernel.
  const Model model(Device::cpu(), small_model(), 7, Computation(Compute::f32, false, DecodeForm::persistent));
  Session session(model, 1, 8);
  for (int i = 0; i < 3; ++i) session.append(std::vector<std::vector<std::int32_t>>{{1}});
  CHECK(session.decode_report().form == DecodeForm::plain);
  CHECK(says(session.decode_report().why_not, {"'decode_step'", "persistent", "computes on the host"}));
  CHECK(parse_decode_form("auto") == DecodeForm::automatic);
  CHECK(name(parse_decode_form("persistent")) == "persistent");
  CHECK(says(error_of([] { parse_decode_form("megakernel"); }), {"'megakernel'", "plain, graph or persistent"}));
}

#ifdef TESSERA_HAS_EMULATOR
TEST_CASE("a persistent step has no race in 100 orders of its threads", "[emulated]") {
  if (is_gpu()) return;
  TransformerConfig config = small_model();
  config.layers = 1, config.positions = 128;
  DecodeReport persistent;
  logits_of(config, Compute::bf16, DecodeForm::persistent, 100, {1}, persistent);
  CHECK(persistent.form == DecodeForm::persistent);
}
#endif

}  // namespace test_decode_forms
