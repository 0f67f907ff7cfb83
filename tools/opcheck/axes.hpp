// Cases of ops that work along one axis of a tile.
#pragma once
#include "opcheck/case.hpp"

namespace tessera::internal::opcheck {

/// What becomes of the axis.
enum class Axis : std::uint8_t { one, kept };

/// Of an op that makes elements of type `result`, along each axis in turn; to measure, along the last.
std::vector<Case> along_axes(Op op, ElementType type, ElementType result, Axis axis, Purpose purpose);

}  // namespace tessera::internal::opcheck
