#include "tessera/graph/hints.hpp"

#include <fmt/format.h>

namespace tessera::internal {

std::string to_string(const Hints& hints) {
  std::string text;
  const auto add = [&](std::string_view name, const auto& value) {
    fmt::format_to(std::back_inserter(text), "{}{} {}", text.empty() ? "" : ", ", name, value);
  };
  if (hints.warps) add("warps", hints.warps);
  if (hints.stages) add("stages", hints.stages);
  if (hints.cluster) add("cluster", hints.cluster);
  if (hints.occupancy) add("occupancy", hints.occupancy);
  if (hints.deterministic) text += text.empty() ? "deterministic" : ", deterministic";
  if (!hints.launch_dependents) add("launch_dependents", false);
  if (!hints.arch.empty()) add("arch", hints.arch);
  return text;
}

Hints hints_for(const std::vector<Hints>& all, std::string_view arch) {
  Hints result;
  for (const Hints& one : all) {
    const bool generic = arch.substr(0, one.arch.size()) == one.arch && arch.size() == one.arch.size() + 1 &&
                         (arch.back() < '0' || arch.back() > '9');  // hints for sm_90 also apply to sm_90a
    if (!one.arch.empty() && one.arch != arch && !generic) continue;
    for (const auto field : {&Hints::warps, &Hints::stages, &Hints::cluster, &Hints::occupancy})
      if (one.*field) result.*field = one.*field;
    result.deterministic |= one.deterministic;
    result.launch_dependents &= one.launch_dependents;
  }
  return result;
}

}  // namespace tessera::internal
