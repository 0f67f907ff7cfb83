// A CUDA driver over the host's memory, for tests: kernels do nothing, and what it is asked for is written down. Work
// is done at once, whatever stream it is given to. What a real driver refuses (calls without a current context, memory
// freed twice, waiting while a stream records) it refuses too.
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
    bool early = false;  // before the one before it has ended
    std::vector<unsigned> further{1, 1, 1, 1};  // blocks along y and z, threads of a block along them
  };
  /// What cuTensorMapEncodeTiled was given. The map that it makes has the number of this among the others in each of
  /// its words.
  struct TensorMap {
    int type = 0;
    std::uintptr_t address = 0;
    std::vector<std::uint64_t> extents, strides;
    std::vector<unsigned> box, steps;
    int interleave = 0, swizzle = 0, promotion = 0, fill = 0;
  };

  // What to be. (`fake_cuda() = {}` makes it anew.)
  int version = 13000;
  std::vector<Device> devices{1};
  std::size_t memory_bytes = std::size_t(1) << 30;
  int blocks_per_multiprocessor = 2;
  std::map<std::string, int> fail;  ///< call -> the error it returns, or with a '!' before the name, once
  std::set<std::string> lacks;      ///< calls that it does not have
  std::map<std::string, std::vector<std::size_t>> parameter_bytes;  ///< of functions that take them one by one
  std::chrono::milliseconds encoding{0};                            ///< what a tensor map takes

  // What happened.
  std::vector<std::string> calls;  ///< that change something: "cuMemAllocAsync 256 stream1", in order
  std::vector<Launch> launches;
  std::vector<TensorMap> tensor_maps;
  std::map<std::uintptr_t, std::size_t> memory;  ///< allocated now: address -> bytes
  int streams_made = 0;                          ///< stream1, stream2, ...; stream0 is the legacy one
  int contexts = 0, streams = 0, events = 0, modules = 0, graphs = 0, pinned = 0;  ///< there now

  /// How many of `calls` start so?
  int count(const std::string& start) const {
    int count = 0;
    for (const std::string& call : calls) count += call.rfind(start, 0) == 0;
    return count;
  }
};

/// The state of the library, as it exports it: `library.symbol<FakeCuda* (*)()>("fake_cuda")()`.
extern "C" FakeCuda* fake_cuda();
