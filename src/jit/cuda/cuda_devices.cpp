#include "jit/cuda/cuda_devices.hpp"

#include <fmt/format.h>

#include "tessera/graph/error.hpp"

namespace tessera::internal {

using namespace cuda;

CudaDevices& CudaDevices::instance() {
  static CudaDevices& devices = *new CudaDevices;  // never destroyed: memory of a device may outlive any static object
  return devices;
}

std::shared_ptr<const Driver> CudaDevices::driver() {
  const std::lock_guard lock(mutex_);
  if (!driver_) driver_ = std::make_shared<Driver>(Driver::open(places_));
  return driver_;
}

int CudaDevices::count() {
  int count = 0;
  driver()->run(driver()->cuDeviceGetCount, &count);
  driver()->check(count > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE, "cuDeviceGetCount");
  return count;
}

std::shared_ptr<DeviceBackend> CudaDevices::open(int ordinal) {
  if (const int here = count(); ordinal >= here)
    throw Error(fmt::format("the last CUDA device of this machine is cuda:{}", here - 1));
  const std::lock_guard lock(mutex_);
  std::shared_ptr<CudaBackend>& device = open_[ordinal];
  if (!device) device = std::make_shared<CudaBackend>(driver_, ordinal, settings_);
  return device;
}

std::shared_ptr<DeviceBackend> CudaDevices::first() {
  std::string reason;  // why the first device cannot be used
  for (int ordinal = 0, here = count(); ordinal < here; ++ordinal) {
    try {
      return open(ordinal);
    } catch (const Error& error) {
      if (reason.empty()) reason = error.what();
    }
  }
  throw Error(reason);
}

}  // namespace tessera::internal
