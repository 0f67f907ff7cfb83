#include "cpu/strips.hpp"

#include <algorithm>
#include <type_traits>

namespace tessera::internal::cpu {
namespace {

// Strips of at least this many elements are not extended by part of one more axis.
constexpr std::int64_t long_enough = 128;

// Calls body(length), with a compile-time constant for short lengths.
template <class Body>
void with_length(std::int64_t length, const Body& body) {
  switch (length) {
    case 2:
      return body(std::integral_constant<std::int64_t, 2>());
    case 3:
      return body(std::integral_constant<std::int64_t, 3>());
    case 4:
      return body(std::integral_constant<std::int64_t, 4>());
    default:
      return body(length);
  }
}

// Copies the rows of a block into contiguous memory.
template <class T>
void copy_rows(T* out, const T* in, const StripPlan::Source& source, std::int64_t outermost) {
  const int last = source.rank - 1;
  const std::int64_t length = last == 0 ? outermost : source.block_extent[at(last)];
  const std::int64_t step = source.block_stride[at(last)];
  // Two axes at a time: most blocks have no more.
  const std::int64_t rows = last == 0 ? 1 : last == 1 ? outermost : source.block_extent[at(last - 1)];
  const std::int64_t stride = last == 0 ? 0 : source.block_stride[at(last - 1)];
  std::int64_t planes = last < 2 ? 1 : outermost;
  for (int axis = 1; axis < last - 1; ++axis) planes *= source.block_extent[at(axis)];
  Strides position{};
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    with_length(length, [&](auto row) {
      for (std::int64_t r = 0; r < rows; ++r, out += row) {
        const T* const from = in + r * stride;
        if (step == 0)
          std::fill_n(out, std::int64_t{row}, *from);
        else if (step == 1)
          std::copy_n(from, std::int64_t{row}, out);
        else
          for (std::int64_t i = 0; i < row; ++i) out[i] = from[i * step];
      }
    });
    for (int axis = last - 2; axis >= 0; --axis) {
      in += source.block_stride[at(axis)];
      if (++position[at(axis)] < source.block_extent[at(axis)] || axis == 0) break;
      in -= source.block_extent[at(axis)] * source.block_stride[at(axis)];
      position[at(axis)] = 0;
    }
  }
}

}  // namespace

void StripPlan::make(const Shape& shape, std::vector<Strides> strides) {
  made = true;
  extent = extents_of(shape);
  const int rank = collapse(extent, shape.rank(), strides);
  inner = piece = 1;
  cut = rank - 1;
  while (cut >= 0 && inner * extent[at(cut)] <= strip_length) inner *= extent[at(cut--)];
  if (cut >= 0 && inner < long_enough) piece = std::min(strip_length / inner, extent[at(cut)]);
  sources.clear();
  for (const Strides& stride : strides) sources.push_back(source(stride, rank));
}

StripPlan::Source StripPlan::source(const Strides& stride, int rank) const {
  Source source;
  source.stride = stride;
  std::int64_t behind = 1;
  int first = cut + 1;
  if (piece > 1) --first;
  for (int axis = rank - 1; axis >= 0; --axis) {
    const bool moves = stride[at(axis)] != 0, within = axis >= first;
    source.inside = source.inside || (moves && within);
    source.outside = source.outside || (moves && (axis < cut || (axis == cut && piece < extent[at(axis)])));
    if (within) source.dense = source.dense && stride[at(axis)] == behind;
    behind *= extent[at(axis)];
  }
  for (int axis = first; axis < rank; ++axis) {
    source.block_extent[at(axis - first)] = axis == cut ? piece : extent[at(axis)];
    source.block_stride[at(axis - first)] = stride[at(axis)];
  }
  source.rank = collapse(source.block_extent, rank - first, {&source.block_stride, 1});
  return source;
}

void StripWalk::begin_strip() {
  here_ = plan_.cut < 0 ? 1 : std::min(plan_.piece, plan_.extent[at(plan_.cut)] - position_[at(plan_.cut)]);
  count_ = static_cast<int>(here_ * plan_.inner);
}

void StripWalk::next() {
  first_ += count_;
  int axis = plan_.cut;
  for (std::int64_t steps = here_; axis >= 0; --axis, steps = 1) {
    if ((position_[at(axis)] += steps) < plan_.extent[at(axis)]) break;
    position_[at(axis)] = 0;
  }
  done_ = axis < 0;
  begin_strip();
}

const char* StripWalk::elements(const StripPlan::Source& source, const char* data, HostType type, char* scratch) const {
  const int bytes = host_bytes(type);
  data = begin(source, data, bytes);
  if (source.dense) return data;
  if (!source.inside) {
    splat(scratch, data, type, count_);
    return scratch;
  }
  // The last strip may have only part of the block's outermost axis.
  const std::int64_t outermost = source.block_extent[0] / plan_.piece * here_;
  if (bytes == 8)
    copy_rows(reinterpret_cast<std::int64_t*>(scratch), reinterpret_cast<const std::int64_t*>(data), source, outermost);
  else
    copy_rows(reinterpret_cast<std::int32_t*>(scratch), reinterpret_cast<const std::int32_t*>(data), source, outermost);
  return scratch;
}

}  // namespace tessera::internal::cpu
