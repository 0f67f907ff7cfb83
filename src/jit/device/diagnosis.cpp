#include "jit/device/diagnosis.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <thread>

#include "jit/compile/cache.hpp"
#include "jit/compile/disassemble.hpp"
#include "jit/compile/nvrtc.hpp"
#include "jit/cuda/cuda_devices.hpp"
#include "jit/device/emulated.hpp"
#include "jit/options/files.hpp"
#include "jit/options/options.hpp"
#include "jit/options/shared_library.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/jit/device.hpp"

namespace tessera::internal {
namespace {

namespace fs = std::filesystem;

/// The result of `look` for a part; if it throws, the part is missing, and `mend` says how to get it.
Finding finding(const std::string& part, const std::function<std::string()>& look, const std::string& mend) {
  try {
    return {part, true, look()};
  } catch (const std::exception& error) {
    return {part, false, error.what(), mend};
  }
}

std::string driver() {
  const SharedLibrary library = SharedLibrary::open("the NVIDIA driver", std::vector<std::string>{driver_library});
  int version = 0;
  library.symbol<int (*)(int*)>("cuDriverGetVersion")(&version);
  return fmt::format("{}, CUDA {}.{}", library.path().native(), version / 1000, version % 1000 / 10);
}

void add_gpus(std::vector<Finding>& findings) {
  CudaDevices& gpus = CudaDevices::instance();
  int count = 1;
  for (int i = 0; i < count; ++i)
    findings.push_back(finding("GPU",
                               [&] {
      count = gpus.count();
      return gpus.open(i)->info().name;
    },
                               ""));  // the errors themselves say what to do
}

std::string nvrtc() {
  const Nvrtc& nvrtc = Nvrtc::instance();
  return fmt::format("{}, version {}.{}, for sm_{} to sm_{}", nvrtc.path().native(), nvrtc.version().first,
                     nvrtc.version().second, nvrtc.architectures().front(), nvrtc.architectures().back());
}

std::string emulator() {
  const fs::path path = emulator_path();
  return path.empty() ? "in the program itself" : path.native();
}

std::string cache() {
  std::string trouble;
  const CompileCache cache(options().cache_dir, [&](std::string_view warning) { trouble = warning; });
  if (!trouble.empty()) throw Error(trouble);
  if (!cache.folder()) return "none on disk: disabled by TESSERA_CACHE_DIR, or there is no home folder";
  std::uint64_t bytes = 0, entries = 0;
  std::error_code gone;
  for (fs::recursive_directory_iterator file(cache.folder()->path(), gone), end; !gone && file != end;
       file.increment(gone)) {
    if (file.depth() != 1 || is_temporary_name(file->path().filename().native())) continue;
    const std::uintmax_t size = file->file_size(gone);
    if (!gone) ++entries, bytes += size;
  }
  return fmt::format("{}, {} kernels, {:.1f} MB", cache.folder()->path().native(), entries,
                     static_cast<double>(bytes) * 1e-6);
}

std::string threads() {
  return fmt::format("{} of {} cores", Device::cpu().info().multiprocessors, std::thread::hardware_concurrency());
}

/// The environment variables that are set.
std::string settings() {
  std::vector<std::string> set;
  for (const OptionInfo& option : option_table())
    if (const char* const value = std::getenv(std::string(option.variable).c_str()); value && *value)
      set.push_back(fmt::format("{}={}", option.variable, value));
  return set.empty() ? "no TESSERA_ variable is set" : fmt::format("{}", fmt::join(set, " "));
}

}  // namespace

std::vector<Finding> diagnose() {
  std::vector<Finding> findings;
  findings.push_back(finding("driver", driver, "install an NVIDIA driver of version 525 or newer"));
  if (findings[0].found)
    add_gpus(findings);
  else
    findings.push_back({"GPU", false, "not visible without the driver"});
  findings.push_back(
      finding("NVRTC", nvrtc,
              "install a CUDA toolkit, or pip install nvidia-cuda-nvrtc-cu12 and set TESSERA_NVRTC to its "
              "folder, .../site-packages/nvidia/cuda_nvrtc/lib"));
  findings.push_back(finding("nvdisasm", [] { return nvdisasm_path().native(); }, "only TESSERA_DUMP=sass needs it"));
  findings.push_back(finding("emulator", emulator, ""));  // its error says how to get it
  findings.push_back(finding("cache", cache, ""));
  findings.push_back(finding("threads", threads, ""));
  findings.push_back({"settings", true, settings()});
  return findings;
}

}  // namespace tessera::internal
