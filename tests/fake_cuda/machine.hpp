// The fake driver in a test: a machine with GPUs that do nothing.
#pragma once
#include "fake_cuda.hpp"
#include "jit/cuda/cuda_devices.hpp"
#include "jit/options/shared_library.hpp"

inline const std::vector<std::string>& fake_cuda_places() {
  static const std::vector<std::string> places{TESSERA_BIN_DIR "/libfake_cuda.so"};
  return places;
}

inline const tessera::internal::SharedLibrary& fake_cuda_library() {
  static const auto library = tessera::internal::SharedLibrary::open("the fake driver", fake_cuda_places());
  return library;
}

/// The fake driver's state, reset.
inline FakeCuda& new_fake_cuda() {
  FakeCuda& fake = *fake_cuda_library().symbol<FakeCuda* (*)()>("fake_cuda")();
  fake = {};
  return fake;
}
