// The CUDA driver, opened on first use: a program also starts where there is none, and then reports what is missing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "jit/options/shared_library.hpp"

namespace tessera::internal::cuda {

// Types and values of cuda.h, as far as they are needed. They are part of the driver's ABI.
using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphExec = struct CUgraphExec_st*;
using CUmemoryPool = struct CUmemPoolHandle_st*;
struct alignas(64) CUtensorMap {
  std::uint64_t opaque[16];
};

enum : CUresult {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
};
enum {
  CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,
  CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,
  CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
  CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,
};
enum { CU_JIT_ERROR_LOG_BUFFER = 5, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6 };
enum { CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8 };
enum {
  CU_TENSOR_MAP_DATA_TYPE_UINT8 = 0,
  CU_TENSOR_MAP_DATA_TYPE_UINT16 = 1,
  CU_TENSOR_MAP_DATA_TYPE_UINT32 = 2,
  CU_TENSOR_MAP_DATA_TYPE_INT32 = 3,
  CU_TENSOR_MAP_DATA_TYPE_UINT64 = 4,
  CU_TENSOR_MAP_DATA_TYPE_INT64 = 5,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT16 = 6,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT32 = 7,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT64 = 8,
  CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 = 9,
  CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 = 11,
};
enum { CU_TENSOR_MAP_INTERLEAVE_NONE = 0 };
enum { CU_TENSOR_MAP_SWIZZLE_128B = 3 };
enum { CU_TENSOR_MAP_L2_PROMOTION_L2_128B = 2 };
enum { CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0 };
/// A launch attribute: whether all CTAs must be resident at once, the extents of a cluster, or whether the launch may
/// begin before the previous one has ended.
struct CUlaunchAttribute {
  int id;
  char pad[4];
  union {
    unsigned cluster[3];
    int cooperative, early;
    char all[64];
  };
};
enum {
  CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
  CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
  CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
};
struct CUlaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  CUstream stream;
  CUlaunchAttribute* attributes;
  unsigned attribute_count;
};
enum { CU_LAUNCH_PARAM_END = 0, CU_LAUNCH_PARAM_BUFFER_POINTER = 1, CU_LAUNCH_PARAM_BUFFER_SIZE = 2 };
enum { CU_STREAM_DEFAULT = 0, CU_STREAM_NON_BLOCKING = 1 };
enum { CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1, CU_STREAM_CAPTURE_MODE_RELAXED = 2 };
enum { CU_EVENT_DEFAULT = 0, CU_EVENT_DISABLE_TIMING = 2 };
enum { CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4 };
enum { CU_MEMHOSTALLOC_PORTABLE = 1 };

/// One function of the driver.
template <class... P>
struct Call {
  const char* name;
  CUresult (*function)(P...) = nullptr;
  CUresult operator()(P... values) const { return function(values...); }
};

/// The driver's functions, and texts for its errors.
class Driver {
 public:
  /// Opens the first of `places` (see SharedLibrary::open) and initializes the driver. Throws Error that says in one
  /// line why there is no usable driver: none is installed, it is older than CUDA 12.0, or there is no GPU.
  static Driver open(std::span<const std::string> places);

  /// The newest CUDA version it supports: 12080 for 12.8.
  int version() const { return version_; }

  /// Does nothing after CUDA_SUCCESS. Otherwise throws Error with the text of describe().
  void check(CUresult result, std::string_view call, std::string_view subject = {}) const {
    if (result != CUDA_SUCCESS) [[unlikely]]
      fail(result, call, subject);
  }
  /// Makes a call and checks its result.
  template <class... P>
  void run(const Call<P...>& call, std::type_identity_t<P>... values) const {
    check(call(values...), call.name);
  }
  /// "kernel 'gelu': cuLaunchKernel failed with CUDA_ERROR_...: the driver's description; advice". `subject` says what
  /// the call was for, where its name does not tell.
  std::string describe(CUresult result, std::string_view call, std::string_view subject = {}) const;

#define CALL(name, ...) Call<__VA_ARGS__> name{#name};
#include "jit/cuda/driver.def"

 private:
  explicit Driver(SharedLibrary library);
  [[noreturn]] void fail(CUresult result, std::string_view call, std::string_view subject) const;

  SharedLibrary library_;
  int version_ = 0;
};

/// Has this process lost the GPU after `result`? Then each later call of the driver fails too.
bool is_fatal(CUresult result);

}  // namespace tessera::internal::cuda
