#include "emulator/lines.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <stdio.h>

namespace tessera::internal::emulator {
namespace {

/// Where the library is loaded that has this address; null: none has.
const char* base_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) ? static_cast<const char*>(info.dli_fbase) : nullptr;
}

}  // namespace

Lines::Lines(std::filesystem::path path, Code inside) : path_(std::move(path)), base_(base_of(inside)) {}

bool Lines::contain(const void* address) const { return base_of(address) == base_; }

const std::string& Lines::operator[](Code code) const {
  const std::lock_guard lock(mutex_);
  const auto [known, is_new] = known_.try_emplace(code);
  std::string& line = known->second;
  if (!is_new) return line;
  const std::string command = fmt::format("addr2line -i -e '{}' {:#x}", path_.string(), offset(code) - 1);
  if (FILE* const output = popen(command.c_str(), "r")) {
    char text[4096];
    while (fgets(text, sizeof text, output)) line = text;  // the outermost frame comes last
    pclose(output);
  }
  line.resize(std::min(line.find_first_of(" \n"), line.size()));  // " (discriminator 3)"
  const std::string folder = path_.parent_path().string() + "/";  // which stands before relative names
  if (line.starts_with(folder)) line.erase(0, folder.size());
  return line;
}

}  // namespace tessera::internal::emulator
