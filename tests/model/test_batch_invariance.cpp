// Batch-invariant models: a text has the same bits in any batch, however it is divided into calls of append().
#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "codegen/generate.hpp"
#include "jit/launch/matmul_tiles.hpp"
#include "model/network_kernels.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/small_model.hpp"
#include "support/support.hpp"
#include "tessera/model/continuous_batch.hpp"
#include "tessera/model/session.hpp"

namespace test_batch_invariance {

using namespace tessera::internal;
using Tokens = std::vector<std::int32_t>;
using Logits = std::vector<float>;

namespace {

/// The logits behind each token of a text, which is alone and grows by one token at a time.
std::vector<Logits> alone(const Model& model, const Tokens& text) {
  Session session(model, 1, model.config().positions);
  std::vector<Logits> all;
  for (const std::int32_t token : text) {
    session.append(std::array{Tokens{token}});
    all.push_back(session.logits());
  }
  return all;
}

Logits row_of(const Logits& all, std::size_t row, std::size_t vocab) {
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(row * vocab);
  return {begin, begin + static_cast<std::ptrdiff_t>(vocab)};
}

/// Texts in a batch grow by random numbers of tokens. Are all logits those that each text has alone?
void check_batch(const Model& model, std::size_t batch, std::size_t length, std::mt19937& rng) {
  const auto vocab = static_cast<std::size_t>(model.config().vocab);
  std::vector<Tokens> texts(batch);
  std::vector<std::vector<Logits>> expected;
  for (Tokens& text : texts) {
    for (std::size_t i = 0; i < length; ++i) text.push_back(static_cast<std::int32_t>(rng() % vocab));
    expected.push_back(alone(model, text));
  }
  Session session(model, static_cast<int>(batch), model.config().positions);
  std::vector<std::size_t> read(batch, 0);
  for (int step = 0; std::ranges::any_of(read, [&](std::size_t count) { return count < length; }); ++step) {
    const std::size_t most = step % 3 == 0 ? 1 : length;  // some steps of one position
    std::vector<Tokens> tokens(batch);
    std::size_t longest = 0;
    for (std::size_t b = 0; b < batch; ++b) {
      const std::size_t count = std::min<std::size_t>(rng() % (most + 1), length - read[b]);
      const auto first = texts[b].begin() + static_cast<std::ptrdiff_t>(read[b]);
      tokens[b] = Tokens(first, first + static_cast<std::ptrdiff_t>(count));
      longest = std::max(longest, count);
    }
    if (longest == 0) continue;
    session.append(tokens);
    const Logits last = session.logits(), all = session.all_logits();
    for (std::size_t b = 0; b < batch; ++b) {
      INFO("step " << step << ", text " << b << ", " << tokens[b].size() << " tokens behind " << read[b]);
      for (std::size_t i = 0; i < tokens[b].size(); ++i)
        CHECK(row_of(all, b * longest + i, vocab) == expected[b][read[b] + i]);
      read[b] += tokens[b].size();
      if (!tokens[b].empty()) CHECK(row_of(last, b, vocab) == expected[b][read[b] - 1]);
    }
  }
}

}  // namespace

TEST_CASE("a batch-invariant model computes the same bits in any batch", "[model]") {
  std::mt19937 rng(7);
  for (const Compute type : {Compute::f32, Compute::tf32, Compute::bf16}) {
    const Model model(test_device(), small_model(), 5, Computation(type, true));
    INFO("type " << static_cast<int>(type));
    for (const std::size_t batch : {1, 2, 7, 20}) check_batch(model, batch, 40, rng);
  }
  TransformerConfig wide = small_model();  // more columns than a tile has
  wide.width = 300, wide.heads = 3, wide.inner = 1100;
  for (const Compute type : {Compute::f32, Compute::bf16}) {
    const Model model(test_device(), wide, 5, Computation(type, true));
    INFO("type " << static_cast<int>(type));
    check_batch(model, 18, 20, rng);
  }
  for (const int head_width : {64, 128}) {  // attention by wgmma, of several tiles of keys
    TransformerConfig fused = small_model();
    fused.heads = 2, fused.width = 2 * head_width, fused.inner = 4 * fused.width, fused.positions = 150;
    INFO("heads of " << head_width);
    check_batch(Model(test_device(), fused, 5, Computation(Compute::bf16, true)), 5, 140, rng);
  }
}

// Rows are the same in all tiles, though not of equal values, whose sums would be exact.
TEST_CASE("a batch-invariant model's matmuls of any tiles have the same bits", "[model]") {
  std::mt19937 rng(11);
  std::normal_distribution<float> normal;
  const auto check = [&](const Device& device, std::int64_t rows, std::int64_t n, std::int64_t k,
                         const std::vector<MatmulTiles>& all) {
    const auto tensor = [&](std::int64_t height, std::int64_t width) {
      std::vector<bf16> values(static_cast<std::size_t>(height * width));
      for (bf16& value : values) value = bf16(normal(rng));
      Tensor<bf16, 2> made(device, {height, width});
      made.copy_from(values);
      return made;
    };
    const Tensor<bf16, 2> x = tensor(rows, k), w = tensor(n, k);
    std::vector<float> first;
    for (const MatmulTiles& tiles : all) {
      INFO(tiles.m << "x" << tiles.n << "x" << tiles.k);
      const Tensor<f32, 2> y(device, {rows, n});
      launch(device.stream(), kernels::lm_head<bf16, bf16>(tiles, true), x, w, y);
      const std::vector<float> values = y.to_vector();
      if (first.empty()) first = values;
      CHECK(values == first);
    }
  };
  std::vector<MatmulTiles> all = wgmma_tiles();
  std::ranges::copy(narrow_tiles(), std::back_inserter(all));
  check(test_device(), 150, 200, 1544, all);
#ifdef TESSERA_HAS_EMULATOR
  check(emulated_device(), 20, 40, 264, {{64, 64, 64}, {64, 64, 128}, {64, 32, 128}, {64, 16, 128}, {128, 128, 64}});
#endif
}

TEST_CASE("a batch-invariant model's attention of one position has the bits that a prompt's has", "[model]") {
  std::mt19937 rng(12);
  std::normal_distribution<float> normal;
  const auto check = [&](const Device& device, int head_width, int length, const std::vector<int>& positions) {
    const TileTarget target{
        .gpu = true, .wgmma = true, .operands = ElementType::bf16, .head_width = head_width, .batch_invariant = true};
    const AttentionTiles tiles = attention_tiles(target), one = tiles_of_one(target);
    const auto of_prompt = kernels::attention<bf16>(2, head_width, tiles.queries, tiles.keys, 2, tiles.blocks);
    const auto of_one = kernels::attention<bf16>(2, head_width, one.queries, one.keys, 2, one.blocks);
    const auto tensor = [&](std::int64_t rows, const std::vector<bf16>& values) {
      Tensor<bf16, 3> made(device, {1, rows, static_cast<std::int64_t>(values.size()) / rows});
      made.copy_from(values);
      return made;
    };
    const auto number = [&](int value) {
      Tensor<i32, 1> made(device, {1});
      made.copy_from(std::vector{value});
      return made;
    };
    const auto random = [&](int count) {
      std::vector<bf16> values(static_cast<std::size_t>(count));
      for (bf16& value : values) value = bf16(normal(rng));
      return values;
    };
    const int width = 2 * head_width, room = length + 30;
    const std::vector<bf16> queries = random(length * width);
    const Tensor<bf16, 3> keys = tensor(room, random(room * head_width)), all(device, {1, length, width}),
                          alone(device, {1, 1, width}), values = tensor(room, random(room * head_width));
    launch(device.stream(), of_prompt, tensor(length, queries), keys, values, number(0), number(length), all, 0.3f);
    const std::vector<bf16> expected = all.to_vector();
    for (const int position : positions) {
      INFO("heads of " << head_width << ", position " << position);
      const auto begin = static_cast<std::ptrdiff_t>(position) * width;
      const Tensor<bf16, 3> query =
          tensor(1, std::vector<bf16>(queries.begin() + begin, queries.begin() + begin + width));
      launch(device.stream(), of_one, query, keys, values, number(position), number(1), alone, 0.3f);
      const std::vector<bf16> found = alone.to_vector();
      CHECK(std::ranges::equal(
          found, std::span(expected).subspan(static_cast<std::size_t>(begin), found.size()), {},
          [](bf16 value) { return static_cast<float>(value); }, [](bf16 value) { return static_cast<float>(value); }));
    }
  };
  for (const int head_width : {64, 128})
    check(test_device(), head_width, 400, {0, 1, 63, 64, 95, 96, 128, 191, 192, 399});
#ifdef TESSERA_HAS_EMULATOR
  check(emulated_device(), 64, 140, {0, 95, 96, 139});
#endif
}

TEST_CASE("a batch-invariant model with rotary positions and a gate computes the same bits in any batch", "[model]") {
  std::mt19937 rng(8);
  TransformerConfig config = small_model();
  config.width = 64, config.heads = 4, config.key_value_heads = 2, config.inner = 130;
  config.position_encoding = PositionEncoding::rotary, config.gated = true, config.norm = Norm::rms;
  for (const Compute type : {Compute::f32, Compute::bf16})
    for (const std::size_t batch : {1, 7, 20})
      check_batch(Model(test_device(), config, 5, Computation(type, true)), batch, 30, rng);
  config.position_encoding = PositionEncoding::learned, config.gated = false;
  check_batch(Model(test_device(), config, 5, Computation(Compute::bf16, true)), 7, 30, rng);
}

TEST_CASE("256 texts that join and leave a batch-invariant batch have the tokens that they have alone",
          "[model][many]") {
  const Model model(test_device(), small_model(), 5, Computation(Compute::bf16, true));
  constexpr Sampling sampling{.temperature = 1, .top_k = 0, .seed = 4};
  constexpr int capacity = 40, texts = 400;
  std::mt19937 rng(8);
  const auto below = [&](unsigned n) { return static_cast<int>(rng() % n); };
  ContinuousBatch batch(model, sampling, {.sequences = 256, .capacity = capacity, .prompt_tokens = 100});
  std::map<std::int64_t, TextRequest> requests;
  std::map<std::int64_t, Tokens> results;
  std::size_t most = 0;
  for (int step = 0; step == 0 || batch.texts() > 0; ++step) {
    REQUIRE(step < 2000);
    for (int i = 0; i < 40 && requests.size() < texts; ++i) {
      TextRequest request{.prompt = {}, .new_tokens = 1 + below(25), .stream = static_cast<int>(requests.size())};
      for (int shared = below(3) * 5, at = 0; at < shared; ++at) request.prompt.push_back(at * 7 % 61);
      for (int own = 1 + below(6); own > 0; --own) request.prompt.push_back(below(61));
      const std::int64_t number = batch.add(request);
      requests[number] = std::move(request);
    }
    if (step % 3 == 0) {
      const auto gone = static_cast<std::int64_t>(rng() % requests.size());
      batch.remove(gone);
    }
    for (const TextToken& token : batch.step()) results[token.text].push_back(token.token);
    most = std::max(most, batch.texts() - batch.waiting());
  }
  CHECK(most > 150);
  Session session(model, 1, capacity);
  for (const auto& [number, tokens] : results) {
    INFO("text " << number);
    session.clear(0);
    Tokens next = requests.at(number).prompt, expected;
    while (expected.size() < tokens.size()) {
      session.append(std::array{next});
      next = session.sample(sampling, std::array{requests.at(number).stream});
      expected.push_back(next[0]);
    }
    CHECK(tokens == expected);
  }
}

#ifdef TESSERA_HAS_EMULATOR
TEST_CASE("emulated kernels of a batch-invariant model compute the same bits in any batch", "[model]") {
  std::mt19937 rng(9);
  TransformerConfig config = small_model();
  config.width = 64, config.heads = 1, config.inner = 128, config.layers = 1;
  const Model model(emulated_device(), config, 5, Computation(Compute::bf16, true));
  check_batch(model, 3, 6, rng);
  config.heads = 2, config.key_value_heads = 1;  // fewer columns of keys than a tile has
  check_batch(Model(emulated_device(), config, 5, Computation(Compute::bf16, true)), 2, 4, rng);
  config.position_encoding = PositionEncoding::rotary, config.gated = true, config.norm = Norm::rms;
  check_batch(Model(emulated_device(), config, 5, Computation(Compute::bf16, true)), 2, 4, rng);
}

TEST_CASE("kernels of a batch-invariant model add up in one order for all numbers of rows", "[model]") {
  const Device device = emulated_device();
  const TransformerConfig config = preset("gpt2");
  const auto target = [&](ElementType operands) {
    return TileTarget{.gpu = true,
                      .wgmma = true,
                      .operands = operands,
                      .width = config.width,
                      .head_width = 64,
                      .inner = config.inner,
                      .batch_invariant = true};
  };
  for (const ElementType operands : {ElementType::bf16, ElementType::f32})
    CHECK(tiles_of_one(target(operands)).keys == attention_tiles(target(operands)).keys);
  // By wgmma, whose instructions have one order: never by another kind of kernel, nor with shares of k.
  KernelsByRows<bf16, bf16> halves(device, config, target(ElementType::bf16), true);
  const auto check = [](const auto& kernel) {
    const Graph& graph = kernel.executable().graph();
    INFO(graph.name);
    CHECK(to_string(graph).find("deterministic") != std::string::npos);
    Variant variant = dense_variant(graph);
    if (graph.name != "lm_head" && graph.name != "greedy_head") variant.tensors[1].contiguous_axis = 0;
    CHECK(generate(graph, variant, Arch::sm_90a).text.find("wgmma_bf16_n") != std::string::npos);
  };
  for (const int rows : {1, 2, 17, 64, 65, 200, 1000, 8192}) {
    INFO(rows << " rows");
    const RowKernels<bf16, bf16> of_rows = halves.for_rows(rows);
    CHECK_FALSE((of_rows.project_few || of_rows.down_few));
    check(of_rows.qkv), check(*of_rows.qkv_to_cache), check(*of_rows.append), check(*of_rows.up);
    check(of_rows.down), check(of_rows.project);
    check(halves.greedy_for_rows(rows).head), check(halves.head_for_rows<f32>(rows));
  }
  // Other instructions have the order of one kernel.
  KernelsByRows<f32, f32> singles(device, config, target(ElementType::f32), true);
  const auto texts = [&](std::int64_t rows) {
    const auto text = [](const auto& kernel) { return to_string(kernel.graph()); };
    const RowKernels<f32, f32> of_rows = singles.for_rows(rows);
    return std::vector{text(of_rows.norm),
                       text(of_rows.qkv),
                       text(*of_rows.qkv_to_cache),
                       text(*of_rows.up),
                       text(of_rows.down),
                       text(of_rows.project),
                       text(singles.greedy_for_rows(rows).head),
                       text(singles.head_for_rows<f32>(rows))};
  };
  for (const int rows : {2, 17, 64, 65, 8192}) CHECK(texts(rows) == texts(1));
}
#endif

}  // namespace test_batch_invariance
