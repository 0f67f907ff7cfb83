#include "jit/cpu/host_function.hpp"

#include <vector>

#include "jit/compile/compiler.hpp"
#include "jit/cpu/host_backend.hpp"
#include "tessera/graph/cuda_text.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

class HostFunction final : public DeviceKernel {
 public:
  explicit HostFunction(const Graph& graph) : text_(graph.cuda) {}

  void launch(StreamBackend& stream, std::span<const Argument> arguments, std::span<const std::int64_t> grid) override {
    const std::span<const std::int64_t> numbers = grid.subspan(CudaText::first_number);
    HostGraph* const recording = static_cast<HostStream&>(stream).recording();
    if (!recording) return text_->host(arguments, numbers);
    recording->calls.emplace_back(
        [text = text_, arguments = std::vector(arguments.begin(), arguments.end()),
         numbers = std::vector(numbers.begin(), numbers.end())] { text->host(arguments, numbers); });
  }

 private:
  std::shared_ptr<const CudaText> text_;  // recorded launches share it
};

}  // namespace

std::unique_ptr<DeviceKernel> host_function(const Graph& graph) {
  dump_cpu_kernel(graph);
  if (!graph.cuda->host)
    throw Error(
        "kernel '" + graph.name + "', " + graph.location.file + ':' + std::to_string(graph.location.line) +
        ": it is CUDA C++, which runs on a GPU; to run it on the CPU, give cuda_kernel a function that does the "
        "same there");
  return std::make_unique<HostFunction>(graph);
}

}  // namespace tessera::internal
