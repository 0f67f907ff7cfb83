// Reads that would take more registers than a thread has, if ptxas hoisted all of them.
#pragma once
#include <concepts>
#include <variant>

#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// Visits the reads of inputs by a step's threads, each with its sweep; but not copies to shared memory.
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

/// In a sequence of steps without a loop whose reads take more registers than the target's `registers_of_reads`, inputs
/// are read in the order of the steps.
void forbid_load_hoisting(Plan& plan);

}  // namespace tessera::internal::codegen
