// The CUDA GPUs of this machine.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "jit/cuda/cuda_backend.hpp"

namespace tessera::internal {

inline constexpr const char* driver_library = "libcuda.so.1";

/// Opens the driver and each device on first use.
class CudaDevices {
 public:
  /// The devices of this process.
  static CudaDevices& instance();
  explicit CudaDevices(std::vector<std::string> driver_places = {driver_library}, CudaSettings settings = {})
      : places_(std::move(driver_places)), settings_(std::move(settings)) {}

  /// All throw Error that says in one line why there is no such device.
  int count();  ///< at least 1
  std::shared_ptr<DeviceBackend> open(int ordinal);
  /// The first device that kernels can be compiled for.
  std::shared_ptr<DeviceBackend> first();

 private:
  std::shared_ptr<const cuda::Driver> driver();

  std::vector<std::string> places_;
  CudaSettings settings_;
  std::mutex mutex_;
  std::shared_ptr<const cuda::Driver> driver_;
  std::map<int, std::shared_ptr<CudaBackend>> open_;
};

}  // namespace tessera::internal
