// A sequence of launches as data: what a plain run and a recorded graph are made from.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "tessera/jit/device.hpp"
#include "tessera/jit/executable.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// Launches on one device, in order. Each is checked when it is added; to run them is to hand them to the device.
/// A sequence keeps its kernels, and the memory of its tensors but for a user's, which must be there when it runs.
class Sequence {
 public:
  /// A kernel and its arguments.
  struct Launch {
    std::shared_ptr<const Executable> executable;
    std::vector<Argument> arguments;
    Grid grid;

    /// What the argument is for: its access, element type and rank.
    const Parameter& parameter(std::size_t argument) const { return executable->graph().parameters[argument]; }
    /// Is it a tensor whose elements the launch may read, or write?
    bool reads(std::size_t argument) const;
    bool writes(std::size_t argument) const;
  };

  explicit Sequence(Device device) : device_(std::move(device)) {}

  /// Adds what launch(stream, kernel, values...) would do. (api/sequence.hpp has the definition.)
  template <class Kernel, class... A>
  void add(const Kernel& kernel, const A&... values);
  /// The same without types; `memory` is what the arguments' memory goes with. Throws Error as Executable::prepare
  /// does.
  void append(std::shared_ptr<const Executable> executable, std::span<const Argument> arguments,
              std::span<const std::shared_ptr<void>> memory);

  const Device& device() const { return device_; }
  const std::vector<Launch>& launches() const { return launches_; }

  /// For each launch the earlier ones that it has to come after, since one of the two writes memory that the other
  /// uses; not those that have to come before one of these anyway. Ascending. Any order that keeps to them leaves the
  /// same in memory. Tensors in one memory that are not laid out alike count as overlapping where their ranges of
  /// addresses do.
  std::vector<std::vector<std::size_t>> dependencies() const;

  /// Gives all launches to a stream of the device, or those in [begin, end). No tracing, checking, hashing, text or
  /// allocation.
  void run(const Stream& stream) const { run(stream, 0, launches_.size()); }
  void run(const Stream& stream, std::size_t begin, std::size_t end) const;
  /// The same as a graph, to be launched on such a stream; Stream::capture says what that needs.
  CapturedGraph record(const Stream& stream) const;

 private:
  Device device_;
  std::vector<Launch> launches_;
  std::vector<std::shared_ptr<void>> memory_;
};

}  // namespace internal
}  // namespace tessera
