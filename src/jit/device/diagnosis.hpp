// The devices and libraries of this machine that kernels can run on, and where they were searched for.
#pragma once
#include <string>
#include <vector>

namespace tessera::internal {

/// The result of the search for one part.
struct Finding {
  std::string part;  ///< "driver", "GPU", "NVRTC", "nvdisasm", "emulator", "cache", "threads" or "settings"
  bool found;
  std::string text;       ///< where it is, and its version; or why it is missing, and where it was searched for
  std::string mend = {};  ///< how to get what is missing
};

/// All parts, in that order, with one finding for each GPU. Opens what it finds, as a launch would. Throws nothing.
std::vector<Finding> diagnose();

}  // namespace tessera::internal
