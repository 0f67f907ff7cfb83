// A sequence of launches as data, the basis of plain runs and recorded graphs.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "tessera/jit/device.hpp"
#include "tessera/jit/executable.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// Launches on one device, in order. Each is checked when it is added; running them only enqueues them. A sequence
/// keeps its kernels and the memory of its tensors alive, except the user's own memory, which must exist when it runs.
class Sequence {
 public:
  /// A kernel and its arguments.
  struct Launch {
    std::shared_ptr<const Executable> executable;
    std::vector<Argument> arguments;
    Grid grid;

    /// The access, element type and rank of an argument's parameter.
    const Parameter& parameter(std::size_t argument) const { return executable->graph().parameters[argument]; }
    /// Is it a tensor whose elements the launch may read, or write?
    bool reads(std::size_t argument) const;
    bool writes(std::size_t argument) const;
  };

  explicit Sequence(Device device) : device_(std::move(device)) {}

  /// Adds the launch that launch(stream, kernel, values...) would do. (Defined in api/sequence.hpp.)
  template <class Kernel, class... A>
  void add(const Kernel& kernel, const A&... values);
  /// The same without types; `memory` holds the owners of the arguments' memory. Throws Error like Executable::prepare.
  void append(std::shared_ptr<const Executable> executable, std::span<const Argument> arguments,
              std::span<const std::shared_ptr<void>> memory);

  const Device& device() const { return device_; }
  const std::vector<Launch>& launches() const { return launches_; }

  /// For each launch, the earlier launches that it must follow because one of the two writes memory that the other
  /// uses. Launches that must precede one of these anyway are left out. Ascending. Any order that respects these
  /// dependencies leaves the same contents in memory. Tensors over the same memory with different layouts count as
  /// overlapping if their address ranges overlap.
  std::vector<std::vector<std::size_t>> dependencies() const;

  /// Enqueues all launches on a stream of the device, or those in [begin, end). No tracing, checking, hashing, text or
  /// allocation.
  void run(const Stream& stream) const { run(stream, 0, launches_.size()); }
  void run(const Stream& stream, std::size_t begin, std::size_t end) const;
  /// Records the launches as a graph for such a stream; Stream::capture states the requirements.
  CapturedGraph record(const Stream& stream) const;

 private:
  Device device_;
  std::vector<Launch> launches_;
  std::vector<std::shared_ptr<void>> memory_;
};

}  // namespace internal
}  // namespace tessera
