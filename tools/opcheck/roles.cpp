#include "opcheck/roles.hpp"

#include <fmt/format.h>

#include "codegen/make_plan.hpp"
#include "codegen/passes.hpp"
#include "codegen/plan/remarks.hpp"
#include "opcheck/memory.hpp"

namespace tessera::internal::opcheck {

Verdict check_roles(const Case& each) {
  if (!each.why_no_roles) return {};
  const Graph graph = run_passes(each.graph);
  const Variant variant = classify(graph, HostTensors(each).arguments());
  const codegen::Plan plan = codegen::make_plan(graph, variant, Arch::sm_90a, {.verify = false});
  constexpr std::string_view note_of_one = "not warp-specialized: ";
  std::string why = plan.phases[0].roles.size() > 1 ? "" : "(no note)";
  for (const std::string& note : notes(plan))
    if (note.starts_with(note_of_one)) why = note.substr(note_of_one.size());
  if (why == *each.why_no_roles) return {};
  const auto said = [](const std::string& why) { return why.empty() ? "roles" : fmt::format("no roles, as {}", why); };
  return fmt::format("for sm_90a it has {}; expected: {}", said(why), said(*each.why_no_roles));
}

}  // namespace tessera::internal::opcheck
