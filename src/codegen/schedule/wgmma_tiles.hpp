// Tiles in the form that wgmma takes: shared by all warp-specialized kernels.
#pragma once
#include <string>

#include "codegen/schedule/matmul_plan.hpp"

namespace tessera::internal::lowering {

inline constexpr int panel_bytes = 128;  ///< bytes of a panel's row: those of the swizzle

/// The axes of an operand's load: those of k and the others, and those of its buffer's rows and columns.
struct OperandAxes {
  Axes k, other;
  bool k_major = true;  ///< the buffer's rows run along k: they do unless neighbors in memory are along the other axes
  const Axes& rows() const { return k_major ? other : k; }
  const Axes& columns() const { return k_major ? k : other; }
};
OperandAxes operand_axes(const GraphAnalysis& analysis, const Source& source, bool left);

/// Why a load or a store cannot have its tile in panels of a buffer with these axes, in a few words; "": it can.
std::string why_no_panels(const GraphAnalysis& analysis, Id access, const OperandAxes& axes);

/// Can TMA move the tile of a load or a store, with a matrix's columns along axis `columns`?
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
