#include "jit/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "cpu/parallel.hpp"
#include "graph/error.hpp"
#include "jit/executable.hpp"
#include "jit/options.hpp"

namespace tessera {
namespace {

class CpuBackend final : public DeviceBackend {
 public:
  CpuBackend() {
    const std::string_view missing = cpu::missing_instructions();
    if (!missing.empty())
      throw Error(
          fmt::format("this program was compiled for a CPU with {}, which this one lacks; build it here, or with "
                      "-DTESSERA_CPU_ARCH=x86-64-v2",
                      missing));
    cpu::set_threads(options().threads);
  }
  std::string name() const override { return fmt::format("cpu ({} threads)", cpu::threads()); }
  std::shared_ptr<void> allocate(std::size_t bytes) override {
    constexpr std::size_t alignment = 64;
    const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
    if (void* memory = rounded >= bytes ? std::aligned_alloc(alignment, rounded) : nullptr) return {memory, std::free};
    throw Error(fmt::format("there is no memory left for {:.1f} MB",
                            static_cast<double>(bytes) * 1e-6));
  }
  bool shares_host_memory() const override { return true; }
  void copy_in(void* device, const void* host, std::size_t bytes) override {
    if (bytes) std::memcpy(device, host, bytes);
  }
  void copy_out(void* host, const void* device, std::size_t bytes) override {
    if (bytes) std::memcpy(host, device, bytes);
  }
  void launch(const Executable& kernel, std::span<const Argument> arguments,
              std::span<const std::int64_t> grid) override {
    kernel.cpu_program().run(arguments, grid);
  }
  void synchronize() override {}
};

const std::shared_ptr<DeviceBackend>& cpu_backend() {
  static const std::shared_ptr<DeviceBackend> backend = std::make_shared<CpuBackend>();
  return backend;
}

constexpr std::string_view no_cuda = "this version of Tessera runs kernels on the CPU only";

}  // namespace

void Stream::synchronize() const { backend_->synchronize(); }

Device Device::cpu() { return Device(cpu_backend(), ""); }

Device Device::best() { return parse("auto"); }

Device Device::parse(std::string_view text) {
  const bool automatic = text == "auto";
  if (automatic && options().device != "auto") {
    const std::string reason = fmt::format("TESSERA_DEVICE={}", options().device);
    Device device = cpu();
    try {
      device = parse(options().device);
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", reason, error.what()));
    }
    device.reason_ = reason;
    return device;
  }
  if (automatic) return Device(cpu_backend(), std::string(no_cuda));
  if (text == "cpu") return cpu();
  const bool number = text.size() > 5 && text.find_first_not_of("0123456789", 5) == text.npos;
  if (text == "cuda" || (text.substr(0, 5) == "cuda:" && number))
    throw Error(fmt::format("device {}: {}; ask for cpu or auto", text, no_cuda));
  throw Error(fmt::format("there is no device '{}'; ask for auto, cpu, cuda or cuda:N", text));
}

std::string Device::name() const { return backend_->name(); }
std::shared_ptr<void> Device::allocate(std::size_t bytes) const { return backend_->allocate(bytes); }
bool Device::shares_host_memory() const { return backend_->shares_host_memory(); }
void Device::copy_in(void* device, const void* host, std::size_t bytes) const {
  backend_->copy_in(device, host, bytes);
}
void Device::copy_out(void* host, const void* device, std::size_t bytes) const {
  backend_->copy_out(host, device, bytes);
}

}  // namespace tessera
