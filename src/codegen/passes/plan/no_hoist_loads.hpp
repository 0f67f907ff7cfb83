// Reads that would take more registers, if ptxas brought all of them forward, than a thread has.
#pragma once
#include <concepts>
#include <variant>

#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// What a step's threads read of inputs, each with its sweep; but not what they copy.
template <class Each>
void each_read(Step& step, const Each& each) {
  visit_kind([&]<class Kind>(Kind& kind) {
    if constexpr (requires { kind.sweep.reads; }) {
      for (TileAccess& read : kind.sweep.reads)
        if (read.read_only) each(kind.sweep, read);
      if constexpr (std::same_as<Kind, Load>)
        if (kind.access.read_only) each(kind.sweep, kind.access);
    }
  }, step.action);
}

/// Where one step follows another without a loop, and what they read takes more than the target's
/// `registers_of_reads`, inputs are read in the order of the steps.
void forbid_load_hoisting(Plan& plan);

}  // namespace tessera::internal::codegen
