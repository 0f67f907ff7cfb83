// The parts of the plan's verifier (verify_plan.hpp).
#pragma once
#include <fmt/format.h>

#include <iterator>
#include <set>

#include "codegen/plan/effects.hpp"
#include "codegen/plan/names.hpp"
#include "codegen/plan/plan_text.hpp"
#include "codegen/plan/verify/verify_plan.hpp"

namespace tessera::internal::codegen {

/// Sentences about a plan, as they are found.
class Diagnostics {
 public:
  explicit Diagnostics(const Plan& plan) : plan(plan) {}

  /// The step that what follows is about; nullptr: the plan.
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

/// The places in tensors that a step names: calls each(access, the sweep it is part of or nullptr).
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

/// Bits of the lanes or warps that a layout spreads an axis over.
inline int bits_along(const Layout& layout, int axis, Place place) {
  int bits = 0;
  for (const Factor& factor : layout.axis(axis))
    if (factor.place == place) bits |= (factor.size - 1) * factor.unit;
  return bits;
}

/// verify_ids.cpp: every id and every index names something; everything is named once. Returns false if a plan cannot
/// be looked at further.
bool check_ids(Diagnostics& diagnostics);
/// verify_values.cpp: layouts against shapes, expressions, and values that are there where they are named.
void check_values(Diagnostics& diagnostics);
/// verify_sort.cpp: chunks of lines that are sorted, and copies of counts.
void check_sorts(Diagnostics& diagnostics);
/// verify_access.cpp: places in tensors, products and their buffers.
void check_accesses(Diagnostics& diagnostics);
/// verify_contents.cpp: memory is filled before it is read, and sums are whole.
void check_contents(Diagnostics& diagnostics);
/// verify_memory.cpp: offsets, and what is in use at the same time.
void check_memory(Diagnostics& diagnostics);
/// verify_sync.cpp: barriers, and copies that are waited for.
void check_sync(Diagnostics& diagnostics);
/// verify_pipelines.cpp: pipelines, tensors that the copy engine is told of, and panels; and what stands ahead of
/// roles.
void check_pipelines(Diagnostics& diagnostics);
void check_prologue(Diagnostics& diagnostics, const Phase& phase);
/// verify_prefetch.cpp: what a phase's roles do before launches before have ended.
void check_prefetch(Diagnostics& diagnostics, const Phase& phase);
/// verify_roles.cpp: stages of pipelines, groups of wgmma and of stores, proxies, and barriers of roles at work at the
/// same time.
void check_roles(Diagnostics& diagnostics);
/// verify_ordered_barriers.cpp: warp groups that take turns each wait for one and give it on.
void check_ordered_barriers(Diagnostics& diagnostics);
/// verify_launch.cpp: roles, phases, and the kernel's parameters.
void check_launch(Diagnostics& diagnostics);

}  // namespace tessera::internal::codegen
