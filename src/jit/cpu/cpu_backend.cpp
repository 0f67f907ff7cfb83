#include "jit/cpu/cpu_backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cpu/parallel.hpp"
#include "cpu/program.hpp"
#include "graph/error.hpp"
#include "jit/compile/compiler.hpp"
#include "jit/options/options.hpp"

namespace tessera {
namespace {

/// Calls to be made again, in order.
struct CpuGraph final : GraphBackend {
  std::vector<std::function<void()>> calls;
};

struct CpuEvent final : EventBackend {
  std::chrono::steady_clock::time_point time = std::chrono::steady_clock::now();
  void synchronize() override {}
  double milliseconds_since(EventBackend& earlier) override {
    return std::chrono::duration<double, std::milli>(time - own<CpuEvent>(earlier).time).count();
  }
};

class CpuStream final : public StreamBackend {
 public:
  explicit CpuStream(DeviceBackend& device) : device_(device) {}

  /// The calls that this thread records instead of making them, or null. Other threads may use the stream meanwhile.
  CpuGraph* recording() const { return recorded_by == this ? recorded : nullptr; }

  DeviceBackend& device() override { return device_; }
  void synchronize() override {}
  void copy(void* to, const void* from, std::size_t bytes) override {
    const auto call = [=] {
      if (bytes) std::memmove(to, from, bytes);
    };
    recording() ? recording()->calls.emplace_back(call), void() : call();
  }
  std::shared_ptr<EventBackend> record() override { return std::make_shared<CpuEvent>(); }
  void wait(EventBackend& event) override { own<CpuEvent>(event); }
  std::shared_ptr<GraphBackend> capture(const std::function<void()>& function) override {
    struct End {  // also if `function` throws
      ~End() { recorded_by = nullptr, recorded = nullptr; }
    } const end;
    auto graph = std::make_shared<CpuGraph>();
    recorded_by = this, recorded = graph.get();
    function();
    return graph;
  }
  void launch(GraphBackend& graph) override {
    const auto& calls = own<CpuGraph>(graph).calls;
    if (CpuGraph* outer = recording()) return void(outer->calls.insert(outer->calls.end(), calls.begin(), calls.end()));
    for (const auto& call : calls) call();
  }
  void* native() override { return nullptr; }

 private:
  static inline thread_local const CpuStream* recorded_by = nullptr;
  static inline thread_local CpuGraph* recorded = nullptr;

  DeviceBackend& device_;
};

class CpuKernel final : public DeviceKernel {
 public:
  explicit CpuKernel(const Graph& graph) : program_(std::make_shared<cpu::Program>(graph, options().debug)) {}

  void launch(StreamBackend& stream, std::span<const Argument> arguments, std::span<const std::int64_t> grid) override {
    CpuGraph* recording = static_cast<CpuStream&>(stream).recording();
    if (!recording) return program_->run(arguments, grid);
    recording->calls.emplace_back([program = program_, arguments = std::vector(arguments.begin(), arguments.end()),
                                   grid = std::vector(grid.begin(), grid.end())] { program->run(arguments, grid); });
  }

 private:
  std::shared_ptr<const cpu::Program> program_;  // recorded launches share it
};

class CpuBackend final : public DeviceBackend, public std::enable_shared_from_this<CpuBackend> {
 public:
  CpuBackend() {
    const std::string_view missing = cpu::missing_instructions();
    if (!missing.empty())
      throw Error(
          fmt::format("this program was compiled for a CPU with {}, which this one lacks; build it here, or with "
                      "-DTESSERA_CPU_ARCH=x86-64-v2",
                      missing));
    cpu::set_threads(options().threads);
    info_.multiprocessors = cpu::threads();
    info_.name = fmt::format("cpu ({} threads)", info_.multiprocessors);
  }

  const DeviceInfo& info() const override { return info_; }
  bool shares_host_memory() const override { return true; }
  std::shared_ptr<void> allocate(std::size_t bytes) override {
    constexpr std::size_t alignment = 64;
    const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
    if (void* memory = rounded >= bytes ? std::aligned_alloc(alignment, rounded) : nullptr) return {memory, std::free};
    throw Error(fmt::format("there is no memory left for {:.1f} MB", static_cast<double>(bytes) * 1e-6));
  }
  std::shared_ptr<void> pinned(std::size_t bytes) override { return allocate(bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes) std::memmove(to, from, bytes);
  }
  std::shared_ptr<StreamBackend> stream() override { return {shared_from_this(), &stream_}; }
  std::shared_ptr<StreamBackend> new_stream() override { return std::make_shared<CpuStream>(*this); }
  std::shared_ptr<StreamBackend> stream_from(void*) override {
    throw Error("the CPU has no CUstream to be given; use Device::stream or Device::new_stream");
  }
  std::unique_ptr<DeviceKernel> kernel(const Graph& graph) override {
    dump_cpu_kernel(graph);
    return std::make_unique<CpuKernel>(graph);
  }

 private:
  DeviceInfo info_;
  CpuStream stream_{*this};
};

}  // namespace

const std::shared_ptr<DeviceBackend>& cpu_backend() {
  static const std::shared_ptr<DeviceBackend> backend = std::make_shared<CpuBackend>();
  return backend;
}

}  // namespace tessera
