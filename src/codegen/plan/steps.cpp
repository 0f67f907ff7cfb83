#include "codegen/plan/steps.hpp"

namespace tessera::internal::codegen {

Action::Action(const Action& other) = default;
Action::Action(Action&& other) noexcept = default;
Action& Action::operator=(const Action& other) = default;
Action& Action::operator=(Action&& other) noexcept = default;
Action::~Action() = default;

}  // namespace tessera::internal::codegen
