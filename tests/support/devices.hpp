// The device on which tests run their kernels, chosen by TESSERA_TEST_DEVICE.
//   cpu            the default
//   cuda, cuda:N   a GPU
//   compiled       the CPU, while NVRTC compiles each kernel too (compiled_device.hpp)
//   emulated       generated code on the CPU (emulated_device.hpp), if the tests were built with it
// Ops, control, memory, tensors, sampling, model and programs run there: "[cpu],[tensors],[model],[programs]". Tests of the host's side of
// a launch ([api], [jit]: addresses, threads, error messages) use Device::cpu().
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

#include "support/catch.hpp"
#include "support/compiled_device.hpp"
#include "support/share.hpp"
#include "support/support.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/jit/device.hpp"
#ifdef TESSERA_HAS_EMULATOR
#include "support/emulated_device.hpp"
#endif

inline std::string test_device_name() {
  const char* name = std::getenv("TESSERA_TEST_DEVICE");
  return name && *name ? name : "cpu";
}

/// Throws tessera::Error if it is not available.
inline const tessera::internal::Device& test_device() {
  static const tessera::internal::Device device = [] {
    const std::string name = test_device_name();
    if (name == "compiled") return compiled_device();
    if (name == "emulated") {
#ifdef TESSERA_HAS_EMULATOR
      return emulated_device();
#else
      throw tessera::internal::Error("TESSERA_TEST_DEVICE=emulated: these tests were built without Boost.Context");
#endif
    }
    return tessera::internal::Device::parse(name);
  }();
  return device;
}

/// The device on which tests of generated code run it: the test device, or instead of the CPU the emulator, if the
/// tests were built with it.
inline const tessera::internal::Device& generated_device() {
#ifdef TESSERA_HAS_EMULATOR
  if (test_device_name() == "cpu") {
    static const tessera::internal::Device device = emulated_device();
    return device;
  }
#endif
  return test_device();
}
/// Does it?
inline bool runs_generated_code() {
  const std::string& name = generated_device().name();
  return name.starts_with("cuda") || name.starts_with("emulated");
}

/// How many kernels a test with very many should make. On the CPU, all; elsewhere each costs a compilation, which takes
/// tens to hundreds of milliseconds.
inline std::uint64_t most_kernels() {
  const std::string name = test_device_name();
  const char* texts = std::getenv("TESSERA_TEST_TEXTS");  // then nothing is compiled
  if (texts && *texts) return 100;
  return name == "cpu"        ? (sanitized ? 100 : ~std::uint64_t{0})
         : name == "compiled" ? (test_share(2) == 1 ? 12 : 4)
         : name == "emulated" ? (test_share(2) == 1 ? 8 : 5)
                              : 150;
}

/// Chooses which of a test's cases to run: all where that is cheap, else some, the same ones each time, always
/// including the first.
class Cases {
 public:
  /// For a test that makes about this many kernels.
  explicit Cases(std::uint64_t kernels) : one_in_((kernels - 1) / most_kernels() + 1) {}
  bool skip() { return count_++ > 0 && one_in_ > 1 && random_() % one_in_ != 0; }

 private:
  std::uint64_t one_in_, count_ = 0;
  std::mt19937_64 random_;
};

/// The seeds [first, end) of random kernels: TESSERA_TEST_GRAPHS of them, or by default `count` where that is cheap;
/// from TESSERA_TEST_SEED on, or from 0.
struct Seeds {
  std::uint64_t first = 0, end = 0;

  explicit Seeds(std::uint64_t count) {
    count = std::min(count, most_kernels());
    if (const char* text = std::getenv("TESSERA_TEST_GRAPHS")) count = std::strtoull(text, nullptr, 10);
    if (const char* text = std::getenv("TESSERA_TEST_SEED")) first = std::strtoull(text, nullptr, 10);
    end = first + count;
  }
};
