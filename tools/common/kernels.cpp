#include "common/kernels.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include "common/lessons.hpp"
#include "graph/error.hpp"
#include "model/config.hpp"
#include "model/kernels.hpp"
#include "model/tiles.hpp"

namespace tessera {
namespace {

class Table {
 public:
  std::vector<NamedKernel> kernels;

  void add(std::string name, auto make) {
    kernels.push_back({std::move(name), [make] { return make().executable().graph(); }});
  }

  /// Those with activations of type A.
  template <Element A>
  void add_activations(const Gpt2Config& config, std::string_view type) {
    const int width = config.width;
    const auto named = [&](std::string_view kernel) { return fmt::format("{}-{}", kernel, type); };
    add(named("embed"), [=] { return kernels::embed<A>(width, 8); });
    add(named("layer_norm"), [=] { return kernels::layer_norm<A>(width, 1); });
    add(named("last_norm"), [=] { return kernels::last_norm<A>(width); });
    add(named("append_cache"), [=] { return kernels::append_cache<A>(width, 8); });
    add(named("random_weights"), [] { return kernels::random_weights<A>(4096); });
  }

  /// Those with products of type P, and weights as activations.
  template <Element P>
  void add_products(const Gpt2Config& config, std::string_view type) {
    using W = kernels::Activation<P>;
    const int width = config.width, heads = config.heads, head_width = config.head_width();
    const TileTarget gpu{true, element_type<P>, width, head_width};
    for (const int m : {1, 16, 64, 128}) {
      const ProductTiles tiles = rule_tiles(m, {m, width, width}, gpu.operands, true),
                         head = rule_tiles(m, {m, width, width, true}, gpu.operands, true);
      const auto product = [&](std::string_view kernel) { return fmt::format("{}-{}-{}", kernel, m, type); };
      add(product("linear"), [=] { return kernels::linear<P, W>(tiles); });
      add(product("linear_gelu"), [=] { return kernels::linear_gelu<P, W>(tiles); });
      add(product("linear_residual"), [=] { return kernels::linear_residual<P, W>(tiles); });
      add(product("lm_head"), [=] { return kernels::lm_head<P, W>(head); });
    }
    const auto named = [&](std::string_view kernel) { return fmt::format("{}-{}", kernel, type); };
    const auto [queries, keys] = attention_tiles(gpu);
    add(named("attention"),
        [=, queries = queries, keys = keys] { return kernels::attention<P>(heads, head_width, queries, keys); });
    add(named("decode_attention"), [=] { return kernels::decode_attention<P>(heads, head_width, decode_keys(gpu)); });
  }

  /// Those of the lessons, as the lessons launch them.
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
    }
  }
};

std::vector<NamedKernel> make_table() {
  const Gpt2Config config = preset("gpt2");
  const int vocab = config.vocab;
  Table table;
  table.add_activations<f32>(config, "f32");
  table.add_activations<bf16>(config, "bf16");
  table.add_products<f32>(config, "f32");
  table.add_products<tf32>(config, "tf32");
  table.add_products<bf16>(config, "bf16");
  table.add("sample_greedy", [=] { return kernels::sample_greedy(vocab); });
  table.add("sample", [=] { return kernels::sample(vocab); });
  table.add("advance", [] { return kernels::advance(64); });
  table.add("log_probability", [=] { return kernels::log_probability(vocab); });
  table.add("convert-f32-bf16", [] { return kernels::convert<bf16, f32>(4096); });
  table.add("convert-f16-f32", [] { return kernels::convert<f32, f16>(4096); });
  table.add("fill-f32", [] { return kernels::fill<f32>(4096); });
  table.add("fill-u8", [] { return kernels::fill<u8>(4096); });
  table.add_lessons();
  return std::move(table.kernels);
}

}  // namespace

const std::vector<NamedKernel>& named_kernels() {
  static const std::vector<NamedKernel> kernels = make_table();
  return kernels;
}

std::vector<NamedKernel> find_kernels(std::string_view pattern) {
  std::vector<NamedKernel> found;
  std::string names;
  for (const NamedKernel& kernel : named_kernels()) {
    if (::fnmatch(std::string(pattern).c_str(), kernel.name.c_str(), 0) == 0) found.push_back(kernel);
    names += fmt::format("{}{}", names.empty() ? "" : ", ", kernel.name);
  }
  if (found.empty()) throw Error(fmt::format("there is no kernel '{}'; choose from {}", pattern, names));
  return found;
}

}  // namespace tessera
