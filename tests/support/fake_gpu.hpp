// A machine with a fake GPU, whose driver calls tests inspect, and small kernels for it.
#pragma once
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "fake_cuda/machine.hpp"
#include "support/catch.hpp"
#include "tessera/tessera.hpp"

namespace fake_gpu {

using namespace tessera::internal;

using Kind = KernelParameter::Kind;
using Calls = std::vector<std::string>;

/// A machine with a GPU, and a compiler that returns `source` for every kernel.
struct Machine {
  FakeCuda& fake = new_fake_cuda();
  KernelSource source{.author = "entry",
                      .name = "entry",
                      .text = "text",
                      .plan = "",
                      .parameters = {},
                      .tma_tensors = {},
                      .threads = 128};
  std::mutex mutex;  // protects the next member
  std::vector<Variant> compiled;
  std::function<void()> compiling = [] {};  ///< called during compilation
  int recompiled = 0;
  std::string image = "image";
  std::vector<std::shared_ptr<const CacheEntry>> entries;
  bool synchronous = false, pdl = true;
  CudaProfile* profile = nullptr;
  SplitKPolicy split_k = SplitKPolicy::cluster;

  Device open() {
    const auto code = [this](const std::string& text) {
      CacheEntry entry;
      for (const char c : text + '\0') entry.code.image.push_back(static_cast<std::byte>(c));
      return CompiledKernel{source, std::make_shared<const CacheEntry>(std::move(entry))};
    };
    CudaSettings settings;
    settings.synchronous = synchronous;
    settings.pdl = pdl;
    settings.profile = profile;
    settings.split_k = split_k;
    settings.compile = [=, this](const Graph&, const Variant& variant, Arch) {
      compiling();
      const std::lock_guard lock(mutex);
      compiled.push_back(variant);
      CompiledKernel kernel = code(image);
      if (!variant.multicast) kernel.source.multicast = 1;
      return kernel;
    };
    settings.recompile = [=, this](const Graph&, const Variant&, Arch) {
      ++recompiled;
      return code(image == "refused once" ? "image again" : image);
    };
    // Real text, which this driver does not run.
    settings.compile_persistent =
        [=](std::string_view name, std::span<const SequenceLaunch> launches, int ctas, Arch gpu, bool) {
      return CompiledPersistent{generate_persistent(name, launches, ctas, gpu), code("persistent").entry};
    };
    return Device(CudaDevices(fake_cuda_places(), settings).first());
  }

  /// The driver calls that `action` causes.
  template <class Action>
  Calls calls_of(Action&& action) {
    fake.calls.clear();
    action();
    return std::exchange(fake.calls, {});
  }
  void* context() const {
    void* context = nullptr;
    fake_cuda_library().symbol<int (*)(void**)>("cuCtxGetCurrent")(&context);
    return context;
  }
};

inline auto copy_kernel() {
  return kernel("copy", [](In<f32, 1> x, Out<f32, 1> y) {
    Index i = blocks(cdiv(y.extent(0), 4));
    store(y, {i}, load(x, {i}, {4}));
  });
}

/// A grid of three axes from three scalars.
inline auto grid_kernel() {
  return kernel("grid", [](Out<f32, 1> y, Scalar<i32> n, Scalar<i32> m, Scalar<i32> k) {
    auto [i, j, l] = blocks(n, m, k);
    store(y, {i + j + l}, full<f32>({1}, 5));
  });
}

/// A kernel whose arguments' tensor maps a test chooses.
template <class T, int R>
auto boxes_kernel() {
  return kernel("boxes", [](In<T, R> x, Out<f32, 1> y) { store(y, {x.extent(0)}, full<f32>({1}, 5)); });
}

inline std::vector<float> counted(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

template <class T>
T read(const std::vector<std::byte>& bytes, std::size_t offset) {
  T value{};
  REQUIRE(offset + sizeof value <= bytes.size());
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace fake_gpu
