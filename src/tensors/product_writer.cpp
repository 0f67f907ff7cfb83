// The loops of fused kernels: products, and attention with the online softmax (Milakov and Gimelshein, 2018; Dao et
// al., 2022).
#include <algorithm>
#include <bit>
#include <limits>

#include "tensors/kernel_writer.hpp"
#include "tessera/dsl/tile.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {

// The extent of the loop's axis, of a tensor that has it.
Handle KernelWriter::inner_extent(std::int64_t extent) {
  for (std::size_t i = 0; i < reads_.size(); ++i)
    for (std::size_t axis = 0; axis < reads_[i].use.size(); ++axis)
      if (const AxisUse& along = reads_[i].use[axis];
          along.axis == AxisUse::inner && along.extent == extent && along.start == 0 && along.step == 1)
        return op(Op::extent, ElementType::i32, {views_[i]}, {static_cast<std::int64_t>(axis)});
  return index(extent);
}

// Reads are 0 beyond the last element. Values computed from them need not be, and would add to the sum.
Handle KernelWriter::masked_inner(Handle tile, int v, const Use& use) {
  for (std::size_t axis = 0; axis < use.size(); ++axis) {
    if (use[axis].axis != AxisUse::inner || use[axis].extent % tiling_.inner == 0) continue;
    int source = v;
    while (!is_read(source) && (value(source).op == TensorOp::cast || value(source).op == TensorOp::permute))
      source = value(source).in[0];
    if (is_read(source)) continue;
    AxisUse along = use[axis];
    along.start = 0, along.step = 1;
    Use plain = use;
    plain[axis] = along;
    const Handle exists = elementwise(Op::less, positions(plain, axis), inner_extent(along.extent));
    tile = op(Op::select, type(tile), {exists, tile, number(type(tile), 0)});
  }
  return tile;
}

// An operand's tile as a matrix of the type that mma takes.
Handle KernelWriter::factor(int v, const Use& use, std::size_t position, ElementType of, const Shape& matrix) {
  const Use inside = use_of_operand(v, use, position);
  const int x = value(v).in[position];
  const Handle tile = masked_inner(emit(x, inside), x, inside);
  location_ = value(v).location;
  return reshaped(converted(stretched(tile, tile_shape(inside)), of), matrix);
}

Handle KernelWriter::matmul(int v, const Use& use) {
  const Shape tile = tile_shape(use);
  const int bm = tile[tile.rank() - 2], bn = tile[tile.rank() - 1], bk = tiling_.inner;
  const Value& first = value(v);
  const ElementType stored = value(first.in[0]).type, of = first.attr[0] != 0 ? ElementType::tf32 : stored;
  const std::int64_t k = value(first.in[0]).extents[value(first.in[0]).extents.rank() - 1];
  location_ = first.location;
  std::vector<Trace::VarSlot> sums;
  for (std::size_t i = 0; i < kernel_.anchors.size(); ++i)
    sums.push_back(trace_.make_var(number(sum_type(stored), 0, {bm, bn}), location_));
  inner_ = trace_.begin_loop(elementwise(Op::cdiv, inner_extent(k), index(bk)), location_);
  for (std::size_t i = 0; i < kernel_.anchors.size(); ++i) {
    const int product = kernel_.anchors[i];
    const Handle a = factor(product, use, 0, of, {bm, bk}), b = factor(product, use, 1, of, {bk, bn});
    const Handle sum = op(Op::mma, sum_type(stored), {a, b, trace_.var(sums[i], location_)});
    trace_.assign_var(sums[i], sum, location_);
  }
  trace_.end_region();
  Handle result{};
  for (std::size_t i = 0; i < kernel_.anchors.size(); ++i) {
    const Handle sum = reshaped(trace_.var(sums[i], location_), tile);
    if (kernel_.anchors[i] == v)
      result = sum;
    else
      known_.push_back({{kernel_.anchors[i], use}, sum});
    trace_.drop_var(sums[i]);
  }
  return result;
}

Handle KernelWriter::attention(int v, const Use& use) {
  const Value& x = value(v);
  const Shape tile = tile_shape(use);
  const int rank = tile.rank(), bm = tile[rank - 2], width = tile[rank - 1], bn = tiling_.inner;
  const ElementType stored = value(x.in[0]).type;
  const Extents &q_extents = value(x.in[0]).extents, &k_extents = value(x.in[1]).extents;
  const int d = static_cast<int>(q_extents[rank - 1]);
  const std::int64_t queries = q_extents[rank - 2], keys = k_extents[rank - 2], window = x.attr[1];
  const bool has_window = window > 0, is_causal = x.attr[0] != 0 || has_window;
  const double scale = std::bit_cast<double>(x.attr[2]), cap = std::bit_cast<double>(x.attr[3]);
  const bool has_mask = x.attr[4] != 0, has_bias = x.attr[5] != 0;
  constexpr ElementType f32 = ElementType::f32, i32 = ElementType::i32;
  const double infinity = std::numeric_limits<double>::infinity();
  const auto add = [&](Handle a, Handle b) { return elementwise(Op::add, a, b); };
  const auto multiply = [&](Handle a, Handle b) { return elementwise(Op::mul, a, b); };

  const Handle q = factor(v, use, 0, stored, {bm, d});
  location_ = x.location;
  const Handle count = inner_extent(keys);
  // Query i sees keys up to i + shift.
  const auto queries_axis = static_cast<std::size_t>(rank - 2);
  const Handle first_row = multiply(coordinate(use, queries_axis), index(bm));
  const Handle shift = elementwise(Op::sub, count, queries == 1 ? index(1) : extent_of_domain(use[queries_axis].axis));
  const Handle rows = add(add(first_row, shift), op(Op::iota, i32, {}, {0}, {bm, 1}));
  Handle begin = index(0), end = count;
  if (is_causal) end = elementwise(Op::minimum, count, add(add(first_row, index(bm)), shift));
  if (has_window)
    begin = elementwise(Op::floor_div,
                        elementwise(Op::maximum, add(add(first_row, shift), index(1 - window)), index(0)), index(bn));
  const Handle tiles =
      elementwise(Op::sub, elementwise(Op::cdiv, elementwise(Op::maximum, end, index(1)), index(bn)), begin);

  const auto variable = [&](double initial, const Shape& shape) {
    return trace_.make_var(number(f32, initial, shape), location_);
  };
  // Where the scale is only a positive factor, the maximum of the scaled scores is the scaled maximum.
  const bool is_factor = cap == 0 && !has_bias && scale > 0;
  const double factor_of_scores = (is_factor ? scale : 1.0) * log2e;
  // Below all scores, and finite: a row without keys subtracts it from itself.
  const double lowest_score =
      is_factor ? -1e37 / std::max(factor_of_scores, 1.0) : std::numeric_limits<float>::lowest();
  const Trace::VarSlot top = variable(lowest_score, {bm, 1}), norm = variable(0, {bm, 1}),
                       sum = variable(0, {bm, width});
  const auto get = [&](const Trace::VarSlot& slot) { return trace_.var(slot, location_); };
  const Handle counter = trace_.begin_loop(tiles, location_);
  inner_ = has_window ? add(counter, begin) : counter;
  const Handle k = factor(v, use, 1, stored, {bn, d}), values = factor(v, use, 2, stored, {bn, width});
  Handle s = op(Op::mma, f32, {q, op(Op::permute, stored, {k}, {1, 0}), number(f32, 0, {bm, bn})});
  if (!is_factor) s = multiply(s, number(f32, scale));
  if (cap > 0) s = multiply(op(Op::tanh, f32, {multiply(s, number(f32, 1 / cap))}), number(f32, cap));
  if (has_bias)
    s = add(s, reshaped(stretched(computing(operand(v, use, has_mask ? 4 : 3)),
                                  tile_shape(use_of_operand(v, use, has_mask ? 4 : 3))),
                        {bm, bn}));
  const Handle columns = add(multiply(inner_, index(bn)), op(Op::iota, i32, {}, {1}, {1, bn}));
  const auto keep = [&](Handle condition) { s = op(Op::select, f32, {condition, s, number(f32, -infinity)}); };
  if (has_mask) keep(reshaped(stretched(operand(v, use, 3), tile_shape(use_of_operand(v, use, 3))), {bm, bn}));
  if (is_causal) keep(elementwise(Op::less_equal, columns, rows));
  if (!is_causal && keys % bn != 0) keep(elementwise(Op::less, columns, count));
  if (has_window) keep(elementwise(Op::greater, columns, add(rows, index(-window))));
  const auto scaled = [&](Handle scores) { return multiply(scores, number(f32, factor_of_scores)); };
  const Handle before = get(top);
  const Handle high = elementwise(Op::maximum, before, op(Op::max, f32, {s}, {1}));
  // One fused multiply-add; with a bias, scores may be so low that only their difference can be scaled.
  const Handle p =
      op(Op::exp2, f32,
         {is_factor ? elementwise(Op::sub, scaled(s), scaled(high)) : scaled(elementwise(Op::sub, s, high))});
  const Handle shrink = op(Op::exp2, f32, {scaled(elementwise(Op::sub, before, high))});
  trace_.assign_var(norm, add(multiply(get(norm), shrink), op(Op::sum, f32, {p}, {1})), location_);
  trace_.assign_var(sum, op(Op::mma, f32, {converted(p, stored), values, multiply(get(sum), shrink)}), location_);
  trace_.assign_var(top, high, location_);
  trace_.end_region();
  // A query that sees no key gets 0.
  const Handle result = elementwise(Op::div, get(sum), elementwise(Op::maximum, get(norm), number(f32, 1e-30)));
  for (const Trace::VarSlot& slot : {top, norm, sum}) trace_.drop_var(slot);
  return reshaped(result, tile);
}

}  // namespace tessera::internal
