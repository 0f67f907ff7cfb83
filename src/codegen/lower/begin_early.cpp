#include "codegen/lower/begin_early.hpp"

#include <algorithm>
#include <variant>

namespace tessera::codegen {
namespace {

void read_behind_wait(Body& steps) {
  for (Step& step : steps) {
    each_body(step, read_behind_wait);
    std::visit([]<class Kind>(Kind& kind) {
      if constexpr (requires { kind.sweep.reads; })
        for (TileAccess& read : kind.sweep.reads) read.in_order = read.read_only;
      if constexpr (requires { kind.access.read_only; }) kind.access.in_order = kind.access.read_only;
    }, step.action);
  }
}

// Copied by plain loads, which the compiler may bring forward.
bool copies_by_threads(const Body& steps) {
  return std::ranges::any_of(steps, [](const Step& step) {
    bool found = false;
    if (const Fetch* const fetch = std::get_if<Fetch>(&step.action))
      found = std::ranges::any_of(fetch->tiles, [](const auto& tile) { return tile.copy != Fetch::Copy::async; });
    each_body(step, [&](const Body& inner) { found |= copies_by_threads(inner); });
    return found;
  });
}

}  // namespace

void begin_early(Plan& plan) {
  if (!plan.target.begins_early) return;
  for (const Phase& phase : plan.phases)
    for (const Role& role : phase.roles)
      if (copies_by_threads(role.body)) return;
  for (Phase& phase : plan.phases)
    for (Role& role : phase.roles) read_behind_wait(role.body);
  // Behind it comes the barrier that ends a prologue.
  Body& prologue = plan.phases.front().prologue;
  prologue.insert(prologue.empty() ? prologue.end() : prologue.end() - 1, {{LetNextBegin{}}, {WaitForPrevious{}}});
}

}  // namespace tessera::codegen
