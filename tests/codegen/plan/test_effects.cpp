// The effects of steps on shared memory, on which memory, barriers and the verifier depend.
#include "codegen/plan/effects.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/catch.hpp"

namespace test_effects {

using namespace tessera::internal;
using namespace tessera::internal::codegen;

namespace {

// "reads buffer 1, writes scratch 2", in the order in which they happen.
std::string said(const Plan& plan, const Action& action) {
  std::string text;
  for (const Effect& effect : effects(plan, Role{}, Step{action})) {
    const std::string_view space = effect.space == Effect::Space::scratch  ? "scratch"
                                   : effect.space == Effect::Space::buffer ? "buffer"
                                                                           : "tensor";
    text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", effect.write ? "writes" : "reads", space, effect.index);
  }
  return text;
}

// A step with these members set.
template <class Kind, class Value, class... Rest>
Kind with(Value Kind::*member, std::type_identity_t<Value> value, const Rest&... rest) {
  Kind kind;
  if constexpr (sizeof...(rest) > 0) kind = with(rest...);
  kind.*member = std::move(value);
  return kind;
}

// A reduction over warps, which write partial results and read them.
template <class Kind>
Kind across_warps(ScratchId scratch) {
  CrossWarpReduce partials;
  partials.per_chunk = {{with(&StoreWarpPartials::scratch, scratch)}, {with(&ReduceWarpPartials::scratch, scratch)}};
  return with(&Kind::across, {{partials}});
}

}  // namespace

TEST_CASE("steps report the shared memory that they read and write", "[plan]") {
  const BufferId one{1}, two{2};
  const ScratchId three{3}, four{4}, five{5}, elsewhere{6};
  Plan plan;
  const PipelineId pipeline = plan.pipelines.add(with(&Pipeline::clipped, {{one}, {two}}));
  while (plan.scratch.size() < elsewhere.index) plan.scratch.add({});
  plan.scratch.add(with(&Scratch::in_workspace, true));
  Fetch::Tile tile, other;
  tile.buffer = one, other.buffer = two;
  tile.access.parameter = other.access.parameter = 7;
  Matmul matmul, of_registers;
  matmul.a.buffer = one, matmul.b.buffer = of_registers.b.buffer = two;

  const struct {
    Action action;
    std::string_view effects;
  } steps[] = {
      {with(&StoreWarpPartials::scratch, three), "writes scratch 3"},
      {with(&ReduceWarpPartials::scratch, three), "reads scratch 3"},
      {across_warps<Reduce>(three), "writes scratch 3, reads scratch 3"},
      {across_warps<Argmax>(three), "writes scratch 3, reads scratch 3"},
      {across_warps<LaneReduce>(three), "writes scratch 3, reads scratch 3"},
      {with(&WriteScanTotals::scratch, three), "writes scratch 3"},
      {with(&AddScanPrefix::scratch, three), "reads scratch 3"},
      {with(&Merge::from, three, &Merge::to, four, &Merge::to_at, five),
       "reads scratch 3, writes scratch 4, writes scratch 5"},
      {with(&Merge::from, three, &Merge::to, four), "reads scratch 3, writes scratch 4"},
      {with(&HistogramUpdate::scratch, three), "writes scratch 3"},
      {with(&HistogramReduce::scratch, three), "reads scratch 3"},
      {with(&StoreScratch::scratch, three), "writes scratch 3"},
      {with(&LoadScratch::scratch, three), "reads scratch 3"},
      {with(&HostReport::values, {{three}, {four}}), "reads scratch 3, reads scratch 4"},
      {with(&StoreShared::buffer, one), "writes buffer 1"},
      {with(&LoadFragment::buffer, one), "reads buffer 1"},
      {with(&ZeroFill::buffer, one), "writes buffer 1"},
      {with(&Fetch::tiles, {tile, other}), "writes buffer 1, writes buffer 2, reads tensor 7, reads tensor 7"},
      {with(&Mma::matmul, matmul), "reads buffer 1, reads buffer 2"},
      {with(&Mma::matmul, of_registers), "reads buffer 2"},
      {with(&ZeroFillRows::pipeline, pipeline), "writes buffer 1, writes buffer 2"},
      {with(&ZeroFillPastEnd::buffer, one), "writes buffer 1"},
      {with(&TmaLoad::buffer, one), "writes buffer 1"},
      {with(&TmaStore::buffer, one), "reads buffer 1"},
      {with(&Wgmma::a, one, &Wgmma::b, two), "reads buffer 1, reads buffer 2"},
      {with(&Wgmma::b, two, &Wgmma::left, ValueId{8}), "reads buffer 2"},
      {with(&StorePartial::scratch, three), "writes scratch 3"},
      {with(&ReducePartials::scratch, three), "reads scratch 3"},
      {with(&ReducePartials::scratch, elsewhere), ""},  // the partials of other CTAs
      {Barrier{}, ""},
      {WgmmaWait{}, ""},
  };
  for (const auto& step : steps) {
    INFO(step.action.index());
    CHECK(said(plan, step.action) == step.effects);
  }
}

}  // namespace test_effects
