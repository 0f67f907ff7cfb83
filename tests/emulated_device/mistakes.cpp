// A program that is not linked with the emulator: prints the reports on a kernel, by name, on the device of
// TESSERA_DEVICE.
#include <cstdio>
#include <string_view>

#include <tessera/tessera.hpp>

using namespace tessera;

namespace {

// Two CTAs store to the same index.
auto race() {
  return kernel("race", [](In<f32, 1> x, Out<f32, 1> y) {
    Index i = blocks(2);
    store(y, {0}, load(x, {i}, {64}));
  });
}

auto twice() {
  return kernel("twice", [](In<f32, 1> x, Out<f32, 1> y) {
    Index i = blocks(2);
    store(y, {i}, load(x, {i}, {64}) * 2);
  });
}

template <class Kernel>
void run(const Kernel& kernel, bool recorded) {
  const Device device = Device::best();
  Tensor<f32, 1> x(device, {128}), y(device, {128});
  x.copy_from(std::vector<f32>(128, 3));
  if (recorded)
    device.stream().launch(device.stream().capture([&] { launch(device.stream(), kernel, x, y); }));
  else
    launch(device.stream(), kernel, x, y);
  std::printf("%s: %g\n", device.name().c_str(), static_cast<double>(y.to_vector().back()));
}

}  // namespace

int main(int, char** argv) {
  const std::string_view name = argv[1];
  try {
    name == "race" ? run(race(), false) : run(twice(), name == "recorded");
    return 0;
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
