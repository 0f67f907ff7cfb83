// Clusters of blocks in the emulator: their barriers, and the memory of each other that they read.
#include <optional>
#include <string>
#include <vector>

#include "catch.hpp"
#include "hand_written.hpp"

namespace {

using tessera::Fault;
using tessera::Report;

/// A kernel of clusters of three blocks, of 64 threads each.
Report run_cluster(const std::string& body, std::vector<float>& y, std::uint64_t seed = 1) {
  tessera::HandWritten kernel{.parameters = "float* y",
                              .body =
                                  "float* const mine = reinterpret_cast<float*>(shared_memory());\n"
                                  "const int thread = thread_index();\n" +
                                  body,
                              .threads = 64,
                              .shared_bytes = 1024,
                              .persistent = true};
  kernel.clusters = true;
  return run(kernel, {tessera::out(y)}, {.seed = seed, .blocks_in_flight = 2, .persistent_blocks = 2, .cluster = 3},
             {2});
}

}  // namespace

TEST_CASE("blocks of a cluster see what the others wrote ahead of its barrier", "[emulator]") {
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
    // Numbers of clusters, and of all of them.
    CHECK(run_cluster("y[block_index()] = cluster_index() * 100 + clusters() * 10 + cluster_size();", y, seed).text() !=
          "");  // many threads write one place
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
  CHECK(seen(write + read + wait, Fault::Kind::race) + seen(write + read + wait, Fault::Kind::uninitialised) == 8);
  CHECK(seen(write + wait + read, Fault::Kind::misuse) > 0);  // a block ends that others read
  CHECK(seen(write + wait + read + write + wait, Fault::Kind::race) > 0);
  CHECK(kind(write + "barrier();\n" + read + wait) != std::nullopt);
  CHECK(kind(wait + "float x[4];\nload_from_block(x, mine, 3);\n" + wait) == Fault::Kind::misuse);
  CHECK(kind(write + wait + "float x[4];\nload_from_block(x, mine + 256, 0);\n" + wait) == Fault::Kind::misuse);
  CHECK(kind(write + wait + "float x[4];\nload_from_block(x, mine + 1, 0);\n" + wait) == Fault::Kind::misaligned);
  // Threads that have ended are not waited for; those that wait elsewhere are.
  CHECK(kind("if (thread >= 32) return;\ncluster_barrier();") == std::nullopt);
  CHECK(kind("if (cluster_rank() == 0) return;\ncluster_barrier();") == std::nullopt);
  CHECK(kind("if (thread < 32) barrier();\nelse cluster_barrier();\n") == Fault::Kind::deadlock);
}
