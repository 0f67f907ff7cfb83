// The checks of the plan verifier (verify_plan.hpp).
#pragma once
#include <fmt/format.h>

#include <iterator>
#include <set>

#include "codegen/plan/effects.hpp"
#include "codegen/plan/names.hpp"
#include "codegen/plan/plan_text.hpp"
#include "codegen/plan/verify/verify_plan.hpp"

namespace tessera::internal::codegen {

/// Violations found in a plan, as sentences.
class Diagnostics {
 public:
  explicit Diagnostics(const Plan& plan) : plan(plan) {}

  /// The step that later messages are about; nullptr: the plan.
  void about(const Step* step) { step_ = step; }
  template <class... Args>
  void require(bool holds, fmt::format_string<Args...> format, Args&&... args) {
    if (holds) return;
    std::string text = step_ ? step_text(plan, *step_) + ": " : std::string();
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
    found.push_back(std::move(text));
  }

  const Plan& plan;
  std::vector<std::string> found;

 private:
  const Step* step_ = nullptr;
};

/// Calls each(access, the sweep it is part of or nullptr) for each tensor access of a step.
template <class Each>
void each_access(const Step& step, const Each& each) {
  const Sweep* const sweep = sweep_of(step);
  if (sweep)
    for (const TileAccess& read : sweep->reads) each(read, sweep);
  visit_kind([&]<class Kind>(const Kind& kind) {
    if constexpr (requires { kind.access; }) each(kind.access, sweep);
    if constexpr (requires { kind.tiles; })
      for (const auto& tile : kind.tiles) each(tile.access, nullptr);
  }, step.action);
}

/// verify_ids.cpp: every id and every index is valid, and names are unique. Returns false if the plan cannot be checked
/// further.
bool check_ids(Diagnostics& diagnostics);
/// verify_values.cpp: layouts against shapes, expressions, and values defined before they are used.
void check_values(Diagnostics& diagnostics);
/// verify_sort.cpp: chunks of sorted lines, and copies of histogram counts.
void check_sorts(Diagnostics& diagnostics);
/// verify_access.cpp: tensor accesses, matmuls and their buffers.
void check_accesses(Diagnostics& diagnostics);
/// verify_contents.cpp: memory is written before it is read, and partial sums are reduced.
void check_contents(Diagnostics& diagnostics);
/// verify_memory.cpp: offsets, and overlap of memory that is live at the same time.
void check_memory(Diagnostics& diagnostics);
/// verify_sync.cpp: barriers, and waits for asynchronous copies.
void check_sync(Diagnostics& diagnostics);
/// verify_pipelines.cpp: pipelines, tensor maps, and panels; and the prologue before the roles.
void check_pipelines(Diagnostics& diagnostics);
void check_prologue(Diagnostics& diagnostics, const Phase& phase);
/// verify_prefetch.cpp: what the roles of a phase do before the grid dependency wait.
void check_prefetch(Diagnostics& diagnostics, const Phase& phase);
/// verify_multicast.cpp: clusters whose CTAs load operands for each other.
void check_multicast(Diagnostics& diagnostics);
/// verify_roles.cpp: pipeline stages, groups of wgmma and of stores, proxy fences, and barriers of concurrent roles.
void check_roles(Diagnostics& diagnostics);
/// verify_ordered_barriers.cpp: warp groups that take turns wait for their turn and pass it on.
void check_ordered_barriers(Diagnostics& diagnostics);
/// verify_launch.cpp: roles, phases, and the kernel's parameters.
void check_launch(Diagnostics& diagnostics);

}  // namespace tessera::internal::codegen
