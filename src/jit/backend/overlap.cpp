#include "jit/backend/overlap.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <utility>

namespace tessera::internal {
namespace {

/// Holds the product of any stride, any extent and the size of an element in bytes.
__extension__ using Wide = __int128;

struct Range {
  Wide begin, end;  // in bytes; begin == end if the tensor has no elements
};

Range range_of(const Parameter& parameter, const Argument& argument) {
  Wide low = 0, high = 1;
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(parameter.rank); ++axis) {
    if (argument.extent[axis] == 0) return {0, 0};
    const Wide reach = Wide(argument.extent[axis] - 1) * argument.stride[axis];
    (reach < 0 ? low : high) += reach;
  }
  const Wide base = reinterpret_cast<std::uintptr_t>(argument.data);
  const std::int64_t bytes = info(parameter.type).bytes;
  return {base + low * bytes, base + high * bytes};
}

struct Axis {
  std::int64_t stride, extent_a, extent_b;
};

// Do both tensors have an element at the same address? They do if there are d[i], differences of two positions along
// axis i, with sum d[i] * stride[i] == distance. Strides are nested, so at each axis only the quotients next to
// distance / stride can leave a remainder that the later axes reach.
bool meet(const std::array<Axis, max_rank>& axes, std::size_t i, std::size_t rank, Wide distance) {
  if (i == rank) return distance == 0;
  const Wide quotient = distance / axes[i].stride;
  for (Wide d = quotient - 1; d <= quotient + 1; ++d)
    if (-axes[i].extent_a < d && d < axes[i].extent_b && meet(axes, i + 1, rank, distance - d * axes[i].stride))
      return true;
  return false;
}

}  // namespace

bool is_addressable(const Parameter& parameter, const Argument& argument) {
  const Range range = range_of(parameter, argument);
  return range.begin >= 0 && range.end <= Wide(1) << 64;
}

std::optional<AddressRange> addresses(const Parameter& parameter, const Argument& argument) {
  const Range range = range_of(parameter, argument);
  if (range.begin == range.end) return {};
  return AddressRange{static_cast<std::uintptr_t>(range.begin), static_cast<std::uintptr_t>(range.end - 1)};
}

bool overlap(const Parameter& a_parameter, const Argument& a, const Parameter& b_parameter, const Argument& b) {
  const Range x = range_of(a_parameter, a), y = range_of(b_parameter, b);
  if (x.begin == x.end || y.begin == y.end || x.end <= y.begin || y.end <= x.begin) return false;

  const std::int64_t bytes = info(a_parameter.type).bytes;
  const Wide between = Wide(reinterpret_cast<std::uintptr_t>(a.data)) - reinterpret_cast<std::uintptr_t>(b.data);
  if (a_parameter.rank != b_parameter.rank || info(b_parameter.type).bytes != bytes || between % bytes != 0)
    return true;
  std::array<Axis, max_rank> axes{};
  // The stride of an axis of one element has no effect.
  std::size_t rank = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(a_parameter.rank); ++i) {
    if (a.extent[i] == 1 && b.extent[i] == 1) continue;
    const std::int64_t stride = a.extent[i] == 1 ? b.stride[i] : a.stride[i];
    if (stride < 1 || (a.extent[i] > 1 && b.extent[i] > 1 && a.stride[i] != b.stride[i])) return true;
    axes[rank++] = {stride, a.extent[i], b.extent[i]};
  }
  // Unused entries have a stride of 0 and sort last.
  std::sort(axes.begin(), axes.end(), [](const Axis& p, const Axis& q) { return p.stride > q.stride; });
  for (std::size_t i = 0; i + 1 < rank; ++i)
    if (axes[i].stride < Wide(axes[i + 1].stride) * std::max(axes[i + 1].extent_a, axes[i + 1].extent_b)) return true;
  return meet(axes, 0, rank, between / bytes);
}

bool overlaps_itself(const Parameter& parameter, const Argument& argument) {
  // Stride and extent of each axis. An axis with a single position has no effect and sorts last.
  std::array<std::pair<Wide, std::int64_t>, max_rank> axes;
  axes.fill({Wide(1) << 64, 1});
  for (std::size_t i = 0; i < static_cast<std::size_t>(parameter.rank); ++i) {
    if (argument.extent[i] == 0) return false;
    if (argument.extent[i] > 1) {
      const Wide stride = argument.stride[i];
      axes[i] = {stride < 0 ? -stride : stride, argument.extent[i]};
    }
  }
  std::sort(axes.begin(), axes.end());
  Wide reach = 0;  // from the first element to the last, over the axes so far
  for (auto [stride, extent] : axes) {
    if (extent == 1) break;
    if (stride <= reach) return true;
    reach += (extent - 1) * stride;
  }
  return false;
}

}  // namespace tessera::internal
