// SIMT matmuls of f32 in the emulator: each result equals the sum over ascending k, bit for bit.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "codegen/generate.hpp"
#include "codegen/passes.hpp"
#include "emulator/emulator.hpp"
#include "model/kernels.hpp"
#include "support/catch.hpp"
#include "support/emulating.hpp"
#include "tessera/tessera.hpp"

namespace test_emulated_simt_matmul {

using namespace tessera::internal;

namespace {

/// Reals whose sums depend on the order, and which bf16 represents exactly.
template <class T>
std::vector<T> some(int count, unsigned seed) {
  std::vector<T> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint32_t word = (static_cast<std::uint32_t>(i) + seed) * 2654435761u;
    values[i] = T(std::ldexp(static_cast<float>(word >> 9 & 255) - 127.5f, static_cast<int>(word >> 20 & 7) - 10));
  }
  return values;
}

struct Sizes {
  int m, n, k;
  bool km = false, nk = false;  ///< x is [k,m], w is [n,k]
};

/// y = x w; differences from the host's result, or the emulator's errors.
template <class X, class W, class Finish>
std::string wrong(const auto& traced, const MatmulTiles& tiles, const Sizes& of, const Finish& finish) {
  const Graph graph = run_passes(traced.graph());
  std::vector<X> x = some<X>(of.m * of.k, 1);
  std::vector<W> w = some<W>(of.k * of.n, 2);
  std::vector<float> y(static_cast<std::size_t>(of.m) * of.n);
  const std::vector<Argument> arguments{of.km ? dense_argument(x, {of.k, of.m}) : dense_argument(x, {of.m, of.k}),
                                        of.nk ? dense_argument(w, {of.n, of.k}) : dense_argument(w, {of.k, of.n}),
                                        dense_argument(y, {of.m, of.n})};
  const KernelSource source = generate(graph, classify(graph, arguments), Arch::sm_90a);
  const Emulator emulator = Emulator::compile(std::span(&source, 1));
  const std::vector<std::int64_t> grid{(of.m + tiles.m - 1) / tiles.m, (of.n + tiles.n - 1) / tiles.n};
  const Report report = emulator.run(0, graph, arguments, grid);
  if (!report.clean()) return report.text();
  const auto at = [](const auto& values, int i) { return static_cast<float>(values[static_cast<std::size_t>(i)]); };
  for (int i = 0; i < of.m; ++i)
    for (int j = 0; j < of.n; ++j) {
      float sum = 0;
      for (int l = 0; l < of.k; ++l)
        sum = std::fma(finish(at(x, of.km ? l * of.m + i : i * of.k + l)), at(w, of.nk ? j * of.k + l : l * of.n + j),
                       sum);
      if (y[static_cast<std::size_t>(i * of.n + j)] != sum) return fmt::format("y[{},{}]", i, j);
    }
  return {};
}

template <class X = f32, class W = f32>
void check(const MatmulTiles& tiles, const Sizes& of) {
  INFO(fmt::format("{}x{}x{} of {}x{}x{}{}{}", tiles.m, tiles.n, tiles.k, of.m, of.n, of.k, of.km ? " km" : "",
                   of.nk ? " nk" : ""));
  const auto matmul = kernel("product", [=](In<X, 2> x, In<W, 2> w, Out<f32, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    const auto left = of.km ? x.permute({1, 0}) : x.permute({0, 1});
    const auto right = of.nk ? w.permute({1, 0}) : w.permute({0, 1});
    Var acc = zeros<f32>({tiles.m, tiles.n});
    for (Index k : range(cdiv(left.extent(1), tiles.k)))
      acc = mma(cast<f32>(load(left, {m, k}, {tiles.m, tiles.k})), cast<f32>(load(right, {k, n}, {tiles.k, tiles.n})),
                acc);
    store(y, {m, n}, acc);
  });
  CHECK(wrong<X, W>(matmul, tiles, of, [](float element) { return element; }) == "");
}

}  // namespace

TEST_CASE("SIMT matmuls accumulate along k, in any storage order of operands", "[emulator]") {
  for (const bool km : {false, true})
    for (const bool nk : {false, true}) {
      check({128, 128, 16}, {128, 128, 16 * 5, km, nk});  // more k-iterations than stages
      check({128, 128, 16}, {132, 136, 44, km, nk});      // partial tiles
      check({64, 64, 32}, {63, 65, 37, km, nk});          // odd row lengths, element by element
      check({32, 128, 12}, {40, 128, 36, km, nk});
      check({20, 72, 16}, {23, 80, 36, km, nk});  // rows of a thread whose chunks are permuted differently
    }
  check({128, 256, 8}, {128, 256, 40});
  check({256, 64, 16}, {256, 64, 20});
  check({256, 32, 16}, {256, 32, 20});  // a thread's groups of columns, and of rows, next to each other
  check({32, 256, 16}, {32, 256, 20, true});
  check({16, 64, 16}, {16, 72, 48});
  check({48, 80, 20}, {48, 80, 20});
}

TEST_CASE("SIMT matmuls take operands of other types, and computed ones", "[emulator]") {
  for (const bool km : {false, true})
    for (const bool nk : {false, true}) {
      check<bf16, f32>({128, 128, 16}, {128, 136, 40, km, nk});
      check<f32, bf16>({64, 128, 16}, {64, 136, 40, km, nk});
    }
  constexpr MatmulTiles tiles{128, 128, 16};
  const auto computed = kernel("computed", [=](In<f32, 2> x, In<f32, 2> w, Out<f32, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    Var acc = zeros<f32>({tiles.m, tiles.n});
    for (Index k : range(cdiv(x.extent(1), tiles.k)))
      acc = mma(maximum(load(x, {m, k}, {tiles.m, tiles.k}), 0.0f), load(w, {k, n}, {tiles.k, tiles.n}), acc);
    store(y, {m, n}, acc);
  });
  CHECK(wrong<f32, f32>(computed, tiles, {128, 140, 52}, [](float x) { return std::max(x, 0.0f); }) == "");
}

}  // namespace test_emulated_simt_matmul
