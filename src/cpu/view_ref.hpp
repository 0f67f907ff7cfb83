// Where a view's elements are in memory, and walks over the rows of a tile in it.
#pragma once
#include <algorithm>

#include "cpu/strides.hpp"
#include "cpu/tape.hpp"

namespace tessera::internal::cpu {

// A view of a tensor: element i of an axis exists where lo <= i < hi.
struct ViewRef {
  char* data = nullptr;  // of element 0 of every axis, which may lie outside of the tensor
  Strides lo{}, hi{}, stride{};
};

inline std::int64_t floor_of(std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

// Element i < extent of the axis is what was element start + i * step.
inline ViewRef sliced(ViewRef view, std::size_t axis, std::int64_t start, std::int64_t extent, std::int64_t step,
                      int bytes) {
  view.data += start * view.stride[axis] * bytes;
  // The first i at which it has come to `bound`, from below or from above.
  const auto first_beyond = [&](std::int64_t bound) {
    return step > 0 ? -floor_of(start - bound, step) : floor_of(start - bound, -step) + 1;
  };
  const std::int64_t low = first_beyond(step > 0 ? view.lo[axis] : view.hi[axis]),
                     high = first_beyond(step > 0 ? view.hi[axis] : view.lo[axis]);
  view.lo[axis] = std::max<std::int64_t>(0, low);
  view.hi[axis] = std::min(extent, high);
  view.stride[axis] *= step;
  return view;
}

// Of the axis, which no slice moved, windows and what is in one.
inline ViewRef unfolded(ViewRef view, std::size_t axis, Windows windows) {
  for (Strides* of : {&view.lo, &view.hi, &view.stride})
    std::copy_backward(of->begin() + static_cast<std::ptrdiff_t>(axis), of->end() - 1, of->end());
  const std::int64_t left = view.hi[axis] - windows.size;
  view.hi[axis] = left < 0 ? 0 : left / windows.step + 1;
  view.stride[axis] *= windows.step;
  view.lo[axis + 1] = 0, view.hi[axis + 1] = windows.size;
  return view;
}

// Of the axis and the next, whose elements follow one another, one.
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

// Is this a tile's last axis? With the limit in it, no compiler thinks of a walk that goes on behind it.
inline bool is_innermost(const Shape& shape, int axis) { return axis + 1 >= std::min(shape.rank(), max_rank); }

// Walks the rows of a tile from `axis` inwards, handing over where each row lies in memory and in the tile and which
// part of it exists. Rows that do not exist come with memory == nullptr and an empty part.
template <class Row>
void each_row(const ViewRef& view, const Shape& shape, const Strides& start, int bytes, int axis, char* memory,
              std::int64_t offset, const Row& row) {
  const std::int64_t extent = shape[axis];
  const Part part = memory ? part_of(view, axis, start[at(axis)], extent) : Part{0, 0};
  if (is_innermost(shape, axis))
    return row(memory ? memory + start[at(axis)] * view.stride[at(axis)] * bytes : nullptr, offset, part);
  for (std::int64_t i = 0; i < extent; ++i) {
    const bool exists = i >= part.begin && i < part.end;
    char* next = exists ? memory + (start[at(axis)] + i) * view.stride[at(axis)] * bytes : nullptr;
    each_row(view, shape, start, bytes, axis + 1, next, offset * shape[axis + 1] + i * shape[axis + 1], row);
  }
}

// Hands each row of a tile that exists in memory to `write(memory, first element in the tile, stride in the tile,
// count)`.
template <class Write>
void each_written_row(const ViewRef& view, const Shape& shape, const Strides& start, int stored, int axis, char* memory,
                      const Ref& tile, std::int64_t offset, const Write& write) {
  const Part part = part_of(view, axis, start[at(axis)], shape[axis]);
  const std::int64_t stride = view.stride[at(axis)], step = shape[axis] == 1 ? 0 : tile.stride[at(axis)];
  if (is_innermost(shape, axis)) {
    if (part.end > part.begin)
      write(memory + (start[at(axis)] + part.begin) * stride * stored, stride, offset + part.begin * step, step,
            part.end - part.begin);
    return;
  }
  for (std::int64_t i = part.begin; i < part.end; ++i)
    each_written_row(view, shape, start, stored, axis + 1, memory + (start[at(axis)] + i) * stride * stored, tile,
                     offset + i * step, write);
}

}  // namespace tessera::internal::cpu
