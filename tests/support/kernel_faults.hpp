// Faults planted in the plans of small kernels, and helpers that break a plan.
#pragma once
#include <functional>
#include <span>
#include <stdexcept>
#include <vector>

#include "codegen/plan/plan.hpp"
#include "support/catch.hpp"
#include "support/plan_kernels.hpp"
#include "support/plan_steps.hpp"
#include "support/planted_faults.hpp"

namespace kernel_faults {

using namespace tessera::internal;
using namespace tessera::internal::codegen;

struct KernelFault {
  const char* name;
  const char* kernel;
  void (*plant)(Plan&);
  const char* words;  ///< part of one of the verifier's messages
};

inline Body& body_of(Plan& plan) { return plan.phases[0].roles[0].body; }

inline Value& value_of(Plan& plan, ValueId id) { return plan.values[id]; }

/// A layout whose factors are modified.
inline Layout edited(const Layout& layout, const std::function<void(std::vector<std::vector<Factor>>&)>& edit) {
  std::vector<std::vector<Factor>> axes;
  for (int axis = 0; axis < layout.rank(); ++axis) axes.push_back(layout.axis(axis));
  edit(axes);
  Layout made(static_cast<int>(axes.size()));
  for (int axis = 0; axis < made.rank(); ++axis)
    for (const Factor& factor : axes[static_cast<std::size_t>(axis)]) made.add(axis, factor);
  return made;
}

/// The nth step of a kind whose expression has an operand of a kind.
template <class Kind>
Kind& with_operand(Plan& plan, Operand::Kind kind) {
  for (const StepPlace& place : places_of<Kind>(plan)) {
    Kind& step = place.step().action.get<Kind>();
    for (const Term& term : step.sweep.expression.terms)
      for (const Operand& operand : term.in)
        if (operand.kind == kind) return step;
  }
  throw std::runtime_error("no expression has such an operand");
}

inline Operand literal(std::int64_t number) {
  Operand operand;
  operand.kind = Operand::Kind::literal;
  operand.literal = number;
  return operand;
}

inline Operand value(ValueId id) {
  Operand operand;
  operand.kind = Operand::Kind::value;
  operand.value = id;
  return operand;
}

inline Fetch::Tile& fetched(Plan& plan) { return the<Fetch>(plan).tiles.front(); }

inline Buffer& buffer_of(Plan& plan, int index = 0) { return plan.buffers[BufferId{index}]; }

inline void check(std::span<const KernelFault> faults) {
  for (const KernelFault& fault : faults) {
    INFO(fault.name << ", in " << fault.kernel);
    Plan plan = plan_of(fault.kernel);
    REQUIRE(violations(plan) == std::vector<std::string>{});
    check_reported(std::move(plan), fault.plant, fault.words);
  }
}

}  // namespace kernel_faults
