// A persistent kernel on a CUDA GPU: one cooperative launch does the work of a sequence of launches.
#pragma once
#include <memory>
#include <mutex>
#include <span>
#include <string_view>

#include "codegen/persistent_source.hpp"
#include "jit/cuda/cuda_stream.hpp"

namespace tessera::internal {

class CudaPersistent final : public CudaWork {
 public:
  CudaPersistent(const std::shared_ptr<CudaBackend>& device, std::string_view name,
                 std::span<const DeviceLaunch> launches);
  void launch(CudaStream& stream) override;

 private:
  using Loaded = std::pair<const LoadedCode*, PersistentSource>;
  CudaPersistent(const std::shared_ptr<CudaBackend>& device, Loaded loaded, std::span<const DeviceLaunch> launches);
  static profile::Plan plan(const Loaded& loaded, std::span<const DeviceLaunch> launches);
  static Loaded loaded(CudaBackend& device, std::string_view name, std::span<const DeviceLaunch> launches);

  std::shared_ptr<CudaBackend> device_;
  std::shared_ptr<void> table_, arrivals_;
  int launches_;
  unsigned ctas_ = 0, threads_, shared_bytes_;
  std::mutex mutex_;                   // guards the next two members
  cuda::Handle<cuda::CUevent> ended_;  // the latest run
  bool has_run_ = false;
  profile::Plan plan_;  // null: the profiler was off
};

}  // namespace tessera::internal
