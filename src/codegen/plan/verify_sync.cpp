// Barriers, and copies that are waited for.
#include <map>

#include "codegen/plan/shared_state.hpp"
#include "codegen/plan/verify.hpp"

namespace tessera::internal::codegen {
namespace {

/// Steps are followed with what threads have done since the last barrier. Loops are followed twice.
class BarrierRules {
 public:
  explicit BarrierRules(Findings& findings) : findings_(findings), plan_(findings.plan) {}

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
    findings_.about(nullptr);
  }

 private:
  // They follow one another in the same threads, or there is none.
  void blocks(const Body& steps, SharedState& state) {
    const SharedState before = state;
    body(steps, state, false);
    state.forget_shifted();
    body(steps, state, false);
    state.merge(before);
  }
  // Some threads do, some do not.
  void maybe(const Body& steps, SharedState& state) {
    SharedState taken = state;
    body(steps, taken, false);
    state.merge(taken);
  }
  void body(const Body& steps, SharedState& state, bool again) {
    const Step* before = nullptr;
    for (const Step& step : steps) {
      findings_.about(&step);
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
      // All of the role's team come to it: check_roles sees to that.
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
    if (const OfTeam* one = step.action.as<OfTeam>()) return maybe(one->body, state);
    if (const BringAhead* some = step.action.as<BringAhead>()) return maybe(some->body, state);
    if (const OfPart* one = step.action.as<OfPart>()) return maybe(one->body, state);
    if (const EachPart* each = step.action.as<EachPart>()) return maybe(each->body, state);
    if (const Partials* partials = step.action.as<Partials>()) {
      body(partials->round, state, false);
      if (partials->registers > partials->chunk) body(partials->round, state, true);
      return;
    }
    const Put *put = step.action.as<Put>(), *last = before ? before->action.as<Put>() : nullptr;
    const bool disjoint = put && last && put->scratch == last->scratch;
    // What warps of a reduction do among themselves stands in a body of its own.
    const bool holds = step.action.is<Reduce>() || step.action.is<Argmax>() || step.action.is<Replicas>();
    const std::vector<Effect> all = effects(plan_, *role_, step);
    for (const Effect& effect : all) {
      if (is_input(effect) || staged(effect) || (holds && effect.space == Effect::Space::scratch)) continue;
      findings_.require(disjoint || !state.conflicts(plan_, effect), "there is no barrier between it and {} of {}",
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
      findings_.require(!state.conflicts(plan_, effect), "there is no barrier between its first fetch and uses of {}",
                        what(effect));
    for (const Effect& effect : ahead) state.add(effect);
    SharedState inside = state;
    for (int round = 0; round < 2; ++round) {
      for (const Step& step : loop.arrive)
        if (step.action.is<Barrier>()) inside = {};
      body(loop.body, inside, false);
      inside.forget_shifted();
      if (round == 0) inside.merge(state);
    }
    known_[loop.loop].emplace_back(entry, inside);
    state.merge(inside);
  }

  bool is_input(const Effect& effect) const {
    return effect.space == Effect::Space::tensor &&
           plan_.tensors[static_cast<std::size_t>(effect.index)].access == Access::in;
  }
  // Stages of a loop that fetches ahead are ordered by its rounds: Copies looks at those; and those of rings by theirs.
  bool staged(const Effect& effect) const {
    if (effect.space != Effect::Space::buffer) return false;
    const BufferId buffer{effect.index};
    return plan_.buffers[buffer].stages > 1 || plan_.in_ring(buffer);
  }
  std::string what(const Effect& effect) const {
    if (effect.space == Effect::Space::tensor) return tensor_name(plan_, effect.index);
    return effect.space == Effect::Space::buffer ? name_of(plan_, BufferId{effect.index})
                                                 : fmt::format("scratch{}", effect.index);
  }

  using Known = std::vector<std::pair<SharedState, SharedState>>;
  Findings& findings_;
  const Plan& plan_;
  const Role* role_ = nullptr;
  std::map<LoopId, Known> known_;
};

/// Asynchronous copies: issued, in a group, waited for, and seen by all threads; in this order before they are read.
class Copies {
 public:
  explicit Copies(Findings& findings) : findings_(findings), plan_(findings.plan) {}

  void run() {
    for (const Phase& phase : plan_.phases)
      for (const Role& role : phase.roles) {
        body(role.body);
        findings_.about(nullptr);
        findings_.require(open_ == 0, "copies are under way at the end of role {}", role.name);
      }
  }

 private:
  enum class State : std::uint8_t { issued, grouped, arrived };  // of a buffer; none: seen by all

  void body(const Body& steps) {
    for (const Step& step : steps) {
      findings_.about(&step);
      visit_kind(
          Overloaded{
              []<OneOf<Compute, Load, Store, Atomic, PutPartials, TakePartials, Scan, PutTotals, AddTotals, Sort, Merge,
                       CountNumbers, AddCounts, Put, Get,
                       ReadStage, Tell, SetRegisters, PrefetchMap, InitRing, ClearRest, ClearBeyond, Acquire, Expect,
                       TmaLoad, Arrive, WaitFull, Release, Advance, Reserve, RegisterFence, WgmmaFence, Wgmma,
                       CommitWgmma, WaitWgmma, ProxyFence, TmaStore, CommitStores, WaitStores, NamedBarrier,
                       WaitForPrevious, LetNextBegin, ShareRounds, PutPart, AddParts, ClusterBarrier, TellPart,
                       AwaitPart,
                       WarpBarrier, Turn>
                     T>(const T&) {},
              [&]<OneOf<Stage, Clear> T>(const T& s) { ready(s.buffer); },
              [&]<OneOf<Reduce, Argmax, Replicas> T>(const T& s) { body(s.across); },
              [&](const Partials& s) { body(s.round); },
              [&](const Fetch& s) {
        for (const Fetch::Tile& tile : s.tiles) {
          if (s.loop) {  // one that is ahead is seen with its loop, which says when it has arrived
            findings_.require(false, "it fetches for a loop, and is not ahead of it");
            continue;
          }
          if (tile.copy == Fetch::Copy::async) ++open_;
          state_[tile.buffer] = tile.copy == Fetch::Copy::async ? State::issued : State::arrived;
        }
      },
              [&](const Commit&) {
        for (auto& [buffer, state] : state_)
          if (state == State::issued) state = State::grouped;
      },
              [&](const Wait& s) {
        if (s.pending > 0) return findings_.require(false, "a wait outside of a loop is for all copies");
        for (auto& [buffer, state] : state_)
          if (state == State::grouped) {
            state = State::arrived;
            --open_;
          }
        draining_ = false;
      },
              [&](const Multiply& s) {
        for (const ProductOperand* o : {&s.product.a, &s.product.b})
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
              [&]<OneOf<Branch, Elected, OfTeam, OfPart, EachPart, TileLoop, BringAhead, UnlessBrought> T>(const T& s) {
        body(s.body);
      },
          },
          step.action);
      findings_.about(&step);
      const bool is_drained = !draining_ || step.action.is<Loop>();
      findings_.require(is_drained, "it begins while copies of the loop before may be under way");
      if (!is_drained) draining_ = false;
    }
    findings_.require(!draining_, "its copies are not drained");
    draining_ = false;
  }

  void seen() {
    std::erase_if(state_, [](const auto& at) { return at.second == State::arrived; });
  }
  void ready(BufferId buffer) {
    const auto found = state_.find(buffer);
    if (found == state_.end()) return;
    constexpr std::string_view lacks[] = {"in a group", "waited for", "seen by all threads: there is no barrier"};
    findings_.require(false, "the copy to {} is not {}", name_of(plan_, buffer),
                      lacks[static_cast<int>(found->second)]);
  }

  void pipelined(const Loop& s) {
    int waits = 0, barriers = 0, commits = 0, fetches = 0;
    for (const Step& step : s.arrive) {
      if (const Wait* wait = step.action.as<Wait>()) {
        ++waits;
        findings_.require(wait->pending >= 0 && wait->pending <= s.stages - 2,
                          "it waits until {} groups are pending, and {} rounds are under way", wait->pending, s.stages);
        findings_.require(barriers == 0, "the barrier stands before the wait");
      }
      barriers += step.action.is<Barrier>();
    }
    findings_.require(waits + barriers == std::ssize(s.arrive), "a round begins with a wait and a barrier alone");
    if (barriers > 0) seen();
    for (const Step& step : s.issued) commits += step.action.is<Commit>();
    findings_.require(waits == 1, "{} waits at the top of a round", waits);
    findings_.require(barriers == 1, "{} barriers at the top of a round", barriers);
    findings_.require(commits == 1, "{} groups of copies a round", commits);
    findings_.require(commits == std::ssize(s.issued), "a fetch is followed by the end of its group alone");
    for (const Step& step : s.ahead)
      if (const Fetch* fetch = step.action.as<Fetch>()) {
        ++fetches;
        findings_.require(fetch->loop == s.loop, "it fetches for another loop");
      } else {
        findings_.require(step.action.is<Compute>(), "more than places is made ahead");
      }
    findings_.require(fetches == 1, "{} fetches ahead", fetches);
  }

  Findings& findings_;
  const Plan& plan_;
  std::map<BufferId, State> state_;
  int open_ = 0;
  bool draining_ = false;
};

}  // namespace

void check_sync(Findings& findings) {
  BarrierRules(findings).run();
  Copies(findings).run();
}

}  // namespace tessera::internal::codegen
