// The table of launches that a persistent kernel reads.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codegen/persistent_source.hpp"
#include "jit/backend/backend.hpp"

namespace tessera::internal {

/// The table. `reports` are the addresses of the mailboxes of the launches' kernels. A launch may read tensors before
/// it waits if the launch before it, whose CTAs may be running, does not write them.
std::vector<std::byte> launch_table(const PersistentSource& source, std::span<const DeviceLaunch> launches,
                                    std::span<const std::uintptr_t> reports);

}  // namespace tessera::internal
