// A fake of CUPTI over the fake driver, for tests: each traced call of a thread makes the records that a test chose.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

struct FakeCupti {
  struct Kernel {
    std::string name;
    std::uint64_t begin = 0, end = 0;  ///< nanoseconds after the call
    std::uint64_t node = 0;
    std::uint32_t stream = 7;
  };
  // Configuration.
  std::uint32_t version = 130000;
  std::string failing;                     ///< the call that fails
  int failure = 35;                        ///< its result
  std::vector<std::vector<Kernel>> calls;  ///< what each traced call will do, in order
  bool backwards = false;                  ///< records of a call come in reverse order

  // Log.
  std::vector<int> enabled;
  int pushed = 0, popped = 0, flushed = 0;
  std::vector<std::vector<std::uint8_t>> records;  ///< that wait for a flush
};

/// The state of the library, which it exports.
extern "C" FakeCupti* fake_cupti();
