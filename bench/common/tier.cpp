#include "common/tier.hpp"

#include <charconv>

#include "jit/cuda/cuda_devices.hpp"

namespace tessera::internal::bench {

Device without_wgmma(const Device& device) {
  if (!device.info().arch) return device;
  const auto compile = [](const Graph& graph, const Variant& variant, Arch gpu) {
    GenerateOptions options = generate_options();
    options.warp_specialize = false;
    return Compiler::instance().compile(generate(graph, variant, gpu, options), gpu);
  };
  // Never destroyed, like the devices of the process.
  static CudaDevices& devices = *new CudaDevices({"libcuda.so.1"}, {.compile = compile, .recompile = compile});
  const std::string_view name = device.name();  // "cuda:0 (NVIDIA H200, sm_90)"
  const std::size_t begin = name.find(':') + 1;
  int ordinal = 0;
  std::from_chars(name.data() + begin, name.data() + name.size(), ordinal);
  return Device(devices.open(ordinal));
}

}  // namespace tessera::internal::bench
