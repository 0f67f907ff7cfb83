// A sequence of launches as data, the basis of plain runs and recorded graphs.
#pragma once
#include <memory>
#include <span>
#include <stop_token>
#include <string_view>
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

  /// Adds the launches of another sequence on the same device, after its own.
  void append(const Sequence& other);

  const Device& device() const { return device_; }
  const std::vector<Launch>& launches() const { return launches_; }

  /// For each launch, the earlier launches that it must follow because one of the two writes memory that the other
  /// uses. Launches that must precede one of these anyway are left out. Ascending. Any order that respects these
  /// dependencies leaves the same contents in memory. Tensors over the same memory with different layouts count as
  /// overlapping if their address ranges overlap.
  std::vector<std::vector<std::size_t>> dependencies() const;

  /// Does what the first run would do once, and runs nothing: generates the code of each launch, compiles it or takes it
  /// from the cache, and loads it. Up to 8 threads share the work, no more than there are cores, in the order of the
  /// launches; none is started if all code is made. Other threads may launch these kernels at the same time, or warm them
  /// up: each code is made once, and who needs it waits for it alone.
  ///
  /// Returns when all is done; after a request to stop, when the kernels that were begun are. If a kernel fails, the
  /// others are made all the same. Then Error has the first failure's message and the names of the other kernels that
  /// failed; a later launch tries again.
  void warm_up(std::stop_token stop = {}) const;

  /// Enqueues all launches on a stream of the device, or those in [begin, end). No tracing, checking, hashing, text or
  /// allocation.
  void run(const Stream& stream) const { run(stream, 0, launches_.size()); }
  void run(const Stream& stream, std::size_t begin, std::size_t end) const;
  /// Records the launches as a graph for such a stream; Stream::capture states the requirements.
  CapturedGraph record(const Stream& stream) const;
  /// The launches as one persistent kernel (a "megakernel"): its CTAs, all resident at once, run the tiles of one
  /// launch after another, and meet at a barrier of the grid in between. Each run of it is one cooperative launch,
  /// which cannot be recorded; two runs do not overlap. `name` is the kernel's, for dumps and errors. Compiles it, or
  /// takes it from the cache. Throws PersistentRefused, which says why, if there can be no such kernel: on the CPU, or
  /// for a launch that is warp-specialized, uses clusters, TMA or a workspace.
  CapturedGraph persistent(std::string_view name) const;

 private:
  Device device_;
  std::vector<Launch> launches_;
  std::vector<std::shared_ptr<void>> memory_;
};

}  // namespace internal
}  // namespace tessera
