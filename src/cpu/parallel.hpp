// Runs the blocks of a grid on all cores.
#pragma once
#include <cstdint>

namespace tessera::internal::cpu {

/// Calls body(context, begin, end) for disjoint ranges that make up [0, count), on several threads. The first exception
/// of a body is thrown again here.
void parallel_for(std::int64_t count, void (*body)(void* context, std::int64_t begin, std::int64_t end), void* context);

/// How many threads parallel_for may use; 0, or more than there are cores: one for each. Takes effect before the first
/// parallel_for.
void set_threads(int threads);
int threads();

/// What this machine's CPU lacks of what the executor was compiled for; empty if nothing.
const char* missing_instructions();

}  // namespace tessera::internal::cpu
