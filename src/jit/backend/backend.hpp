// What a kind of device does: the side of device.hpp that each kind has its own of.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "tessera/graph/argument.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/jit/device.hpp"

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

/// A kernel on a device, with all code that the device has made of it.
class DeviceKernel {
 public:
  virtual ~DeviceKernel() = default;
  /// Of a stream of the device, with arguments that Executable has checked. From any thread.
  virtual void launch(StreamBackend& stream, std::span<const Argument> arguments,
                      std::span<const std::int64_t> grid) = 0;
};

class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  virtual const DeviceInfo& info() const = 0;
  virtual bool shares_host_memory() const = 0;
  virtual std::shared_ptr<void> allocate(std::size_t bytes) = 0;
  virtual std::shared_ptr<void> pinned(std::size_t bytes) = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual std::shared_ptr<StreamBackend> stream() = 0;
  virtual std::shared_ptr<StreamBackend> new_stream() = 0;
  virtual std::shared_ptr<StreamBackend> stream_from(void* cu_stream) = 0;
  /// `graph`, as the passes leave it, outlives the kernel.
  virtual std::unique_ptr<DeviceKernel> kernel(const Graph& graph) = 0;
};

/// The arguments of a launch as errors list them: "argument 1 is f32 [2,3], argument 2 is 5".
std::string arguments_text(std::span<const Parameter> parameters, std::span<const Argument> arguments);
/// "for a launch of kernel 'k' (argument 1 is ...)".
[[noreturn]] void refuse_for_memory(const Graph& graph, std::span<const Argument> arguments);

/// A handle as that of the kind of device it is given to. Throws Error if it is of another kind.
template <class Own, class Handle>
Own& own(Handle& handle) {
  if (Own* found = dynamic_cast<Own*>(&handle)) return *found;
  throw Error("an event or a recorded graph is used with a stream of another kind of device");
}

}  // namespace tessera::internal
