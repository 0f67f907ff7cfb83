// Streams, events and recorded graphs of a CUDA GPU.
#pragma once
#include <mutex>

#include "jit/backend/in_flight.hpp"
#include "jit/cuda/cuda_backend.hpp"

namespace tessera::internal {

class CudaEvent final : public EventBackend {
 public:
  CudaEvent(std::shared_ptr<CudaBackend> device, cuda::CUstream stream, const LoadedCode* last);
  void synchronize() override;
  double milliseconds_since(EventBackend& earlier) override;
  cuda::CUevent get() const { return event_.get(); }

 private:
  std::shared_ptr<CudaBackend> device_;
  cuda::Handle<cuda::CUevent> event_;
  const LoadedCode* last_;  // the latest launch before it
};

/// Memory that the launches recorded on one stream share, one after another, in each run of the graph. A graph never
/// runs concurrently with itself.
struct RecordedMemory {
  std::shared_ptr<void> flags;                 ///< all 0 between launches
  std::vector<std::shared_ptr<void>> parts;    ///< the last is the largest
  std::size_t bytes = 0;                       ///< size of the last
  std::vector<profile::Planned> planned = {};  ///< the kernels, if they were recorded while the profiler was on
};

/// Work that a stream launches as a whole.
class CudaWork : public GraphBackend {
 public:
  explicit CudaWork(const LoadedCode* last) : last_(last) {}
  /// The context is current, and the stream has caught up.
  virtual void launch(CudaStream& stream) = 0;
  /// The code that runs last; null: none.
  const LoadedCode* last() const { return last_; }

 private:
  const LoadedCode* last_;
};

class CudaGraph final : public CudaWork {
 public:
  CudaGraph(std::shared_ptr<CudaBackend> device, cuda::CUgraph graph, const LoadedCode* last, RecordedMemory memory);
  void launch(CudaStream& stream) override;

 private:
  std::shared_ptr<CudaBackend> device_;
  RecordedMemory memory_;  // outlives executable_, which uses it
  profile::Plan plan_;
  cuda::Handle<cuda::CUgraphExec> executable_;
};

class CudaStream final : public StreamBackend {
 public:
  /// Wraps a stream of the user's. `keep` keeps the device alive; it is null for the stream that is part of the device.
  CudaStream(CudaBackend& device, cuda::CUstream stream, std::shared_ptr<CudaBackend> keep);
  /// Owns the stream.
  CudaStream(CudaBackend& device, cuda::Handle<cuda::CUstream> stream, std::shared_ptr<CudaBackend> keep);
  ~CudaStream() override;

  DeviceBackend& device() override { return device_; }
  void synchronize() override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  std::shared_ptr<EventBackend> record() override;
  void wait(EventBackend& event) override;
  std::shared_ptr<GraphBackend> capture(const std::function<void()>& function) override;
  void launch(GraphBackend& graph) override;
  void* native() override;

  cuda::CUstream get() const { return stream_; }
  /// Waits for memory allocated since the last call, so that the next work may use it. The context must be current.
  void catch_up() {
    if (seen_.load(std::memory_order_relaxed) != device_.allocations()) wait_for_memory();
  }
  bool is_recording() const;
  /// An event of this stream that the device may record at any time.
  cuda::CUevent joint() const { return joint_.get(); }

  /// 32-bit flags for the CTAs of launches on this stream. Each launch finds them 0 and leaves them 0.
  static constexpr std::int64_t most_flags = 1024;
  cuda::CUdeviceptr flags();
  /// While capture() records: memory for the partials of a launch. flags() then returns the flags of the recording.
  cuda::CUdeviceptr recorded_parts(std::size_t bytes);
  bool captures() const { return recording_ != nullptr; }
  /// While capture() records: keeps the plan's kernels for the graph, and returns true.
  bool keep_for_graph(const profile::Plan& plan) {
    if (recording_ && plan) recording_->planned.insert(recording_->planned.end(), plan->begin(), plan->end());
    return recording_ != nullptr;
  }
  CudaBackend& backend() { return device_; }

  /// How a launch begins. early: while previous launches are ending (PDL). may_prefetch: it may read some tensors
  /// before its wait. No other thread launches on the stream while this exists.
  struct Turn {
    std::unique_lock<std::mutex> lock;
    bool early, may_prefetch;
  };
  /// The turn of a launch that may begin early, and read some of these tensors before its wait.
  Turn turn(const Graph& graph, std::span<const Argument> arguments, bool may_launch_early,
            std::span<const int> prefetched_before_wait);
  /// The launch that holds the turn did not begin.
  void failed(const Turn&) { in_flight_.forget(); }

  const LoadedCode* last() const { return last_.load(std::memory_order_relaxed); }
  void launched(const LoadedCode* code) {
    last_.store(code, std::memory_order_relaxed);
    device_.launched(code);
  }
  void check(cuda::CUresult result, std::string_view call) { device_.check(result, call, {}, last()); }

 private:
  void wait_for_memory();
  /// To be called when other work than a launch is given to the stream: after it, the launches in flight are unknown.
  void forget_launches() {
    const std::lock_guard lock(launching_);
    in_flight_.forget();
  }

  std::shared_ptr<CudaBackend> keep_;
  CudaBackend& device_;
  cuda::Handle<cuda::CUstream> owned_;
  cuda::CUstream stream_;
  cuda::Handle<cuda::CUevent> joint_;
  RecordedMemory* recording_ = nullptr;
  std::once_flag has_flags_;
  cuda::CUdeviceptr flags_ = 0;
  std::atomic<std::uint64_t> seen_ = 0;  // the latest of the device's allocations that was waited for
  std::mutex launching_;
  InFlight in_flight_;
  bool joined_ = false;       // takes part in a recording that another stream began
  std::atomic<bool> shared_;  // others may give it work, which is unknown here
  std::atomic<const LoadedCode*> last_ = nullptr;
};

}  // namespace tessera::internal
