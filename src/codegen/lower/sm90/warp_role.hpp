// The base of the producer and the consumers of a warp-specialized kernel: both go from grid tile to grid tile, each
// with a state of every pipeline.
#pragma once
#include "codegen/lower/graph_lowering.hpp"
#include "codegen/lower/sm90/matmul_pipelines.hpp"

namespace tessera::internal::lowering {

class WarpRole {
 protected:
  WarpRole(const MatmulPipelines& pipelines, GraphLowering& graph, std::string_view name);

  /// Steps are attributed to the first matmul.
  template <class Kind>
  void push(Kind kind) const {
    steps_.push(how_.matmuls[0].id, std::move(kind));
  }
  /// One of every `threads` threads runs it.
  template <class Inside>
  void elected(int threads, const Inside& inside) const {
    steps_.elect(how_.matmuls[0].id, threads, inside);
  }
  void set_registers(int registers, bool more) const {
    if (registers > 0) push(SetMaxNReg{registers, more});
  }

  /// Lowers the role's nodes outside of loops and branches for which `which` holds.
  template <class Which>
  void nodes(const Which& which) const {
    for (const Id id : analysis_.order[0])
      if (graph_.does(id) && which(id)) graph_.node(id);
  }
  /// Numbers that are computed before the first grid tile.
  void launch_numbers();
  /// For each of the CTA's grid tiles, or for each `step`-th.
  template <class Inside>
  void grid_tiles(int step, const Inside& inside) {
    TileLoop loop{.first = 0, .step = step, .body = {}};
    const bool by_grid = how_.split_k == SplitK::stream_k;
    if (by_grid) loop.k_iterations = all_k_iterations();
    steps_.within(loop.body, [&] {
      if (by_grid) split_k_range();
      inside();
    });
    push(std::move(loop));
  }
  /// After the last grid tile.
  void end_role() const {
    if (how_.multicast) push(ClusterBarrier{});
  }
  Operand all_k_iterations() const { return steps_.scalar(steps_.node(how_.loop).in[0]); }
  /// The CTA's share of the k-iterations, with split-K; otherwise all.
  Iterations k_iterations() const;
  PipelineStateId state_of(int tile) const { return states_[static_cast<std::size_t>(pipeline_of(tile))]; }
  int pipeline_of(int tile) const { return pipelines_.tiles[static_cast<std::size_t>(tile)].pipeline; }

  const MatmulPipelines& pipelines_;
  const WarpSpecialization& how_;
  const GraphAnalysis& analysis_;
  GraphLowering& graph_;
  Steps& steps_;
  std::vector<PipelineStateId> states_;  // of the schedule's pipelines
  SplitKRange share_;                    // with split-K

 private:
  void split_k_range();
};

}  // namespace tessera::internal::lowering
