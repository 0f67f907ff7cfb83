#include "codegen/lower/wishes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "codegen/plan/budget.hpp"
#include "codegen/plan/remarks.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal::lowering {
namespace {

constexpr int most_warps = 32;

// Of loops that fetch ahead, and of rings.
void find_stages(const Body& steps, std::set<int>& found) {
  for (const Step& step : steps) {
    if (const Loop* const loop = step.action.as<Loop>(); loop && loop->stages > 1) found.insert(loop->stages);
    each_body(step, [&](const Body& inner) { find_stages(inner, found); });
  }
}

bool is_arch(const std::string& name) {
  try {
    Arch::parse(name);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

int wished_warps(const Hints& hints) {
  const bool has =
      hints.warps >= 1 && hints.warps <= most_warps && std::has_single_bit(static_cast<unsigned>(hints.warps));
  return has ? hints.warps : 0;
}

int wished_blocks(const Facts& facts, const Plan& plan, bool has_products, int needed) {
  const int blocks = facts.hints.occupancy, threads = plan.threads();
  if (blocks < 1 || blocks > std::min(facts.target.threads / threads, facts.target.resident_blocks)) return 0;
  return Budget(facts.target, threads, has_products).holds(blocks, needed) ? blocks : 0;
}

void note_wishes(const Facts& facts, Plan& plan) {
  const Hints& hints = facts.hints;
  const auto note = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    add_remark(plan, plan.location, Remark::Status::missed, remark_kind::hint, format, std::forward<Args>(args)...);
  };
  for (const Hints& one : facts.graph.hints)
    if (!one.arch.empty() && !is_arch(one.arch)) note("there is no architecture {}", one.arch);
  const std::vector<Role>& roles = plan.phases[0].roles;
  const int warps = plan.threads() / 32;
  if (hints.warps && hints.warps != warps) {
    if (roles.size() > 1)
      note("{} warps, as roles share the work of {}", hints.warps, warps);
    else if (!wished_warps(hints))
      note("{} warps; a block has 1, 2, 4, ... {}", hints.warps, most_warps);
    else
      note("{} warps; its tiles take {}", hints.warps, warps);
  }
  std::set<int> stages;
  for (const Role& role : roles) find_stages(role.body, stages);
  for (const Ring& ring : plan.rings) stages.insert(ring.stages);
  if (hints.stages && stages.empty() && hints.stages != 1) note("{} stages; no loop fetches ahead", hints.stages);
  for (const int has : stages)
    if (hints.stages && has != hints.stages) note("{} stages; a loop has {}", hints.stages, has);
  if (hints.occupancy && hints.occupancy != plan.blocks)
    note("{} blocks of a multiprocessor; {}", hints.occupancy,
         roles.size() > 1 ? std::string("of roles it has one")
                          : fmt::format("threads have registers for {}, or no more fit", plan.blocks));
  if (hints.cluster > 1 && plan.phases[0].schedule.sharing != Sharing::cluster)
    note("a cluster of {}; no cluster shares the rounds of this plan", hints.cluster);
}

}  // namespace tessera::internal::lowering
