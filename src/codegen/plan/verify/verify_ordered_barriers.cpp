#include <map>

#include "codegen/plan/verify/verify.hpp"

namespace tessera::internal::codegen {
namespace {

class OrderedBarrierCheck {
 public:
  OrderedBarrierCheck(Diagnostics& diagnostics, const Role& role) : diagnostics_(diagnostics), role_(role) {}

  void run() {
    body(role_.body, true, false);
    diagnostics_.about(nullptr);
    for (const auto& [id, begun] : begun_)
      diagnostics_.require(begun == 1, "turns at named barrier {} begin {} times in role {}", id, begun, role_.name);
  }
  /// Named barriers at which warp groups take turns, and those of all threads of a consumer group.
  std::set<int> turns, others;

 private:
  // All warp groups run a body equally often, except one that only some threads run (!all). in_turn: within a turn.
  void body(const Body& steps, bool all, bool in_turn) {
    bool has_ordered_barrier = false;
    for (const Step& step : steps) {
      diagnostics_.about(&step);
      if (const auto* const turn = step.action.as<OrderedBarrier>()) take(*turn, all, has_ordered_barrier);
      if (const auto* const barrier = step.action.as<NamedBarrier>())
        for (int consumer_group = 0; consumer_group < role_.consumer_groups; ++consumer_group)
          others.insert(barrier->id + consumer_group);
      diagnostics_.require(!(in_turn || has_ordered_barrier) || !step.action.is<Barrier>(),
                           "other warp groups cannot reach it before their turn");
      const bool some = step.action.is<ElectOne>() || step.action.is<IfConsumerGroup>();
      each_body(step, [&](const Body& inner) { body(inner, all && !some, in_turn || has_ordered_barrier); });
    }
    diagnostics_.require(!has_ordered_barrier, "a turn is not passed on before the body ends");
  }
  void take(const OrderedBarrier& turn, bool all, bool& has_ordered_barrier) {
    const int groups = role_.warps / 4;
    diagnostics_.require(all && role_.consumer_groups == 1 && groups > 1 && role_.warps % 4 == 0,
                         "the role has no warp groups that can take turns");
    diagnostics_.require(turn.id >= 1 && turn.id + groups <= 16, "there is no named barrier {}", turn.id + groups - 1);
    for (int group = 0; group < groups; ++group) turns.insert(turn.id + group);
    if (turn.kind == OrderedBarrier::Kind::begin) {
      ++begun_[turn.id];
      return;
    }
    diagnostics_.require(begun_[turn.id] > 0, "no turn has begun");
    const bool waits = turn.kind == OrderedBarrier::Kind::wait;
    diagnostics_.require(waits != has_ordered_barrier, "it is {}the warp group's turn", waits ? "already " : "not ");
    has_ordered_barrier = waits;
  }

  Diagnostics& diagnostics_;
  const Role& role_;
  std::map<int, int> begun_;  // by named barrier
};

}  // namespace

void check_ordered_barriers(Diagnostics& diagnostics) {
  for (const Phase& phase : diagnostics.plan.phases) {
    std::set<int> turns, others;
    for (const Role& role : phase.roles) {
      OrderedBarrierCheck check(diagnostics, role);
      check.run();
      for (const int id : check.turns)
        diagnostics.require(turns.insert(id).second, "two roles take turns at named barrier {}", id);
      others.merge(check.others);
      if (role.barrier) others.insert(role.barrier);
    }
    for (const int id : turns)
      diagnostics.require(!others.contains(id), "named barrier {} is not only used for turns", id);
  }
}

}  // namespace tessera::internal::codegen
