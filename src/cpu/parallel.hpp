// Runs the tiles of a grid on all cores.
#pragma once
#include <chrono>
#include <cstdint>
#include <span>

namespace tessera::internal::cpu {

/// Calls body(context, begin, end) for disjoint ranges that cover [0, count), on several threads. Rethrows the first
/// exception of a body.
void parallel_for(std::int64_t count, void (*body)(void* context, std::int64_t begin, std::int64_t end), void* context);

/// One thread's part of a loop: from its first range to the end of its last one.
struct LoopPart {
  std::uint64_t thread;  ///< the system's number for it
  std::chrono::steady_clock::time_point begin, end;
};
/// Is told the parts of each loop when the loop has ended, on the thread that ran it; null: nobody is.
using LoopWatch = void (*)(std::span<const LoopPart> parts);
void watch_loops(LoopWatch watch);

/// The number of threads that parallel_for may use; 0, or more than there are cores: one per core. Takes effect before
/// the first parallel_for.
void set_threads(int threads);
int threads();

/// The CPU features that the executor was compiled for and this machine lacks; empty if none.
const char* missing_instructions();

}  // namespace tessera::internal::cpu
