// The location of a view's elements in memory, and iteration over the rows of a tile in it.
#pragma once
#include <algorithm>

#include "cpu/lines.hpp"
#include "cpu/strides.hpp"
#include "cpu/tape.hpp"

namespace tessera::internal::cpu {

// A view of a tensor: element i of an axis exists where lo <= i < hi.
struct ViewRef {
  char* data = nullptr;  // of element 0 of every axis, which may be outside of the tensor
  Strides lo{}, hi{}, stride{};
};

inline ViewRef view_of(const Argument& argument) {
  return {static_cast<char*>(argument.data), {}, argument.extent, argument.stride};
}

// A tensor of a list; outside of the list, one without elements.
inline ViewRef member(const Graph& graph, const Node& node, std::span<const Argument> arguments, std::int32_t number) {
  const bool is_there = number >= 0 && number < tensors_of_list(graph.parameters, node.parameter());
  return is_there ? view_of(arguments[node.parameter() + at(number)]) : ViewRef();
}

inline std::int64_t floor_of(std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

// Takes a slice: element i < extent of the axis is element start + i * step of the old view.
inline void slice(ViewRef& view, std::size_t axis, std::int64_t start, std::int64_t extent, std::int64_t step,
                  int bytes) {
  view.data += start * view.stride[axis] * bytes;
  // The first i whose element has reached `bound`, from below or from above.
  const auto first_beyond = [&](std::int64_t bound) {
    return step == 1 ? bound - start : step > 0 ? -floor_of(start - bound, step) : floor_of(start - bound, -step) + 1;
  };
  const std::int64_t low = first_beyond(step > 0 ? view.lo[axis] : view.hi[axis]),
                     high = first_beyond(step > 0 ? view.hi[axis] : view.lo[axis]);
  view.lo[axis] = std::max<std::int64_t>(0, low);
  view.hi[axis] = std::min(extent, high);
  view.stride[axis] *= step;
}

// Replaces an axis, which must not be a slice, by windows and the elements of one window.
inline ViewRef unfolded(ViewRef view, std::size_t axis, Windows windows) {
  for (Strides* of : {&view.lo, &view.hi, &view.stride})
    std::copy_backward(of->begin() + static_cast<std::ptrdiff_t>(axis), of->end() - 1, of->end());
  const std::int64_t left = view.hi[axis] - windows.size;
  view.hi[axis] = left < 0 ? 0 : left / windows.step + 1;
  view.stride[axis] *= windows.step;
  view.lo[axis + 1] = 0, view.hi[axis + 1] = windows.size;
  return view;
}

// Merges the axis and the next, whose elements follow one another.
inline ViewRef flattened(ViewRef view, std::size_t axis) {
  view.hi[axis + 1] *= view.hi[axis];
  for (Strides* of : {&view.lo, &view.hi, &view.stride})
    std::copy(of->begin() + static_cast<std::ptrdiff_t>(axis) + 1, of->end(),
              of->begin() + static_cast<std::ptrdiff_t>(axis));
  return view;
}

inline ViewRef permuted(const ViewRef& view, std::span<const std::int64_t> axes) {
  ViewRef result{.data = view.data};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(axes[i]);
    result.lo[i] = view.lo[axis], result.hi[i] = view.hi[axis], result.stride[i] = view.stride[axis];
  }
  return result;
}

// The part of a tile along one axis that exists in the view: [begin, end) in elements of the tile.
struct Part {
  std::int64_t begin, end;
};
inline Part part_of(const ViewRef& view, int axis, std::int64_t start, std::int64_t extent) {
  const std::int64_t begin = std::clamp<std::int64_t>(view.lo[at(axis)] - start, 0, extent);
  return {begin, std::clamp<std::int64_t>(view.hi[at(axis)] - start, begin, extent)};
}

// A tile in a view as rows; axes are merged where both memory and tile allow it.
struct TileRows {
  struct Axis {
    std::int64_t extent;
    Part part;            // the part that exists, in elements of the tile
    std::int64_t stride;  // from one element to the next in memory, in elements
    std::int64_t step;    // from one element to the next in the tile
  };
  int rank = 0;
  Axis axes[max_rank];     // outermost first
  char* memory = nullptr;  // address of the tile's first element, which may not exist
  bool empty = false;      // no element exists

  const Axis& row() const { return axes[rank - 1]; }
};

// The rows over a tile's axes from `first` on. The element at position 0 of the view is at `memory`; `step` has the
// strides of the tile's elements, `stored` is the size of one in memory.
inline TileRows tile_rows(const ViewRef& view, const Shape& shape, const Strides& start, int stored, int first,
                          char* memory, const Strides& step) {
  TileRows rows;
  rows.memory = memory;
  TileRows::Axis reversed[max_rank];
  for (int axis = shape.rank() - 1; axis >= first; --axis) {
    const TileRows::Axis here{shape[axis], part_of(view, axis, start[at(axis)], shape[axis]), view.stride[at(axis)],
                              step[at(axis)]};
    rows.memory += start[at(axis)] * here.stride * stored;
    rows.empty = rows.empty || here.part.begin == here.part.end;
    if (here.extent == 1 && (rows.rank > 0 || axis > first)) continue;
    if (rows.rank > 0) {
      TileRows::Axis& inner = reversed[rows.rank - 1];
      const bool whole = inner.part.begin == 0 && inner.part.end == inner.extent;
      if (whole && here.stride == inner.stride * inner.extent && here.step == inner.step * inner.extent) {
        inner.part = {here.part.begin * inner.extent, here.part.end * inner.extent};
        inner.extent *= here.extent;
        continue;
      }
    }
    reversed[rows.rank++] = here;
  }
  std::reverse_copy(reversed, reversed + rows.rank, rows.axes);
  return rows;
}

// Is this a tile's last axis? The bound on the rank keeps compilers from assuming deeper recursion.
inline bool is_innermost(const TileRows& rows, int axis) { return axis + 1 >= std::min(rows.rank, max_rank); }

// Calls row(memory, offset, part) for each row of a tile: its address in memory, its offset in the tile, and the part
// that exists. A row that does not exist has memory == nullptr and an empty part.
template <class Row>
void each_row(const TileRows& rows, int stored, int axis, char* memory, std::int64_t offset, const Row& row) {
  const TileRows::Axis& here = rows.axes[axis];
  const Part part = memory ? here.part : Part{0, 0};
  if (is_innermost(rows, axis)) return row(memory, offset, part);
  for (std::int64_t i = 0; i < here.extent; ++i) {
    const bool exists = i >= part.begin && i < part.end;
    each_row(rows, stored, axis + 1, exists ? memory + i * here.stride * stored : nullptr, offset + i * here.step, row);
  }
}
template <class Row>
void each_row(const TileRows& rows, int stored, const Row& row) {
  each_row(rows, stored, 0, rows.empty ? nullptr : rows.memory, 0, row);
}

// Calls write(memory, offset of the first element in the tile, count) for the existing part of each row.
template <class Write>
void each_written_row(const TileRows& rows, int stored, int axis, char* memory, std::int64_t offset,
                      const Write& write) {
  const auto& [extent, part, stride, step] = rows.axes[axis];
  if (is_innermost(rows, axis))
    return write(memory + part.begin * stride * stored, offset + part.begin * step, part.end - part.begin);
  for (std::int64_t i = part.begin; i < part.end; ++i)
    each_written_row(rows, stored, axis + 1, memory + i * stride * stored, offset + i * step, write);
}
template <class Write>
void each_written_row(const TileRows& rows, int stored, const Write& write) {
  if (!rows.empty) each_written_row(rows, stored, 0, rows.memory, 0, write);
}

}  // namespace tessera::internal::cpu
