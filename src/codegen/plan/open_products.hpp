// Products of wgmma that are under way, and what of theirs a role's steps have to keep out of.
#pragma once
#include <deque>
#include <map>
#include <set>

#include "codegen/plan/verify.hpp"

namespace tessera::codegen {

class OpenProducts {
 public:
  explicit OpenProducts(Findings& findings) : findings_(findings), plan_(findings.plan) {}

  void fence();
  void start(const Wgmma& product, const Role& role);
  void commit();
  void wait(int pending);
  bool none() const { return open_ == 0 && groups_.empty(); }

  /// A stage is full, and what follows reads it; until all of it is multiplied.
  void begin_stage();
  void end_stage();
  /// May products read other stages than the last ones?
  bool read_before(int last) const;

  /// A step takes a value, or makes it.
  void use(ValueId value) const;
  void make(ValueId value);

 private:
  struct Part {
    int multiplied = 0, whole = 0;  // along k
  };

  void left(const Wgmma& product, int groups) const;
  void operand(const Buffer& buffer, int other, bool k_major, const Wgmma& product) const;
  StorageId storage(ValueId value) const { return plan_.values[value].storage; }

  Findings& findings_;
  const Plan& plan_;
  bool fenced_ = false;
  int open_ = 0;                            // that are not committed
  std::deque<std::set<StorageId>> groups_;  // that are, and their left operands in registers
  std::set<StorageId> sums_, left_;         // of open ones
  std::set<StorageId> unfenced_;            // pairs that wgmma may not see
  std::deque<int> readers_;                 // groups since each stage was full
  std::map<StorageId, Part> of_stage_;      // by sums
};

}  // namespace tessera::codegen
