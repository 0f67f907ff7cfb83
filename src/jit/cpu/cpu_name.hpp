// The model of this machine's CPU.
#pragma once
#include <string>

namespace tessera::internal {

/// As Linux knows it: "Intel(R) Xeon(R) Processor"; "unknown" if it does not.
std::string cpu_name();

}  // namespace tessera::internal
