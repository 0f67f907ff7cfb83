// Profiling: what a program can tell the profiler, which TESSERA_PROFILE turns on. See docs/profiling.md.
#pragma once
#include "tessera/jit/profile.hpp"

namespace tessera {
using internal::flush_profile;
}  // namespace tessera
