// The verifier's counters for a pipeline.
#pragma once
#include <cstdint>
#include <set>

#include "codegen/plan/verify/verify.hpp"

namespace tessera::internal::codegen {

/// A role's uses of a pipeline's stages in one execution of a body.
struct PipelineUse {
  int acquired = 0, expected = 0;  // by the writer
  int arrived = 0;                 // arrivals of threads at full barriers
  int held = 0;                    // full when the body begins
  int filled = 0, released = 0;    // by the reader
  int advanced = 0;
  int owed = 0;                         // released in the next iteration, or after the loop
  std::int64_t loaded = 0, stored = 0;  // bytes, by TMA and by threads
  std::set<BufferId> written;           // by threads that have not arrived since
  std::set<BufferId> unfenced;          // of these, not yet visible to wgmma

  bool is_full() const { return held + filled > advanced; }
};

/// Does a body that ran leave the pipeline as it found it?
void check_balance(Diagnostics& diagnostics, PipelineStateId id, const PipelineUse& use);

}  // namespace tessera::internal::codegen
