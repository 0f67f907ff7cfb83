#include "codegen/plan/steps.hpp"

namespace tessera::internal::codegen {

Action::Action(const Action& other) = default;
Action::Action(Action&& other) noexcept = default;
Action& Action::operator=(const Action& other) = default;
Action& Action::operator=(Action&& other) noexcept = default;
Action::~Action() = default;

Bodies bodies_of(Step& step) {
  Bodies found;
  const auto add = [&](auto&... bodies) { ((found.at[found.count++] = &bodies), ...); };
  std::visit(Overloaded{
                 []<Leaf T>(T&) {},
                 [&]<OneOf<Reduce, Argmax, Replicas> T>(T& reduction) { add(reduction.across); },
                 [&](Partials& partials) { add(partials.round); },
                 [&](Loop& loop) { add(loop.arrive, loop.ahead, loop.issued, loop.body); },
                 [&]<OneOf<Branch, Elected, OfTeam, OfPart, EachPart, TileLoop, BringAhead, UnlessBrought> T>(T& s) {
    add(s.body);
  },
             },
             step.action);
  return found;
}

}  // namespace tessera::internal::codegen
