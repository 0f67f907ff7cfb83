// The passes that make a plan, one by one: the decisions of each.
#include <fmt/format.h>

#include <map>

#include "codegen/analysis/budget.hpp"
#include "codegen/generate.hpp"
#include "codegen/layout/layout.hpp"
#include "codegen/make_plan.hpp"
#include "codegen/passes/plan/barriers.hpp"
#include "codegen/passes/plan/copies.hpp"
#include "codegen/passes/plan/memory.hpp"
#include "codegen/passes/plan/plan_dce.hpp"
#include "codegen/plan/names.hpp"
#include "codegen/plan/plan_text.hpp"
#include "codegen/plan/remarks.hpp"
#include "codegen/plan/verify/verify_plan.hpp"
#include "common/kernels.hpp"
#include "support/catch.hpp"
#include "support/plan_kernels.hpp"
#include "support/plan_steps.hpp"
#include "support/support.hpp"
#include "support/variants.hpp"

namespace test_plan_passes {

using namespace tessera::internal;
using namespace tessera::internal::codegen;

namespace {

using Lines = std::vector<std::string>;

/// Steps as text, without source locations and nested steps.
Lines lines_of(const Plan& plan, const Body& steps) {
  Lines lines;
  for (const Step& step : steps) lines.push_back(step_text(plan, step));
  return lines;
}
/// All steps of a plan.
Lines lines_of(const Plan& plan) {
  Lines lines;
  for (const StepPlace& place : steps_of(const_cast<Plan&>(plan))) lines.push_back(step_text(plan, place.step()));
  return lines;
}

/// The passes, while they run.
class Passes {
 public:
  explicit Passes(std::string_view kernel, Arch arch = Arch::sm_90a)
      : variant_(dense_variant(plan_graph(kernel))),
        analysis_(plan_graph(kernel), variant_, Target::of(arch)),
        planning{.analysis = analysis_, .reaches = tile_reaches(analysis_.graph), .debug = false} {}

  /// Runs one; returns its result.
  bool run(std::string_view name) {
    for (const lowering::PlanPass& pass : lowering::plan_passes())
      if (pass.name == name) return pass.run(planning);
    throw InternalError("there is no pass '" + std::string(name) + "'");
  }
  /// Runs all from the first up to and including one, restarting as often as they ask.
  Plan& until(std::string_view name) {
    for (bool done = false; !done;)
      for (const lowering::PlanPass& pass : lowering::plan_passes())
        if (!pass.run(planning) || (done = pass.name == name)) break;
    return planning.plan;
  }

 private:
  Variant variant_;
  lowering::GraphAnalysis analysis_;

 public:
  lowering::Planning planning;
};

Plan plan_after_pass(std::string_view kernel, std::string_view pass) { return Passes(kernel).until(pass); }

int count_storage_classes(const Plan& plan, StorageClass storage_class) {
  return static_cast<int>(std::count_if(plan.storages.begin(), plan.storages.end(), [&](const Storage& storage) {
    return storage.storage_class == storage_class;
  }));
}

}  // namespace

// --- all of them

TEST_CASE("a plan holds after every pass", "[plan]") {
  Lines passes;
  for (const lowering::PlanPass& pass : lowering::plan_passes()) passes.emplace_back(pass.name);
  const Arch archs[] = {Arch::sm_80, Arch::sm_90a, Arch::parse("sm_120")};
  const auto check = [&](const Graph& graph, const Variant& variant, Arch arch) {
    Lines seen;
    make_plan(graph, variant, arch, {.verify = false},
              {.after_pass = [&](const lowering::PlanPass& pass, const Plan& plan) {
                INFO(fmt::format("{} for {}, after {}", graph.name, arch.name(), pass.name));
                CHECK(violations(plan) == Lines{});
                if (pass.name == passes.front()) seen.clear();  // they restarted
                seen.emplace_back(pass.name);
              }});
    CHECK(seen == passes);
  };
  for (const std::string& kernel : plan_kernels()) {
    const Graph& graph = plan_graph(kernel);
    for (const auto& variant : {dense_variant, ragged_variant, strided_variant})
      for (const Arch arch : archs) check(graph, variant(graph), arch);
  }
  for (const NamedKernel& kernel : named_kernels()) {
    const Graph graph = kernel.graph();
    for (const Arch arch : archs) check(graph, kernel.variant(graph), arch);
    for (const auto& variant : {ragged_variant, strided_variant}) check(graph, variant(graph), Arch::sm_90a);
  }
}

TEST_CASE("a plan can be printed after any of the passes", "[plan]") {
  const Graph& graph = plan_graph("large");
  const Variant variant = dense_variant(graph);
  std::map<std::string, std::string, std::less<>> last;
  make_plan(graph, variant, Arch::sm_90a, {}, {.after_pass = [&](const lowering::PlanPass& pass, const Plan& plan) {
              last.insert_or_assign(std::string(pass.name), dump_text(plan));
            }});
  CHECK(last.size() == lowering::plan_passes().size());
  for (const auto& [pass, text] : last) CHECK(plan_after(graph, variant, Arch::sm_90a, pass) == text);
  CHECK(error_of([&] { plan_after(graph, variant, Arch::sm_90a, "nonsense"); }) ==
        "there is no plan pass 'nonsense'; choose from schedule, lower, plan_dce, loads_early, registers, memory, "
        "tensor_cores, copies, pdl, l2_policy, fold_scalars, barriers, stamps, remarks, parameters");
}

TEST_CASE("the verifier's error names kernel, pass and step", "[plan]") {
  Plan plan = plan_of("in_place");
  CHECK_NOTHROW(verify(plan, "parameters"));
  place_of<Barrier>(plan).drop();
  try {
    verify(plan, "barriers");
    FAIL("it holds");
  } catch (const InternalError& error) {
    CHECK(says(error.what(), {"the plan of kernel 'in_place' after pass 'barriers': mma_6 += tile_2 tile_4: ",
                              "a barrier is missing between it and writes of tile_2"}));
  }
}

// --- lower

TEST_CASE("lowering makes a single step of dependent elementwise ops", "[plan]") {
  const Plan plan = plan_after_pass("pointwise", "lower");
  CHECK(lines_of(plan) == Lines{"cdiv_3 = cdiv(out1_extent0, 1024)", "load_6 = in0[block0 * 1024] by 4",
                                "out1[block0 * 1024] by 4 = add(exp(mul(load_6, scalar2)), load_6)"});
  CHECK(plan.threads() == 256);
}

TEST_CASE("lowering moves a value to other threads through scratch memory", "[plan]") {
  const Lines transposed = lines_of(plan_after_pass("transposed", "lower"));
  REQUIRE(transposed.size() == 10);
  CHECK(Lines(transposed.begin() + 5, transposed.end()) ==
        Lines{"scratch0[0 + x0 * 64 + x1 * 1] = add_10", "reshape_14 = scratch0[x0 * 64 + x1 * 8 + x2 * 1]",
              "scratch1[0 + x0 * 64 + x1 * 8 + x2 * 1] = reshape_14", "reshape_16 = scratch1[x0 * 64 + x1 * 1]",
              "out2[block0 * 64, block1 * 64] by 4 = reshape_16"});
}

TEST_CASE("lowering prefetches tiles whose indices are known, and fetches others in place", "[plan]") {
  Plan pipelined = plan_after_pass("pipelined", "lower");
  const Loop& loop = the<Loop>(pipelined);
  CHECK(loop.stages == 4);
  CHECK(lines_of(pipelined, loop.arrive) == Lines{"cp.async.wait_group 2"});
  REQUIRE(loop.ahead.size() == 1);
  CHECK(loop.ahead[0].action.get<Fetch>().loop == loop.loop);
  CHECK(loop.ahead[0].action.get<Fetch>().tiles.size() == 2);
  CHECK(lines_of(pipelined, loop.issued) == Lines{"cp.async.commit_group"});
  CHECK(count<CpAsyncWait>(pipelined) == 2);  // in each iteration, and after the loop
  for (const Buffer& buffer : pipelined.buffers) CHECK(buffer.stages == loop.stages);

  Plan unpipelined = plan_after_pass("unpipelined", "lower");
  const Loop& simple = the<Loop>(unpipelined);
  CHECK(simple.stages == 1);
  CHECK((simple.arrive.empty() && simple.ahead.empty() && simple.issued.empty()));
  CHECK(count<Fetch>(unpipelined) == 2);
  for (const StepPlace& place : places_of<Fetch>(unpipelined)) {
    CHECK(place.body == &simple.body);
    CHECK(!place.step().action.get<Fetch>().loop);
    const auto next = [&](std::size_t by) { return step_text(unpipelined, (*place.body)[place.index + by]); };
    CHECK(next(1) == "cp.async.commit_group");
    CHECK(next(2) == "cp.async.wait_group 0");
  }
}

TEST_CASE("lowering accumulates in the carried value, and takes a matmul's result as operand in registers", "[plan]") {
  Plan pipelined = plan_after_pass("pipelined", "lower");
  CHECK(the<Loop>(pipelined).body.size() == 1);  // no copy of the accumulator
  CHECK(name_of(pipelined, the<Mma>(pipelined).out) == "carry_16");

  Plan chained = plan_after_pass("chained", "lower");
  const Mma &scores = the<Mma>(chained, 0), &sums = the<Mma>(chained, 1);
  CHECK((scores.matmul.a.buffer && !scores.matmul.a.value));
  CHECK((sums.matmul.a.value && !sums.matmul.a.buffer));
  CHECK(name_of(chained, sums.matmul.a.value) == "cast_21");
  CHECK(count<StoreShared>(chained) == 0);
}

TEST_CASE("a warp has 64 x 64 accumulators, prefetches fragments, and fetches during the matmul", "[plan]") {
  Plan pipelined = plan_after_pass("pipelined", "lower");
  CHECK(pipelined.threads() == 128);
  const Mma& mma = the<Mma>(pipelined);
  CHECK((mma.matmul.warps_m == 2 && mma.matmul.warps_n == 2));
  CHECK((mma.matmul.reads_ahead && mma.matmul.unrolled == 0));
  CHECK(mma.fetching == the<Loop>(pipelined).loop);
  CHECK(mma.holds_last);
  Plan crowded = plan_of("pipelined", Arch::parse("sm_100"));  // ptxas has fewer registers for accumulators
  CHECK((the<Mma>(crowded).matmul.reads_ahead && !the<Mma>(crowded).holds_last));
  CHECK(the<Store>(pipelined).by_quads);
  // One of four threads would overwrite elements of a residual that another one still reads.
  Plan read = plan_of("residual", Arch::sm_80);
  REQUIRE(the<Store>(read).access.vector == 2);
  CHECK(!the<Store>(read).by_quads);
  Variant pieces = dense_variant(plan_graph("pipelined"));  // 8 bytes, whose addresses take registers
  pieces.tensors[0].alignment = 8;
  pieces.tensors[0].tma_addressable = false;
  Plan aligned = make_plan(plan_graph("pipelined"), pieces, Arch::sm_80, {.verify = true});
  CHECK((the<Mma>(aligned).fetching && !the<Mma>(aligned).holds_last));

  // Scores and probabilities stay in registers, which leaves none for the next k-step's fragments.
  Plan chained = plan_after_pass("chained", "lower");
  for (const StepPlace& place : places_of<Mma>(chained)) {
    const Mma& matmul = place.step().action.get<Mma>();
    CHECK((!matmul.matmul.reads_ahead && !matmul.fetching));
  }
  Plan two_loops = plan_after_pass("two_loops", "lower");  // fused multiply-add
  CHECK((!the<Mma>(two_loops, 0).matmul.reads_ahead && !the<Mma>(two_loops, 0).fetching));

  // A matmul that loses the tensor cores for lack of memory leaves the fetch to the loop.
  const Plan beyond = plan_of("beyond");
  for (const StepPlace& place : places_of<Mma>(const_cast<Plan&>(beyond)))
    CHECK(!place.step().action.get<Mma>().matmul.reads_ahead);
}

TEST_CASE("lowering combines the partial sums of a gemv after its loop", "[plan]") {
  Plan thin = plan_after_pass("thin", "lower");
  CHECK(the<Mma>(thin).matmul.partial);
  const StepPlace loop = place_of<Loop>(thin), replicas = place_of<LaneReduce>(thin);
  CHECK(replicas.body == loop.body);
  CHECK(replicas.index == loop.index + 1);
  const auto& start = (*loop.body)[loop.index - 1].action.get<Compute>();
  CHECK((start.zero_lanes == 24 && start.zero_warps == 7));  // only one thread has the initial value
  CHECK((the<LaneReduce>(thin).lanes == 24 && the<LaneReduce>(thin).warps == 7));

  Plan alone = plan_after_pass("thin_alone", "lower");
  CHECK(!the<Mma>(alone).matmul.partial);
  CHECK(place_of<LaneReduce>(alone).index == place_of<Mma>(alone).index + 1);
}

TEST_CASE("lowering leaves addresses in memory and barriers to other passes", "[plan]") {
  for (const std::string& kernel : plan_kernels()) {
    INFO(kernel);
    const Plan plan = plan_after_pass(kernel, "lower");
    CHECK(plan.progress == Progress::lowered);
    CHECK(count<Barrier>(plan) == 0);
    CHECK(plan.shared_bytes + plan.workspace_bytes == 0);
    CHECK(plan.parameters.empty());
  }
}

// --- plan_dce

TEST_CASE("plan_dce drops what the host computes", "[plan]") {
  CHECK(lines_of(plan_after_pass("pointwise", "plan_dce")) ==
        Lines{"load_6 = in0[block0 * 1024] by 4", "out1[block0 * 1024] by 4 = add(exp(mul(load_6, scalar2)), load_6)"});
}

TEST_CASE("plan_dce drops dead sequences of ops, and no value that changes", "[plan]") {
  Plan plan = plan_of("pointwise");
  const Lines before = lines_of(plan);
  // A load, a value computed from it, and another from that.
  const Load load = the<Load>(plan);
  const auto copy_of = [&](const char* name) {
    Storage storage = plan.storage(load.out);
    storage.label.stem = name;
    const Value value = plan.values[load.out];
    return plan.values.add({plan.storages.add(std::move(storage)), value.shape, value.layout});
  };
  Load again = load;
  again.out = copy_of("again");
  const auto negative_of = [&](ValueId of, const char* name) {
    Operand operand;
    operand.kind = Operand::Kind::value;
    operand.value = of;
    operand.map = register_map(plan.values[of].layout, load.sweep.layout);
    Compute negative{.out = copy_of(name), .sweep = load.sweep};
    negative.sweep.expression.terms = {{Op::neg, ElementType::f32, ElementType::f32, {operand}}};
    return negative;
  };
  const Compute negative = negative_of(again.out, "negative"), positive = negative_of(negative.out, "positive");
  Body& body = plan.phases[0].roles[0].body;
  for (const Action& action : {Action(again), Action(negative), Action(positive)}) body.push_back({action});
  REQUIRE(violations(plan).empty());
  Plan changing = plan;
  eliminate_dead_steps(plan);
  CHECK(lines_of(plan) == before);
  changing.storage(positive.out).changes = true;
  eliminate_dead_steps(changing);
  CHECK(lines_of(changing).size() == before.size() + 3);
}

// --- registers

TEST_CASE("a plan is made again until a thread's registers suffice", "[plan]") {
  Passes small("pointwise");
  small.until("plan_dce");
  CHECK(small.run("registers"));
  CHECK(small.planning.search.log() == Lines{"schedule rows, 1 of 9: 8 warps, at most 64 registers for a value"});

  Passes large("large");
  const int wanted = large.until("plan_dce").threads();
  CHECK(!large.run("registers"));
  CHECK(large.planning.search.log() ==
        Lines{"rejected rows, 1 of 7: 32 warps, at most 64 registers for a value: values need 98 registers, and a "
              "thread has 44",
              "schedule rows, 2 of 7: 16 warps, at most 32 registers for a value"});
  const Plan& made = large.until("registers");
  CHECK(made.threads() < wanted);
  CHECK(count_storage_classes(made, StorageClass::workspace) == 4);
  for (const Storage& storage : made.storages)
    CHECK((storage.storage_class != StorageClass::registers || storage.registers <= 32));

  for (const std::string& kernel : plan_kernels()) {
    INFO(kernel);
    Passes passes(kernel);
    const Plan& plan = passes.until("registers");
    const bool has_matmuls = !passes.planning.search.current().matmuls(passes.planning.analysis).plans.empty();
    CHECK(pressure(plan).all <= Budget(plan.target, plan.threads(), has_matmuls).registers());
  }
}

// --- memory

TEST_CASE("values that are live at different times share memory", "[plan]") {
  const Plan transposed = plan_after_pass("transposed", "memory");
  REQUIRE(transposed.scratch.size() == 2);
  CHECK(transposed.scratch[ScratchId{0}].offset == transposed.scratch[ScratchId{1}].offset);
  CHECK(transposed.shared_bytes == 64 * 64 * 4);

  const Plan matmul = plan_after_pass("in_place", "memory");
  REQUIRE(matmul.buffers.size() == 2);
  CHECK(matmul.buffers[BufferId{0}].offset != matmul.buffers[BufferId{1}].offset);

  const Plan loops = plan_after_pass("two_loops", "memory");
  REQUIRE(loops.buffers.size() == 4);
  std::int64_t first = 0, second = 0;
  for (int i = 0; i < 4; ++i) (i < 2 ? first : second) += loops.buffers[BufferId{i}].bytes();
  CHECK(loops.shared_bytes == std::max(first, second));
}

TEST_CASE("values that do not fit go to the workspace, and CTAs are persistent", "[plan]") {
  Passes passes("large");
  CHECK(count_storage_classes(passes.until("registers"), StorageClass::shared) == 0);
  CHECK(passes.run("memory"));
  const Plan& large = passes.planning.plan;
  CHECK(count_storage_classes(large, StorageClass::shared) == 3);
  CHECK(count_storage_classes(large, StorageClass::workspace) == 1);
  CHECK(large.shared_bytes <= large.target.shared_bytes);
  CHECK(large.workspace_bytes == 32 * 1024 * 4);
  CHECK(large.persistent());
  CHECK(!plan_after_pass("chained", "memory").persistent());
  CHECK(plan_after_pass("beyond", "memory").buffers[BufferId{0}].in_workspace);
}

// --- tensor cores

TEST_CASE("a matmul with an operand in the workspace does not use tensor cores", "[plan]") {
  Passes passes("staged", Arch::sm_80);
  Plan& plan = passes.until("memory");
  CHECK(passes.run("tensor_cores"));
  CHECK(the<Mma>(plan).matmul.kind == MatmulKind::mma_sync);
  CHECK(notes(plan).empty());
  plan.buffers[the<Mma>(plan).matmul.b.buffer].in_workspace = true;
  CHECK(passes.run("tensor_cores"));
  CHECK(the<Mma>(plan).matmul.kind == MatmulKind::simt);
  CHECK(notes(plan) == Lines{"right_10_12 does not fit into shared memory"});
}

TEST_CASE("a matmul that loses the tensor cores has its left operand in memory", "[plan]") {
  Passes passes("chained");
  Plan& plan = passes.until("memory");
  plan.buffers[the<Mma>(plan, 1).matmul.b.buffer].in_workspace = true;
  const Id matmul = place_of<Mma>(plan, 1).step().node;
  passes.planning.search.reject({"for this test", {}});
  CHECK(!passes.run("tensor_cores"));
  CHECK(passes.planning.left_in_memory == std::set<Id>{matmul});
  CHECK(passes.planning.search.log().size() == 1);
  passes.until("memory");
  CHECK(count<StoreShared>(plan) == 1);
  CHECK((the<Mma>(plan, 1).matmul.a.buffer && !the<Mma>(plan, 1).matmul.a.value));
  CHECK(the<Mma>(plan, 0).matmul.kind == MatmulKind::mma_sync);
}

// --- copies

TEST_CASE("a tile is copied asynchronously if it can be", "[plan]") {
  const auto tile_for = [](int alignment, bool in_workspace, int row_alignment = 16) {
    const Graph& graph = plan_graph("in_place");
    Variant variant = dense_variant(graph);
    variant.tensors[0].alignment = static_cast<std::int8_t>(alignment);
    variant.tensors[0].row_alignment = static_cast<std::int8_t>(row_alignment);
    Plan plan = make_plan(graph, variant, Arch::sm_90a, {});
    plan.buffers[BufferId{0}].in_workspace = in_workspace;
    choose_copies(plan);
    return the<Fetch>(plan).tiles.front();
  };
  CHECK(tile_for(16, false).copy == Fetch::Copy::async);
  CHECK(tile_for(16, false).access.vector == 8);
  CHECK(tile_for(16, false).unrolled == 0);
  CHECK(tile_for(4, false).copy == Fetch::Copy::async);
  CHECK(tile_for(4, false).access.vector == 2);
  CHECK(tile_for(2, false).copy == Fetch::Copy::element);  // cp.async cannot copy 2 bytes
  CHECK(tile_for(16, false, 4).access.vector == 2);        // a row may end within 16 bytes, but not within 4
  CHECK(tile_for(16, false, 2).copy == Fetch::Copy::element);
  CHECK(tile_for(16, true).copy == Fetch::Copy::vector);
  CHECK(tile_for(16, true).unrolled == 2);
}

// --- barriers

TEST_CASE("threads wait where they read what others wrote, and nowhere else", "[plan]") {
  CHECK(count<Barrier>(plan_of("pointwise")) == 0);
  CHECK(count<Barrier>(plan_of("same_place")) == 0);
  CHECK(count<Barrier>(plan_of("exchanged")) == 2);   // before the stored tensor is loaded, and before the store
  CHECK(count<Barrier>(plan_of("transposed")) == 3);  // two exchanges, and one between them
  CHECK(count<Barrier>(plan_of("shifted")) == 2);     // one for the previous iteration
  CHECK(count<Barrier>(plan_of("in_place")) == 1);
  CHECK(count<Barrier>(plan_of("unpipelined")) == 2);
  CHECK(count<Barrier>(plan_after_pass("unpipelined", "copies")) == 0);
}

TEST_CASE("threads wait around atomics that order other accesses, and where atomics do not commute", "[plan]") {
  CHECK(count<Barrier>(plan_of("drawn")) == 0);
  CHECK(count<Barrier>(plan_of("released")) == 1);
  CHECK(count<Barrier>(plan_of("acquired")) == 1);  // the one before the first thread's result is read is enough
  CHECK(count<Barrier>(plan_of("awaited")) == 1);
  CHECK(count<Barrier>(plan_of("mixed")) == 3);  // not between the sums
  const auto kinds = [](std::string_view name) {
    Plan plan = plan_of(name);
    std::string kinds;
    for (const StepPlace& place : steps_of(plan))
      kinds += visit_kind(
          []<class Kind>(const Kind&) {
        return std::same_as<Kind, Atomic>    ? "atomic "
               : std::same_as<Kind, Barrier> ? "barrier "
               : std::same_as<Kind, Load>    ? "load "
               : std::same_as<Kind, Store>   ? "store "
                                             : "";
          },
          place.step().action);
    return kinds;
  };
  CHECK(kinds("released").ends_with("store barrier atomic "));
  CHECK(kinds("awaited").ends_with("atomic barrier load store "));
  CHECK(kinds("mixed").ends_with("atomic atomic barrier atomic barrier atomic barrier atomic "));
}

TEST_CASE("old values that are used come from the one thread that changed an element", "[plan]") {
  Plan kept = plan_of("acquired"), left = plan_of("awaited"), own = plan_of("drawn");
  const Atomic& first = the<Atomic>(kept);
  CHECK(first.out);
  CHECK(count<StoreScratch>(kept) == 1);
  CHECK(count<LoadScratch>(kept) == 1);
  CHECK(!the<Atomic>(left).out);
  CHECK(count<StoreScratch>(left) == 0);
  CHECK(the<Atomic>(own).out);
  CHECK(the<Atomic>(own).expected);
  CHECK(count<StoreScratch>(own) == 0);
  CHECK(step_text(left, places_of<Atomic>(left)[0].step()).find("atomic_or of") != std::string::npos);
  const std::string text = generate(plan_graph("released"), dense_variant(plan_graph("released")), Arch::sm_90a).text;
  CHECK(text.find("atomic_or<Release, SystemScope>(") != std::string::npos);
  // Memory that others release may have changed since it was read, whatever the compiler knows of its own accesses.
  CHECK(text.find("int* __restrict__ inout1") != std::string::npos);
  const std::string waits = generate(plan_graph("awaited"), dense_variant(plan_graph("awaited")), Arch::sm_90a).text;
  CHECK(waits.find("int* inout0,") != std::string::npos);
  CHECK(waits.find("int* __restrict__ out1,") != std::string::npos);
}

TEST_CASE("a loop that prefetches waits for earlier users of its stages", "[plan]") {
  Plan plan = plan_of("two_loops");
  const std::vector<StepPlace> loops = places_of<Loop>(plan);
  REQUIRE(loops.size() == 2);
  const auto follows_barrier = [](StepPlace place) {
    return place.index > 0 && (*place.body)[place.index - 1].action.is<Barrier>();
  };
  CHECK(!follows_barrier(loops[0]));
  CHECK(follows_barrier(loops[1]));
  for (const StepPlace& place : loops) {
    const Body& arrive = place.step().action.get<Loop>().arrive;
    REQUIRE(arrive.size() == 2);
    CHECK(arrive[0].action.is<CpAsyncWait>());
    CHECK(arrive[1].action.is<Barrier>());
  }
}

TEST_CASE("a barrier for later iterations is only inserted where there are some", "[plan]") {
  const auto again = [](std::string_view kernel) {
    Plan plan = plan_of(kernel);
    int count = 0;
    for (const StepPlace& place : places_of<Barrier>(plan)) count += place.step().action.get<Barrier>().again;
    return count;
  };
  CHECK(again("rows") == 1);
  CHECK(again("best_rows") == 1);
  CHECK(again("normalized") == 0);
  CHECK(again("thin") == 0);
}

TEST_CASE("existing barriers are enough", "[plan]") {
  for (const std::string& kernel : plan_kernels()) {
    INFO(kernel);
    Plan plan = plan_of(kernel);
    const Lines before = lines_of(plan);
    insert_barriers(plan);
    CHECK(lines_of(plan) == before);
  }
}

TEST_CASE("exchanges through different scratch memory need no barrier for readers of the other", "[plan]") {
  Plan plan = plan_of("transposed");
  Body& body = plan.phases[0].roles[0].body;
  const Step first = place_of<StoreScratch>(plan, 0).step(), second = place_of<StoreScratch>(plan, 1).step(),
             reads_first = place_of<LoadScratch>(plan, 0).step(), reads_second = place_of<LoadScratch>(plan, 1).step();
  const ScratchId one = first.action.get<StoreScratch>().scratch, other = second.action.get<StoreScratch>().scratch;
  REQUIRE(one != other);
  plan.scratch[other].offset = plan.scratch[one].offset + plan.scratch[one].bytes;
  const auto barriers_behind = [&](const Body& steps) {
    body = steps;
    insert_barriers(plan);
    std::vector<std::size_t> at;
    for (std::size_t i = 0; i < body.size(); ++i)
      if (body[i].action.is<Barrier>()) at.push_back(i);
    return at;
  };
  using Places = std::vector<std::size_t>;
  CHECK(barriers_behind({reads_first, first, first}) == Places{1});
  CHECK(barriers_behind({reads_second, first, second}) == Places{2});
  CHECK(barriers_behind({first, second, reads_first, reads_second}) == Places{2});
}

// --- registers of operands

TEST_CASE("an operand's registers are found from those of a result, whatever digits either has", "[plan]") {
  const auto along = [](std::vector<Factor> factors) {
    Layout layout(1);
    for (const Factor& factor : factors) layout.add(0, factor);
    return layout;
  };
  const Layout whole = along({{Place::reg, 8, 1}}), transposed = along({{Place::reg, 4, 1}, {Place::reg, 2, 4}});
  CHECK(register_map(whole, whole) == std::vector<Digit>{{1, 8, 1}});
  CHECK(register_map(transposed, whole) == std::vector<Digit>{{2, 4, 1}, {1, 2, 4}});
  CHECK(register_map(whole, transposed) == std::vector<Digit>{{4, 2, 1}, {1, 4, 2}});
}

// --- parameters

TEST_CASE("a launch fills in the parameters that the plan names", "[plan]") {
  const auto parameters = [](std::string_view kernel, const Variant& variant) {
    constexpr std::string_view kinds[] = {
#define KERNEL_PARAMETER(kind, ...) #kind,
#include "codegen/target/kernel_parameters.def"
    };
    Lines lines;
    for (const KernelParameter& p : make_plan(plan_graph(kernel), variant, Arch::sm_90a, {}).parameters)
      lines.push_back(fmt::format("{} {} {}", kinds[static_cast<int>(p.kind)], p.argument, p.axis));
    return lines;
  };
  const Graph& pointwise = plan_graph("pointwise");
  CHECK(parameters("pointwise", dense_variant(pointwise)) ==
        Lines{"pointer 0 0", "extent 0 0", "pointer 1 0", "extent 1 0", "scalar 2 0"});
  CHECK(parameters("pointwise", strided_variant(pointwise)) ==
        Lines{"pointer 0 0", "extent 0 0", "stride 0 0", "pointer 1 0", "extent 1 0", "stride 1 0", "scalar 2 0"});
  const Lines beyond = parameters("beyond", dense_variant(plan_graph("beyond")));
  CHECK(Lines(beyond.end() - 3, beyond.end()) == Lines{"stride 2 0", "blocks 0 0", "workspace 0 0"});
}

}  // namespace test_plan_passes
