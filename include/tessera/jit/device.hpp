// Devices, memory, streams, events and recorded launches: one interface for the CPU and CUDA GPUs.
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

// The implementation of a kind of device; see backend.hpp.
class DeviceBackend;
class DeviceKernel;
class StreamBackend;
class EventBackend;
class GraphBackend;

/// A point in the work of a stream. A handle.
class Event {
 public:
  /// Waits until the stream has reached this point; throws the error of earlier work, if any.
  void synchronize() const;
  /// The device's time from `earlier` to this event, in milliseconds; waits for both.
  double milliseconds_since(const Event& earlier) const;

 private:
  friend class Stream;
  explicit Event(std::shared_ptr<EventBackend> backend) : backend_(std::move(backend)) {}
  std::shared_ptr<EventBackend> backend_;
};

/// Work that was recorded once, or launches as one persistent kernel (Sequence::persistent): it can be enqueued on a
/// stream as a whole, any number of times, at almost no cost on the host. It uses the memory that it was recorded with,
/// which must exist whenever it runs. A handle.
class CapturedGraph {
 private:
  friend class Sequence;
  friend class Stream;
  explicit CapturedGraph(std::shared_ptr<GraphBackend> backend) : backend_(std::move(backend)) {}
  std::shared_ptr<GraphBackend> backend_;
};

/// An ordered queue of work of a device. A handle: copies are the same queue. On the CPU, work is done when the call
/// that enqueues it returns. Any number of threads may use one stream.
class Stream {
 public:
  /// Waits for all work; throws its error, if any.
  void synchronize() const;
  /// Copies between memory of the device and of the host, or within either, in the order of the stream. The host memory
  /// must exist until the stream has been synchronized; if it is pinned, the copy does not block the host or other
  /// streams.
  void copy(void* to, const void* from, std::size_t bytes) const;
  Event record() const;
  /// Work enqueued on this stream from now on runs after `event`.
  void wait(const Event& event) const;

  /// Runs `function`, and records the work that it enqueues on this stream instead of running it. Meanwhile this thread
  /// cannot wait for anything. On a GPU, all kernels should have been launched once before; the stream's earlier work
  /// is waited for.
  CapturedGraph capture(const std::function<void()>& function) const;
  void launch(const CapturedGraph& graph) const;

  /// The CUstream, for work of other libraries; null on the CPU.
  void* native() const;
  /// The name of its device, as in DeviceInfo.
  const std::string& device_name() const;
  StreamBackend& backend() const { return *backend_; }

 private:
  friend class Device;
  explicit Stream(std::shared_ptr<StreamBackend> backend) : backend_(std::move(backend)) {}
  std::shared_ptr<StreamBackend> backend_;
};

/// Throws Error if this thread is in Stream::capture: "WHAT while this thread records a stream".
void refuse_while_recording(std::string_view what);
/// Is this thread in Stream::capture?
bool is_recording();

/// A device as it describes itself.
struct DeviceInfo {
  std::string name;                 ///< "cpu (2 threads)", "cuda:0 (NVIDIA H200, sm_90)"
  std::optional<Arch> arch;         ///< of a GPU
  int multiprocessors = 0;          ///< of a GPU; on the CPU, its threads
  std::size_t l2_bytes = 0;         ///< of a GPU
  std::optional<int> ordinal = {};  ///< of a GPU: N of cuda:N, CUDA's ordinal
  int clock_mhz = 0;                ///< of a GPU: the highest clock of its multiprocessors
  int memory_clock_mhz = 0;         ///< of a GPU
  int driver = 0;                   ///< of a GPU: the CUDA version of its driver, such as 13000
};

/// A device that runs kernels. A handle: copies are the same device.
class Device {
 public:
  /// A CUDA device if there is one, else the CPU; TESSERA_DEVICE overrides.
  static Device best();
  static Device cpu();
  /// "auto", "cpu", "cuda" or "cuda:1"; "emulated": generated kernels run on the CPU, and are checked for races, bounds
  /// and reads of uninitialized memory; this needs libtessera_emulator.so. Throws Error with the reason if the device
  /// is not available.
  static Device parse(std::string_view text);

  explicit Device(std::shared_ptr<DeviceBackend> backend, std::string reason = "")
      : backend_(std::move(backend)), reason_(std::move(reason)) {}

  const DeviceInfo& info() const;
  /// The name, as in info().
  const std::string& name() const { return info().name; }
  /// Why this device was chosen; empty if it was requested by name.
  const std::string& reason() const { return reason_; }

  /// A tensor on this device, row-major, contents undefined: `Tensor<bf16, 2> x = device.tensor<bf16>({8192, 768});`
  /// (The type is defined in api/tensor.hpp.)
  template <class T, std::size_t R>
  auto tensor(const std::int64_t (&extents)[R]) const;
  /// The same, initialized with host values in row-major order, as many as it has elements.
  template <class T, std::size_t R>
  auto tensor(const std::int64_t (&extents)[R], std::span<const T> values) const;

  /// The device's default stream. On a GPU its work is ordered with that of CUDA's legacy default stream.
  Stream stream() const;
  /// A new stream, whose work may overlap with that of all others. (Memory that is freed, and then allocated, orders
  /// the streams once; allocate before work that should overlap.)
  Stream new_stream() const;
  /// A stream over a CUstream of the same device, null for the legacy default stream. It must outlive the handles.
  /// Throws Error on the CPU.
  Stream stream_from(void* cu_stream) const;
  /// Is it a stream of this device?
  bool has(const Stream& stream) const;

  /// Memory of the device, aligned to 64 bytes; contents undefined. Work enqueued on this device's streams from now on
  /// may use it. It is freed with the last owner, after all work enqueued on them before: a tensor may be destroyed
  /// while its launch runs. Throws Error with the size if there is none left.
  std::shared_ptr<void> allocate(std::size_t bytes) const;
  /// Bytes that can be allocated now, about; none if the system does not say. Memory that is kept for later allocations
  /// is given back first if less than `wanted` is free without it.
  std::optional<std::size_t> free_bytes(std::size_t wanted = 0) const;
  /// Pinned host memory, which a GPU accesses directly: for Stream::copy, and for tensors that the host reads. It is
  /// freed with the last owner, once all work enqueued on this device's streams before is done.
  std::shared_ptr<void> pinned(std::size_t bytes) const;
  /// Can kernels access host memory directly?
  bool shares_host_memory() const;
  /// Waits for all work enqueued on the device's streams; throws its error, if any.
  void synchronize() const;
  /// Copies that run after all work enqueued on the device's streams, and are done when they return.
  void copy_in(void* device, const void* host, std::size_t bytes) const;
  void copy_out(void* host, const void* device, std::size_t bytes) const;
  bool operator==(const Device& other) const { return backend_ == other.backend_; }

 private:
  std::shared_ptr<DeviceBackend> backend_;
  std::string reason_;
};

}  // namespace internal
}  // namespace tessera
