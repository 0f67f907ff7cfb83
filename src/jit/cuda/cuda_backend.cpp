#include "jit/cuda/cuda_backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <limits>

#include "jit/cuda/cuda_kernel.hpp"
#include "jit/cuda/cuda_persistent.hpp"
#include "jit/cuda/cuda_stream.hpp"
#include "jit/options/log.hpp"
#include "jit/profile/profiler.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {

using namespace cuda;

namespace {

double megabytes(std::size_t bytes) { return static_cast<double>(bytes) * 1e-6; }

CUdevice device_at(const Driver& driver, int ordinal) {
  CUdevice device = 0;
  driver.run(driver.cuDeviceGet, &device, ordinal);
  return device;
}

}  // namespace

CudaBackend::CudaBackend(std::shared_ptr<const Driver> driver, int ordinal, CudaSettings settings)
    : context_(driver, device_at(*driver, ordinal)), settings_(std::move(settings)) {
  std::array<char, 256> name{};
  driver->run(driver->cuDeviceGetName, name.data(), static_cast<int>(name.size()) - 1, context_.device());
  Arch arch{attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)};
  info_.name = fmt::format("cuda:{} ({}, {})", ordinal, name.data(), arch.name());
  if (arch.major < 8) throw Error(fmt::format("{} is older than sm_80, the oldest architecture supported", info_.name));
  if (arch.major >= 9) arch.suffix = 'a';
  info_.arch = arch;
  info_.ordinal = ordinal;
  info_.multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  multiprocessor_shared_bytes_ =
      static_cast<unsigned>(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
  info_.l2_bytes = static_cast<std::size_t>(attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
  constexpr int kilohertz = 1000;
  info_.clock_mhz = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE) / kilohertz;
  info_.memory_clock_mhz = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) / kilohertz;
  info_.driver = driver->version();

  if (attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)) {
    driver->run(driver->cuDeviceGetDefaultMemPool, &pool_, context_.device());
    // The pool keeps freed memory for later allocations, instead of returning it to the system at each synchronization.
    std::uint64_t kept = std::numeric_limits<std::uint64_t>::max();
    driver->run(driver->cuMemPoolSetAttribute, pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &kept);
  }
  memory_stream_ = make_stream(CU_STREAM_DEFAULT);
  allocated_ = make(driver->cuEventDestroy, driver->cuEventCreate, CU_EVENT_DISABLE_TIMING);
  stream_ = std::make_unique<CudaStream>(*this, make_stream(CU_STREAM_DEFAULT), nullptr);
  if (profile::active()) {
    profile_ = settings_.profile ? settings_.profile : &CudaProfile::process();
    profile_->add(*this);
    if (!settings_.profile) profile::finish_before_handlers();
  }
}

CudaBackend::~CudaBackend() {
  if (profile_) profile_->remove(*this);
  if (process_is_ending()) return;
  try {
    const ContextScope scope(context_);
    for (CudaStream* stream : streams_) driver().cuStreamSynchronize(stream->get());
    driver().cuStreamSynchronize(memory_stream_.get());
    for (const Board& board : boards_) driver().cuMemFreeHost(board.words.data());
  } catch (const Error&) {  // the GPU is lost
  }
}

int CudaBackend::attribute(int which) const {
  int value = 0;
  driver().run(driver().cuDeviceGetAttribute, &value, which, context_.device());
  return value;
}

int CudaBackend::memory_bus_bits() const {
  int bits = 0;
  const CUresult known =
      driver().cuDeviceGetAttribute(&bits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, context_.device());
  return known == CUDA_SUCCESS ? bits : 0;
}

void CudaBackend::wait_for_all() {
  const ContextScope scope(context_);
  const OutsideRecording outside(driver());
  const std::lock_guard lock(memory_mutex_);
  for (CudaStream* stream : streams_) wait_for(*stream);
  check(driver().cuStreamSynchronize(memory_stream_.get()), "cuStreamSynchronize");
}

CUresult CudaBackend::try_allocate(CUdeviceptr* address, std::size_t bytes) {
  if (!pool_) return driver().cuMemAlloc(address, bytes);
  if (const CUresult result = driver().cuMemAllocAsync(address, bytes, memory_stream_.get()); result != CUDA_SUCCESS)
    return result;
  check(driver().cuEventRecord(allocated_.get(), memory_stream_.get()), "cuEventRecord");
  allocations_.fetch_add(1, std::memory_order_release);
  return CUDA_SUCCESS;
}

std::shared_ptr<void> CudaBackend::allocate(std::size_t bytes) {
  const ContextScope scope(context_);
  const OutsideRecording outside(driver());
  CUdeviceptr address = 0;
  {
    const std::lock_guard lock(memory_mutex_);
    CUresult result = try_allocate(&address, std::max<std::size_t>(bytes, 1));
    if (result == CUDA_ERROR_OUT_OF_MEMORY && pool_) {  // more may become free when pending work has ended
      driver().cuStreamSynchronize(memory_stream_.get());
      driver().cuMemPoolTrimTo(pool_, 0);
      result = try_allocate(&address, std::max<std::size_t>(bytes, 1));
    }
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
      std::size_t free = 0, total = 0;
      driver().cuMemGetInfo(&free, &total);
      check(result, pool_ ? driver().cuMemAllocAsync.name : driver().cuMemAlloc.name,
            fmt::format("there is no memory left for {:.1f} MB; of {:.1f} MB, {:.1f} MB are free", megabytes(bytes),
                        megabytes(total), megabytes(free)));
    }
    check(result, "cuMemAllocAsync", "allocation of memory");
  }
  return {reinterpret_cast<void*>(address), [self = shared_from_this()](void* memory) { self->free(memory); }};
}

std::optional<std::size_t> CudaBackend::free_bytes(std::size_t wanted) {
  const ContextScope scope(context_);
  const OutsideRecording outside(driver());
  const std::lock_guard lock(memory_mutex_);
  std::size_t free = 0, total = 0;
  driver().run(driver().cuMemGetInfo, &free, &total);
  if (free < wanted && pool_) {
    driver().cuStreamSynchronize(memory_stream_.get());
    driver().cuMemPoolTrimTo(pool_, 0);
    driver().run(driver().cuMemGetInfo, &free, &total);
  }
  return free;
}

void CudaBackend::free(void* memory) noexcept {
  if (process_is_ending()) return;
  try {
    const ContextScope scope(context_);
    const OutsideRecording outside(driver());
    const std::lock_guard lock(memory_mutex_);
    const auto address = reinterpret_cast<CUdeviceptr>(memory);
    if (!pool_) return void(driver().cuMemFree(address));  // waits for all work
    for (CudaStream* stream : streams_) wait_for(*stream);
    driver().cuMemFreeAsync(address, memory_stream_.get());
  } catch (const Error&) {  // the GPU is lost
  }
}

/// Makes the memory stream wait for another stream. A stream that is being recorded is skipped: its recorded work does
/// not run now, and its earlier work has been waited for.
void CudaBackend::wait_for(CudaStream& stream) {
  if (stream.is_recording()) return;
  check(driver().cuEventRecord(stream.joint(), stream.get()), "cuEventRecord");
  check(driver().cuStreamWaitEvent(memory_stream_.get(), stream.joint(), 0), "cuStreamWaitEvent");
}

std::shared_ptr<void> CudaBackend::pinned(std::size_t bytes) {
  const ContextScope scope(context_);
  const OutsideRecording outside(driver());
  void* memory = nullptr;
  if (const CUresult result =
          driver().cuMemHostAlloc(&memory, std::max<std::size_t>(bytes, 1), CU_MEMHOSTALLOC_PORTABLE))
    check(result, driver().cuMemHostAlloc.name, fmt::format("{:.1f} MB of pinned memory", megabytes(bytes)));
  return {memory, [self = shared_from_this()](void* pinned) { self->free_pinned(pinned); }};
}

// Kernels may still write there.
void CudaBackend::free_pinned(void* memory) noexcept {
  if (process_is_ending()) return;
  try {
    const ContextScope scope(context_);
    const OutsideRecording outside(driver());
    const std::lock_guard lock(memory_mutex_);
    for (CudaStream* stream : streams_) wait_for(*stream);
    driver().cuStreamSynchronize(memory_stream_.get());
    driver().cuMemFreeHost(memory);
  } catch (const Error&) {  // the GPU is lost
  }
}

void CudaBackend::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  const ContextScope scope(context_);
  const TimedCall timed(*stream_, profile::Kind::launch, [] { return profile::Plan(); });
  {
    const std::lock_guard lock(memory_mutex_);
    for (CudaStream* stream : streams_) wait_for(*stream);
    check(driver().cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from), bytes,
                                 memory_stream_.get()),
          "cuMemcpyAsync");
  }
  check(driver().cuStreamSynchronize(memory_stream_.get()), "cuStreamSynchronize");
  take_reports();
}

CUdeviceptr CudaBackend::board(const Graph& graph) {
  Board board{.reports = Reports(graph), .words = {}};
  if (board.reports.empty()) return 0;
  const ContextScope scope(context_);
  const OutsideRecording outside(driver());
  const std::size_t words = board.reports.words();
  void* memory = nullptr;
  check(driver().cuMemHostAlloc(&memory, words * sizeof(std::uint32_t), CU_MEMHOSTALLOC_PORTABLE),
        driver().cuMemHostAlloc.name, fmt::format("kernel '{}', which checks or prints", graph.name));
  std::memset(memory, 0, words * sizeof(std::uint32_t));
  board.words = {static_cast<std::uint32_t*>(memory), words};
  const std::lock_guard lock(board_mutex_);
  boards_.push_back(std::move(board));
  return reinterpret_cast<CUdeviceptr>(memory);
}

void CudaBackend::take_reports() {
  const std::lock_guard lock(board_mutex_);
  const auto is_new = [](const Board& board) {
    const volatile std::uint32_t* const words = board.words.data();
    return !words[board::failed] && !words[board::used];
  };
  if (std::ranges::all_of(boards_, is_new)) return;
  {  // kernels on other streams may still be writing
    const ContextScope scope(context_);
    const std::lock_guard streams(memory_mutex_);
    for (CudaStream* stream : streams_)
      if (!stream->is_recording()) check(driver().cuStreamSynchronize(stream->get()), "cuStreamSynchronize");
  }
  std::string failed;
  for (const Board& board : boards_) {
    const Reports::Told told = board.reports.take(board.words);
    std::fwrite(told.printed.data(), 1, told.printed.size(), stdout);
    if (failed.empty()) failed = told.failed;
  }
  if (!failed.empty()) throw Error(failed);
}

Handle<CUstream> CudaBackend::make_stream(unsigned flags) {
  return make(driver().cuStreamDestroy, driver().cuStreamCreate, flags);
}
std::shared_ptr<StreamBackend> CudaBackend::stream() { return {shared_from_this(), stream_.get()}; }
std::shared_ptr<StreamBackend> CudaBackend::new_stream() {
  return std::make_shared<CudaStream>(*this, make_stream(CU_STREAM_NON_BLOCKING), shared_from_this());
}
std::shared_ptr<StreamBackend> CudaBackend::stream_from(void* cu_stream) {
  return std::make_shared<CudaStream>(*this, static_cast<CUstream>(cu_stream), shared_from_this());
}
std::unique_ptr<DeviceKernel> CudaBackend::kernel(const Graph& graph) {
  return std::make_unique<CudaKernel>(shared_from_this(), graph);
}

void CudaBackend::add(CudaStream& stream) {
  const std::lock_guard lock(memory_mutex_);
  streams_.push_back(&stream);
}

void CudaBackend::remove(CudaStream& stream) {
  const std::lock_guard lock(memory_mutex_);
  std::erase(streams_, &stream);
  if (process_is_ending()) return;
  try {
    const ContextScope scope(context_);
    wait_for(stream);
  } catch (const Error&) {  // the GPU is lost
  }
}

CUresult CudaBackend::load_module(const CacheEntry& entry, CUmodule* module, std::string& log) const {
  log.assign(8192, '\0');
  std::array<int, 2> options{CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(log.size())};
  const CUresult result =
      driver().cuModuleLoadDataEx(module, entry.code.image.data(), options.size(), options.data(), values.data());
  log.resize(std::min(log.find('\0'), log.size()));
  return result;
}

std::pair<const LoadedCode*, KernelSource> CudaBackend::load(const Graph& graph, const Variant& variant) {
  CompiledKernel compiled = settings_.compile(graph, variant, *info_.arch);
  const LoadedCode* const code = load(compiled.entry, graph.name, compiled.source.name, [&] {
    compiled = settings_.recompile(graph, variant, *info_.arch);
    return compiled.entry;
  });
  return {code, std::move(compiled.source)};
}

std::pair<const LoadedCode*, PersistentSource> CudaBackend::load(std::string_view name,
                                                                 std::span<const SequenceLaunch> launches, int ctas) {
  CompiledPersistent compiled = settings_.compile_persistent(name, launches, ctas, *info_.arch, false);
  const LoadedCode* const code = load(compiled.entry, std::string(name), compiled.source.kernel.name, [&] {
    compiled = settings_.compile_persistent(name, launches, ctas, *info_.arch, true);
    return compiled.entry;
  });
  return {code, std::move(compiled.source)};
}

const LoadedCode* CudaBackend::load(std::shared_ptr<const CacheEntry> entry, const std::string& author,
                                    const std::string& kernel,
                                    const std::function<std::shared_ptr<const CacheEntry>()>& recompile) {
  const std::lock_guard lock(code_mutex_);
  if (const auto found = code_.find(entry.get()); found != code_.end()) return &found->second;

  const ContextScope scope(context_);
  const OutsideRecording outside(driver());
  CUmodule module = nullptr;
  std::string log;
  CUresult result = load_module(*entry, &module, log);
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY && !is_fatal(result)) {
    log_debug(fmt::format("kernel '{}' is compiled again, because the driver rejects its cached code", author));
    entry = recompile();
    result = load_module(*entry, &module, log);
  }
  check(result, driver().cuModuleLoadDataEx.name,
        fmt::format("kernel '{}'{}{}", author, log.empty() ? "" : "; the driver's log: ", log));
  LoadedCode code{entry, author, {context_, driver().cuModuleUnload, module}};
  check(driver().cuModuleGetFunction(&code.function, module, kernel.c_str()), driver().cuModuleGetFunction.name,
        fmt::format("kernel '{}'", author));
  return &code_.insert_or_assign(entry.get(), std::move(code)).first->second;
}

std::shared_ptr<GraphBackend> CudaBackend::persistent(std::string_view name, std::span<const DeviceLaunch> launches) {
  return std::make_shared<CudaPersistent>(shared_from_this(), name, launches);
}

void CudaBackend::fail(CUresult result, std::string_view call, std::string_view subject, const LoadedCode* last) {
  const std::lock_guard lock(fault_mutex_);
  if (!fault_.empty())
    throw Error(fmt::format("{}: this process lost the GPU to an earlier error: {}", info_.name, fault_));
  if (!last) last = last_;
  const bool fatal = is_fatal(result);
  const std::string blamed = fatal && last ? fmt::format("kernel '{}' or one launched before it", last->kernel) : "";
  const std::string text = driver().describe(result, call, blamed.empty() ? subject : blamed);
  if (fatal) fault_ = text;
  throw Error(fmt::format("{}: {}", info_.name, text));
}

}  // namespace tessera::internal
