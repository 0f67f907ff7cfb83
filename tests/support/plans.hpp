// Plans of traced kernels, and how their matmuls run.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "codegen/make_plan.hpp"
#include "codegen/passes.hpp"
#include "codegen/plan/remarks.hpp"

using Changes = std::function<void(tessera::internal::Variant&)>;

/// The plan of a kernel as traced, for dense tensors unless `change` says otherwise; the verifier runs after every pass.
inline tessera::internal::codegen::Plan plan_with(const tessera::internal::Graph& traced, const Changes& change = {},
                                                tessera::internal::Arch arch = tessera::internal::Arch::sm_90a) {
  const tessera::internal::Graph graph = tessera::internal::run_passes(traced);
  tessera::internal::Variant variant = tessera::internal::dense_variant(graph);
  if (change) change(variant);
  return tessera::internal::codegen::make_plan(graph, variant, arch, {.verify = true});
}

inline bool has_roles(const tessera::internal::codegen::Plan& plan) { return plan.phases[0].roles.size() > 1; }

/// Why a kernel has a single role; nothing if it has several.
inline std::string why_not(const tessera::internal::codegen::Plan& plan) {
  if (has_roles(plan)) return {};
  for (const std::string& note : notes(plan))
    if (constexpr std::string_view prefix = "not warp-specialized: "; note.starts_with(prefix))
      return note.substr(prefix.size());
  return "(no note)";
}
