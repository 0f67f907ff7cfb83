// Clusters in the emulator: their barriers, and reads of another block's shared memory.
#include <optional>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/raw_cuda.hpp"

namespace test_emulator_clusters {

namespace {

using tessera::internal::Fault;
using tessera::internal::Report;

/// A kernel with clusters of three blocks, of 64 threads each.
Report run_cluster(const std::string& body, std::vector<float>& y, std::uint64_t seed = 1) {
  tessera::internal::HandWritten kernel{.parameters = "float* y",
                              .body =
                                  "float* const mine = reinterpret_cast<float*>(shared_memory());\n"
                                  "const int thread = thread_index();\n" +
                                  body,
                              .threads = 64,
                              .shared_bytes = 1024,
                              .persistent = true};
  kernel.clusters = true;
  return run(kernel, {tessera::internal::out(y)}, {.seed = seed, .blocks_in_flight = 2, .persistent_blocks = 2, .cluster = 3},
             {2});
}

}  // namespace

TEST_CASE("blocks of a cluster see each other's writes before the cluster barrier", "[emulator]") {
  const std::string write = "if (thread == 0) for (int i = 0; i < 4; ++i) mine[i] = cluster_rank() * 10 + i;\n";
  const std::string read =
      "float x[4];\nload_from_block(x, mine, (cluster_rank() + 1) % cluster_size());\n"
      "if (thread == 0) for (int i = 0; i < 4; ++i) y[block_index() * 4 + i] = x[i];\n";
  const std::string wait = "cluster_barrier();\n";
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    std::vector<float> y(24);
    CHECK(run_cluster(write + wait + read + wait, y, seed).text() == "");
    for (std::size_t block = 0; block < 6; ++block)
      for (std::size_t i = 0; i < 4; ++i) CHECK(y[block * 4 + i] == static_cast<float>((block % 3 + 1) % 3 * 10 + i));
    // The index and number of clusters.
    CHECK(run_cluster("y[block_index()] = cluster_index() * 100 + clusters() * 10 + cluster_size();", y, seed).text() !=
          "");  // many threads write one address
    CHECK(run_cluster("if (thread == 0) y[block_index()] = cluster_index() * 100 + clusters() * 10 + cluster_size();",
                      y, seed)
              .text() == "");
    CHECK(std::vector<float>(y.begin(), y.begin() + 6) == std::vector<float>{23, 23, 23, 123, 123, 123});
  }
  const auto kind = [&](const std::string& body, std::uint64_t seed = 1) {
    std::vector<float> y(24);
    const Report report = run_cluster(body, y, seed);
    INFO(report.text());
    return report.clean() ? std::optional<Fault::Kind>() : report.faults[0].kind;
  };
  const auto seen = [&](const std::string& body, Fault::Kind expected) {
    int count = 0;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) count += kind(body, seed) == expected;
    return count;
  };
  CHECK(seen(write + read + wait, Fault::Kind::race) + seen(write + read + wait, Fault::Kind::uninitialized) == 8);
  CHECK(seen(write + wait + read, Fault::Kind::misuse) > 0);  // a block ends before others read its memory
  CHECK(seen(write + wait + read + write + wait, Fault::Kind::race) > 0);
  CHECK(kind(write + "barrier();\n" + read + wait) != std::nullopt);
  CHECK(kind(wait + "float x[4];\nload_from_block(x, mine, 3);\n" + wait) == Fault::Kind::misuse);
  CHECK(kind(write + wait + "float x[4];\nload_from_block(x, mine + 256, 0);\n" + wait) == Fault::Kind::misuse);
  CHECK(kind(write + wait + "float x[4];\nload_from_block(x, mine + 1, 0);\n" + wait) == Fault::Kind::misaligned);
  // A cluster barrier waits for threads that wait elsewhere, but not for threads that have ended.
  CHECK(kind("if (thread >= 32) return;\ncluster_barrier();") == std::nullopt);
  CHECK(kind("if (cluster_rank() == 0) return;\ncluster_barrier();") == std::nullopt);
  CHECK(kind("if (thread < 32) barrier();\nelse cluster_barrier();\n") == Fault::Kind::deadlock);
}

namespace {

/// A kernel with four blocks, of 64 threads each, which set flags and have 64 floats of workspace each.
Report run_flags(const std::string& body, std::vector<float>& y, std::uint64_t seed, int in_flight) {
  using Kind = tessera::internal::KernelParameter::Kind;
  tessera::internal::HandWritten kernel{.parameters = "float* y, char* all, u32* flags, int lockstep_rows",
                                        .body =
                                            "float* const mine = reinterpret_cast<float*>(all + block_index() * 256);\n"
                                            "const int thread = thread_index();\nconst u32 block = block_index();\n" +
                                            body,
                                        .threads = 64,
                                        .workspace_bytes = 256,
                                        .persistent = true,
                                        .more = {{Kind::workspace}, {Kind::flags}, {Kind::lockstep_rows}}};
  kernel.shares_grid = true;
  return run(kernel, {tessera::internal::out(y)},
             {.seed = seed, .blocks_in_flight = in_flight, .persistent_blocks = 5, .lockstep_rows = 2}, {3});
}

}  // namespace

TEST_CASE("blocks that share tiles see each other's writes before a flag is set", "[emulator]") {
  const std::string put = "if (block < 3) mine[thread] = block * 100 + thread;\n", meet = "barrier();\n",
                    tell = "if (block < 3 && thread == 0) set_flag(flags + block);\n",
                    await =
                        "if (block == 3) for (int other = 0; other < 3; ++other) {\n"
                        "  if (thread == 0) wait_flag(flags + other);\n",
                    add =
                        "  float x[4];\n  load_partial(x, of_block(mine, 256, other) + thread / 4 * 4);\n"
                        "  y[other * 64 + thread] = x[thread % 4];\n}\n";
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    std::vector<float> y(192);
    for (const int in_flight : {1, 2, 4}) {
      CHECK(run_flags(put + meet + tell + await + meet + add, y, seed, in_flight).text() == "");
      for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == static_cast<float>(i / 64 * 100 + i % 64));
    }
  }
  const auto seen = [&](const std::string& body, Fault::Kind expected, int in_flight = 2) {
    int count = 0;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      std::vector<float> y(192);
      const Report report = run_flags(body, y, seed, in_flight);
      count += !report.clean() && report.faults[0].kind == expected;
    }
    return count;
  };
  // A thread releases only what it has written itself or knows through a barrier; without a flag nothing is released.
  CHECK(seen(put + tell + await + meet + add, Fault::Kind::race) > 0);
  CHECK(seen(put + meet + tell + await + add, Fault::Kind::race) > 0);
  CHECK(seen(put + meet + tell + "if (block == 3) for (int other = 0; other < 3; ++other) {\n" + add,
             Fault::Kind::race) > 0);
  CHECK(seen(tell + put + meet + await + meet + add, Fault::Kind::race) > 0);
  // Flags that are never set, that are set already, that are never cleared, and that do not exist.
  CHECK(seen(put + meet + await + meet + add, Fault::Kind::deadlock) == 8);
  CHECK(seen(put + meet + tell + tell, Fault::Kind::misuse) == 8);
  CHECK(seen(put + meet + tell, Fault::Kind::misuse) == 8);
  CHECK(seen("if (thread == 0) set_flag(flags + 4);\n", Fault::Kind::misuse) == 8);
  // A block that waits for one that is dispatched later may keep it from running.
  const std::string waits_for_later =
      "if (block == 0 && thread == 0) wait_flag(flags + 3);\nif (block == 3 && thread == 0) set_flag(flags + 3);\n";
  CHECK(seen(waits_for_later, Fault::Kind::deadlock, 1) == 8);
  CHECK(seen(waits_for_later, Fault::Kind::deadlock, 2) == 0);
}

}  // namespace test_emulator_clusters
