#include "jit/cuda/cuda_stream.hpp"

#include "tessera/graph/error.hpp"

namespace tessera::internal {

using namespace cuda;

CudaEvent::CudaEvent(std::shared_ptr<CudaBackend> device, CUstream stream, const LoadedCode* last)
    : device_(std::move(device)),
      event_(device_->make(device_->driver().cuEventDestroy, device_->driver().cuEventCreate, CU_EVENT_DEFAULT)),
      last_(last) {
  device_->check(device_->driver().cuEventRecord(event_.get(), stream), "cuEventRecord", {}, last_);
}

void CudaEvent::synchronize() {
  const ContextScope scope(device_->context());
  device_->check(device_->driver().cuEventSynchronize(event_.get()), "cuEventSynchronize", {}, last_);
  device_->take_reports();
}

double CudaEvent::milliseconds_since(EventBackend& earlier) {
  CudaEvent& begin = own<CudaEvent>(earlier);
  begin.synchronize();
  synchronize();
  const ContextScope scope(device_->context());
  float milliseconds = 0;
  device_->check(device_->driver().cuEventElapsedTime(&milliseconds, begin.get(), get()), "cuEventElapsedTime");
  return milliseconds;
}

CudaGraph::CudaGraph(std::shared_ptr<CudaBackend> device, CUgraph graph, const LoadedCode* last, RecordedMemory memory)
    : CudaWork(last),
      device_(std::move(device)),
      memory_(std::move(memory)),
      plan_(std::make_shared<const std::vector<profile::Planned>>(std::move(memory_.planned))),
      executable_(device_->make(device_->driver().cuGraphExecDestroy, device_->driver().cuGraphInstantiateWithFlags,
                                graph, 0ull)) {}

void CudaGraph::launch(CudaStream& stream) {
  const TimedCall timed(stream, profile::Kind::graph, [&] { return plan_; });
  stream.check(device_->driver().cuGraphLaunch(executable_.get(), stream.get()), "cuGraphLaunch");
}

CudaStream::CudaStream(CudaBackend& device, CUstream stream, std::shared_ptr<CudaBackend> keep)
    : keep_(std::move(keep)),
      device_(device),
      stream_(stream),
      joint_(device.make(device.driver().cuEventDestroy, device.driver().cuEventCreate, CU_EVENT_DISABLE_TIMING)),
      shared_(true) {
  device_.add(*this);
}

CudaStream::CudaStream(CudaBackend& device, Handle<CUstream> stream, std::shared_ptr<CudaBackend> keep)
    : CudaStream(device, stream.get(), std::move(keep)) {
  owned_ = std::move(stream);
  // The device's own stream also synchronizes with the legacy default stream, whose work is unknown here.
  shared_ = keep_ == nullptr;
}

CudaStream::~CudaStream() {
  if (flags_) device_.free(reinterpret_cast<void*>(flags_));
  device_.remove(*this);
}

CUdeviceptr CudaStream::recorded_parts(std::size_t bytes) {
  if (bytes > recording_->bytes) {
    recording_->parts.push_back(device_.allocate(bytes));
    recording_->bytes = bytes;
    catch_up();
  }
  return reinterpret_cast<CUdeviceptr>(recording_->parts.back().get());
}

CUdeviceptr CudaStream::flags() {
  if (recording_) {
    if (!recording_->flags) {
      const OutsideRecording outside(device_.driver());
      const std::vector<std::uint32_t> zeros(most_flags);
      recording_->flags = device_.allocate(most_flags * sizeof(std::uint32_t));
      device_.copy(recording_->flags.get(), zeros.data(), most_flags * sizeof(std::uint32_t));
      catch_up();
    }
    return reinterpret_cast<CUdeviceptr>(recording_->flags.get());
  }
  std::call_once(has_flags_, [&] {
    const Driver& driver = device_.driver();
    constexpr std::size_t bytes = most_flags * sizeof(std::uint32_t);
    if (device_.has_pools())
      check(driver.cuMemAllocAsync(&flags_, bytes, stream_), driver.cuMemAllocAsync.name);
    else
      check(driver.cuMemAlloc(&flags_, bytes), driver.cuMemAlloc.name);
    check(driver.cuMemsetD32Async(flags_, 0, most_flags, stream_), driver.cuMemsetD32Async.name);
  });
  return flags_;
}

CudaStream::Turn CudaStream::turn(const Graph& graph, std::span<const Argument> arguments, bool may_launch_early,
                                  std::span<const int> prefetched_before_wait) {
  Turn turn{.lock = std::unique_lock(launching_), .early = may_launch_early, .may_prefetch = false};
  if (shared_.load(std::memory_order_relaxed)) return turn;
  if (joined_ && !is_recording()) {  // the recorded work did not run
    joined_ = false;
    in_flight_.forget();
  }
  turn.early &= in_flight_.is_known();
  if (!turn.early) in_flight_.begin();
  turn.may_prefetch = !in_flight_.write(graph, arguments, prefetched_before_wait);
  in_flight_.add(graph, arguments);
  return turn;
}

bool CudaStream::is_recording() const {
  // For the legacy default stream the driver reports no status while another stream records; then no work may be given
  // to it.
  int status = 0;
  return device_.driver().cuStreamIsCapturing(stream_, &status) != CUDA_SUCCESS || status != 0;
}

void CudaStream::wait_for_memory() {
  const std::uint64_t allocations = device_.allocations();
  if (is_recording()) {  // recorded work cannot wait for work that is not recorded, so the host waits
    const OutsideRecording outside(device_.driver());
    check(device_.driver().cuEventSynchronize(device_.allocated()), "cuEventSynchronize");
  } else {
    check(device_.driver().cuStreamWaitEvent(stream_, device_.allocated(), 0), "cuStreamWaitEvent");
  }
  forget_launches();
  seen_.store(allocations, std::memory_order_relaxed);
}

void CudaStream::synchronize() {
  const ContextScope scope(device_.context());
  check(device_.driver().cuStreamSynchronize(stream_), "cuStreamSynchronize");
  forget_launches();
  device_.take_reports();
}

void CudaStream::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  const ContextScope scope(device_.context());
  catch_up();
  const TimedCall timed(*this, profile::Kind::launch, [] { return profile::Plan(); });
  check(device_.driver().cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from), bytes,
                                       stream_),
        "cuMemcpyAsync");
  forget_launches();
}

std::shared_ptr<EventBackend> CudaStream::record() {
  const ContextScope scope(device_.context());
  catch_up();
  return std::make_shared<CudaEvent>(device_.shared_from_this(), stream_, last());
}

void CudaStream::wait(EventBackend& event) {
  const ContextScope scope(device_.context());
  check(device_.driver().cuStreamWaitEvent(stream_, own<CudaEvent>(event).get(), 0), "cuStreamWaitEvent");
  const bool records = !recording_ && is_recording();  // joins the recording of the event's stream
  const std::lock_guard lock(launching_);
  joined_ = records;
  in_flight_.forget();
}

std::shared_ptr<GraphBackend> CudaStream::capture(const std::function<void()>& function) {
  const Driver& driver = device_.driver();
  const ContextScope scope(device_.context());
  catch_up();
  // While a stream records, freeing memory does not wait for it, so finish all earlier work now.
  check(driver.cuStreamSynchronize(stream_), "cuStreamSynchronize");
  check(driver.cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture");
  CUgraph recorded = nullptr;
  RecordedMemory memory;
  recording_ = &memory;
  forget_launches();
  try {
    function();
    recording_ = nullptr;
  } catch (...) {
    recording_ = nullptr;
    driver.cuStreamEndCapture(stream_, &recorded);
    forget_launches();
    if (recorded) driver.cuGraphDestroy(recorded);
    throw;
  }
  const CUresult ended = driver.cuStreamEndCapture(stream_, &recorded);
  forget_launches();  // the recorded work did not run
  check(ended, "cuStreamEndCapture");
  const Handle<CUgraph> graph(device_.context(), driver.cuGraphDestroy, recorded);
  return std::make_shared<CudaGraph>(device_.shared_from_this(), graph.get(), last(), std::move(memory));
}

void CudaStream::launch(GraphBackend& graph) {
  CudaWork& work = own<CudaWork>(graph);
  const ContextScope scope(device_.context());
  catch_up();
  work.launch(*this);
  forget_launches();
  if (work.last()) launched(work.last());
  if (device_.settings().synchronous && !is_recording()) synchronize();
}

void* CudaStream::native() {
  const ContextScope scope(device_.context());
  catch_up();
  shared_ = true;
  return stream_;
}

}  // namespace tessera::internal
