// Matmuls of i8 and u8 by mma.sync in the emulator, with operands in any storage order; how operands are read; what the
// kernels compile to.
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/generate.hpp"
#include "codegen/passes.hpp"
#include "emulator/emulator.hpp"
#include "support/catch.hpp"
#include "support/compiled_device.hpp"
#include "support/emulating.hpp"
#include "support/support.hpp"
#include "support/variants.hpp"
#include "tessera/tessera.hpp"

namespace test_emulated_fp8_matmul {

using namespace tessera::internal;

namespace {

struct Case {
  int m, n, k;        ///< of a tile
  int rows, columns;  ///< of y
  int depth;          ///< extent of x and w along k
  bool km = false;    ///< x is [k,m]
  bool nk = false;    ///< w is [n,k]

  std::string text() const {
    return fmt::format("{}x{}x{} of {}x{}x{}{}{}", m, n, k, rows, columns, depth, km ? " km" : "", nk ? " nk" : "");
  }
};

/// All bytes, in a different order in each row.
template <class T>
std::vector<T> some(int count, unsigned seed) {
  std::vector<T> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<T>((static_cast<unsigned>(i) * 2654435761u + seed) >> 13);
  return values;
}

template <class T>
auto matmul(const Case& of) {
  return kernel("product", [=](In<T, 2> x, In<T, 2> w, Out<i32, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), of.m), cdiv(y.extent(1), of.n));
    const auto left = of.km ? x.permute({1, 0}) : x.permute({0, 1});
    const auto right = of.nk ? w.permute({1, 0}) : w.permute({0, 1});
    Var acc = zeros<i32>({of.m, of.n});
    for (Index k : range(cdiv(left.extent(1), of.k)))
      acc = mma(load(left, {m, k}, {of.m, of.k}), load(right, {k, n}, {of.k, of.n}), acc);
    store(y, {m, n}, acc);
  });
}

/// Differences from the host's result, or the emulator's errors. `element` is the kernel's operand computed from one of
/// x.
template <class T, class Element>
std::string wrong(const Graph& traced, const Case& of, std::string_view arch, const Element& element) {
  const Graph graph = run_passes(traced);
  std::vector<T> x = some<T>(of.rows * of.depth, 1), w = some<T>(of.depth * of.columns, 2);
  std::vector<i32> y(static_cast<std::size_t>(of.rows) * static_cast<std::size_t>(of.columns), 77);
  const std::vector<Argument> arguments{
      of.km ? dense_argument(x, {of.depth, of.rows}) : dense_argument(x, {of.rows, of.depth}),
      of.nk ? dense_argument(w, {of.columns, of.depth}) : dense_argument(w, {of.depth, of.columns}),
      dense_argument(y, {of.rows, of.columns})};
  const KernelSource source = generate(graph, classify(graph, arguments), Arch::parse(arch), {.verify = true});
  const Emulator emulator = Emulator::compile(std::span(&source, 1));
  const std::vector<std::int64_t> grid{(of.rows + of.m - 1) / of.m, (of.columns + of.n - 1) / of.n};
  const Report report = emulator.run(0, graph, arguments, grid);
  if (!report.clean()) return report.text();
  for (int i = 0; i < of.rows; ++i)
    for (int j = 0; j < of.columns; ++j) {
      i32 sum = 0;
      for (int l = 0; l < of.depth; ++l)
        sum += element(x[static_cast<std::size_t>(of.km ? l * of.rows + i : i * of.depth + l)]) *
               w[static_cast<std::size_t>(of.nk ? j * of.depth + l : l * of.columns + j)];
      if (y[static_cast<std::size_t>(i * of.columns + j)] != sum) return fmt::format("y[{},{}]", i, j);
    }
  return {};
}

template <class T>
void check(const Case& of, std::string_view arch = "sm_80") {
  INFO(of.text() << " for " << arch);
  CHECK(wrong<T>(matmul<T>(of).graph(), of, arch, [](T x) { return x; }) == "");
}

KernelSource kernel_source(const Case& of, Arch arch, bool ragged = false) {
  const Graph graph = run_passes(matmul<i8>(of).graph());
  return generate(graph, ragged ? ragged_variant(graph) : dense_variant(graph), arch, {.verify = true});
}

}  // namespace

TEST_CASE("byte matmuls by mma.sync accumulate along k, in any storage order of operands", "[emulator]") {
  for (const bool km : {false, true})
    for (const bool nk : {false, true}) {
      check<i8>({128, 128, 64, 128, 128, 64 * 5, km, nk});                   // more k-iterations than stages
      check<u8>({128, 128, 128, 136, 144, 128 * 2 + 16, km, nk}, "sm_90a");  // k-iterations with prefetched fragments
      check<i8>({64, 64, 32, 63, 65, 37, km, nk}, "sm_120");                 // odd row lengths, element by element
      check<u8>({32, 16, 48, 32, 24, 96, km, nk});                           // half of an instruction's k is padding
      check<i8>({64, 8, 16, 64, 8, 40, km, nk});                             // fewer columns than two instructions
    }
}

TEST_CASE("a left operand of bytes may be computed, or the result of a matmul", "[emulator]") {
  const Case of{64, 64, 64, 64, 64, 64};
  const auto halved = kernel("halved", [=](In<i8, 2> x, In<i8, 2> w, Out<i32, 2> y) {
    Tile left = cast<i8>(cast<i32>(load(x, {0, 0}, {64, 64})) / 2);
    store(y, {0, 0}, mma(left, load(w, {0, 0}, {64, 64})));
  });
  CHECK(wrong<i8>(halved.graph(), of, "sm_80", [](i8 x) { return x >> 1; }) == "");
  const auto twice = kernel("twice", [=](In<i8, 2> x, In<i8, 2> w, Out<i32, 2> y) {
    Tile row = load(x, {0, 0}, {64, 64});
    Tile one = cast<i8>(where(iota({64, 64}, 0) == iota({64, 64}, 1), constant<i32>(1), constant<i32>(0)));
    store(y, {0, 0}, mma(cast<i8>(mma(row, one)), load(w, {0, 0}, {64, 64})));
  });
  CHECK(wrong<i8>(twice.graph(), of, "sm_90a", [](i8 x) { return x; }) == "");
}

TEST_CASE("a left operand of bytes that is a matmul's result goes through shared memory", "[generate]") {
  // If operands are contiguous along k, the accumulators are laid out like a 16-bit left operand.
  const auto twice = kernel("twice", [=](In<i8, 2> x, In<i8, 2> w, Out<i32, 2> y) {
    const auto right = [&] { return load(w.permute({1, 0}), {0, 0}, {64, 64}); };
    Tile sums = mma(load(x, {0, 0}, {64, 64}), right());
    store(y, {0, 0}, mma(cast<i8>(sums), right()));
  });
  const Graph graph = run_passes(twice.graph());
  const KernelSource source = generate(graph, dense_variant(graph), Arch::sm_80, {.verify = true});
  CHECK(source.text.find("left_row<4>(left") != std::string::npos);
  CHECK(source.text.find("pack_i8") == std::string::npos);
}

TEST_CASE("an operand of bytes that does not fit into shared memory is not multiplied by tensor cores", "[emulator]") {
  const Case of{128, 128, 1024, 128, 128, 1024};
  const auto large = kernel("large", [=](In<i8, 2> x, In<i8, 2> w, Out<i32, 2> y) {
    Tile left = cast<i8>(cast<i32>(load(x, {0, 0}, {128, 1024})) / 2);
    Tile right = cast<i8>(cast<i32>(load(w, {0, 0}, {1024, 128})) | 0);
    store(y, {0, 0}, mma(left, right));
  });
  CHECK(wrong<i8>(large.graph(), of, "sm_86", [](i8 x) { return x >> 1; }) == "");
}

TEST_CASE("operands of bytes are read by load_matrix, transposed unless contiguous along k", "[generate]") {
  const auto has = [](const KernelSource& source, std::string_view text) {
    return source.text.find(text) != std::string::npos;
  };
  for (const char* arch : {"sm_80", "sm_90a", "sm_120"})
    for (const bool km : {false, true})
      for (const bool nk : {false, true}) {
        const KernelSource source = kernel_source({128, 128, 64, 128, 128, 128, km, nk}, Arch::parse(arch));
        CHECK(has(source, nk ? "mma_i8<1>(" : "mma_i8<2>("));
        CHECK(has(source, "load_bytes_transposed<8, 1>(a") == km);
        CHECK(has(source, "load_bytes_transposed<8, 2>(b") == !nk);
        CHECK(has(source, "copy_async<16>("));
        CHECK(has(source, nk ? "store_vector<2>(" : "store_vector<4>("));
      }
}

TEST_CASE("byte matmuls spill nothing", "[generate]") {
  for (const char* name : {"sm_80", "sm_90a", "sm_100", "sm_120"}) {
    const Arch arch = Arch::parse(name);
    std::vector<KernelSource> sources;
    for (const bool km : {false, true})
      for (const bool nk : {false, true})
        for (const bool ragged : {false, true}) {
          sources.push_back(kernel_source({128, 128, 64, 0, 0, 0, km, nk}, arch, ragged));
          sources.push_back(kernel_source({128, 256, 128, 0, 0, 0, km, nk}, arch, ragged));
        }
    check_compiled(sources, arch);
  }
}

}  // namespace test_emulated_fp8_matmul
