// Decode steps: one of one sequence, which has kernels of its own on a GPU.
#include <cmath>
#include <filesystem>
#include <random>
#include <vector>

#include "codegen/generate.hpp"
#include "codegen/make_plan.hpp"
#include "codegen/plan/effects.hpp"
#include "jit/compile/nvrtc.hpp"
#include "model/decode_kernels.hpp"
#include "model/network_kernels.hpp"
#include "model/tiles.hpp"
#include "support/catch.hpp"
#include "support/compiled_device.hpp"
#include "support/devices.hpp"
#include "tessera/model/safetensors.hpp"
#include "tessera/model/session.hpp"

namespace test_decode {

using namespace tessera::internal;
using Tokens = std::vector<std::int32_t>;

namespace {

TransformerConfig config_of(int width, int heads, Activation gelu) {
  TransformerConfig config;
  config.vocab = 211, config.positions = 320, config.width = width, config.layers = 2, config.heads = heads;
  config.inner = 4 * width, config.activation = gelu;
  return config;
}

/// Rotary positions, an MLP with a gate, norms by the root mean square, and heads of queries that share those of keys.
TransformerConfig rotary(int width, int heads, int key_heads, int head_size = 0) {
  TransformerConfig config = config_of(width, heads, Activation::silu);
  config.key_value_heads = key_heads, config.head_size = head_size, config.inner = 3 * width;
  config.norm = Norm::rms, config.position_encoding = PositionEncoding::rotary, config.gated = true;
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
std::vector<float> step_by_step(const Model& model, const Tokens& text, std::size_t prompt) {
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

void compare(const Device& device, const TransformerConfig& config, Compute compute, int length, std::size_t prompt,
             double bound) {
  const Model model(device, config, 3, compute);
  const Tokens text = text_of(length);
  CHECK(relative_difference(step_by_step(model, text, prompt), step_by_step(model, text, text.size())) <= bound);
  const Model reference(Device::cpu(), config, 3, compute);
  CHECK(relative_difference(step_by_step(model, text, prompt), step_by_step(reference, text, text.size())) <= bound);
}

/// Sequences of different lengths, some of which get no token in some steps, against each of them alone on the CPU.
void compare_batch(const Device& device, const TransformerConfig& config, Compute compute, std::size_t batch,
                   double bound) {
  const Model model(device, config, 3, compute), reference(Device::cpu(), config, 3, compute);
  Session session(model, static_cast<int>(batch), 80);
  std::vector<Tokens> texts(batch);
  const auto append = [&](auto length_of) {
    std::vector<Tokens> tokens(batch);
    for (std::size_t b = 0; b < batch; ++b)
      for (std::size_t i = 0; i < length_of(b); ++i) {
        tokens[b].push_back(static_cast<std::int32_t>((texts[b].size() * 37 + b * 11) % 211));
        texts[b].push_back(tokens[b].back());
      }
    session.append(tokens);
  };
  append([&](std::size_t b) { return b * 33 % (batch > 16 ? 7 : 65) + 1; });
  for (std::size_t step = 0; step < 4; ++step)
    append([&](std::size_t b) { return b % 3 == step ? std::size_t{0} : std::size_t{1}; });
  const std::vector<float> logits = session.logits();
  for (std::size_t b = 0; b < batch; ++b) {
    INFO(b);
    const auto row = logits.begin() + static_cast<std::ptrdiff_t>(b) * config.vocab;
    CHECK(relative_difference({row, row + config.vocab}, step_by_step(reference, texts[b], texts[b].size())) <= bound);
  }
}

/// Prompts behind others, and beside shorter ones.
void compare_prompts(const Device& device) {
  const TransformerConfig config = config_of(48, 3, Activation::gelu_tanh);
  const Model model(device, config, 3, Compute::f32), reference(Device::cpu(), config, 3, Compute::f32);
  const Tokens text = text_of(130);
  const auto part = [&](std::ptrdiff_t from, std::ptrdiff_t to) {
    return Tokens(text.begin() + from, text.begin() + to);
  };
  struct Prompts {
    std::vector<Tokens> first, second;
  };
  for (const auto& [first, second] :
       {Prompts{{part(0, 5)}, {part(5, 12)}}, Prompts{{part(0, 120), part(0, 3)}, {part(120, 121), part(3, 4)}},
        Prompts{{part(0, 2), part(0, 5)}, {part(2, 122), part(5, 8)}}}) {
    Session session(model, static_cast<int>(first.size()), 130);
    session.append(first);
    session.append(second);
    session.append(std::vector<Tokens>(first.size(), Tokens{7}));
    const std::vector<float> logits = session.logits();
    for (std::size_t b = 0; b < first.size(); ++b) {
      INFO(first[b].size() << " and " << second[b].size() << " of " << first.size());
      Tokens all = first[b];
      all.insert(all.end(), second[b].begin(), second[b].end());
      all.push_back(7);
      const auto row = logits.begin() + static_cast<std::ptrdiff_t>(b) * config.vocab;
      CHECK(relative_difference({row, row + config.vocab}, step_by_step(reference, all, all.size())) <= 1e-5);
    }
  }
}

/// A sequence that fills the cache gets no token, while the next one does: it must not write behind its own positions.
void compare_full(const Device& device) {
  const TransformerConfig config = config_of(64, 2, Activation::gelu_tanh);
  const Model model(device, config, 3, Compute::bf16), reference(Device::cpu(), config, 3, Compute::bf16);
  Session session(model, 2, 9);
  const Tokens full = text_of(9), text{5, 6, 7};
  session.append(std::vector<Tokens>{full, {text[0]}});
  for (std::size_t i = 1; i < text.size(); ++i) session.append(std::vector<Tokens>{{}, {text[i]}});
  const std::vector<float> logits = session.logits();
  CHECK(relative_difference({logits.begin() + config.vocab, logits.end()},
                            step_by_step(reference, text, text.size())) <= 2e-2);
}

/// Parts of attention, combined, against their definition in f64. Scores differ by so much that the largest decides.
void compare_parts(const Device& device, int length, const KeyTiles& tiles) {
  constexpr int heads = 3, d = 16, width = heads * d, parts = 4, capacity = 300;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  const auto numbers = [&](std::size_t count, float scale) {
    std::vector<float> made(count);
    for (float& number : made) number = static_cast<float>(bf16(scale * normal(random)));
    return made;
  };
  const auto as_bf16 = [](const std::vector<float>& from) { return std::vector<bf16>(from.begin(), from.end()); };
  const auto q = numbers(width, 2), keys = numbers(capacity * width, 2), values = numbers(capacity * width, 1);
  // The cache holds anything behind the last key.
  std::vector<float> kept_keys = keys, kept_values = values;
  for (auto* kept : {&kept_keys, &kept_values})
    std::fill(kept->begin() + static_cast<std::ptrdiff_t>(length) * width, kept->end(), NAN);
  std::vector<float> identity(width * width);
  for (int i = 0; i < width; ++i) identity[static_cast<std::size_t>(i * width + i)] = 1;

  const Stream stream = device.stream();
  // Queries may be in wider rows.
  const Tensor<bf16, 2> wide_q(device, {1, 3 * width}), w(device, {width, width}), on_q = wide_q.slice(1, 0, width);
  const Tensor<bf16, 3> on_keys(device, {1, capacity, width}), on_values(device, {1, capacity, width});
  const Tensor<i32, 1> past(device, {1}), count(device, {1});
  const Tensor<f32, 4> y(device, {1, parts, heads, d});
  const Tensor<f32, 3> top(device, {1, parts, heads}), norm(device, {1, parts, heads});
  const Tensor<f32, 1> bias(device, {width});
  const Tensor<f32, 2> x(device, {1, width});
  wide_q.fill(NAN);
  on_q.copy_from(as_bf16(q)), on_keys.copy_from(as_bf16(kept_keys)), on_values.copy_from(as_bf16(kept_values));
  w.copy_from(as_bf16(identity));
  past.copy_from(std::vector<i32>{length - 1}), count.copy_from(std::vector<i32>{1});
  bias.copy_from(std::vector<float>(width)), x.copy_from(std::vector<float>(width));
  launch(stream, kernels::decode_part<bf16>(heads, d, parts, tiles), on_q, on_keys, on_values, past, count, y, top,
         norm, 0.25f);
  launch(stream, kernels::decode_project<bf16, bf16>(heads, d, parts, 8), y, top, norm, w, bias, x);
  const std::vector<float> found = x.to_vector();
  std::vector<float> expected(width);
  for (int h = 0; h < heads; ++h) {
    const auto at = [&](int position, int i) { return static_cast<std::size_t>(position * width + h * d + i); };
    std::vector<double> weights;
    double total = 0;
    for (int position = 0; position < length; ++position) {
      double score = 0;
      for (int i = 0; i < d; ++i) score += static_cast<double>(q[at(0, i)]) * keys[at(position, i)];
      total += weights.emplace_back(std::exp(score * 0.25));
    }
    for (int i = 0; i < d; ++i)
      for (int position = 0; position < length; ++position)
        expected[at(0, i)] +=
            static_cast<float>(weights[static_cast<std::size_t>(position)] / total * values[at(position, i)]);
  }
  INFO(length);
  CHECK(relative_difference(found, expected) <= 1e-2);
  const Tensor<bf16, 2> attended(device, {1, width});
  launch(stream, kernels::decode_attend<bf16>(heads, d, tiles), wide_q, on_keys, on_values, past, count, attended,
         0.25f);
  const std::vector<bf16> at_once = attended.to_vector();
  CHECK(relative_difference({at_once.begin(), at_once.end()}, expected) <= 1e-2);
}

/// Rows times weights, for several rows and for one, with columns that tiles do not divide, against f64.
void compare_rows(const Device& device, int batch, int k, int n, int rows) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  const auto numbers = [&](int count) {
    std::vector<float> made(static_cast<std::size_t>(count));
    for (float& number : made) number = static_cast<float>(bf16(normal(random)));
    return made;
  };
  const auto as_bf16 = [](const std::vector<float>& from) { return std::vector<bf16>(from.begin(), from.end()); };
  const auto in = numbers(batch * k), w = numbers(k * n), bias = numbers(n), before = numbers(batch * n);
  const Tensor<bf16, 2> on_in(device, {batch, k}), on_w(device, {n, k}), y(device, {batch, n});
  const Tensor<f32, 1> on_bias(device, {n});
  const Tensor<f32, 2> x(device, {batch, n});
  on_in.copy_from(as_bf16(in)), on_w.copy_from(as_bf16(w)), on_bias.copy_from(bias), x.copy_from(before);
  const Tensor<bf16, 2> weights = on_w.permuted({1, 0});
  launch(device.stream(), kernels::decode_residual<bf16, bf16>(k, rows, 8), on_in, weights, on_bias, x);
  launch(device.stream(), kernels::decode_linear<bf16, bf16>(k, rows, 16, {}), on_in, weights, on_bias, y);
  std::vector<float> sums, activated;
  for (int b = 0; b < batch; ++b)
    for (int j = 0; j < n; ++j) {
      double sum = bias[static_cast<std::size_t>(j)];
      for (int i = 0; i < k; ++i)
        sum += static_cast<double>(in[static_cast<std::size_t>(b * k + i)]) * w[static_cast<std::size_t>(j * k + i)];
      sums.push_back(static_cast<float>(sum + before[static_cast<std::size_t>(b * n + j)]));
      activated.push_back(
          static_cast<float>(0.5 * sum * (1 + std::tanh(0.7978845608028654 * (sum + 0.044715 * sum * sum * sum)))));
    }
  INFO(batch << " rows of " << k << " to " << n);
  CHECK(relative_difference(x.to_vector(), sums) <= 1e-5);
  const std::vector<bf16> found = y.to_vector();
  CHECK(relative_difference({found.begin(), found.end()}, activated) <= 5e-3);
}

/// Queries, and the cache after new keys and values, of some sequences, against the CPU.
void compare_appended(const Device& device, const auto& kernel, std::int64_t batch) {
  constexpr std::int64_t width = 64, capacity = 3;
  std::mt19937 random(13);
  std::normal_distribution<float> normal;
  const auto numbers = [&](std::int64_t count) {
    std::vector<bf16> made;
    for (std::int64_t i = 0; i < count; ++i) made.push_back(static_cast<bf16>(normal(random)));
    return made;
  };
  const auto in = numbers(batch * width), w = numbers(3 * width * width), cache = numbers(batch * capacity * width);
  std::vector<i32> past, count;
  for (std::int64_t b = 0; b < batch; ++b)
    past.push_back(static_cast<i32>(b % capacity)), count.push_back(b % 4 == 1 ? 0 : 1);
  const auto result = [&](const Device& on) {
    const Tensor<bf16, 2> on_in(on, {batch, width}), on_w(on, {3 * width, width});
    const Tensor<bf16, 3> q(on, {batch, 1, width}), keys(on, {batch, capacity, width}),
        values(on, {batch, capacity, width});
    const Tensor<f32, 1> bias(on, {3 * width});
    const Tensor<i32, 1> on_past(on, {batch}), on_count(on, {batch});
    on_in.copy_from(in), on_w.copy_from(w), on_past.copy_from(past), on_count.copy_from(count);
    bias.copy_from(std::vector<float>(3 * width, 0.5f)), keys.copy_from(cache), values.copy_from(cache);
    launch(on.stream(), kernel, on_in, on_w.permuted({1, 0}), bias, on_past, on_count, std::vector{q, keys, values});
    std::vector<float> all;
    for (const auto& one : {q, keys, values})
      for (const bf16 value : one.to_vector()) all.push_back(static_cast<float>(value));
    return all;
  };
  INFO(batch);
  CHECK(relative_difference(result(device), result(Device::cpu())) <= 5e-3);
}

void compare_all(const Device& device) {
  for (const auto& [batch, k, n, rows] :
       {std::tuple{3, 48, 20, 16}, {16, 264, 24, 16}, {7, 1040, 40, 16}, {2, 3072, 16, 16}, {2, 520, 24, 1}})
    compare_rows(device, batch, k, n, rows);
  for (const int length : {1, 33, 128, 131, 290}) compare_parts(device, length, {.keys = 32, .groups = 8});
  compare_parts(device, 131, {.keys = 2, .groups = 1});  // as for wide heads
  compare(device, config_of(48, 3, Activation::gelu_tanh), Compute::f32, 7, 4, 1e-5);
  // The first step has no earlier keys; and most parts of the cache have none.
  compare(device, config_of(48, 3, Activation::gelu_tanh), Compute::tf32, 5, 0, 2.5e-3);
  compare(device, config_of(48, 3, Activation::gelu), Compute::bf16, 7, 4, 2e-2);
  // More keys than one round of tiles has, the last of them in part.
  compare(device, config_of(64, 1, Activation::gelu_tanh), Compute::bf16, 291, 288, 2e-2);
  compare_batch(device, config_of(48, 3, Activation::gelu_tanh), Compute::bf16, 3, 2e-2);
  compare_batch(device, config_of(64, 1, Activation::gelu), Compute::tf32, 5, 2.5e-3);
  // Every warp has a slice of the row.
  compare_batch(device, config_of(128, 2, Activation::gelu), Compute::bf16, 4, 2e-2);
  // More rows than one tile has.
  compare_batch(device, config_of(64, 1, Activation::gelu_tanh), Compute::bf16, 17, 2e-2);
  compare_appended(device, kernels::linear_append<bf16, bf16>({64, 64, 64}), 70);
  compare_appended(device, kernels::linear_append<bf16, bf16>({16, 32, 64}), 20);
  compare_appended(device, kernels::decode_append<bf16, bf16>(64, 16, 32, {64, 64, 64}), 20);
  compare_appended(device, kernels::decode_append<bf16, bf16>(64, 1, 8, {64, 64, 64}), 3);
  // Their columns divide no such width.
  compare_batch(device, config_of(60, 3, Activation::gelu_tanh), Compute::bf16, 2, 2e-2);
  compare_full(device);
  compare_prompts(device);
  compare(device, rotary(48, 3, 1), Compute::bf16, 6, 3, 2e-2);
  compare(device, rotary(64, 4, 2, 24), Compute::tf32, 5, 0, 2.5e-3);
  compare(device, rotary(32, 2, 2), Compute::f32, 19, 17, 1e-5);
  compare_batch(device, rotary(64, 4, 2, 32), Compute::bf16, 3, 2e-2);
  // Heads that share keys without a rotation, in each kernel for queries, keys and values.
  TransformerConfig sharing = config_of(64, 4, Activation::relu);
  sharing.layers = 1, sharing.inner = 64;
  for (const int keys : {2, 1}) {  // of one, fewer columns than a tile of a prompt has
    sharing.key_value_heads = keys;
    compare(device, sharing, Compute::f32, 19, 17, 1e-5);
    compare_batch(device, sharing, Compute::bf16, 3, 2e-2);
  }
  compare_batch(device, sharing, Compute::bf16, 17, 2e-2);
  // Columns of a CTA are fewer than 16.
  compare(device, config_of(24, 3, Activation::gelu_tanh), Compute::bf16, 4, 2, 2e-2);
}

}  // namespace

TEST_CASE("steps of one token have the logits of the text at once", "[model]") { compare_all(test_device()); }

#ifdef TESSERA_HAS_EMULATOR
TEST_CASE("emulated steps of one token have the logits of the text at once", "[emulated]") {
  if (test_device_name() == "emulated") return;  // as above
  compare_all(emulated_device());
}
#endif

/// Are all tiles in registers, and all matmuls gemvs, or all of a few rows by all warps?
bool is_fast(const codegen::Plan& plan, bool by_fma) {
  bool fast = true;
  codegen::PlanWalk walk(plan);
  walk.each([&](const codegen::Role&, const codegen::Step& step, int, const auto&) {
    const codegen::Mma* const mma = step.action.as<codegen::Mma>();
    if (!mma) return;
    fast &= mma->matmul.is_latency_bound() && (mma->matmul.kind == codegen::MatmulKind::gemv) == by_fma;
  });
  for (int i = 0; i < plan.storages.size(); ++i)
    fast &= plan.storages[codegen::StorageId{i}].storage_class <= codegen::StorageClass::registers;
  return fast;
}

/// The kernel compiles without spills and is fast, where tensor `transposed`, if it is not negative, is contiguous along
/// its first axis.
void check_kernel(const auto& kernel, int transposed, bool gemv, Arch arch) {
  const Graph& graph = kernel.executable().graph();
  Variant variant = dense_variant(graph);
  if (transposed >= 0) variant.tensors[static_cast<std::size_t>(transposed)].contiguous_axis = 0;
  INFO(graph.name);
  CHECK(compile_check(generate(graph, variant, arch), arch) == "");
  CHECK(is_fast(codegen::make_plan(graph, variant, arch, {}), gemv));
}

template <Element P, Element W>
void check_decode_kernels(int width, int heads, Arch arch) {
  INFO(width << " " << name(element_type<P>) << " " << arch.name());
  const auto check = [&](const auto& kernel, int transposed, bool gemv = true) {
    check_kernel(kernel, transposed, gemv, arch);
  };
  const TileTarget target{.gpu = true,
                          .operands = element_type<P>,
                          .width = width,
                          .head_width = 64,
                          .inner = 4 * width,
                          .shared_bytes = arch.shared_bytes(),
                          .spare_registers = Target::of(arch).registers_more_for_matmuls == 0};
  const DecodeTiles tiles = decode_tiles(target);
  const kernels::QkvWidths qkv{width, width, 64};
  const kernels::Mlp exact{.activation = Activation::gelu};
  check(kernels::decode_qkv<P, W>(width, 1, tiles.qkv, qkv), 3);
  if (tiles.normalizes) {
    check(kernels::decode_qkv<P, W>(width, rows_of_block, tiles.batch_qkv, qkv), 3, false);
    check(kernels::decode_up<P, W>(width, rows_of_block, tiles.batch_up, {}), 3, false);
    check(kernels::decode_up<P, W>(width, rows_of_block, tiles.batch_up, exact), 3, false);
  }
  if (tiles.batch_qkv > 0) check(kernels::decode_append<P, W>(width, rows_of_block, tiles.batch_qkv, qkv), 1, false);
  if (tiles.batch_up > 0) check(kernels::decode_linear<P, W>(width, rows_of_block, tiles.batch_up, exact), 1, false);
  for (const int rows : {2, 32, 64})
    for (const int k : {width, 4 * width})
      if (const int columns = columns_of_block(target, rows, width, k); columns > 0)
        check(kernels::decode_residual<P, W>(k, rows_of_block, columns), 1, false);
  for (const KeyTiles& keys :
       {key_tiles(target, 1), key_tiles(target, 300), key_tiles(target, 1024), key_tiles(target, 4096)}) {
    const auto attend = kernels::decode_attend<P>(heads, 64, keys);
    check(attend, -1);
    const Graph& graph = attend.executable().graph();
    const codegen::Plan plan = codegen::make_plan(graph, dense_variant(graph), arch, {});
    if (keys.warps > 0) CHECK(plan.threads() == 32 * keys.warps);
  }
  check(kernels::decode_part<P>(heads, 64, tiles.parts, part_key_tiles(target)), -1);
  check(kernels::decode_project<P, W>(heads, 64, tiles.parts, tiles.project), 3);
  check(kernels::decode_up<P, W>(width, 1, tiles.up, {}), 3);
  check(kernels::decode_up<P, W>(width, 1, tiles.up, exact), 3);
  check(kernels::decode_residual<P, W>(4 * width, 1, tiles.down), 1);
  check(kernels::decode_head<P, W>(width, 50257, tiles.head, tiles.rounds), -1);
}

/// The same for a Llama: a gate, rotated heads, of which those of queries share those of keys.
template <Element P, Element W>
void check_rotary_kernels(const TransformerConfig& config, Arch arch) {
  INFO(config.width << " " << name(element_type<P>) << " " << arch.name());
  const auto check = [&](const auto& kernel, int transposed, bool gemv = true) {
    check_kernel(kernel, transposed, gemv, arch);
  };
  using A = kernels::Activations<P>;
  const TileTarget target{.gpu = true,
                          .operands = element_type<P>,
                          .width = config.width,
                          .head_width = config.head_width(),
                          .inner = config.inner,
                          .query_width = config.query_width(),
                          .key_width = config.key_width(),
                          .rotary = true,
                          .gated = true};
  const DecodeTiles tiles = decode_tiles(target);
  REQUIRE(has_decode_kernels(target));
  CHECK(tiles.normalizes == (element_type<P> == ElementType::bf16 && config.width == 576));
  const kernels::Mlp mlp = mlp_of(config);
  check(kernels::decode_rotated_qkv<P, W>(config.width, 1, tiles.qkv, qkv_widths(config), config.norm), 3);
  if (tiles.normalizes) {
    check(kernels::decode_rotated_qkv<P, W>(config.width, rows_of_block, tiles.batch_qkv, qkv_widths(config),
                                            config.norm),
          3, false);
    check(kernels::decode_up<P, W>(config.width, rows_of_block, tiles.batch_up, mlp, config.norm), 3, false);
  } else if (tiles.batch_up > 0) {
    check(kernels::decode_linear<P, W>(config.width, rows_of_block, tiles.batch_up, mlp), 1, false);
  }
  check(kernels::decode_up<P, W>(config.width, 1, tiles.up, mlp, config.norm), 3);
  check(
      kernels::decode_part<P>(config.heads, config.head_width(), tiles.parts, part_key_tiles(target), group_of(config)),
      -1);
  check(kernels::decode_project<P, W>(config.heads, config.head_width(), tiles.parts, tiles.project), 3);
  check(kernels::decode_head<P, W>(config.width, config.vocab, tiles.head, tiles.rounds, config.norm), -1);
  check(kernels::rotate_append<A>(config.heads, config.key_heads(), config.head_width(), copy_rows(target)), -1, false);
  check(kernels::multiply_by_gate<A>(config.activation, config.inner, 1, columns_of_gate(target, config.inner)), -1,
        false);
}

/// The same for models whose queries and keys, or outputs, have norms.
template <Element P, Element W>
void check_kernels_with_norms(const TransformerConfig& config, Arch arch) {
  INFO(config.width << " " << name(element_type<P>) << " " << arch.name());
  const auto check = [&](const auto& kernel, int transposed, bool gemv = true) {
    check_kernel(kernel, transposed, gemv, arch);
  };
  using A = kernels::Activations<P>;
  const TileTarget target{.gpu = true,
                          .operands = element_type<P>,
                          .width = config.width,
                          .head_width = config.head_width(),
                          .inner = config.inner,
                          .query_width = config.query_width(),
                          .key_width = config.key_width(),
                          .rotary = true,
                          .separate_rotation = has_separate_rotation(config),
                          .gated = true};
  const DecodeTiles tiles = decode_tiles(target);
  REQUIRE(has_decode_kernels(target));
  CHECK(config.qkv_width() % tiles.qkv == 0);
  const kernels::Mlp mlp = mlp_of(config), plain{.activation = Activation::none};
  const Norm norm = config.norm_of_inputs();
  const kernels::ScoreRules rules{.window = 512, .cap = 50};
  check(kernels::decode_up<P, W>(config.width, 1, tiles.qkv, plain, norm), 3);
  check(kernels::rotate_append<A>(config.heads, config.key_heads(), config.head_width(), 1, config.qk_norm), -1, false);
  check(kernels::decode_part<P>(config.heads, config.head_width(), tiles.parts, part_key_tiles(target),
                                group_of(config), rules),
        -1);
  check(kernels::decode_attend<P>(config.heads, config.head_width(), key_tiles(target, 64), group_of(config), rules),
        -1);
  check(kernels::decode_project<P, W>(config.heads, config.head_width(), tiles.parts, tiles.project, true), 3);
  check(kernels::decode_residual<P, W>(config.inner, 1, tiles.down, true), 1);
  check(kernels::decode_head<P, W>(config.width, config.vocab, tiles.head, tiles.rounds, config.norm, 30), -1);
  check(kernels::add_norm<f32>(config.width, norm_tiles(target, 1)), -1, false);
  check(kernels::decode_up_behind<P, W>(config.width, 1, tiles.qkv, plain, norm), 5);
  check(kernels::decode_up_behind<P, W>(config.width, 1, tiles.up, mlp, norm), 5);
  if (!tiles.normalizes) return;
  check(kernels::decode_up_behind<P, W>(config.width, rows_of_block, tiles.batch_qkv, plain, norm), 5, false);
  check(kernels::decode_up_behind<P, W>(config.width, rows_of_block, tiles.batch_up, mlp, norm), 5, false);
}

/// Steps of a Llama whose weights are large enough for attention to matter, against golden logits.
void compare_golden(const Device& device) {
  for (const char* name : {"llama-odd", "llama-biases"}) {
    const std::filesystem::path folder = std::filesystem::path(TESSERA_SOURCE_DIR) / "tests/data" / name;
    const Checkpoint checkpoint = Checkpoint::open(folder);
    const SafeTensors golden = SafeTensors::open(folder / "golden.safetensors");
    const auto read = [&]<class T>(const char* tensor, T) {
      std::vector<T> values(golden.find(tensor)->size / sizeof(T));
      golden.read(*golden.find(tensor), std::as_writable_bytes(std::span(values)));
      return values;
    };
    const auto ids = read("ids", std::int32_t{});
    const auto logits = read("logits", 0.0f);
    const auto length = static_cast<std::size_t>(checkpoint.config.positions);
    const auto vocab = static_cast<std::ptrdiff_t>(checkpoint.config.vocab);
    for (const auto& [compute, bound] : {std::pair{Compute::bf16, 2e-2}, {Compute::tf32, 2.5e-3}})
      for (const std::size_t count : {length / 2, length}) {
        INFO(name << " " << count);
        const auto row = logits.begin() + static_cast<std::ptrdiff_t>(count - 1) * vocab;
        const Model model(device, checkpoint, compute);
        const Tokens text(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count));
        CHECK(relative_difference(step_by_step(model, text, count - 3), {row, row + vocab}) <= bound);
        if (count < length) continue;
        // Both texts at once, of which the second is shorter.
        const Tokens other(ids.begin() + static_cast<std::ptrdiff_t>(length),
                           ids.begin() + static_cast<std::ptrdiff_t>(length + count - 5));
        Session session(model, 2, static_cast<int>(length));
        const auto part = [](const Tokens& of, std::size_t last, std::size_t tokens) {
          const auto end = of.end() - static_cast<std::ptrdiff_t>(last);
          return Tokens(tokens == 0 ? of.begin() : end - static_cast<std::ptrdiff_t>(tokens), end);
        };
        session.append(std::vector<Tokens>{part(text, 2, 0), part(other, 2, 0)});
        for (const std::size_t last : {1, 0})
          session.append(std::vector<Tokens>{part(text, last, 1), part(other, last, 1)});
        const std::vector<float> both = session.logits();
        const auto second = logits.begin() + static_cast<std::ptrdiff_t>(length + count - 6) * vocab;
        CHECK(relative_difference({both.begin(), both.begin() + vocab}, {row, row + vocab}) <= bound);
        CHECK(relative_difference({both.begin() + vocab, both.end()}, {second, second + vocab}) <= bound);
      }
  }
}

TEST_CASE("steps of one token of a Llama have the golden logits", "[model]") { compare_golden(generated_device()); }

TEST_CASE("kernels of a Llama's decode steps compile to gemvs in registers, without spills", "[generate]") {
  for (const auto& [width, heads, keys, inner] :
       {std::tuple{576, 9, 3, 1536}, {960, 15, 5, 2560}, {2048, 32, 8, 8192}}) {  // SmolLM2 135M and 360M, Llama 3.2 1B
    TransformerConfig config = rotary(width, heads, keys);
    config.inner = inner, config.vocab = 49152;
    for (const Arch arch : test_archs()) {
      check_rotary_kernels<bf16, bf16>(config, arch);
      check_rotary_kernels<tf32, f32>(config, arch);
    }
  }
}

TEST_CASE("kernels of decode steps with more norms compile to gemvs in registers, without spills", "[generate]") {
  TransformerConfig qwen3 = rotary(1024, 16, 8, 128), gemma3 = rotary(1152, 4, 1, 256), olmo2 = rotary(2048, 16, 16);
  qwen3.inner = 3072, qwen3.vocab = 151936, qwen3.qk_norm = QkNorm::head;                               // 0.6B
  gemma3.inner = 6912, gemma3.vocab = 262144, gemma3.qk_norm = QkNorm::head, gemma3.norm_after = true;  // 1B
  olmo2.inner = 8192, olmo2.vocab = 100352, olmo2.qk_norm = QkNorm::width;                              // 1B
  olmo2.norm_before = false, olmo2.norm_after = true;
  TransformerConfig small = gemma3;  // 270M
  small.width = 640, small.inner = 2048;
  for (const TransformerConfig& config : {qwen3, gemma3, small, olmo2})
    for (const Arch arch : test_archs()) {
      check_kernels_with_norms<bf16, bf16>(config, arch);
      check_kernels_with_norms<tf32, f32>(config, arch);
    }
}

TEST_CASE("kernels of decode steps compile to gemvs in registers, without spills", "[generate]") {
  for (const auto& [width, heads] : {std::pair{768, 12}, {1024, 16}, {1280, 20}, {1600, 25}}) {
    for (const Arch arch : test_archs()) {
      check_decode_kernels<bf16, bf16>(width, heads, arch);
      check_decode_kernels<tf32, f32>(width, heads, arch);
    }
  }
}

TEST_CASE("decode steps differ by the model's activation", "[model]") {
  const auto logits = [](Activation gelu) {
    return step_by_step(Model(generated_device(), config_of(48, 3, gelu), 3, Compute::tf32), text_of(2), 0);
  };
  CHECK(logits(Activation::gelu) != logits(Activation::gelu_tanh));
}

TEST_CASE("tiles of decode steps divide the width", "[model]") {
  for (const int width : {8, 12, 24, 48, 60, 64, 100, 256, 300, 768, 780, 1020, 1021, 1024, 1280, 1600, 2048}) {
    const TileTarget target{
        .gpu = true, .operands = ElementType::bf16, .width = width, .head_width = 1, .inner = 4 * width};
    const DecodeTiles tiles = decode_tiles(target);
    INFO(width);
    for (const int columns : {tiles.qkv, tiles.project}) CHECK((columns >= 1 && width % columns == 0));
    CHECK((tiles.up >= 1 && target.inner % tiles.up == 0));
    if (tiles.normalizes) CHECK((tiles.batch_qkv > 0 && tiles.batch_up > 0));
    if (tiles.batch_qkv > 0) CHECK((tiles.batch_qkv >= 8 && width % tiles.batch_qkv == 0));
    if (tiles.batch_up > 0) CHECK((tiles.batch_up >= 8 && target.inner % tiles.batch_up == 0));
    CHECK(has_decode_kernels(target) == (width != 1021));
    // Beside them, a thread has the left operand in registers.
    for (const int elements :
         {tiles.qkv * width, tiles.up * width, tiles.project * width, tiles.down * 4 * width, tiles.head * width})
      CHECK(elements <= 256 * 120);
  }
  // The tiles of GPT-2's models, as measured (docs/notebook.md).
  const auto tiles_of = [](int width) {
    const DecodeTiles tiles = decode_tiles(
        {.gpu = true, .operands = ElementType::bf16, .width = width, .head_width = 64, .inner = 4 * width});
    return std::vector{tiles.qkv,     tiles.up,   tiles.batch_qkv, tiles.batch_up, static_cast<int>(tiles.normalizes),
                       tiles.project, tiles.down, tiles.head,      tiles.rounds,   tiles.parts};
  };
  CHECK(tiles_of(768) == std::vector{24, 24, 24, 24, 1, 16, 4, 16, 12, 6});
  CHECK(tiles_of(1024) == std::vector{16, 16, 32, 32, 1, 16, 2, 16, 12, 6});
  CHECK(tiles_of(1280) == std::vector{16, 20, 32, 40, 0, 16, 2, 8, 8, 5});
  CHECK(tiles_of(1600) == std::vector{16, 16, 40, 0, 0, 10, 2, 8, 8, 4});  // GELU of a few sequences: by wgmma
  const TileTarget target{.gpu = true, .operands = ElementType::bf16, .width = 768, .head_width = 64, .inner = 3072};
  // Those of SmolLM2 135M, and 360M: as measured.
  const auto rotary_tiles = [](int width, int key_width, int inner) {
    const DecodeTiles tiles = decode_tiles({.gpu = true,
                                            .operands = ElementType::bf16,
                                            .width = width,
                                            .head_width = 64,
                                            .inner = inner,
                                            .key_width = key_width,
                                            .rotary = true,
                                            .gated = true});
    return std::vector{tiles.qkv, tiles.up, tiles.batch_qkv, tiles.batch_up, static_cast<int>(tiles.normalizes)};
  };
  CHECK(rotary_tiles(576, 192, 1536) == std::vector{8, 12, 16, 16, 1});
  CHECK(rotary_tiles(960, 320, 2560) == std::vector{16, 8, 0, 0, 0});  // by matmuls
  CHECK(columns_of_block(target, 16, 768, 3072) == 8);
  CHECK(columns_of_block(target, 64, 768, 768) == 24);  // 128 CTAs
  CHECK(columns_of_block(target, 64, 768, 3072) == 0);  // more CTAs than multiprocessors
  CHECK(columns_of_block(target, 4096, 768, 768) == 0);
  CHECK_FALSE(has_decode_kernels({.gpu = false, .operands = ElementType::bf16, .width = 768, .head_width = 64}));
}

}  // namespace test_decode
