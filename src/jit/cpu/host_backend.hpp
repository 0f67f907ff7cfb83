// Shared by the devices that compute on the host: they use host memory, and work is done immediately, on the calling
// thread.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "jit/backend/backend.hpp"
#include "jit/profile/profile.hpp"

namespace tessera::internal {

/// Recorded calls, made again in order by each launch.
struct HostGraph final : GraphBackend {
  std::vector<std::function<void()>> calls;
};

class HostStream final : public StreamBackend {
 public:
  explicit HostStream(DeviceBackend& device) : device_(device) {}

  /// The calls that this thread records instead of making them; null if it records none. Other threads may use the
  /// stream at the same time.
  HostGraph* recording() const { return recorded_by == this ? recorded : nullptr; }

  DeviceBackend& device() override { return device_; }
  void synchronize() override {}
  void copy(void* to, const void* from, std::size_t bytes) override;
  std::shared_ptr<EventBackend> record() override;
  void wait(EventBackend& event) override;
  std::shared_ptr<GraphBackend> capture(const std::function<void()>& function) override;
  void launch(GraphBackend& graph) override;
  void* native() override { return nullptr; }

 private:
  static thread_local const HostStream* recorded_by;
  static thread_local HostGraph* recorded;

  DeviceBackend& device_;
};

/// Copies, as an event of a profile.
void copy_bytes(void* to, const void* from, std::size_t bytes);

/// A kernel whose code runs on the host.
class HostKernel final : public DeviceKernel {
 public:
  using Code = std::function<void(std::span<const Argument> arguments, std::span<const std::int64_t> grid)>;
  /// Recorded launches share ownership of the code.
  HostKernel(const Graph& graph, Code code);

  void launch(StreamBackend& stream, std::span<const Argument> arguments, std::span<const std::int64_t> grid) override;

 private:
  struct Parts {
    Parts(const Graph& of, Code runs) : graph(of), code(std::move(runs)) {}
    Graph graph;
    Code code;
    profile::LazySubject subject;
    void run(std::span<const Argument> arguments, std::span<const std::int64_t> grid) const;
  };
  std::shared_ptr<const Parts> parts_;
};

class HostBackend : public DeviceBackend, public std::enable_shared_from_this<HostBackend> {
 public:
  const DeviceInfo& info() const override { return info_; }
  bool shares_host_memory() const override { return true; }
  std::optional<std::size_t> free_bytes(std::size_t wanted) override;
  std::shared_ptr<void> allocate(std::size_t bytes) override;
  std::shared_ptr<void> pinned(std::size_t bytes) override { return allocate(bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override;
  std::shared_ptr<StreamBackend> stream() override { return {shared_from_this(), &stream_}; }
  std::shared_ptr<StreamBackend> new_stream() override { return std::make_shared<HostStream>(*this); }
  std::shared_ptr<StreamBackend> stream_from(void*) override;

 protected:
  DeviceInfo info_;

 private:
  HostStream stream_{*this};
};

}  // namespace tessera::internal
