#include "tessera/jit/device.hpp"

#include <fmt/format.h>

#include <charconv>

#include "jit/backend/backend.hpp"
#include "jit/compile/nvrtc.hpp"
#include "jit/cpu/cpu_backend.hpp"
#include "jit/cuda/cuda_devices.hpp"
#include "jit/device/emulated.hpp"
#include "jit/options/options.hpp"
#include "jit/profile/profiler.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

thread_local bool recording = false;  // true while Stream::capture runs on this thread

}  // namespace

// A wait would never end, because the work that it waits for does not run before the recording is over.
void refuse_while_recording(std::string_view what) {
  if (recording)
    throw Error(fmt::format("{} while this thread records a stream; do it before or after Stream::capture", what));
}

bool is_recording() { return recording; }

void Event::synchronize() const {
  refuse_while_recording("an event is waited for");
  backend_->synchronize();
}
double Event::milliseconds_since(const Event& earlier) const {
  refuse_while_recording("an event is waited for");
  return backend_->milliseconds_since(*earlier.backend_);
}

void Stream::synchronize() const {
  refuse_while_recording("a stream is waited for");
  backend_->synchronize();
}
void Stream::copy(void* to, const void* from, std::size_t bytes) const { backend_->copy(to, from, bytes); }
Event Stream::record() const { return Event(backend_->record()); }
void Stream::wait(const Event& event) const { backend_->wait(*event.backend_); }
CapturedGraph Stream::capture(const std::function<void()>& function) const {
  refuse_while_recording("a stream is to be recorded");
  struct Recording {
    Recording() { recording = true; }
    ~Recording() { recording = false; }
  } const scope;
  return CapturedGraph(backend_->capture(function));
}
void Stream::launch(const CapturedGraph& graph) const { backend_->launch(*graph.backend_); }
void* Stream::native() const { return backend_->native(); }
const std::string& Stream::device_name() const { return backend_->device().info().name; }

Device Device::cpu() {
  profile::start();
  Device device(cpu_backend());
  profile::name_host(device.name());
  return device;
}

Device Device::best() { return parse("auto"); }

Device Device::parse(std::string_view text) {
  profile::start();
  const profile::Span span(profile::Kind::open, [&] { return profile::named(fmt::format("open {}", text)); });
  if (text == "cpu") return cpu();
  if (text == "emulated") {
    try {
      Device device(emulated_backend());
      profile::name_host(device.name());
      return device;
    } catch (const Error& failure) {
      throw Error(fmt::format("device emulated: {}", failure.what()));
    }
  }
  if (text == "auto" && options().device != "auto") {
    const std::string reason = fmt::format("TESSERA_DEVICE={}", options().device);
    try {
      return Device(parse(options().device).backend_, reason);
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", reason, error.what()));
    }
  }
  if (text == "auto") {
    try {
      Device device(CudaDevices::instance().first(), "the first CUDA device");
      (void)Nvrtc::instance();  // without NVRTC a GPU runs nothing
      return device;
    } catch (const Error& error) {
      return Device(cpu().backend_, error.what());
    }
  }
  int ordinal = 0;
  const std::string_view digits = text.substr(0, 5) == "cuda:" ? text.substr(5) : "";
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), ordinal);
  const bool numbered = !digits.empty() && error == std::errc() && end == digits.data() + digits.size() && ordinal >= 0;
  if (text != "cuda" && !numbered)
    throw Error(fmt::format("there is no device '{}'; use auto, cpu, cuda, cuda:N or emulated", text));
  try {
    return Device(numbered ? CudaDevices::instance().open(ordinal) : CudaDevices::instance().first());
  } catch (const Error& failure) {
    throw Error(fmt::format("device {}: {}; or use cpu or auto", text, failure.what()));
  }
}

const DeviceInfo& Device::info() const { return backend_->info(); }
Stream Device::stream() const { return Stream(backend_->stream()); }
Stream Device::new_stream() const { return Stream(backend_->new_stream()); }
Stream Device::stream_from(void* cu_stream) const { return Stream(backend_->stream_from(cu_stream)); }
bool Device::has(const Stream& stream) const { return &stream.backend().device() == backend_.get(); }
std::shared_ptr<void> Device::allocate(std::size_t bytes) const { return backend_->allocate(bytes); }
std::optional<std::size_t> Device::free_bytes(std::size_t wanted) const { return backend_->free_bytes(wanted); }
std::shared_ptr<void> Device::pinned(std::size_t bytes) const { return backend_->pinned(bytes); }
bool Device::shares_host_memory() const { return backend_->shares_host_memory(); }
void Device::synchronize() const {
  refuse_while_recording("a device is waited for");
  std::byte last{};
  const std::shared_ptr<void> memory = backend_->allocate(1);
  backend_->copy(memory.get(), &last, 1);  // a copy runs after all work, and waits for it
}
void Device::copy_in(void* device, const void* host, std::size_t bytes) const {
  refuse_while_recording("memory is copied in");
  backend_->copy(device, host, bytes);
}
void Device::copy_out(void* host, const void* device, std::size_t bytes) const {
  refuse_while_recording("memory is copied out");
  backend_->copy(host, device, bytes);
}

}  // namespace tessera::internal
