#include "codegen/passes/plan/barriers.hpp"

#include <algorithm>

#include "codegen/passes/plan/planning.hpp"
#include "codegen/plan/shared_state.hpp"

namespace tessera::internal::codegen {
namespace {

class Barriers {
 public:
  explicit Barriers(Plan& plan) : plan_(plan) {}

  void run() {
    SharedState state;
    for (Phase& phase : plan_.phases) {
      const SharedState before = std::exchange(state, {});
      for (Role& role : phase.roles) {
        role_ = &role;
        SharedState own = before;
        phase.schedule.kind == Schedule::Kind::persistent ? blocks(role.body, own) : body(role.body, own);
        state.merge(own);
      }
    }
  }

 private:
  // Grid tiles that follow one another in the same threads form a loop, too; a CTA may have none.
  void blocks(Body& steps, SharedState& state) {
    const SharedState before = state;
    body(steps, state);
    state.forget_shifted();
    body(steps, state);
    state.merge(before);
  }
  bool fetched_ahead(const Effect& effect) const {
    if (effect.space != Effect::Space::buffer) return false;
    const BufferId buffer{effect.index};
    return plan_.buffers[buffer].stages > 1 || plan_.in_pipeline(buffer);
  }
  // An In is not written, so its reads need no order.
  std::vector<Effect> ordered_effects(const Step& step) const {
    std::vector<Effect> result = effects(plan_, *role_, step);
    std::erase_if(result, [&](const Effect& effect) {
      return effect.space == Effect::Space::tensor &&
             plan_.tensors[static_cast<std::size_t>(effect.index)].access == Access::in;
    });
    return result;
  }

  // With `again`, marks the barriers that only later iterations need.
  void body(Body& steps, SharedState& state, bool again = false) {
    Body ordered;
    ordered.reserve(steps.size());
    for (Step& step : steps) {
      if (step.action.is<Barrier>() || step.action.is<ClusterBarrier>()) {
        state = {};
        ordered.push_back(std::move(step));
        continue;
      }
      std::vector<Effect> now = ordered_effects(step);
      const Loop* const loop = step.action.as<Loop>();
      if (loop)
        for (const Step& ahead : loop->ahead)
          for (Effect& effect : ordered_effects(ahead)) now.push_back(std::move(effect));
      const bool waits = std::any_of(now.begin(), now.end(), [&](const Effect& effect) {
        // A loop that prefetches has a barrier at the top of each iteration.
        if (fetched_ahead(effect) && !loop) return false;
        return state.conflicts(plan_, effect) && !disjoint_puts(ordered, step);
      });
      if (waits) {
        ordered.push_back({Barrier{again}, no_id, step.location});
        ++inserted_;
        state = {};
      }
      inside(step, now, state);
      copies(step, now, state);
      ordered.push_back(std::move(step));
    }
    steps = std::move(ordered);
  }
  // Asynchronous copies are written when their wait is over, however many barriers were in between.
  void copies(const Step& step, const std::vector<Effect>& now, SharedState& state) {
    if (const Fetch* const fetch = step.action.as<Fetch>(); fetch && fetch->loop.index == -1)
      copied_.insert(copied_.end(), now.begin(), now.end());
    if (!step.action.is<CpAsyncWait>()) return;
    for (const Effect& effect : std::exchange(copied_, {}))
      if (effect.write) state.add(effect);
  }
  static bool disjoint_puts(const Body& before, const Step& step) {
    const StoreScratch* const put = step.action.as<StoreScratch>();
    const StoreScratch* const last = before.empty() ? nullptr : before.back().action.as<StoreScratch>();
    return put && last && put->scratch == last->scratch;
  }

  // The effects that a step leaves, after the barriers inside it.
  void inside(Step& step, std::vector<Effect>& now, SharedState& state) {
    Body* across = nullptr;
    if (auto* reduce = step.action.as<Reduce>()) across = &reduce->across;
    if (auto* argmax = step.action.as<Argmax>()) across = &argmax->across;
    if (auto* replicas = step.action.as<LaneReduce>()) across = &replicas->across;
    const bool holds_barrier = across && !across->empty();
    if (holds_barrier) {
      for (Step& partials : *across) chunks(partials.action.get<CrossWarpReduce>());
      state = {};
    }
    for (Effect& effect : now) {
      if (holds_barrier) effect.write = false;  // only reads are left after its barrier
      state.add(effect);
    }
    if (auto* loop = step.action.as<Loop>()) {
      state.merge(after(*loop, state));
    } else if (auto* tiles = step.action.as<TileLoop>()) {
      blocks(tiles->body, state);
    } else if (Body* const some = conditional(step)) {
      SharedState taken = state;
      body(*some, taken);
      state.merge(taken);
    }
  }
  // The body of a step that all threads of the role run, or none of them.
  static Body* conditional(Step& step) {
    if (auto* branch = step.action.as<Branch>()) return &branch->body;
    if (auto* first = step.action.as<IfFirstSplit>()) return &first->body;
    if (auto* in_grid = step.action.as<IfInGrid>()) return &in_grid->body;
    return nullptr;
  }

  void chunks(CrossWarpReduce& partials) {
    SharedState state;
    body(partials.per_chunk, state);
    if (partials.registers > partials.chunk) body(partials.per_chunk, state, true);
  }

  // A loop's body is visited twice, to see what one iteration leaves to the next. Nested loops would double that at
  // each level, so the result for a state is cached while no barrier is added.
  const SharedState& after(Loop& loop, const SharedState& before) {
    Known& known = known_[loop.loop];
    for (const auto& [entry, exit] : known.exits)
      if (known.inserted == inserted_ && entry == before) return exit;
    if (loop.stages > 1 && !loop.arrive.back().action.is<Barrier>())
      loop.arrive.push_back({Barrier{}});  // all see what has arrived, and are done with the stage that is filled next
    SharedState state = before;
    for (int iteration = 0; iteration < 2; ++iteration) {
      if (loop.stages > 1) state = {};
      body(loop.body, state);
      state.forget_shifted();
      if (iteration == 0) state.merge(before);
    }
    Known& after = known_[loop.loop];
    if (after.inserted != inserted_) after = {inserted_, {}};
    after.exits.emplace_back(before, std::move(state));
    return after.exits.back().second;
  }

  struct Known {
    int inserted = 0;
    std::vector<std::pair<SharedState, SharedState>> exits;
  };
  Plan& plan_;
  const Role* role_ = nullptr;
  int inserted_ = 0;
  std::map<LoopId, Known> known_;
  std::vector<Effect> copied_;  // by asynchronous copies in flight
};

}  // namespace

void insert_barriers(Plan& plan) { Barriers(plan).run(); }

}  // namespace tessera::internal::codegen

bool tessera::internal::plan_pass::barriers(lowering::Planning& planning) {
  codegen::insert_barriers(planning.plan);
  planning.plan.progress = codegen::Progress::synchronized;
  return true;
}
