// The fields of a kind of step, by their use. A kind states them once, in a static function
//   template <class S> static void fields(S& s, auto&& f) { f.result(s.out); f.sweep(s.sweep); }
// in the order in which the step uses them. Effects, operands, results, bodies, checks of ids and walks over a plan
// follow from that. A kind without fields that name anything has no such function.
#pragma once
#include <cstdint>
#include <type_traits>
#include <vector>

#include "codegen/plan/sweep.hpp"

namespace tessera::internal::codegen {

struct Step;
using Body = std::vector<Step>;

/// Is shared memory, or a tensor, read or written?
enum class Use : std::uint8_t { read, write };

/// Sees no field. A visitor redeclares the functions that it needs, with these parameters; none is virtual, so that a name
/// that is not listed here is never called.
struct FieldVisitor {
  void value(ValueId) {}   ///< registers that the step reads
  void result(ValueId) {}  ///< registers that it makes or changes
  void operand(const Operand&) {}  ///< one value or literal
  void element(const Operand&) {}  ///< an operand for each element of the sweep
  void sweep(const Sweep&) {}
  void access(const TileAccess&, Use) {}  ///< by the threads that hold the sweep's elements
  void copy(const TileAccess&) {}         ///< read asynchronously, by any thread
  void scratch(ScratchId, Use) {}
  void peer_scratch(ScratchId) {}  ///< read; that of another CTA if it is in the workspace
  void buffer(BufferId, Use) {}
  void pipeline(PipelineId) {}
  void clipped_rows(PipelineId) {}  ///< writes the rows of its buffers that no TMA box fills
  void state(PipelineStateId) {}
  void map(TensorMapId) {}
  void loop(LoopId) {}      ///< a loop around the step
  void own_loop(LoopId) {}  ///< the loop that the step is
  template <class B>
  void body(B&) {}  ///< steps that it runs
  template <class B>
  void exchange(B&) {}  ///< steps that are a part of it: how warps combine their results
};

/// Calls the visitor for each field of a kind of step.
template <class Kind, class Visitor>
void each_field(Kind& kind, Visitor&& visitor) {
  if constexpr (requires { std::remove_const_t<Kind>::fields(kind, visitor); })
    std::remove_const_t<Kind>::fields(kind, visitor);
}

}  // namespace tessera::internal::codegen
