// Tiles that choose() picks for matmuls.
#include <fmt/format.h>

#include "jit/compile/cache_key.hpp"
#include "jit/launch/attention_tiles.hpp"
#include "jit/launch/matmul_tiles.hpp"
#include "model/decode_kernels.hpp"
#include "model/kernels.hpp"
#include "support/catch.hpp"
#include "support/compiled_device.hpp"
#include "support/compiling.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"

namespace test_matmul_tiles {

using namespace tessera::internal;

namespace {

const MatmulTarget h200{Target::of(Arch::sm_90a), 132}, a100{Target::of(Arch::sm_80), 108};

std::string chosen(const MatmulShape& shape, MatmulFamily family = MatmulFamily::plain,
                   ElementType operands = ElementType::bf16, const MatmulTarget& target = h200) {
  const MatmulTiles tiles = choose(family, shape, operands, target);
  return fmt::format("{}x{}x{}", tiles.m, tiles.n, tiles.k);
}

}  // namespace

TEST_CASE("large matmuls get the tiles that were the fastest when measured", "[jit]") {
  for (const bool nk : {false, true})
    for (const ElementType operands : {ElementType::f16, ElementType::bf16}) {
      const auto plain = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
        INFO(m << "x" << n << "x" << k);
        return chosen({m, n, k, nk}, MatmulFamily::plain, operands);
      };
      CHECK(plain(4096, 4096, 4096) == "128x256x64");  // 3.9 waves instead of 5.3
      CHECK(plain(8192, 8192, 8192) == "128x192x64");
      CHECK(plain(8192, 2304, 768) == "128x192x64");
      CHECK(plain(8192, 768, 768) == "128x192x64");
      CHECK(plain(8192, 3072, 768) == "128x192x64");
      CHECK(plain(8192, 768, 3072) == "128x192x64");
      CHECK(plain(8192, 50304, 768) == "128x192x64");
      CHECK(plain(1024, 3072, 768) == "128x192x64");
      CHECK(plain(16384, 6400, 1600) == "128x192x64");
      // More CTAs. The narrow tile was measured for 56 x 2424 x 752 alone.
      CHECK(plain(64, 2304, 768) == (nk ? "64x32x128" : "64x64x128"));
    }
  // GELU leaves no registers for 192 accumulators per thread, and nothing hides the epilogue that both groups run at
  // once.
  CHECK(chosen({8192, 3072, 768}, MatmulFamily::activated) == "128x128x64");
  // tf32 where w is contiguous along k: as if k were twice as long.
  const auto tf32_of = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    return chosen({m, n, k, true}, MatmulFamily::plain, ElementType::tf32);
  };
  CHECK(tf32_of(4096, 4096, 4096) == "128x256x32");
  CHECK(tf32_of(8192, 3072, 768) == "128x192x32");
  CHECK(tf32_of(64, 2304, 768) == "64x64x64");
  CHECK(tf32_of(64, 3072, 3072) == "64x128x32");                             // as of 16 bits, [64,64] would be chosen
  CHECK(chosen({8192, 768, 768}, MatmulFamily::activated) == "128x192x64");  // two waves, not three
}

TEST_CASE("matmuls that wgmma does not support get plain tiles", "[jit]") {
  const std::string plain = "128x128x64";
  CHECK(chosen({4096, 4096, 4096}, MatmulFamily::plain, ElementType::bf16, a100) == plain);
  CHECK(chosen({4096, 4096, 4096}, MatmulFamily::plain, ElementType::bf16, {Target::of(Arch::sm_90a, false), 132}) ==
        plain);
  // Two CTAs of two stages, in the shared memory of these GPUs.
  for (const char* arch : {"sm_86", "sm_89", "sm_120"})
    CHECK(chosen({4096, 4096, 4096}, MatmulFamily::plain, ElementType::f16, {Target::of(Arch::parse(arch)), 84}) ==
          "128x128x32");
  CHECK(chosen({4096, 4098, 4096}, MatmulFamily::plain, ElementType::tf32) == "128x128x32");
  CHECK(chosen({4096, 4096, 4098, true}, MatmulFamily::plain, ElementType::tf32) == "128x128x32");
  CHECK(chosen({4096, 4096, 4096, true}, MatmulFamily::plain, ElementType::tf32, a100) == "128x128x32");
  CHECK(chosen({4096, 4097, 4096}) == plain);  // rows of w that are not TMA-addressable
  CHECK(chosen({8192, 2303, 768, true}) == "128x192x64");
  CHECK(chosen({4096, 4096, 4097, true}) == "128x128x64");
  CHECK(chosen({2, 2304, 768}) == "64x64x128");
  CHECK(chosen({1, 2304, 768}) == "1x16x768");
  for (const ElementType bytes : {ElementType::i8, ElementType::u8}) {
    CHECK(chosen({4096, 4104, 4096}, MatmulFamily::plain, bytes) == "128x128x128");
    CHECK(chosen({4096, 4096, 4096}, MatmulFamily::plain, bytes, {Target::of(Arch::parse("sm_86")), 84}) ==
          "128x128x64");
  }
  CHECK(chosen({4096, 4096, 4096, true}, MatmulFamily::plain, ElementType::i8) == "128x256x128");
  // Sums of a wider tile leave no registers for a left operand that is transposed.
  CHECK(chosen({4096, 4096, 4096}, MatmulFamily::plain, ElementType::f8e4m3) == "128x128x128");
  CHECK(chosen({4096, 4096, 4096, true}, MatmulFamily::plain, ElementType::f8e4m3) == "128x256x128");
  CHECK(chosen({8192, 768, 3072, true}, MatmulFamily::plain, ElementType::f8e4m3) == "128x192x128");
  // Rates without promotion would choose 128x192x128.
  CHECK(chosen({2048, 6400, 3072, true}, MatmulFamily::plain, ElementType::f8e4m3) == "128x256x128");
  CHECK(chosen({4096, 4096, 4104, true}, MatmulFamily::plain, ElementType::f8e4m3) == "128x128x64");  // not by TMA
  CHECK(chosen({4096, 4096, 4096}, MatmulFamily::plain, ElementType::f64) == "64x64x16");
  // The next tile's loads overlap another tile's matmul.
  CHECK(chosen({8192, 768, 768}) == "128x192x64");
  CHECK(chosen({8192, 768, 768}, MatmulFamily::residual) == "64x128x64");
  CHECK(chosen({8192, 768, 3072}, MatmulFamily::residual) == "128x128x64");
  CHECK(chosen({1, 50257, 768, true}) == "1x16x768");
  CHECK(choose<bf16>(MatmulFamily::plain, {100, 100, 100}, Device::cpu()) == MatmulTiles{128, 128, 100});
}

TEST_CASE("few rows get narrow tiles where CTAs do not share k, or k is short", "[jit]") {
  MatmulTarget alone = h200;
  alone.split_k = SplitKPolicy::none;
  const auto columns =
      [&](std::int64_t rows, std::int64_t n, std::int64_t k, bool nk = true, ElementType operands = ElementType::bf16) {
    return choose(MatmulFamily::residual, {rows, n, k, nk}, operands, alone).n;
  };
  CHECK(columns(64, 768, 3072) == 16);  // 48 CTAs, not 12
  CHECK(columns(2, 768, 3072) == 16);
  CHECK(columns(256, 768, 3072) <= 32);
  CHECK(columns(64, 50257, 768) >= 64);
  CHECK(columns(8192, 768, 3072) >= 64);
  CHECK(columns(64, 768, 3072, false) >= 64);  // rows of less than 128 bytes
  CHECK(columns(64, 768, 3072, true, ElementType::tf32) >= 64);
  CHECK(choose(MatmulFamily::residual, {64, 768, 3072, true}, ElementType::bf16, h200).n >= 64);
  CHECK(choose(MatmulFamily::activated, {56, 2424, 752, true}, ElementType::bf16, h200).n == 32);
  CHECK(choose(MatmulFamily::plain, {8192, 4096, 768, true}, ElementType::bf16, h200).n >= 64);
  CHECK(choose(MatmulFamily::plain, {.m = 64, .n = 768, .k = 3072, .nk = true, .computes_w = true}, ElementType::bf16,
               alone)
            .m >= 64);
}

TEST_CASE("attention of few CTAs gets small tiles", "[jit]") {
  const auto tiles = [](int width, std::int64_t queries, std::int64_t heads, std::int64_t seen = 2048) {
    return attention_tiles({.operands = ElementType::bf16,
                            .head_width = width,
                            .seen = seen,
                            .queries = queries,
                            .heads = heads,
                            .multiprocessors = 132},
                           true, true);
  };
  CHECK(tiles(64, 1024, 8) == AttentionTiles{64, 128, 2});   // 48 CTAs of 192 queries
  CHECK(tiles(64, 2064, 14) == AttentionTiles{64, 128, 2});  // 154: a second wave for 22
  CHECK(tiles(64, 4096, 52) == AttentionTiles{192, 128});
  CHECK(tiles(64, 0, 0) == AttentionTiles{192, 128});  // not known
  CHECK(tiles(128, 432, 4, 432) == AttentionTiles{64, 64});
  CHECK(tiles(128, 1368, 8, 1368) == AttentionTiles{128, 128});  // 88, and 176 of 64 queries
  CHECK(tiles(128, 5224, 5) == AttentionTiles{128, 160});  // 205
  CHECK(tiles(64, 208, 18, 104) == AttentionTiles{64, 96, 3});
}

// wgmma multiplies the transpose of w by that of x: the larger extent is along n, the smaller one along m.
TEST_CASE("matmuls whose operands wgmma swaps get tiles for a left operand from registers", "[jit]") {
  CHECK(chosen({4096, 4096, 4096}, MatmulFamily::plain, ElementType::tf32) == "256x128x32");
  CHECK(chosen({100, 4096, 4096}, MatmulFamily::plain, ElementType::tf32) == "128x128x32");
  for (const ElementType bytes : {ElementType::i8, ElementType::u8}) {
    CHECK(chosen({4096, 4096, 4096}, MatmulFamily::plain, bytes) == "256x128x128");
    CHECK(chosen({8192, 8192, 8192}, MatmulFamily::plain, bytes) == "256x128x128");
    CHECK(chosen({16, 4096, 4096}, MatmulFamily::plain, bytes) == "64x128x128");  // rows of w have 128 bytes
  }
  const MatmulShape weights{.m = 4096, .n = 4096, .k = 4096, .computes_w = true},
      activations{.m = 8192, .n = 3072, .k = 768, .computes_x = true};
  CHECK(chosen(weights) == "256x128x64");
  CHECK(chosen(activations) == "128x256x64");
}

TEST_CASE("matmuls of f32 get large tiles where all multiprocessors have some", "[jit]") {
  const auto of = [](std::int64_t m, std::int64_t n, std::int64_t k, bool nk = false, const MatmulTarget& on = h200) {
    return chosen({m, n, k, nk}, MatmulFamily::plain, ElementType::f32, on);
  };
  for (const MatmulTarget& target : {h200, a100}) {
    CHECK(of(4096, 4096, 4096, false, target) == "128x128x16");
    CHECK(of(2048, 2048, 2048, false, target) == "128x128x16");
    CHECK(of(512, 512, 4096, false, target) == "64x64x16");  // there would be 16 larger ones
    CHECK(of(16, 4096, 4096, false, target) == "16x64x32");
  }
}

TEST_CASE("accumulators that leave registers for one CTA leave all shared memory to its stages", "[generate]") {
  const auto stages = [](std::string_view arch, const MatmulTiles& tiles) {
    const auto kernel = kernels::linear<bf16, bf16>(tiles);
    const Graph& graph = kernel.executable().graph();
    const std::string plan = generate(graph, dense_variant(graph), Arch::parse(arch), {.warp_specialize = false}).plan;
    return plan[plan.find(" stages of ") - 1] - '0';
  };
  CHECK(stages("sm_90a", {128, 128, 64}) == 3);  // two CTAs of 96 KB
  CHECK(stages("sm_90a", {128, 256, 64}) == 4);  // one of 192
  CHECK(stages("sm_90a", {256, 128, 64}) == 4);
  CHECK(stages("sm_80", {128, 128, 64}) == 2);
  CHECK(stages("sm_80", {128, 256, 64}) == 3);
  CHECK(stages("sm_86", {128, 256, 32}) == 3);
}

TEST_CASE("a CPU's tiles have as many rows as there are, if few, and give its threads equal parts", "[jit]") {
  const auto tiles = [](std::int64_t m, std::int64_t n, int threads) {
    return choose(MatmulFamily::plain, {m, n, 768}, ElementType::f32, MatmulTarget{.multiprocessors = threads});
  };
  for (const int m : {1, 2, 7, 16}) CHECK(tiles(m, 3072, 2) == MatmulTiles{m, 256, 768});  // 6 tiles a thread
  CHECK(tiles(17, 3072, 2) == MatmulTiles{64, 64, 256});
  CHECK(tiles(65, 3072, 2) == MatmulTiles{128, 128, 256});
  CHECK(tiles(1, 768, 2).n == 192);   // two a thread
  CHECK(tiles(1, 2304, 2).n == 192);  // six a thread, where 256 columns would be nine tiles
  CHECK(tiles(1, 768, 16).n == 64);
}

TEST_CASE("tiles suit every extent and device", "[jit]") {
  for (const auto& [target, shared] : {std::pair{MatmulTarget{}, 0}, {a100, 99 * 1024}, {h200, 227 * 1024}})
    for (const ElementType operands : {ElementType::f32, ElementType::tf32, ElementType::f16, ElementType::bf16,
                                       ElementType::i8, ElementType::u8, ElementType::f64, ElementType::f8e4m3})
      for (const std::int64_t k : {8, 17, 48, 192, 256, 768, 1021, 1600, 32768})
        for (const std::int64_t m : {1, 2, 16, 17, 64, 65, 1024, 1025, 100000})
          for (const bool nk : {false, true}) {
            INFO(name(operands) << " " << m << " rows, " << k << " deep");
            const MatmulTiles tiles = choose(MatmulFamily::plain, {m, 768, k, nk}, operands, target);
            CHECK((tiles.m == 1) == (m == 1));
            CHECK((tiles.n >= (m == 1 && nk ? 4 : 16) && tiles.k >= 1));
            // A part of a k-iteration may be empty if there are half as many of them, or if rows of 128 bytes do not
            // divide it.
            const bool as_bytes = info(operands).bytes == 1 && target.has_wgmma() && m > 1 && k % 16 == 0;
            if (k % 64 == 0)
              CHECK((k % tiles.k == 0 || as_bytes || (target.has_wgmma() && tiles.k * info(operands).bytes == 256)));
            if (!target.gpu) continue;
            // One row: the weights of a tile are in registers, at most 64 per thread. More: both operands, in three
            // stages at least, in the shared memory of the smallest GPU with these instructions.
            const int bytes = operands == ElementType::f8e4m3 && !as_bytes ? 2 : info(operands).bytes;  // as f16
            if (m == 1) CHECK(tiles.n * tiles.k <= 64 * 256);
            if (m > 1) CHECK(3 * (tiles.m + tiles.n) * tiles.k * bytes <= shared);
          }
}

TEST_CASE("every tile that may be chosen gives a warp-specialized kernel that fits", "[generate]") {
  auto check =
      [number = std::size_t{0}](const auto& kernel, const std::function<void(Variant&)>& unlike_dense = {}) mutable {
    const Graph& graph = kernel.executable().graph();
    Variant variant = dense_variant(graph);
    if (unlike_dense) unlike_dense(variant);
    const KernelSource source = generate(graph, variant, Arch::sm_90a);
    CHECK(source.plan.find("not warp-specialized") == std::string::npos);
    if (in_share(number++) && nvrtc_here()) CHECK(compile_check(source, Arch::sm_90a, false) == "");
  };
  for (const MatmulTiles& tiles : wgmma_tiles()) {
    INFO(tiles.m << "x" << tiles.n << "x" << tiles.k);
    check(kernels::linear<bf16, bf16>(tiles));
    check(kernels::linear_gelu<bf16, bf16>(tiles));
    check(kernels::linear_residual<bf16, bf16>(tiles));
    check(kernels::lm_head<bf16, bf16>(tiles));
  }
  const auto along_k = [](Variant& variant) { variant.tensors[1].contiguous_axis = 0; };
  for (const MatmulTiles& tiles : narrow_tiles()) {
    INFO(tiles.m << "x" << tiles.n << "x" << tiles.k);
    check(kernels::linear<bf16, bf16>(tiles), along_k);
    check(kernels::linear_qkv<bf16, bf16>(tiles), along_k);
    check(kernels::linear_append<bf16, bf16>(tiles), along_k);
    check(kernels::linear_gelu<bf16, bf16>(tiles), along_k);
    check(kernels::linear_residual<bf16, bf16>(tiles), along_k);
    check(kernels::lm_head<bf16, bf16>(tiles));
  }
  for (const MatmulTiles& tiles : wgmma_tiles(ElementType::tf32)) {
    INFO(tiles.m << "x" << tiles.n << "x" << tiles.k << " of tf32");
    check(kernels::lm_head<tf32, f32>(tiles));
  }
}

TEST_CASE("the highest tier of instructions is an option", "[generate]") {
  const auto kernel = kernels::linear<bf16, bf16>({128, 128, 64});
  const Graph& graph = kernel.executable().graph();
  const KernelSource with = generate(graph, dense_variant(graph), Arch::sm_90a),
                     without = generate(graph, dense_variant(graph), Arch::sm_90a, {.warp_specialize = false});
  CHECK(with.text.find("wgmma") != std::string::npos);
  CHECK(without.text.find("wgmma") == std::string::npos);
  CHECK(strip_comments(with.text) != strip_comments(without.text));  // the text that the cache hashes
  CHECK(without.tma_tensors.empty());
}

}  // namespace test_matmul_tiles
