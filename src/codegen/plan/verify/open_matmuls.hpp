// Products of wgmma that are under way, and what of theirs a role's steps have to keep out of.
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
  void commit();
  void wait(int pending);
  bool none() const { return open_ == 0 && groups_.empty(); }

  /// The next stage at a cursor is full, and what follows reads it; until all of it is multiplied.
  void begin_stage(PipelineStateId state);
  void end_stage();
  /// May products read the stage so many before the last full one, or an earlier one?
  bool read_until(PipelineStateId state, int before) const;

  /// A step takes a value, or makes it.
  void use(ValueId value) const;
  void make(ValueId value);

 private:
  struct Part {
    int multiplied = 0, whole = 0;  // along k
  };
  struct Group {
    std::set<StorageId> sums, left;              // results, and left operands in registers
    std::map<PipelineStateId, int> first_stage;  // that it reads, as the cursor's stages are counted
  };

  void left(const Wgmma& matmul, int groups) const;
  void operand(const Buffer& buffer, PipelineStateId state, int other, bool k_major, const Wgmma& matmul) const;
  StorageId storage(ValueId value) const { return plan_.values[value].storage; }

  Diagnostics& diagnostics_;
  const Plan& plan_;
  bool fenced_ = false;
  int open_ = 0;                           // that are not committed
  Group next_;                             // those
  std::deque<Group> groups_;               // that are
  std::set<StorageId> unfenced_;           // what wgmma may not see
  std::map<PipelineStateId, int> stages_;  // that were full
  std::map<StorageId, Part> of_stage_;     // by sums
};

}  // namespace tessera::internal::codegen
