// wgmma instructions in flight, and the registers and stages that a role's steps must not touch meanwhile.
#pragma once
#include <deque>
#include <map>
#include <set>

#include "codegen/plan/verify/verify.hpp"

namespace tessera::internal::codegen {

class OpenMatmuls {
 public:
  explicit OpenMatmuls(Diagnostics& diagnostics) : diagnostics_(diagnostics), plan_(diagnostics.plan) {}

  void fence();
  void start(const Wgmma& matmul, const Role& role);
  /// Zeroed sums may be promoted before a matmul sets them.
  void declare(const DeclareAccumulator& declared);
  /// Sums are promoted once, to the accumulators of their matmul; end_tile: all of them must be.
  void promote(const PromoteSums& promoted);
  void end_tile();
  void commit();
  void wait(int pending);
  bool none() const { return open_ == 0 && groups_.empty(); }

  /// The next stage of a pipeline is full and may be read. end_stage: all of it must be multiplied.
  void begin_stage(PipelineStateId state);
  void end_stage();
  /// May wgmma in flight read the stage `before` stages before the last full one, or an earlier one?
  bool read_until(PipelineStateId state, int before) const;

  /// A step reads a value, or defines it.
  void use(ValueId value) const;
  void make(ValueId value);

 private:
  struct Part {
    int multiplied = 0, whole = 0;  // along k
  };
  struct Group {
    std::set<StorageId> sums, left;              // results, and left operands in registers
    std::map<PipelineStateId, int> first_stage;  // first stage that it reads, by number of full stages
  };

  void left(const Wgmma& matmul, int groups, RowOrder order) const;
  void multiplied(const Wgmma& matmul);
  void is_free(ValueId value) const;
  /// `other` rows or columns of the buffer, from `first` on, are an operand.
  void operand(const Buffer& buffer, PipelineStateId state, int first, int other, bool k_major,
               const Wgmma& matmul) const;
  StorageId storage(ValueId value) const { return plan_.values[value].storage; }

  Diagnostics& diagnostics_;
  const Plan& plan_;
  bool fenced_ = false;
  int open_ = 0;                           // wgmma that are not committed
  Group next_;                             // these
  std::deque<Group> groups_;               // committed
  std::set<StorageId> unfenced_;           // written without a fence since
  std::map<PipelineStateId, int> stages_;  // number of full stages so far
  std::map<StorageId, Part> of_stage_;     // by accumulator
  struct Sums {
    ValueId value;           // none: zeros
    StorageId accumulators;  // to which they are promoted
  };
  struct Columns {
    int count = 0;
    BufferId right;
    Part part;
  };
  std::map<StorageId, Sums> sums_;                        // that are not promoted yet
  std::map<std::pair<StorageId, int>, Columns> columns_;  // fp8, by accumulators and first column
};

}  // namespace tessera::internal::codegen
