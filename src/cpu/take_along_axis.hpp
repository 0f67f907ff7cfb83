// Elements at computed positions along one axis.
#pragma once
#include "cpu/lines.hpp"

namespace tessera::internal::cpu {

/// The elements of each line of the tile at the positions, i32, of the same line; 0 at positions outside of it.
void take_along_axis(HostType type, const Lines& tile, const Lines& positions, char* out);

}  // namespace tessera::internal::cpu
