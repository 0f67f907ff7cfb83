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

namespace tessera::internal {

class CudaStream;

/// How kernels get their code, and what a launch waits for.
struct CudaSettings {
  using Compile = std::function<CompiledKernel(const Graph&, const Variant&, Arch)>;
  Compile compile = compile_kernel, recompile = recompile_kernel;
  bool synchronous = options().debug;        ///< a launch waits for its kernel
  SplitKPolicy split_k = split_k_policy();   ///< of the rounds of products
  bool pdl = options().pdl;                  ///< a kernel that can begins while the one before it ends
};

/// Compiled code on a GPU.
struct LoadedCode {
  std::shared_ptr<const CacheEntry> entry;
  std::string kernel;  ///< as its author named it
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
  std::shared_ptr<void> allocate(std::size_t bytes) override;
  std::shared_ptr<void> pinned(std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  std::shared_ptr<StreamBackend> stream() override;
  std::shared_ptr<StreamBackend> new_stream() override;
  std::shared_ptr<StreamBackend> stream_from(void* cu_stream) override;
  std::unique_ptr<DeviceKernel> kernel(const Graph& graph) override;

  // For streams and kernels of this device.

  const cuda::PrimaryContext& context() const { return context_; }
  const cuda::Driver& driver() const { return context_.driver(); }
  const CudaSettings& settings() const { return settings_; }
  bool has_pools() const { return pool_ != nullptr; }

  /// Loads code, or finds it loaded: it stays for as long as the device, since launches and recorded graphs may use it
  /// when its kernel is gone. Compiles it again if the driver does not take it.
  std::pair<const LoadedCode*, KernelSource> load(const Graph& graph, const Variant& variant);
  void launched(const LoadedCode* code) { last_.store(code, std::memory_order_relaxed); }

  /// Gives memory back once all work has ended that was given to streams before.
  void free(void* address) noexcept;
  void add(CudaStream& stream);
  /// Memory that is freed from now on is so after the stream's work.
  void remove(CudaStream& stream);
  /// Changes with each allocation. A stream that has not seen the latest must wait for allocated() before it works.
  std::uint64_t allocations() const { return allocations_.load(std::memory_order_acquire); }
  cuda::CUevent allocated() const { return allocated_.get(); }

  /// The board on which kernels of the graph tell the host (graph/reports.hpp): memory of the host's, which lives as
  /// long as the device. 0: they tell nothing.
  cuda::CUdeviceptr board(const Graph& graph);
  /// To be called when work has been waited for: prints what kernels told, and throws Error for a check that failed.
  /// The GPU goes on as it was.
  void take_reports();

  /// Does nothing after success. Else throws Error: the driver's, for `subject`; or, if a kernel has lost the GPU, one
  /// that blames `last`, the kernel launched last of those that may have (of all, if null). From then on it is always
  /// that one.
  void check(cuda::CUresult result, std::string_view call, std::string_view subject = {},
             const LoadedCode* last = nullptr) {
    if (result != cuda::CUDA_SUCCESS) [[unlikely]]
      fail(result, call, subject, last);
  }
  /// Makes something: make(d.cuStreamDestroy, d.cuStreamCreate, flags).
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
  int attribute(int which) const;

  cuda::PrimaryContext context_;
  CudaSettings settings_;
  DeviceInfo info_;
  cuda::CUmemoryPool pool_ = nullptr;  // null: the device has none

  // Memory has a stream of its own, on which it is allocated and freed, so that neither is ever recorded. It waits for
  // all others before memory is freed, and they wait for it after memory was allocated.
  std::mutex memory_mutex_;  // of work on the memory stream, and of the list
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

  std::atomic<const LoadedCode*> last_ = nullptr;  // launched on any stream
  std::mutex fault_mutex_;
  std::string fault_;  // what went wrong when the GPU was lost

  std::unique_ptr<CudaStream> stream_;
};

}  // namespace tessera::internal
