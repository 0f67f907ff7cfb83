// Shared between the roles of a matmul: the pipeline with the tiles of all operands, and the registers of each role.
#pragma once
#include "codegen/lower/lower_fragments.hpp"
#include "codegen/schedule/gemm.hpp"

namespace tessera::internal::lowering {

class MatmulPipeline {
 public:
  MatmulPipeline(const GraphAnalysis& analysis, const WarpSpecializedGemm& how, const std::map<Id, MatmulPlan>& matmuls,
                 Plan& plan);

  /// A tile that the producer copies and matmuls read; `left`: as their left operand.
  struct Operand {
    Id load;
    bool left;
    BufferId buffer;
    bool k_major;
    int rows, columns;  ///< axes of the load
    bool by_threads;
    TensorMapId map;  ///< if not `by_threads`
  };

  /// May a tensor have fewer rows than a stage?
  bool is_clipped() const { return !plan.pipelines[pipeline].clipped.empty(); }
  /// Registers of a producer thread for data that it copies.
  int of_copies_under_way(int element_bytes) const;
  /// Registers of a thread. 0, not set, for one consumer group of one warp group: threads have the maximum anyway.
  int producer_registers() const;
  int consumer_registers() const;

  const GraphAnalysis& analysis;
  const WarpSpecializedGemm& how;
  const int m, n, k;
  Plan& plan;
  std::vector<Operand> operands;
  std::map<Id, std::size_t> left, right;  ///< by matmul, among the operands
  std::map<Id, StagedTile> tiles;         ///< of computed left operands
  PipelineId pipeline;
  bool prefetches = false;  ///< right operands, mostly weights, before the PDL wait

 private:
  MatmulPipeline(const GraphAnalysis& analysis, const WarpSpecializedGemm& how, const Matmul& matmul, Plan& plan)
      : analysis(analysis), how(how), m(matmul.m), n(matmul.n), k(matmul.k), plan(plan) {}
  bool may_prefetch() const;
  bool copies_many() const;
  std::size_t operand(const Source& source, bool is_left, ElementType type);
  Operand new_operand(const Source& source, bool is_left, bool transposed, ElementType type);
};

}  // namespace tessera::internal::lowering
