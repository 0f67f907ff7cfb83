// How programs are rewritten ahead of fusion, how kernels are joined, and rows that no tile holds.
#include "jit/launch/matmul_tiles.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/support.hpp"
#include "support/tensor_programs.hpp"
#include "tensors/plan.hpp"
#include "tessera/tensors.hpp"

namespace test_tensor_rewrites {
using namespace tessera;
namespace t = tessera::internal;

template <class T = f32, std::size_t R>
Tensor<T, static_cast<int>(R)> random_tensor(const std::int64_t (&extents)[R], unsigned seed) {
  Tensor<T, static_cast<int>(R)> tensor = test_device().tensor<T>(extents);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<T> values(static_cast<std::size_t>(tensor.size()));
  for (T& value : values) value = static_cast<T>(normal(random));
  tensor.copy_from(values);
  return tensor;
}
/// The tolerance: that of bf16, if the program has tensors of it.
double tolerance_of(const std::vector<t::LazyRef>& results) {
  return t::lazy_text(results).find("bf16") != std::string::npos ? 1e-2 : 1e-3;
}
std::string wrong_with(double tolerance, const std::vector<t::LazyRef>& results) {
  t::RandomProgram program;
  program.results = results;
  for (const bool fuse : {true, false})
    if (const std::string wrong = t::compare_results(program, t::run_lazy(results, nullptr, fuse), tolerance);
        !wrong.empty())
      return (fuse ? "fused: " : "op by op: ") + wrong + "\n" + t::describe_lazy(results) + t::lazy_text(results);
  return "";
}
/// Are the results right, by so many kernels on an H200?
void check(std::size_t kernels, const auto&... x) {
  const std::vector<t::LazyRef> results{x.node()...};
  CHECK(wrong_with(tolerance_of(results), results) == "");
  INFO(t::describe_lazy(results, Arch::sm_90a));
  CHECK(t::lazy_kernels(results, Arch::sm_90a).size() == kernels);
}

TEST_CASE("a reshape moves ahead of elementwise ops, up to inputs", "[tensors]") {
  const auto x = random_tensor<bf16>({2, 8, 10}, 1), y = random_tensor<bf16>({2, 8, 10}, 2);
  const auto column = random_tensor<bf16>({10}, 3);
  // Groups of channels, whose mean and deviation are in one kernel.
  const auto groups = tile(x).cast<f32>().reshape({2, 4, 20});
  check(1, softmax(groups));
  check(1, sum((tile(x).cast<f32>() * 2.0f - tile(y).cast<f32>()).reshape({16, 10}), 1));
  check(1, max((tile(x) + column).reshape({16, 10}), 1));
  check(1, max((tile(x) * 2.0f).reshape({4, 4, 10}).reshape({2, 80}), 1));
  // A column is not one of merged axes: then the sum is stored.
  check(2, max((tile(x) + column).reshape({2, 80}), 1));
  // A reshape of a tensor that is not dense is a copy.
  const auto turned = tile(random_tensor({8, 10, 2}, 4)).permute({2, 0, 1});
  check(2, max((turned * 2.0f).reshape({16, 10}), 1));
  const Tensor<f32, 2> columns = random_tensor({6, 4}, 5).transposed();
  check(1, tile(columns).reshape({4, 1, 6}).permute({1, 0, 2}).reshape({24}) * 2.0f);
  check(2, sum((tile(columns) + 1.0f).reshape({4, 1, 6}).permute({1, 0, 2}).reshape({24}), 0));
  check(1, exp(tile(x).cast<f32>()).reshape({160}) + 1.0f, exp(tile(x).cast<f32>()).reshape({160}) * 2.0f);
}

TEST_CASE("an elementwise op moves ahead of a reshape of what is computed", "[tensors]") {
  const auto x = random_tensor({8, 10}, 1), w = random_tensor({10, 12}, 2);
  const auto product = matmul(x, w);
  check(1, gelu(product.reshape({2, 4, 12})));
  check(1, (gelu(product.reshape({2, 4, 12})) * 2.0f).reshape({96}));
  // Two users of the product: it is stored as it is.
  check(2, gelu(product.reshape({2, 4, 12})), product);
  // A wider type is not what is stored.
  const auto half = tile(random_tensor<bf16>({8, 10}, 3)).permute({1, 0}).reshape({80});
  check(2, half.cast<f32>().sum(0));
  CHECK(half.cast<f32>().sum(0).describe(Arch::sm_90a).find("-> bf16 [10,8]") != std::string::npos);
}

TEST_CASE("a concatenation moves behind elementwise ops and permutations", "[tensors]") {
  const auto x = random_tensor({2, 3, 8}, 1);
  const auto c = random_tensor({3, 4}, 2), s = random_tensor({3, 4}, 3);
  const auto a = tile(x).slice(2, 0, 4), b = tile(x).slice(2, 4, 4);
  const auto rotated = concat(2, a * c - b * s, b * c + a * s);
  check(1, rotated.cast<bf16>().permute({1, 0, 2}));
  check(1, (rotated * 2.0f).permute({2, 0, 1}).cast<bf16>());
  check(2, concat(0, concat(2, a, b).exp(), concat(2, b, a)).permute({2, 1, 0}));
  // The concatenation is needed as it is, too, and computed once.
  const auto costly = concat(2, exp(a), exp(b));
  check(2, costly.permute({1, 0, 2}), costly);
  const std::string graph = t::lazy_graph({costly.permute({1, 0, 2}).node(), costly.node()});
  std::size_t count = 0;
  for (std::size_t at = graph.find("= exp"); at != graph.npos; at = graph.find("= exp", at + 1)) ++count;
  CHECK(count == 2);
}

TEST_CASE("results have memory of their own, whatever a rewrite makes equal", "[tensors]") {
  const auto x = random_tensor({4, 6}, 1);
  const auto doubled = tile(x) * 2.0f;
  const auto [a, b, c, d, e] = run(doubled, doubled.reshape({24}), (tile(x).reshape({24}) * 2.0f), doubled, doubled);
  const void* places[] = {a.data(), b.data(), c.data(), d.data(), e.data()};
  CHECK(std::set<const void*>(std::begin(places), std::end(places)).size() == 5);
  for (const auto& flat : {b, c}) CHECK(flat.to_vector() == a.to_vector());
  for (const auto& same : {d, e}) CHECK(same.to_vector() == a.to_vector());
}

TEST_CASE("a result that others use is computed where it is stored", "[tensors]") {
  const auto x = random_tensor({40, 6}, 1);
  const auto mean_of = mean(x, 0);
  check(2, mean_of.squeeze(0), (tile(x) - mean_of).abs().max(1));
  const auto nearest = argmin(x, 1);
  check(2, nearest.squeeze(1), matmul(nearest.cast<f32>().transpose(), x));
  // Flat and as it is: one is a copy.
  check(3, mean_of.squeeze(0), mean_of, tile(x) - mean_of);
}

TEST_CASE("kernels over the same elements are joined before what they share is placed", "[tensors]") {
  const auto x = random_tensor({40, 64}, 1);
  const auto [values, indices] = top_k(softmax(x), 8, 1);
  check(1, values, indices);
  check(1, min(tile(x).exp(), 1), max(tile(x).exp(), 1), sum(tile(x).exp(), 1));
  // Products and what is small, without a common operand.
  const auto y = random_tensor({40, 64}, 2);
  check(1, exp(tile(x)), tile(y) + 1.0f);
  check(2, exp(tile(x)), matmul(x, tile(y).transpose()));
  // One is computed from the other.
  const auto rows = sum(x, 1);
  check(3, rows, softmax(matmul(rows, tile(random_tensor({1, 64}, 3))) + x));
}

TEST_CASE("rows that no tile holds are read in chunks", "[tensors]") {
  const auto x = random_tensor({2, 17001}, 1), y = random_tensor({17001, 2}, 2);
  const auto weight = random_tensor({17001}, 3), bias = random_tensor({17001}, 4);
  const auto in_chunks_of = [](std::int64_t row, const auto&... results) {
    t::RandomProgram program;
    program.results = {results.node()...};
    CHECK(t::compare_results(program, t::run_lazy(program.results), tolerance_of(program.results)) == "");
    const t::TensorPlan plan = [&] {
      t::Given given;
      return t::TensorPlan(t::canonical({results.node()...}, given), {}, true);  // without splitting reductions
    }();
    INFO(plan.describe());
    CHECK(plan.kernels().size() == 1);
    CHECK(plan.kernels()[0].tiling.row == row);
  };
  const auto one = [&](const auto&... results) { in_chunks_of(17001, results...); };
  one(softmax(x));
  one(softmax(y, 0));
  one(log_softmax(x) * 0.5f);
  one(layer_norm(x, weight, bias));
  one(var(x, 1), mean(x, 1), tile(x) - mean(x, 1));
  one(max(x, 1), min(x, 1), (tile(x) > 2.0f).any(1), (tile(x) > -9.0f).all(1));
  one(max(-tile(x).abs() - 1.0f, 1), min(tile(x).abs() + 1.0f, 1));
  one(prod(1.0f + tile(x) * 1e-3f, 1), (tile(x).abs() < 0.0f).any(1));
  one(max(y, 0), sum(tile(y) * 1e-2f, 0));
  one(tile(random_tensor<bf16>({2, 17001}, 5)).rms_norm(random_tensor<bf16>({17001}, 6)));
  // Across memory, tiles have columns, so that shorter rows do not fit.
  const auto across = random_tensor({700, 40}, 7);
  in_chunks_of(700, sum(across, 0), max(across, 0));
  in_chunks_of(700, softmax(across, 0));
  in_chunks_of(700, var(tile(across).reshape({1, 700, 2, 20}), 1));
  // Positions, and reversed rows.
  const auto target = iota(test_device(), {2, 1}, 0) * 7000;
  const auto is_target = iota(test_device(), {1, 17001}, 1) == target;
  one(sum(where(is_target, log_softmax(x), 0.0f), 1), mean(log_softmax(x), 1));
  one(flip(x, 1) / max(x, 1));
  one(max(x, 1).sum(1));
  // Integers, whose sums are exact.
  const auto numbers = iota(test_device(), {2, 17001}, 1) + iota(test_device(), {2, 1}, 0);
  one(sum(numbers, 1), max(numbers, 1), min(-numbers, 1));
  // An argmax needs the row at once.
  CHECK(wrong_with(1e-3, {argmax(x, 1).node(), (tile(x) - max(x, 1)).node()}) == "");
  // A NaN is not lost in a chunk.
  std::vector<f32> values = x.to_vector();
  values[16999] = NAN;
  const auto z = test_device().tensor<f32>({2, 17001});
  z.copy_from(values);
  const std::vector<f32> sums = sum(z, 1).run().to_vector();
  CHECK((std::isnan(sums[0]) && !std::isnan(sums[1])));
}

TEST_CASE("products of tensors with four and five axes", "[tensors]") {
  const auto w = random_tensor<bf16>({64, 128}, 2);
  const auto four = linear(random_tensor<bf16>({2, 2, 128, 64}, 1), w);
  CHECK(wrong_with(2e-2, {four.node()}) == "");
  CHECK(four.cuda_source(Arch::sm_90a).find("tma_store_guarded(&to_") != std::string::npos);
  CHECK(wrong_with(2e-2, {linear(random_tensor<bf16>({2, 1, 2, 128, 64}, 1), w).node()}) == "");
}

TEST_CASE("a reduction that each row of a kernel needs is stored", "[tensors]") {
  const auto x = random_tensor({16, 28, 28, 96}, 1);
  const auto norms = sqrt(sum(tile(x) * x, {1, 2}));
  const auto response = norms / (mean(norms, 3) + 1e-6f);
  t::Given given;
  const t::TensorPlan plan(t::canonical({(tile(x) * response).node()}, given), t::matmul_target(Arch::sm_90a), true);
  INFO(plan.describe());
  for (const auto& kernel : plan.kernels())
    for (const t::Node& node : kernel.executable->graph().nodes)
      if (!t::is_view(node.op)) CHECK(node.shape.size() <= 1 << 15);
  CHECK(plan.kernels().size() == 4);
}

}  // namespace test_tensor_rewrites
