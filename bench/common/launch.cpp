#include "common/launch.hpp"

#include <array>

#include "common/median.hpp"
#include "common/program.hpp"
#include "jit/cuda/cuda_backend.hpp"
#include "tessera/tessera.hpp"

namespace tessera::internal::bench {
namespace {

constexpr int bursts = 200, burst = 500;  // a GPU's queue holds about a thousand; a launch waits when it is full

/// Launches a kernel as a driver API program without Tessera would.
class DriverLaunch {
 public:
  explicit DriverLaunch(const Stream& stream)
      : backend_(static_cast<CudaBackend&>(stream.backend().device())),
        stream_(static_cast<cuda::CUstream>(stream.native())) {
    // With as many parameters as ours, for any GPU.
    constexpr const char* text = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry fill(.param .u64 y, .param .u32 extent, .param .f32 value) {
  .reg .u64 %y;
  .reg .f32 %value;
  ld.param.u64 %y, [y];
  ld.param.f32 %value, [value];
  cvta.to.global.u64 %y, %y;
  st.global.f32 [%y], %value;
  ret;
})";
    const cuda::Driver& driver = backend_.driver();
    module_ = backend_.make(driver.cuModuleUnload, driver.cuModuleLoadDataEx, text, 0u, nullptr, nullptr);
    driver.run(driver.cuModuleGetFunction, &function_, module_.get(), "fill");
  }

  /// `count` launches that fill y.
  void operator()(int count, float* y, float value) {
    const cuda::ContextScope scope(backend_.context());
    const cuda::Driver& driver = backend_.driver();
    int extent = 1;
    std::array<void*, 3> parameters{&y, &extent, &value};
    for (int i = 0; i < count; ++i)
      driver.run(driver.cuLaunchKernel, function_, 1, 1, 1, 32, 1, 1, 0, stream_, parameters.data(), nullptr);
  }

 private:
  CudaBackend& backend_;
  cuda::CUstream stream_;
  cuda::Handle<cuda::CUmodule> module_;
  cuda::CUfunction function_ = nullptr;
};

}  // namespace

LaunchCost launch_cost(const Device& device) {
  const auto fill = kernel("fill", [](Out<f32, 1> y, Scalar<f32> value) {
    Index block = blocks(cdiv(y.extent(0), 32));
    store(y, {block}, broadcast(value, {32}));
  });
  const Tensor<f32, 1> y(device, {32});
  const Stream stream = device.new_stream();
  std::optional<DriverLaunch> driver;
  if (device.info().arch) driver.emplace(stream);
  std::vector<double> ours, drivers;
  for (int i = -1; i < bursts; ++i) {
    const auto time = [&](std::vector<double>& times, const auto& work) {
      const Stopwatch watch;
      work();
      if (i >= 0) times.push_back(watch.milliseconds() * 1e3 / burst);  // the first one compiles
      stream.synchronize();
    };
    time(ours, [&] {
      for (int j = 0; j < burst; ++j) launch(stream, fill, y, 1.0f);
    });
    if (driver) time(drivers, [&] { (*driver)(burst, y.data(), 1.0f); });
  }
  return {median(ours), driver ? std::optional(median(drivers)) : std::nullopt};
}

}  // namespace tessera::internal::bench
