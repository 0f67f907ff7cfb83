// The limits of an architecture and of its compiler, for the decisions of passes.
#pragma once
#include <cstdint>

#include "tessera/codegen/arch.hpp"

namespace tessera::internal {

struct Target {
  /// Which instructions kernels may be lowered to.
  enum class Tier : std::uint8_t {
    mma_sync,  ///< mma.sync and cp.async: every GPU from sm_80 on
    wgmma,     ///< also TMA, mbarriers and wgmma: sm_90a
  };

  Arch arch;
  Tier tier = Tier::mma_sync;
  bool programmatic_launch = false;    ///< PDL: a launch may begin while the one before it ends
  bool l2_policy = false;              ///< L2 writes in better order if it retains read data longer (evict_last)
  int shared_bytes = 0;                ///< maximum bytes of shared memory of a CTA
  int registers = 65536;               ///< registers of a multiprocessor
  int parts = 4;                       ///< partitions of a multiprocessor, each with its share of registers and warps
  int register_unit = 8;               ///< registers of a thread are allocated in multiples of it
  int most_registers = 255;            ///< maximum registers of a thread
  int threads = 1536;                  ///< threads of a multiprocessor for which schedules are made: every architecture has them
  int resident_threads = 1536;         ///< maximum threads of a multiprocessor at a time
  int resident_blocks = 16;            ///< maximum CTAs of a multiprocessor at a time (CUDA C++ Programming Guide)
  int most_blocks = 8;                 ///< CTAs per multiprocessor beyond which fewer registers each do not pay off
  int registers_besides = 20;          ///< registers of a thread that ptxas needs besides values: addresses, counters
  int registers_besides_matmuls = 28;  ///< the same in kernels with matmuls
  int registers_more_for_matmuls = 0;  ///< from sm_100 on ptxas needs more for the same matmul
  int registers_ahead = 32;            ///< registers, per tile, of epilogue loads that ptxas hoists
  int registers_of_epilogue = 32;      ///< accumulators on their way to memory, besides data that was read ahead
  int registers_of_parts = 58;         ///< partials that come from other CTAs
  int registers_of_stream_k = 6;       ///< state of a CTA's iteration over its stream-K range
  int registers_of_reads = 0;          ///< consecutive reads with more registers stay in order; 0: ptxas decides
  int unrolled_k = 2;                  ///< unrolled k-steps of a matmul on FMA units
  int shared_bytes_of_system = 1024;   ///< of each CTA, beside its own (CUDA C++ Programming Guide)
  std::int64_t shared_bytes_besides = 4096;  ///< bytes of shared memory that staging leaves for exchanges

  /// Without `warp_specialize`: the lowest tier.
  static Target of(Arch arch, bool warp_specialize = true);
};

}  // namespace tessera::internal
