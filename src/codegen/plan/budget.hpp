// What a plan may take of a multiprocessor, and what it is estimated to take before there is code. ptxas's logs hold
// both to account in the tests.
#pragma once
#include "codegen/plan/plan.hpp"
#include "codegen/target.hpp"

namespace tessera::codegen {

class Budget {
 public:
  Budget(const Target& target, int threads, bool has_products)
      : target_(target), threads_(threads), has_products_(has_products) {}

  /// Registers of a thread that its values may take.
  int registers() const;
  /// Blocks of a multiprocessor, at a time, of threads whose values take so many.
  int blocks(int registers) const;

 private:
  int besides_products() const { return has_products_ ? target_.registers_more_for_products : 0; }

  const Target& target_;
  int threads_;
  bool has_products_;
};

/// Bytes of shared memory that tiles of products may take: one stage beside others, and the stages of a loop that has
/// more than two, which leave room for a second block.
std::int64_t staging_bytes(const Target& target, int stages);

/// Registers of a thread that hold values at the fullest point, by an estimate that knows no spill.
int pressure(const Plan& plan);

}  // namespace tessera::codegen
