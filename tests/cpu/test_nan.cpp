// NaN where a value's range is known: a compiler knows that |x| is not below 0, and may forget that it may be NaN
// (prelude/device/compare.cuh).
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/compiling.hpp"
#include "support/devices.hpp"
#include "support/patterns.hpp"
#include "support/support.hpp"
#include "support/tensors.hpp"
#include "support/variants.hpp"
#include "tessera/tessera.hpp"

namespace test_nan {

using namespace tessera::internal;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();

/// NaN in the first operand, in the second, in both.
const std::vector<float> first{nan, nan, nan, nan, nan, 0.0f, -0.0f, 0.25f, -3, 3, infinity, -infinity, nan, 1, -1, 7};
const std::vector<float> second{nan, 0, 1, -5, infinity, nan, 1, 0, -3, 7, infinity, 2, -infinity, nan, nan, -7};
constexpr int length = 16;

/// The other operands of an op: numbers outside and within the ranges, and tiles whose ranges are known, too.
constexpr float numbers[] = {-1, 0, 2};
constexpr int operands = 5;

/// The expected results of the kernel below for two operands, by the ops' definitions.
std::vector<float> expected(float a, float b) {
  const bool unordered = std::isnan(a) || std::isnan(b);
  return {static_cast<float>(a < b),
          static_cast<float>(a <= b),
          static_cast<float>(a > b),
          static_cast<float>(a >= b),
          static_cast<float>(a == b),
          static_cast<float>(a != b),
          a < b ? 2.0f : 5.0f,
          b < a ? a : b,
          a >= b  ? 2.0f
          : a < b ? 3.0f
                  : 5.0f,
          unordered ? nan : std::min(a, b),
          unordered ? nan : std::max(a, b),
          std::fmin(a, b),
          std::fmax(a, b)};
}
const int results = static_cast<int>(expected(0, 0).size());

/// The expected results for one operand.
std::vector<float> expected(float a) {
  return {std::fmax(std::fmin(a, 1.0f), 0.0f), std::fmin(std::fmax(a, 0.0f), 1.0f),
          std::isnan(a) ? nan : std::min(std::max(a, 0.0f), 1.0f), a > 0 ? std::min(std::trunc(a), 255.0f) : 0.0f};
}
const int further = static_cast<int>(expected(0).size());

/// Compares make(x) with the operands; `make` is one op with bounded results.
template <class Make>
void check(const char* what, const Make& make) {
  INFO(what);
  const auto x = tensor<f32, 1>({length}, first), y = tensor<f32, 1>({length}, second);
  const auto made = tensor<f32, 1>({length}, std::vector<f32>(length));
  const auto value = kernel("value", [&](In<f32, 1> from, Out<f32, 1> to) {
    const Tile in = load(from, {0}, {length});
    store(to, {0}, make(in));
  });
  launch(test_device().stream(), value, x, made);

  const int rows = operands * results + further;
  const Tensor<f32, 2> got(test_device(), {rows, length});
  const auto compared = kernel("compared", [&](In<f32, 1> from, In<f32, 1> other, Out<f32, 2> to) {
    const Tile in = load(from, {0}, {length}), z = load(other, {0}, {length});
    const Tile a = make(in);
    int row = 0;
    const auto put = [&](const auto& tile) { store(to, {row++, 0}, reshape(tile, {1, length})); };
    const auto number = [](float c) { return full<f32>({length}, c); };
    const auto with = [&](const auto& b) {
      put(cast<f32>(a < b));
      put(cast<f32>(a <= b));
      put(cast<f32>(a > b));
      put(cast<f32>(a >= b));
      put(cast<f32>(a == b));
      put(cast<f32>(a != b));
      put(where(a < b, number(2), number(5)));
      put(where(b < a, a, b));
      put(where(a >= b, number(2), where(a < b, number(3), number(5))));
      put(minimum_nan(a, b));
      put(maximum_nan(b, a));
      put(minimum(b, a));
      put(maximum(a, b));
    };
    for (const float c : numbers) with(number(c));
    with(-abs(z) - 1.0f);
    with(abs(z) + 2.0f);
    put(maximum(minimum(a, 1.0f), 0.0f));
    put(clamp(a, 0.0f, 1.0f));
    put(minimum_nan(maximum_nan(a, 0.0f), 1.0f));
    put(cast<f32>(cast<u8>(a)));
  });
  launch(test_device().stream(), compared, x, y, got);

  const std::vector<f32> as = made.to_vector(), all = got.to_vector();
  for (std::size_t i = 0; i < length; ++i) {
    std::vector<float> wanted;
    const float z = second[i],
                others[operands] = {numbers[0], numbers[1], numbers[2], -std::abs(z) - 1, std::abs(z) + 2};
    for (const float b : others)
      for (const float result : expected(as[i], b)) wanted.push_back(result);
    for (const float result : expected(as[i])) wanted.push_back(result);
    for (std::size_t row = 0; row < wanted.size(); ++row) {
      const float result = all[row * length + i];
      INFO("of " << first[i] << ", which made " << as[i] << ", and " << z << ": row " << row);
      CHECK((result == wanted[row] || (std::isnan(result) && std::isnan(wanted[row]))));
    }
  }
}

}  // namespace

TEST_CASE("NaN results of an op with bounded results compare as NaN", "[cpu][nan]") {
  check("x", [](const auto& x) { return x; });
  check("abs", [](const auto& x) { return abs(x); });
  check("minus abs", [](const auto& x) { return -abs(x); });
  check("square", [](const auto& x) { return x * x; });
  check("abs plus a number", [](const auto& x) { return abs(x) + 0.5f; });
  check("exp2", [](const auto& x) { return exp2(x); });
  check("tanh", [](const auto& x) { return tanh(x); });
  check("sigmoid", [](const auto& x) { return sigmoid(x); });
  check("a minimum", [](const auto& x) { return minimum_nan(abs(x), 1.0f); });
  check("sine", [](const auto& x) { return sin(x); });
  check("error function", [](const auto& x) { return erf(x); });
  check("a power", [](const auto& x) { return pow(abs(x), 0.5f); });
  check("a sign", [](const auto& x) { return sign(x); });
  check("is it a number?", [](const auto& x) { return where(isnan(abs(x)) | !isfinite(-abs(x)), x, 0.5f); });
  check("a tile clamped", [](const auto& x) { return clamp(x, 0.0f, 1.0f); });
}

TEST_CASE("no comparison of reals that would be false for NaN reaches ptxas, nor a minimum that it saturates",
          "[generate][nan]") {
  if (!nvrtc_here()) return;
  const auto ptx_of = [](const auto& compute) {
    const auto k = kernel("compared", [&](In<f32, 2> x, In<f32, 2> y, Out<f32, 2> z) {
      const Tile a = load(x, {0, 0}, {16, 16}), b = load(y, {0, 0}, {16, 16});
      const Tile made = compute(a, b);
      store(z, {0, 0}, broadcast(made, {16, 16}));
    });
    const Graph graph = k.graph();
    const KernelSource source = generate(graph, dense_variant(graph), Arch::sm_90a);
    const CompiledCode code =
        Nvrtc::instance().compile({.source = source.text, .kernel = source.name, .arch = Arch::sm_90a, .to_ptx = true});
    return std::string(reinterpret_cast<const char*>(code.image.data()), code.image.size());
  };
  const auto clean = [&](const auto& compute) {
    return !finds(ptx_of(compute), R"(setp\.(lt|le|gt|ge)\.f(32|64)|min\.f32)");
  };
  CHECK(clean([](const auto& a, const auto& b) { return cast<f32>(abs(a) < b); }));
  CHECK(clean([](const auto& a, const auto& b) { return cast<f32>(abs(a) <= b); }));
  CHECK(clean([](const auto& a, const auto& b) { return cast<f32>(abs(a) > b); }));
  CHECK(clean([](const auto& a, const auto& b) { return cast<f32>(abs(a) >= b); }));
  CHECK(clean([](const auto& a, const auto& b) { return where(abs(a) < b, a, b); }));
  CHECK(clean([](const auto& a, const auto& b) { return cast<f32>(abs(cast<f64>(a)) < cast<f64>(b)); }));
  CHECK(clean([](const auto& a, const auto& b) { return cast<f32>(abs(cast<f64>(a)) <= cast<f64>(b)); }));
  CHECK(clean([](const auto& a, const auto& b) { return where(abs(a) <= -abs(b), a, b); }));
  CHECK(clean([](const auto& a, const auto& b) { return where(abs(a) > -1.0f, a, b); }));
  CHECK(clean([](const auto& a, const auto&) { return where(a * a >= 0.0f, 1.0f, 2.0f * a); }));
  CHECK(clean([](const auto& a, const auto& b) { return where(!(a < b), cast<f32>(a >= b), -a); }));
  CHECK(clean([](const auto& a, const auto&) { return maximum(minimum(a, 1.0f), 0.0f); }));
  CHECK(clean([](const auto& a, const auto&) { return maximum(clamp(a, a, 1.0f), 0.0f); }));
  CHECK(clean([](const auto& a, const auto&) { return cast<f32>(isfinite(abs(a))); }));
  CHECK(clean([](const auto& a, const auto&) { return cast<f32>(isinf(abs(a)) | isnan(abs(a))); }));
  CHECK(clean([](const auto& a, const auto&) { return sign(abs(a)); }));
  CHECK(clean([](const auto& a, const auto& b) { return minimum_nan(maximum_nan(abs(a), 0.0f), b); }));
  CHECK(clean([](const auto& a, const auto&) { return min(a, 1); }));
  CHECK(clean([](const auto& a, const auto&) { return min_nan(abs(a), 1) + max_nan(-abs(a), 1); }));
  CHECK(clean([](const auto& a, const auto&) { return cast<f32>(reshape(argmax(abs(a), 1), {16, 1})); }));
  CHECK(clean([](const auto& a, const auto&) { return cast<f32>(cast<u8>(abs(a))); }));
  CHECK(finds(ptx_of([](const auto& a, const auto& b) { return minimum_nan(abs(a), b); }), R"(min\.NaN\.f32)"));
  CHECK(finds(ptx_of([](const auto& a, const auto& b) { return maximum_nan(abs(a), b); }), R"(max\.NaN\.f32)"));
}

}  // namespace test_nan
