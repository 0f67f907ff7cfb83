// A kernel in CUDA C++ on a device that is the host: the function that its author gave for it.
#pragma once
#include <memory>

#include "jit/backend/backend.hpp"

namespace tessera::internal {

/// Throws Error if the kernel has no such function.
std::unique_ptr<DeviceKernel> host_function(const Graph& graph);

}  // namespace tessera::internal
