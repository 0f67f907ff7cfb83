#include "jit/cuda/driver.hpp"

#include <fmt/format.h>

#include "tessera/graph/error.hpp"

namespace tessera::internal::cuda {
namespace {

constexpr int needed_version = 12000;  // the CUDA version of all calls in driver.def and of NVRTC's oldest code

constexpr std::string_view update = "install an NVIDIA driver of version 525 or newer";

/// Advice to the user about an error; empty if there is none.
std::string_view advice(CUresult result) {
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return "free tensors, use smaller ones, or see nvidia-smi for other processes on this GPU";
    case 34:  // CUDA_ERROR_STUB_LIBRARY
      return "libcuda.so.1 is the toolkit's stub; remove its folder from LD_LIBRARY_PATH";
    case 46:  // CUDA_ERROR_DEVICE_UNAVAILABLE
      return "another process has exclusive use of the GPU; see nvidia-smi";
    case CUDA_ERROR_NO_DEVICE:
    case 101:  // CUDA_ERROR_INVALID_DEVICE
      return "list the GPUs with nvidia-smi -L, and check whether CUDA_VISIBLE_DEVICES hides some";
    case 200:  // CUDA_ERROR_INVALID_IMAGE
    case 209:  // CUDA_ERROR_NO_BINARY_FOR_GPU
    case 218:  // CUDA_ERROR_INVALID_PTX
    case 221:  // CUDA_ERROR_JIT_COMPILER_NOT_FOUND
    case 222:  // CUDA_ERROR_UNSUPPORTED_PTX_VERSION
    case 300:  // CUDA_ERROR_INVALID_SOURCE
      return "the driver cannot load this code; update it, or set TESSERA_NVRTC to an NVRTC that is not newer than the "
             "driver";
    case 214:  // CUDA_ERROR_ECC_UNCORRECTABLE
      return "the GPU's memory has an uncorrectable error; reset the GPU, and restart the program";
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case 710:  // CUDA_ERROR_ASSERT
    case 714:  // CUDA_ERROR_HARDWARE_STACK_ERROR
    case 715:  // CUDA_ERROR_ILLEGAL_INSTRUCTION
    case 716:  // CUDA_ERROR_MISALIGNED_ADDRESS
    case 717:  // CUDA_ERROR_INVALID_ADDRESS_SPACE
    case 718:  // CUDA_ERROR_INVALID_PC
    case 719:  // CUDA_ERROR_LAUNCH_FAILED
      return "check that tensors over memory of your own fit in it; TESSERA_DEBUG=1 waits for each launch and checks "
             "bounds; restart the program, as this process has lost the GPU";
    case 701:  // CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
      return "a CTA needs more registers or shared memory than this GPU has; use smaller tiles";
    case 702:  // CUDA_ERROR_LAUNCH_TIMEOUT
      return "the kernel exceeded the time limit of a GPU with a display; launch fewer blocks at a time";
    case 802:  // CUDA_ERROR_SYSTEM_NOT_READY
      return "the GPUs are not ready yet; check that nvidia-fabricmanager is running";
    case 803:  // CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
      return "the driver's library and its kernel module differ in version; restart the machine after an update";
    case 804:  // CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE
      return "this GPU cannot use the forward-compatibility library; remove its folder from LD_LIBRARY_PATH";
    case 999:  // CUDA_ERROR_UNKNOWN
      return "the driver is in a bad state; see dmesg, and restart the machine";
    default:
      if (result >= 900 && result <= 908)  // CUDA_ERROR_STREAM_CAPTURE_*
        return "this cannot be recorded: nothing may wait while a stream records, and each kernel should have been "
               "launched once before";
      return "";
  }
}

std::string one_line(std::string text) {
  for (std::size_t end; (end = text.find("\n  ")) != text.npos;) text.replace(end, 3, " ");
  return text;
}

SharedLibrary open_library(std::span<const std::string> places) {
  try {
    return SharedLibrary::open("the NVIDIA driver", places);
  } catch (const Error& error) {
    throw Error(one_line(error.what()));
  }
}

}  // namespace

Driver Driver::open(std::span<const std::string> places) { return Driver(open_library(places)); }

Driver::Driver(SharedLibrary library) : library_(std::move(library)) {
  // Queried first: an older driver lacks some of the other functions.
  library_.symbol<CUresult (*)(int*)>("cuDriverGetVersion")(&version_);
  if (version_ < needed_version)
    throw Error(fmt::format("the NVIDIA driver supports CUDA {}.{}, and 12.0 is the oldest version supported; {}",
                            version_ / 1000, version_ % 1000 / 10, update));

  const auto find =
      library_.symbol<CUresult (*)(const char*, void**, int, unsigned long long, int*)>("cuGetProcAddress_v2");
  const auto set = [&](auto& call) {
    void* found = nullptr;
    int status = 0;
    if (find(call.name, &found, needed_version, 0, &status) != CUDA_SUCCESS || !found)
      throw Error(fmt::format("the NVIDIA driver {} has no {}; {}", library_.path().native(), call.name, update));
    call.function = reinterpret_cast<decltype(call.function)>(found);
  };
#define CALL(name, ...) set(name);
#include "jit/cuda/driver.def"

  if (const CUresult result = cuInit(0); result == CUDA_ERROR_NO_DEVICE)
    throw Error(fmt::format("the NVIDIA driver sees no GPU; {}", advice(result)));
  else
    check(result, cuInit.name);
}

std::string Driver::describe(CUresult result, std::string_view call, std::string_view subject) const {
  const char *name = nullptr, *words = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || !name) name = "an error without a name";
  if (cuGetErrorString(result, &words) != CUDA_SUCCESS || !words) words = "no description";
  const std::string_view mend = advice(result);
  return fmt::format("{}{}{} failed with {} ({}): {}{}{}", subject, subject.empty() ? "" : ": ", call, name, result,
                     words, mend.empty() ? "" : "; ", mend);
}

void Driver::fail(CUresult result, std::string_view call, std::string_view subject) const {
  throw Error(describe(result, call, subject));
}

bool is_fatal(CUresult result) {
  switch (result) {
    case 214:  // CUDA_ERROR_ECC_UNCORRECTABLE
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case 702:  // CUDA_ERROR_LAUNCH_TIMEOUT
    case 710:  // CUDA_ERROR_ASSERT
    case 714:  // CUDA_ERROR_HARDWARE_STACK_ERROR
    case 715:  // CUDA_ERROR_ILLEGAL_INSTRUCTION
    case 716:  // CUDA_ERROR_MISALIGNED_ADDRESS
    case 717:  // CUDA_ERROR_INVALID_ADDRESS_SPACE
    case 718:  // CUDA_ERROR_INVALID_PC
    case 719:  // CUDA_ERROR_LAUNCH_FAILED
      return true;
    default:
      return false;
  }
}

}  // namespace tessera::internal::cuda
