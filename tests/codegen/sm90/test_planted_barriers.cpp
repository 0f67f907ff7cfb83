// Warp-specialized kernels, one of each kind, and broken versions of their texts: a wait, a fence, a barrier or a bound
// is left out. The emulator must report each fault; so must the tool of compute-sanitizer that is named with it, on a
// GPU: docs/testing.md has the commands.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <vector>

#include "codegen/generate.hpp"
#include "codegen/passes.hpp"
#include "fuzz/memory.hpp"
#include "jit/compile/dump.hpp"
#include "support/catch.hpp"
#include "support/compiled_device.hpp"
#include "support/compiling.hpp"
#include "support/devices.hpp"
#include "support/patterns.hpp"
#include "support/support.hpp"
#include "support/tensors.hpp"
#include "tessera/tessera.hpp"
#ifdef TESSERA_HAS_EMULATOR
#include "emulator/emulator.hpp"
#endif

namespace test_planted_barriers {

using namespace tessera::internal;
using fuzz::Fill;
using fuzz::Given;

namespace {

/// An edit of a kernel's text that breaks it.
struct Edit {
  std::string tool;                      ///< of compute-sanitizer, that reports it on an H200; empty: none does
  std::string what, find, replace = {};  ///< a regular expression, and its replacement
  std::vector<int> which = {};           ///< which matches are replaced; empty: all
};

/// Whole numbers in rows, `gap` elements between them.
struct Matrix {
  int rows, columns, gap = 0;

  static int number(int row, int column) { return (row * 7 + column * 3 + row / 5 * column) % 5 - 2; }
  Given given() const { return {.extents = {rows, columns}, .strides = {columns + gap, 1}, .fill = fuzz::Fill::whole}; }
  template <class T>
  std::vector<T> memory() const {
    std::vector<T> memory(static_cast<std::size_t>(rows) * (columns + gap), T(1000.0f));
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j)
        memory[static_cast<std::size_t>(i) * (columns + gap) + j] = T(static_cast<float>(number(i, j)));
    return memory;
  }
};

struct Sample {
  std::string name;
  Graph graph;
  std::vector<Given> given;
  std::vector<std::int64_t> grid;
  std::function<int()> wrong;  ///< launches on the test's device, and counts wrong elements
  int cluster = 1;
  std::vector<Edit> faults = {};
};

/// y = x w, where x is cast from its type in memory.
template <Stored L, Stored O>
Sample matmul(const char* name, MatmulTiles tiles, Matrix x, Matrix w, std::vector<Edit> faults, int cluster = 1) {
  const auto k = kernel(name, [=](In<L, 2> x, In<bf16, 2> w, tessera::internal::Out<O, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    Var acc = zeros<f32>({tiles.m, tiles.n});
    for (Index k : range(cdiv(x.extent(1), tiles.k)))
      acc = mma(cast<bf16>(load(x, {m, k}, {tiles.m, tiles.k})), load(w, {k, n}, {tiles.k, tiles.n}), acc);
    store(y, {m, n}, cast<O>(acc));
  });
  const auto wrong = [=] {
    const auto memory = []<class T>(const std::vector<T>& values) {
      return tensor<T, 1>({static_cast<std::int64_t>(values.size())}, values);
    };
    const Tensor<L, 1> left = memory(x.memory<L>());
    const Tensor<bf16, 1> right = memory(w.memory<bf16>());
    const Tensor<O, 2> y(test_device(), {x.rows, w.columns});
    launch(test_device().stream(), k,
           Tensor<L, 2>(test_device(), left.data(), {x.rows, x.columns}, {x.columns + x.gap, 1}),
           Tensor<bf16, 2>(test_device(), right.data(), {w.rows, w.columns}, {w.columns + w.gap, 1}), y);
    const std::vector<O> got = y.to_vector();
    int count = 0;
    std::vector<int> sums(static_cast<std::size_t>(w.columns));
    for (int i = 0; i < x.rows; ++i) {
      std::ranges::fill(sums, 0);
      for (int l = 0; l < x.columns; ++l)
        for (int j = 0; j < w.columns; ++j)
          sums[static_cast<std::size_t>(j)] += Matrix::number(i, l) * Matrix::number(l, j);
      for (int j = 0; j < w.columns; ++j) {
        const O expected(static_cast<float>(sums[static_cast<std::size_t>(j)]));
        count += static_cast<float>(got[static_cast<std::size_t>(i) * w.columns + j]) != static_cast<float>(expected);
      }
    }
    return count;
  };
  return {name,
          k.graph(),
          {x.given(), w.given(), Matrix{x.rows, w.columns}.given()},
          {(x.rows + tiles.m - 1) / tiles.m, (w.columns + tiles.n - 1) / tiles.n},
          wrong,
          cluster,
          std::move(faults)};
}

const Edit no_full_wait{"", "consumers do not wait for a stage's data", R"( +barrier_wait\(pipeline_full[^\n]*\n)"},
    no_empty_wait{"", "the producer does not wait until a stage is free", R"( +barrier_wait\(pipeline_empty[^\n]*\n)"},
    no_matrix_wait{"", "a stage is released while it is multiplied", R"( +wgmma_wait<1>\(\);\n)"},
    no_store_fence{
        "", "staged elements are not fenced for TMA",
        R"( +async_proxy_fence\(\);\n( +named_barrier\(\S+( \+ 1)?, (128|256)\);\n +if \(thread == 0\) \{\n +tma_store_guarded))",
        "$1"},
    no_bound_of_reads{"memcheck", "threads copy elements outside of the tensor",
                      R"((read_input<1>\([^;]*), [^,;]* < [^;]*\);)", "$1, true);"};

/// Enough k-iterations that stages are reused, unless a GPU runs a kernel that has lost a wait: it must not hang there.
/// With `many` tiles each of a GPU's multiprocessors has some for both consumer groups.
std::vector<Sample> samples(bool many = false) {
  return {matmul<bf16, bf16>(  // two consumer groups in ping-pong
              "role_turns", {64, 64, 64}, {many ? 64 * 300 : 200, 904}, {904, 64},
              {no_full_wait,
               no_empty_wait,
               no_matrix_wait,
               no_store_fence,
               {"", "consumer groups multiply at the same time", R"( +named_barrier(_arrive)?\([^\n]*\+ 3, 256\);\n)"},
               {"", "both consumer groups stage in the same buffer", R"( \+ team \* \w+_stage)"}}),
          matmul<bf16, bf16>(  // one consumer group of two warp groups
              "role_shared", {128, 256, 64}, {120, 328}, {328, 256},
              {no_full_wait,
               no_empty_wait,
               no_matrix_wait,
               no_store_fence,
               {"synccheck", "barriers are not initialized", R"( +init_pipeline<[^\n]*\n)"},
               {"", "only half of a stage's bytes are expected", R"(\* 512\))", "* 256)"},
               {"", "rows that no box fills are not cleared", R"( +clear_rest<128[^\n]*\n)"},
               {"", "one warp group of two releases a stage", R"(thread % 128 == 0)", "thread == 0"},
               {"", "two warp groups stage the same rows", R"(warp / 4 \* 64 \+ warp % 4)", "warp % 4"}}),
          matmul<bf16, f32>(  // cluster split-K
              "role_cluster", {64, 64, 64}, {64, 2048}, {2048, 64},
              {no_full_wait,
               {"racecheck", "partials are read before they are stored", R"( +cluster_barrier\(\);\n)", "", {0, 2}},
               {"", "CTAs exit while their partials are read", R"( +cluster_barrier\(\);\n)", "", {1, 3}},
               {"memcheck", "partials are stored beyond shared memory", R"(put_part<128>\(reinterpret_cast<float\*>\()",
                "$&32768 + "}},
              4),
          matmul<bf16, bf16>(  // operands that threads copy into the pipeline
              "role_copied", {64, 64, 64}, {70, 903}, {903, 67},
              {no_full_wait,
               no_empty_wait,
               no_bound_of_reads,
               {"", "copied elements are not fenced for wgmma", R"( +async_proxy_fence\(\);\n)"},
               {"", "two warps copy to the same rows", R"(const int t1 = warp;)", "const int t1 = warp / 2;"},
               {"memcheck", "results outside of the tensor are stored", R"(if \([^;]* < [^;]*\) (\w+_base\[))", "$1"}}),
          matmul<f32, f32>(  // a computed left operand
              "role_computed", {64, 64, 64}, {72, 840}, {840, 64},
              {no_full_wait,
               no_empty_wait,
               no_store_fence,
               {"", "an operand's registers are written while they are multiplied", R"( +wgmma_wait<1>\(\);\n)"},
               {"", "a stage is released before all lanes have read it", R"( +warp_barrier\(\);\n)"},
               {"memcheck", "a stage is read beyond shared memory", R"(const char\* const panels = )", "$&262144 + "}}),
          matmul<f32, f32>(  // the same, copied by threads
              "role_computed_copied", {64, 64, 64}, {72, 391}, {391, 64}, {no_full_wait, no_bound_of_reads}),
          matmul<bf16, f32>(  // stores in parts, alternating between two buffers
              "role_parts", {64, 128, 64}, {200, 72}, {72, 128},
              {no_store_fence,
               {"", "a buffer is written while it is stored", R"( +tma_store_wait<1>\(\);\n)"},
               {"", "a part is stored before all threads have staged it",
                R"((async_proxy_fence\(\);\n) +named_barrier[^\n]*\n)", "$1"},
               {"", "two warps stage the same rows", R"(const int t1 = warp \*)", "const int t1 = warp % 2 *"},
               {"memcheck", "a part is staged beyond shared memory", R"(char\* const staged1 = )", "$&65536 + "}})};
}

#ifdef TESSERA_HAS_EMULATOR
/// The text with the fault in its kernel.
std::string broken(const std::string& text, const Edit& fault) {
  const std::size_t kernel = text.find("extern \"C\" __global__");
  return text.substr(0, kernel) + replaced(text.substr(kernel), fault.find, fault.replace, fault.which);
}
#endif

}  // namespace

#ifdef TESSERA_HAS_EMULATOR
TEST_CASE("broken warp-specialized kernels are reported", "[emulator]") {
  for (const Sample& sample : samples()) {
    DYNAMIC_SECTION(sample.name) {
      const Graph graph = run_passes(sample.graph);
      fuzz::Memory memory(graph.parameters, sample.given, 1);
      Variant variant = classify(graph, memory.arguments());
      variant.split_k = sample.cluster > 1 ? SplitK::cluster : SplitK::none;
      const KernelSource whole = generate(graph, variant, Arch::sm_90a);
      REQUIRE(whole.plan.find("role producer") != std::string::npos);
      std::vector<KernelSource> sources{whole};
      for (const Edit& fault : sample.faults) {
        sources.push_back(whole);
        sources.back().text = broken(whole.text, fault);
        INFO(fault.what);
        REQUIRE(sources.back().text != whole.text);
      }
      const Emulator emulator = Emulator::compile(sources);
      const auto report = [&](std::size_t i, std::uint64_t seed) {
        const RunOptions run{.seed = seed, .persistent_blocks = 1, .cluster = sample.cluster};
        return emulator.run(i, graph, memory.arguments(), sample.grid, run).text();
      };
      CHECK(report(0, 1) == "");
      for (std::size_t i = 0; i < sample.faults.size(); ++i) {
        const Edit& fault = sample.faults[i];
        INFO(fault.what);
        std::string said;
        for (std::uint64_t seed = 1; said.empty() && seed <= 4; ++seed) said = report(i + 1, seed);
        CHECK(said != "");
        const char* const folder = std::getenv("TESSERA_TEST_BROKEN");
        if (!folder || fault.tool.empty()) continue;
        const std::filesystem::path to =
            std::filesystem::path(folder) / fmt::format("{}-{}-{}", fault.tool, sample.name, i);
        if (nvrtc_here()) CHECK(compile_check(sources[i + 1], Arch::sm_90a) == "");
        std::filesystem::create_directories(to);
        write_text(to / dump_file(dump_stem(whole.author, Arch::sm_90a.name(), whole.text), "cuda"),
                   sources[i + 1].text);
      }
    }
  }
}
#endif

TEST_CASE("warp-specialized kernels of each kind", "[cpu][sanitize]") {
  for (const Sample& sample : samples(test_device_name().starts_with("cuda"))) {
    DYNAMIC_SECTION(sample.name) { CHECK(sample.wrong() == 0); }
  }
}

}  // namespace test_planted_barriers
