#include "cpu/strides.hpp"

#include <algorithm>
#include <cstring>

#include "cpu/reduce.hpp"
#include "cpu/strip.hpp"

namespace tessera::internal::cpu {

int collapse(Strides& extent, int rank, std::span<Strides> operands) {
  int kept = 0;
  for (int axis = 0; axis < rank; ++axis) {
    if (extent[at(axis)] == 1) continue;
    const bool joins = kept > 0 && std::all_of(operands.begin(), operands.end(), [&](const Strides& stride) {
                         return stride[at(kept - 1)] == stride[at(axis)] * extent[at(axis)];
                       });
    if (joins) {
      extent[at(kept - 1)] *= extent[at(axis)];
      for (Strides& stride : operands) stride[at(kept - 1)] = stride[at(axis)];
    } else {
      extent[at(kept)] = extent[at(axis)];
      for (Strides& stride : operands) stride[at(kept)] = stride[at(axis)];
      ++kept;
    }
  }
  return kept;
}

Strides stretched(const Strides& stride, const Shape& from, const Shape& to) {
  Strides result{};
  for (int axis = 1; axis <= from.rank(); ++axis)
    result[at(to.rank() - axis)] = from[from.rank() - axis] == 1 ? 0 : stride[at(from.rank() - axis)];
  return result;
}

Strides reshaped(const Strides& stride, const Shape& from, const Shape& to) {
  Strides result{};
  int axis = 0;
  for (int i = 0; i < to.rank(); ++i) {
    if (to[i] == 1) continue;
    while (axis < from.rank() && from[axis] == 1) ++axis;
    if (axis == from.rank() || from[axis] != to[i]) return dense_strides(to);
    result[at(i)] = stride[at(axis++)];
  }
  return result;
}

Strides extents_of(const Shape& shape) {
  Strides extent{};
  std::copy(shape.begin(), shape.end(), extent.begin());
  return extent;
}

void copy(char* out, const Ref& from, const Shape& shape, HostType type) {
  const int bytes = host_bytes(type);
  Strides stride = from.stride, extent = extents_of(shape);
  const int rank = collapse(extent, shape.rank(), {&stride, 1});
  if (rank == 0) return static_cast<void>(std::memcpy(out, from.data, static_cast<std::size_t>(bytes)));
  const std::int64_t row = extent[at(rank - 1)], step = stride[at(rank - 1)];
  for_each_position(extent, rank - 1, [&](const Strides& position) {
    const char* in = from.data + offset_of(position, stride, rank - 1) * bytes;
    if (step == 1)
      std::memmove(out, in, static_cast<std::size_t>(row * bytes));
    else if (step == 0)
      splat(out, in, type, static_cast<int>(row));
    else
      collect(out, in, step, type, static_cast<int>(row));
    out += row * bytes;
  });
}

}  // namespace tessera::internal::cpu
