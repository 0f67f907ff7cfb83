// Tiles in the form that wgmma takes: shared by all warp-specialized kernels.
#pragma once
#include <string>

#include "codegen/schedule/matmul_plan.hpp"

namespace tessera::internal::lowering {

inline constexpr int panel_bytes = 128;  ///< bytes of a panel's row: those of the swizzle

/// Do the rows of an operand's buffer run along k? They do unless its neighbors in memory are along `other`, the axis
/// of its load that is not k.
bool is_k_major(const GraphAccess& access, int other);

/// Why a tile of `rows` and `columns` cannot be stored in panels, in a few words; "": it can.
std::string why_no_panels(int rows, int columns, ElementType type);

/// A matmul whose rows `groups` warp groups share; its left operand comes from shared memory or from registers.
MatmulPlan wgmma_plan(const GraphAnalysis& analysis, Id matmul, int groups, bool left_from_registers);

/// Are all its elements zero?
bool is_zeros(const GraphAnalysis& analysis, Id id);

}  // namespace tessera::internal::lowering
