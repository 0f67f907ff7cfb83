// The implementation side of device.hpp: the interface that each kind of device implements.
#pragma once
#include <fmt/format.h>

#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/graph/argument.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/jit/device.hpp"
#include "tessera/jit/executable.hpp"

namespace tessera::internal {

class EventBackend {
 public:
  virtual ~EventBackend() = default;
  virtual void synchronize() = 0;
  virtual double milliseconds_since(EventBackend& earlier) = 0;
};

class GraphBackend {
 public:
  virtual ~GraphBackend() = default;
};

class StreamBackend {
 public:
  virtual ~StreamBackend() = default;
  virtual DeviceBackend& device() = 0;
  virtual void synchronize() = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual std::shared_ptr<EventBackend> record() = 0;
  virtual void wait(EventBackend& event) = 0;
  virtual std::shared_ptr<GraphBackend> capture(const std::function<void()>& function) = 0;
  virtual void launch(GraphBackend& graph) = 0;
  virtual void* native() = 0;
};

/// A kernel on one device, with all code that the device has made for it.
class DeviceKernel {
 public:
  virtual ~DeviceKernel() = default;
  /// `stream` belongs to the device, and Executable has checked the arguments. May be called from any thread.
  virtual void launch(StreamBackend& stream, std::span<const Argument> arguments,
                      std::span<const std::int64_t> grid) = 0;
  /// The code that such a launch runs. By default a kernel has one code, which is made with it.
  virtual LaunchCode code(std::span<const Argument>, std::span<const std::int64_t> /*grid*/) {
    return {this, [] {}};
  }
};

/// The number of tiles of a grid.
inline std::int64_t tiles_in(std::span<const std::int64_t> grid) {
  return std::accumulate(grid.begin(), grid.end(), std::int64_t{1}, std::multiplies());
}

/// A launch as a device gets it.
struct DeviceLaunch {
  DeviceKernel* kernel;
  const Graph* graph;
  std::vector<Argument> arguments;
  std::vector<std::int64_t> grid;
};

class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  virtual const DeviceInfo& info() const = 0;
  virtual bool shares_host_memory() const = 0;
  virtual std::shared_ptr<void> allocate(std::size_t bytes) = 0;
  virtual std::shared_ptr<void> pinned(std::size_t bytes) = 0;
  /// Bytes that can be allocated now, about; none: the system does not say. Memory that is kept for later allocations
  /// is given back first if less than `wanted` is free without it.
  virtual std::optional<std::size_t> free_bytes(std::size_t) { return {}; }
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual std::shared_ptr<StreamBackend> stream() = 0;
  virtual std::shared_ptr<StreamBackend> new_stream() = 0;
  virtual std::shared_ptr<StreamBackend> stream_from(void* cu_stream) = 0;
  /// `graph` is the graph after the passes; it must outlive the kernel.
  virtual std::unique_ptr<DeviceKernel> kernel(const Graph& graph) = 0;
  /// Launches of this device's kernels as one persistent kernel. Throws PersistentRefused, which says why, if that
  /// cannot be.
  virtual std::shared_ptr<GraphBackend> persistent(std::string_view name, std::span<const DeviceLaunch>) {
    throw PersistentRefused(fmt::format(
        "sequence '{}' cannot be one persistent kernel on {}, which computes on the host", name, info().name));
  }
};

/// The arguments of a launch, as error messages list them: "argument 1 is f32 [2,3], argument 2 is 5".
std::string arguments_text(std::span<const Parameter> parameters, std::span<const Argument> arguments);
/// Throws OutOfMemory for a launch that the host has no memory for: it names the kernel and lists the arguments.
[[noreturn]] void refuse_for_memory(const Graph& graph, std::span<const Argument> arguments);

/// Casts a handle to the class of the kind of device it is used with. Throws Error if it belongs to another kind.
template <class Own, class Handle>
Own& own(Handle& handle) {
  if (Own* found = dynamic_cast<Own*>(&handle)) return *found;
  throw Error("an event or a recorded graph is used with a stream of another kind of device");
}

}  // namespace tessera::internal
