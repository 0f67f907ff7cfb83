// A CUDA driver over the host's memory, for tests: kernels do nothing, and calls are logged. Work is done immediately,
// whatever its stream. It rejects what a real driver rejects (calls without a current context, memory freed twice,
// waiting while a stream is captured).
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

struct FakeCuda {
  struct Device {
    std::string name = "Fake H200";
    int major = 9, minor = 0, multiprocessors = 132, l2_bytes = 50 << 20;
    bool pools = true;
  };
  struct Launch {
    std::string function;
    unsigned grid = 0, block = 0, shared_bytes = 0;
    void* stream = nullptr;
    std::vector<std::byte> parameters;
    unsigned cluster = 1;
    bool early = false;                         // starts before the previous launch has ended
    bool cooperative = false;                   // all CTAs are resident at once
    std::vector<unsigned> further{1, 1, 1, 1};  // gridDim.y and z, blockDim.y and z
  };
  /// The arguments of cuTensorMapEncodeTiled. Each word of the resulting map contains this record's number.
  struct TensorMap {
    int type = 0;
    std::uintptr_t address = 0;
    std::vector<std::uint64_t> extents, strides;
    std::vector<unsigned> box, steps;
    int interleave = 0, swizzle = 0, promotion = 0, fill = 0;
  };

  // Configuration. (`fake_cuda() = {}` resets it.)
  int version = 13000;
  std::vector<Device> devices{1};
  std::size_t memory_bytes = std::size_t(1) << 30;
  int blocks_per_multiprocessor = 2;
  std::map<std::string, int> fail;  ///< call -> the error it returns, or with a '!' before the name, once
  std::set<std::string> lacks;      ///< missing calls
  std::map<std::string, std::vector<std::size_t>> parameter_bytes;  ///< of functions, parameter by parameter
  std::chrono::milliseconds encoding{0};                            ///< the time to encode a tensor map

  // Log.
  std::vector<std::string> calls;  ///< calls that change something: "cuMemAllocAsync 256 stream1", in order
  std::vector<Launch> launches;
  std::vector<TensorMap> tensor_maps;
  std::map<std::uintptr_t, std::size_t> memory;  ///< allocated now: address -> bytes
  int streams_made = 0;                          ///< stream1, stream2, ...; stream0 is the legacy one
  int contexts = 0, streams = 0, events = 0, modules = 0, graphs = 0, pinned = 0;  ///< existing now

  /// How many of `calls` begin with this?
  int count(const std::string& start) const {
    int count = 0;
    for (const std::string& call : calls) count += call.rfind(start, 0) == 0;
    return count;
  }
};

/// The state of the library, which it exports: `library.symbol<FakeCuda* (*)()>("fake_cuda")()`.
extern "C" FakeCuda* fake_cuda();
