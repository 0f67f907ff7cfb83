// Plans of several roles, built by hand: they verify, print, and compile; each rule for roles is broken once.
#include <string>
#include <utility>
#include <vector>

#include "codegen/kernel_source.hpp"
#include "codegen/plan/plan.hpp"
#include "codegen/plan/plan_text.hpp"
#include "codegen/plan/verify/verify_plan.hpp"
#include "jit/compile/nvrtc.hpp"
#include "support/catch.hpp"
#include "support/plan_steps.hpp"
#include "support/planted_faults.hpp"
#include "support/role_plans.hpp"
#include "support/support.hpp"

namespace test_role_plans {

using namespace tessera::internal;
using namespace tessera::internal::codegen;

TEST_CASE("A matmul by TMA and wgmma verifies, prints and compiles", "[plan][compiles]") {
  for (const RoleTile& tile : role_tiles) {
    const Plan plan = warp_specialized_matmul(tile);
    const std::vector<std::string> found = violations(plan);
    INFO(tree_text(plan));
    for (const std::string& one : found) UNSCOPED_INFO(one);
    CHECK(found.empty());
    CHECK(to_string(plan).find("map_a: boxes of [64,128] along axes 1,0 of in0, loaded") != std::string::npos);
    CHECK(tree_text(plan).find("role producer: warps 0 to 3") != std::string::npos);
    const KernelSource source = kernel_source(plan);
    CHECK(source.persistent);
    CHECK(source.tma_tensors.size() == 3);
    const std::string& text = source.text;
    INFO(text);
    CHECK(text.find("wgmma_bf16_n") != std::string::npos);
    try {
      const CompiledCode code = Nvrtc::instance().compile({.source = text, .kernel = "product", .arch = Arch::sm_90a});
      CHECK(code.report.warnings.empty());
      CHECK(code.report.clean());
    } catch (const Error& e) {
      if (std::string_view(e.what()).find("libnvrtc") == std::string_view::npos) throw;
      WARN("skipped: " << e.what());
    }
  }
}

TEST_CASE("Panels have the layout of the 128-byte swizzle", "[plan]") {
  const Buffer panels{.label = {}, .type = ElementType::bf16, .rows = 64, .columns = 128, .form = SharedForm::panels};
  CHECK(panels.offset_of(0, 0) == 0);
  CHECK(panels.offset_of(1, 0) == 128 + 16);
  CHECK(panels.offset_of(7, 8) == 7 * 128 + 6 * 16);
  CHECK(panels.offset_of(3, 65) == 64 * 128 + 3 * 128 + 3 * 16 + 2);
  std::vector<char> seen(static_cast<std::size_t>(panels.stage_bytes() / 2));
  for (int row = 0; row < 64; ++row)
    for (int column = 0; column < 128; ++column)
      CHECK_FALSE(std::exchange(seen[static_cast<std::size_t>(panels.offset_of(row, column) / 2)], 1));
  // PTX ISA, "Matrix Descriptor Format": groups of eight rows are 1024 bytes apart.
  CHECK(descriptor_of(panels, true).stride == 1024 / 16);
  CHECK(descriptor_of(panels, true).k_step == 2);
  CHECK(descriptor_of(panels, false).leading == 64 * 128 / 16);
  CHECK(descriptor_of(panels, false).k_step == 128);
}

TEST_CASE("Accumulators and operands of wgmma are layouts", "[plan]") {
  // PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16".
  const Layout sums = wgmma_accumulator_layout({128, 64}, 2);
  CHECK(to_string(sums) == "warp 8, reg 2/2, lane 8/4 | reg 8/4, lane 4, reg 2");
  CHECK(sums.registers() == 32);
  const Layout blocks = wgmma_accumulator_layout({256, 64}, 2);
  CHECK(blocks.registers() == 64);
  CHECK(blocks.cover(0) == 256);
  const Layout operand = wgmma_operand_layout({64, 32}, 1, ElementType::bf16);
  CHECK(operand.registers() == 16);
  CHECK(operand.cover(1) == 32);
}

TEST_CASE("The verifier reports errors between roles", "[plan]") {
  const PlantedFault faults[] = {
      {"a stage is not released", [](Plan& p) { place_of<ArriveEmpty>(p).drop(); }, "released"},
      {"the last stage is not released", [](Plan& p) { place_of<ArriveEmpty>(p, 1).drop(); }, "released"},
      {"a stage is released while it is read", [](Plan& p) { the<ArriveEmpty>(p).behind = 0; }, "in flight"},
      {"all threads release", [](Plan& p) { the<ElectOne>(p, 1).threads = 32; }, "are expected"},
      {"nobody waits until a stage is full", [](Plan& p) { place_of<WaitFull>(p).drop(); }, "full"},
      {"nobody acquires", [](Plan& p) { place_of<WaitEmpty>(p).drop(); }, "empty"},
      {"nobody expects", [](Plan& p) { place_of<ArriveExpectTx>(p).drop(); }, "expect"},
      {"an operand is not loaded", [](Plan& p) { place_of<TmaLoad>(p).drop(); }, "bytes loaded"},
      {"the producer stays", [](Plan& p) { place_of<AdvanceStage>(p).drop(); }, "advances by"},
      {"a consumer stays", [](Plan& p) { place_of<AdvanceStage>(p, 1).drop(); }, "advances by"},
      {"a pipeline of other bytes", [](Plan& p) { p.pipelines[PipelineId{0}].bytes -= 1024; }, "bytes"},
      {"a pipeline of another number of stages", [](Plan& p) { ++p.pipelines[PipelineId{0}].stages; }, "stages"},
      {"arrivals that nobody makes", [](Plan& p) { ++p.pipelines[PipelineId{0}].empty_arrivals; }, "are expected"},
      {"no fence before wgmma", [](Plan& p) { place_of<WgmmaFence>(p).drop(); }, "fence"},
      {"matmuls are not committed", [](Plan& p) { place_of<WgmmaCommit>(p).drop(); }, "committed"},
      {"matmuls stay open", [](Plan& p) { the<WgmmaWait>(p, 1).pending = 1; }, "in flight"},
      {"accumulators of another layout",
       [](Plan& p) {
    for (Value& v : p.values)
      if (v.shape.rank() == 2) v.layout = accumulator_layout(v.shape, 4, 2);
  }, "sums_consumer0 is"},
      {"no fence before the TMA store", [](Plan& p) { place_of<ProxyFence>(p).drop(); }, "fence"},
      {"no barrier before the TMA store", [](Plan& p) { place_of<NamedBarrier>(p, 1).drop(); }, "barrier"},
      {"a copy may still read",
       [](Plan& p) {
    the<TmaStoreWait>(p, 0).pending = 2;
    the<TmaStoreWait>(p, 1).pending = 2;
    the<TmaStoreWait>(p, 2).pending = 2;
    the<TmaStoreWait>(p, 3).pending = 2;
  }, "may still read"},
      {"stores are not waited for at the end", [](Plan& p) { place_of<TmaStoreWait>(p, 4).drop(); },
       "ends while its TMA stores"},
      {"a barrier of other threads", [](Plan& p) { the<NamedBarrier>(p).threads = 128; }, "threads reach"},
      {"an impossible barrier id", [](Plan& p) { the<NamedBarrier>(p).id = 16; }, "no named barrier 16"},
      {"a barrier of all threads in a role", [](Plan& p) { p.phases[0].roles[1].body.push_back({Barrier{}}); },
       "all threads"},
      {"a role waits for the launch before",
       [](Plan& p) { p.phases[0].roles[1].body.push_back({GridDependencyWait{}}); }, "ran other steps before"},
      {"two waits for the launch before",
       [](Plan& p) {
    for (int i = 0; i < 2; ++i) p.phases[0].prologue.push_back({GridDependencyWait{}});
  }, "2 grid dependency waits"},
      {"registers that are no multiple of 8", [](Plan& p) { the<SetMaxNReg>(p).registers = 42; }, "registers"},
      {"more registers than there are",
       [](Plan& p) {
    p.phases[0].roles[1].registers = 240;
    the<SetMaxNReg>(p, 1).registers = 240;
    p.phases[0].roles[0].registers = 64;
    the<SetMaxNReg>(p, 0).registers = 64;
  }, "registers for the roles"},
      {"a pipeline that is not made", [](Plan& p) { p.phases[0].prologue.erase(p.phases[0].prologue.begin()); },
       "not initialized"},
      {"no fence after the initialization of pipelines",
       [](Plan& p) { p.phases[0].prologue[0].action.get<ElectOne>().body.pop_back(); }, "no fence follows"},
      {"a thread of each warp group initializes pipelines",
       [](Plan& p) { p.phases[0].prologue[0].action.get<ElectOne>().threads = 128; }, "not initialized"},
      {"a fence of a role for the initialization of pipelines",
       [](Plan& p) { p.phases[0].roles[1].body.push_back({MbarrierInitFence{}}); }, "not in the prologue"},
      {"no barrier after the initialization of pipelines", [](Plan& p) { p.phases[0].prologue.pop_back(); },
       "no barrier"},
      {"a pipeline state of two roles", [](Plan& p) { the<WaitFull>(p).state = PipelineStateId{0}; }, "at_"},
      {"a panel in the wrong place", [](Plan& p) { the<TmaLoad>(p).offset = 512; }, "of a stage"},
      {"a box of another size", [](Plan& p) { p.tensor_maps[TensorMapId{0}].tensor.box[1] = 64; }, "bytes"},
      {"rows longer than the swizzle", [](Plan& p) { p.tensor_maps[TensorMapId{0}].tensor.box[0] = 128; }, "swizzle"},
      {"an input is stored to", [](Plan& p) { p.tensor_maps[TensorMapId{2}].tensor.argument = 0; }, "written"},
      {"panels that are not aligned", [](Plan& p) { p.buffers[BufferId{1}].offset += 128; }, "multiple of 1024"},
      {"buffers on top of one another", [](Plan& p) { p.buffers[BufferId{0}].offset = p.buffers[BufferId{1}].offset; },
       "while both are live"},
      {"barriers of a pipeline in a buffer", [](Plan& p) { p.pipelines[PipelineId{0}].offset = 0; },
       "while both are live"},
      {"accumulators used while open", [](Plan& p) { place_of<WgmmaWait>(p, 1).drop(); }, "in flight"},
  };
  check_reported(warp_specialized_matmul(role_tiles[0]), faults);
}

}  // namespace test_role_plans
