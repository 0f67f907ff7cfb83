// One kernel for each kind of op and element type: few and small enough to run under compute-sanitizer or in the
// emulator. The ops' results are tested elsewhere, with more shapes and values.

#include "support/catch.hpp"
#include "support/oracle.hpp"
#include "support/tensors.hpp"

namespace test_sanitize {

using namespace tessera::internal;
using oracle::Array;
using oracle::Extents;
using oracle::Real;
using oracle::Value;
using oracle::Values;

namespace {

constexpr ElementType all_types[] = {
#define TYPE(name, ...) ElementType::name,
#include "tessera/graph/types.def"
};
constexpr ElementType computing[] = {ElementType::f32, ElementType::i32, ElementType::i64, ElementType::u32,
                                     ElementType::u64};

/// A kernel of several results from the same inputs, and their expected values.
class Results {
 public:
  explicit Results(std::vector<Array> inputs) : inputs_(std::move(inputs)) {}
  void add(Array expected, std::function<Value(const Values&)> body, double tolerance = 0,
           std::vector<Real> bound = {}) {
    expected_.push_back(std::move(expected));
    bodies_.push_back(std::move(body));
    tolerances_.push_back(tolerance);
    bounds_.push_back(std::move(bound));
  }
  void check() const {
    const auto results = oracle::evaluate(inputs_, expected_, [&](const Values& tiles) {
      Values values;
      for (const auto& body : bodies_) values.push_back(body(tiles));
      return values;
    });
    for (std::size_t i = 0; i < results.size(); ++i) {
      INFO("result " << i);
      CHECK(oracle::difference(results[i], expected_[i], tolerances_[i], bounds_[i]) == "");
    }
  }

 private:
  std::vector<Array> inputs_, expected_;
  std::vector<std::function<Value(const Values&)>> bodies_;
  std::vector<double> tolerances_;
  std::vector<std::vector<Real>> bounds_;
};

Array small_values(oracle::Rng& rng, ElementType type, const Extents& shape) {
  const bool positive = !oracle::is_real(type) && lowest(type) == 0;
  return oracle::random_array(rng, type, shape, positive ? 0 : -9, type == ElementType::pred ? 1 : 9);
}

}  // namespace

TEST_CASE("elementwise ops of each type", "[cpu][sanitize][emulated]") {
  struct TableOp {
    Op op;
    int operands;
    double low, high, tolerance;
  };
  constexpr TableOp ops[] = {
#define UNARY(name, operands, result, host, real, integer, low, high, tolerance, meaning) \
  {Op::name, 1, low, high, tolerance},
#define BINARY(name, operands, result, host, real, integer, low, high, tolerance, meaning) \
  {Op::name, 2, low, high, tolerance},
#define TERNARY(name, operands, result, host, real, integer, low, high, tolerance, meaning) \
  {Op::name, 3, low, high, tolerance},
#define REDUCTION(...)
#define STRUCTURAL(...)
#include "tessera/graph/ops.def"
  };
  oracle::Rng rng(1);
  const Extents shape{5, 33};
  for (const ElementType type : {ElementType::f32, ElementType::i32, ElementType::i64, ElementType::pred}) {
    INFO(name(type));
    std::vector<Array> inputs;
    for (const TableOp& t : ops) {
      if (!accepts(t.op, type)) continue;
      inputs.push_back(oracle::random_array(rng, type, shape, t.low, t.high));
      inputs.push_back(oracle::random_array(rng, type, {1, 33}, t.low, t.high));
    }
    Results results(inputs);
    std::size_t at = 0;
    for (const TableOp& t : ops) {
      if (!accepts(t.op, type)) continue;
      const Array &a = inputs[at], &b = inputs[at + 1];
      const bool absolute = has_absolute_tolerance(t.op);
      const std::vector<Real> bound(absolute || t.op == Op::random_uniform ? a.size() : 0,
                                    absolute ? Real{t.tolerance} : 0x1p-23L);
      if (t.operands == 1)
        results.add(
            oracle::unary(t.op, a), [=](const Values& x) { return oracle::apply_unary(t.op, x[at]); }, t.tolerance,
            bound);
      else if (t.operands == 3)
        results.add(
            oracle::ternary(t.op, a, b, a),
            [=](const Values& x) { return oracle::apply_ternary(t.op, x[at], x[at + 1], x[at]); }, t.tolerance);
      else
        results.add(
            oracle::binary(t.op, a, b), [=](const Values& x) { return oracle::apply_binary(t.op, x[at], x[at + 1]); },
            t.tolerance, bound);
      at += 2;
    }
    results.check();
  }
}

TEST_CASE("casts, select and ops that move elements of each type", "[cpu][sanitize]") {
  oracle::Rng rng(2);
  for (const ElementType type : all_types) {
    INFO(name(type));
    const Array a = small_values(rng, type, {6, 35}), b = small_values(rng, type, {6, 35}),
                c = oracle::random_array(rng, ElementType::pred, {6, 1}, 0, 1);
    Results results({a, b, c});
    for (const ElementType to : all_types)
      results.add(oracle::cast(a, to), [=](const Values& x) { return oracle::apply_cast(x[0], to); });
    results.add(oracle::select(c, a, b), [=](const Values& x) {
      return oracle::apply(Op::select, type, {x[2], x[0], x[1]});
    });
    results.add(oracle::permute(a, {1, 0}), [=](const Values& x) {
      return oracle::apply(Op::permute, type, {x[0]}, {1, 0});
    });
    results.add(oracle::reshape(oracle::permute(a, {1, 0}), {5, 42}), [=](const Values& x) {
      return oracle::apply_reshape(oracle::apply(Op::permute, type, {x[0]}, {1, 0}), {5, 42});
    });
    results.add(oracle::broadcast(oracle::reshape(a, {6, 1, 35}), {6, 3, 35}), [=](const Values& x) {
      return oracle::apply(Op::broadcast, type, {oracle::apply_reshape(x[0], {6, 1, 35})}, {}, {6, 3, 35});
    });
    results.add(oracle::concat({a, b, a}, 1), [=](const Values& x) {
      return oracle::apply(Op::concat, type, {x[0], x[1], x[0]}, {1});
    });
    results.check();
  }
}

TEST_CASE("reductions and scans of each type", "[cpu][sanitize][emulated]") {
  oracle::Rng rng(3);
  for (const ElementType type : computing) {
    INFO(name(type));
    const Array a = small_values(rng, type, {19, 70});
    for (const int axis : {0, 1}) {
      Results results({a});
      std::vector<Real> bound;
      for (const Op op : {Op::sum, Op::max, Op::min, Op::max_nan, Op::min_nan}) {
        if (!accepts(op, type)) continue;
        const Array expected = oracle::reduce(op, a, axis, &bound);
        results.add(
            expected, [=](const Values& x) { return oracle::apply(op, type, {x[0]}, {axis}); }, 0, bound);
      }
      for (const int options : {0, 3}) {
        for (const Op op : {Op::cumsum, Op::cummax, Op::cummin}) {
          Results scans({a});
          const Array scanned = oracle::scan(op, a, axis, {options != 0, options != 0}, &bound);
          scans.add(
              scanned,
              [=](const Values& x) {
            return oracle::apply(op, type, {x[0]}, {axis, options});
              },
              0, bound);
          scans.check();
        }
      }
      results.add(oracle::argmax(a, axis),
                  [=](const Values& x) { return oracle::apply(Op::argmax, ElementType::i32, {x[0]}, {axis}); });
      const Array places = oracle::argsort(a, axis, a.shape[axis], axis != 0);
      results.add(places, [=](const Values& x) {
        return oracle::apply(Op::argsort, ElementType::i32, {x[0]}, {axis, axis != 0});
      });
      results.add(oracle::taken(a, places, axis), [=](const Values& x) {
        return oracle::apply(Op::sort, type, {x[0]}, {axis, axis != 0});
      });
      results.check();
    }
  }
}

namespace {

/// Matmuls of P, with tensors of T.
template <Element P, Stored T>
void check_matmul() {
  const auto k = kernel("product", [](In<T, 2> x, In<T, 2> w, Out<f32, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), 16), cdiv(y.extent(1), 32));
    Var acc = zeros<f32>({16, 32});
    for (Index i : range(cdiv(x.extent(1), 16)))
      acc = mma(cast<P>(load(x, {m, i}, {16, 16})), transpose(cast<P>(load(w, {n, i}, {32, 16}))), acc);
    store(y, {m, n}, acc);
  });
  INFO(name(element_type<P>));
  oracle::Rng rng(4);
  const int rows = 21, inner = 40, cols = 50;
  const Array a = oracle::random_array(rng, element_type<P>, {rows, inner}, -2, 2),
              b = oracle::random_array(rng, element_type<P>, {cols, inner}, -2, 2);
  const auto stored = [](const Array& from) {
    std::vector<T> to;
    for (const Real x : from.real) to.push_back(T(static_cast<float>(x)));
    return to;
  };
  const auto y = tensor<f32, 2>({rows, cols}, std::vector<f32>(rows * cols, NAN));
  launch(test_device().stream(), k, tensor<T, 2>({rows, inner}, stored(a)), tensor<T, 2>({cols, inner}, stored(b)), y);
  std::vector<Real> bound;
  const Array expected = oracle::mma(a, oracle::permute(b, {1, 0}), Array(ElementType::f32, {rows, cols}), bound);
  const std::vector<f32> got = y.to_vector();
  CHECK(oracle::difference(oracle::reals({rows, cols}, {got.begin(), got.end()}), expected, 0, bound) == "");
}

}  // namespace

TEST_CASE("mma of each type, in a loop over ragged tensors", "[cpu][sanitize][emulated]") {
  check_matmul<f32, f32>();
  check_matmul<tf32, f32>();
  check_matmul<f16, f16>();
  check_matmul<bf16, bf16>();
}

TEST_CASE("loads, stores, gathers and scatters of each type", "[cpu][sanitize]") {
  const auto check = []<class T>(T) {
    INFO(name(element_type<T>));
    // y gets x with its rows reversed by a gather; z gets them reversed back by a scatter; both through slices.
    const auto k = kernel("memory", [](In<T, 2> x, In<i32, 1> rows, Out<T, 2> y, Out<T, 2> z, Scalar<i32> from) {
      auto [m, n] = blocks(cdiv(x.extent(0), 4), cdiv(x.extent(1), 16));
      const Tile r = load(rows, {m}, {4}, -1);
      const Tile t = gather(x, r, {n}, {16});
      store(y.slice(0, from, x.extent(0)), {m, n}, t);
      scatter(z.slice(0, from, x.extent(0)), r, {n}, t);
    });
    const int height = 11, width = 37, first = 2;
    std::vector<T> values, expected_y((height + 4) * width, stored<T>(1)), expected_z = expected_y;
    std::vector<i32> rows(height);
    for (int i = 0; i < height; ++i) rows[static_cast<std::size_t>(i)] = height - 1 - i;
    for (int i = 0; i < height * width; ++i) values.push_back(stored<T>(i % 100));
    for (int i = 0; i < height; ++i)
      for (int j = 0; j < width; ++j) {
        expected_y[static_cast<std::size_t>((first + i) * width + j)] =
            values[static_cast<std::size_t>((height - 1 - i) * width + j)];
        expected_z[static_cast<std::size_t>((first + i) * width + j)] = values[static_cast<std::size_t>(i * width + j)];
      }
    const auto y = tensor<T, 2>({height + 4, width}, std::vector<T>((height + 4) * width, stored<T>(1))),
               z = tensor<T, 2>({height + 4, width}, std::vector<T>((height + 4) * width, stored<T>(1)));
    launch(test_device().stream(), k, tensor<T, 2>({height, width}, values), tensor<i32, 1>({height}, rows), y, z,
           first);
    const auto same = [](const std::vector<T>& a, const std::vector<T>& b) {
      return std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
    };
    CHECK(same(y.to_vector(), expected_y));
    CHECK(same(z.to_vector(), expected_z));
  };
  check(f32{});
  check(f16{});
  check(bf16{});
  check(i32{});
  check(i64{});
  check(u8{});
  check(i8{});
  check(i16{});
  check(u16{});
  check(u32{});
  check(u64{});
}

TEST_CASE("atomics of each type from many CTAs", "[cpu][sanitize]") {
  const auto check = []<class T>(T) {
    const auto k = kernel("count", [](In<T, 2> x, InOut<T, 1> total) {
      auto [m, n] = blocks(cdiv(x.extent(0), 4), cdiv(x.extent(1), 8));
      atomic_add(total, {n}, reshape(sum(load(x, {m, n}, {4, 8}), 0), {8}));
    });
    const auto total = tensor<T, 1>({19}, std::vector<T>(19, T(5)));
    launch(test_device().stream(), k, tensor<T, 2>({30, 19}, std::vector<T>(30 * 19, T(2))), total);
    CHECK(total.to_vector() == std::vector<T>(19, T(65)));
  };
  check(f32{});
  check(i32{});
  check(i64{});
  check(u32{});
  check(u64{});
}

TEST_CASE("loops, branches and effects in order", "[cpu][sanitize][emulated]") {
  const auto k = kernel("control", [](InOut<i32, 2> x, Out<i32, 2> y, Scalar<i32> n) {
    Index b = blocks(x.extent(0));
    Var total = zeros<i32>({1, 40});
    for (Index i : range(n)) {
      const Tile before = load(x, {b, 0}, {1, 40});
      store(x, {b, 0}, before + i);
      total = total + before;
      if_(i % 2 == b % 2, [&] { atomic_add(x, {b, 0}, full<i32>({1, 40}, 100)); });
    }
    store(y, {b, 0}, total);
  });
  const auto x = tensor<i32, 2>({3, 40}, numbered<i32>(120)), y = tensor<i32, 2>({3, 40}, std::vector<i32>(120, -1));
  launch(test_device().stream(), k, x, y, 5);
  std::vector<i32> memory = numbered<i32>(120), totals(120);
  for (std::size_t j = 0; j < 120; ++j)
    for (int i = 0; i < 5; ++i) {
      totals[j] += memory[j];
      memory[j] += i + (i % 2 == static_cast<int>(j) / 40 % 2 ? 100 : 0);
    }
  CHECK(x.to_vector() == memory);
  CHECK(y.to_vector() == totals);
}

}  // namespace test_sanitize
