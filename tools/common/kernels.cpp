#include "common/kernels.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include "common/computed_products.hpp"
#include "common/declared.hpp"
#include "common/lessons.hpp"
#include "common/scaled_products.hpp"
#include "jit/launch/matmul_tiles.hpp"
#include "model/candidate_kernels.hpp"
#include "model/decode_kernels.hpp"
#include "model/tiles.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/model/config.hpp"

namespace tessera::internal {
namespace {

class Table {
 public:
  std::vector<NamedKernel> kernels;

  void add(std::string name, auto make) {
    kernels.push_back({std::move(name), [make] { return make().executable().graph(); }});
  }

  /// Kernels with activations of type A.
  template <Element A>
  void add_activations(const TransformerConfig& config, std::string_view type) {
    const int width = config.width;
    const auto named = [&](std::string_view kernel) { return fmt::format("{}-{}", kernel, type); };
    add(named("embed"), [=] { return kernels::embed<A>(width, 8); });
    add(named("layer_norm"), [=] { return kernels::layer_norm<A>(width, {.rows = 1}); });
    add(named("layer_norm-few"), [] { return kernels::layer_norm<A>(1600, {.rows = 1, .warps = 8, .columns = 2048}); });
    add(named("last_norm"), [=] { return kernels::last_norm<A>(width, {.rows = 1, .warps = 4}); });
    add(named("append_cache"), [=] { return kernels::append_cache<A>(width, 8); });
    add(named("rms_norm"), [=] { return kernels::layer_norm<A>(width, {.rows = 1}, Norm::rms); });
    add(named("rotate_append"), [] { return kernels::rotate_append<A>(9, 3, 64, 8); });
    add(named("rotate_append-norm"), [] { return kernels::rotate_append<A>(16, 8, 128, 8, QkNorm::head); });
    add(named("rotate_append-wide_norm"), [] { return kernels::rotate_append<A>(16, 16, 128, 1, QkNorm::width); });
    add(named("add_norm"), [=] { return kernels::add_norm<A>(width, {.rows = 1}); });
    add(named("multiply_by_gate"), [] { return kernels::multiply_by_gate<A>(Activation::silu, 1536, 1, 2048); });
    add(named("random_weights"), [] { return kernels::random_weights<A>(4096); });
  }

  /// Kernels with matmuls of type P, and weights of the activations' type.
  template <Element P>
  void add_products(const TransformerConfig& config, std::string_view type) {
    using W = kernels::Activations<P>;
    const int width = config.width, heads = config.heads, head_width = config.head_width(), vocab = config.vocab;
    const TileTarget gpu{.gpu = true, .operands = element_type<P>, .width = width, .head_width = head_width, .inner = 4 * width};
    for (const int m : {1, 16, 64, 128}) {
      const MatmulTiles tiles = rule_tiles(m, {m, width, width}, gpu.operands),
                        head = rule_tiles(m, {m, width, width, true}, gpu.operands);
      const auto product = [&](std::string_view kernel) { return fmt::format("{}-{}-{}", kernel, m, type); };
      add(product("linear"), [=] { return kernels::linear<P, W>(tiles); });
      add(product("linear_gelu"), [=] { return kernels::linear_gelu<P, W>(tiles); });
      if (m == 1 || m == 64)
        add(product("linear_exact_gelu"), [=] { return kernels::linear_activated<P, W>(Activation::gelu, tiles); });
      add(product("linear_residual"), [=] { return kernels::linear_residual<P, W>(tiles); });
      add(product("lm_head"), [=] { return kernels::lm_head<P, W>(head); });
    }
    const auto named = [&](std::string_view kernel) { return fmt::format("{}-{}", kernel, type); };
    const AttentionTiles of_attention = attention_tiles(gpu);
    add(named("attention"),
        [=] { return kernels::attention<P>(heads, head_width, of_attention.queries, of_attention.keys); });
    add(named("attention-window"), [=] {
      return kernels::attention<P>(heads, head_width, of_attention.queries, of_attention.keys, 1, 0, {512, 50});
    });
    add(named("decode_attend"), [=] { return kernels::decode_attend<P>(heads, head_width, key_tiles(gpu, 1024)); });
    // In memory, weights of decode steps are transposed.
    const auto add_decode = [&](std::string_view kernel, std::size_t weights, auto make) {
      add(named(kernel), make);
      kernels.back().unlike_dense = [=](Variant& variant) { variant.tensors[weights].contiguous_axis = 0; };
    };
    const DecodeTiles tiles = decode_tiles(gpu);
    const kernels::QkvWidths qkv{width, width, head_width};
    add_decode("decode_qkv", 3, [=] { return kernels::decode_qkv<P, W>(width, 1, tiles.qkv, qkv); });
    add(named("decode_part"),
        [=] { return kernels::decode_part<P>(heads, head_width, tiles.parts, part_key_tiles(gpu)); });
    add_decode("decode_residual", 1, [=] { return kernels::decode_residual<P, W>(4 * width, 1, tiles.down); });
    add_decode("decode_project", 3,
               [=] { return kernels::decode_project<P, W>(heads, head_width, tiles.parts, tiles.project); });
    add(named("decode_head"), [=] { return kernels::decode_head<P, W>(width, vocab, tiles.head, tiles.rounds); });
    add_decode("decode_up", 3, [=] { return kernels::decode_up<P, W>(width, 1, tiles.up, {}); });
    add_decode("decode_rotated_qkv", 3, [=] {
      return kernels::decode_rotated_qkv<P, W>(width, 1, 8, {width, width / 3, head_width}, Norm::rms);
    });
    add_decode("decode_up-gated", 3, [=] {
      return kernels::decode_up<P, W>(width, 1, 8, {.activation = Activation::silu, .gated = true, .inner = 4 * width},
                                      Norm::rms);
    });
    add(named("decode_part-window"), [=] {
      return kernels::decode_part<P>(heads, head_width, tiles.parts, part_key_tiles(gpu), 1, {512, 50});
    });
    add_decode("decode_product-behind", 5, [=] {
      return kernels::decode_up_behind<P, W>(width, 1, 24, {.activation = Activation::none}, Norm::rms);
    });
    add_decode("decode_up-gated-behind", 5, [=] {
      return kernels::decode_up_behind<P, W>(
          width, 1, 8, {.activation = Activation::silu, .gated = true, .inner = 4 * width}, Norm::rms);
    });
    if (tiles.batch_up == 0) return;
    constexpr int rows = rows_of_block;
    add_decode("decode_qkv-rows", 3, [=] { return kernels::decode_qkv<P, W>(width, rows, tiles.batch_qkv, qkv); });
    add(named("decode_attend-rows"), [=] { return kernels::decode_attend<P>(heads, head_width, key_tiles(gpu, 1)); });
    add_decode("decode_residual-rows", 1,
               [=] { return kernels::decode_residual<P, W>(width, rows, columns_of_block(gpu, rows, width, width)); });
    add_decode("decode_residual-wide-rows", 1, [=] {
      return kernels::decode_residual<P, W>(4 * width, rows, columns_of_block(gpu, rows, width, 4 * width));
    });
    add_decode("decode_append-rows", 1, [=] { return kernels::decode_append<P, W>(1600, rows, 40, {1600, 1600, 64}); });
    add(named("greedy_head"), [=] { return kernels::greedy_head<P, W>({64, 128, 64}, vocab); });
    add(named("greedy_head-wide"), [=] { return kernels::greedy_head<P, W>({128, 96, 64}, vocab); });
    add_decode("linear_append", 1, [=] { return kernels::linear_append<P, W>({64, 64, 64}); });
    add_decode("decode_gelu-rows", 1, [=] { return kernels::decode_linear<P, W>(1600, rows, tiles.batch_up, {}); });
    add_decode("decode_rotated_qkv-rows", 3, [=] {
      return kernels::decode_rotated_qkv<P, W>(576, rows, 16, {576, 192, 64}, Norm::rms);
    });
    add_decode("decode_up-gated-rows", 3, [=] {
      return kernels::decode_up<P, W>(576, rows, 16, {.activation = Activation::silu, .gated = true, .inner = 1536},
                                      Norm::rms);
    });
    add_decode("decode_up-rows", 3, [=] { return kernels::decode_up<P, W>(width, rows, tiles.batch_up, {}); });
  }

  /// Matmuls that only sm_90a has.
  void add_by_roles() {
    const auto add_typed = [&](std::string name, auto make, std::function<void(Variant&)> unlike_dense) {
      add(std::move(name), make);
      kernels.back().unlike_dense = std::move(unlike_dense);
      kernels.back().only = Arch::sm_90a;
    };
    const auto add_one = [&](const std::string& name, auto make, std::function<void(Variant&)> unlike_dense = {}) {
      add_typed(name + "-bf16", make, std::move(unlike_dense));
    };
    const auto linear = [](MatmulTiles tiles) { return [=] { return kernels::linear<bf16, bf16>(tiles); }; };
    for (const MatmulTiles& tiles : wgmma_tiles()) {
      const std::string of = fmt::format("{}x{}x{}", tiles.m, tiles.n, tiles.k);
      add_one("linear-" + of, linear(tiles));
      add_one("linear_qkv-" + of, [=] { return kernels::linear_qkv<bf16, bf16>(tiles); });
      add_one("linear_gelu-" + of, [=] { return kernels::linear_gelu<bf16, bf16>(tiles); });
      add_one("linear_residual-" + of, [=] { return kernels::linear_residual<bf16, bf16>(tiles); });
      add_one("linear_cast-" + of, [=] { return kernels::linear_cast(tiles); });
      add_one("linear_norm-" + of, [=] { return kernels::linear_norm(tiles); });
      if (tiles.m < 256)  // erf spills 20 bytes there; choose() uses these only for rows of 128, which no model has
        add_one("linear_exact_gelu-" + of,
                [=] { return kernels::linear_activated<bf16, bf16>(Activation::gelu, tiles); });
    }
    const auto shared = [](SplitK split_k) { return [=](Variant& variant) { variant.split_k = split_k; }; };
    const auto multicast = [](Variant& variant) { variant.multicast = true; };
    for (const MatmulTiles& tiles : wgmma_tiles()) {
      const std::string of = fmt::format("{}x{}x{}", tiles.m, tiles.n, tiles.k);
      add_one("linear-multicast-" + of, linear(tiles), multicast);
      add_one("linear_residual-multicast-" + of, [=] { return kernels::linear_residual<bf16, bf16>(tiles); },
              multicast);
      add_one("lm_head-multicast-" + of, [=] { return kernels::lm_head<bf16, bf16>(tiles); }, multicast);
    }
    for (const MatmulTiles& tiles : wgmma_tiles(ElementType::tf32)) {
      const std::string of = fmt::format("{}x{}x{}-tf32", tiles.m, tiles.n, tiles.k);
      const auto nk = [=] { return kernels::lm_head<tf32, f32>(tiles); };
      add_typed("gemm_nk-" + of, nk, {});
      add_typed("gemm_nk-grid-" + of, nk, shared(SplitK::stream_k));
      if (tiles.m * tiles.n <= 64 * 128) add_typed("gemm_nk-clusters-" + of, nk, shared(SplitK::cluster));
    }
    // With swapped operands, so that the largest extent is along n.
    for (const auto& [m, n] : {std::pair{256, 128}, {128, 128}, {192, 128}, {128, 256}, {64, 128}}) {
      const std::string of = fmt::format("{}x{}", m, n);
      add_typed("gemm_kn-" + of + "x32-tf32", [=] { return kernels::linear<tf32, f32>({m, n, 32}); }, {});
      add_typed("linear_i8-" + of + "x64-bf16", [=] { return kernels::linear_i8({m, n, 64}, false); }, {});
      add_typed("linear_i8_nk-" + of + "x128-bf16", [=] { return kernels::linear_i8({m, n, 128}, true); }, {});
      if (n < 256) add_typed("linear_i4-" + of + "x64-bf16", [=] { return kernels::linear_i4({m, n, 64}); }, {});
    }
    for (const auto& [m, n] : {std::pair{128, 256}, {128, 192}, {128, 128}, {128, 64}, {64, 256}, {64, 128}, {64, 64}})
      for (const bool by_row : {false, true})
        add_typed(
            fmt::format("scaled_mm{}-{}x{}x128-f8e4m3", by_row ? "_rows" : "", m, n),
            [=] {
          return kernels::scaled_mm({m, n, 128}, by_row);
            },
            {});
    for (const auto& [heads, width, seen] : {std::tuple{12, 64, 512}, {12, 64, 2048}, {8, 128, 512}, {8, 128, 4096}}) {
      const AttentionTiles tiles = attention_tiles(
          {.gpu = true, .wgmma = true, .operands = ElementType::bf16, .head_width = width, .seen = seen});
      add_one(fmt::format("attention-{}x{}x{}", tiles.queries, tiles.keys, width), [=, heads = heads, width = width] {
        return kernels::attention<bf16>(heads, width, tiles.queries, tiles.keys, 1, tiles.blocks);
      });
    }
    for (const MatmulTiles& tiles : {MatmulTiles{64, 64, 64}, {64, 64, 128}, {128, 64, 64}, {128, 128, 64}}) {
      const std::string of = fmt::format("{}x{}x{}", tiles.m, tiles.n, tiles.k);
      add_one("linear-clusters-" + of, linear(tiles), shared(SplitK::cluster));
      const auto copied = [](std::initializer_list<std::size_t> operands) {
        return [operands = std::vector(operands)](Variant& variant) {
          for (const std::size_t i : operands) {
            variant.tensors[i].alignment = variant.tensors[i].row_alignment = 2;
            variant.tensors[i].tma_addressable = false;
          }
        };
      };
      add_one("linear-copied_right-" + of, linear(tiles), copied({1, 3}));  // as wide as GPT-2's vocabulary
      add_one("linear-copied-" + of, linear(tiles), copied({0, 1, 3}));
    }
    // Those of batch-invariant models.
    const auto along_k = [](Variant& variant) { variant.tensors[1].contiguous_axis = 0; };
    for (const MatmulTiles& tiles : narrow_tiles()) {
      const std::string of = fmt::format("{}x{}x{}", tiles.m, tiles.n, tiles.k);
      add_one("linear-" + of, linear(tiles), along_k);
      add_one(
          "linear_append-" + of, [=] { return kernels::linear_append<bf16, bf16>(tiles); }, along_k);
      add_one(
          "linear_gelu-" + of, [=] { return kernels::linear_gelu<bf16, bf16>(tiles); }, along_k);
      add_one(
          "linear_residual-" + of, [=] { return kernels::linear_residual<bf16, bf16>(tiles); }, along_k);
    }
    for (const auto& [heads, width] : {std::pair{12, 64}, {8, 128}}) {
      const TileTarget target{
          .gpu = true, .wgmma = true, .operands = ElementType::bf16, .head_width = width, .batch_invariant = true};
      const auto add_attention = [&, heads = heads, width = width](const char* of, const AttentionTiles& tiles) {
        add_one(fmt::format("attention_{}-{}", of, width),
                [=] { return kernels::attention<bf16>(heads, width, tiles.queries, tiles.keys, 1, tiles.blocks); });
      };
      add_attention("invariant", attention_tiles(target));
      add_attention("of_one", tiles_of_one(target));
    }
  }

  /// The kernels of the lessons, as the lessons launch them.
  void add_lessons() {
    add("vector_add", [] { return lesson1::vector_add(4096); });
    add("softmax", [] { return lesson2::softmax(2048); });
    add("lesson_layer_norm", [] { return lesson3::layer_norm(768); });
    add("lesson_linear_gelu-f32", [] { return lesson4::linear_gelu<f32>(64, 64, 32); });
    add("lesson_linear_gelu-bf16", [] { return lesson4::linear_gelu<bf16>(64, 64, 32); });
    for (const bool causal : {false, true}) {
      const std::string_view kind = causal ? "causal" : "full";
      add(fmt::format("flash_attention-{}-f32", kind),
          [=] { return lesson5::flash_attention<f32>(64, 32, lesson5::width, causal); });
      add(fmt::format("flash_attention-{}-bf16", kind),
          [=] { return lesson5::flash_attention<bf16>(64, 32, lesson5::width, causal); });
      add(fmt::format("flash_attention-{}-bf16-192x128x64", kind),
          [=] { return lesson5::flash_attention<bf16>(192, 128, 64, causal); });
      add(fmt::format("flash_attention-{}-bf16-128x128x128", kind),
          [=] { return lesson5::flash_attention<bf16>(128, 128, 128, causal); });
    }
  }
};

std::vector<NamedKernel> make_table() {
  const TransformerConfig config = preset("gpt2");
  const int vocab = config.vocab;
  Table table;
  table.add_activations<f32>(config, "f32");
  table.add_activations<bf16>(config, "bf16");
  table.add_products<f32>(config, "f32");
  table.add_products<tf32>(config, "tf32");
  table.add_products<bf16>(config, "bf16");
  // Few rows, as when a new token's queries of several heads share keys: warps share the rows.
  for (const auto& [rows, keys, width] : {std::tuple{16, 128, 64}, {32, 64, 64}, {16, 64, 128}})
    table.add(fmt::format("attention-{}x{}x{}-bf16", rows, keys, width),
              [=, rows = rows, keys = keys, width = width] { return kernels::attention<bf16>(12, width, rows, keys); });
  table.add("candidates", [=] { return kernels::candidates(vocab); });
  table.add("sample_candidates", [=] { return kernels::sample_candidates(vocab); });
  table.add("greedy_parts", [=] { return kernels::greedy_parts(vocab, 1024, 8); });
  table.add("greedy_token", [] { return kernels::greedy_token(7); });
  table.add("sample", [=] { return kernels::sample(vocab); });
  table.add("mark_seen", [] { return kernels::mark_seen(64); });
  table.add("log_probability", [=] { return kernels::log_probability(vocab); });
  table.add("convert-f32-bf16", [] { return kernels::convert<bf16, f32>(4096); });
  table.add("convert-f16-f32", [] { return kernels::convert<f32, f16>(4096); });
  table.add("fill-f32", [] { return kernels::fill<f32>(4096); });
  table.add("fill-u8", [] { return kernels::fill<u8>(4096); });
  table.add_lessons();
  table.add_by_roles();
  return std::move(table.kernels);
}

}  // namespace

Variant NamedKernel::variant(const Graph& traced) const {
  Variant variant = dense_variant(traced);
  if (unlike_dense) unlike_dense(variant);
  return variant;
}

const std::vector<NamedKernel>& named_kernels() {
  static const std::vector<NamedKernel> kernels = make_table();
  return kernels;
}

std::vector<NamedKernel> find_kernels(std::string_view pattern, Arch gpu) {
  std::vector<NamedKernel> found;
  std::vector<std::string> names;
  std::string others;  // GPUs that have such kernels
  for (const NamedKernel& kernel : named_kernels()) {
    const bool matches = ::fnmatch(std::string(pattern).c_str(), kernel.name.c_str(), 0) == 0;
    if (kernel.name == pattern || (matches && kernel.is_of(gpu))) found.push_back(kernel);
    if (matches && kernel.only && others.find(kernel.only->name()) == others.npos)
      others += (others.empty() ? "" : ", ") + kernel.only->name();
    names.push_back(kernel.name);
  }
  if (!found.empty()) return found;
  if (!others.empty()) throw Error(fmt::format("the kernels '{}' are those of {}, not of {}", pattern, others, gpu.name()));
  throw Error(fmt::format("there is no kernel '{}'{} (inspect --list shows all {})", pattern,
                          did_you_mean(pattern, names), names.size()));
}

}  // namespace tessera::internal
