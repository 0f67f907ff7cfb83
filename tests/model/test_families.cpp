// Models of every family against golden data that transformers computed (tests/data/make_families.py): logits, greedy
// texts, and the kernels of decode steps on a GPU.
#include <nlohmann/json.hpp>
#include <set>

#include "model/rotary.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/golden_model.hpp"
#include "support/support.hpp"
#include "tessera/model/session.hpp"

namespace test_families {

using namespace tessera::internal;
using namespace test_golden;
using Tokens = std::vector<std::int32_t>;

namespace {

constexpr const char* families[] = {"opt",    "llama3", "mistral", "qwen2",  "qwen3",   "gemma",
                                    "gemma2", "gemma3", "olmo2",   "pythia", "gpt-neox"};

double root_mean_square(std::span<const float> values) {
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * value;
  return std::sqrt(squares / static_cast<double>(values.size()));
}

/// The first `length` tokens of each prompt, and logits at those positions.
struct Beginning {
  Beginning(const Golden& golden, std::size_t length) {
    const std::size_t vocab = static_cast<std::size_t>(golden.checkpoint.config.vocab), all = golden.prompts[0].size();
    for (std::size_t b = 0; b < golden.prompts.size(); ++b) {
      const auto text = golden.prompts[b].begin();
      texts.emplace_back(text, text + static_cast<std::ptrdiff_t>(length));
      const auto row = golden.logits.begin() + static_cast<std::ptrdiff_t>(b * all * vocab);
      logits.insert(logits.end(), row, row + static_cast<std::ptrdiff_t>(length * vocab));
    }
  }
  std::vector<Tokens> texts;
  std::vector<float> logits;
};

/// Steps of one token behind a prompt, of the first texts at once, against golden logits; the last step's report.
DecodeReport check_steps(const Golden& golden, const Model& model, std::size_t batch, std::size_t prompt,
                         std::size_t end, double bound) {
  const auto vocab = static_cast<std::ptrdiff_t>(golden.checkpoint.config.vocab);
  const auto all = static_cast<std::ptrdiff_t>(golden.prompts[0].size());
  Session session(model, static_cast<int>(batch), static_cast<int>(end));
  const auto append = [&](std::size_t from, std::size_t to) {
    std::vector<Tokens> parts;
    for (std::size_t b = 0; b < batch; ++b) {
      const auto text = golden.prompts[b].begin();
      parts.emplace_back(text + static_cast<std::ptrdiff_t>(from), text + static_cast<std::ptrdiff_t>(to));
    }
    session.append(parts);
  };
  if (prompt > 0) append(0, prompt);
  for (std::size_t at = prompt; at < end; ++at) {
    append(at, at + 1);
    const std::vector<float> logits = session.logits();
    for (std::size_t b = 0; b < batch; ++b) {
      INFO("token " << at << " of text " << b);
      const auto row =
          golden.logits.begin() + (static_cast<std::ptrdiff_t>(b) * all + static_cast<std::ptrdiff_t>(at)) * vocab;
      const auto found = logits.begin() + static_cast<std::ptrdiff_t>(b) * vocab;
      CHECK(relative_difference(std::vector(found, found + vocab), std::vector(row, row + vocab)) <= bound);
    }
  }
  return session.decode_report();
}

}  // namespace

TEST_CASE("logits of every family equal the golden ones", "[model]") {
  for (const char* const name : families) {
    INFO(name);
    const Golden golden(std::string("families/") + name);
    const Model model(test_device(), golden.checkpoint);
    for (const std::size_t length : {1, 7, 64}) {
      INFO(length << " tokens");
      const Beginning beginning(golden, length);
      Session session(model, 2, static_cast<int>(length));
      session.append(beginning.texts);
      CHECK(largest_difference(session.all_logits(), beginning.logits) <= 1e-4 * root_mean_square(beginning.logits));
    }
  }
}

TEST_CASE("greedy texts of every family equal the golden ones, cached and not", "[model]") {
  for (const char* const name : families) {
    INFO(name);
    const Golden golden(std::string("families/") + name);
    const Model model(test_device(), golden.checkpoint);
    CHECK(generate(model, golden.greedy_prompt(), golden.greedy.size()) == golden.greedy);
    const std::size_t last = golden.greedy.size() - 1;
    for (std::size_t length = golden.greedy_prompt().size(); length < last; length += sanitized ? 9 : 3) {
      Session session(model, 1, static_cast<int>(length));
      const auto text = golden.greedy.begin();
      session.append(std::vector<Tokens>{{text, text + static_cast<std::ptrdiff_t>(length)}});
      CHECK(session.sample({.temperature = 0}) == Tokens{golden.greedy[length]});
    }
  }
}

TEST_CASE("steps of one token of every family have the golden logits in f32", "[model]") {
  for (const char* const name : families) {
    INFO(name);
    const Golden golden(std::string("families/") + name);
    const Model model(test_device(), golden.checkpoint);
    check_steps(golden, model, 2, 40, 64, 1e-4);
    const Model invariant(test_device(), golden.checkpoint, Computation(Compute::f32, true));
    check_steps(golden, invariant, 1, 50, 64, 1e-4);
  }
}

TEST_CASE("kernels of decode steps of every family have the golden logits", "[model]") {
  for (const char* const name : families) {
    INFO(name);
    const Golden golden(std::string("families/") + name);
    for (const auto& [compute, bound] : {std::pair{Compute::tf32, 4e-3}, {Compute::bf16, 4e-2}}) {
      INFO("type " << static_cast<int>(compute));
      const Model model(generated_device(), golden.checkpoint, Computation(compute, false, DecodeForm::plain));
      const DecodeReport one = check_steps(golden, model, 1, 30, 33, bound);
      check_steps(golden, model, 1, 0, 2, bound);
      const DecodeReport two = check_steps(golden, model, 2, 30, 32, bound);
      if (!runs_generated_code()) continue;
      CHECK(one.why_general == "");
      // GPT-2 has five launches a layer; beside them are the embedding, the last update, norm and head, and the choice.
      const auto most = static_cast<std::size_t>(6 * golden.checkpoint.config.layers);
      CHECK(one.launches.size() <= most + 4);
      CHECK(std::ranges::find(one.launches, "decode_part") != one.launches.end());
      CHECK(std::ranges::find(two.launches, "decode_attend") != two.launches.end());
    }
  }
}

TEST_CASE("a step of every family has the same bits in every form", "[model]") {
  if (!runs_generated_code()) {
    SUCCEED("the CPU executor has one form");
    return;
  }
  for (const char* const name : families) {
    INFO(name);
    const Golden golden(std::string("families/") + name);
    const auto logits = [&](DecodeForm form) {
      const Model model(generated_device(), golden.checkpoint, Computation(Compute::bf16, false, form));
      Session session(model, 1, 20);
      session.append(std::vector<Tokens>{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}});
      std::vector<float> all;
      for (const std::int32_t token : {7, 8}) {
        session.append(std::vector<Tokens>{{token}});
        const std::vector<float> one = session.logits();
        all.insert(all.end(), one.begin(), one.end());
      }
      CHECK(session.decode_report().why_not == "");
      return all;
    };
    CHECK(logits(DecodeForm::persistent) == logits(DecodeForm::plain));
  }
}

TEST_CASE("hidden states behind a step of one token are those of its text", "[model]") {
  for (const char* const name : {"gemma3", "olmo2", "pythia"}) {  // whose residual streams have updates, or two inputs
    INFO(name);
    const Golden golden(std::string("families/") + name);
    const auto states = [&](const Device& device, std::size_t prompt) {
      const Model model(device, golden.checkpoint, Compute::tf32);
      Session session(model, 1, 12);
      const Tokens text(golden.prompts[0].begin(), golden.prompts[0].begin() + 12);
      if (prompt > 0)
        session.append(std::vector<Tokens>{{text.begin(), text.begin() + static_cast<std::ptrdiff_t>(prompt)}});
      session.append(std::vector<Tokens>{{text.begin() + static_cast<std::ptrdiff_t>(prompt), text.end()}});
      const auto rows = static_cast<std::int64_t>(12 - prompt);
      const Tensor<f32, 2> to(device, {rows, golden.checkpoint.config.width});
      session.hidden_states(to);
      std::vector<float> all = to.to_vector();
      return std::vector<float>(all.end() - golden.checkpoint.config.width, all.end());
    };
    CHECK(relative_difference(states(generated_device(), 11), states(Device::cpu(), 0)) <= 4e-3);
  }
}

TEST_CASE("frequencies of scaled rotations equal those of transformers", "[model]") {
  const std::filesystem::path data = std::filesystem::path(TESSERA_SOURCE_DIR) / "tests/data";
  TempDir folder;
  auto config = nlohmann::json::parse(read_text(data / "llama-odd/config.json"));
  config["hidden_size"] = 128, config["num_attention_heads"] = 2, config["num_key_value_heads"] = 2;
  config["head_dim"] = 64, config["max_position_embeddings"] = 4096;
  for (const auto& golden : nlohmann::json::parse(read_text(data / "families/rotary.json"))) {
    INFO(golden.at("parameters").dump());
    config["rope_parameters"] = golden.at("parameters");
    write_text(folder / "config.json", config.dump());
    const TransformerConfig read = read_config(folder.path());
    const RotaryAngles angles = rotary_angles(read, false);
    const auto expected = golden.at("frequencies").get<std::vector<double>>();
    REQUIRE(static_cast<std::size_t>(angles.rotated) == expected.size());
    REQUIRE(angles.frequencies.size() == 32);
    for (std::size_t i = 0; i < 32; ++i)
      CHECK(angles.frequencies[i] == Approx(i < expected.size() ? expected[i] : 0).epsilon(2e-6));
    CHECK(angles.factor == Approx(golden.at("factor").get<double>()).epsilon(1e-9));
  }
}

TEST_CASE("the elements of a rotated head have pairs half of it apart", "[model]") {
  TransformerConfig config;
  config.width = 24, config.heads = 2;
  const auto order = [&] {
    std::vector<std::int64_t> all;
    for (const StoredRun& run : order_of_head(config))
      for (std::int64_t i = 0; i < run.count; ++i) all.push_back(run.first + i);
    return all;
  };
  using Order = std::vector<std::int64_t>;
  CHECK(order() == Order{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  config.position_encoding = PositionEncoding::rotary;
  CHECK(order() == Order{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  config.rotary_width = 4;
  CHECK(order() == Order{0, 1, 4, 5, 6, 7, 2, 3, 8, 9, 10, 11});
  config.rotary_pairs = RotaryPairs::neighbors;
  CHECK(order() == Order{0, 2, 4, 5, 6, 7, 1, 3, 8, 9, 10, 11});
  config.rotary_width = 0;
  CHECK(order() == Order{0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11});
}

}  // namespace test_families
