// The text of a raw CUDA kernel, which a graph has instead of ops that store results.
#pragma once
#include <functional>
#include <span>
#include <string>

#include "tessera/graph/argument.hpp"
#include "tessera/graph/location.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// The graph's grid then holds all numbers of a launch: the grid along x, y and z, the threads of a CTA along them, the
/// bytes of dynamic shared memory, and the numbers that the function takes after its pointers and scalars.
struct CudaText {
  static constexpr std::size_t axes = 3, first_thread = 3, shared_bytes = 6, first_number = 7;
  static constexpr std::size_t most_numbers = 9;
  /// Does the same on the host, given the arguments and numbers of a launch.
  using Host = std::function<void(std::span<const Argument> arguments, std::span<const std::int64_t> numbers)>;

  std::string source;
  Location location;  ///< of its first line
  Host host = {};     ///< none: the kernel runs on GPUs only
};

}  // namespace internal
}  // namespace tessera
