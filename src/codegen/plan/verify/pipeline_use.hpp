// The verifier's counts for a pipeline.
#pragma once
#include <cstdint>
#include <set>

#include "codegen/plan/sweep.hpp"

namespace tessera::internal::codegen {

/// A role's uses of a pipeline's stages in one run of a body.
struct PipelineUse {
  int acquired = 0, expected = 0;  // to fill them
  int arrived = 0;                 // threads, at the barrier of those that fill them
  int held = 0;                    // full already where the body begins
  int filled = 0, released = 0;    // to read them
  int advanced = 0;
  int owed = 0;                         // released in the next round, or behind the loop
  std::int64_t loaded = 0, stored = 0;  // bytes, by the copy engine and by threads
  std::set<BufferId> written;           // by threads that have not arrived since
  std::set<BufferId> unfenced;          // of those, that the matrix units may not see

  bool is_full() const { return held + filled > advanced; }
};

}  // namespace tessera::internal::codegen
