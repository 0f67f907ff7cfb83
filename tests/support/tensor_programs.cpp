#include "support/tensor_programs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tessera/jit/copy_tensor.hpp"
#include "tessera/tensors/functions.hpp"

namespace tessera::internal {
namespace {

class Generator {
 public:
  Generator(const Device& device, std::uint64_t seed) : device_(device), random_(seed) {}

  RandomProgram make() {
    const int inputs = pick(1, 3), ops = pick(2, 12);
    has_halves_ = program_.has_halves = pick(0, 3) == 0;
    static constexpr std::int64_t extents[] = {1, 2, 3, 5, 8, 17, 33, 70, 130};
    const bool has_long_rows = pick(0, 59) == 0;  // longer than a tile
    for (int i = 0; i < 3; ++i) dims_[i] = extents[static_cast<std::size_t>(pick(0, has_long_rows ? 1 : 8))];
    if (has_long_rows) dims_[pick(0, 2)] = pick(16000, 19000);
    while (static_cast<int>(values_.size()) < inputs) keep(input(shape()));
    for (int i = 0; i < ops; ++i) {
      for (int tries = 0; tries < 20; ++tries)
        if (LazyRef made = op(); made && keep(made)) break;
    }
    const int results = pick(1, 3);
    for (int i = 0; i < results; ++i) {
      const auto back = static_cast<std::size_t>(i == 0 ? 0 : pick(0, 3));
      program_.results.push_back(values_[values_.size() - 1 - std::min(back, values_.size() - 1)]);
    }
    return std::move(program_);
  }

 private:
  int pick(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }
  const LazyRef& any() {  // recent ones more often
    const int last = static_cast<int>(values_.size()) - 1;
    return values_[static_cast<std::size_t>(std::max(pick(0, last), pick(0, last)))];
  }
  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> shape;
    for (int rank = pick(1, 3), i = 3 - rank; i < 3; ++i) shape.push_back(pick(0, 4) == 0 ? 1 : dims_[i]);
    return shape;
  }
  LazyRef input(std::vector<std::int64_t> extents) {
    const ElementType type = has_halves_ && pick(0, 1) == 0 ? ElementType::bf16 : ElementType::f32;
    const bool is_turned = extents.size() >= 2 && pick(0, 4) == 0;  // not dense
    if (is_turned) std::reverse(extents.begin(), extents.end());
    const detail::AnyTensor tensor = detail::new_tensor(device_, type, extents);
    std::normal_distribution<float> normal;
    const auto size = static_cast<std::size_t>(tensor.size());
    if (type == ElementType::f32) {
      std::vector<float> values(size);
      for (float& value : values) value = normal(random_);
      detail::copy_in(tensor, values.data(), size);
    } else {
      std::vector<bf16> values(size);
      for (bf16& value : values) value = bf16(normal(random_));
      detail::copy_in(tensor, values.data(), size);
    }
    if (!is_turned) return lazy_input(tensor, here());
    std::vector<int> order;
    for (int axis = tensor.rank; axis-- > 0;) order.push_back(axis);
    return lazy_input(detail::permuted(tensor, order), here());
  }
  static Location here() { return Location::current(); }
  LazyRef as(ElementType type, const LazyRef& x) { return lazy_cast(type, x, false, here()); }
  LazyRef real(const LazyRef& x) { return as(ElementType::f32, x); }

  LazyRef op() {
    const LazyRef &a = any(), &b = any();
    const int rank = a->extents.rank(), axis = pick(0, std::max(rank - 1, 0)), which = pick(0, 22);
    // The reference takes quadratic time for these.
    constexpr std::int64_t most_of_order = 1000;
    if ((which == 16 || which == 17 || which == 20) && rank > 0 && a->extents[axis] > most_of_order) return nullptr;
    switch (which) {
      case 0:
      case 1:
      case 2: {
        static constexpr Op ops[] = {Op::add, Op::sub, Op::mul, Op::minimum, Op::maximum};
        if (!broadcast(a, b)) return nullptr;
        return lazy_elementwise(ops[pick(0, 4)], {real(a), real(b)}, here());
      }
      case 3:
      case 4: {
        static constexpr Op ops[] = {Op::neg, Op::abs, Op::tanh, Op::sin};
        return lazy_elementwise(ops[pick(0, 3)], {a}, here());
      }
      case 5:
        return Lazy<f32, 1>(real(a)).gelu().node();  // maps do not ask for the rank
      case 6:
        return lazy_elementwise(Op::mul, {a, lazy_literal(a->type, 0.5, here())}, here());
      case 7:
      case 8: {
        static constexpr Op ops[] = {Op::sum, Op::max, Op::min};
        if (rank == 0) return nullptr;
        return lazy_reduce(ops[pick(0, 2)], real(a), axis, here());
      }
      case 9: {
        if (rank == 0) return nullptr;
        const LazyRef x = real(a);
        const LazyRef e = lazy_elementwise(
            Op::exp, {lazy_elementwise(Op::sub, {x, lazy_reduce(Op::max, x, axis, here())}, here())}, here());
        return lazy_elementwise(Op::div, {e, lazy_reduce(Op::sum, e, axis, here())}, here());
      }
      case 10: {
        if (rank == 0) return nullptr;
        const LazyRef x = real(a);
        const auto mean = [&](const LazyRef& y) {
          return lazy_elementwise(Op::mul,
                                  {lazy_reduce(Op::sum, y, axis, here()),
                                   lazy_literal(ElementType::f32, 1.0 / static_cast<double>(y->extents[axis]), here())},
                                  here());
        };
        const LazyRef centered = lazy_elementwise(Op::sub, {x, mean(x)}, here());
        const LazyRef scale =
            lazy_elementwise(Op::rsqrt,
                             {lazy_elementwise(Op::add,
                                               {mean(lazy_elementwise(Op::mul, {centered, centered}, here())),
                                                lazy_literal(ElementType::f32, 0.1, here())},
                                               here())},
                             here());
        return lazy_elementwise(Op::mul, {centered, scale}, here());
      }
      case 11: {
        std::vector<int> order(static_cast<std::size_t>(rank));
        for (int i = 0; i < rank; ++i) order[static_cast<std::size_t>(i)] = i;
        std::shuffle(order.begin(), order.end(), random_);
        return lazy_permute(a, order, here());
      }
      case 12: {
        const std::int64_t extent = a->extents[axis];
        if (rank == 0 || extent < 2) return nullptr;
        const std::int64_t step = pick(0, 2) == 0 ? 2 : 1, count = std::max<std::int64_t>(extent / (2 * step), 1);
        const bool reverse = pick(0, 3) == 0;
        return lazy_slice(a, axis, reverse ? extent - 1 : pick(0, 1), count, reverse ? -1 : step, here());
      }
      case 13: {
        if (rank == 0) return nullptr;
        if (rank == 1 || pick(0, 2) == 0) {  // an axis of one element more, or less
          std::vector<std::int64_t> extents(std::span<const std::int64_t>(a->extents).begin(),
                                            std::span<const std::int64_t>(a->extents).end());
          const auto one = std::find(extents.begin(), extents.end(), 1);
          if (one != extents.end() && rank > 1 && pick(0, 1) == 0)
            extents.erase(one);
          else
            extents.insert(extents.begin() + pick(0, rank), 1);
          return lazy_reshape(a, extents, here());
        }
        std::vector<std::int64_t> extents(std::span<const std::int64_t>(a->extents).begin(),
                                          std::span<const std::int64_t>(a->extents).end());
        extents[1] *= extents[0];
        extents.erase(extents.begin());
        return lazy_reshape(a, extents, here());
      }
      case 14: {
        if (rank == 0 || a->type != b->type || rank != b->extents.rank()) return nullptr;
        for (int i = 0; i < rank; ++i)
          if (i != axis && a->extents[i] != b->extents[i]) return nullptr;
        return lazy_concat({a, b}, axis, here());
      }
      case 15: {
        if (rank < 2 || rank > 3) return nullptr;
        const std::int64_t columns = dims_[static_cast<std::size_t>(pick(0, 2))];
        if (a->extents[rank - 1] * columns > 1 << 20) return nullptr;
        LazyRef w = input({a->extents[rank - 1], columns});
        if (a->extents[rank - 1] > 4 && pick(0, 3) == 0 && b->extents.rank() == 2 &&
            b->extents[0] == a->extents[rank - 1])
          w = b;
        const bool half = a->type == ElementType::bf16 && w->type == ElementType::bf16;
        const ElementType type = half ? ElementType::bf16 : ElementType::f32;
        const LazyRef product = lazy_matmul(as(type, a), as(type, w), {}, here());
        return lazy_elementwise(Op::mul, {product, lazy_literal(product->type, 0.25, here())}, here());
      }
      case 16: {
        if (rank == 0 || values_.empty()) return nullptr;
        static constexpr Op ops[] = {Op::cumsum, Op::cummax};
        return lazy_scan(ops[pick(0, 1)], real(a), axis, {.reverse = pick(0, 1) == 0, .exclusive = false}, here());
      }
      case 17:
        if (rank == 0) return nullptr;
        return lazy_sort(TensorOp::sort, real(a), axis, {.descending = pick(0, 1) == 0},
                         std::max<std::int64_t>(a->extents[axis] / 2, 1), here());
      case 18: {  // a condition that rounding does not change
        const LazyRef position = lazy_iota(device_, a->extents, axis, here());
        const LazyRef condition =
            lazy_elementwise(Op::less, {position, lazy_literal(ElementType::i32, pick(0, 6), here())}, here());
        return rank == 0 ? nullptr : lazy_select(condition, a, lazy_literal(a->type, 0.5, here()), here());
      }
      case 19: {  // heads of queries share keys
        const std::int64_t heads = pick(1, 2), queries = dims_[0], keys = pick(0, 1) == 0 ? queries : dims_[1], d = 4,
                           e = dims_[2];
        const ElementType type = has_halves_ ? ElementType::bf16 : ElementType::f32;
        LazyRef q = rank == 3 && a->extents[0] == heads && a->extents[1] == queries && a->extents[2] == d
                        ? a
                        : input({2 * heads, queries, d});
        const LazyRef k = input({heads, keys, d}), v = input({heads, keys, e});
        LazyRef mask, bias;
        if (pick(0, 2) == 0)
          mask = lazy_elementwise(Op::not_equal,
                                  {lazy_iota(device_, std::vector<std::int64_t>{queries, keys}, pick(0, 1), here()),
                                   lazy_literal(ElementType::i32, 2, here())},
                                  here());
        if (pick(0, 2) == 0) bias = real(input({queries, 1}));
        AttentionOptions options{.causal = pick(0, 1) == 0, .window = pick(0, 3) == 0 ? pick(1, 9) : 0};
        if (pick(0, 3) == 0) options.soft_cap = 2;
        return lazy_attention(as(type, q), as(type, k), as(type, v), mask, bias, options, here());
      }
      case 20: {  // of inputs: rounding does not change the order
        if (rank == 0 || a->op != TensorOp::input) return nullptr;
        const LazyRef found = pick(0, 1) == 0 ? lazy_argmax(a, axis, here())
                                              : lazy_sort(TensorOp::argsort, a, axis, {}, a->extents[axis], here());
        return as(ElementType::f32,
                  lazy_elementwise(Op::minimum, {found, lazy_literal(ElementType::i32, 40, here())}, here()));
      }
      case 21: {  // a reduction in two parts
        if (pick(0, 3) != 0) return nullptr;
        const bool is_row = pick(0, 1) == 0;
        const LazyRef x = input(is_row ? std::vector<std::int64_t>{2, 16500} : std::vector<std::int64_t>{1031, 3});
        return lazy_reduce(pick(0, 1) == 0 ? Op::max : Op::min, real(lazy_elementwise(Op::sin, {x}, here())),
                           is_row ? 1 : 0, here());
      }
      default: {
        if (rank != 2 || a->extents[0] == 0) return nullptr;
        const LazyRef position = lazy_iota(device_, std::vector<std::int64_t>{dims_[0], 3}, pick(0, 1), here());
        const LazyRef rows =
            lazy_elementwise(Op::modulo, {position, lazy_literal(ElementType::i32, 5, here())}, here());
        return lazy_gather(a, rows, here());
      }
    }
  }
  static bool broadcast(const LazyRef& a, const LazyRef& b) {
    for (int back = 1; back <= std::min(a->extents.rank(), b->extents.rank()); ++back) {
      const std::int64_t x = a->extents[a->extents.rank() - back], y = b->extents[b->extents.rank() - back];
      if (x != y && x != 1 && y != 1) return false;
    }
    return true;
  }
  bool keep(const LazyRef& node) {
    if (node->extents.rank() > 4 || node->extents.size() > 40000) return false;
    const Reference& reference = program_.reference.of(node);
    for (double value : reference.values)
      if (!(std::abs(value) < 50)) return false;
    values_.push_back(node);
    return true;
  }

  const Device& device_;
  std::mt19937_64 random_;
  bool has_halves_ = false;
  std::int64_t dims_[3] = {};
  std::vector<LazyRef> values_;
  RandomProgram program_;
};

}  // namespace

RandomProgram random_tensor_program(const Device& device, std::uint64_t seed) { return Generator(device, seed).make(); }

std::string compare_results(RandomProgram& program, const std::vector<detail::AnyTensor>& results, double tolerance) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Reference& expected = program.reference.of(program.results[i]);
    if (!(Extents(results[i].extents()) == expected.extents)) return fmt::format("result {} has other extents", i);
    ReferenceEvaluator reader;
    const Reference& found = reader.of(lazy_input(results[i], Location::current()));
    // Intermediate results of bf16 may be rounded, and errors add up in sums.
    const double precision = program.has_halves ? 0.05 : tolerance;
    for (std::size_t j = 0; j < found.values.size(); ++j) {
      const double a = found.values[j], b = expected.values[j];
      if (!(std::abs(a - b) <= precision * std::max(std::abs(b), 1.0)))
        return fmt::format("result {} of {}, element {}: {} instead of {}", i, to_string(expected.extents), j, a, b);
    }
  }
  return "";
}

}  // namespace tessera::internal
