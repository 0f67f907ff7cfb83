// Programs at the limits of fusion: what would be computed too often, in tiles that are too large, or not at all.
#include <functional>
#include <type_traits>

#include "jit/launch/matmul_tiles.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/support.hpp"
#include "support/tensor_programs.hpp"
#include "tensors/plan.hpp"
#include "tessera/tensors.hpp"

namespace test_tensor_limits {
using namespace tessera;
namespace t = tessera::internal;

template <class T = f32, std::size_t R>
Tensor<T, static_cast<int>(R)> tensor_of(
    const std::int64_t (&extents)[R],
    std::type_identity_t<std::conditional_t<std::is_integral_v<T>, int, double>> value) {
  Tensor<T, static_cast<int>(R)> tensor = test_device().tensor<T>(extents);
  tensor.fill(value);
  return tensor;
}
// A tensor without memory of its own, for programs that are only planned.
template <class T = f32, std::size_t R>
Tensor<T, static_cast<int>(R)> planned(const std::int64_t (&extents)[R]) {
  static std::uint64_t memory[8];
  typename Tensor<T, static_cast<int>(R)>::Extents all, strides;
  std::copy_n(extents, R, all.begin());
  strides = Tensor<T, static_cast<int>(R)>::row_major(all);
  return Tensor<T, static_cast<int>(R)>(Device::cpu(), reinterpret_cast<T*>(memory), all, strides);
}
t::TensorPlan plan_of(const auto&... x) {
  t::Given given;
  return t::TensorPlan(t::canonical({x.node()...}, given), t::matmul_target(Arch::sm_90a), true);
}
// The most elements of a tile of a value in any kernel.
std::int64_t largest_tile(const auto&... x) {
  std::int64_t most = 0;
  const t::TensorPlan plan = plan_of(x...);
  for (const auto& kernel : plan.kernels())
    for (const t::Node& node : kernel.executable->graph().nodes)
      if (!t::is_view(node.op)) most = std::max(most, node.shape.size());
  return most;
}
std::size_t kernels_of(const auto&... x) { return plan_of(x...).kernels().size(); }
template <class... T, int... R>
std::string wrong_with(double tolerance, const Lazy<T, R>&... x) {
  t::RandomProgram program;
  program.results = {x.node()...};
  return t::compare_results(program, t::run_lazy(program.results), tolerance);
}

TEST_CASE("axes are merged up to what an index can count", "[tensors]") {
  const auto x = planned<i8>({50000, 50000});
  const auto large = plan_of((tile(x).cast<i32>() + 1).cast<i8>());
  for (const std::int64_t extent : std::span<const std::int64_t>(large.kernels()[0].tiling.domain))
    CHECK(extent == 50000);
  const auto small = plan_of(tile(planned({500, 500})) + 1.0f);
  CHECK(small.kernels()[0].tiling.domain[1] == 250000);
}

TEST_CASE("tiles stay small, whatever rows a program has", "[tensors]") {
  const std::int64_t most = 1 << 16;
  const auto n = (tile(planned({33000, 8})) * 2.0f).sum(1);
  CHECK(largest_tile(n + n.transpose()) <= most);
  CHECK(largest_tile(tile(planned({64, 200000})) + tile(planned({64, 4})).sum(1)) <= most);
  CHECK(largest_tile(tile(planned({20000, 64})) - tile(planned({4, 64})).mean(0)) <= most);
  CHECK(largest_tile(tile(planned({20, 3000, 3000})).mean(2).squeeze(2).mean(1).squeeze(1)) <= most);
  CHECK(largest_tile(softmax(planned({20000, 3000}), 1).mean(0)) <= 32 * most);
  CHECK(largest_tile(tile(planned({8192, 65536})).sum(0)) <= most);
  CHECK(largest_tile(softmax(planned({2048, 8192}), 0)) <= most);
  CHECK(largest_tile(matmul(planned({8192, 64}), planned({64, 256})) + exp(planned({256, 30000})).sum(1).squeeze(1)) <=
        most);
  const auto small = tensor_of({40, 8}, 0.5);
  const auto sums = (tile(small) * small).sum(1);
  CHECK(wrong_with(1e-4, sums + sums.transpose() - matmul(small, tile(small).transpose()) * 2.0f) == "");
}

TEST_CASE("what other tiles need, too, is computed once", "[tensors]") {
  const auto x = planned({4096, 512}), g = planned({512, 4096});
  CHECK(kernels_of(tile(x) / (tile(g) * g).sum(1).squeeze(1)) == 2);
  CHECK(kernels_of(tile(planned({64, 20000})) + tile(planned({64, 4})).sum(1)) == 2);
  // A few rows, and two functions, are cheaper to compute again.
  CHECK(kernels_of(tile(x) * exp(planned({1, 512})) + 1.0f) == 1);
  const auto chain = [](auto y, int count) {
    for (int i = 0; i < count; ++i) y = gelu(y);
    return y;
  };
  CHECK(kernels_of(tile(x) * chain(tile(planned({1, 512})), 10)) == 2);
  CHECK(kernels_of(matmul(chain(tile(planned({256, 256})), 20), planned({256, 16384}))) == 2);
  const auto q = planned({16, 512, 32});
  CHECK(kernels_of(attention(q, q, q, chain(tile(planned({512, 512})), 10))) == 2);
  CHECK(kernels_of(matmul(tile(planned({64, 256, 4})).sort(2).sum(2).squeeze(2), planned({256, 16384}))) >= 2);
}

TEST_CASE("views of views are neither computed nor planned again and again", "[tensors]") {
  std::int64_t n = 1 << 14;
  const auto x = tensor_of({n}, 0.25);
  Lazy<f32, 1> y = tile(x);
  for (int i = 0; i < 12; ++i) {
    n /= 2;
    y = y.slice(0, 0, n, 2) + y.slice(0, 1, n, 2);
  }
  CHECK(y.run().to_vector() == std::vector<f32>(4, 1024));
  for (const auto& kernel : y.kernels()) CHECK(kernel->graph().parameters.size() < 64);
  Lazy<f32, 2> turned = tile(tensor_of({30, 20}, 1));
  for (int i = 0; i < 10000; ++i) turned = turned.permute({1, 0});
  CHECK(turned.node()->op == t::TensorOp::input);
  CHECK(turned.permute({1, 0}).permute({1, 0}).run().to_vector() == std::vector<f32>(600, 1));
}

TEST_CASE("each result has memory of its own", "[tensors]") {
  const auto x = tensor_of({4}, 3);
  const auto [a, b] = run(tile(x) * 2.0f, tile(x) * 2.0f);
  CHECK(a.data() != b.data());
  a.fill(0);
  CHECK(b.to_vector() == std::vector<f32>(4, 6));
  const auto [c, d] = run(tile(x), tile(x));
  CHECK(c.data() != d.data());
  CHECK(c.data() != x.data());
}

TEST_CASE("attention of scores that are very low", "[tensors]") {
  const auto one = tensor_of({1, 2, 4}, 1);
  for (const double low : {-1e30, -2e30, -3.4e38}) {
    const auto bias = tensor_of({2, 2}, low);
    INFO(low);
    CHECK(attention(one, one, one, bias).run().to_vector() == std::vector<f32>(8, 1));
  }
  // A scaled score is one fused multiply-add, exact to half an ulp of the score: the limit that docs/tensors.md names.
  CHECK(attention(tensor_of({1, 2, 4}, 1e4), tensor_of({1, 2, 4}, -1e4), one).run().to_vector() ==
        std::vector<f32>(8, 1));
  const auto nothing = iota(test_device(), {2, 2}, 0) > 9;
  CHECK(attention(one, one, one, nothing, tensor_of({2, 2}, 0)).run().to_vector() == std::vector<f32>(8, 0));
}

TEST_CASE("products of narrow integers keep their sums", "[tensors]") {
  const auto x = tensor_of<i8>({2, 64}, 50), w = tensor_of<i8>({64, 2}, 50);
  const auto b = tensor_of<i32>({2}, 1);
  CHECK(linear(x, w).run().to_vector() == std::vector<i32>(4, 160000));
  CHECK(linear(x, w, b).run().to_vector() == std::vector<i32>(4, 160001));
}

TEST_CASE("a number may be a table, a row, a result", "[tensors]") {
  const Device& device = test_device();
  const auto ones = scalar(2.0f).reshape({1, 1});
  CHECK(gather(ones, iota(device, {3}, 0)).run().to_vector() == std::vector<f32>{2, 0, 0});
  const auto [a, b] = run(tile(tensor_of({4}, 1)), ones);
  CHECK(b.to_vector() == std::vector<f32>{2});
}

TEST_CASE("a compiled function may be called while it is traced, and keeps a bounded number of plans", "[tensors]") {
  std::function<void()> again;
  const auto f = compile([&again](Lazy<f32, 1> x) {
    if (const auto call = std::exchange(again, nullptr)) call();
    return x + 1.0f;
  });
  again = [&] { CHECK(f(tensor_of({5}, 1)).to_vector() == std::vector<f32>(5, 2)); };
  CHECK(f(tensor_of({4}, 1)).to_vector() == std::vector<f32>(4, 2));
  if (test_device_name() == "cpu")
    for (std::int64_t n = 1; n < 600; ++n) CHECK(f(tensor_of({n}, 1)).size() == n);
}

TEST_CASE("slices and names that are refused, or mended", "[tensors]") {
  const auto x = tensor_of({5}, 1);
  CHECK(says(error_of([&] { tile(x).slice(0, 0, 5, std::int64_t{1} << 62); }), {"slice", "5 elements from 0"}));
  CHECK(says(error_of([&] { tile(x).slice(0, 4, (std::int64_t{1} << 62) + 1, 4); }), {"slice"}));
  CHECK(tile(x).slice(0, 2, 1, 5000000000).run().to_vector() == std::vector<f32>{1});
  CHECK(says(error_of([&] {
               t::lazy_reshape(tile(tensor_of({31}, 1)).node(), std::vector<std::int64_t>{1, 31, 1, 1, 1, 1, 1},
                               Location::current());
             }),
             {"reshape", "7 axes"}));
  CHECK(tile(x).map([](auto e) { return e * 2; }, "my map()").run().to_vector() == std::vector<f32>(5, 2));
  CHECK(says(
      error_of([&] { t::lazy_gather(scalar(1.0f).node(), iota(test_device(), {3}, 0).node(), Location::current()); }),
      {"gather", "must have rows"}));
}

TEST_CASE("a reshape of values that are used twice, again and again, is planned at once", "[tensors]") {
  const auto x = tensor_of({4, 6}, 1);
  Lazy<f32, 2> y = tile(x) * 1.0f;
  for (int i = 0; i < 24; ++i) {
    const auto wide = y.cast<f64>();
    y = (wide + wide).cast<f32>();
  }
  CHECK(y.reshape({24}).run().to_vector() == std::vector<f32>(24, 1 << 24));
  // In a kernel whose rows are read in chunks, too.
  Lazy<f32, 2> row = tile(tensor_of({1, 17000}, 1)) * 1.0f;
  for (int i = 0; i < 28; ++i) row = row + row;
  CHECK(max(row, 1).run().to_vector() == std::vector<f32>{1 << 28});
}

}  // namespace test_tensor_limits
