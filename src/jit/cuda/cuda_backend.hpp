// A CUDA GPU as a device: its memory, its streams, and the code loaded on it.
#pragma once
#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "graph/reports.hpp"
#include "jit/backend/backend.hpp"
#include "jit/compile/compiler.hpp"
#include "jit/cuda/cuda_context.hpp"
#include "jit/cuda/cuda_profile.hpp"

namespace tessera::internal {

class CudaStream;

/// How kernels get their code, and how they are launched.
struct CudaSettings {
  using Compile = std::function<CompiledKernel(const Graph&, const Variant&, Arch)>;
  Compile compile = compile_kernel, recompile = recompile_kernel;
  std::function<CompiledPersistent(std::string_view, std::span<const SequenceLaunch>, int ctas, Arch, bool again)>
      compile_persistent = internal::compile_persistent;
  bool synchronous = options().debug;              ///< a launch waits for its kernel
  SplitKPolicy split_k = split_k_policy();         ///< how matmuls split k over CTAs
  MulticastPolicy multicast = multicast_policy();  ///< when clusters of CTAs load operands for each other
  CudaProfile* profile = nullptr;                  ///< null: that of the process
  bool pdl = options().pdl;                        ///< programmatic dependent launch, for kernels that support it
};

/// Compiled code on a GPU.
struct LoadedCode {
  std::shared_ptr<const CacheEntry> entry;
  std::string kernel;  ///< the name that its author gave it
  cuda::Handle<cuda::CUmodule> module;
  cuda::CUfunction function = nullptr;
};

class CudaBackend final : public DeviceBackend, public std::enable_shared_from_this<CudaBackend> {
 public:
  /// Throws Error if the device cannot be used.
  CudaBackend(std::shared_ptr<const cuda::Driver> driver, int ordinal, CudaSettings settings);
  ~CudaBackend() override;

  const DeviceInfo& info() const override { return info_; }
  bool shares_host_memory() const override { return false; }
  std::optional<std::size_t> free_bytes(std::size_t wanted) override;
  std::shared_ptr<void> allocate(std::size_t bytes) override;
  std::shared_ptr<void> pinned(std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  std::shared_ptr<StreamBackend> stream() override;
  std::shared_ptr<StreamBackend> new_stream() override;
  std::shared_ptr<StreamBackend> stream_from(void* cu_stream) override;
  std::unique_ptr<DeviceKernel> kernel(const Graph& graph) override;
  std::shared_ptr<GraphBackend> persistent(std::string_view name, std::span<const DeviceLaunch> launches) override;

  // Used by the streams and kernels of this device.

  const cuda::PrimaryContext& context() const { return context_; }
  const cuda::Driver& driver() const { return context_.driver(); }
  const CudaSettings& settings() const { return settings_; }
  bool has_pools() const { return pool_ != nullptr; }
  unsigned multiprocessor_shared_bytes() const { return multiprocessor_shared_bytes_; }

  /// Returns the code for a variant, loaded on first use. It stays loaded as long as the device exists, because
  /// launches and recorded graphs may use it after its kernel is gone. If the driver rejects cached code, compiles it
  /// again.
  std::pair<const LoadedCode*, KernelSource> load(const Graph& graph, const Variant& variant);
  /// The same for a persistent kernel.
  std::pair<const LoadedCode*, PersistentSource> load(std::string_view name, std::span<const SequenceLaunch> launches,
                                                      int ctas);
  /// Null: the profiler was off when the device was opened.
  CudaProfile* profile() const { return profile_; }
  /// For launches that CUPTI does not trace.
  EventTimer* timer() { return &timer_; }
  /// The width of the memory's bus; 0: unknown.
  int memory_bus_bits() const;
  /// Waits for all work given to the streams so far.
  void wait_for_all();
  void launched(const LoadedCode* code) { last_.store(code, std::memory_order_relaxed); }

  /// Frees memory once all work given to the streams so far has ended.
  void free(void* address) noexcept;
  void free_pinned(void* memory) noexcept;
  void add(CudaStream& stream);
  /// From now on, memory is freed after the work given to the stream so far.
  void remove(CudaStream& stream);
  /// A counter that each allocation increments. A stream that has not seen the latest allocation must wait for
  /// allocated() before its next work.
  std::uint64_t allocations() const { return allocations_.load(std::memory_order_acquire); }
  cuda::CUevent allocated() const { return allocated_.get(); }

  /// The mailbox in which kernels of the graph leave their reports to the host (graph/reports.hpp): pinned host memory
  /// that lives as long as the device. 0 if they report nothing.
  cuda::CUdeviceptr board(const Graph& graph);
  /// To be called after a wait for work: prints what kernels reported, and throws Error for a check that failed. The
  /// GPU stays usable.
  void take_reports();

  /// Does nothing after success. Otherwise throws Error: normally the driver's, for `subject`. If a kernel has lost the
  /// GPU, the error blames `last`, the latest launch among those that may have caused it (among all launches, if null),
  /// and from then on every call throws that error.
  void check(cuda::CUresult result, std::string_view call, std::string_view subject = {},
             const LoadedCode* last = nullptr) {
    if (result != cuda::CUDA_SUCCESS) [[unlikely]]
      fail(result, call, subject, last);
  }
  /// Creates a driver object and returns its owning handle: make(d.cuStreamDestroy, d.cuStreamCreate, flags).
  template <class T, class... P>
  cuda::Handle<T> make(const cuda::Call<T>& destroy, const cuda::Call<T*, P...>& create,
                       std::type_identity_t<P>... options) {
    const cuda::ContextScope scope(context_);
    T value = nullptr;
    check(create(&value, options...), create.name);
    return {context_, destroy, value};
  }

 private:
  [[noreturn]] void fail(cuda::CUresult result, std::string_view call, std::string_view subject,
                         const LoadedCode* last);
  cuda::CUresult try_allocate(cuda::CUdeviceptr* address, std::size_t bytes);
  cuda::Handle<cuda::CUstream> make_stream(unsigned flags);
  void wait_for(CudaStream& stream);
  cuda::CUresult load_module(const CacheEntry& entry, cuda::CUmodule* module, std::string& log) const;
  /// The loaded code of `entry`, whose entry point is `kernel`; `recompile` returns another one in its place.
  const LoadedCode* load(std::shared_ptr<const CacheEntry> entry, const std::string& author, const std::string& kernel,
                         const std::function<std::shared_ptr<const CacheEntry>()>& recompile);
  int attribute(int which) const;

  cuda::PrimaryContext context_;
  CudaSettings settings_;
  DeviceInfo info_;
  unsigned multiprocessor_shared_bytes_ = 0;
  cuda::CUmemoryPool pool_ = nullptr;  // null: the device does not support pools

  // Memory is allocated and freed on a stream of its own, so that neither is ever recorded. That stream waits for all
  // others before memory is freed, and they wait for it after memory has been allocated.
  std::mutex memory_mutex_;  // guards work on the memory stream, and the list of streams
  cuda::Handle<cuda::CUstream> memory_stream_;
  cuda::Handle<cuda::CUevent> allocated_;
  std::atomic<std::uint64_t> allocations_ = 0;
  std::vector<CudaStream*> streams_;

  std::mutex code_mutex_;
  std::map<const CacheEntry*, LoadedCode> code_;

  struct Board {
    Reports reports;
    std::span<std::uint32_t> words;
  };
  std::mutex board_mutex_;
  std::vector<Board> boards_;

  std::atomic<const LoadedCode*> last_ = nullptr;  // the latest launch, on any stream
  std::mutex fault_mutex_;
  std::string fault_;  // the error that lost the GPU

  CudaProfile* profile_ = nullptr;
  EventTimer timer_{*this};
  std::unique_ptr<CudaStream> stream_;
};

}  // namespace tessera::internal
