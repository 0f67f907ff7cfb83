// A profile as JSON in the trace event format, which Perfetto and chrome://tracing open (Google, "Trace Event Format").
#pragma once
#include <string>

#include "jit/profile/recorder.hpp"

namespace tessera::internal::profile {

/// Each thread is a track, and so is each stream. Events of a track follow one another or, on a thread, nest. What
/// overlaps otherwise, such as launches with PDL, is on further tracks of its thread or stream.
std::string trace_json(const Trace& trace);

}  // namespace tessera::internal::profile
