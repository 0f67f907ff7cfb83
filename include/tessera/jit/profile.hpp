// The trace of TESSERA_PROFILE, for programs that run for long.
#pragma once

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// Writes the trace of TESSERA_PROFILE as it is now; the profile goes on. Otherwise it is written when the process
/// ends. Does nothing if there is no such trace. Throws Error if the file cannot be written.
void flush_profile();

}  // namespace internal
}  // namespace tessera
