#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/support.hpp"
#include "support/tensor_programs.hpp"
#include "tessera/tensors.hpp"

namespace test_tensors {
using namespace tessera;
namespace t = tessera::internal;

std::vector<float> randoms(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}
template <class T = f32, std::size_t R>
Tensor<T, static_cast<int>(R)> random_tensor(const std::int64_t (&extents)[R], unsigned seed) {
  Tensor<T, static_cast<int>(R)> tensor = test_device().tensor<T>(extents);
  std::vector<T> values;
  for (float value : randoms(static_cast<std::size_t>(tensor.size()), seed)) values.push_back(static_cast<T>(value));
  tensor.copy_from(values);
  return tensor;
}

// The first error in what the expressions compute, fused and op by op.
template <class... T, int... R>
std::string wrong_with(double tolerance, const Lazy<T, R>&... x) {
  t::RandomProgram program;
  program.results = {x.node()...};
  for (const bool fuse : {true, false})
    if (const std::string wrong = t::compare_results(program, t::run_lazy(program.results, nullptr, fuse), tolerance);
        !wrong.empty())
      return (fuse ? "fused: " : "op by op: ") + wrong + "\n" + t::describe_lazy(program.results) +
             t::lazy_text(program.results);
  return "";
}
int kernels_of(const auto&... x) { return static_cast<int>(t::lazy_kernels({x.node()...}).size()); }

TEST_CASE("an MLP is two kernels, its activation in the first", "[tensors]") {
  const auto x = random_tensor({70, 33}, 1), w = random_tensor({33, 50}, 2), v = random_tensor({50, 33}, 3);
  const auto b = random_tensor({50}, 4), c = random_tensor({33}, 5);
  const auto mlp = tile(x).linear(w, b).gelu().linear(v, c);
  CHECK(wrong_with(1e-4, mlp) == "");
  CHECK(kernels_of(mlp) == 2);
  INFO(mlp.describe());
  for (const char* line : {"2 kernels", "linear, gelu -> f32 [70,50]  (", "linear -> f32 [70,33]  (",
                           "stored: it completes a product", "test_tensors.cpp:"})
    CHECK(mlp.describe().find(line) != std::string::npos);
  const auto same = gelu(matmul(x, w) + b);
  CHECK(kernels_of(same) == 1);
  CHECK(same.run().to_vector() == tile(x).linear(w, b).gelu().run().to_vector());
  // The kernel as a person would write it.
  const std::string graph = same.graph(Arch::sm_90a);
  for (const char* line :
       {"= input : f32[70,33]", "kernel matmul_add_gelu, tiles [", "], in steps of ", "  %2 = matmul %0 %1",
        "  %4 = add %2 %3 : f32[70,50]", "  %5 = gelu %4 : f32[70,50]", "  stores %5\n"})
    CHECK(graph.find(line) != std::string::npos);
  CHECK(std::count(graph.begin(), graph.end(), '\n') < 12);
  // Tiles of the author's.
  const MatmulOptions given{.tiles = MatmulTiles{32, 16, 8}};
  CHECK(wrong_with(1e-4, matmul(x, w, given)) == "");
  const auto rounded = tile(x).matmul(w, {.precision = MatmulPrecision::tf32});
  CHECK(wrong_with(2e-2, rounded) == "");
  CHECK(rounded.run().to_vector() != matmul(x, w).run().to_vector());
  CHECK(matmul(x, w, given).graph(Arch::sm_90a).find("tiles [32,16], in steps of 8") != std::string::npos);
  CHECK(says(error_of([&] { matmul(x, w, {.tiles = MatmulTiles{0, 16, 8}}); }), {"matmul", "tiles of 0x16x8"}));
  // A gate and what it is for share the loop over the inner axis.
  const auto gate = random_tensor({33, 50}, 6);
  const auto gated = silu(matmul(x, gate)) * matmul(x, w);
  CHECK(wrong_with(1e-4, gated) == "");
  CHECK(kernels_of(gated) == 1);
  CHECK(wrong_with(1e-4, tile(x).linear(w, b).gelu().linear(v, c) + x) == "");
  CHECK(kernels_of(tile(x).linear(w, b).gelu().linear(v, c) + x) == 2);
}

// A block of a GPT-2, with all of its positions.
template <class T>
struct Block {
  std::int64_t width, heads;
  Tensor<T, 2> qkv, project, up, down;
  Tensor<T, 1> qkv_bias, project_bias, up_bias, down_bias, scale1, shift1, scale2, shift2;
  Block(std::int64_t width_, std::int64_t heads_)
      : width(width_),
        heads(heads_),
        qkv(random_tensor<T>({width, 3 * width}, 1)),
        project(random_tensor<T>({width, width}, 2)),
        up(random_tensor<T>({width, 4 * width}, 3)),
        down(random_tensor<T>({4 * width, width}, 4)),
        qkv_bias(random_tensor<T>({3 * width}, 5)),
        project_bias(random_tensor<T>({width}, 6)),
        up_bias(random_tensor<T>({4 * width}, 7)),
        down_bias(random_tensor<T>({width}, 8)),
        scale1(random_tensor<T>({width}, 9)),
        shift1(random_tensor<T>({width}, 10)),
        scale2(random_tensor<T>({width}, 11)),
        shift2(random_tensor<T>({width}, 12)) {}
  Lazy<T, 3> operator()(const Lazy<T, 3>& x) const {
    const std::int64_t batch = x.extent(0), length = x.extent(1);
    const Lazy<T, 3> all = x.layer_norm(scale1, shift1).linear(qkv, qkv_bias);
    const auto part = [&](std::int64_t i) {
      return all.slice(2, i * width, width).reshape({batch, length, heads, width / heads}).permute({0, 2, 1, 3});
    };
    const Lazy<T, 3> seen =
        part(0).attention(part(1), part(2), {.causal = true}).permute({0, 2, 1, 3}).reshape({batch, length, width});
    const Lazy<T, 3> h = x + seen.linear(project, project_bias);
    return h + h.layer_norm(scale2, shift2).linear(up, up_bias).gelu_tanh().linear(down, down_bias);
  }
};

TEST_CASE("a transformer block is at most six kernels", "[tensors]") {
  const Block<f32> block(48, 3);
  const auto x = random_tensor({2, 9, 48}, 20);
  const auto y = block(tile(x));
  CHECK(wrong_with(2e-3, y) == "");
  INFO(y.describe());
  CHECK(kernels_of(y) <= 6);
  // As wide as GPT-2, where a product does not repeat a norm in each of its tiles.
  const Block<bf16> wide(768, 12);
  const Lazy<bf16, 3> z = wide(tile(random_tensor<bf16>({1, 9, 768}, 21)));
  INFO(z.describe(Arch::sm_90a));
  CHECK(t::lazy_kernels({z.node()}, Arch::sm_90a).size() == 7);
}

TEST_CASE("rows that two kernels use are computed once", "[tensors]") {
  const auto x = random_tensor({20, 33}, 1), w = random_tensor({33, 10}, 2), v = random_tensor({33, 12}, 3);
  const auto rows = softmax(x);
  const auto first = matmul(rows, w), second = matmul(rows, v);
  CHECK(wrong_with(1e-4, first, second) == "");
  CHECK(kernels_of(first, second) == 3);
  CHECK(kernels_of(first) == 1);  // a few rows are computed in each tile of a product
  // Tiles of a product are not whole rows.
  const auto y = random_tensor({20, 10}, 4);
  CHECK(wrong_with(1e-4, matmul(x, w) + softmax(y)) == "");
  CHECK(kernels_of(matmul(x, w) + softmax(y)) == 2);
  const auto stacked = random_tensor({3, 20, 33}, 9);
  CHECK(wrong_with(1e-4, matmul(softmax(x, 0), w), matmul(softmax(stacked, 0), w), matmul(softmax(stacked, 1), w)) ==
        "");
  // Products of different depths have loops of their own; so have those whose results are turned.
  const auto z = random_tensor({20, 70}, 5), u = random_tensor({70, 10}, 6);
  CHECK(wrong_with(1e-4, matmul(x, w) * matmul(z, u)) == "");
  const auto square = random_tensor({33, 33}, 7), other = random_tensor({33, 33}, 8);
  CHECK(wrong_with(1e-4, matmul(square, square) * matmul(square, other).transpose()) == "");
}

TEST_CASE("views of what is computed along rows", "[tensors]") {
  const auto x = random_tensor({20, 33}, 1);
  CHECK(wrong_with(1e-4, flip(cumsum(x, 1), 1), cumsum(flip(x, 1), 1)) == "");
  CHECK(wrong_with(1e-4, cumsum(x, 1).slice(1, 3, 9, 2), sort(x, 1).slice(1, 30, 10, -3) * 2.0f) == "");
  CHECK(wrong_with(1e-4, softmax(x).slice(1, 1, 16, 2), softmax(tile(x).slice(1, 1, 16, 2).slice(1, 2, 5, 3))) == "");
  CHECK(wrong_with(1e-4, tile(x).slice(1, 2, 10, 3).slice(1, 1, 4, 2).exp() + 1.0f) == "");
  CHECK(wrong_with(1e-4, tile(x).exp().slice(1, 2, 10, 3).slice(1, 1, 4, 2)) == "");
  // The same program of the same tensor, otherwise laid out.
  const auto laid = random_tensor({7, 7}, 5);
  CHECK(wrong_with(1e-4, tile(laid) + 1.0f) == "");
  CHECK(wrong_with(1e-4, tile(laid.transposed()) + 1.0f) == "");
  // A result that is also used turned; one that a chain of kernels between depends on.
  const auto square = random_tensor({33, 33}, 2);
  const auto turned = tile(square).exp();
  CHECK(wrong_with(1e-4, turned.transpose() + 1.0f, turned) == "");
  const auto first = softmax(square);
  CHECK(wrong_with(1e-4, first, softmax(square + matmul(first, square))) == "");
  // Rows of a table at positions that no other operand has.
  const auto table = random_tensor({3, 1}, 3), columns = random_tensor({3, 2}, 4);
  CHECK(wrong_with(1e-4, gather(table, iota(test_device(), {2, 3}, 0)) + columns) == "");
}

TEST_CASE("operands that are computed in a product are 0 beyond its inner axis", "[tensors]") {
  const auto x = random_tensor({4, 1031}, 1), w = random_tensor({1031, 8}, 2);
  CHECK(wrong_with(1e-3, matmul(1.0f / (tile(x).abs() + 0.5f), w), matmul(tile(x).exp() + 1.0f, w)) == "");
  CHECK(wrong_with(1e-3, matmul(x, rsqrt(tile(w).abs() + 0.5f))) == "");
  const auto all = matmul(1.0f / tile(x), w).run().to_vector();  // 1 / 0 times 0 would be a NaN
  for (float value : all) CHECK(!std::isnan(value));
}

TEST_CASE("norms, softmax and statistics are one kernel each", "[tensors]") {
  const auto x = random_tensor({37, 130}, 1);
  const auto w = random_tensor({130}, 2), b = random_tensor({130}, 3);
  const auto one = [](const auto&... y) {
    CHECK(wrong_with(1e-4, y...) == "");
    INFO(describe(y...));
    CHECK(kernels_of(y...) == 1);
  };
  one(layer_norm(x, w, b));
  one(rms_norm(x, w));
  one(rms_norm(tile(x) + x, w));
  one(softmax(x));
  one(softmax(tile(x), 0));
  one(log_softmax(x));
  one(mean(x, 1), var(x, 1));
  one(mean(x, 1), layer_norm(x, w, b));
  one(tile(x) * 2.0f, tile(x).exp());
  one(max(x, 1), min(x, 1), sum(x, 1));
  // Columns, then rows: the first softmax is read from memory.
  CHECK(wrong_with(1e-4, softmax(softmax(tile(x), 0), 1)) == "");
  // Cross entropy by one-hot targets.
  const auto targets = iota(test_device(), {37, 1}, 0) * 3;
  const auto hot = iota(test_device(), {37, 130}, 1) == targets;
  one(-(where(hot, log_softmax(x), 0.0f).sum(1)));
}

TEST_CASE("reductions of a whole tensor are done in parts", "[tensors]") {
  const auto x = random_tensor({1, 40001}, 1), y = random_tensor({2101, 7}, 2);
  CHECK(wrong_with(2e-2, tile(x).sum(1)) == "");
  CHECK(t::lazy_kernels({tile(x).sum(1).node()}, Arch::sm_90a).size() == 2);
  CHECK(wrong_with(1e-4, tile(x).max(1).max(0), tile(y).min(0)) == "");
  CHECK(wrong_with(1e-4, (tile(y) > 3.0f).any(0)) == "");
  CHECK(wrong_with(1e-4, (tile(y) > -9.0f).all(0).all(1)) == "");
  CHECK(wrong_with(1e-4, (-tile(y).abs() - 1.0f).max(0), (tile(y).abs() + 1.0f).min(0)) == "");
}

TEST_CASE("reductions along several axes, and all", "[tensors]") {
  const auto x = random_tensor({5, 6, 7}, 1);
  CHECK(wrong_with(1e-4, sum(x), tile(x).max({0, 2}), mean(x, {1, 2}), tile(x).var()) == "");
  const std::vector<f32> values = x.to_vector();
  const double total = std::accumulate(values.begin(), values.end(), 0.0);
  CHECK(std::abs(mean(x).run().to_vector()[0] - total / 210) < 1e-6);
  CHECK(argmin(x, 1).run().to_vector() == argmax(tile(x).neg(), 1).run().to_vector());
  CHECK(wrong_with(1e-4, flip(x, 1),
                   expand_dims(x, 1) + transpose(x).expand_dims(0).squeeze(0).transpose().reshape({5, 1, 6, 7})) == "");
  const auto [most, at] = top_k(x, 2, 1);
  const auto [least, least_at] = tile(x).top_k(2, 1, {.smallest = true});
  CHECK(most.extents() == std::array<std::int64_t, 3>{5, 2, 7});
  CHECK(wrong_with(1e-4, most, least) == "");
  CHECK(wrong_with(1e-4, cumsum(x, 2), cast<f64>(x).cast<f32>()) == "");
}

TEST_CASE("numbers are computed in the kernels that use them", "[tensors]") {
  const auto x = random_tensor({4}, 1);
  const Lazy<f32, 0> two = scalar(2.0f), e = exp(two) + 1 / two;
  CHECK(wrong_with(1e-4, tile(x) * e, tile(x) + e, tile(x) - e, maximum(x, e), fma(x, e, two * 3.0f)) == "");
  const auto filled = full<f32>(test_device(), {2, 3}, 1.5);
  CHECK(filled.run().to_vector() == std::vector<f32>(6, 1.5));
  CHECK((filled * scalar(2.0f)).run().to_vector() == std::vector<f32>(6, 3));
}

TEST_CASE("attention of tensors", "[tensors]") {
  const auto q = random_tensor({2, 4, 37, 16}, 1), k = random_tensor({2, 2, 37, 16}, 2),
             v = random_tensor({2, 2, 37, 24}, 3);
  const auto one = [&](const auto& y) {
    CHECK(wrong_with(1e-4, y) == "");
    INFO(y.describe());
    CHECK(kernels_of(y) == 1);
  };
  one(attention(q, k, v));
  one(attention(q, k, v, {.causal = true}));
  one(attention(q, k, v, {.window = 5, .scale = 0.5}));
  one(attention(q, k, v, {.causal = true, .soft_cap = 3}));
  // A query at the end of a longer text.
  const auto last = tile(q).slice(2, 30, 1);
  one(attention(last, k, v, {.causal = true}));
  // ALiBi: a bias that falls with the distance, from a slope for each head.
  const auto slopes = random_tensor({4, 1, 1}, 4);
  const auto distance = (iota(test_device(), {37, 37}, 1) - iota(test_device(), {37, 37}, 0)).cast<f32>();
  one(attention(q, k, v, slopes * distance.reshape({1, 37, 37}), {.causal = true}));
  // No query of the first rows sees a key.
  const auto seen = iota(test_device(), {37, 37}, 0) > 3;
  one(attention(q, k, v, seen));
  one(tile(q).attention(k, v, seen, {.causal = true}));
  one(attention(q, k, v, seen, slopes * distance.expand_dims(0)));
  one(tile(q).attention(k, v) * 2.0f);
  // Tiles of the author's.
  const Lazy<f32, 4> tiled = attention(q, k, v, {.causal = true, .tiles = AttentionTiles{8, 24}});
  CHECK(wrong_with(1e-4, tiled) == "");
  for (const Lazy<f32, 4>& x : {tiled, attention(q, k, v, {.causal = true})}) {
    const std::string graph = x.graph(Arch::sm_90a);
    CHECK((graph.find("tiles [1,1,8,row], in steps of 24") != std::string::npos) == (x.node() == tiled.node()));
  }
  for (const AttentionTiles bad : {AttentionTiles{0, 8}, AttentionTiles{8, 1025}, AttentionTiles{8, 8, 33}}) {
    std::string said;
    try {
      attention(q, k, v, {.tiles = bad});
    } catch (const Error& error) {
      said = error.what();
    }
    CHECK(said.find("test_tensors.cpp") != std::string::npos);
    CHECK(said.find(std::to_string(bad.queries) + " queries and " + std::to_string(bad.keys) + " keys") !=
          std::string::npos);
  }
}

TEST_CASE("the parts of a concatenation are computed in its memory", "[tensors]") {
  const auto x = random_tensor({20, 33}, 1), w = random_tensor({33, 10}, 2);
  const auto joined = concat(1, tile(x).exp(), matmul(x, w), tile(x).slice(1, 3, 4));
  CHECK(wrong_with(1e-4, joined) == "");
  CHECK(kernels_of(joined) == 3);
  CHECK(wrong_with(1e-4, concat(0, x, x) + concat(0, x, tile(x).neg())) == "");
  CHECK(wrong_with(1e-4, concat(0, concat(0, x, x), tile(x)).transpose()) == "");
  // A kernel that writes one part reads another: that has memory of its own.
  CHECK(wrong_with(1e-4, concat(1, tile(x).exp(), flip(tile(x).exp(), 1))) == "");
  const auto f = tile(random_tensor({4, 6}, 3)).exp();
  CHECK(wrong_with(1e-4, f.reshape({24}) + 1.0f, concat(1, f, f * 2.0f)) == "");
  CHECK(wrong_with(1e-4, concat(1, f, f * 2.0f), f.reshape({24}) + 1.0f) == "");
  // Another kernel reads a part where it is.
  const auto e = tile(x).exp();
  CHECK(wrong_with(1e-4, concat(0, x, e), matmul(e + 1.0f, w), concat(1, e, softmax(e))) == "");
}

TEST_CASE("a result may be written over its inputs", "[tensors]") {
  const auto x = random_tensor({20, 20}, 1);
  const std::vector<f32> before = x.to_vector();
  (tile(x).transpose() + 1.0f).run(x);
  const std::vector<f32> after = x.to_vector();
  for (std::size_t i = 0; i < 20; ++i)
    for (std::size_t j = 0; j < 20; ++j) CHECK(after[20 * i + j] == before[20 * j + i] + 1);
  const auto wide = random_tensor({20, 40}, 2);
  const auto part = wide.slice(1, 10, 20);
  tile(x).run(part);
  CHECK(part.to_vector() == after);
  CHECK(says(error_of([&] { tile(x).run(wide); }), {"f32 [20,40]", "the result is f32 [20,20]"}));
  // The expression keeps its tensors.
  Lazy<f32, 2> kept;
  {
    const auto gone = random_tensor({3, 3}, 3);
    kept = tile(gone) * 0.0f + 7.0f;
  }
  CHECK(kept.run().to_vector() == std::vector<f32>(9, 7));
  CHECK(tile(x).run().data() != x.data());
}

TEST_CASE("compiled functions take other extents, numbers and tensors", "[tensors]") {
  const auto w = random_tensor({16, 24}, 1);
  const auto f =
      compile([=](Lazy<f32, 2> x, Lazy<f32, 2> y, Lazy<f32, 0> scale) { return (matmul(x, w) + y) * scale; });
  const auto check = [&](const auto& x, const auto& y, float scale) {
    const std::vector<f32> expected = ((matmul(x, w) + y) * scalar(scale)).run().to_vector();
    CHECK(f(x, y, scale).to_vector() == expected);
  };
  for (const std::int64_t rows : {5, 70, 5}) {
    const auto x = random_tensor({rows, 16}, 2), y = random_tensor({rows, 24}, 3);
    check(x, y, 2), check(x, y, -1);
    check(x, random_tensor({1, 24}, 4), 1);
  }
  // The same tensor twice, in a first call and in a later one.
  const auto twice = compile([](Lazy<f32, 2> a, Lazy<f32, 2> b) { return std::tuple(a + b, a - b); });
  const auto a = random_tensor({4, 4}, 5), b = random_tensor({4, 4}, 6);
  CHECK(std::get<1>(twice(a, a)).to_vector() == std::vector<f32>(16, 0));
  CHECK(std::get<1>(twice(a, b)).to_vector() == (tile(a) - b).run().to_vector());
  // Its launches, again and again, in the same memory.
  auto [launches, results] = twice.sequence(a, b);
  launches.run(test_device().stream());
  CHECK(std::get<0>(results).to_vector() == (tile(a) + b).run().to_vector());
  a.fill(1), b.fill(2);
  const Stream stream = test_device().stream();
  launches.run(stream);
  stream.synchronize();
  CHECK(std::get<0>(results).to_vector() == std::vector<f32>(16, 3));
  CHECK(launches.launches().size() == 1);
  // An optimizer's step, over its own operands.
  const auto step = compile([](Lazy<f32, 2> w, Lazy<f32, 2> m, Lazy<f32, 2> g, Lazy<f32, 0> rate) {
    const auto next = m * 0.9f + g;
    return std::tuple(w - next * rate, next);
  });
  const auto weight = random_tensor({3, 5}, 7), moment = random_tensor({3, 5}, 8), gradient = random_tensor({3, 5}, 9);
  const auto [expected_weight, expected_moment] = step(weight, moment, gradient, 0.5f);
  step.into(std::tuple(weight, moment), weight, moment, gradient, 0.5f);
  CHECK(weight.to_vector() == expected_weight.to_vector());
  CHECK(moment.to_vector() == expected_moment.to_vector());
  const auto times = compile([](Lazy<f32, 2> x, Lazy<i32, 0> n) { return x * n.cast<f32>(); });
  CHECK(says(error_of([&] { times(a, 5000000000); }), {"test_tensors.cpp", "5000000000", "i32"}));
  const auto sums = compile([=](Lazy<f32, 2> x) { return x + weight; });
  CHECK(says(error_of([&] { sums(a); }), {"test_tensors.cpp", "add", "f32 [4,4]", "f32 [3,5]"}));
}

TEST_CASE("tensors without elements, and of one element", "[tensors]") {
  const auto none = test_device().tensor<f32>({0, 5});
  CHECK(tile(none).exp().run().size() == 0);
  CHECK(softmax(none).run().size() == 0);
  CHECK(tile(none).sum(0).run().to_vector() == std::vector<f32>(5, 0));
  CHECK(tile(none).prod(0).run().to_vector() == std::vector<f32>(5, 1));
  CHECK(says(error_of([&] { tile(none).max(0); }), {"max", "axis 0 of f32 [0,5]", "no elements"}));
  const auto thin = test_device().tensor<f32>({3, 0});
  CHECK(matmul(thin, none).run().to_vector() == std::vector<f32>(15, 0));
  const auto one = random_tensor({1, 1}, 1);
  CHECK(wrong_with(1e-4, softmax(one), matmul(one, one), tile(one).sum(0)) == "");
}

TEST_CASE("random numbers do not depend on fusion", "[tensors]") {
  const auto noise = random_uniform(test_device(), 42, {33, 70});
  const std::vector<f32> alone = noise.run().to_vector();
  const auto x = random_tensor({33, 70}, 1);
  const std::vector<f32> dropped = where(noise < 0.5f, 0.0f, x).run().to_vector(), values = x.to_vector();
  for (std::size_t i = 0; i < alone.size(); ++i) CHECK(dropped[i] == (alone[i] < 0.5f ? 0 : values[i]));
  CHECK(random_uniform(test_device(), 43, {33, 70}).run().to_vector() != alone);
  const double sum = std::accumulate(alone.begin(), alone.end(), 0.0);
  CHECK(std::abs(sum / static_cast<double>(alone.size()) - 0.5) < 0.02);
}

TEST_CASE("narrow types are computed in f32, and rounded where they are stored", "[tensors]") {
  const auto x = random_tensor<bf16>({40, 64}, 1), w = random_tensor<bf16>({64, 48}, 2);
  CHECK(kernels_of(tile(x).linear(w).gelu()) == 1);
  t::ReferenceEvaluator reference;
  const std::vector<bf16> found = tile(x).linear(w).gelu().run().to_vector();
  const auto& expected = reference.of(tile(x).linear(w).gelu().node()).values;
  for (std::size_t i = 0; i < found.size(); ++i)
    CHECK(std::abs(static_cast<float>(found[i]) - expected[i]) <= 0.004 * std::abs(expected[i]) + 1e-4);
  // Sums are rounded once, also if they are made in parts or along several axes.
  const auto many = test_device().tensor<f16>({1, 40001});
  many.fill(2.0);  // their sum is no f16, that of a quarter is
  CHECK(static_cast<float>((tile(many).sum(1) * 0.5f).run().to_vector()[0]) == 40000);
  const auto fine = test_device().tensor<bf16>({300, 3});
  fine.fill(1.0);
  CHECK(static_cast<float>((tile(fine).sum() * (1.0f / 900)).run().to_vector()[0]) == 1);
  // A cast rounds, wherever it is computed.
  const auto y = random_tensor({40}, 3);
  const std::vector<f32> rounded = tile(y).cast<bf16>().cast<f32>().run().to_vector(), values = y.to_vector();
  for (std::size_t i = 0; i < values.size(); ++i) CHECK(rounded[i] == static_cast<float>(bf16(values[i])));
  const auto bytes = random_tensor<i8>({32, 32}, 4);
  CHECK(wrong_with(0, matmul(bytes, bytes)) == "");
  CHECK(wrong_with(1e-4, tile(bytes).cast<f32>() * 0.5f) == "");
}

TEST_CASE("mistakes with tensors are told with their places", "[tensors]") {
  const auto x = random_tensor({64, 48}, 1), w = random_tensor({32, 8}, 2);
  CHECK(says(error_of([&] { matmul(x, w); }),
             {"test_tensors.cpp", "matmul", "f32 [64,48]", "f32 [32,8]", "48 and 32", "transpose"}));
  CHECK(says(error_of([&] { tile(x) + random_tensor({32}, 3); }),
             {"add", "f32 [64,48]", "f32 [32]", "make extents 48 and 32 equal"}));
  CHECK(says(error_of([&] { tile(x).sum(2); }), {"sum", "no axis 2", "[-2, 2)"}));
  CHECK(says(error_of([&] { tile(x).reshape({7, 7}); }), {"reshape", "3072 elements", "[7,7]"}));
  CHECK(says(error_of([&] { tile(x).slice(0, 60, 5); }), {"slice", "5 elements from 60", "axis 0"}));
  CHECK(says(error_of([&] { Lazy<f32, 2>().run(); }), {"empty Lazy"}));
  CHECK(says(error_of([&] { full<i32>(test_device(), {3}, 2.5); }), {"literal", "2.5", "i32"}));
  CHECK(says(error_of([&] { tile(x) + 16777217; }), {"16777217", "f32"}));
  CHECK(says(error_of([&] { test_device().stream().capture([&] { tile(x).exp().run(); }); }),
             {"a tensor program is run", "sequence", "records a stream"}));
  CHECK(says(error_of([&] { tile(x).permute({0, 0}); }), {"permute", "named twice"}));
  CHECK(says(error_of([&] { tile(x).reshape({-1, -1}); }), {"reshape", "several extents of -1"}));
  CHECK(says(error_of([&] { softmax(x, 7); }), {"softmax: max", "no axis 7"}));
  CHECK(says(error_of([&] { top_k(x, 3, 2); }), {"top_k", "no axis 2"}));
  CHECK(says(error_of([&] { concat(0, x, w); }), {"concat", "does not continue"}));
  CHECK(says(error_of([&] { tile(x).squeeze(0); }), {"squeeze", "axis 0", "[64,48]"}));
  CHECK(says(error_of([&] {
               attention(x.reshaped({1, 64, 48}), w.reshaped({1, 32, 8}), w.reshaped({1, 32, 8}));
             }),
             {"attention", "equally wide"}));
  CHECK(says(error_of([&] {
               (scalar(1.0f) + 2.0f).node();
               t::run_lazy({(scalar(1.0f) + 2.0f).node()});
             }),
             {"no device"}));
  CHECK(says(error_of([&] { tile(random_tensor<i32>({3}, 1)) + 3000000000; }), {"3000000000", "does not fit i32"}));
}

TEST_CASE("each value has a line, which generated code refers to", "[tensors]") {
  const auto x = random_tensor({3, 4}, 1);
  for (const auto& y :
       {concat(0, x, x), map([](auto a, auto b) { return a * b; }, x, x), tile(x) + x, Lazy<f32, 2>(x) * 2.0f})
    for (const auto& kernel : y.kernels())
      for (const t::Node& node : kernel->traced().nodes) CHECK(node.location.line > 0);
}

TEST_CASE("long programs become kernels of bounded size", "[tensors]") {
  const auto x = random_tensor({5}, 1);
  Lazy<f32, 1> y = tile(x);
  for (int i = 0; i < 1000; ++i) y = y * 0.5f + x;
  CHECK(wrong_with(1e-4, y) == "");
  Lazy<f32, 1> deep = tile(x);
  for (int i = 0; i < 200000; ++i) deep = deep + 1.0f;  // neither built nor destroyed by recursion
  CHECK(deep.extent(0) == 5);
}

}  // namespace test_tensors
