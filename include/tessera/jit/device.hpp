// Devices, memory, streams, events and recorded launches: the CPU and CUDA GPUs behind one interface.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tessera/codegen/arch.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

// What a kind of device does; see backend.hpp.
class DeviceBackend;
class StreamBackend;
class EventBackend;
class GraphBackend;

/// A moment in the work of a stream. A handle.
class Event {
 public:
  /// Waits until the stream has come here; throws what went wrong before.
  void synchronize() const;
  /// Time of the device from `earlier` to here; waits for both.
  double milliseconds_since(const Event& earlier) const;

 private:
  friend class Stream;
  explicit Event(std::shared_ptr<EventBackend> backend) : backend_(std::move(backend)) {}
  std::shared_ptr<EventBackend> backend_;
};

/// Work that was recorded once and can be given to a stream as a whole, any number of times, at next to no cost on the
/// host. It uses the memory that it was recorded with, which must be there whenever it runs. A handle.
class CapturedGraph {
 private:
  friend class Stream;
  explicit CapturedGraph(std::shared_ptr<GraphBackend> backend) : backend_(std::move(backend)) {}
  std::shared_ptr<GraphBackend> backend_;
};

/// An ordered queue of work of a device. A handle: copies are the same queue. On the CPU work is done when the call
/// that gives it returns. Any number of threads may use one stream.
class Stream {
 public:
  /// Waits for all work; throws what went wrong in it.
  void synchronize() const;
  /// Copies between memory of the device and of the host, or within either, in the order of the stream. The host's
  /// memory must be there until the stream was waited for; if it is pinned, the host and other streams do not wait.
  void copy(void* to, const void* from, std::size_t bytes) const;
  Event record() const;
  /// What is given to this stream from now on comes after `event`.
  void wait(const Event& event) const;

  /// Runs `function`, and records what it gives to this stream instead of doing it. Meanwhile this thread can wait for
  /// nothing. On a GPU all kernels should have been launched once before, and the stream's earlier work is waited for.
  CapturedGraph capture(const std::function<void()>& function) const;
  void launch(const CapturedGraph& graph) const;

  /// The CUstream, for work of others on it; null on the CPU.
  void* native() const;
  /// Of its device, as in DeviceInfo.
  const std::string& device_name() const;
  StreamBackend& backend() const { return *backend_; }

 private:
  friend class Device;
  explicit Stream(std::shared_ptr<StreamBackend> backend) : backend_(std::move(backend)) {}
  std::shared_ptr<StreamBackend> backend_;
};

struct DeviceInfo {
  std::string name;          ///< "cpu (2 threads)", "cuda:0 (NVIDIA H200, sm_90)"
  std::optional<Arch> arch;  ///< of a GPU
  int multiprocessors = 0;   ///< of a GPU; threads of the CPU
  std::size_t l2_bytes = 0;  ///< of a GPU
  std::optional<int> ordinal = {};  ///< of a GPU: N of cuda:N, CUDA's number of it
};

/// Something that runs kernels. A handle: copies are the same device.
class Device {
 public:
  /// A CUDA device if there is one, else the CPU; TESSERA_DEVICE overrides.
  static Device best();
  static Device cpu();
  /// "auto", "cpu", "cuda" or "cuda:1"; "emulated": generated kernels are executed on the CPU, and checked for races,
  /// bounds and reads of what nobody wrote, where libtessera_emulator.so is there. Throws Error if it is not here, with the reason.
  static Device parse(std::string_view text);

  explicit Device(std::shared_ptr<DeviceBackend> backend, std::string reason = "")
      : backend_(std::move(backend)), reason_(std::move(reason)) {}

  const DeviceInfo& info() const;
  /// As in info().
  const std::string& name() const { return info().name; }
  /// Why this device was chosen; empty if it was asked for by name.
  const std::string& reason() const { return reason_; }

  /// A tensor of this device, row-major, contents undefined: `Tensor<bf16, 2> x = device.tensor<bf16>({8192, 768});`
  /// (The type is that of api/tensor.hpp, which has the definition.)
  template <class T, std::size_t R>
  auto tensor(const std::int64_t (&extents)[R]) const;
  /// One that begins with values of the host in row-major order, as many as it has elements.
  template <class T, std::size_t R>
  auto tensor(const std::int64_t (&extents)[R], std::span<const T> values) const;

  /// The device's own stream. On a GPU its work and that of CUDA's legacy default stream come one after the other.
  Stream stream() const;
  /// Another, whose work may run beside that of all others. (Memory that is freed, and then allocated, puts the streams
  /// in order once; allocate before work that is to overlap.)
  Stream new_stream() const;
  /// One over a CUstream of the same device, null for the legacy default stream. It must outlive the handles. Throws
  /// Error on the CPU.
  Stream stream_from(void* cu_stream) const;
  /// Is it a stream of this device?
  bool has(const Stream& stream) const;

  /// Memory of the device, aligned to 64 bytes; contents undefined. Work given to this device's streams from now on may
  /// use it. It is freed with the last owner, after all work given to them before: a tensor may go while its launch
  /// runs. Throws Error with the size if there is none left.
  std::shared_ptr<void> allocate(std::size_t bytes) const;
  /// Memory of the host that a GPU reads and writes without help: for Stream::copy.
  std::shared_ptr<void> pinned(std::size_t bytes) const;
  /// Can kernels read host memory where it lies?
  bool shares_host_memory() const;
  /// Waits for all work given to the device's streams; throws what went wrong in it.
  void synchronize() const;
  /// Copies that come after all work given to the device's streams, and are done when they return.
  void copy_in(void* device, const void* host, std::size_t bytes) const;
  void copy_out(void* host, const void* device, std::size_t bytes) const;
  bool operator==(const Device& other) const { return backend_ == other.backend_; }

 private:
  std::shared_ptr<DeviceBackend> backend_;
  std::string reason_;
};

}  // namespace internal
}  // namespace tessera
