// The CPU as a device: work is done immediately, on the calling thread.
#pragma once
#include <memory>

#include "jit/backend/backend.hpp"

namespace tessera::internal {

/// Throws Error if this CPU lacks instructions that the executor was compiled for.
const std::shared_ptr<DeviceBackend>& cpu_backend();

}  // namespace tessera::internal
