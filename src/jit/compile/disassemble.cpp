#include "jit/compile/disassemble.hpp"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "jit/compile/nvrtc.hpp"
#include "jit/options/files.hpp"
#include "jit/options/process.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto time_limit = 30s;
constexpr std::size_t size_limit = 64 << 20;

}  // namespace

fs::path nvdisasm_path() {
  std::vector<fs::path> folders;
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string_view(value ? value : "");
  };
  for (std::string_view path = variable("PATH"); !path.empty();) {
    const std::size_t colon = std::min(path.find(':'), path.size());
    folders.emplace_back(path.substr(0, colon));
    path.remove_prefix(std::min(colon + 1, path.size()));
  }
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) folders.push_back(fs::path(variable(name)) / "bin");
  for (const fs::path& toolkit : installed_toolkits()) folders.push_back(toolkit / "bin");
  for (const fs::path& folder : folders) {
    if (folder.is_absolute() && ::access((folder / "nvdisasm").c_str(), X_OK) == 0) return folder / "nvdisasm";
  }
  throw Error(
      "machine code needs nvdisasm, which is neither in PATH nor in CUDA_HOME, CUDA_PATH or /usr/local/cuda*; it "
      "comes with the CUDA toolkit (package cuda-nvdisasm) and with Python's package nvidia-cuda-nvdisasm");
}

namespace {

/// A temporary file with the given bytes, removed by the destructor.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::span<const std::byte> bytes)
      : path_((fs::temp_directory_path() / "tessera-XXXXXX").native()) {
    const int file = ::mkostemp(path_.data(), O_CLOEXEC);
    if (file < 0) throw_errno("make", path_);
    const bool written = ::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
    if (::close(file) == 0 && written) return;
    ::unlink(path_.c_str());
    throw_errno("write", path_);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

std::string disassemble(std::span<const std::byte> cubin, const std::vector<std::string>& options) {
  const fs::path program = nvdisasm_path();
  static std::atomic<bool> hangs = false;
  if (hangs) throw Error(fmt::format("{} did not end in {} s before", program.native(), time_limit / 1s));
  try {
    const TemporaryFile file(cubin);
    std::vector<std::string> command = {program.native()};
    command.insert(command.end(), options.begin(), options.end());
    command.push_back(file.path());
    Process process(command);
    std::string text;
    if (!process.read(text, {.time = time_limit, .bytes = size_limit})) {
      hangs = true;
      throw Error(
          fmt::format("{} was stopped after {} s or {} MiB", program.native(), time_limit / 1s, size_limit >> 20));
    }
    if (process.succeeded()) return text;
    throw Error(fmt::format("{} failed: {}", program.native(), text.substr(0, text.find('\n'))));
  } catch (const std::system_error& e) {
    throw Error(e.what());
  }
}

std::vector<std::byte> instructions_of(std::span<const std::byte> cubin) {
  const auto read = [&]<class T>(std::uint64_t offset, T) {
    T value{};
    if (offset <= cubin.size() && sizeof value <= cubin.size() - offset)
      std::memcpy(&value, cubin.data() + offset, sizeof value);
    return value;
  };
  const auto header = read(0, Elf64_Ehdr{});
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) return {};
  std::vector<std::byte> bytes;
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    const auto section = read(header.e_shoff + i * sizeof(Elf64_Shdr), Elf64_Shdr{});
    const bool is_code = section.sh_type == SHT_PROGBITS && (section.sh_flags & SHF_EXECINSTR);
    if (!is_code || section.sh_offset > cubin.size() || section.sh_size > cubin.size() - section.sh_offset) continue;
    const std::span<const std::byte> code = cubin.subspan(section.sh_offset, section.sh_size);
    bytes.insert(bytes.end(), code.begin(), code.end());
  }
  return bytes;
}

}  // namespace tessera::internal
