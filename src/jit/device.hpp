// Devices, memory and streams: the CPU today, behind the interface that a GPU fits too.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "graph/argument.hpp"

namespace tessera {

class Executable;
class DeviceBackend;

/// An ordered queue of work of a device. On the CPU each launch is done when it returns.
class Stream {
 public:
  /// Waits for all work; throws what went wrong in it.
  void synchronize() const;
  DeviceBackend& backend() const { return *backend_; }

 private:
  friend class Device;
  explicit Stream(std::shared_ptr<DeviceBackend> backend) : backend_(std::move(backend)) {}
  std::shared_ptr<DeviceBackend> backend_;
};

/// Something that runs kernels. A handle: copies are the same device.
class Device {
 public:
  /// A CUDA device if there is one, else the CPU; TESSERA_DEVICE overrides.
  static Device best();
  static Device cpu();
  /// "auto", "cpu", "cuda" or "cuda:1". Throws Error if it is not here, with the reason.
  static Device parse(std::string_view text);

  /// "cpu (2 threads)".
  std::string name() const;
  /// Why this device was chosen; empty if it was asked for by name.
  const std::string& reason() const { return reason_; }

  /// A tensor of this device, row-major, contents undefined: `Tensor<bf16, 2> x = device.tensor<bf16>({8192, 768});`
  /// (The type is that of api/tensor.hpp, which has the definition.)
  template <class T, std::size_t R>
  auto tensor(const std::int64_t (&extents)[R]) const;

  Stream stream() const { return Stream(backend_); }
  /// Memory of the device, aligned to 64 bytes; contents undefined. Freed with the last owner. Throws Error with the
  /// size if there is none left.
  std::shared_ptr<void> allocate(std::size_t bytes) const;
  /// Can kernels read host memory where it lies?
  bool shares_host_memory() const;
  void copy_in(void* device, const void* host, std::size_t bytes) const;
  void copy_out(void* host, const void* device, std::size_t bytes) const;
  bool operator==(const Device& other) const { return backend_ == other.backend_; }

 private:
  Device(std::shared_ptr<DeviceBackend> backend, std::string reason)
      : backend_(std::move(backend)), reason_(std::move(reason)) {}
  std::shared_ptr<DeviceBackend> backend_;
  std::string reason_;
};

/// What a kind of device does.
class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  virtual std::string name() const = 0;
  virtual std::shared_ptr<void> allocate(std::size_t bytes) = 0;
  virtual bool shares_host_memory() const = 0;
  virtual void copy_in(void* device, const void* host, std::size_t bytes) = 0;
  virtual void copy_out(void* host, const void* device, std::size_t bytes) = 0;
  virtual void launch(const Executable& kernel, std::span<const Argument> arguments,
                      std::span<const std::int64_t> grid) = 0;
  virtual void synchronize() = 0;
};

}  // namespace tessera
