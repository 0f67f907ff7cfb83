// 16-bit matmuls by mma.sync and cp.async, as on all GPUs without wgmma, in the emulator.
#include <array>
#include <string>
#include <vector>

#include "codegen/generate.hpp"
#include "codegen/passes.hpp"
#include "emulator/emulator.hpp"
#include "model/kernels.hpp"
#include "support/catch.hpp"
#include "support/emulating.hpp"
#include "tessera/tessera.hpp"

namespace test_emulated_mma_sync {

using namespace tessera::internal;

namespace {

/// Halves, whose sums are exact.
std::vector<bf16> some(int count, unsigned seed) {
  std::vector<bf16> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = bf16(static_cast<float>((i * 2654435761u + seed) >> 9 & 3) * 0.5f - 0.5f);
  return values;
}

struct Sizes {
  int m, n, k;
  bool nk = false;  ///< w is [n,k]
};

/// y = x w; differences from the host's result, or the emulator's errors.
std::string wrong(const Graph& traced, const Sizes& of, const std::vector<std::int64_t>& grid, std::string_view arch) {
  const Graph graph = run_passes(traced);
  std::vector<bf16> x = some(of.m * of.k, 1), w = some(of.k * of.n, 2), y(static_cast<std::size_t>(of.m) * of.n);
  const std::vector<Argument> arguments{dense_argument(x, {of.m, of.k}),
                                        of.nk ? dense_argument(w, {of.n, of.k}) : dense_argument(w, {of.k, of.n}),
                                        dense_argument(y, {of.m, of.n})};
  const KernelSource source =
      generate(graph, classify(graph, arguments), Arch::parse(arch), {.warp_specialize = false});
  const Emulator emulator = Emulator::compile(std::span(&source, 1));
  const Report report = emulator.run(0, graph, arguments, grid);
  if (!report.clean()) return report.text();
  const auto at = [](const std::vector<bf16>& values, int i) {
    return static_cast<float>(values[static_cast<std::size_t>(i)]);
  };
  for (int i = 0; i < of.m; ++i)
    for (int j = 0; j < of.n; ++j) {
      float sum = 0;
      for (int l = 0; l < of.k; ++l) sum += at(x, i * of.k + l) * at(w, of.nk ? j * of.k + l : l * of.n + j);
      if (at(y, i * of.n + j) != static_cast<float>(bf16(sum))) return "y[" + std::to_string(i * of.n + j) + "]";
    }
  return {};
}

auto matmul(const MatmulTiles& tiles, bool nk) {
  return kernel("product", [=](In<bf16, 2> x, In<bf16, 2> w, Out<bf16, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    const auto right = nk ? w.permute({1, 0}) : w.permute({0, 1});
    store(y, {m, n}, cast<bf16>(kernels::matmul<bf16>(x, right, m, n, tiles)));
  });
}

}  // namespace

TEST_CASE("matmuls by mma.sync prefetch fragments, fetch during the matmul, and store by quads", "[emulator]") {
  const auto check = [](const MatmulTiles& tiles, const Sizes& of, std::string_view arch = "sm_80") {
    INFO(tiles.m << "x" << tiles.n << "x" << tiles.k << " of " << of.m << "x" << of.n << "x" << of.k << " for "
                 << arch);
    const std::vector<std::int64_t> grid{(of.m + tiles.m - 1) / tiles.m, (of.n + tiles.n - 1) / tiles.n};
    CHECK(wrong(matmul(tiles, of.nk).graph(), of, grid, arch) == "");
  };
  for (const bool nk : {false, true}) {
    check({128, 128, 64}, {128, 128, 64 * 5, nk});  // more k-iterations than stages
    check({128, 128, 64}, {136, 144, 64 * 2 + 8, nk}, "sm_90a");
    check({64, 64, 32}, {72, 80, 32 * 7, nk});
    check({64, 128, 48}, {64, 136, 48 * 3, nk});  // k-iterations with an odd number of k-steps
    check({128, 256, 32}, {128, 264, 32 * 3, nk}, "sm_86");
    check({64, 64, 64}, {60, 58, 70, nk});  // pairs and single elements
  }
  check({128, 128, 64}, {128, 128, 16}, "sm_120");  // fewer k-iterations than stages
}

TEST_CASE("indices of an iteration that is fetched during a matmul have names of their own", "[emulator]") {
  // The fetch computes the same indices as the current iteration, for another iteration.
  const auto transposed = kernel("transposed", [](In<bf16, 2> x, In<bf16, 2> w, Out<bf16, 2> y) {
    Index k_steps = cdiv(x.extent(1), 64);
    Var acc = zeros<f32>({64, 64});
    for (Index i : range(k_steps)) {
      Index last = k_steps - 1 - i;
      acc = mma(load(x, {0, last}, {64, 64}), load(w, {last, 0}, {64, 64}), acc);
    }
    store(y, {0, 0}, cast<bf16>(acc));
  });
  CHECK(wrong(transposed.graph(), {64, 64, 64 * 6}, {}, "sm_80") == "");
}

TEST_CASE("eight neighboring bytes are not stored as 16 bytes", "[emulator]") {
  const auto bytes = kernel("bytes", [](In<bf16, 2> x, In<bf16, 2> w, Out<u8, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 64));
    store(y, {m, n}, cast<u8>(kernels::matmul<bf16>(x, w, m, n, {64, 64, 64})));
  });
  const Graph graph = run_passes(bytes.graph());
  for (const int alignment : {8, 16}) {
    Variant variant = dense_variant(graph);
    variant.tensors[2].alignment = static_cast<std::int8_t>(alignment);
    const KernelSource source = generate(graph, variant, Arch::sm_80, {.verify = true, .warp_specialize = false});
    CHECK(source.text.find("by quad exchange") == std::string::npos);
  }
}

}  // namespace test_emulated_mma_sync
