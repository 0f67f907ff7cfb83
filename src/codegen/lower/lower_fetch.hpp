// Tiles that products read in shared memory as they lie in tensors: their buffers, and the steps that fill those.
#pragma once
#include "codegen/lower/lower_steps.hpp"

namespace tessera::internal::lowering {

class Fetches {
 public:
  /// Makes the buffers. Products that read equal tiles share one.
  Fetches(Steps& steps, const std::map<Id, MatmulPlan>& matmuls);

  /// With its buffers.
  const MatmulPlan& matmul(Id id) const { return matmuls_.at(id); }
  BufferId add_buffer(Buffer buffer);
  /// The loop that fetches ahead into a buffer; none: it has one stage.
  LoopId loop_of(BufferId buffer) const;
  /// The loop whose fetch ahead stands within this product; none: it stands ahead of the body.
  LoopId within(Id matmul) const;

  /// Where a load stands that no loop fetches ahead: fills its buffers.
  void in_place(Id load);
  /// The part of a loop that fetches ahead what its products read, of places that are known ahead.
  void ahead(RegionId region, Loop& loop);

 private:
  struct Tile {
    BufferId buffer;
    int row_axis = -1, column_axis = -1;  // of the load, or -1
  };
  BufferId buffer_for(Id load, int row_axis, int column_axis, ElementType stored, int rows, int columns);
  bool is_known_ahead(Id id, RegionId region) const;
  int stages_for(const std::vector<Id>& loads) const;
  Fetch fetch(const std::vector<Id>& loads, LoopId loop);

  Steps& steps_;
  std::map<Id, MatmulPlan> matmuls_;
  std::map<Id, std::vector<Tile>> tiles_;  // of loads
  std::vector<char> known_ahead_;          // by node
  std::set<Id> fetched_ahead_;
  std::map<BufferId, LoopId> loop_of_;
  std::map<Id, LoopId> within_;  // of products
  std::int64_t bytes_ = 0;  // of all buffers
};

}  // namespace tessera::internal::lowering
