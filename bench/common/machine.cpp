#include "common/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <ctime>
#include <string_view>
#include <thread>

#include "common/child.hpp"
#include "jit/compile/nvrtc.hpp"
#include "jit/cpu/cpu_name.hpp"
#include "jit/options/shared_library.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal::bench {
namespace {

struct Ceilings {
  std::string_view machine;
  std::array<double, 6> per_second;  // memory, f16, bf16, tf32, f32, 8-bit types
};
// Memory: what a copy achieves of the nominal 4.8 TB/s. The others: NVIDIA's data sheet, without sparsity.
constexpr Ceilings table[] = {{"h200", {4.3e12, 989e12, 989e12, 494e12, 67e12, 1979e12}}};

using nlohmann::json;

json driver_of(const Device& device) {
  json driver = json::object();
  try {
    const std::string candidates[] = {"libcuda.so.1"};
    int version = 0;
    SharedLibrary::open("the driver", candidates).symbol<int (*)(int*)>("cuDriverGetVersion")(&version);
    driver["cuda"] = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  } catch (const Error&) {  // then it is left out
  }
  const std::string place = device.name().substr(0, device.name().find(' '));  // "cuda:0"
  const std::string said =
      first_line_of({"nvidia-smi", "-i", place.substr(place.find(':') + 1), "--format=csv,noheader,nounits",
                     "--query-gpu=driver_version,clocks.max.sm,clocks.max.memory"});
  char version[64] = "";
  int multiprocessors = 0, memory = 0;
  const int found = std::sscanf(said.c_str(), "%63[^,], %d, %d", version, &multiprocessors, &memory);
  if (found >= 1) driver["driver"] = version;
  if (found == 3) driver["clocks_mhz"] = {{"multiprocessors", multiprocessors}, {"memory", memory}};
  return driver;
}

}  // namespace

std::string first_line_of(const std::vector<std::string>& command) {
  try {
    return Child(command).read_line();
  } catch (const Error&) {
    return "";
  }
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm date{};
  ::gmtime_r(&now, &date);
  return fmt::format("{:04}-{:02}-{:02}", date.tm_year + 1900, date.tm_mon + 1, date.tm_mday);
}

json circumstances(const Device& device) {
  json made = device.info().arch ? driver_of(device) : json::object();
  made["host"] = {{"cpu", cpu_name()}, {"cores", std::thread::hardware_concurrency()}};
  try {
    const auto [major, minor] = Nvrtc::instance().version();
    made["nvrtc"] = fmt::format("{}.{}", major, minor);
  } catch (const Error&) {  // no NVRTC, so nothing is compiled
  }
  return made;
}

std::string machine_name(const Device& device) {
  const std::string_view name = device.name();
  if (!device.info().arch) return "cpu";
  const std::size_t begin = name.find('(') + 1;
  std::string_view matmul = name.substr(begin, name.rfind(',') - begin);
  constexpr std::string_view maker = "NVIDIA ";
  if (matmul.starts_with(maker)) matmul.remove_prefix(maker.size());
  std::string machine;
  for (const char letter : matmul) {
    const auto c = static_cast<unsigned char>(letter);
    machine += std::isalnum(c) ? static_cast<char>(std::tolower(c)) : '-';
  }
  return machine;
}

std::optional<double> ceiling(const Device& device, Resource resource) {
  const std::string machine = machine_name(device);
  const auto* found = std::ranges::find(table, machine, &Ceilings::machine);
  if (found == std::end(table)) return {};
  return found->per_second[static_cast<std::size_t>(resource)];
}

Turns turns_of(const Device& device, const Row& row) {
  // Four times the L2 cache is accessed before a set is used again.
  const double cache = 4 * static_cast<double>(device.info().l2_bytes);
  Turns turns;
  turns.sets = std::clamp(static_cast<int>(std::ceil(cache / row.bytes)) + 1, 2, 20);
  turns.calls = (turns.calls + turns.sets - 1) / turns.sets * turns.sets;
  return turns;
}

}  // namespace tessera::internal::bench
