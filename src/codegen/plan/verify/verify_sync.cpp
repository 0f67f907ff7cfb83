// Barriers, and waits for asynchronous copies.
#include <map>

#include "codegen/plan/shared_state.hpp"
#include "codegen/plan/verify/verify.hpp"

namespace tessera::internal::codegen {
namespace {

/// Follows the steps with the accesses of threads since the last barrier. Runs loops twice.
class BarrierRules {
 public:
  explicit BarrierRules(Diagnostics& diagnostics) : diagnostics_(diagnostics), plan_(diagnostics.plan) {}

  void run() {
    SharedState state;
    for (const Phase& phase : plan_.phases) {
      const SharedState before = std::exchange(state, {});
      for (const Role& role : phase.roles) {
        role_ = &role;
        SharedState own = before;
        phase.schedule.kind == Schedule::Kind::persistent ? blocks(role.body, own) : body(role.body, own, false);
        state.merge(own);
      }
    }
    diagnostics_.about(nullptr);
  }

 private:
  // Grid tiles follow one another in the same threads, or there is none.
  void blocks(const Body& steps, SharedState& state) {
    const SharedState before = state;
    body(steps, state, false);
    state.forget_shifted();
    body(steps, state, false);
    state.merge(before);
  }
  // Some threads run the steps, others do not.
  void maybe(const Body& steps, SharedState& state) {
    SharedState taken = state;
    body(steps, taken, false);
    state.merge(taken);
  }
  void body(const Body& steps, SharedState& state, bool again) {
    const Step* before = nullptr;
    for (const Step& step : steps) {
      diagnostics_.about(&step);
      this->step(step, before, state, again);
      before = &step;
    }
  }

  void step(const Step& step, const Step* before, SharedState& state, bool again) {
    if (const Barrier* barrier = step.action.as<Barrier>()) {
      if (!barrier->again || again) state = {};
      return;
    }
    if (const NamedBarrier* barrier = step.action.as<NamedBarrier>()) {
      // All threads of the consumer group reach it, which check_roles verifies.
      if (!barrier->arrives) state = {};
      return;
    }
    if (step.action.is<ClusterBarrier>()) {
      state = {};
      return;
    }
    if (const Loop* loop = step.action.as<Loop>()) return this->loop(*loop, state);
    if (const TileLoop* tiles = step.action.as<TileLoop>()) return blocks(tiles->body, state);
    if (const Branch* branch = step.action.as<Branch>()) return maybe(branch->body, state);
    if (const IfConsumerGroup* one = step.action.as<IfConsumerGroup>()) return maybe(one->body, state);
    if (const PrefetchBeforeWait* some = step.action.as<PrefetchBeforeWait>()) return maybe(some->body, state);
    if (const IfFirstSplit* one = step.action.as<IfFirstSplit>()) return maybe(one->body, state);
    if (const IfInGrid* tile = step.action.as<IfInGrid>()) return maybe(tile->body, state);
    if (const ForEachPeer* each = step.action.as<ForEachPeer>()) return maybe(each->body, state);
    if (const CrossWarpReduce* partials = step.action.as<CrossWarpReduce>()) {
      body(partials->per_chunk, state, false);
      if (partials->registers > partials->chunk) body(partials->per_chunk, state, true);
      return;
    }
    const StoreScratch *put = step.action.as<StoreScratch>(),
                       *last = before ? before->action.as<StoreScratch>() : nullptr;
    const bool disjoint = put && last && put->scratch == last->scratch;
    // The exchange between warps of a reduction is in a body of its own.
    const bool holds = step.action.is<Reduce>() || step.action.is<Argmax>() || step.action.is<LaneReduce>();
    const std::vector<Effect> all = effects(plan_, *role_, step);
    for (const Effect& effect : all) {
      if (is_input(effect) || staged(effect) || (holds && effect.space == Effect::Space::scratch)) continue;
      diagnostics_.require(disjoint || !state.conflicts(plan_, effect), "a barrier is missing between it and {} of {}",
                           effect.write ? "uses" : "writes", what(effect));
    }
    for (const Effect& effect : all)
      if (!is_input(effect) && !(holds && effect.space == Effect::Space::scratch)) state.add(effect);
    each_body(step, [&](const Body& inner) { body(inner, state, again); });
  }

  void loop(const Loop& loop, SharedState& state) {
    Known& known = known_[loop.loop];
    for (const auto& [entry, exit] : known)
      if (entry == state) return state.merge(exit);
    const SharedState entry = state;
    std::vector<Effect> ahead;
    for (const Step& step : loop.ahead)
      for (const Effect& effect : effects(plan_, *role_, step))
        if (!is_input(effect)) ahead.push_back(effect);
    for (const Effect& effect : ahead)
      diagnostics_.require(!state.conflicts(plan_, effect),
                           "a barrier is missing between its first fetch and uses of {}", what(effect));
    for (const Effect& effect : ahead) state.add(effect);
    SharedState inside = state;
    for (int iteration = 0; iteration < 2; ++iteration) {
      for (const Step& step : loop.arrive)
        if (step.action.is<Barrier>()) inside = {};
      body(loop.body, inside, false);
      inside.forget_shifted();
      if (iteration == 0) inside.merge(state);
    }
    known_[loop.loop].emplace_back(entry, inside);
    state.merge(inside);
  }

  bool is_input(const Effect& effect) const {
    return effect.space == Effect::Space::tensor &&
           plan_.tensors[static_cast<std::size_t>(effect.index)].access == Access::in;
  }
  // Stages of a loop that fetches ahead are ordered by its iterations, which Copies checks; stages of pipelines by
  // their mbarriers.
  bool staged(const Effect& effect) const {
    if (effect.space != Effect::Space::buffer) return false;
    const BufferId buffer{effect.index};
    return plan_.buffers[buffer].stages > 1 || plan_.in_pipeline(buffer);
  }
  std::string what(const Effect& effect) const {
    if (effect.space == Effect::Space::tensor) return tensor_name(plan_, effect.index);
    return effect.space == Effect::Space::buffer ? name_of(plan_, BufferId{effect.index})
                                                 : fmt::format("scratch{}", effect.index);
  }

  using Known = std::vector<std::pair<SharedState, SharedState>>;
  Diagnostics& diagnostics_;
  const Plan& plan_;
  const Role* role_ = nullptr;
  std::map<LoopId, Known> known_;
};

/// Asynchronous copies must be issued, committed to a group, waited for, and made visible to all threads by a barrier,
/// in this order, before they are read.
class Copies {
 public:
  explicit Copies(Diagnostics& diagnostics) : diagnostics_(diagnostics), plan_(diagnostics.plan) {}

  void run() {
    for (const Phase& phase : plan_.phases)
      for (const Role& role : phase.roles) {
        body(role.body);
        diagnostics_.about(nullptr);
        diagnostics_.require(open_ == 0, "copies are in flight at the end of role {}", role.name);
      }
  }

 private:
  enum class State : std::uint8_t { issued, grouped, arrived };  // of a buffer; none: visible to all threads

  void body(const Body& steps) {
    for (const Step& step : steps) {
      if (step.action.is<Stamp>()) continue;  // anywhere
      diagnostics_.about(&step);
      visit_kind(Overloaded{
                     []<OfRoles T>(const T&) {},
                     []<OneOf<Compute, Load, Store, Atomic, StoreWarpPartials, ReduceWarpPartials, Scan,
                              WriteScanTotals, AddScanPrefix, Sort, Merge, HistogramUpdate, HistogramReduce,
                              StoreScratch, LoadScratch, GatherScratch, LoadFragment, HostReport>
                            T>(const T&) {},
                     [&]<OneOf<StoreShared, ZeroFill> T>(const T& s) { ready(s.buffer); },
                     [&]<OneOf<Reduce, Argmax, LaneReduce> T>(const T& s) { body(s.across); },
                     [&](const CrossWarpReduce& s) { body(s.per_chunk); },
                     [&](const Fetch& s) {
        for (const Fetch::Tile& tile : s.tiles) {
          if (s.loop) {  // a fetch ahead is handled with its loop, which waits for it
            diagnostics_.require(false, "it fetches for a loop, but is not in its `ahead` body");
            continue;
          }
          if (tile.copy == Fetch::Copy::async) ++open_;
          state_[tile.buffer] = tile.copy == Fetch::Copy::async ? State::issued : State::arrived;
        }
      },
                     [&](const CpAsyncCommit&) {
        for (auto& [buffer, state] : state_)
          if (state == State::issued) state = State::grouped;
      },
                     [&](const CpAsyncWait& s) {
        if (s.pending > 0) return diagnostics_.require(false, "a wait outside of a loop must be for all copies");
        for (auto& [buffer, state] : state_)
          if (state == State::grouped) {
            state = State::arrived;
            --open_;
          }
        draining_ = false;
      },
                     [&](const Mma& s) {
        for (const MatmulOperand* o : {&s.matmul.a, &s.matmul.b})
          if (o->buffer) ready(o->buffer);
      },
                     [&](const Barrier& s) {
        if (!s.again) seen();
      },
                     [&](const Loop& s) {
        if (s.stages > 1) pipelined(s);
        body(s.body);
        if (s.stages > 1) draining_ = true;
      },
                     [&](const Branch& s) { body(s.body); },
                     [&]<Condition T>(const T& s) { body(s.body); },
                 },
                 step.action);
      diagnostics_.about(&step);
      const bool is_drained = !draining_ || step.action.is<Loop>();
      diagnostics_.require(is_drained, "it begins while copies of the previous loop may be in flight");
      if (!is_drained) draining_ = false;
    }
    diagnostics_.require(!draining_, "its copies are not drained");
    draining_ = false;
  }

  void seen() {
    std::erase_if(state_, [](const auto& at) { return at.second == State::arrived; });
  }
  void ready(BufferId buffer) {
    const auto found = state_.find(buffer);
    if (found == state_.end()) return;
    constexpr std::string_view lacks[] = {"committed to a group", "waited for",
                                          "visible to all threads: a barrier is missing"};
    diagnostics_.require(false, "the copy to {} is not {}", name_of(plan_, buffer),
                         lacks[static_cast<int>(found->second)]);
  }

  void pipelined(const Loop& s) {
    int waits = 0, barriers = 0, stamps = 0, commits = 0, fetches = 0;
    for (const Step& step : s.arrive) {
      if (const CpAsyncWait* wait = step.action.as<CpAsyncWait>()) {
        ++waits;
        diagnostics_.require(wait->pending >= 0 && wait->pending <= s.stages - 2,
                             "it waits until {} groups are pending, but {} stages are in flight", wait->pending,
                             s.stages);
        diagnostics_.require(barriers == 0, "the barrier precedes the wait");
      }
      barriers += step.action.is<Barrier>();
      stamps += step.action.is<Stamp>();
    }
    diagnostics_.require(waits + barriers + stamps == std::ssize(s.arrive),
                         "an iteration must begin with only a wait and a barrier");
    if (barriers > 0) seen();
    for (const Step& step : s.issued) commits += step.action.is<CpAsyncCommit>();
    diagnostics_.require(waits == 1, "{} waits at the start of an iteration", waits);
    diagnostics_.require(barriers == 1, "{} barriers at the start of an iteration", barriers);
    diagnostics_.require(commits == 1, "{} groups of copies per iteration", commits);
    diagnostics_.require(commits == std::ssize(s.issued), "a fetch must be followed only by the commit of its group");
    for (const Step& step : s.ahead)
      if (const Fetch* fetch = step.action.as<Fetch>()) {
        ++fetches;
        diagnostics_.require(fetch->loop == s.loop, "it fetches for another loop");
      } else {
        diagnostics_.require(step.action.is<Compute>() || step.action.is<Stamp>(),
                             "only fetches and positions may be computed ahead");
      }
    diagnostics_.require(fetches == 1, "{} fetches ahead", fetches);
  }

  Diagnostics& diagnostics_;
  const Plan& plan_;
  std::map<BufferId, State> state_;
  int open_ = 0;
  bool draining_ = false;
};

}  // namespace

void check_sync(Diagnostics& diagnostics) {
  BarrierRules(diagnostics).run();
  Copies(diagnostics).run();
}

}  // namespace tessera::internal::codegen
