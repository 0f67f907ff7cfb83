// Prefetches before the grid dependency wait: of data that no earlier launch may write, and the same loads as the main
// loop would issue after the wait.
#include <algorithm>
#include <utility>
#include <vector>

#include "codegen/plan/verify/verify.hpp"

namespace tessera::internal::codegen {
namespace {

/// One iteration that fills a stage of a pipeline, in the order of its steps.
struct Filling {
  std::vector<const ArriveExpectTx*> expects;
  std::vector<const TmaLoad*> loads;
  std::vector<const AdvanceStage*> advances;
  std::vector<const Step*> others;  ///< except Compute

  explicit Filling(const Body& body) {
    for (const Step& step : body) {
      if (const auto* const expect = step.action.as<ArriveExpectTx>())
        expects.push_back(expect);
      else if (const auto* const load = step.action.as<TmaLoad>())
        loads.push_back(load);
      else if (const auto* const advance = step.action.as<AdvanceStage>())
        advances.push_back(advance);
      else if (!step.action.is<Compute>())
        others.push_back(&step);
    }
  }
};

class AheadCheck {
 public:
  AheadCheck(Diagnostics& diagnostics, const Role& role)
      : diagnostics_(diagnostics), plan_(diagnostics.plan), role_(role) {}

  void run() {
    walk(role_.body, true);
    diagnostics_.about(nullptr);
    diagnostics_.require(prefetches_.size() <= 1, "role {} prefetches before the wait {} times", role_.name,
                         prefetches_.size());
    diagnostics_.require(prefetches_.size() == unless_.size(),
                         "role {} prefetches before the wait, but skips prefetched loads {} times", role_.name,
                         unless_.size());
    if (prefetches_.size() == 1 && unless_.size() == 1) same(*prefetches_[0], *unless_[0].first, unless_[0].second);
  }
  int waits = 0, conditional_waits = 0, prefetched_into_l2 = 0;
  bool brings() const { return !prefetches_.empty(); }

 private:
  void walk(const Body& body, bool outermost, const Loop* around = nullptr) {
    bool first = outermost;  // only steps that may precede a wait so far
    for (const Step& step : body) {
      if (step.action.is<Stamp>()) continue;
      diagnostics_.about(&step);
      const auto* const wait = step.action.as<GridDependencyWait>();
      if (wait) {
        diagnostics_.require(first, "the role ran other steps before, or only a part of it waits");
        (wait->unless_may_prefetch ? conditional_waits : waits) += 1;
        diagnostics_.require(conditional_waits <= 1 && (waits == 0 || !wait->unless_may_prefetch),
                             "role {} has a second wait before its prefetched loads", role_.name);
      }
      if (step.action.is<GridDependencyTrigger>())
        diagnostics_.require(waits == 1 && first, "the grid dependency trigger is not behind the role's wait");
      if (const auto* const bring = step.action.as<PrefetchBeforeWait>()) {
        prefetches_.push_back(bring);
        diagnostics_.require(first && waits == 0, "the grid dependency wait comes earlier");
        continue;
      }
      if (const auto* const unless = step.action.as<IfNotPrefetched>()) unless_.push_back({unless, around});
      if (step.action.is<PrefetchL2>()) {
        diagnostics_.require(first && waits == 0, "data is prefetched into L2 after the grid dependency wait");
        ++prefetched_into_l2;
      }
      const Compute* const number = step.action.as<Compute>();
      first &= wait || (conditional_waits == 1 && waits == 0 && only_reads(step)) || step.action.is<SetMaxNReg>() ||
               step.action.is<PrefetchL2>() || step.action.is<SplitKRange>() || (number && number->sweep.reads.empty());
      const Loop* const loop = step.action.as<Loop>();
      each_body(step, [&](const Body& inner) { walk(inner, false, loop ? loop : around); });
    }
  }

  // Loads that earlier launches cannot disturb, if they write no tensor that the kernel reads before its wait.
  bool only_reads(const Step& step) const {
    const auto is_input = [&](const TileAccess& access) {
      return plan_.tensors[static_cast<std::size_t>(access.parameter)].access == Access::in;
    };
    const Load* const load = step.action.as<Load>();
    const Fetch* const fetch = step.action.as<Fetch>();
    return (load && is_input(load->access)) || step.action.is<CpAsyncCommit>() ||
           (fetch && std::ranges::all_of(fetch->tiles, [&](const auto& tile) { return is_input(tile.access); }));
  }

  // Each iteration of one is an iteration of the other.
  void same(const PrefetchBeforeWait& bring, const IfNotPrefetched& unless, const Loop* later_loop) {
    const Loop* ahead_loop = nullptr;
    for (const Step& step : bring.body) {
      const Loop* const loop = step.action.as<Loop>();
      diagnostics_.about(&step);
      diagnostics_.require(step.action.is<Compute>() || (loop && !ahead_loop),
                           "a prefetch before the wait consists of iterations of one loop");
      if (loop) ahead_loop = loop;
    }
    diagnostics_.about(nullptr);
    diagnostics_.require(ahead_loop && later_loop && ahead_loop->count == later_loop->count,
                         "the prefetch before the wait is of other iterations");
    if (!ahead_loop || !later_loop) return;
    const Filling ahead(ahead_loop->body), later(unless.body);
    for (const Filling* filling : {&ahead, &later})
      for (const Step* step : filling->others) {
        diagnostics_.about(step);
        diagnostics_.require(false, "a prefetch before the wait consists of loads into a pipeline");
      }
    diagnostics_.about(nullptr);
    const bool one =
        ahead.expects.size() == 1 && later.expects.size() == 1 && ahead.advances.size() == 1 && later.advances.empty();
    const auto alike = [&](const TmaLoad* a, const TmaLoad* b) {
      return a->map == b->map && a->buffer == b->buffer && a->offset == b->offset &&
             a->multicast_axis == b->multicast_axis &&
             std::ranges::equal(a->at, b->at, [&](const TileCoordinate& x, const TileCoordinate& y) {
               return x.scale == y.scale && x.offset == y.offset && x.far == y.far &&
                      same_number(x.index, *ahead_loop, y.index, *later_loop);
             });
    };
    diagnostics_.require(one && std::ranges::equal(ahead.loads, later.loads, alike),
                         "role {} prefetches other boxes than it skips", role_.name);
    if (!one) return;
    const PipelineStateId state = ahead.expects[0]->state;
    const PipelineId pipeline = plan_.states[state].pipeline;
    const Operand& by = ahead.advances[0]->by;
    diagnostics_.require(by.kind == Operand::Kind::literal && by.literal == 1,
                         "a prefetch advances by one stage at a time");
    diagnostics_.require(pipeline == plan_.states[later.expects[0]->state].pipeline &&
                             ahead.advances[0]->state == state &&
                             std::ranges::all_of(ahead.loads, [&](const auto* load) { return load->state == state; }),
                         "role {} prefetches into another pipeline", role_.name);
    for (const TmaLoad* const load : ahead.loads) {
      const int argument = plan_.tensor_maps[load->map].tensor.argument;
      diagnostics_.require(plan_.tensors.at(static_cast<std::size_t>(argument)).access == Access::in,
                           "{} is prefetched before the wait, but the launch writes it", tensor_name(plan_, argument));
    }
    diagnostics_.require(bring.most >= 1 && bring.most <= plan_.pipelines[pipeline].stages,
                         "{} k-iterations are prefetched into {} stages", bring.most, plan_.pipelines[pipeline].stages);
  }

  // The same number in both: each loop has its own counter, and computes its own values.
  bool same_number(const Operand& a, const Loop& of_a, const Operand& b, const Loop& of_b) const {
    if (a.kind != Operand::Kind::value || b.kind != Operand::Kind::value) return a == b;
    if (a.value == b.value) return true;
    const Storage &x = plan_.storage(a.value), &y = plan_.storage(b.value);
    const auto *i = std::get_if<Counter>(&x.known), *j = std::get_if<Counter>(&y.known);
    if (i || j) return i && j && i->loop == of_a.loop && j->loop == of_b.loop;
    const auto *p = std::get_if<BlockIndex>(&x.known), *q = std::get_if<BlockIndex>(&y.known);
    if (p || q) return p && q && p->axis == q->axis;
    return x.label.stem == y.label.stem && x.label.number == y.label.number;
  }

  Diagnostics& diagnostics_;
  const Plan& plan_;
  const Role& role_;
  std::vector<const PrefetchBeforeWait*> prefetches_;
  std::vector<std::pair<const IfNotPrefetched*, const Loop*>> unless_;  // with the enclosing loop
};

}  // namespace

void check_prefetch(Diagnostics& diagnostics, const Phase& phase) {
  const bool in_prologue =
      std::ranges::any_of(phase.prologue, [](const Step& step) { return step.action.is<GridDependencyWait>(); });
  int waits = 0, brings = 0, into_l2 = 0;
  for (const Role& role : phase.roles) {
    AheadCheck check(diagnostics, role);
    check.run();
    diagnostics.require(check.waits <= 1 && !(in_prologue && check.waits > 0),
                        "role {} has a second grid dependency wait", role.name);
    diagnostics.require(check.conditional_waits == 0 || check.waits == 1,
                        "role {} has only a conditional grid dependency wait", role.name);
    waits += check.waits;
    brings += check.brings();
    into_l2 += check.prefetched_into_l2;
  }
  diagnostics.about(nullptr);
  const bool all = waits == static_cast<int>(phase.roles.size());
  diagnostics.require(waits == 0 || (all && &phase == diagnostics.plan.phases.data()),
                      "not all roles have a grid dependency wait");
  diagnostics.require(brings == 0 || (phase.schedule.split_k != SplitK::stream_k && !phase.schedule.snake_order),
                      "k-iterations of other grid tiles are prefetched");
  diagnostics.require(into_l2 == 0 || all || diagnostics.plan.progress < Progress::synchronized,
                      "a prefetch into L2 has no grid dependency wait after it");
  diagnostics.require(brings == 0 || all || diagnostics.plan.progress < Progress::synchronized,
                      "a prefetch before the wait has no wait after it");
}

}  // namespace tessera::internal::codegen
