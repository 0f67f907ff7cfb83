// Kernels whose text lacks a barrier. The emulator must report the race; so must compute-sanitizer's racecheck on a
// GPU:
//   TESSERA_TEST_RACES=FOLDER tessera_tests "a barrier taken out*"      # keeps the texts there
//   TESSERA_OVERRIDE_DIR=FOLDER TESSERA_TEST_DEVICE=cuda compute-sanitizer --tool racecheck tessera_tests "[races]"
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "codegen/generate.hpp"
#include "codegen/passes.hpp"
#include "fuzz/memory.hpp"
#include "fuzz/trial.hpp"
#include "jit/compile/dump.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"
#ifdef TESSERA_HAS_EMULATOR
#include "emulator/emulator.hpp"
#endif

namespace test_races {

using namespace tessera::internal;
using fuzz::Given;

namespace {

/// A kernel of one CTA whose threads communicate through shared memory, and its arguments.
struct Meeting {
  Graph graph;
  std::vector<Given> given;
};

template <Stored T>
Meeting product(const char* name) {
  const auto k = kernel(name, [](In<T, 2> a, In<T, 2> b, Out<f32, 2> c) {
    Var sums = zeros<f32>({64, 64});
    for (Index i : range(cdiv(a.extent(1), 32))) sums = mma(load(a, {0, i}, {64, 32}), load(b, {i, 0}, {32, 64}), sums);
    store(c, {0, 0}, sums);
  });
  return {k.graph(), {{.extents = {64, 96}}, {.extents = {96, 64}}, {.extents = {64, 64}}}};
}

template <class Body>
Meeting of_rows(const char* name, int rows, int columns, const Body& body) {
  const auto k = kernel(name, [&](In<f32, 2> x, Out<f32, 2> y) {
    Tile made = body(load(x, {0, 0}, {rows, columns}));
    store(y, {0, 0}, broadcast(made, {rows, columns}));
  });
  return {k.graph(), {{.extents = {rows, columns}}, {.extents = {rows, columns}}}};
}

std::vector<Meeting> meetings() {
  const auto total = [](const auto& x) { return sum(x, 1); };
  const auto softmax = [](const auto& x) {
    Tile e = exp(x - max(x, 1));
    return e / sum(e, 1);
  };
  const auto layer_norm = [](const auto& x) {
    Tile centered = x - sum(x, 1) / 1536;
    return centered * rsqrt(sum(centered * centered, 1) / 1536 + 1e-5);
  };
  const auto largest = [](const auto& x) { return max(x, Axis(0)); };
  const auto transposed = [](const auto& x) { return reshape(permute(reshape(x, {64, 16}), {1, 0}), {32, 32}); };
  const auto scanned = [](const auto& x) { return cumsum(x, 1); };
  const auto smallest = [](const auto& x) { return x - min(x, 1); };
  return {product<f32>("race_product_f32"),          product<f16>("race_product_f16"),
          product<bf16>("race_product_bf16"),        of_rows("race_sum", 1, 4096, total),
          of_rows("race_softmax", 1, 2048, softmax), of_rows("race_layer_norm", 1, 1536, layer_norm),
          of_rows("race_columns", 256, 16, largest), of_rows("race_reshape", 32, 32, transposed),
          of_rows("race_cumsum", 4, 512, scanned),   of_rows("race_smallest", 2, 4096, smallest)};
}
constexpr int end_of_kernels = __LINE__;

}  // namespace

#ifdef TESSERA_HAS_EMULATOR
namespace {

/// One text for each line "barrier();" of the kernel, without that line.
std::vector<std::string> without_a_barrier(const std::string& text) {
  constexpr std::string_view line = "barrier();\n";
  std::vector<std::string> texts;
  for (std::size_t at = text.find(line, text.find("__global__")); at != text.npos; at = text.find(line, at + 1)) {
    if (text[at - 1] == ' ') texts.push_back(std::string(text).erase(at, line.size() - 1));
  }
  return texts;
}

}  // namespace

TEST_CASE("a barrier taken out of a kernel is a race", "[emulator]") {
  for (const Meeting& meeting : meetings()) {
    const Graph graph = run_passes(meeting.graph);
    INFO(graph.name);
    fuzz::Memory memory(graph.parameters, meeting.given, 1);
    const KernelSource whole = generate(graph, classify(graph, memory.arguments()), options().dump_arch);
    std::vector<KernelSource> sources{whole};
    for (std::string& text : without_a_barrier(whole.text)) {
      sources.push_back(whole);
      sources.back().text = std::move(text);
    }
    const Emulator emulator = Emulator::compile(sources);
    CHECK(emulator.run(0, graph, memory.arguments(), {}).text() == "");
    const auto races = [&](std::size_t i) {  // in one order; in another, it reads data that is not yet written
      return std::ranges::any_of(std::array<std::uint64_t, 4>{1, 2, 3, 4}, [&](std::uint64_t seed) {
        const Report report = emulator.run(i, graph, memory.arguments(), {}, {.seed = seed});
        const auto race = std::ranges::find(report.faults, Fault::Kind::race, &Fault::kind);
        if (race == report.faults.end()) return false;
        REQUIRE(race->line.starts_with("tests/codegen/test_races.cpp:"));
        CHECK(std::stoi(race->line.substr(race->line.find(':') + 1)) < end_of_kernels);  // the author's, each of many
        return true;
      });
    };
    std::size_t racing = 1;
    while (racing < sources.size() && !races(racing)) ++racing;
    REQUIRE(racing < sources.size());
    if (const char* folder = std::getenv("TESSERA_TEST_RACES")) {
      const std::string stem = dump_stem(whole.author, options().dump_arch.name(), whole.text);
      write_text(std::filesystem::path(folder) / dump_file(stem, "cuda"), sources[racing].text);
    }
  }
}
#endif

TEST_CASE("kernels whose threads communicate through shared memory", "[cpu][races]") {
  for (const Meeting& meeting : meetings()) {
    const auto failure = fuzz::Trial(meeting.graph, meeting.given, 1).check_on(test_device());
    INFO(meeting.graph.name << ": " << (failure ? failure->kind + ", " + failure->text : ""));
    CHECK_FALSE(failure);
  }
}

}  // namespace test_races
