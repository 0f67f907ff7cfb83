// Runs a kernel written in CUDA C++ on the host, by the host function that its author supplied.
#pragma once
#include <memory>

#include "jit/backend/backend.hpp"

namespace tessera::internal {

/// Throws Error if the kernel has no host function.
std::unique_ptr<DeviceKernel> host_function(const Graph& graph);

}  // namespace tessera::internal
