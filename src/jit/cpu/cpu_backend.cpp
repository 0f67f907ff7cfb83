#include "jit/cpu/cpu_backend.hpp"

#include <fmt/format.h>

#include <memory>

#include "cpu/parallel.hpp"
#include "cpu/program.hpp"
#include "jit/compile/check_text.hpp"
#include "jit/compile/compiler.hpp"
#include "jit/cpu/host_backend.hpp"
#include "jit/options/options.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

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
    check_cuda_text(graph);
    const auto program = std::make_shared<const cpu::Program>(graph, options().debug);
    return std::make_unique<HostKernel>(
        graph, [program](std::span<const Argument> arguments, std::span<const std::int64_t> grid) {
          program->run(arguments, grid);
        });
  }
};

}  // namespace

const std::shared_ptr<DeviceBackend>& cpu_backend() {
  static const auto& backend = *new std::shared_ptr<DeviceBackend>(std::make_shared<CpuBackend>());  // never destroyed
  return backend;
}

}  // namespace tessera::internal
