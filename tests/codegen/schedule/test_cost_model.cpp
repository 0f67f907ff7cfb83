// The model of time of wgmma matmuls: what follows from its form, whatever its constants are. scripts/fit says how well
// it predicts.
#include "codegen/schedule/cost_model.hpp"

#include <cmath>

#include "support/catch.hpp"

namespace test_cost_model {

using namespace tessera::internal;

namespace {

MatmulWork work_of(const MmaExtents& tile, std::int64_t rows, std::int64_t columns, std::int64_t k_iterations) {
  return {.tile = tile, .rows = rows, .tiles = rows * columns, .k_iterations = k_iterations};
}

}  // namespace

TEST_CASE("the cost model takes its constants from the device's machine", "[plan]") {
  CHECK(&MachineModel::of("cuda:0 (NVIDIA H200, sm_90)") == &MachineModel::h200());
  CHECK(&MachineModel::of("cuda:1 (NVIDIA H100 80GB HBM3, sm_90)") == &MachineModel::h100());
  CHECK(&MachineModel::of("cuda:0 (NVIDIA B200, sm_100)") == &MachineModel::h200());
  CHECK(MachineModel::h100().memory_bandwidth < MachineModel::h200().memory_bandwidth);
  CHECK(MachineModel::h100().macs == MachineModel::h200().macs);
  const MatmulWork bound_by_memory{.tile = {128, 128, 64}, .rows = 1, .tiles = 64, .k_iterations = 4, .bytes = 1e9};
  const CostModel fast(MachineModel::h200(), 132), slow(MachineModel::h100(), 132);
  CHECK(slow.cycles(bound_by_memory, {}) > 1.2 * fast.cycles(bound_by_memory, {}));
}

TEST_CASE("the cost model knows each listed tile, and others by the largest that they contain", "[plan]") {
  const MachineModel& machine = MachineModel::h200();
  for (const MachineModel::Tile& tile : machine.tiles) CHECK(machine.rate(tile.extents) == tile.rate);
  CHECK(machine.rate({128, 224, 64}) == machine.rate({128, 192, 64}));
  CHECK(machine.rate({256, 128, 32}) == machine.rate({256, 128, 64}));
  CHECK(machine.rate({16, 16, 16}) == machine.tiles.back().rate);
}

TEST_CASE("the cost model counts waves, k-iterations, epilogues and bytes", "[plan]") {
  const CostModel model(MachineModel::h200(), 132);
  const MmaExtents cooperative{128, 256, 64}, ping_pong{128, 128, 64};
  for (const MmaExtents& tile : {cooperative, ping_pong}) {
    const double one = model.cycles(work_of(tile, 1, 132, 32), {});
    CHECK(model.cycles(work_of(tile, 1, 100, 32), {}) == one);
    CHECK(model.cycles(work_of(tile, 1, 133, 32), {}) > 1.2 * one);
    CHECK(model.cycles(work_of(tile, 1, 132, 64), {}) > 1.7 * one);
    MatmulWork work = work_of(tile, 1, 132, 32);
    work.epilogue = Epilogue::activated;
    const double activated = model.cycles(work, {});
    CHECK(activated > one);
    work.epilogue = Epilogue::residual;
    CHECK(model.cycles(work, {}) > activated);
    work = work_of(tile, 1, 132, 32);
    work.bytes = 1e9;
    CHECK(model.cycles(work, {}) > 5 * one);
  }
  // A flat tile waits for bytes: fewer, if rows of the left operand do not exist; more, if rows begin within sectors.
  const auto flat = [&](std::int64_t left_rows, bool left_aligned, bool right_aligned) {
    MatmulWork work = work_of({64, 128, 64}, 1, 132, 32);
    work.left_rows = left_rows;
    work.left_aligned = left_aligned;
    work.right_alignment = right_aligned ? 128 : 16;
    return model.cycles(work, {});
  };
  CHECK(flat(64, true, true) < flat(64, false, true));
  CHECK(flat(64, false, true) < flat(64, true, false));  // the right operand is the larger one
  CHECK(flat(64, true, false) < flat(64, false, false));
  CHECK(flat(16, true, true) < flat(64, true, true));
  CHECK(flat(500, true, true) == flat(64, true, true));
}

TEST_CASE("the cost model takes the fastest of the ways that the policy allows", "[plan]") {
  const CostModel model(MachineModel::h200(), 132);
  for (const MachineModel::Tile& tile : MachineModel::h200().tiles)
    for (const std::int64_t columns : {1, 12, 40, 80, 140, 300, 1000})
      for (const std::int64_t k_iterations : {1, 7, 8, 30, 200}) {
        const MatmulWork work = work_of(tile.extents, 2, columns, k_iterations);
        const SplitKLaunch any = model.split_k(work);
        const double least = model.cycles(work, any);
        if (!model.may_split(work.tiles)) {
          CHECK(any.split_k == SplitK::none);
          continue;
        }
        for (const SplitKPolicy policy : {SplitKPolicy::none, SplitKPolicy::cluster, SplitKPolicy::stream_k}) {
          const SplitKLaunch one = model.split_k(work, policy);
          CHECK(least * MachineModel::h200().stream_k_gain <= model.cycles(work, one));
          CHECK(one.blocks >= 1);
          CHECK(one.blocks <= 132);
          if (one.split_k == SplitK::stream_k) CHECK(one.blocks % one.lockstep_rows == 0);
          if (one.split_k == SplitK::cluster) CHECK(one.blocks * work.tiles <= 132);
        }
      }
  CHECK(model.split_k(work_of({64, 64, 64}, 1, 12, 48)).split_k == SplitK::cluster);
  CHECK(model.split_k(work_of({128, 256, 64}, 4, 51, 122)).split_k == SplitK::stream_k);
  CHECK(model.split_k(work_of({128, 256, 64}, 64, 32, 128)).split_k == SplitK::none);
}

TEST_CASE("the cost model multicasts rows that begin within a sector, where loads take longest", "[plan]") {
  const CostModel model(MachineModel::h200(), 132);
  const auto multicasts = [&](MatmulWork work, bool aligned, MulticastPolicy policy = MulticastPolicy::automatic) {
    work.right_alignment = aligned ? 128 : 16;
    return model.split_k(work, SplitKPolicy::automatic, policy).multicast;
  };
  const MatmulWork large = work_of({128, 192, 64}, 64, 40, 64);
  CHECK(multicasts(large, false));
  CHECK_FALSE(multicasts(large, true));
  CHECK_FALSE(multicasts(large, false, MulticastPolicy::never));
  CHECK(multicasts(large, true, MulticastPolicy::always));
  for (const MulticastPolicy policy : {MulticastPolicy::automatic, MulticastPolicy::always})
    CHECK_FALSE(multicasts(work_of({128, 192, 64}, 1, 2000, 64), false, policy));  // no second row of tiles
  MatmulWork copied = large;
  copied.right_alignment = 8;  // by threads
  CHECK_FALSE(model.split_k(copied).multicast);
  copied.right_alignment = 16;
  CHECK(model.split_k(copied).multicast);
  CHECK_FALSE(CostModel(MachineModel::h200(), 1).split_k(copied).multicast);
  CHECK_FALSE(multicasts(work_of({64, 64, 64}, 4, 30, 1), false));       // it takes less time than a cluster's launch
  // An odd row of tiles leaves a CTA without one.
  const auto cycles = [&](std::int64_t rows) {
    return model.cycles(work_of({128, 192, 64}, rows, 132, 64), {.multicast = true});
  };
  CHECK(cycles(3) == cycles(4));
  CHECK(cycles(4) > 1.5 * cycles(2));
}

TEST_CASE("the cost model counts the threads of an epilogue with split-K", "[plan]") {
  const CostModel model(MachineModel::h200(), 132);
  // One warp group has all of a tile of [128,64] in a cluster, and two have it with stream-K.
  const auto residual = [&](SplitK split_k, int blocks, const MmaExtents& tile) {
    MatmulWork work = work_of(tile, 1, 12, 64);
    const double plain = model.cycles(work, {split_k, blocks, 1});
    work.epilogue = Epilogue::residual;
    return model.cycles(work, {split_k, blocks, 1}) - plain;
  };
  const double each = MachineModel::h200().residual_cooperative - MachineModel::h200().plain_epilogue;
  CHECK(std::abs(residual(SplitK::cluster, 4, {128, 64, 64}) - each * 64) < 1e-6);
  CHECK(std::abs(residual(SplitK::cluster, 4, {128, 128, 64}) - each * 64) < 1e-6);
  CHECK(std::abs(residual(SplitK::stream_k, 12, {128, 64, 64}) - each * 32) < 1e-6);
  CHECK(std::abs(residual(SplitK::stream_k, 12, {64, 64, 64}) - each * 32) < 1e-6);
  for (const MmaExtents& tile : {MmaExtents{64, 256, 64}, MmaExtents{128, 192, 64}})
    CHECK(model.split_k(work_of(tile, 1, 12, 64), SplitKPolicy::cluster).split_k == SplitK::none);
}

TEST_CASE("two warp groups share tiles whose accumulators one cannot hold", "[plan]") {
  CHECK_FALSE(is_cooperative(128, 192));
  CHECK(is_cooperative(128, 256));
  CHECK(is_cooperative(192, 64));
  CHECK_FALSE(is_cooperative(128, 96, 2));
  CHECK(is_cooperative(128, 128, 2));
  CHECK(is_cooperative(128, 192, 1, Epilogue::activated));
  CHECK_FALSE(is_cooperative(128, 128, 1, Epilogue::residual));
}

}  // namespace test_cost_model
