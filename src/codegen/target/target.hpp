// What an architecture gives to a kernel, and what is known of its compiler: all limits that passes plan by.
#pragma once
#include <cstdint>

#include "tessera/codegen/arch.hpp"

namespace tessera::internal {

struct Target {
  /// Which instructions kernels may be lowered to.
  enum class Tier : std::uint8_t {
    mma_sync,  ///< what every GPU from sm_80 on has: mma.sync, cp.async
    wgmma,     ///< sm_90a's copy engine, barriers in memory and wgmma, too
  };

  Arch arch;
  Tier tier = Tier::mma_sync;
  bool programmatic_launch = false;    ///< a launch may begin while the one before it ends
  bool l2_policy = false;              ///< the L2 cache writes in better order if it keeps what was read longer
  int shared_bytes = 0;                ///< of shared memory that one block may have
  int registers = 65536;               ///< of a multiprocessor
  int parts = 4;                       ///< of a multiprocessor: each has its share of the registers, for its warps
  int register_unit = 8;               ///< registers of a thread come in multiples of it
  int most_registers = 255;            ///< of a thread
  int threads = 1536;                  ///< of a multiprocessor, on every architecture at least
  int resident_blocks = 16;            ///< of a multiprocessor at a time, at most (CUDA C++ Programming Guide)
  int most_blocks = 8;                 ///< of a multiprocessor that are worth fewer registers for each
  int registers_besides = 20;          ///< that ptxas takes in a thread besides those of values: addresses, counters
  int registers_besides_matmuls = 28;  ///< the same where products are
  int registers_more_for_matmuls = 0;  ///< from sm_100 on ptxas takes more for the same product
  int registers_ahead = 32;            ///< ptxas brings as much of what sums are stored with forward, of each tile
  int registers_of_epilogue = 32;      ///< of several sums on their way to memory, beside what was read ahead
  int registers_of_parts = 58;         ///< of sums that come from other blocks of threads
  int registers_of_stream_k = 12;      ///< of a block on its way through its part of a grid's rounds
  int registers_of_reads = 0;          ///< of reads in a row beyond which they stay in order; 0: ptxas knows when
  int unrolled_k = 2;                  ///< of k of a product in fused multiply-adds that are written out
  std::int64_t shared_bytes_besides = 4096;  ///< of shared memory that staging leaves to exchanges between threads

  /// Without `specialise` of the lowest tier.
  static Target of(Arch arch, bool warp_specialize = true);
};

}  // namespace tessera::internal
