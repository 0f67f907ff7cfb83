// Functions of reals against their documented bounds, over their whole domain: every f16 and bf16, a sample of each
// binade of f32 and f64 with each number's neighbor, and edges. Where a function rises, no step back is larger than its
// bound.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <functional>
#include <limits>
#include <sstream>

#include "support/catch.hpp"
#include "support/oracle.hpp"
#include "support/support.hpp"

namespace test_accuracy {

using namespace tessera::internal;
using oracle::Array;
using oracle::Real;

namespace {

template <class T>
constexpr T infinity = std::numeric_limits<T>::infinity();

/// The specification of a function of the language: the exact value for x, and the error bound.
struct Function {
  std::string name;
  std::function<std::vector<Real>(const Array&)> exact;
  double tolerance;                 ///< as in ops.def, for f32
  Real may_be_zero = 0;             ///< in smallest normal numbers: a result below may be 0
  double by_exponent = 0;           ///< added to the tolerance for each unit of `exponent`
  Real (*exponent)(Real) = nullptr;
  Op op = Op::neg;                  ///< the op that has a tolerance of its own for its argument, if any
};

/// All values of a 16-bit type, as f32.
template <class Narrow>
void add_all(std::vector<float>& to, std::size_t one_of) {
  for (std::size_t bits = 0; bits < 65536; bits += one_of) {
    Narrow narrow;
    narrow.bits = static_cast<std::uint16_t>(bits);
    to.push_back(static_cast<float>(narrow));
  }
}

/// Sorted, NaN last.
template <class T>
std::vector<T> arguments() {
  const std::string device = test_device_name();
  const bool fast = device == "cpu" || device.starts_with("cuda");
  const std::size_t share = test_share(16) * (fast ? 1 : 24) * (sanitized ? 8 : 1), narrow = fast && !sanitized ? 1 : share;
  std::vector<T> x;
  const auto with_neighbors = [&](T value) {
    for (const T v : {value, -value}) {
      x.push_back(v);
      x.push_back(std::nextafter(v, infinity<T>));
    }
  };
  if constexpr (std::is_same_v<T, float>) {
    add_all<f16>(x, narrow);
    add_all<bf16>(x, narrow);
  }
  using limits = std::numeric_limits<T>;
  const std::size_t of_a_binade = std::is_same_v<T, float> ? 4096 : 256;
  const int lowest = limits::min_exponent - limits::digits, highest = limits::max_exponent;
  for (int exponent = lowest; exponent < highest; ++exponent) {
    const T first = std::ldexp(T(1), exponent);
    with_neighbors(first);
    with_neighbors(std::nextafter(first, T(0)));
    // Another part of each binade, so that a share covers all bits.
    for (std::size_t i = static_cast<std::size_t>(exponent - lowest) * 7 % share; i < of_a_binade; i += share)
      with_neighbors(std::ldexp(1 + (static_cast<T>(i) + T(0.37)) / static_cast<T>(of_a_binade), exponent));
  }
  for (int i = 0; i <= 1100; i += device == "cpu" ? 1 : 7) with_neighbors(static_cast<T>(i));
  // Where functions overflow, vanish, or change how they are computed; near multiples of pi / 2.
  for (const double edge :
       {88.72283,    88.3762626647949, 87.33654,    103.97208,   103.27893, 89.415985, 10.0546, 9.01,      9.19454,
        0.70710678,  1.41421356,       0.69314718,  0.34657359,  2.4142137, 0.41421357, 1.5707964, 3.1415927, 4.712389,
        709.782712,  708.396418,       745.133219,  26.543258,   27.22601,  5.9215873, 18.7149738, 36.0436534, 37.5193793,
        1.2784645,   0.7517916,        6.28,        314.0,         0x1.f9cbe2p+7, 0x1.47d0fep+34, 0x1.0f79ap+57,
        0x1.f37c8ap+95, 0x1.7b9b4p+126})
    with_neighbors(static_cast<T>(edge));
  // The worst case of all f64. (In the emulator a function of f64 is the C library's, which leaves 48 digits here.)
  if (device != "emulated") with_neighbors(static_cast<T>(0x1.6ac5b262ca1ffp+849));
  x.push_back(limits::max()), x.push_back(limits::lowest()), x.push_back(infinity<T>), x.push_back(-infinity<T>);
  std::erase_if(x, [](T v) { return std::isnan(v); });
  std::ranges::sort(x);
  const auto equal = std::ranges::unique(x);
  x.erase(equal.begin(), equal.end());
  x.push_back(limits::quiet_NaN());
  return x;
}

/// Empty if y is within its bounds, else the first violation.
template <class T>
std::string wrong(const Function& f, const std::vector<T>& x, std::span<const T> y, const std::vector<Real>& exact) {
  using limits = std::numeric_limits<T>;
  const Real scale = std::is_same_v<T, double> ? 0x1p-29L : 1, normal = limits::min();
  std::ostringstream text;
  text.precision(limits::max_digits10);
  std::size_t count = 0;
  const auto tell = [&](auto&&... parts) {
    if (count++ == 0) (text << ... << parts);
  };
  const auto allowed = [&](std::size_t i) {
    const Real size = std::abs(exact[i]), least = has_absolute_tolerance(f.op) ? 1 : normal;
    Real tolerance = static_cast<Real>(f.tolerance);
    if (f.exponent && std::isfinite(x[i])) tolerance += f.by_exponent * std::min<Real>(1100, std::abs(f.exponent(x[i])));
    if (f.op == Op::sin_approx || f.op == Op::cos_approx)
      tolerance = std::abs(x[i]) <= 6.28 ? tolerance : std::abs(x[i]) <= 314 ? 4e-5L : 2;
    Real most = scale * tolerance * std::max(size, least);
    if (size < f.may_be_zero * normal * (1 + tolerance)) most = std::max(most, size);
    return f.tolerance == 0 ? 0 : std::max<Real>(most, limits::denorm_min());
  };
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Real result = y[i], is = exact[i];
    if (f.op == Op::rsqrt && x[i] == 0) continue;  // either infinity
    if (std::isnan(is) ? std::isnan(result) : result == is || std::abs(result - is) <= allowed(i)) continue;
    const bool overflows = std::abs(is) * (1 + scale * f.tolerance) > static_cast<Real>(limits::max());
    if (overflows && std::isinf(result) && (result > 0) == (is > 0)) continue;
    tell(f.name, " of ", x[i], " is ", y[i], ", not ", is, ": off by ",
         static_cast<double>(std::abs(result - is) / allowed(i)), " times its bound");
  }
  for (std::size_t i = 0; i + 2 < x.size(); ++i) {  // the last is NaN
    const Real from = y[i], to = y[i + 1], rise = exact[i + 1] - exact[i];
    if (!std::isfinite(from) || !std::isfinite(to) || !std::isfinite(rise)) continue;
    const Real step = rise >= 0 ? from - to : to - from;
    if (step <= std::max(allowed(i), allowed(i + 1))) continue;
    tell(f.name, " goes from ", y[i], " to ", y[i + 1], " where ", x[i], " goes to ", x[i + 1],
         rise >= 0 ? " and it rises" : " and it falls");
  }
  if (count > 1) text << "; " << count << " such";
  return text.str();
}

/// The functions, and the kernel that stores each function of x to a row of y.
template <class T>
struct Functions {
  std::vector<Function> all;
  Graph graph;

  Functions() {
    constexpr int size = 256;
    graph = trace_kernel("functions", [&](In<T, 1> in, Out<T, 2> out) {
      const Index part = blocks(cdiv(in.extent(0), size));
      const Tile x = load(in, {part}, {size});
      const auto row = [&](Function function, const auto& value) {
        store(out, {static_cast<int>(all.size()), part}, expand_dims(value, 0));
        all.push_back(std::move(function));
      };
#define UNARY(op_, operands_, result_, host_, cuda_, others_, low_, high_, bound_, meaning_)                \
  if constexpr (accepts(Op::op_, element_type<T>) && !accepts(Op::op_, ElementType::i32) &&               \
                result_type(Op::op_, element_type<T>) == element_type<T>)                                 \
    row({.name = #op_,                                                                                     \
         .exact = [](const Array& a) { return oracle::unary(Op::op_, a).real; },                           \
         .tolerance = bound_,                                                                              \
         .may_be_zero = Op::op_ == Op::exp2 || Op::op_ == Op::sigmoid2 ? 1.0L : 0.0L,                      \
         .op = Op::op_},                                                                                   \
        op_(x));
#define BINARY(...)
#define TERNARY(...)
#define REDUCTION(...)
#define STRUCTURAL(...)
#include "tessera/graph/ops.def"
      const auto each = [](Real (*exact)(Real)) {
        return [exact](const Array& a) {
          std::vector<Real> values;
          for (const Real v : a.real) values.push_back(exact(v));
          return values;
        };
      };
      row({.name = "sigmoid", .exact = each([](Real v) { return 1 / (1 + std::exp(-v)); }), .tolerance = 7e-7,
           .may_be_zero = 1},
          sigmoid(x));
      row({.name = "silu",
           .exact = each([](Real v) { return v == -infinity<Real> ? 0 : v / (1 + std::exp(-v)); }),
           .tolerance = 1e-6},
          silu(x));
      row({.name = "gelu",
           .exact = each([](Real v) { return v == -infinity<Real> ? 0 : v / 2 * std::erfc(-v * std::sqrt(0.5L)); }),
           .tolerance = 1.2e-6},
          gelu(x));
      const auto exponent = [](Real v) { return 2 * 0.797884560802865355879892119868763737L * (v + 0.044715L * v * v * v); };
      row({.name = "gelu_tanh",
           .exact = each([](Real v) {
        const Real u = 2 * 0.797884560802865355879892119868763737L * (v + 0.044715L * v * v * v);
        return v == -infinity<Real> ? 0 : v / (1 + std::exp(-u));
           }),
           .tolerance = 5e-7,
           .may_be_zero = 16,
           .by_exponent = 2e-7,
           .exponent = exponent},
          gelu_tanh(x));
      const auto binary = [&](Op op, double constant, bool first, double tolerance, const auto& value) {
        row({.name = std::string(name(op)) + (first ? "(x, y) with x = " : "(x, y) with y = ") + std::to_string(constant),
             .exact =
                 [=](const Array& a) {
          Array one(a.type, {1});
          one.real[0] = constant;
          return first ? oracle::binary(op, one, a).real : oracle::binary(op, a, one).real;
                 },
             .tolerance = tolerance},
            value);
      };
      for (const double c : {0.5, -1.0, 2.5, 3.0, -7.0, 0.0078125}) binary(Op::pow, c, false, 6e-7, pow(x, c));
      for (const double c : {0.5, 1.0078125, 2.0, 10.0, -3.0}) binary(Op::pow, c, true, 6e-7, pow(c, x));
      for (const double c : {1.0, -0.0078125, 1e4}) binary(Op::atan2, c, false, 4e-7, atan2(x, c));
      for (const double c : {1.0, -3.5}) binary(Op::atan2, c, true, 4e-7, atan2(c, x));
    });
  }
};

template <class T>
void check_all() {
  const Functions<T> functions;
  const Executable kernel{Graph(functions.graph)};
  const Device& device = test_device();
  const std::vector<T> all = arguments<T>();
  const std::int64_t rows = std::ssize(functions.all);
  constexpr std::size_t at_once = 1 << 15;
  std::vector<std::string> faults(functions.all.size());
  for (std::size_t first = 0; first < all.size(); first += at_once) {
    const auto end = std::min(all.size(), first + at_once);
    std::vector<T> x(all.begin() + static_cast<std::ptrdiff_t>(first), all.begin() + static_cast<std::ptrdiff_t>(end));
    if (!std::isnan(x.back())) x.push_back(std::numeric_limits<T>::quiet_NaN());
    const std::int64_t count = std::ssize(x);
    Tensor<T, 1> in(device, {count});
    Tensor<T, 2> out(device, {rows, count});
    in.copy_from(x);
    const Argument arguments[] = {in.argument(), out.argument()};
    kernel.launch(device.stream(), arguments);
    const std::vector<T> y = out.to_vector();
    Array a(element_type<T>, {static_cast<int>(count)});
    for (std::size_t i = 0; i < x.size(); ++i) a.real[i] = x[i];
    for (std::size_t f = 0; f < functions.all.size(); ++f) {
      const std::string fault = wrong(functions.all[f], x, std::span(y).subspan(f * x.size(), x.size()),
                                      functions.all[f].exact(a));
      if (faults[f].empty()) faults[f] = fault;
    }
  }
  for (const std::string& fault : faults) CHECK(fault == "");
}

}  // namespace

TEST_CASE("functions of f32 keep their bounds over their domain, and rise where they should", "[cpu][accuracy]") {
  check_all<f32>();
}

TEST_CASE("functions of f64 keep their bounds over their domain, and rise where they should", "[cpu][accuracy]") {
  check_all<f64>();
}

}  // namespace test_accuracy
