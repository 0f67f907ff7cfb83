// The parameters of a launch, from the table kernel_parameters.def.
#pragma once
#include <bit>
#include <cstddef>
#include <span>

#include "codegen/schedule/raster_order.hpp"
#include "codegen/target/kernel_parameter.hpp"
#include "tessera/graph/argument.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal {

/// Values that a launch adds to arguments and grid. Addresses are of device memory.
struct LaunchValues {
  std::int64_t blocks = 0, at_once = 0;  ///< grid tiles, and CTAs or clusters that run them at the same time
  std::uintptr_t workspace = 0, flags = 0, reports = 0;
  int lockstep_rows = 0;
  bool ahead = false;
};

/// The size of a parameter in bytes, which is also its alignment up to that of a tensor map.
inline std::size_t bytes_of(const KernelParameter& parameter, const Graph& graph, bool index64) {
  const std::size_t index_bytes = index64 ? 8 : 4;
  const auto scalar_bytes = [&] {
    return static_cast<std::size_t>(info(graph.parameters[static_cast<std::size_t>(parameter.argument)].type).bytes);
  };
  switch (parameter.kind) {
#define KERNEL_PARAMETER(kind, bytes, type, name, value) \
  case KernelParameter::Kind::kind:                      \
    return bytes;
#include "codegen/target/kernel_parameters.def"
  }
  throw InternalError("a kernel parameter of no kind");
}

/// The value of a parameter other than a tensor map. A smaller parameter has its first bytes (little endian).
inline std::int64_t value_of(const KernelParameter& parameter, std::span<const Argument> arguments,
                             std::span<const std::int64_t> grid, const LaunchValues& launch) {
  const auto axis = static_cast<std::size_t>(parameter.axis);
  const auto argument = [&]() -> const Argument& { return arguments[static_cast<std::size_t>(parameter.argument)]; };
  const auto address = [](auto pointer) { return std::bit_cast<std::int64_t>(pointer); };
  const auto bits = [](const Cell& scalar) { return std::bit_cast<std::int64_t>(scalar); };
  const auto no_value = []() -> std::int64_t { throw InternalError("a tensor map does not fit in 64 bits"); };
  switch (parameter.kind) {
#define KERNEL_PARAMETER(kind, bytes, type, name, value) \
  case KernelParameter::Kind::kind:                      \
    return value;
#include "codegen/target/kernel_parameters.def"
  }
  throw InternalError("a kernel parameter of no kind");
}

}  // namespace tessera::internal
