#include "jit/cpu/cpu_name.hpp"

#include <fstream>

namespace tessera::internal {

namespace {

std::string read_name() {
  std::ifstream list("/proc/cpuinfo");
  for (std::string line; std::getline(list, line);)
    if (const std::size_t colon = line.find(": "); line.starts_with("model name") && colon != line.npos)
      return line.substr(colon + 2);
  return "unknown";
}

}  // namespace

std::string cpu_name() {
  static const std::string name = read_name();
  return name;
}

}  // namespace tessera::internal
