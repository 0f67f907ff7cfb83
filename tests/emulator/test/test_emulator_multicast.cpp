// Multicast in the emulator: TMA loads to the shared memory of each block of a cluster, and arrivals at their
// mbarriers.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"
#include "support/raw_cuda.hpp"
#include "support/support.hpp"

namespace test_emulator_multicast {

using namespace tessera::internal;

namespace {

constexpr int rounds = 6;

Tensor matrix(const std::vector<float>& values, int columns) {
  const auto rows = static_cast<std::int64_t>(values.size()) / columns;
  return {{Access::in, ElementType::f32, 2},
          {.data = const_cast<float*>(values.data()), .extent = {rows, columns}, .stride = {columns, 1}}};
}

std::vector<float> numbers(int count) {
  std::vector<float> values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<float>(i * 7 % 61 - 30));
  return values;
}

/// Replaces parts of a text, each of which it has.
struct Change {
  std::string_view from, to;
};
std::string changed(std::string text, const std::vector<Change>& changes) {
  for (const auto& [from, to] : changes) {
    const std::size_t at = text.find(from);
    INFO(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
  }
  return text;
}

/// In each block of a cluster of two, warp 2 loads half of each stage for both blocks, and warps 0 and 1 read the
/// stage.
constexpr std::string_view two_halves = R"(char* const stages = panel_memory();
u64* const full = reinterpret_cast<u64*>(stages + 4096);
u64* const empty = full + 2;
const int thread = thread_index(), rank = cluster_rank();
if (thread == 0) for (int i = 0; i < 2; ++i) barrier_init(full + i, 1), barrier_init(empty + i, 4);
if (thread == 0) barrier_init_fence();
cluster_barrier();
if (warp_index() == 2) {
  for (int round = 0; round < 6 && lane_index() == 0; ++round) {
    const int s = round % 2, phase = round / 2 % 2;
    barrier_wait(empty + s, 1 - phase);
    barrier_expect(full + s, 2048);
    tma_load_multicast(&from, stages + s * 2048 + rank * 1024, full + s, 0, (round * 2 + rank) * 8);
  }
} else {
  for (int round = 0; round < 6; ++round) {
    const int s = round % 2, phase = round / 2 % 2;
    barrier_wait(full + s, phase);
    for (int i = thread; i < 512; i += 64)
      y[(block_index() * 6 + round) * 512 + i] = *reinterpret_cast<const float*>(
          stages + s * 2048 + panel_offset(i / 32, i % 32 / 4) + i % 4 * 4);
    warp_barrier();
    if (lane_index() == 0) barrier_arrive_cluster(empty + s);
  }
}
cluster_barrier();
)";

class TwoHalves {
 public:
  explicit TwoHalves(const std::vector<Change>& changes)
      : x_(numbers(rounds * 512)), y_(4 * x_.size()), prepared_(prepare(kernel(changes), {matrix(x_, 32), out(y_)})) {}

  Report run(const RunOptions& options) {
    std::ranges::fill(y_, -1.0f);
    RunOptions all = options;
    all.cluster = 2, all.persistent_blocks = 2, all.blocks_in_flight = 2;
    return prepared_.run(all, {2});
  }
  bool is_right() const {
    for (std::size_t i = 0; i < y_.size(); ++i)
      if (y_[i] != x_[i % x_.size()]) return false;
    return true;
  }

 private:
  static HandWritten kernel(const std::vector<Change>& changes) {
    return {.parameters = "const float* x, float* y, const __grid_constant__ TensorMap from",
            .body = changed(std::string(two_halves), changes),
            .threads = 96,
            .shared_bytes = 4096 + 32,
            .persistent = true,
            .clusters = true,
            .more = {{KernelParameter::Kind::tensor_map, 0}},
            .tma_tensors = {{.argument = 0, .axes = {1, 0, -1, -1, -1}, .box = {32, 8, 1, 1, 1}}}};
  }

  std::vector<float> x_, y_;
  Prepared prepared_;
};

}  // namespace

TEST_CASE("a multicast load writes to each block of a cluster", "[emulator]") {
  TwoHalves kernel({});
  for (std::uint64_t seed = 1; seed <= 32; ++seed) {
    INFO("seed " << seed);
    CHECK(kernel.run({.seed = seed}).text() == "");
    CHECK(kernel.is_right());
    CHECK(kernel.run({.checks = false, .seed = seed}).text() == "");
    CHECK(kernel.is_right());
  }
  // Instead of a cluster barrier, each block waits at its end for the arrivals of the other one.
  TwoHalves waits(
      std::vector<Change>{{"  }\n} else {",
                           "  }\n"
                           "  for (int s = 0; s < 2 && lane_index() == 0; ++s) barrier_wait(empty + s, 0);\n"
                           "} else {"},
                          {"  }\n}\ncluster_barrier();", "  }\n}"}});
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    INFO("seed " << seed);
    CHECK(waits.run({.seed = seed}).text() == "");
    CHECK(waits.is_right());
  }
}

namespace {

struct Expected {
  Fault::Kind kind;
  std::vector<std::string_view> says;  ///< parts of the message of a fault of this kind
  bool always = true;                  ///< the first fault of any run; otherwise a fault of some run, and all have one
};

/// Runs a kernel with a planted fault with several seeds.
template <class Run>
void check_found(Run&& run, const Expected& expected) {
  std::string text;
  int first = 0, found = 0;
  constexpr int seeds = 8;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const Report report = run(seed);
    text += report.clean() ? "nothing\n" : report.text() + "\n";
    CHECK_FALSE(report.clean());
    first += !report.clean() && report.faults[0].kind == expected.kind;
    found += std::ranges::any_of(report.faults, [&](const Fault& fault) {
      const auto has = [&](std::string_view part) { return fault.text.find(part) != std::string::npos; };
      return fault.kind == expected.kind && std::ranges::all_of(expected.says, has);
    });
  }
  INFO(text);
  CHECK(found > 0);
  CHECK((!expected.always || first == seeds));
}

}  // namespace

TEST_CASE("faults of multicast loads are found", "[emulator]") {
  struct Planted {
    const char* name;
    std::vector<Change> changes;
    Expected expected;
  };
  using Kind = Fault::Kind;
  const std::string_view init_fence = "if (thread == 0) barrier_init_fence();\n",
                         start = "cluster_barrier();\nif (warp_index() == 2)", end = "}\ncluster_barrier();\n",
                         wait_empty = "    barrier_wait(empty + s, 1 - phase);\n",
                         expect = "barrier_expect(full + s, 2048)", for_readers = "barrier_init(empty + i, 4)",
                         read_round =
                             "round < 6; ++round) {\n    const int s = round % 2, phase = round / 2 % 2;\n"
                             "    barrier_wait(full",
                         wait_full = "    barrier_wait(full + s, phase);\n", meet = "    warp_barrier();\n",
                         release = "    if (lane_index() == 0) barrier_arrive_cluster(empty + s);\n";
  const std::string again = std::string(release), wait_and_release = std::string(wait_full) + again,
                    meet_and_release = std::string(meet) + again,
                    fewer = changed(std::string(read_round), {{"6", "5"}});
  std::vector<Planted> all{
      {"no cluster barrier after the initialization",
       {{start, "barrier();\nif (warp_index() == 2)"}},
       {Kind::race, {"uses the mbarrier at byte 40", "of block ", "initialized with no barrier between them"}, false}},
      {"no fence after the initialization",
       {{init_fence, ""}},
       {Kind::missing_fence, {"with no barrier_init_fence since it was initialized"}}},
      {"a fence after the cluster barrier",
       {{init_fence, ""},
        {start, "cluster_barrier();\nif (thread == 0) barrier_init_fence();\nif (warp_index() == 2)"}},
       {Kind::missing_fence, {"with no barrier_init_fence since it was initialized"}, false}},
      {"a fence after the cluster barrier, and a barrier in the block",
       {{init_fence, ""},
        {start, "cluster_barrier();\nif (thread == 0) barrier_init_fence();\nbarrier();\nif (warp_index() == 2)"}},
       {Kind::race, {" of block ", "fenced with no barrier between them"}, false}},
      {"no wait for an empty stage",
       {{wait_empty, ""}},
       {Kind::misuse,
        {"arrives at the mbarrier at byte 4096 of shared memory once too often: phase 0 lacks 0 of 1 arrivals"}}},
      {"a wait only for the block's own readers",
       {{for_readers, "barrier_init(empty + i, 2)"},
        {release, "    if (lane_index() == 0) barrier_arrive(empty + s);\n"}},
       {Kind::race,
        {"starts a copy to byte ", "of shared memory of block ", " (1024 bytes) at author.cpp:13, which TMA of block ",
         "for the mbarrier at byte 4", " of shared memory of block ",
         " wrote at author.cpp:13 with no barrier between"},
        false}},
      {"one warp tells only its own block that it has read a stage",
       {{for_readers, "barrier_init(empty + i, 3)"},
        {release,
         "    if (thread == 0) barrier_arrive_cluster(empty + s);\n"
         "    if (thread == 32) barrier_arrive(empty + s);\n"}},
       {Kind::race,
        {"starts a copy to byte ", "of shared memory of block ", " (1024 bytes) at author.cpp:13, which thread ",
         " read at author.cpp:20 with no barrier between them"},
        false}},
      {"a stage is released while it is read",
       {{wait_full, wait_and_release}, {meet_and_release, ""}},
       {Kind::race, {"starts a copy to byte ", " (1024 bytes) at author.cpp:13, which thread "}, false}},
      {"no wait for a full stage",
       {{wait_full, ""}},
       {Kind::in_flight,
        {"while the copy there by TMA of block ", " for the mbarrier at byte 4",
         ", started at author.cpp:13, is in flight"},
        false}},
      {"more bytes are expected",
       {{expect, "barrier_expect(full + s, 3072)"}},
       {Kind::deadlock,
        {"no thread can make progress; ", "thread 0 and 63 more wait in barrier_wait at author.cpp:18",
         "lacks 0 of 1 arrivals and 1024 bytes", "; in block "}}},
      {"fewer bytes are expected",
       {{expect, "barrier_expect(full + s, 1024)"}},
       {Kind::in_flight, {"while the copy there by TMA"}, false}},
      {"one block expects no bytes",
       {{expect, "barrier_expect(full + s, rank ? 2048 : 0)"}},
       {Kind::deadlock, {"lacks 0 of 1 arrivals and -2048 bytes"}, false}},
      {"an arrival too many",
       {{meet, meet_and_release}},
       {Kind::misuse, {"arrives at the mbarrier at byte ", "once too often"}, false}},
      {"more arrivals are expected",
       {{for_readers, "barrier_init(empty + i, 6)"}},
       {Kind::deadlock, {"lacks 2 of 6 arrivals and 0 bytes"}}},
      {"a block ends before the other one's arrivals",
       {{end, "}\n"}},
       {Kind::misuse,
        {"arrives at the mbarrier at byte 41", "of shared memory of block ", " at author.cpp:23, and block ",
         " may end before that: it does not wait for the arrival"}}},
      {"a block ends before the other one's copies",
       {{read_round, fewer}},
       {Kind::misuse,
        {"thread 64 starts a copy to shared memory of block ", " at author.cpp:13, and block ",
         " may end before the copy: it does not wait for the mbarrier at byte 4104 of shared memory"}}},
      {"a block ends early",
       {{start, "cluster_barrier();\nif (rank == 1) return;\nif (warp_index() == 2)"}},
       {Kind::misuse, {"copies to memory of block 1 of its cluster, which has ended at author.cpp:14"}, false}},
      {"an arrival where there is no mbarrier",
       {{"if (thread == 0) for", "if (thread == 0 && rank == 0) for"},
        {start,
         "cluster_barrier();\nif (thread == 0 && rank == 0) barrier_arrive_cluster(empty);\ncluster_barrier();\n"
         "if (warp_index() == 2)"}},
       {Kind::misuse,
        {"uses byte 4112 of shared memory of block ", " as an mbarrier, which was not initialized at author.cpp:8"},
        false}},
      {"an arrival outside of shared memory",
       {{release, "    if (lane_index() == 0) barrier_arrive_cluster(empty + 2);\n"}},
       {Kind::misuse, {"arrives at byte 4128 of the 4128 bytes of another block's shared memory"}, false}},
      {"a load beyond shared memory",
       {{"stages + s * 2048", "stages + 4096 + s * 2048"}},
       {Kind::out_of_bounds, {"thread 64 starts a copy to ", " bytes past shared memory"}}},
      {"a write without a fence before the other block's copy",
       {{init_fence, "if (thread == 0) barrier_init_fence();\nif (rank == 1) stages[thread] = 0;\n"}},
       {Kind::missing_fence,
        {"starts a copy to byte 0 of shared memory of block ", " (1024 bytes) at author.cpp:14, which thread ",
         " wrote at author.cpp:7 with no async_proxy_fence since"},
        false}},
  };
  std::erase_if(all, [](const Planted& one) { return !in_share(one.name, std::min<std::size_t>(test_share(1), 3)); });
  for (const Planted& planted : all) {
    INFO(planted.name);
    TwoHalves kernel(planted.changes);
    check_found([&](std::uint64_t seed) { return kernel.run({.seed = seed}); }, planted.expected);
  }
  // With a fence, the other block's TMA knows of the write.
  TwoHalves fenced(std::vector<Change>{
      {init_fence,
       "if (thread == 0) barrier_init_fence();\nif (rank == 1) stages[thread] = 0;\nasync_proxy_fence();\n"}});
  for (std::uint64_t seed = 1; seed <= 8; ++seed) CHECK(fenced.run({.seed = seed}).text() == "");
}

namespace {

/// Two blocks multiply a matrix [64,8] that both load, half each, by its transpose.
HandWritten squares(const std::vector<Change>& changes) {
  constexpr std::string_view body = R"(u64* const full = reinterpret_cast<u64*>(panel_memory() + 8192);
u64* const empty = full + 1;
const int thread = thread_index(), rank = cluster_rank();
if (thread == 0) barrier_init(full, 1), barrier_init(empty, 8), barrier_init_fence();
cluster_barrier();
if (warp_index() == 4) {
  for (int round = 0; round < 3 && lane_index() == 0; ++round) {
    barrier_wait(empty, 1 - round % 2);
    barrier_expect(full, 8192);
    tma_load_multicast(&from, panel_memory() + rank * 4096, full, 0, round * 64 + rank * 32);
  }
} else {
  for (int round = 0; round < 3; ++round) {
    float sums[32];
    barrier_wait(full, round % 2);
    wgmma_fence();
    wgmma_tf32_n64<0, 0>(sums, matrix_descriptor<1, 64>(panel_memory()), matrix_descriptor<1, 64>(panel_memory()), false);
    wgmma_commit();
    wgmma_wait<0>();
    if (lane_index() == 0) barrier_arrive_cluster(empty);
    for (int i = 0; i < 32; ++i)
      y[((block_index() * 3 + round) * 64 + thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8) * 64 + i / 4 * 8 +
        thread % 4 * 2 + i % 2] = sums[i];
  }
}
cluster_barrier();
)";
  return {.parameters = "const float* x, float* y, const __grid_constant__ TensorMap from",
          .body = changed(std::string(body), changes),
          .threads = 160,
          .shared_bytes = 8192 + 16,
          .persistent = true,
          .clusters = true,
          .more = {{KernelParameter::Kind::tensor_map, 0}},
          .tma_tensors = {{.argument = 0, .axes = {1, 0, -1, -1, -1}, .box = {32, 32, 1, 1, 1}}}};
}

}  // namespace

TEST_CASE("a multicast load waits for matmuls of the other block", "[emulator]") {
  const std::vector<float> x = numbers(3 * 64 * 32);
  std::vector<float> y(2 * 3 * 64 * 64);
  const auto run_with = [&](const Prepared& kernel, std::uint64_t seed) {
    return kernel.run({.seed = seed, .persistent_blocks = 1, .cluster = 2}, {1});
  };
  const Prepared right = prepare(squares({}), {matrix(x, 32), out(y)});
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    CHECK(run_with(right, seed).text() == "");
    int wrong = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::size_t round = i / 4096 % 3, row = i / 64 % 64, column = i % 64;
      float sum = 0;
      for (std::size_t k = 0; k < 8; ++k) sum += x[(round * 64 + row) * 32 + k] * x[(round * 64 + column) * 32 + k];
      wrong += y[i] != sum;
    }
    CHECK(wrong == 0);
  }
  const std::string_view wait = "    wgmma_wait<0>();\n",
                         release = "    if (lane_index() == 0) barrier_arrive_cluster(empty);\n";
  const auto check_race = [&](const std::vector<Change>& changes, const std::vector<std::string_view>& parts) {
    const Prepared kernel = prepare(squares(changes), {matrix(x, 32), out(y)});
    check_found([&](std::uint64_t seed) { return run_with(kernel, seed); }, {Fault::Kind::race, parts, false});
  };
  const std::string late = std::string(release) + std::string(wait);
  check_race(
      {{wait, ""}, {release, late}},
      {" of shared memory (4096 bytes) at author.cpp:10, which wgmma of threads 0 to 127 read at author.cpp:17 "});
  // Only the other block is told before the matmuls are complete.
  check_race({{"barrier_init(empty, 8)", "barrier_init(empty, 6)"},
              {wait, "    if (thread == 0) barrier_arrive_cluster(empty);\n    wgmma_wait<0>();\n"},
              {release, "    if (lane_index() == 0) barrier_arrive(empty);\n"}},
             {" of shared memory of block ",
              " (4096 bytes) at author.cpp:10, which wgmma of threads 0 to 127 of block ", " read at author.cpp:17 "});
}

TEST_CASE("clusters of a kernel with multicast loads take grid tiles in pairs", "[emulator]") {
  KernelSource source;
  source.name = "raw_cuda";
  source.text = R"(extern "C" __global__ void __launch_bounds__(32) raw_cuda(int* y, u32 pairs) {
  for (u32 pair = cluster_index(); pair < pairs; pair += clusters())
    if (thread_index() == 0) y[pair * 2 + cluster_rank()] = static_cast<int>(clusters() * 100 + pairs * 10 + cluster_size());
}
)";
  source.threads = 32;
  source.multicast = 2;
  source.parameters = {{.argument = 0}, {KernelParameter::Kind::blocks}};
  std::vector<std::int32_t> y(12);
  const Tensor result = out(y);
  Graph graph;
  graph.parameters.push_back(result.parameter);
  const auto run_grid = [&](bool persistent, const std::vector<std::int64_t>& grid) {
    source.persistent = persistent;
    std::ranges::fill(y, 0);
    CHECK(Emulator::compile(std::span(&source, 1)).run(0, graph, std::vector{result.argument}, grid, {}).text() == "");
    return y;
  };
  CHECK(run_grid(true, {3, 2}) == std::vector<std::int32_t>{342, 342, 342, 342, 342, 342, 342, 342, 0, 0, 0, 0});
  CHECK(run_grid(false, {3, 2}) == std::vector<std::int32_t>{442, 442, 442, 442, 442, 442, 442, 442, 0, 0, 0, 0});
  CHECK(run_grid(true, {1}) == std::vector<std::int32_t>{112, 112, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
}

}  // namespace test_emulator_multicast
