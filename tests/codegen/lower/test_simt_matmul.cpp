// SIMT matmuls of f32: which thread holds which accumulators, and how operands are read.
#include <fmt/format.h>

#include <set>

#include "codegen/generate.hpp"
#include "codegen/make_plan.hpp"
#include "codegen/passes.hpp"
#include "model/kernels.hpp"
#include "support/catch.hpp"
#include "support/compiled_device.hpp"
#include "support/plan_steps.hpp"
#include "support/variants.hpp"
#include "tessera/tessera.hpp"

namespace test_simt_matmul {

using namespace tessera::internal;
using namespace tessera::internal::codegen;

namespace {

/// y = x w, of f32; which of them is stored transposed.
struct Orders {
  bool km = false, nk = false;
};
constexpr Orders all_orders[] = {{false, false}, {false, true}, {true, false}, {true, true}};

Graph matmul_graph(const MatmulTiles& tiles, const Orders& orders = {}) {
  const auto traced = kernel("product", [=](In<f32, 2> x, In<f32, 2> w, Out<f32, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    const auto left = orders.km ? x.permute({1, 0}) : x.permute({0, 1});
    const auto right = orders.nk ? w.permute({1, 0}) : w.permute({0, 1});
    store(y, {m, n}, kernels::matmul<f32>(left, right, m, n, tiles));
  });
  return run_passes(traced.graph());
}

Plan matmul_plan(const MatmulTiles& tiles, const Orders& orders = {}) {
  const Graph graph = matmul_graph(tiles, orders);
  return make_plan(graph, dense_variant(graph), Arch::sm_90a, {.verify = true});
}

int coordinate(const Layout& layout, int axis, int index, Place place) {
  int sum = 0;
  for (const auto& [factor, scale] : layout.thread_digits(axis))
    if (factor.place == place) sum += index / factor.unit % factor.size * scale;
  return sum;
}

/// Where lanes read a row or column of an operand, in 16-byte chunks from the start of the buffer: for a warp's first
/// position, in its first k-step.
std::vector<int> chunks_of_lanes(const Plan& plan, const Mma& mma, int axis, int warp) {
  const MatmulOperand& operand = axis ? mma.matmul.b : mma.matmul.a;
  const int chunks = plan.buffers[operand.buffer].chunks(), period = std::min(chunks & -chunks, 8);
  std::vector<int> result;
  for (int lane = 0; lane < 32; ++lane) {
    const int at =
        coordinate(mma.layout, axis, warp, Place::warp) + coordinate(mma.layout, axis, lane, Place::lane);
    const int row = operand.k_major ? at : 0, chunk = operand.k_major ? 0 : at / 4;
    result.push_back(row * chunks + (chunk ^ (row / (8 / period) % period)));
  }
  return result;
}

}  // namespace

TEST_CASE("a thread has 8 x 16 accumulators in a large SIMT matmul", "[plan]") {
  Plan plan = matmul_plan({128, 128, 16});
  CHECK(plan.threads() == 128);
  CHECK(to_string(the<Mma>(plan).layout) ==
        "reg 2/64, warp 2/2, lane 4/8, lane 2/2, reg 4/16 | reg 4/4, warp 2, lane 2/4, lane 2, reg 4");
  Plan wide = matmul_plan({128, 256, 16});
  CHECK(wide.threads() == 256);
  CHECK(the<Mma>(wide).layout.registers() == 128);
}

TEST_CASE("operands of large SIMT matmuls that are contiguous along k are transposed on the way to shared memory",
          "[plan]") {
  for (const Orders& orders : all_orders) {
    Plan many = matmul_plan({128, 128, 16}, orders), few = matmul_plan({64, 64, 16}, orders),
         odd = matmul_plan({128, 128, 24}, orders);  // 128 threads do not divide its rows evenly
    const Matmul &transposed = the<Mma>(many).matmul, &in_stored_order = the<Mma>(few).matmul,
                  &uneven = the<Mma>(odd).matmul;
    CHECK((!transposed.a.k_major && !transposed.b.k_major));
    CHECK((in_stored_order.a.k_major == !orders.km && in_stored_order.b.k_major == orders.nk));
    CHECK((uneven.a.k_major == !orders.km && uneven.b.k_major == orders.nk));
    for (const StepPlace& place : places_of<Fetch>(many))
      for (const Fetch::Tile& tile : place.step().action.get<Fetch>().tiles) {
        const bool lies_along_k = tile.buffer == transposed.a.buffer ? !orders.km : orders.nk;
        CHECK(tile.access.fast + (lies_along_k ? 2 : 1) == static_cast<int>(tile.access.axes.size()));
        CHECK(tile.access.vector == (lies_along_k ? 1 : 4));
        CHECK(tile.copy == Fetch::Copy::async);
      }
  }
}

TEST_CASE("rows across k have an odd number of chunks, none of which is permuted", "[plan]") {
  for (const Orders& orders : all_orders)
    for (const MatmulTiles& tiles : {MatmulTiles{128, 128, 16}, {64, 64, 16}, {20, 72, 12}}) {
      Plan plan = matmul_plan(tiles, orders);
      const Matmul& matmul = the<Mma>(plan).matmul;
      for (const MatmulOperand* operand : {&matmul.a, &matmul.b}) {
        const Buffer& buffer = plan.buffers[operand->buffer];
        CHECK((buffer.permuted() == 1 || operand->k_major));
        CHECK(buffer.chunks() - buffer.columns / 4 <= 1);
        if (buffer.permuted() == 1)
          CHECK(buffer.offset_of(1, 4) - buffer.offset_of(0, 0) == (buffer.chunks() + 1) * 16);
      }
    }
}

TEST_CASE("SIMT operands are read without bank conflicts, half a warp at a time", "[plan]") {
  for (const Orders& orders : all_orders)
    for (const MatmulTiles& tiles :
         {MatmulTiles{128, 128, 16}, {128, 256, 16}, {256, 128, 32}, {64, 64, 16}, {64, 128, 8}}) {
      Plan plan = matmul_plan(tiles, orders);
      const Mma& mma = the<Mma>(plan);
      for (int warp = 0; warp < plan.threads() / 32; ++warp)
        for (const int axis : {0, 1}) {
          INFO(fmt::format("{}x{}x{}, {}{}, axis {}, warp {}", tiles.m, tiles.n, tiles.k, orders.km ? "km" : "mk",
                           orders.nk ? "nk" : "kn", axis, warp));
          const std::vector<int> at = chunks_of_lanes(plan, mma, axis, warp);
          bool as_neighbors = true, as_next = true;
          for (std::size_t lane = 0; lane < 32; ++lane) {
            as_neighbors &= at[lane] == at[lane ^ 1];
            as_next &= at[lane] == at[lane ^ 2];
          }
          CHECK((as_neighbors || as_next));
          for (const std::size_t half : {0, 16}) {
            const std::set<int> read(at.begin() + half, at.begin() + half + 16);
            std::set<int> banks;
            for (const int chunk : read) banks.insert(chunk % 8);
            CHECK(banks.size() == read.size());
          }
        }
    }
}

TEST_CASE("SIMT operands are read in 16-byte vectors with constant offsets", "[generate]") {
  for (const Orders& orders : all_orders) {
    const Graph graph = matmul_graph({128, 128, 16}, orders);
    const KernelSource source = generate(graph, dense_variant(graph), Arch::sm_90a);
    CHECK(source.text.find("load_vector<4>(a") != std::string::npos);
    CHECK(source.text.find("load_vector<4>(b") != std::string::npos);
    CHECK(source.text.find(" read_tile<") == std::string::npos);
  }
}

TEST_CASE("SIMT matmuls spill nothing", "[generate]") {
  for (const char* name : {"sm_80", "sm_90a", "sm_100", "sm_120"}) {
    const Arch arch = Arch::parse(name);
    std::vector<KernelSource> sources;
    for (const Orders& orders : all_orders)
      for (const auto& variant : {dense_variant, ragged_variant}) {
        const Graph graph = matmul_graph({128, 128, 16}, orders);
        sources.push_back(generate(graph, variant(graph), arch));
      }
    check_compiled(sources, arch);
  }
}

}  // namespace test_simt_matmul
