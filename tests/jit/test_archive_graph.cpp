// Graphs as bytes: what is read back is what was written, and damaged bytes are refused.
#include "jit/tune/archive.hpp"
#include "jit/tune/archive_graph.hpp"
#include "support/catch.hpp"
#include "support/patterns.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"

namespace test_archive_graph {

using namespace tessera::internal;

namespace {

Graph every_part() {
  const auto square = cuda_op("square", "a * a", [](float a) { return a * a; });
  return kernel(
             "every_part",
             [=](In<f32, 2> x, Optional<In<f32, 1>> bias, List<In<bf16, 2>, 3> more, InOut<i32, 1> count, Out<f32, 2> y,
                 Scalar<i32> n) {
    hints({.warps = 4, .occupancy = 2, .arch = "sm_90"});
    require(x.extent(1) == 32, "32 columns");
    Index m = blocks(cdiv(x.extent(0), 8));
    Var sum = zeros<f32>({8, 32});
    for (Index i : range(n).unroll(2)) sum = sum + square(load(x, {m, 0}, {8, 32})) * cast<f32>(i);
    Tile first = cast<f32>(load(more[0], {m, 0}, {8, 32}));
    Tile total = cumsum(Tile(sum + first + load(bias, {0}, {32})), 1);
    atomic_add(count, {0}, full<i32>({1}, 1));
    store(y, {m, 0}, total);
             })
      .graph();
}

}  // namespace

TEST_CASE("A graph is read back as it was written", "[jit]") {
  const Graph graph = every_part();
  const Graph again = unarchive(archive(graph));
  verify(again, "unarchive");
  CHECK(to_string(again, true) == to_string(graph, true));
  CHECK(again.parameters == graph.parameters);
  CHECK(again.hints == graph.hints);
  CHECK(has_host_functions(again));
  CHECK(std::ranges::any_of(again.regions, [](const Region& region) { return region.unroll == 2; }));
  CHECK(archive(again) == archive(graph));
  REQUIRE(again.nodes.size() == graph.nodes.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    CHECK(again.nodes[i].location.order == graph.nodes[i].location.order);
    CHECK(again.nodes[i].uniform == graph.nodes[i].uniform);
  }
}

TEST_CASE("A raw CUDA kernel is read back with its text, and without its function of the host", "[jit]") {
  const auto axpy =
      cuda_kernel("axpy", "extern \"C\" __global__ void axpy(const float* x, float* y, float a, int n) {}",
                  [](In<f32, 1> x, InOut<f32, 1>, Scalar<f32>) {
    return CudaLaunch{.blocks = {cdiv(x.extent(0), 256)}, .threads = {256}, .numbers = {x.extent(0)}};
      });
  const Graph again = unarchive(archive(axpy.graph()));
  REQUIRE(again.cuda);
  CHECK(again.cuda->source == axpy.graph().cuda->source);
  CHECK(again.cuda->location.line == axpy.graph().cuda->location.line);
  CHECK_FALSE(has_host_functions(again));
  CHECK(to_string(again) == to_string(axpy.graph()));
}

TEST_CASE("Damaged bytes of a graph are refused", "[jit]") {
  const std::string bytes = archive(every_part());
  for (std::size_t size = 0; size < bytes.size(); size += 7)
    CHECK(says(error_of([&] { unarchive(std::string_view(bytes).substr(0, size)); }), {"archive", "ends too early"}));
  CHECK(says(error_of([&] { unarchive(bytes + "x"); }), {"more bytes"}));
  std::string long_name = bytes;
  long_name[7] = '\x7f';  // of the length of the first field
  CHECK(says(error_of([&] { unarchive(long_name); }), {"ends too early"}));
}

}  // namespace test_archive_graph
