// Split-K matmuls in the emulator.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "model/kernels.hpp"
#include "support/catch.hpp"
#include "support/emulated_device.hpp"
#include "support/share.hpp"
#include "tessera/tessera.hpp"

namespace test_emulated_wgmma_matmul {

namespace {

using namespace tessera::internal;

struct Multiprocessors {
  const int count;
  explicit Multiprocessors(int count) : count(count) {
    setenv("TESSERA_EMULATOR_MULTIPROCESSORS", std::to_string(count).c_str(), 1);
  }
  ~Multiprocessors() { unsetenv("TESSERA_EMULATOR_MULTIPROCESSORS"); }
};

struct StreamK {
  StreamK() { setenv("TESSERA_EMULATOR_SPLIT_K", "stream_k", 1); }
  ~StreamK() { unsetenv("TESSERA_EMULATOR_SPLIT_K"); }
};

struct Multicast {
  Multicast() { setenv("TESSERA_EMULATOR_MULTICAST", "1", 1); }
  ~Multicast() { unsetenv("TESSERA_EMULATOR_MULTICAST"); }
};

/// Small whole numbers, whose sums are exact.
template <class T>
std::vector<T> some(std::int64_t count, unsigned seed) {
  std::vector<T> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = T(static_cast<float>(static_cast<int>((i * 2654435761u + seed) >> 7 & 7) - 3));
  return values;
}

/// The representation in memory of operands that are multiplied as T.
template <class T>
using Held = kernels::Activations<T>;

template <class T>
auto biased(MatmulTiles tiles) {
  return kernel("biased", [=](In<Held<T>, 2> x, In<Held<T>, 2> w, In<f32, 1> bias, InOut<f32, 2> z, Out<Held<T>, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    Tile sums = kernels::matmul<T>(x, w, m, n, tiles) + load(bias, {n}, {tiles.n});
    Tile before = load(z, {m, n}, {tiles.m, tiles.n});
    store(z, {m, n}, before + sums);
    store(y, {m, n}, cast<Held<T>>(sums * 0.5f));
  });
}

/// Accumulators with another initial value.
template <class T>
auto started(MatmulTiles tiles) {
  using H = Held<T>;
  return kernel("started", [=](In<H, 2> x, In<H, 2> w, In<f32, 1> bias, InOut<f32, 2> z, Out<H, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    Tile before = load(z, {m, n}, {tiles.m, tiles.n});
    Var sums = before + load(bias, {n}, {tiles.n});
    for (Index i : range(cdiv(x.extent(1), tiles.k)))
      sums = mma(cast<T>(load(x, {m, i}, {tiles.m, tiles.k})), cast<T>(load(w, {i, n}, {tiles.k, tiles.n})), sums);
    store(z, {m, n}, sums);
    store(y, {m, n}, cast<H>(sums * 0.5f));
  });
}

template <class T>
void check_matmul(MatmulTiles tiles, std::int64_t m, std::int64_t n, std::int64_t k, bool starts = false,
                  bool along_k = std::same_as<T, tf32>) {
  const auto matmul = starts ? started<T>(tiles) : biased<T>(tiles);
  std::vector<float> y_of[2], z_of[2];
  for (int i = 0; i < 2; ++i) {
    const Device device = i == 0 ? Device::cpu() : emulated_device();
    const auto make = [&]<class E, int R>(std::array<std::int64_t, R> extents, const std::vector<E>& values) {
      Tensor<E, R> t(device, extents);
      t.copy_from(values);
      return t;
    };
    using H = Held<T>;
    const auto x = make.template operator()<H, 2>({m, k}, some<H>(m * k, 1));
    const auto w_memory = make.template operator()<H, 1>({k * n}, some<H>(k * n, 2));
    const Tensor<H, 2> w(device, w_memory.data(), {k, n}, {along_k ? 1 : n, along_k ? k : 1});
    const auto bias = make.template operator()<f32, 1>({n}, some<f32>(n, 3));
    const auto z = make.template operator()<f32, 2>({m, n}, some<f32>(m * n, 4));
    const Tensor<H, 2> y(device, {m, n});
    launch(device.stream(), matmul, x, w, bias, z, y);
    for (const H element : y.to_vector()) y_of[i].push_back(static_cast<float>(element));
    z_of[i] = z.to_vector();
  }
  CHECK(z_of[0] == z_of[1]);
  CHECK(y_of[0] == y_of[1]);
}

template <class T>
void check_matmul(const Multiprocessors& on, MatmulTiles tiles, std::int64_t m, std::int64_t n, std::int64_t k) {
  const auto cdiv = [](std::int64_t a, int b) { return (a + b - 1) / b; };
  CHECK(on.count / (cdiv(m, tiles.m) * cdiv(n, tiles.n)) > 1);
  CHECK(cdiv(k, tiles.k) / 2 > 1);
  check_matmul<T>(tiles, m, n, k);
}

}  // namespace

TEST_CASE("matmuls with narrow tiles equal those of the CPU", "[emulator]") {
  const auto check = [](MatmulTiles tiles, std::int64_t m, std::int64_t n, std::int64_t k) {
    check_matmul<bf16>(tiles, m, n, k, false, true);
    check_matmul<f16>(tiles, m, n, k, true, true);
  };
  for (const int n : {16, 32}) {
    check({64, n, 128}, 64, 96, 384);
    check({64, n, 64}, 20, 100, 200);
    check({128, n, 64}, 150, 72, 65);  // threads copy
    const StreamK shared;
    check({64, n, 64}, 70, 100, 1096);
  }
  for (const int n : {16, 32}) {
    const Multiprocessors many(20);
    check({64, n, 64}, 64, 64, 1096);
    const Multicast multicast;
    check({64, n, 64}, 200, 72, 264);
  }
}

TEST_CASE("stream-K matmuls equal those of the CPU", "[emulator]") {
  const StreamK shared;
  // Shares of less than a tile, and of more; whole and ragged tensors, and partially filled waves.
  for (std::size_t launches = 0; launches < 6 / std::min<std::size_t>(test_share(1), 3); ++launches) {
    check_matmul<bf16>({64, 64, 64}, 64, 128, 1096);
    check_matmul<f16>({128, 128, 64}, 200, 376, 904);
    check_matmul<bf16>({128, 256, 64}, 100, 1000, 640);
  }
  check_matmul<bf16>({64, 64, 64}, 72, 600, 64 * 9);
  check_matmul<f16>({128, 64, 64}, 640, 40, 1024);
  check_matmul<bf16>({64, 64, 64}, 300, 120, 64 * 3);  // no tile is split
  check_matmul<bf16>({64, 128, 64}, 17, 127, 1021);    // threads copy
  check_matmul<bf16>({64, 64, 64}, 64, 300, 1096, true);
  check_matmul<tf32>({64, 64, 32}, 64, 128, 548);
  check_matmul<tf32>({128, 256, 32}, 100, 1000, 320);
  check_matmul<tf32>({64, 128, 32}, 17, 127, 511);
}

TEST_CASE("cluster split-K matmuls equal those of the CPU", "[emulator]") {
  // Clusters of 2 to 8, which take one tile or several, with whole and ragged tensors.
  {
    const Multiprocessors four(4);
    check_matmul<bf16>(four, {64, 64, 64}, 16, 128, 320);
    check_matmul<f16>(four, {128, 128, 64}, 100, 120, 264);
  }
  {
    const Multiprocessors nine(9);
    check_matmul<bf16>(nine, {64, 64, 64}, 72, 104, 512);
    check_matmul<bf16>(nine, {128, 64, 64}, 200, 64, 456);
    check_matmul<f16>(nine, {64, 128, 64}, 40, 136, 1024);
    check_matmul<tf32>(nine, {64, 128, 32}, 40, 136, 512);
    check_matmul<tf32>(nine, {128, 64, 32}, 200, 64, 231);
  }
  // Operands that are not TMA-addressable.
  {
    const Multiprocessors five(5);
    check_matmul<bf16>(five, {64, 64, 64}, 17, 127, 321);
    check_matmul<f16>(five, {128, 128, 64}, 99, 121, 262);
  }
  const Multiprocessors many(132);
  check_matmul<bf16>({64, 64, 64}, 64, 64, 1096, true);
  check_matmul<bf16>(many, {64, 64, 64}, 48, 200, 1096);
  check_matmul<bf16>(many, {64, 128, 64}, 64, 128, 256);
}

TEST_CASE("matmuls with multicast equal those of the CPU", "[emulator]") {
  const Multicast multicast;
  // Pairs of tiles, and a last one that is alone; whole and ragged tensors; few k-iterations and many.
  for (std::size_t launches = 0; launches < 4 / std::min<std::size_t>(test_share(1), 4); ++launches) {
    check_matmul<bf16>({64, 64, 64}, 128, 136, 320);
    check_matmul<bf16>({64, 128, 64}, 190, 264, 72);
    check_matmul<f16>({128, 128, 64}, 300, 200, 264);
  }
  check_matmul<bf16>({64, 64, 64}, 65, 40, 8);
  check_matmul<bf16>({64, 256, 64}, 320, 264, 200);
  check_matmul<f16>({128, 64, 64}, 640, 72, 136);
  check_matmul<bf16>({128, 192, 64}, 257, 200, 328);
  check_matmul<bf16>({128, 256, 64}, 384, 520, 136);
  check_matmul<bf16>({256, 128, 64}, 700, 136, 72);
  check_matmul<bf16>({64, 64, 64}, 200, 72, 264, true);
  check_matmul<tf32>({64, 64, 32}, 200, 136, 140);
  check_matmul<tf32>({128, 128, 32}, 400, 264, 68);
  check_matmul<bf16>({64, 64, 64}, 64, 72, 200);  // a single row of tiles: no multicast
}

}  // namespace test_emulated_wgmma_matmul
