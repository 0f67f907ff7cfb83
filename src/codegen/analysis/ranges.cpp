#include "codegen/analysis/ranges.hpp"

#include <algorithm>
#include <limits>

namespace tessera::internal::lowering {
namespace {

constexpr Range any{std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()};

class Ranges {
 public:
  explicit Ranges(const GraphAnalysis& analysis) : analysis_(analysis) {}

  Range of(Id id) {
    const Node& at = analysis_[id];
    if (is_narrow(at.type)) return of_type(at.type);
    // A value that is used twice is visited twice, and recursion is as deep as a chain of values is long: both are
    // limited.
    if (++visited_ > 64 || at.type != ElementType::i32) return any;
    if (at.op == Op::constant) return {at.number().i32, at.number().i32};
    if (at.op == Op::iota) return {0, at.shape[at.axis()] - 1};
    if (at.op == Op::cast) return info(analysis_[at.in[0]].type).kind == ElementKind::integer ? of(at.in[0]) : any;
    if (at.op == Op::broadcast || at.op == Op::permute || at.op == Op::reshape) return of(at.in[0]);
    if (at.op == Op::select) return either(of(at.in[1]), of(at.in[2]));
    if (at.op == Op::extent) return extent(view_parameter(analysis_.graph, at.in[0]));
    if (at.op == Op::block) return {0, std::max<std::int64_t>(of(analysis_.graph.grid[at.grid_axis()]).most, 1) - 1};
    if (at.in.size() != 2 || !is_elementwise(at.op)) return any;
    const Range a = of(at.in[0]), b = of(at.in[1]);
    const Range result = binary(at.op, a, b);
    return result.least < any.least || result.most > any.most ? any : result;
  }

 private:
  // With 32-bit offsets, extents times strides stay below 2^30; strides that TMA takes are positive.
  Range extent(int parameter) const {
    const TensorClass& tensor = analysis_.variant.tensors[static_cast<std::size_t>(parameter)];
    const bool is_small = tensor.tma_addressable && !analysis_.variant.index64;
    return {tensor.has_elements ? 1 : 0, is_small ? std::int64_t{1} << 30 : any.most};
  }
  static bool is_narrow(ElementType type) {
    return info(type).kind == ElementKind::integer && info(type).bytes < 4;
  }
  static Range of_type(ElementType type) {
    const bool has_sign = type == ElementType::i8 || type == ElementType::i16;
    const std::int64_t count = std::int64_t{1} << 8 * info(type).bytes;
    return has_sign ? Range{-count / 2, count / 2 - 1} : Range{0, count - 1};
  }
  static Range either(const Range& a, const Range& b) { return {std::min(a.least, b.least), std::max(a.most, b.most)}; }
  static Range binary(Op op, const Range& a, const Range& b) {
    const auto of_corners = [&](const auto& value) {
      const auto all = {value(a.least, b.least), value(a.least, b.most), value(a.most, b.least), value(a.most, b.most)};
      return Range{std::min(all), std::max(all)};
    };
    using Number = std::int64_t;
    switch (op) {
      case Op::add:
        return {a.least + b.least, a.most + b.most};
      case Op::sub:
        return {a.least - b.most, a.most - b.least};
      case Op::mul:
        return of_corners([](Number x, Number y) { return x * y; });
      case Op::minimum:
        return {std::min(a.least, b.least), std::min(a.most, b.most)};
      case Op::maximum:
        return {std::max(a.least, b.least), std::max(a.most, b.most)};
      case Op::bitwise_and:
        if (a.least < 0 && b.least < 0) return any;
        return {0, a.least < 0 ? b.most : b.least < 0 ? a.most : std::min(a.most, b.most)};
      case Op::shift_right:
        return b.least < 0 || b.most > 31 ? any : of_corners([](Number x, Number y) { return x >> y; });
      case Op::cdiv:
        return b.least < 1 ? any : of_corners([](Number x, Number y) { return -below(-x, y); });
      case Op::floor_div:
        return b.least < 1 ? any : of_corners(below);
      default:
        return any;
    }
  }
  // Quotient rounded down; y is positive.
  static std::int64_t below(std::int64_t x, std::int64_t y) { return x / y - (x % y < 0); }

  const GraphAnalysis& analysis_;
  int visited_ = 0;
};

}  // namespace

Range range_of(const GraphAnalysis& analysis, Id id) { return Ranges(analysis).of(id); }

}  // namespace tessera::internal::lowering
