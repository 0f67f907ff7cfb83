#include "jit/cpu/host_function.hpp"

#include <memory>

#include "jit/compile/check_text.hpp"
#include "jit/compile/compiler.hpp"
#include "jit/cpu/host_backend.hpp"
#include "tessera/graph/cuda_text.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
std::unique_ptr<DeviceKernel> host_function(const Graph& graph) {
  dump_cpu_kernel(graph);
  if (!graph.cuda->host)
    throw Error(
        "kernel '" + graph.name + "', " + graph.location.file + ':' + std::to_string(graph.location.line) +
        ": it is CUDA C++, which runs on a GPU; to run it on the CPU, give cuda_kernel a function that does the "
        "same there");
  check_cuda_text(graph);
  return std::make_unique<HostKernel>(
      graph, [text = std::shared_ptr<const CudaText>(graph.cuda)](std::span<const Argument> arguments,
                                                                  std::span<const std::int64_t> grid) {
        text->host(arguments, grid.subspan(CudaText::first_number));
      });
}

}  // namespace tessera::internal
