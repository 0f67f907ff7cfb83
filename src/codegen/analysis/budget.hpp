// What a plan may take of a multiprocessor, and what it is estimated to take before there is code. ptxas's logs hold
// both to account in the tests.
#pragma once
#include "codegen/plan/plan.hpp"
#include "codegen/target/target.hpp"

namespace tessera::internal::codegen {

class Budget {
 public:
  Budget(const Target& target, int threads, bool has_matmuls)
      : target_(target), threads_(threads), has_matmuls_(has_matmuls) {}

  /// Registers that a thread can have, of a multiprocessor that holds so many blocks at a time. ptxas takes no more.
  int limit(int blocks) const;
  /// Registers of a thread that its values may take.
  int registers() const;
  /// Registers of a thread that `groups` warp groups of a block may take when those of one more group keep `left`.
  int taken(int groups, int left) const;
  /// Are there registers for so many blocks of a multiprocessor at a time, whose threads need so many for values?
  bool holds(int blocks, int needed) const { return needed <= limit(blocks) - besides(); }
  /// Blocks of a multiprocessor, at a time, for a plan whose threads need so many registers for values.
  int blocks(const Plan& plan, int needed) const;

 private:
  int besides() const;  // those of values
  int besides_matmuls() const { return has_matmuls_ ? target_.registers_more_for_matmuls : 0; }

  const Target& target_;
  int threads_;
  bool has_matmuls_;
};

/// Bytes of shared memory that tiles of products may take: one stage beside others, and the stages of a loop that has
/// more than two, which leave room for a second block, where `blocks` of a multiprocessor are two.
std::int64_t staging_bytes(const Target& target, int stages, int blocks = 2);

/// Registers of a thread at the fullest point, by an estimate that knows no spill.
struct Pressure {
  int values = 0;  ///< and an index for each element that is moved alone: the others can wait
  int all = 0;     ///< and the addresses of what gathers and expressions read
};
/// With `in_place`, what a step computes from values that are needed no more takes their registers.
Pressure pressure(const Plan& plan, bool in_place = false);

/// Of a plan by roles: registers of a thread that multiplies, with what ptxas takes more; and what the role has.
struct RolePressure {
  int values = 0, room = 0;
};
RolePressure role_pressure(const Plan& plan, bool reads_ahead);

}  // namespace tessera::internal::codegen
