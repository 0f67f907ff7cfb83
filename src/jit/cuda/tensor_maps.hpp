// Tensor maps: what sm_90's copy engine is told of the tensors that a kernel's boxes are of.
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

/// The tensor maps of a kernel's launches, each encoded once and kept: to find one takes a lookup. From any thread.
class TensorMaps {
 public:
  /// One among the parameters of the kernel.
  struct Place {
    TmaTensor tensor;
    std::size_t offset;  ///< in the block of parameters
  };
  /// So many are kept. Of a loop over ever new tensors the next begins anew.
  static constexpr std::size_t most_kept = 1024;

  TensorMaps(CudaBackend& device, const Graph& graph, std::vector<Place> places);
  /// Writes the maps of a launch into its block of parameters. To be called with the context current. Throws Error that
  /// names kernel and tensor if the driver refuses it.
  void write(std::span<const Argument> arguments, std::byte* block);

 private:
  /// All that an encoding depends on, with axes in the order of the box.
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
  std::mutex mutex_;  // of those that are kept
  std::unordered_map<Key, cuda::CUtensorMap, Hash> kept_;
};

}  // namespace tessera::internal
