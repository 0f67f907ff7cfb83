#include "emulator/lines.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "jit/options/process.hpp"

namespace tessera::internal::emulator {
namespace {

/// Base address of the library that contains the address; null if there is none.
const char* base_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) ? static_cast<const char*>(info.dli_fbase) : nullptr;
}

}  // namespace

Lines::Lines(std::string folder, Descriptor file, Code inside)
    : folder_(std::move(folder)), file_(std::move(file)), base_(base_of(inside)) {}

bool Lines::contain(const void* address) const { return base_of(address) == base_; }

const std::string& Lines::operator[](Code code) const {
  const std::lock_guard lock(mutex_);
  const auto [known, is_new] = known_.try_emplace(code);
  std::string& line = known->second;
  if (!is_new) return line;
  try {
    Process program({"addr2line", "-i", "-e", "/dev/stdin", fmt::format("{:#x}", offset(code) - 1)},
                    {.input = file_.get()});
    program.read(line);
  } catch (const std::system_error&) {
    return line = "an unknown line (addr2line was not found)";
  }
  while (line.ends_with('\n')) line.pop_back();
  line.erase(0, line.rfind('\n') + 1);                                    // the outermost frame comes last
  line.resize(std::min(line.rfind(" (discriminator"), line.size()));      // "file:3 (discriminator 3)"
  const std::string folder = folder_ + "/";                               // the prefix of relative names
  if (line.starts_with(folder)) line.erase(0, folder.size());
  return line;
}

}  // namespace tessera::internal::emulator
