// Persistent kernels: a sequence of launches as one kernel leaves the same bits in memory as launches one by one.
#include <algorithm>
#include <optional>
#include <random>
#include <string>

#include "codegen/persistent_source.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"

namespace test_persistent {

using namespace tessera::internal;

namespace {

/// Where persistent kernels run: the test device if it runs generated code, else the emulator, if there is one.
std::optional<Device> device_of_persistent() {
  const std::string name = test_device_name();
  if (name.starts_with("cuda") || name == "emulated") return test_device();
#ifdef TESSERA_HAS_EMULATOR
  return emulated_device();
#else
  return {};
#endif
}

constexpr std::int64_t rows = 6;
constexpr int width = 96;

/// y = x w + bias of rows: weights and bias are loaded before the kernel waits.
const auto& linear() {
  static const auto linear = kernel("linear", [](In<f32, 2> x, In<bf16, 2> w, In<f32, 1> bias, Out<f32, 2> y) {
    auto [i, n] = blocks(x.extent(0), cdiv(w.extent(1), 8));
    Tile row = cast<bf16>(load(x, {i, 0}, {1, width}));
    store(y, {i, n}, mma(row, load(w, {0, n}, {width, 8}), zeros<f32>({1, 8})) + load(bias, {n}, {8}));
  });
  return linear;
}
/// Rows of one warp, of many, and of more than the registers of one warp.
auto normalize(int warps) {
  return kernel("normalize" + std::to_string(warps), [=](In<f32, 2> x, Out<f32, 2> y) {
    if (warps > 0) hints({.warps = warps});
    Index i = blocks(x.extent(0));
    Tile row = load(x, {i, 0}, {1, width});
    Tile e = exp(row - max(row, 1));
    store(y, {i, 0}, e / sum(e, 1));
  });
}
const auto& add() {
  static const auto add = kernel("add", [](In<f32, 2> x, InOut<f32, 2> y) {
    auto [i, j] = blocks(cdiv(y.extent(0), 2), cdiv(y.extent(1), 32));
    Tile before = load(y, {i, j}, {2, 32});
    store(y, {i, j}, before + load(x, {i, j}, {2, 32}));
  });
  return add;
}
/// Rows in reverse order: each CTA reads what another one has written.
const auto& reverse() {
  static const auto reverse = kernel("reverse", [](In<f32, 2> x, Out<f32, 2> y) {
    Index i = blocks(x.extent(0));
    store(y, {i, 0}, load(x, {x.extent(0) - 1 - i, 0}, {1, width}));
  });
  return reverse;
}

/// Random launches over a few matrices.
struct Program {
  Sequence sequence;
  std::vector<Tensor<f32, 2>> matrices;
  Tensor<bf16, 2> weights;
  Tensor<f32, 1> bias;
  std::vector<float> start;

  Program(const Device& device, unsigned seed, int count)
      : sequence(device), weights(device, {width, width}), bias(device, {width}) {
    static const auto one = normalize(1);
    static const auto few = normalize(2);
    static const auto many = normalize(4);
    std::mt19937 random(seed);
    const auto value = [&] { return static_cast<float>(random() % 2001) / 1000 - 1; };
    for (std::int64_t i = 0; i < rows * width; ++i) start.push_back(value());
    std::vector<bf16> of_weights;
    for (int i = 0; i < width * width; ++i) of_weights.push_back(bf16(value() / 8));
    weights.copy_from(of_weights);
    bias.copy_from(std::vector<float>(start.begin(), start.begin() + width));
    for (int i = 0; i < 4; ++i) matrices.emplace_back(device, std::array{rows, std::int64_t{width}});
    while (static_cast<int>(sequence.launches().size()) < count) {
      const auto &x = matrices[random() % 4], &y = matrices[random() % 4];
      if (&x == &y) continue;
      switch (random() % 6) {
        case 0:
          sequence.add(linear(), x, weights, bias, y);
          break;
        case 1:
          sequence.add(one, x, y);
          break;
        case 2:
          sequence.add(few, x, y);
          break;
        case 3:
          sequence.add(many, x, y);
          break;
        case 4:
          sequence.add(add(), x, y);
          break;
        case 5:
          sequence.add(reverse(), x, y);
          break;
      }
    }
  }

  template <class Run>
  std::vector<float> after(const Run& run) const {
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      std::vector<float> values = start;
      std::rotate(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(7 * i), values.end());
      matrices[i].copy_from(values);
    }
    run();
    std::vector<float> all;
    for (const auto& matrix : matrices) {
      const std::vector<float> values = matrix.to_vector();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
};

}  // namespace

TEST_CASE("a persistent kernel leaves the same bits as the launches of its sequence", "[jit]") {
  const std::optional<Device> device = device_of_persistent();
  if (!device) {
    WARN("skipped: persistent kernels need a GPU, or the emulator");
    return;
  }
  const Stream stream = device->stream();
  for (unsigned seed = 0; seed < 3; ++seed) {
    const Program program(*device, seed, 12);
    const std::vector<float> plain = program.after([&] { program.sequence.run(stream); });
    const CapturedGraph persistent = program.sequence.persistent("random");
    for (int run = 0; run < 4; ++run) {
      INFO("seed " << seed << ", run " << run);
      CHECK(program.after([&] { stream.launch(persistent); }) == plain);
    }
  }
}

}  // namespace test_persistent
