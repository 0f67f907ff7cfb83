// Operand tiles that matmuls read from shared memory in the tensor's order: their buffers, the steps that fill these,
// and the multi-stage software pipeline (cp.async) of loops.
#pragma once
#include "codegen/lower/lower_steps.hpp"

namespace tessera::internal::lowering {

class Fetches {
 public:
  /// Makes the buffers. Matmuls that read equal tiles share one.
  Fetches(Steps& steps, const std::map<Id, MatmulPlan>& matmuls);

  /// The matmul's plan with its buffers.
  const MatmulPlan& matmul(Id id) const { return matmuls_.at(id); }
  BufferId add_buffer(Buffer buffer);
  /// The loop that prefetches into a buffer; none: the buffer has one stage.
  LoopId loop_of(BufferId buffer) const;
  /// The loop whose prefetch is issued within this matmul; none: it is issued before the loop's body.
  LoopId within(Id matmul) const;

  /// At a load that no loop prefetches: fills its buffers.
  void in_place(Id load);
  /// The part of a loop that prefetches the operands of its matmuls from places known ahead.
  void ahead(RegionId region, Loop& loop);

 private:
  struct Tile {
    BufferId buffer;
    Axes rows, columns;  // of the load
  };
  BufferId buffer_for(Id load, const Axes& row_axes, const Axes& column_axes, ElementType stored, int rows,
                      int columns);
  bool is_known_ahead(Id id, RegionId region) const;
  int stages_for(const std::vector<Id>& loads) const;
  Fetch fetch(const std::vector<Id>& loads, LoopId loop);

  Steps& steps_;
  std::map<Id, MatmulPlan> matmuls_;
  std::map<Id, std::vector<Tile>> tiles_;  // by load
  std::vector<char> known_ahead_;          // by node
  std::set<Id> fetched_ahead_;
  std::map<BufferId, LoopId> loop_of_;
  std::map<Id, LoopId> within_;  // by matmul
  std::int64_t bytes_ = 0;  // of all buffers
};

}  // namespace tessera::internal::lowering
