// Tiles as wgmma takes them: what all kernels by roles share, whichever way their work is divided.
#pragma once
#include <string>

#include "codegen/schedule/matmul_plan.hpp"

namespace tessera::internal::lowering {

inline constexpr int panel_bytes = 128;  ///< of a row of a panel: the swizzle's

/// Do the rows of an operand's buffer run along k? They do unless its neighbours in memory are along `other`, the axis
/// of its load that is not k.
bool is_k_major(const GraphAccess& access, int other);

/// Why a tile of so many rows and columns cannot lie in panels, in a few words; "": it can.
std::string why_no_panels(int rows, int columns, ElementType type);

/// A product whose rows so many warp groups share; its left operand comes from shared memory or from registers.
MatmulPlan wgmma_plan(const GraphAnalysis& analysis, Id matmul, int groups, bool left_from_registers);

/// Is it zero in each element?
bool is_zeros(const GraphAnalysis& analysis, Id id);

}  // namespace tessera::internal::lowering
