#include "jit/cuda/cuda_context.hpp"

#include <atomic>
#include <cstdlib>

namespace tessera::internal::cuda {
namespace {

std::atomic<bool> ending = false;

}  // namespace

PrimaryContext::PrimaryContext(std::shared_ptr<const Driver> driver, CUdevice device)
    : driver_(std::move(driver)), device_(device) {
  driver_->run(driver_->cuDevicePrimaryCtxRetain, &context_, device_);
  // Registered after the driver's own exit handlers, so it runs before them. Tensors with static storage may be
  // destroyed later still.
  [[maybe_unused]] static const int registered = std::atexit([] { ending = true; });
}

PrimaryContext::~PrimaryContext() {
  if (!process_is_ending()) driver_->cuDevicePrimaryCtxRelease(device_);
}

bool process_is_ending() { return ending; }

}  // namespace tessera::internal::cuda
