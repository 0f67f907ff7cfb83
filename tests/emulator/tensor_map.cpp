#include "emulator/tensor_map.hpp"

#include <fmt/format.h>

#include <cstring>

#include "tessera/graph/error.hpp"

namespace tessera::internal::emulator {
namespace {

constexpr std::uint32_t map_mark = 0x70616d74;

void require(bool holds, const Parameter& parameter, const char* what) {
  if (!holds) throw InternalError(fmt::format("TMA cannot address {}: {}", to_string(parameter), what));
}

}  // namespace

int BoxMap::bytes() const {
  int bytes = element_bytes;
  for (std::size_t a = 0; a < axes; ++a) bytes *= box[a];
  return bytes;
}

MapWords encode(const TmaTensor& tma_tensors, const Parameter& parameter, const Argument& argument) {
  BoxMap map;
  map.mark = map_mark;
  map.element_bytes = static_cast<std::uint16_t>(info(parameter.type).bytes);
  map.to_tf32 = tma_tensors.to_tf32;
  require(!tma_tensors.to_tf32 || parameter.type == ElementType::f32, parameter, "only f32 can be converted to tf32");
  map.base = static_cast<char*>(argument.data);
  require(reinterpret_cast<std::uintptr_t>(map.base) % 16 == 0, parameter, "its address is not a multiple of 16 bytes");
  for (std::size_t a = 0; a < BoxMap::most_axes && tma_tensors.axes[a] >= 0; ++a, ++map.axes) {
    const auto axis = static_cast<std::size_t>(tma_tensors.axes[a]);
    require(tma_tensors.axes[a] < parameter.rank, parameter, "it has fewer axes than its box");
    map.extent[a] = argument.extent[axis];
    // The stride of an axis with one element is unused, and the launch passes any.
    map.stride[a] = a > 0 && map.extent[a] == 1 ? 16 : argument.stride[axis] * map.element_bytes;
    require(map.extent[a] > 0, parameter, "an extent is 0");
    require(a == 0 ? argument.stride[axis] == 1 : map.stride[a] > 0 && map.stride[a] % 16 == 0, parameter,
            a == 0 ? "elements along the fastest axis are not contiguous" : "a stride is not a multiple of 16 bytes");
    require(tma_tensors.box[a] >= 1 && tma_tensors.box[a] <= 256, parameter,
            "a box has 1 to 256 elements along an axis");
    map.box[a] = static_cast<std::uint16_t>(tma_tensors.length(a, map.extent[a]));
  }
  require(map.axes >= 1, parameter, "it has no axes");
  require(map.row_bytes() % 16 == 0 && map.row_bytes() <= 128, parameter, "rows of a box have 16 to 128 bytes");
  MapWords words{};
  static_assert(sizeof map <= sizeof words);
  std::memcpy(words.data(), &map, sizeof map);
  return words;
}

BoxMap decode(const void* map) {
  BoxMap result;
  std::memcpy(&result, map, sizeof result);
  return result.mark == map_mark ? result : BoxMap{};
}

}  // namespace tessera::internal::emulator
