// A kernel that its author wrote in CUDA C++: what a graph has in the place of ops that store something.
#pragma once
#include <functional>
#include <span>
#include <string>

#include "tessera/graph/argument.hpp"
#include "tessera/graph/location.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// The graph's grid then has all numbers of a launch: blocks along x, y and z, threads of a block along them, bytes of
/// dynamic shared memory, and what the function is given behind its pointers and scalars.
struct CudaText {
  static constexpr std::size_t axes = 3, first_thread = 3, shared_bytes = 6, first_number = 7;
  static constexpr std::size_t most_numbers = 9;
  /// Does the same on the host, for arguments and numbers.
  using Host = std::function<void(std::span<const Argument> arguments, std::span<const std::int64_t> numbers)>;

  std::string source;
  Location location;  ///< of its first line
  Host host = {};     ///< none: it runs on GPUs alone
};

}  // namespace internal
}  // namespace tessera
