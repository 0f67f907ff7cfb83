#include "graph/infer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "graph/views.hpp"

namespace tessera::internal {
namespace {

template <class... Args>
[[noreturn]] void mismatch(fmt::format_string<Args...> format, Args&&... args) {
  throw Mismatch(fmt::format(format, std::forward<Args>(args)...));
}

constexpr std::int64_t farthest_step = std::int64_t(1) << 29;
// Executors round a tile up to whole warps and instructions, and count its elements with an int.
constexpr std::int64_t most_elements = std::int64_t(1) << 30;

int checked_axis(Op op, std::int64_t axis, int rank) {
  if (axis < 0 || axis >= rank) mismatch("{}: no axis {} in rank {}", name(op), axis, rank);
  return static_cast<int>(axis);
}

Shape permuted(Op op, const Shape& shape, std::span<const std::int64_t> axes) {
  if (static_cast<int>(axes.size()) != shape.rank())
    mismatch("{}: {} axes given for {}, which has rank {}", name(op), axes.size(), to_string(shape), shape.rank());
  Shape result = Shape::of_rank(shape.rank());
  unsigned seen = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    const int axis = checked_axis(op, axes[static_cast<std::size_t>(i)], shape.rank());
    if (seen >> axis & 1u) mismatch("{}: axis {} is named twice; name each axis once", name(op), axis);
    seen |= 1u << axis;
    result[i] = shape[axis];
  }
  return result;
}

// Tile, view and tile indices of an access must match; `axes` is the number of axes that the indices address.
void check_access(const Graph& graph, Op op, const Shape& tile, Id view, std::size_t indices, int gathered) {
  const int rank = graph[view].shape.rank();
  if (tile.rank() != rank || static_cast<int>(indices) + gathered != rank)
    mismatch("{}: a tile {} with {} indices does not fit a tensor of rank {}", name(op), to_string(tile), indices,
             rank);
}

// An access to elements takes one tile of indices for each axis of the view, all of one shape.
const Shape& check_elements(const Graph& graph, Op op, std::span<const Id> tiles, Id view) {
  if (static_cast<int>(tiles.size()) != graph[view].shape.rank())
    mismatch("{}: {} tiles of indices for a tensor of rank {}; give one for each axis", name(op), tiles.size(),
             graph[view].shape.rank());
  const Shape& shape = graph[tiles[0]].shape;
  for (Id id : tiles)
    if (graph[id].shape != shape)
      mismatch("{}: tiles of indices {} and {}; they must have the same shape", name(op), to_string(shape),
               to_string(graph[id].shape));
  return shape;
}

// The tile and the expected value of an atomic must have one shape, and so must the tiles of indices.
const Shape& atomic_shape(const Graph& graph, Op op, std::span<const Id> in) {
  const auto view = static_cast<std::size_t>(view_operand(op));
  const std::span<const Id> places = in.subspan(view + 1);
  const Shape& tile = graph[in[0]].shape;
  for (Id id : in.first(view))
    if (graph[id].shape != tile)
      mismatch(
          "{}: {} is expected where {} is stored; both must have the same "
          "shape",
          name(op), to_string(graph[id].shape), to_string(tile));
  if (!by_elements(op))
    check_access(graph, op, tile, in[view], places.size(), 0);
  else if (const Shape& shape = check_elements(graph, op, places, in[view]); shape != tile)
    mismatch(
        "{}: indices {} for a tile {}; give an index for each "
        "element",
        name(op), to_string(shape), to_string(tile));
  return tile;
}

// The operand's shape, but with the requested extent along the axis: at most `most`.
Shape with_extent(Op op, const Shape& shape, int axis, const Shape& requested, int most) {
  if (requested.rank() == 0) return shape;
  bool fits = requested.rank() == shape.rank() && requested[axis] <= most;
  for (int i = 0; fits && i < shape.rank(); ++i) fits = i == axis || requested[i] == shape[i];
  if (!fits)
    mismatch("{}: {} of {} along axis {}; all other extents must agree", name(op), to_string(requested),
             to_string(shape), axis);
  return requested;
}

bool is_of_kind(const Node& node, OperandKind kind) {
  if (kind == OperandKind::view) return is_view(node.op);
  if (kind == OperandKind::loop) return has_region(node.op);
  if (!has_value(node.op)) return false;
  switch (kind) {
    case OperandKind::condition:
      return node.type == ElementType::pred && node.shape.rank() == 0;
    case OperandKind::index:
      return node.type == ElementType::i32 && node.shape.rank() == 0;
    case OperandKind::rows:
      return node.type == ElementType::i32 && node.shape.rank() == 1;
    default:
      return true;
  }
}

// Only axes that are not slices can be divided into windows or flattened: then an element's index along one axis
// decides whether it exists, independent of the other axis.
ViewAxis unsliced(const Graph& graph, Op op, Id view, int axis) {
  ViewAxis at = view_axes(graph, view)[static_cast<std::size_t>(axis)];
  if (!at.slices.empty())
    mismatch("{}: axis {} is a slice; take the slice afterwards, of the resulting axes", name(op), axis);
  return at;
}

Shape sliced(const Graph& graph, Id view, int axis, std::int64_t step) {
  if (step == 0 || std::abs(step) > farthest_step)
    mismatch("slice: a step of {}; a step must not be 0, and must be at most 2^29", step);
  const std::int64_t before = view_axes(graph, view)[static_cast<std::size_t>(axis)].step();
  if (std::abs(before * step) > farthest_step)
    mismatch("slice: a step of {} in a view with steps of {}; their product must be at most 2^29", step, before);
  return graph[view].shape;
}

Shape unfolded(const Graph& graph, Id view, int axis, std::span<const std::int64_t> attr) {
  const Op op = Op::unfold_view;
  const int rank = graph[view].shape.rank();
  const std::int64_t size = attr[1], step = attr[2];
  if (rank == max_rank) mismatch("{}: a view of {} axes cannot have one more", name(op), rank);
  const ViewAxis at = unsliced(graph, op, view, axis);
  if (size < 1 || step < 1 || size > farthest_step || at.factor * step > farthest_step)
    mismatch("{}: windows of {} elements, {} apart; both must be from 1 to 2^29", name(op), size, step);
  if (at.within > 0 && at.within < size)
    mismatch("{}: windows of {} elements in an axis of {}", name(op), size, at.within);
  if (step < size && graph.parameters[static_cast<std::size_t>(view_parameter(graph, view))].access != Access::in)
    mismatch(
        "{}: windows of {} elements, {} apart, share elements; only an In may have such "
        "windows",
        name(op), size, step);
  return Shape::of_rank(rank + 1);
}

Shape flattened(const Graph& graph, Id view, int axis) {
  const Op op = Op::flatten_view;
  const int rank = graph[view].shape.rank();
  if (axis + 1 >= rank) mismatch("{}: axis {} in rank {} has no axis after it", name(op), axis, rank);
  for (const int one : {axis, axis + 1})
    if (const ViewAxis at = unsliced(graph, op, view, one); !at.windows.empty() || at.within > 0)
      mismatch("{}: axis {} is of windows; flatten the tensor's axes first, then unfold them", name(op), one);
  return Shape::of_rank(rank - 1);
}

Shape concat_shape(const Graph& graph, std::span<const Id> in, int axis) {
  Shape result = graph[in[0]].shape;
  for (Id id : in.subspan(1)) {
    const Shape& next = graph[id].shape;
    bool fits = next.rank() == result.rank();
    for (int i = 0; fits && i < result.rank(); ++i) fits = i == axis || next[i] == result[i];
    if (!fits)
      mismatch("concat: {} does not continue {} along axis {}; all other extents must agree", to_string(next),
               to_string(result), axis);
    const std::int64_t extent = std::int64_t(result[axis]) + next[axis];
    if (extent > std::numeric_limits<int>::max()) mismatch("concat: the result is too long");
    result[axis] = static_cast<int>(extent);
  }
  return result;
}

}  // namespace

void check_tile(Op op, const Shape& shape) {
  std::int64_t size = 1;
  for (int extent : shape) {
    if (extent < 1) mismatch("{}: a tile of shape {}; every extent must be at least 1", name(op), to_string(shape));
    if ((size *= extent) > most_elements)
      mismatch("{}: a tile of shape {} has more than 2^30 elements; make it smaller, and loop", name(op),
               to_string(shape));
  }
}

Shape broadcast_shapes(const Shape& a, const Shape& b, std::string_view what) {
  Shape result = Shape::of_rank(std::max(a.rank(), b.rank()));
  for (int i = 1; i <= result.rank(); ++i) {
    const int x = i <= a.rank() ? a[a.rank() - i] : 1, y = i <= b.rank() ? b[b.rank() - i] : 1;
    if (x != y && x != 1 && y != 1)
      mismatch("{}: shapes {} and {} do not broadcast; make extents {} and {} equal, or one of them 1", what,
               to_string(a), to_string(b), x, y);
    result[result.rank() - i] = std::max(x, y);
  }
  return result;
}

Shape infer_shape(const Graph& graph, Op op, std::span<const Id> in, std::span<const std::int64_t> attr,
                  const Shape& requested) {
  const auto shape = [&](std::size_t i) -> const Shape& { return graph[in[i]].shape; };
  const auto axis = [&] { return checked_axis(op, attr[0], shape(0).rank()); };
  if (is_unary(op) || op == Op::cast || op == Op::bitcast) return shape(0);
  if (is_binary(op)) return broadcast_shapes(shape(0), shape(1), name(op));
  if (is_ternary(op)) return broadcast_shapes(broadcast_shapes(shape(0), shape(1), name(op)), shape(2), name(op));
  if (is_reduction(op) || op == Op::argmax) {
    Shape result = shape(0);
    result[axis()] = 1;
    return result;
  }
  if (is_scan(op)) {
    axis();
    return shape(0);
  }
  if (is_atomic(op)) return atomic_shape(graph, op, in);
  if (is_sort(op)) return with_extent(op, shape(0), axis(), requested, shape(0)[axis()]);
  switch (op) {
    case Op::select:
      return broadcast_shapes(shape(0), broadcast_shapes(shape(1), shape(2), "where"), "where");
    case Op::custom: {
      Shape result = shape(0);
      for (std::size_t i = 1; i < in.size(); ++i) result = broadcast_shapes(result, shape(i), "cuda_op");
      return result;
    }
    case Op::iota:
      checked_axis(op, attr[0], requested.rank());
      [[fallthrough]];
    case Op::constant:
      return requested;
    case Op::load:
      check_access(graph, op, requested, in[0], in.size() - 1, 0);
      return requested;
    case Op::gather:
      if (shape(1) != Shape{requested[0]})
        mismatch("gather: rows {} for a tile {}", to_string(shape(1)), to_string(requested));
      check_access(graph, op, requested, in[0], in.size() - 2, 1);
      return requested;
    case Op::gather_elements:
      return check_elements(graph, op, in.subspan(1), in[0]);
    case Op::scatter_elements:
      if (shape(0) != check_elements(graph, op, in.subspan(2), in[1]))
        mismatch("{}: indices {} for a tile {}; give an index for each element", name(op), to_string(shape(2)),
                 to_string(shape(0)));
      return shape(0);
    case Op::store:
      check_access(graph, op, shape(0), in[1], in.size() - 2, 0);
      return shape(0);
    case Op::scatter:
      check_access(graph, op, shape(0), in[1], in.size() - 3, 1);
      if (shape(2) != Shape{shape(0)[0]})
        mismatch("scatter: rows {} for a tile {}; one row index for each row of the tile", to_string(shape(2)),
                 to_string(shape(0)));
      return shape(0);
    case Op::reshape:
      if (requested.size() != shape(0).size())
        mismatch("reshape: {} has {} elements, {} has {}", to_string(shape(0)), shape(0).size(), to_string(requested),
                 requested.size());
      return requested;
    case Op::broadcast:
      if (broadcast_shapes(shape(0), requested, "broadcast") != requested)
        mismatch("broadcast: {} does not stretch to {}", to_string(shape(0)), to_string(requested));
      return requested;
    case Op::permute:
    case Op::permute_view:
      return permuted(op, shape(0), attr);
    case Op::slice:
      return sliced(graph, in[0], axis(), attr[1]);
    case Op::unfold_view:
      return unfolded(graph, in[0], axis(), attr);
    case Op::flatten_view:
      return flattened(graph, in[0], axis());
    case Op::extent:
      axis();
      return {};
    case Op::concat:
      return concat_shape(graph, in, axis());
    case Op::extract:
      if (requested.rank() != shape(0).rank() || in.size() != attr.size() + 1 ||
          static_cast<int>(attr.size()) != requested.rank())
        mismatch("extract: {} elements of {}; it takes an extent, a first element and a step for each axis",
                 to_string(requested), to_string(shape(0)));
      for (int axis = 0; axis < requested.rank(); ++axis) {
        const std::int64_t step = attr[static_cast<std::size_t>(axis)];
        if (step == 0 || std::abs(step) > farthest_step / std::max(1, requested[axis]))
          mismatch("extract: {} elements with steps of {}; a step must not be 0, and must span at most 2^29 elements",
                   requested[axis], step);
      }
      return requested;
    case Op::histogram:
    case Op::inverse_permutation:
      return with_extent(op, shape(0), axis(), requested, std::numeric_limits<int>::max());
    case Op::take_along_axis: {
      Shape line = shape(0);
      if (line.rank() == shape(1).rank()) line[axis()] = shape(1)[axis()];
      if (line != shape(1))
        mismatch("take_along_axis: positions {} in a tile {}; only the extent along axis {} may differ",
                 to_string(shape(1)), to_string(shape(0)), axis());
      return line;
    }
    case Op::mma: {
      const Shape &a = shape(0), &b = shape(1), &c = shape(2);
      const int rank = c.rank(), m = rank - 2, n = rank - 1;  // axes
      const bool fits = (rank == 2 || rank == 3) && a.rank() == rank && b.rank() == rank && a[m] == c[m] &&
                        b[n] == c[n] && a[n] == b[m] && (rank == 2 || (a[0] == c[0] && b[0] == c[0]));
      if (!fits)
        mismatch("mma: {} x {} + {}; it takes [m,k] x [k,n] + [m,n], or with a batch [b,m,k] x [b,k,n] + [b,m,n]",
                 to_string(a), to_string(b), to_string(c));
      return c;
    }
    case Op::tensor:
    case Op::member:
      return Shape::of_rank(graph.parameters[static_cast<std::size_t>(attr[0])].rank);
    case Op::argument:
    case Op::result:
      return requested;
    default:
      return {};
  }
}

void check_types(const Graph& graph, Op op, ElementType type, std::span<const Id> in) {
  const auto operand = [&](std::size_t i) { return graph[in[i]].type; };
  const auto require = [&](bool holds) {
    if (holds) return;
    std::string text;
    for (Id id : in) text += fmt::format(" {}", type_text(graph[id]));
    mismatch("{}: operands{} for a result of {}", name(op), text, name(type));
  };
  for (std::size_t i = 0; i < in.size(); ++i) require(is_of_kind(graph[in[i]], operand_kind(op, i)));
  if (is_arithmetic(op) || is_reduction(op)) {
    for (std::size_t i = 0; i < in.size(); ++i) require(accepts(op, operand(i)) && operand(i) == operand(0));
    return require(type == (is_reduction(op) ? operand(0) : result_type(op, operand(0))));
  }
  if (is_scan(op)) return require(type == operand(0) && accepts(op, type));
  if (by_elements(op))
    for (std::size_t i = static_cast<std::size_t>(view_operand(op)) + 1; i < in.size(); ++i)
      require(operand(i) == ElementType::i32);
  if (is_atomic(op)) {
    require(type == operand(0) && accepts(op, type));
    for (std::size_t i = 1; i <= static_cast<std::size_t>(view_operand(op)); ++i) require(operand(i) == type);
    return;
  }
  switch (op) {
    case Op::select:
      return require(operand(0) == ElementType::pred && operand(1) == type && operand(2) == type);
    case Op::bitcast:
      return require(bitcasts(operand(0), type));
    case Op::custom:
      for (std::size_t i = 0; i < in.size(); ++i) require(operand(i) == type);
      return require(info(type).stored);
    case Op::iota:
    case Op::block:
    case Op::extent:
      return require(type == ElementType::i32);
    case Op::argmax:
      return require(type == ElementType::i32 && info(operand(0)).computes);
    case Op::sort:
      return require(type == operand(0) && info(type).computes);
    case Op::argsort:
      return require(type == ElementType::i32 && info(operand(0)).computes);
    case Op::histogram:
    case Op::inverse_permutation:
      return require(type == ElementType::i32 && operand(0) == ElementType::i32);
    case Op::take_along_axis:
      return require(type == operand(0) && operand(1) == ElementType::i32);
    case Op::slice:
    case Op::permute_view:
    case Op::unfold_view:
    case Op::flatten_view:
    case Op::permute:
    case Op::reshape:
    case Op::broadcast:
    case Op::extract:
    case Op::load:
    case Op::gather:
    case Op::gather_elements:
      return require(type == operand(0));
    case Op::concat:
      for (std::size_t i = 0; i < in.size(); ++i) require(operand(i) == type);
      return;
    case Op::store:
    case Op::scatter:
    case Op::scatter_elements:
      return require(operand(0) == operand(1));
    case Op::print:
      for (std::size_t i = 0; i < in.size(); ++i) require(info(operand(i)).computes);
      return;
    case Op::mma:
      return require(info(operand(0)).multiplies && operand(1) == operand(0) && operand(2) == type &&
                     type == sum_type(operand(0)));
    default:
      return;
  }
}

}  // namespace tessera::internal
