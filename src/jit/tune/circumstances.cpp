#include "jit/tune/circumstances.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "jit/compile/compiler.hpp"
#include "jit/compile/nvrtc.hpp"
#include "jit/cpu/cpu_name.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/jit/version.hpp"

namespace tessera::internal {

std::string tune_machine(const Device& device) {
  const DeviceInfo& info = device.info();
  if (!info.arch) return fmt::format("{}, {}", info.name, cpu_name());
  const std::size_t open = info.name.find('('), close = info.name.rfind(')');
  const std::string model =
      open < close && close != info.name.npos ? info.name.substr(open + 1, close - open - 1) : info.name;
  return fmt::format("{}, {} multiprocessors, {} and {} MHz, driver {}.{}", model, info.multiprocessors, info.clock_mhz,
                     info.memory_clock_mhz, info.driver / 1000, info.driver % 1000 / 10);
}

std::string tune_circumstances(const std::string& machine_text, bool is_gpu) {
  std::string compiler = "none";
  try {
    if (is_gpu) compiler = Nvrtc::instance().build();
  } catch (const Error&) {  // there is none, so nothing is compiled
  }
  const Options& o = options();
  return fmt::format("{}\n{}\n{}\n{} {} {} {} {}", machine_text, compiler, version(), o.debug, o.pdl, o.tensor_cores,
                     o.split_k, o.multicast);
}

std::int64_t tune_class_of(std::int64_t extent) {
  const auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(extent, 1) - 1)));
  const std::int64_t step = std::int64_t{1} << std::max(bits - 4, 0);
  return (extent + step - 1) / step * step;
}

}  // namespace tessera::internal
