#include <map>

#include "codegen/plan/verify.hpp"

namespace tessera::internal::codegen {
namespace {

class TurnCheck {
 public:
  TurnCheck(Findings& findings, const Role& role) : findings_(findings), role_(role) {}

  void run() {
    body(role_.body, true, false);
    findings_.about(nullptr);
    for (const auto& [id, begun] : begun_)
      findings_.require(begun == 1, "turns at barrier {} begin {} times in role {}", id, begun, role_.name);
  }
  /// Barriers at which groups take turns, and those of all threads of a team.
  std::set<int> turns, others;

 private:
  // All groups run a body as often as each other, but for one that not all threads run; in a turn, or not.
  void body(const Body& steps, bool all, bool in_turn) {
    bool has_turn = false;
    for (const Step& step : steps) {
      findings_.about(&step);
      if (const auto* const turn = step.action.as<Turn>()) take(*turn, all, has_turn);
      if (const auto* const barrier = step.action.as<NamedBarrier>())
        for (int team = 0; team < role_.teams; ++team) others.insert(barrier->id + team);
      findings_.require(!(in_turn || has_turn) || !step.action.is<Barrier>(),
                        "the groups that come to it wait for their turn");
      const bool some = step.action.is<Elected>() || step.action.is<OfTeam>();
      each_body(step, [&](const Body& inner) { body(inner, all && !some, in_turn || has_turn); });
    }
    findings_.require(!has_turn, "a turn is not given on before the round ends");
  }
  void take(const Turn& turn, bool all, bool& has_turn) {
    const int groups = role_.warps / 4;
    findings_.require(all && role_.teams == 1 && groups > 1 && role_.warps % 4 == 0, "no warp groups take turns");
    findings_.require(turn.id >= 1 && turn.id + groups <= 16, "there is no barrier {}", turn.id + groups - 1);
    for (int group = 0; group < groups; ++group) turns.insert(turn.id + group);
    if (turn.kind == Turn::Kind::begin) {
      ++begun_[turn.id];
      return;
    }
    findings_.require(begun_[turn.id] > 0, "no turn has begun");
    const bool waits = turn.kind == Turn::Kind::wait;
    findings_.require(waits != has_turn, "it is {}the group's turn", waits ? "already " : "not ");
    has_turn = waits;
  }

  Findings& findings_;
  const Role& role_;
  std::map<int, int> begun_;  // by barrier
};

}  // namespace

void check_turns(Findings& findings) {
  for (const Phase& phase : findings.plan.phases) {
    std::set<int> turns, others;
    for (const Role& role : phase.roles) {
      TurnCheck check(findings, role);
      check.run();
      for (const int id : check.turns)
        findings.require(turns.insert(id).second, "two roles take turns at barrier {}", id);
      others.merge(check.others);
      if (role.barrier) others.insert(role.barrier);
    }
    for (const int id : turns) findings.require(!others.contains(id), "barrier {} is not of turns alone", id);
  }
}

}  // namespace tessera::internal::codegen
