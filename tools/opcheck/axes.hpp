// Cases of ops that work along one axis of a tile.
#pragma once
#include "opcheck/case.hpp"

namespace tessera::internal::opcheck {

/// The result's extent along the axis.
enum class Axis : std::uint8_t { one, kept };

/// For an op with elements of type `result`, along each axis in turn; to measure, along the last.
std::vector<Case> along_axes(Op op, ElementType type, ElementType result, Axis axis, Purpose purpose);

}  // namespace tessera::internal::opcheck
