// A profile as a table: kernels by time, with their shares of the device's bandwidth and peak.
#pragma once
#include <string>

#include "jit/profile/recorder.hpp"

namespace tessera::internal::profile {

std::string table_text(const Trace& trace);

}  // namespace tessera::internal::profile
