// Resources of a multiprocessor that a plan may take, and an estimate of what it takes (register pressure) before there
// is code. The tests compare both with ptxas's logs.
#pragma once
#include <set>

#include "codegen/plan/plan.hpp"
#include "codegen/target/target.hpp"

namespace tessera::internal::codegen {

class Budget {
 public:
  Budget(const Target& target, int threads, bool has_matmuls)
      : target_(target), threads_(threads), has_matmuls_(has_matmuls) {}

  /// Registers that a thread can have when a multiprocessor holds `blocks` CTAs at a time. ptxas takes no more.
  int limit(int blocks) const;
  /// Registers of a thread that its values may take.
  int registers() const;
  /// Registers of a thread in each of `groups` warp groups of a CTA when the threads of one more group keep `left`
  /// each, and a multiprocessor holds `blocks` CTAs at a time.
  int taken(int groups, int left, int blocks) const;
  /// Are there registers for `blocks` CTAs on a multiprocessor at a time, if a thread needs `needed` for values?
  bool holds(int blocks, int needed) const { return needed <= limit(blocks) - besides(); }
  /// CTAs per multiprocessor for a plan whose threads need `needed` registers for values.
  int blocks(const Plan& plan, int needed) const;

 private:
  int besides() const;  // registers that hold no values
  int besides_matmuls() const { return has_matmuls_ ? target_.registers_more_for_matmuls : 0; }

  const Target& target_;
  int threads_;
  bool has_matmuls_;
};

/// Bytes of shared memory of a CTA when a multiprocessor holds `blocks` of them at a time.
int shared_bytes_of_block(const Target& target, int blocks);

/// Bytes of shared memory available to operand tiles of matmuls: all of it for up to two stages. A loop with more
/// stages leaves room so that `blocks` CTAs fit on a multiprocessor.
std::int64_t staging_bytes(const Target& target, int stages, int blocks = 2);

/// Registers of a thread at the point of highest pressure; the estimate assumes no spills.
struct Pressure {
  int values = 0;  ///< with an index for each element that is moved on its own; other addresses can wait
  int all = 0;     ///< with the addresses of gathers and of the tiles that expressions read
};
/// With `in_place`, the result of a step takes the registers of operands that are dead after it. The storages `without`
/// do not count.
Pressure pressure(const Plan& plan, bool in_place = false, const std::set<StorageId>& without = {});

/// For a warp-specialized plan: registers that a consumer thread needs, with ptxas's overhead, and registers that it
/// has.
struct RolePressure {
  int values = 0, room = 0;
};
RolePressure role_pressure(const Plan& plan, bool reads_ahead);

}  // namespace tessera::internal::codegen
