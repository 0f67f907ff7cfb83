// The context of a GPU, and owning handles of driver objects.
#pragma once
#include <exception>
#include <memory>
#include <utility>

#include "jit/cuda/driver.hpp"

namespace tessera::internal::cuda {

/// The primary context of a device, which the runtime API and everything built on it use: retained, never created.
class PrimaryContext {
 public:
  PrimaryContext(std::shared_ptr<const Driver> driver, CUdevice device);
  ~PrimaryContext();
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;

  const Driver& driver() const { return *driver_; }
  CUdevice device() const { return device_; }
  CUcontext get() const { return context_; }

 private:
  std::shared_ptr<const Driver> driver_;
  CUdevice device_;
  CUcontext context_ = nullptr;
};

/// Makes a context current on this thread while it exists, then restores the previous one.
class ContextScope {
 public:
  explicit ContextScope(const PrimaryContext& context) : driver_(context.driver()) {
    driver_.run(driver_.cuCtxGetCurrent, &before_);
    changed_ = before_ != context.get();
    if (changed_) driver_.run(driver_.cuCtxSetCurrent, context.get());
  }
  ~ContextScope() {
    if (changed_) driver_.cuCtxSetCurrent(before_);
  }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  const Driver& driver_;
  CUcontext before_ = nullptr;
  bool changed_ = false;
};

/// While this thread records a stream, the driver forbids it some calls, since they could wait for the stream. This
/// scope permits them; they are not recorded. Use it only for calls that do not wait for the stream.
class OutsideRecording {
 public:
  explicit OutsideRecording(const Driver& driver) : driver_(driver) {
    driver_.run(driver_.cuThreadExchangeStreamCaptureMode, &mode_);
  }
  ~OutsideRecording() { driver_.cuThreadExchangeStreamCaptureMode(&mode_); }
  OutsideRecording(const OutsideRecording&) = delete;
  OutsideRecording& operator=(const OutsideRecording&) = delete;

 private:
  const Driver& driver_;
  int mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

/// True once the process is ending, when the driver may be gone already. Then nothing is released: the system reclaims
/// everything.
bool process_is_ending();

/// Owns a driver object, and releases it with the call for its kind. Movable, not copyable.
template <class T>
class Handle {
 public:
  Handle() = default;
  Handle(const PrimaryContext& context, const Call<T>& destroy, T value)
      : context_(&context), destroy_(&destroy), value_(value) {}
  Handle(Handle&& other) noexcept
      : context_(other.context_), destroy_(other.destroy_), value_(std::exchange(other.value_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(context_, other.context_), std::swap(destroy_, other.destroy_), std::swap(value_, other.value_);
    return *this;
  }
  ~Handle() {
    if (!value_ || process_is_ending()) return;
    try {
      const ContextScope scope(*context_);
      (*destroy_)(value_);
    } catch (const std::exception&) {  // the GPU is lost, and the object with it
    }
  }
  T get() const { return value_; }

 private:
  const PrimaryContext* context_ = nullptr;
  const Call<T>* destroy_ = nullptr;
  T value_ = nullptr;
};

}  // namespace tessera::internal::cuda
