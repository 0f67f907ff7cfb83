// Where a view's elements are in memory, and walks over the rows of a tile in it.
#pragma once
#include <algorithm>

#include "cpu/strides.hpp"
#include "cpu/tape.hpp"

namespace tessera::cpu {

// A view of a tensor: element i of an axis exists where lo <= i < hi.
struct ViewRef {
  char* data = nullptr;  // of element 0 of every axis, which may lie outside of the tensor
  Strides lo{}, hi{}, stride{};
};

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

}  // namespace tessera::cpu
