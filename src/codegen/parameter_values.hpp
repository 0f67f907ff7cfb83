// The parameters of a launch, from the table kernel_parameters.def.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "codegen/schedule/raster_order.hpp"
#include "codegen/target/kernel_parameter.hpp"
#include "tessera/graph/argument.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal {

/// Values that a launch adds to arguments and grid. Addresses are of device memory.
struct LaunchValues {
  std::int64_t blocks = 0, at_once = 0;  ///< grid tiles, and CTAs or clusters that run them at the same time
  std::uintptr_t workspace = 0, flags = 0, reports = 0, stamps = 0;
  int lockstep_rows = 0;
  bool may_prefetch = false;
  std::uint32_t stamp_room = 0;
};

/// Where a kernel finds the parts of a tensor of a list: struct ListedTensor in prelude/lists.cuh.
struct TensorPlace {
  std::size_t extents, strides, bytes;  ///< of the first extent and stride; of the whole

  TensorPlace(int rank, bool index64) {
    const auto axes = static_cast<std::size_t>(rank), index = index64 ? sizeof(std::int64_t) : sizeof(std::int32_t);
    const auto aligned = [](std::size_t at, std::size_t to) { return (at + to - 1) / to * to; };
    extents = sizeof(std::uint64_t);
    strides = aligned(extents + axes * sizeof(std::int32_t), index);
    bytes = aligned(strides + axes * index, sizeof(std::uint64_t));
  }
};

/// The size of a parameter in bytes.
inline std::size_t bytes_of(const KernelParameter& parameter, const Graph& graph, bool index64) {
  const std::size_t index_bytes = index64 ? 8 : 4;
  const auto scalar_bytes = [&] {
    return static_cast<std::size_t>(info(graph.parameters[static_cast<std::size_t>(parameter.argument)].type).bytes);
  };
  const auto list_bytes = [&] {
    const auto first = static_cast<std::size_t>(parameter.argument);
    const auto tensors = static_cast<std::size_t>(tensors_of_list(graph.parameters, first));
    return (tensors + 1) * TensorPlace(graph.parameters[first].rank, index64).bytes;
  };
  switch (parameter.kind) {
#define KERNEL_PARAMETER(kind, bytes, type, name, value) \
  case KernelParameter::Kind::kind:                      \
    return bytes;
#include "codegen/target/kernel_parameters.def"
  }
  throw InternalError("a kernel parameter of no kind");
}

/// A parameter of up to 8 bytes is aligned to its size, a list to the addresses in it; a tensor map as CUDA requires.
inline std::size_t alignment_of(const KernelParameter& parameter, std::size_t bytes) {
  using Kind = KernelParameter::Kind;
  return parameter.kind == Kind::tensor_map ? tensor_map_alignment : std::min(bytes, sizeof(std::uint64_t));
}

/// Writes a list. Its last entry, after the tensors of the launch, has no elements.
inline void write_list(const KernelParameter& parameter, std::span<const Argument> arguments, const Graph& graph,
                       bool index64, std::byte* to) {
  const auto first = static_cast<std::size_t>(parameter.argument);
  const int tensors = tensors_of_list(graph.parameters, first), rank = graph.parameters[first].rank;
  const TensorPlace place(rank, index64);
  std::memset(to, 0, bytes_of(parameter, graph, index64));
  for (const Argument& tensor : arguments.subspan(first, static_cast<std::size_t>(tensors))) {
    std::memcpy(to, &tensor.data, sizeof tensor.data);
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(rank); ++axis) {
      const auto extent = static_cast<std::int32_t>(tensor.extent[axis]);
      std::memcpy(to + place.extents + axis * sizeof extent, &extent, sizeof extent);
      const std::size_t bytes = index64 ? sizeof(std::int64_t) : sizeof(std::int32_t);
      std::memcpy(to + place.strides + axis * bytes, &tensor.stride[axis], bytes);  // little endian
    }
    to += place.bytes;
  }
}

/// The value of a parameter of up to 8 bytes. A smaller parameter has its first bytes (little endian).
inline std::int64_t value_of(const KernelParameter& parameter, std::span<const Argument> arguments,
                             std::span<const std::int64_t> grid, const LaunchValues& launch) {
  const auto axis = static_cast<std::size_t>(parameter.axis);
  const auto argument = [&]() -> const Argument& { return arguments[static_cast<std::size_t>(parameter.argument)]; };
  const auto address = [](auto pointer) { return std::bit_cast<std::int64_t>(pointer); };
  const auto bits = [](const Cell& scalar) { return std::bit_cast<std::int64_t>(scalar); };
  const auto no_value = []() -> std::int64_t { throw InternalError("a parameter that does not fit in 64 bits"); };
  switch (parameter.kind) {
#define KERNEL_PARAMETER(kind, bytes, type, name, value) \
  case KernelParameter::Kind::kind:                      \
    return value;
#include "codegen/target/kernel_parameters.def"
  }
  throw InternalError("a kernel parameter of no kind");
}

/// Where the parameters of a kernel are in a block of memory, in order.
struct ParameterBlock {
  std::vector<std::size_t> offsets;
  std::size_t bytes = 0;

  ParameterBlock(std::span<const KernelParameter> parameters, const Graph& graph, bool index64) {
    for (const KernelParameter& parameter : parameters) {
      const std::size_t size = bytes_of(parameter, graph, index64), alignment = alignment_of(parameter, size);
      offsets.push_back((bytes + alignment - 1) / alignment * alignment);
      bytes = offsets.back() + size;
    }
  }
};

/// Writes a parameter other than a tensor map.
inline void write_parameter(const KernelParameter& parameter, std::size_t bytes, std::span<const Argument> arguments,
                            std::span<const std::int64_t> grid, const LaunchValues& values, const Graph& graph,
                            bool index64, std::byte* to) {
  if (parameter.kind == KernelParameter::Kind::list) return write_list(parameter, arguments, graph, index64, to);
  const std::int64_t value = value_of(parameter, arguments, grid, values);
  std::memcpy(to, &value, bytes);
}

}  // namespace tessera::internal
