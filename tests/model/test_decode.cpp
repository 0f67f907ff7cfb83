// GPT-2: a decode step of one sequence, which has kernels of its own on a GPU.
#include <cmath>
#include <vector>

#include "codegen/generate.hpp"
#include "codegen/make_plan.hpp"
#include "jit/compile/nvrtc.hpp"
#include "model/decode_kernels.hpp"
#include "model/tiles.hpp"
#include "support/catch.hpp"
#include "support/compiled_device.hpp"
#include "support/devices.hpp"
#include "tessera/model/gpt2.hpp"

namespace test_decode {

using namespace tessera::internal;
using Tokens = std::vector<std::int32_t>;

namespace {

Gpt2Config config_of(int width, int heads, Gelu gelu) {
  Gpt2Config config;
  config.vocab = 211, config.positions = 320, config.width = width, config.layers = 2, config.heads = heads;
  config.inner = 4 * width, config.gelu = gelu;
  return config;
}

double relative_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) error += std::pow(a[i] - b[i], 2), norm += std::pow(b[i], 2);
  return std::sqrt(error / norm);
}

Tokens text_of(int length) {
  Tokens text;
  for (int i = 0; i < length; ++i) text.push_back(i * 37 % 211);
  return text;
}

/// Logits after a prompt of the first tokens, then one token at a time.
std::vector<float> step_by_step(const Gpt2& model, const Tokens& text, std::size_t prompt) {
  Session session(model, 1, model.config().positions);
  const auto append = [&](std::size_t from, std::size_t to) {
    const std::vector<Tokens> tokens{
        {text.begin() + static_cast<std::ptrdiff_t>(from), text.begin() + static_cast<std::ptrdiff_t>(to)}};
    session.append(tokens);
  };
  if (prompt > 0) append(0, prompt);
  for (std::size_t i = prompt; i < text.size(); ++i) append(i, i + 1);
  return session.logits();
}

void compare(const Device& device, const Gpt2Config& config, Compute compute, int length, std::size_t prompt,
             double bound) {
  const Gpt2 model(device, config, 3, compute);
  const Tokens text = text_of(length);
  CHECK(relative_difference(step_by_step(model, text, prompt), step_by_step(model, text, text.size())) <= bound);
  const Gpt2 reference(Device::cpu(), config, 3, compute);
  CHECK(relative_difference(step_by_step(model, text, prompt), step_by_step(reference, text, text.size())) <= bound);
}

void compare_all(const Device& device) {
  compare(device, config_of(48, 3, Gelu::tanh), Compute::f32, 7, 4, 1e-5);
  // The first step has no earlier keys; and most parts of the cache have none.
  compare(device, config_of(48, 3, Gelu::tanh), Compute::tf32, 5, 0, 2.5e-3);
  compare(device, config_of(48, 3, Gelu::exact), Compute::bf16, 7, 4, 2e-2);
  // More keys than one round of tiles has, the last of them in part.
  compare(device, config_of(64, 1, Gelu::tanh), Compute::bf16, 291, 288, 2e-2);
  // Columns of a CTA are fewer than 16.
  compare(device, config_of(24, 3, Gelu::tanh), Compute::bf16, 4, 2, 2e-2);
}

}  // namespace

TEST_CASE("steps of one token have the logits of the text at once", "[model]") { compare_all(test_device()); }

#ifdef TESSERA_HAS_EMULATOR
TEST_CASE("emulated steps of one token have the logits of the text at once", "[emulated]") {
  if (test_device_name() == "emulated") return;  // as above
  compare_all(emulated_device());
}
#endif

TEST_CASE("kernels of decode steps compile without spills", "[generate]") {
  const auto check = [](const auto& kernel, int transposed) {
    const Graph& graph = kernel.executable().graph();
    Variant variant = dense_variant(graph);
    if (transposed >= 0) variant.tensors[static_cast<std::size_t>(transposed)].contiguous_axis = 0;
    for (const Arch arch : test_archs()) CHECK(compile_check(generate(graph, variant, arch), arch) == "");
  };
  for (const auto& [width, heads] : {std::pair{768, 12}, {1024, 16}, {1280, 20}, {1600, 25}}) {
    INFO(width);
    const DecodeTiles tiles =
        decode_tiles({.gpu = true, .operands = ElementType::bf16, .width = width, .head_width = 64});
    check(kernels::decode_qkv<bf16, bf16>(width, tiles.qkv), 3);
    check(kernels::decode_part<bf16>(heads, 64, tiles.parts, tiles.keys), -1);
    check(kernels::decode_project<bf16, bf16>(heads, 64, tiles.parts, tiles.project), 3);
    check(kernels::decode_up<bf16, bf16>(width, tiles.up), 3);
    check(kernels::decode_exact_up<bf16, bf16>(width, tiles.up), 3);
    check(kernels::decode_head<bf16, bf16>(width, tiles.head, tiles.rounds), -1);
  }
}

TEST_CASE("tiles of decode steps divide the width", "[model]") {
  for (const int width : {8, 24, 48, 64, 256, 768, 1021, 1024, 1280, 1600, 2048}) {
    const TileTarget target{.gpu = true, .operands = ElementType::bf16, .width = width, .head_width = 1};
    const DecodeTiles tiles = decode_tiles(target);
    INFO(width);
    CHECK((tiles.qkv >= 1 && width % tiles.qkv == 0));
    CHECK(has_decode_kernels(target) == (width != 1021));
    CHECK(tiles.qkv * width <= 16 * 1024);
  }
  CHECK_FALSE(has_decode_kernels({.gpu = false, .operands = ElementType::bf16, .width = 768, .head_width = 64}));
}

}  // namespace test_decode
