// Random graphs of ops, with values for which every result is exact, so that fusing, folding or moving ops may not
// change it.
#include "support/catch.hpp"
#include "support/structural_ops.hpp"

namespace test_random_graphs {

using namespace tessera::internal;
using namespace structural_ops;

namespace {

/// A random kernel and the exact value of each of its nodes. Reals are whole numbers so small that they never need
/// rounding, in any order of operations and with any contraction.
class RandomGraph {
 public:
  explicit RandomGraph(std::uint64_t seed) : rng_(seed) {
    for (int i = oracle::between(rng_, 1, 4); i > 0; --i) {
      const ElementType type =
          one_of({ElementType::f32, ElementType::f32, ElementType::i32, ElementType::i64, ElementType::pred});
      const Extents shape = random_shape();
      inputs_.push_back(
          oracle::is_real(type)      ? oracle::cast(oracle::random_array(rng_, ElementType::i32, shape, -9, 9), type)
          : oracle::chance(rng_, 30) ? oracle::random_bits_array(rng_, type, shape)
                                     : oracle::random_array(rng_, type, shape, type == ElementType::pred ? 0 : -9,
                                                            type == ElementType::pred ? 1 : 9));
      known_.push_back(inputs_.back());
    }
    for (int i = oracle::between(rng_, 3, 30); i > 0;) i -= grow();
    for (int i = oracle::between(rng_, 1, 3); i > 0; --i)
      results_.push_back(oracle::between<std::size_t>(rng_, known_.size() / 2, known_.size() - 1));
    results_.push_back(known_.size() - 1);
  }

  /// Empty, or the first wrong result and the kernel.
  std::string check() {
    std::vector<Array> like;
    for (std::size_t i : results_) like.push_back(known_[i]);
    std::string graph;
    const std::vector<Array> got = oracle::evaluate(inputs_, like, [&](const Values& tiles) {
      Values values = tiles;
      for (const Step& step : steps_) values.push_back(step(values));
      Values out;
      for (std::size_t i : results_) out.push_back(values[i]);
      return out;
    }, &graph);
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (const std::string wrong = oracle::difference(got[i], like[i]); !wrong.empty())
        return "result " + std::to_string(i) + ": " + wrong + "\n" + graph;
    }
    return "";
  }

 private:
  using Step = std::function<Value(const Values&)>;

  template <class T>
  T one_of(std::initializer_list<T> choices) {
    return oracle::one_of(rng_, std::vector<T>(choices));
  }
  Extents random_shape() {
    static const std::vector<Extents> choices = {{},     {1},       {7},       {1, 7},       {3, 1},  {3, 7},
                                                 {3, 7}, {2, 3, 7}, {2, 3, 1}, {2, 1, 1, 7}, {40, 7}, {40, 1},
                                                 {260},  {3, 260},  {7, 3},    {21}};
    return oracle::one_of(rng_, choices);
  }
  static Real largest(const Array& a) {
    Real x = 0;
    for (Real r : a.real) x = std::max(x, std::abs(r));
    for (i64 w : a.whole) x = std::max(x, std::abs(Real(w)));
    return x;
  }
  std::size_t pick() {
    // Often recent ones, so that dependent sequences grow long.
    const std::size_t last = known_.size() - 1;
    return oracle::chance(rng_, 50) ? oracle::between<std::size_t>(rng_, 0, last)
                                    : oracle::between<std::size_t>(rng_, last - std::min<std::size_t>(last, 3), last);
  }
  bool add(Array value, Step step) {
    if (value.size() > 4000) return false;
    if (value.type == ElementType::f32) {
      for (Real x : value.real)
        if (!(std::abs(x) <= 0x1p24L)) return false;
    }
    known_.push_back(std::move(value));
    steps_.push_back(std::move(step));
    return true;
  }

  /// Adds a node, or gives up.
  bool grow() {
    const std::size_t i = pick(), j = pick();
    const Array &a = known_[i], &b = known_[j];
    const bool logical = a.type == ElementType::pred, computes = info(a.type).computes;
    switch (oracle::between(rng_, 0, 15)) {
      case 0: {
        const Op op = logical ? Op::logical_not : one_of({Op::neg, Op::abs});
        if (!logical && !computes) return false;
        return add(oracle::unary(op, a), [=](const Values& v) { return oracle::apply_unary(op, v[i]); });
      }
      case 1:
      case 2:
      case 3:
      case 4: {
        if (a.type != b.type || !oracle::common_shape(a.shape, b.shape)) return false;
        const Op op = logical ? one_of({Op::logical_and, Op::logical_or})
                              : one_of({Op::add, Op::sub, Op::mul, Op::minimum, Op::maximum, Op::floor_div, Op::modulo,
                                        Op::less, Op::less_equal, Op::greater, Op::greater_equal, Op::equal,
                                        Op::not_equal, Op::minimum_nan, Op::maximum_nan});
        if (!accepts(op, a.type)) return false;
        if (op == Op::mul && oracle::is_real(a.type) && largest(a) * largest(b) > 0x1p20L) return false;
        return add(oracle::binary(op, a, b), [=](const Values& v) { return oracle::apply_binary(op, v[i], v[j]); });
      }
      case 5: {
        if (!computes) return false;
        const ElementType type = a.type;
        const i64 number = oracle::between<i64>(rng_, -3, 3);
        Array one = oracle::filled(type, {}, [&](std::size_t) { return static_cast<double>(number); });
        const Op op = one_of(
            {Op::add, Op::sub, Op::mul, Op::minimum, Op::maximum, Op::floor_div, Op::modulo, Op::less, Op::equal});
        if (!accepts(op, type)) return false;
        if (oracle::chance(rng_, 50))
          return add(oracle::binary(op, a, one),
                     [=](const Values& v) { return oracle::apply_binary(op, v[i], oracle::literal(type, number)); });
        return add(oracle::binary(op, one, a),
                   [=](const Values& v) { return oracle::apply_binary(op, oracle::literal(type, number), v[i]); });
      }
      case 6: {
        const std::size_t c = pick();
        if (known_[c].type != ElementType::pred || a.type != b.type) return false;
        const auto shape = oracle::common_shape(a.shape, b.shape);
        if (!shape || !oracle::common_shape(*shape, known_[c].shape)) return false;
        const ElementType type = a.type;
        return add(oracle::select(known_[c], a, b),
                   [=](const Values& v) { return oracle::apply(Op::select, type, {v[c], v[i], v[j]}); });
      }
      case 7: {
        const ElementType to =
            one_of({ElementType::f32, ElementType::i32, ElementType::i64, ElementType::pred, ElementType::f16,
                    ElementType::bf16, ElementType::u8, ElementType::tf32, ElementType::f64, ElementType::i8});
        const bool wide = to == ElementType::f32 || to == ElementType::f64;
        if (oracle::is_real(to) && largest(a) > (wide ? 0x1p24L : 60000)) return false;
        return add(oracle::cast(a, to), [=](const Values& v) { return oracle::apply_cast(v[i], to); });
      }
      case 8: {
        const std::vector<int> axes = random_axes(rng_, a.shape.size());
        return add(oracle::permute(a, axes), [=](const Values& v) { return permuted(v[i], axes); });
      }
      case 9: {
        const int size = static_cast<int>(a.size());
        std::vector<Extents> choices = {{size}, {1, size}, {size, 1}};
        for (int d : {2, 3, 7, 20})
          if (size % d == 0) choices.push_back({d, size / d}), choices.push_back({size / d, 1, d});
        if (size == 1) choices.push_back({});
        const Extents shape = oracle::one_of(rng_, choices);
        return add(oracle::reshape(a, shape), [=](const Values& v) { return oracle::apply_reshape(v[i], shape); });
      }
      case 10: {
        Extents shape = a.shape;
        for (int& extent : shape)
          if (extent == 1 && oracle::chance(rng_, 70)) extent = one_of({2, 3, 7});
        if (shape.size() < 4 && oracle::chance(rng_, 40)) shape.insert(shape.begin(), one_of({1, 3}));
        return add(oracle::broadcast(a, shape), [=](const Values& v) { return stretched(v[i], shape); });
      }
      case 11: {
        if (a.type != b.type || a.shape.size() != b.shape.size() || a.shape.empty()) return false;
        const int axis = oracle::between(rng_, 0, a.rank() - 1);
        for (int k = 0; k < a.rank(); ++k)
          if (k != axis && a.shape[k] != b.shape[k]) return false;
        const ElementType type = a.type;
        return add(oracle::concat({a, b, a}, axis),
                   [=](const Values& v) { return oracle::apply(Op::concat, type, {v[i], v[j], v[i]}, {axis}); });
      }
      case 12:
      case 13: {
        if (!computes || a.shape.empty()) return false;
        const Op op = oracle::one_of(rng_, std::vector<Op>(std::begin(all_along), std::end(all_along)));
        if (!takes(op, a.type) || ((op == Op::prod || op == Op::cumprod) && oracle::is_real(a.type))) return false;
        const int axis = oracle::between(rng_, 0, a.rank() - 1);
        if (oracle::is_real(a.type) && largest(a) * a.shape[axis] > 0x1p24L) return false;
        return add(expected_along(op, a, axis, nullptr), [=](const Values& v) { return along(op, v[i], axis); });
      }
      case 14: {
        const Extents shape = random_shape();
        if (shape.empty() || a.type == ElementType::tf32) return false;
        const int axis = oracle::between(rng_, 0, static_cast<int>(shape.size()) - 1);
        return add(oracle::iota(shape, axis),
                   [=](const Values&) { return oracle::apply(Op::iota, ElementType::i32, {}, {axis}, shape); });
      }
      default: {
        if (!info(a.type).multiplies || a.type != b.type || a.rank() != 2 || b.rank() != 2) return false;
        const bool turn = a.shape[1] != b.shape[0];
        if (turn && a.shape[1] != b.shape[1]) return false;
        if (largest(a) * largest(b) * a.shape[1] > 0x1p23L) return false;
        const Array right = turn ? oracle::permute(b, {1, 0}) : b;
        const int m = a.shape[0], n = right.shape[1];
        std::vector<Real> bound;
        const ElementType sums = sum_type(a.type);
        return add(oracle::mma(a, right, Array(sums, {m, n}), bound), [=](const Values& v) {
          return oracle::apply(Op::mma, sums,
                               {v[i], turn ? permuted(v[j], {1, 0}) : v[j], oracle::literal(sums, 0, {m, n})});
        });
      }
    }
  }

  oracle::Rng rng_;
  std::vector<Array> inputs_, known_;
  std::vector<Step> steps_;
  std::vector<std::size_t> results_;
};

}  // namespace

TEST_CASE("random graphs return exactly the results of their ops", "[cpu]") {
  const Seeds seeds(1500);
  for (std::uint64_t seed = seeds.first; seed < seeds.end; ++seed) {
    INFO("seed " << seed);
    CHECK(RandomGraph(seed).check() == "");
  }
}

}  // namespace test_random_graphs
