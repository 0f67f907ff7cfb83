#include "jit/cpu/cpu_backend.hpp"

#include <fmt/format.h>

#include <vector>

#include "cpu/parallel.hpp"
#include "cpu/program.hpp"
#include "jit/compile/compiler.hpp"
#include "jit/cpu/host_backend.hpp"
#include "jit/options/options.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

class CpuKernel final : public DeviceKernel {
 public:
  explicit CpuKernel(const Graph& graph) : program_(std::make_shared<cpu::Program>(graph, options().debug)) {}

  void launch(StreamBackend& stream, std::span<const Argument> arguments, std::span<const std::int64_t> grid) override {
    HostGraph* recording = static_cast<HostStream&>(stream).recording();
    if (!recording) return program_->run(arguments, grid);
    recording->calls.emplace_back([program = program_, arguments = std::vector(arguments.begin(), arguments.end()),
                                   grid = std::vector(grid.begin(), grid.end())] { program->run(arguments, grid); });
  }

 private:
  std::shared_ptr<const cpu::Program> program_;  // recorded launches share it
};

class CpuBackend final : public HostBackend {
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

  std::unique_ptr<DeviceKernel> kernel(const Graph& graph) override {
    dump_cpu_kernel(graph);
    return std::make_unique<CpuKernel>(graph);
  }
};

}  // namespace

const std::shared_ptr<DeviceBackend>& cpu_backend() {
  static const std::shared_ptr<DeviceBackend> backend = std::make_shared<CpuBackend>();
  return backend;
}

}  // namespace tessera::internal
