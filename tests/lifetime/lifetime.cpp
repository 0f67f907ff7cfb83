// Kernels at the end of a process, and in a forked child, by name, on the device of TESSERA_DEVICE.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <tessera/tessera.hpp>

using namespace tessera;

namespace {

std::string_view how;

auto twice() {
  return kernel("twice", [](In<f32, 1> x, Out<f32, 1> y) {
    Index i = blocks(cdiv(y.extent(0), 1024));
    store(y, {i}, load(x, {i}, {1024}) * 2);
  });
}

auto square() {
  return kernel("square", [](In<f32, 2> x, Out<f32, 2> y) {
    Tile a = load(x, {0, 0}, {16, 16});
    store(y, {0, 0}, mma(a, a, full<f32>({16, 16}, 0)));
  });
}

/// 6 + 144: by many threads, and by a matmul.
void compute(const char* when) {
  const Device device = Device::best();
  const auto x = device.tensor<f32>({1 << 17}), y = device.tensor<f32>({1 << 17});
  x.fill(3);
  launch(device.stream(), twice(), x, y);
  const auto a = device.tensor<f32>({16, 16}), b = device.tensor<f32>({16, 16});
  a.fill(3);
  launch(device.stream(), square(), a, b);
  std::printf("%s: %g\n", when, static_cast<double>(y.to_vector().back() + b.to_vector().back()));
  std::fflush(stdout);
}

// Made before any device, so destroyed after the static objects there.
struct AtTheEnd {
  ~AtTheEnd() {
    if (how == "static") compute("static");
  }
} const at_the_end;

void fork_and(void (*end)(int)) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    compute("child");
    end(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  std::printf("status %d\n", status);
  compute("parent");
}

}  // namespace

int main(int, char** argv) {
  how = argv[1];
  try {
    if (how == "atexit") std::atexit([] { compute("atexit"); });
    compute("main");
    if (how == "fork") fork_and(&::_exit);
    if (how == "fork-exit") fork_and(&std::exit);
    return 0;
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
