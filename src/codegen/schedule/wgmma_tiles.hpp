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

/// Can TMA move the tile of a load or a store whose axis `columns` is that of a matrix's columns?
bool is_addressed(const GraphAnalysis& analysis, const GraphAccess& access, int columns);

/// Why wgmma cannot read an operand from shared memory in the order and type that global memory has, in a few words;
/// "": it can.
std::string why_not_as_it_is(const GraphAnalysis& analysis, Id operand, bool left);

/// Does the matmul only add to an accumulator that a loop carries?
bool only_accumulates(const GraphAnalysis& analysis, Id matmul);

/// A matmul whose rows `groups` warp groups share; its left operand comes from shared memory or from registers.
MatmulPlan wgmma_plan(const GraphAnalysis& analysis, Id matmul, int groups, bool left_from_registers,
                      RowOrder order = RowOrder::natural);

/// Are all its elements zero?
bool is_zeros(const GraphAnalysis& analysis, Id id);

}  // namespace tessera::internal::lowering
