// The tensors and the workspace of a run, in memory of the emulated device. They are far apart, so that an index out of
// bounds of one does not hit another.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "emulator/mapping.hpp"
#include "emulator/shadow.hpp"
#include "tessera/graph/argument.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal::emulator {

inline constexpr int poison = 0xff;  ///< fills uninitialized memory: a NaN of every type, or -1

class DeviceMemory {
 public:
  /// Copies the tensors in. Tensors that overlap on the host overlap here in the same way.
  DeviceMemory(const Graph& graph, std::span<const Argument> arguments);

  /// The arguments, with the tensors' addresses in this memory.
  std::span<const Argument> arguments() const { return arguments_; }
  /// Copies the tensors that a kernel may write back to the host.
  void copy_back() const;

  /// Replaces the workspace by a new one, filled with poison.
  char* new_workspace(std::size_t bytes);

  /// Shadows of the tensors, one for each part of a buffer.
  std::vector<Shadow> tensor_shadows(std::span<const int> early) const;
  Shadow workspace_shadow() const;

 private:
  /// A byte range of a buffer with elements in it or near; rows that are far apart are in separate parts.
  struct Part {
    std::size_t first, end;
  };
  /// Tensors that overlap.
  struct Buffer {
    char *host_begin, *host_end;
    std::vector<std::size_t> tensors;  ///< indices of parameters
    std::unique_ptr<Mapping> memory{};
    char* begin = nullptr;
    std::vector<Part> parts{};
  };
  std::vector<Part> bytes_of_tensor(const Buffer& buffer, std::size_t tensor) const;
  std::vector<Part> parts_of(const Buffer& buffer) const;
  /// Joins sorted parts that are at most `apart` bytes apart.
  static std::vector<Part> merged(const std::vector<Part>& rows, std::size_t apart);
  static std::vector<Shadow::Range> laid_over(const std::vector<Shadow::Range>& ranges, const std::vector<Part>& parts,
                                              std::size_t owner);

  const Graph& graph_;
  std::vector<Argument> arguments_;
  std::vector<Buffer> buffers_;
  std::unique_ptr<Mapping> workspace_;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace tessera::internal::emulator
