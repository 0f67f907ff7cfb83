// The accuracy of elementwise ops and activations.
#include "support/catch.hpp"
#include "support/element_ops.hpp"

namespace test_ops_accuracy {

using namespace tessera::internal;
using namespace element_ops;

TEST_CASE("accuracy over the whole domain and at its edges", "[cpu]") {
  Cases cases(30);
  struct Sweep {
    Op op;
    double low, high;
  };
  oracle::Rng rng(5);
  const auto next = [](std::vector<Real>& values, float x) {  // x and its neighbors
    values.push_back(x);
    values.push_back(std::nextafter(x, 1e38f));
    values.push_back(std::nextafter(x, -1e38f));
  };
  for (const Sweep& s : {Sweep{Op::exp, -104.5, 89},
                         Sweep{Op::exp, -1, 1},
                         Sweep{Op::exp2, -151, 128.5},
                         Sweep{Op::exp2, -1, 1},
                         Sweep{Op::log, 1e-45, 3.4e38},
                         Sweep{Op::log, 0.5, 2},
                         Sweep{Op::log, 0.999, 1.001},
                         Sweep{Op::tanh, -10, 10},
                         Sweep{Op::tanh, -0.7, 0.7},
                         Sweep{Op::tanh, 1e-40, 1},
                         Sweep{Op::tanh_approx, -10, 10},
                         Sweep{Op::tanh_approx, 1e-40, 1},
                         Sweep{Op::sin_approx, -6.28, 6.28},
                         Sweep{Op::cos_approx, -314, 314},
                         Sweep{Op::log2_approx, 1e-45, 3.4e38},
                         Sweep{Op::log2_approx, 0.5, 2},
                         Sweep{Op::sqrt_approx, 1e-45, 3.4e38},
                         Sweep{Op::sigmoid2, -151, 128.5},
                         Sweep{Op::sigmoid2, -1, 1},
                         Sweep{Op::sqrt, 0, 1e6},
                         Sweep{Op::sqrt, 1e-45, 3.4e38},
                         Sweep{Op::rsqrt, 1e-6, 1e6},
                         Sweep{Op::rsqrt, 1e-45, 3.4e38},
                         Sweep{Op::exp, 1e-44, 1},
                         Sweep{Op::exp2, 1e-44, 1},
                         Sweep{Op::expm1, -20, 89},
                         Sweep{Op::expm1, 1e-44, 1},
                         Sweep{Op::log2, 1e-45, 3.4e38},
                         Sweep{Op::log2, 0.5, 2},
                         Sweep{Op::log10, 1e-45, 3.4e38},
                         Sweep{Op::log10, 0.5, 2},
                         Sweep{Op::log1p, -1, 1},
                         Sweep{Op::log1p, 1e-45, 3.4e38},
                         Sweep{Op::sin, -100, 100},
                         Sweep{Op::sin, 1e-45, 3.4e38},
                         Sweep{Op::cos, -100, 100},
                         Sweep{Op::cos, 1e-45, 3.4e38},
                         Sweep{Op::tan, -100, 100},
                         Sweep{Op::tan, 1e-45, 3.4e38},
                         Sweep{Op::asin, -1, 1},
                         Sweep{Op::asin, 1e-45, 1},
                         Sweep{Op::acos, -1, 1},
                         Sweep{Op::atan, -10, 10},
                         Sweep{Op::atan, 1e-45, 3.4e38},
                         Sweep{Op::sinh, -90, 90},
                         Sweep{Op::sinh, 1e-45, 1},
                         Sweep{Op::cosh, -90, 90},
                         Sweep{Op::erf, -4, 4},
                         Sweep{Op::erf, 1e-45, 1},
                         Sweep{Op::erfc, -4, 10.1},
                         Sweep{Op::cbrt, -9, 9},
                         Sweep{Op::cbrt, 1e-45, 3.4e38}}) {
    if (cases.skip()) continue;
    INFO(name(s.op) << " in [" << s.low << ", " << s.high << "]");
    CHECK(difference(s.op, oracle::random_array(rng, ElementType::f32, {60001}, s.low, s.high)) == "");
  }
  std::vector<Real> edges;
  for (float x : {88.72283f,   88.3762626647949f,
                  -87.33654f,  -103.97208f,
                  -103.27893f, 127.0f,
                  128.0f,      -126.0f,
                  -149.0f,     -150.0f,
                  -125.0f,     1e30f,
                  -1e30f,      9.01f,
                  -9.01f,      20.0f,
                  0.625f,      1e-4f,
                  1.0f,        2.0f,
                  0.70710678f, 1.41421356f,
                  0.69314718f, 0.34657359f})
    next(edges, x);
  for (int i = -160; i <= 140; ++i) next(edges, static_cast<float>(i));
  for (int i = -149; i <= 127; ++i) next(edges, std::ldexp(1.0f, i));
  for (float x : {0.75f, 0.8f, 2.4142137f, 0.41421357f, 1.5707964f, 3.1415927f, 4.712389f, 89.415985f, 10.0546f, 2.5f,
                  8388608.0f})
    next(edges, x), next(edges, -x);
  // Near multiples of pi / 2, to all known bits of 2 / pi.
  for (float x : {0x1.f9cbe2p+7f, 0x1.47d0fep+34f, 0x1.0f79ap+57f, 0x1.f37c8ap+95f, 0x1.f37c8ap+96f, 0x1.7b9b4p+126f})
    next(edges, x), next(edges, -x);
  const Array a = oracle::reals({static_cast<int>(edges.size())}, edges);
  for (const TableOp& t : unary_ops) {
    const Op op = t.op;
    if (!accepts(op, ElementType::f32)) continue;
    if (cases.skip()) continue;
    INFO(name(op) << " at edges");
    Array b = a;
    if (op == Op::rsqrt)
      for (Real& x : b.real) x += x == 0;
    CHECK(difference(op, b) == "");
  }
  SECTION("arithmetic, including subnormal and overflowing results") {
    for (Op op : {Op::add, Op::sub, Op::mul, Op::div}) {
      INFO(name(op));
      CHECK(difference(op, oracle::random_array(rng, ElementType::f32, {20001}, 1e-45, 3.4e38),
                       oracle::random_array(rng, ElementType::f32, {20001}, 1e-45, 3.4e38)) == "");
      CHECK(difference(op, oracle::random_array(rng, ElementType::f32, {20001}, -1e-37, 1e-37),
                       oracle::random_array(rng, ElementType::f32, {20001}, -2, 2)) == "");
    }
  }
  SECTION("powers and angles") {
    for (const auto& [low, high] : {std::pair{0.5, 2.0}, {1e-45, 3.4e38}}) {
      INFO("of [" << low << ", " << high << "]");
      const auto random = [&](double l, double h) {
        return oracle::random_array(rng, ElementType::f32, {20001}, l, h);
      };
      const Array x = random(low, high);
      CHECK(difference(Op::pow, x, random(-130, 130)) == "");
      CHECK(difference(Op::pow, x, random(-1, 1)) == "");
      CHECK(difference(Op::atan2, x, random(-high, high)) == "");
      CHECK(difference(Op::atan2, random(-high, high), x) == "");
    }
  }
}

TEST_CASE("activations", "[cpu]") {
  oracle::Rng rng(8);
  std::vector<float> x(1537);
  for (float& v : x) v = oracle::between(rng, -9.0f, 9.0f);
  x[0] = INFINITY, x[1] = 0, x[2] = 1e-30f, x[3] = -1e-30f;
  const auto check = [&](const auto& activation, const auto& exact) {
    const std::vector<float> y =
        launch_on(kernel("activation",
                         [&](In<f32, 1> in, Out<f32, 1> out) { store(out, {0}, activation(load(in, {0}, {1537}))); }),
                  x);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double v = static_cast<double>(x[i]), wanted = std::isinf(v) ? v : exact(v);
      wrong += !(y[i] == wanted || std::abs(y[i] - wanted) <= 1e-6 * std::abs(v));
    }
    CHECK(wrong == 0);
  };
  check([](const auto& v) { return silu(v); }, [](double v) { return v / (1 + std::exp(-v)); });
  check([](const auto& v) { return gelu(v); }, [](double v) { return v / 2 * (1 + std::erf(v * std::sqrt(0.5))); });
  check([](const auto& v) { return gelu_tanh(v); },
        [](double v) { return v / 2 * (1 + std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v))); });
}

TEST_CASE("activations and means of f64 are as accurate as their type", "[cpu]") {
  constexpr int rows = 7, columns = 219, size = rows * columns;
  const auto k = kernel("activations",
                        [](In<f64, 2> x, Out<f64, 3> y, Out<f64, 2> by_row, Out<f64, 2> by_column, Out<f64, 1> whole) {
    const Tile t = load(x, {0, 0}, {rows, columns});
    store(y, {0, 0, 0}, expand_dims(silu(t), 0));
    store(y, {1, 0, 0}, expand_dims(gelu(t), 0));
    store(y, {2, 0, 0}, expand_dims(gelu_tanh(t), 0));
    store(y, {3, 0, 0}, expand_dims(sigmoid(t), 0));
    store(by_row, {0, 0}, mean(t, 1));
    store(by_column, {0, 0}, mean(t, axis(0)));
    store(whole, {0}, reshape(mean(t), {1}));
  });
  oracle::Rng rng(16);
  std::vector<f64> x(size);
  for (f64& v : x) v = oracle::between(rng, -9.0, 9.0);
  x[0] = 700, x[1] = 0, x[2] = 1e-300, x[3] = -1e-30, x[4] = -40, x[5] = 40;
  const Device& device = test_device();
  Tensor<f64, 2> in(device, {rows, columns}), by_row(device, {rows, 1}), by_column(device, {1, columns});
  Tensor<f64, 3> out(device, {4, rows, columns});
  Tensor<f64, 1> whole(device, {1});
  in.copy_from(x);
  out.copy_from(std::vector<f64>(4 * size, NAN));
  launch(device.stream(), k, in, out, by_row, by_column, whole);
  const std::vector<f64> y = out.to_vector();
  const auto check = [&](int which, const char* name, const auto& exact) {
    std::size_t wrong = 0;
    std::ostringstream first;
    for (std::size_t i = 0; i < size; ++i) {
      const Real v = x[i], wanted = exact(v), got = y[static_cast<std::size_t>(which) * size + i];
      // As for f32, times 2^-29; for sigmoid relative to its value, plus the rounding error of the exponent.
      const Real allowed = which == 3 ? (2 + std::abs(v)) * 0x1p-52L * wanted : 1e-6L * 0x1p-29L * std::abs(v);
      if (std::abs(got - wanted) <= std::max<Real>(allowed, 0x1p-1074L)) continue;
      if (wrong++ == 0) first << name << " of " << v << " is " << got << ", not " << wanted;
    }
    INFO(first.str());
    CHECK(wrong == 0);
  };
  const auto sigmoid_of = [](Real v) { return 1 / (1 + std::exp(-v)); };
  check(0, "silu", [&](Real v) { return v * sigmoid_of(v); });
  check(1, "gelu", [](Real v) { return v / 2 * std::erfc(-v * std::sqrt(0.5L)); });
  check(2, "gelu_tanh", [&](Real v) {
    return v * sigmoid_of(2 * std::sqrt(2 / 3.14159265358979323846L) * (v + 0.044715L * v * v * v));
  });
  check(3, "sigmoid", sigmoid_of);
  const auto close = [&](f64 got, const std::vector<f64>& of) {
    Real sum = 0, size_of_all = 0;
    for (const f64 v : of) sum += v, size_of_all += std::abs(Real(v));
    const auto n = static_cast<Real>(of.size());
    INFO(got << ", not " << sum / n);
    CHECK(std::abs(got - sum / n) <= (n + 2) * size_of_all / n * 0x1p-53L);
  };
  const std::vector<f64> means = by_row.to_vector(), others = by_column.to_vector();
  for (std::size_t i = 0; i < rows; ++i)
    close(means[i], {x.begin() + static_cast<std::ptrdiff_t>(i * columns),
                     x.begin() + static_cast<std::ptrdiff_t>((i + 1) * columns)});
  for (std::size_t j = 0; j < columns; ++j) {
    std::vector<f64> line;
    for (std::size_t i = 0; i < rows; ++i) line.push_back(x[i * columns + j]);
    close(others[j], line);
  }
  close(whole.to_vector()[0], x);
}

}  // namespace test_ops_accuracy
