// Streams, events and recorded graphs of a CUDA GPU.
#pragma once
#include <mutex>

#include "jit/cuda/cuda_backend.hpp"
#include "jit/cuda/in_flight.hpp"

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
  const LoadedCode* last_;  // launched before it
};

/// What launches that are recorded on one stream use one after another, each time that they run: a graph does not run
/// beside itself.
struct RecordedMemory {
  std::shared_ptr<void> flags;               ///< all 0 between launches
  std::vector<std::shared_ptr<void>> parts;  ///< the last is the largest
  std::size_t bytes = 0;                     ///< of that
};

class CudaGraph final : public GraphBackend {
 public:
  CudaGraph(std::shared_ptr<CudaBackend> device, cuda::CUgraph graph, const LoadedCode* last, RecordedMemory memory);
  cuda::CUgraphExec get() const { return executable_.get(); }
  const LoadedCode* last() const { return last_; }

 private:
  std::shared_ptr<CudaBackend> device_;
  RecordedMemory memory_;  // ends after what uses it
  cuda::Handle<cuda::CUgraphExec> executable_;
  const LoadedCode* last_;
};

class CudaStream final : public StreamBackend {
 public:
  /// One of the user's. `keep` keeps the device, and is null for the stream that is part of it.
  CudaStream(CudaBackend& device, cuda::CUstream stream, std::shared_ptr<CudaBackend> keep);
  /// One of its own.
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
  /// Waits for memory allocated since the last time, so that work given next may use it. To be called with the context
  /// current.
  void catch_up() {
    if (seen_.load(std::memory_order_relaxed) != device_.allocations()) wait_for_memory();
  }
  bool is_recording() const;
  /// An event of this stream that the device may use as it likes.
  cuda::CUevent joint() const { return joint_.get(); }

  /// Words for the blocks of a launch on this stream, which find them 0 and leave them so.
  static constexpr std::int64_t most_flags = 1024;
  cuda::CUdeviceptr flags();
  /// While capture() records: memory for blocks of a launch to put sums. The flags are those of the recording, then.
  cuda::CUdeviceptr recorded_parts(std::size_t bytes);
  bool captures() const { return recording_ != nullptr; }

  /// How a launch begins: while those before it end, and may it bring ahead what the kernel would? Nobody else launches
  /// on the stream for as long as this lives.
  struct Turn {
    std::unique_lock<std::mutex> lock;
    bool early, ahead;
  };
  /// For a launch of a kernel that may begin early, and bring some of these tensors ahead.
  Turn turn(const Graph& graph, std::span<const Argument> arguments, bool may_launch_early,
            std::span<const int> prefetched_before_wait);
  /// A launch whose turn it is did not begin.
  void failed(const Turn&) { in_flight_.forget(); }

  const LoadedCode* last() const { return last_.load(std::memory_order_relaxed); }
  void launched(const LoadedCode* code) {
    last_.store(code, std::memory_order_relaxed);
    device_.launched(code);
  }
  void check(cuda::CUresult result, std::string_view call) { device_.check(result, call, {}, last()); }

 private:
  void wait_for_memory();
  /// What launches are in flight is not known behind work that is no launch; to be called when that is given.
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
  std::atomic<std::uint64_t> seen_ = 0;  // of the device's allocations
  std::mutex launching_;
  InFlight in_flight_;
  bool joined_ = false;       // a recording that another stream began
  std::atomic<bool> shared_;  // with work of others, of which nothing is known
  std::atomic<const LoadedCode*> last_ = nullptr;
};

}  // namespace tessera::internal
