// Tensor maps: the descriptors through which TMA on sm_90 accesses the tensors of a kernel.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "codegen/target/kernel_parameter.hpp"
#include "jit/cuda/cuda_backend.hpp"
#include "tessera/graph/argument.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal {

/// The tensor maps of a kernel's launches. Each is encoded once and kept, so that finding one takes a lookup.
/// Thread-safe.
class TensorMaps {
 public:
  /// A tensor map among the parameters of the kernel.
  struct Place {
    TmaTensor tensor;
    std::size_t offset;  ///< in the parameter block
  };
  /// The number of maps that are kept. When it is reached, as in a loop over ever new tensors, all are dropped.
  static constexpr std::size_t most_kept = 1024;

  TensorMaps(CudaBackend& device, const Graph& graph, std::vector<Place> places);
  /// Writes the maps of a launch into its parameter block. The context must be current. Throws Error that names kernel
  /// and tensor if the driver rejects a map.
  void write(std::span<const Argument> arguments, std::byte* block);

 private:
  /// Everything that an encoding depends on, with axes in the order of the box.
  struct Key {
    std::size_t place;
    const void* data;
    std::array<std::uint64_t, 5> extents;
    std::array<std::uint64_t, 4> strides;  // in bytes, of all axes but the first
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };

  const Parameter& parameter_of(std::size_t place) const;
  Key key_of(std::size_t place, const Argument& argument) const;
  cuda::CUtensorMap encode(const Key& key, const Argument& argument) const;

  CudaBackend& device_;
  const Graph& graph_;
  const std::vector<Place> places_;
  std::mutex mutex_;  // guards kept_
  std::unordered_map<Key, cuda::CUtensorMap, Hash> kept_;
};

}  // namespace tessera::internal
