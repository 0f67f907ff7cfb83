// The text of plans that are built by hand.
#include "codegen/emit/emit.hpp"
#include "codegen/plan/plan.hpp"
#include "support/catch.hpp"

namespace test_emission {

using namespace tessera::internal;
using namespace tessera::internal::codegen;

namespace {

// A plan over one-axis i32 tiles, phase by phase, each over a grid of two axes.
struct Handmade {
  Plan plan;
  Handmade() {
    plan.kernel = "k_handmade";
    plan.target = Target::of(Arch::sm_90a);
  }

  ValueId value(const char* stem, const Layout& layout, StorageClass home, Known known = {}) {
    Storage storage;
    storage.label.stem = stem;
    storage.label.number = 1;
    storage.type = ElementType::i32;
    storage.storage_class = home;
    storage.registers = layout.registers();
    storage.offset = 64;
    storage.known = known;
    return plan.values.add(
        {plan.storages.add(std::move(storage)), layout.rank() == 0 ? Shape{} : Shape{layout.cover(0)}, layout});
  }

  // out = in + the element's index.
  Step add_coordinate(ValueId out, ValueId in) const {
    Operand scalar, coordinate;
    scalar.kind = Operand::Kind::value;
    scalar.value = in;
    coordinate.kind = Operand::Kind::coordinate;
    Compute compute;
    compute.out = out;
    compute.sweep.shape = plan.values[out].shape;
    compute.sweep.layout = plan.values[out].layout;
    compute.sweep.expression.terms.push_back({Op::add, ElementType::i32, ElementType::i32, {scalar, coordinate}});
    return {compute};
  }

  Phase& persistent_phase() {
    const int number = static_cast<int>(plan.phases.size());
    plan.parameters.push_back({KernelParameter::Kind::blocks, number, 0});
    Phase phase;
    phase.schedule.kind = Schedule::Kind::persistent;
    phase.first_axis = 2 * number;
    phase.axes = 2;
    plan.phases.push_back(phase);
    return plan.phases.back();
  }
};

// 32 * warps * registers elements.
Layout line(int warps, int registers) {
  Layout layout(1);
  layout.add(0, {Place::warp, warps, 1});
  layout.add(0, {Place::lane, 32, 1});
  layout.add(0, {Place::reg, registers, 1});
  return layout;
}

}  // namespace

TEST_CASE("each role of a phase has its own declarations, numbered from its first warp", "[generate]") {
  Handmade made;
  const ValueId block = made.value("", Layout(0), StorageClass::variable, BlockIndex{1});
  const ValueId sum = made.value("sum", line(4, 1), StorageClass::variable),
                late = made.value("late", line(2, 2), StorageClass::shared);
  Phase& phase = made.persistent_phase();
  phase.roles.push_back({"consumer", 0, 4, {made.add_coordinate(sum, block)}});
  phase.roles.push_back({"producer", 4, 2, {made.add_coordinate(late, block)}});
  CHECK(emit(made.plan) == R"(extern "C" __global__ void __launch_bounds__(192, 1) k_handmade(
    u32 blocks) {
  char* const shared = shared_memory();
  // Shared memory: offsets, and bytes of a stage.
  enum : int {
    late_1_offset = 64,
  };
  const int warp_of_block = warp_index();
  if (warp_of_block < 4) {
    // role consumer: warps 0 to 3
    const int lane = lane_index();
    const int warp = warp_index();
    const int t0 = warp * 32 + lane;
    for (u32 block = block_index(); block < blocks; block += grid_size()) {
      const int block1 = static_cast<int>(block % grid1);
      const int sum_1 = wrap_add(block1, t0);
    }
  } else if (warp_of_block >= 4 && warp_of_block < 6) {
    // role producer: warps 4 to 5
    const int thread = thread_index() - 128;
    const int lane = lane_index();
    const int warp = warp_index() - 4;
    const int t0 = warp * 64 + lane * 2;
    int* const late_1 = reinterpret_cast<int*>(shared + late_1_offset) + thread;
    for (u32 block = block_index(); block < blocks; block += grid_size()) {
      const int block1 = static_cast<int>(block % grid1);
      #pragma unroll
      for (int r = 0; r < 2; ++r) late_1[r * 64] = wrap_add(block1, t0 + r);
    }
  }
}
)");
}

TEST_CASE("phases follow one another, each with its own grid and warps", "[generate]") {
  Handmade made;
  for (int axis : {0, 2}) {
    const ValueId block = made.value("", Layout(0), StorageClass::variable, BlockIndex{axis});
    const ValueId sum = made.value("sum", line(1, 1), StorageClass::variable);
    Phase& phase = made.persistent_phase();
    if (axis == 2) phase.schedule.raster_group = 8;
    phase.roles.push_back({"all", 0, axis == 2 ? 1 : 2, {made.add_coordinate(sum, block)}});
  }
  CHECK(emit(made.plan) == R"(extern "C" __global__ void __launch_bounds__(64, 1) k_handmade(
    u32 blocks0, u32 blocks1) {
  {
    const int lane = lane_index();
    const int t0 = lane;
    for (u32 block = block_index(); block < blocks0; block += grid_size()) {
      const int block0 = static_cast<int>(block / grid1);
      const int sum_1 = wrap_add(block0, t0);
    }
  }
  {
    const int warp_of_block = warp_index();
    if (warp_of_block < 1) {
      // role all: warps 0 to 0
      const int lane = lane_index();
      const int t0 = lane;
      for (u32 block = block_index(); block < blocks1; block += grid_size()) {
        const GridPlace place = grouped(block, grid2, grid3, 8);
        const int block2 = place.row;
        const int sum_1 = wrap_add(block2, t0);
      }
    }
  }
}
)");
}

}  // namespace test_emission
