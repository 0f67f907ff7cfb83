#include "cpu/take_along_axis.hpp"

#include <cstring>

#include "cpu/position.hpp"
#include "cpu/strides.hpp"

namespace tessera::internal::cpu {

void take_along_axis(HostType type, const Lines& tile, const Lines& positions, char* out) {
  const auto axis = static_cast<std::size_t>(tile.axis);
  const int rank = tile.shape.rank(), extent = tile.shape[tile.axis];
  const std::int64_t step = tile.stride[axis], bytes = host_bytes(type);
  const auto* const at = reinterpret_cast<const std::int32_t*>(positions.data);
  for_each_position(extents_of(positions.shape), rank, [&](const Strides& position) {
    std::int64_t line = 0, place = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(rank); ++i) {
      if (i != axis) line += position[i] * tile.stride[i];
      place += position[i] * positions.stride[i];
    }
    const std::int32_t taken = at[place];
    if (taken >= 0 && taken < extent)
      std::memcpy(out, tile.data + (line + taken * step) * bytes, static_cast<std::size_t>(bytes));
    else
      std::memset(out, 0, static_cast<std::size_t>(bytes));
    out += bytes;
  });
}

}  // namespace tessera::internal::cpu
