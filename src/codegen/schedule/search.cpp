#include "codegen/schedule/search.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::internal::lowering {

Location place_of_matmul(const GraphAnalysis& analysis) {
  const Id matmul = first_matmul(analysis);
  return matmul == no_id ? analysis.graph.location : analysis[matmul].location;
}

ScheduleSearch::ScheduleSearch(const GraphAnalysis& analysis, bool debug, SearchHistory before,
                               SearchedPatterns patterns)
    : analysis_(analysis), before_(std::move(before.log)), refusal_(std::move(before.refusal)) {
  for (const SchedulePattern& pattern : schedule_patterns()) {
    ScheduleMatch match = pattern.match(analysis, debug);
    if (refusal_.why.empty() && !match.why_not.empty()) {
      // The reason for one operand, said of the other, is no news.
      const std::string& why = before.why_not_swapped;
      const bool same = why.starts_with("the left") && match.why_not.ends_with(why.substr(std::size("the left") - 1));
      if (match.swappable && !why.empty() && !same)
        match.why_not += fmt::format("; with its operands swapped, {}", before.why_not_swapped);
      refusal_ = {std::move(match.why_not),
                  match.where == no_id ? place_of_matmul(analysis) : analysis[match.where].location};
    }
    if (why_not_split_.empty()) why_not_split_ = std::move(match.why_not_split);
    for (auto& schedule : match.candidates)
      if (patterns == SearchedPatterns::all || schedule->is_warp_specialized())
        candidates_.push_back({pattern.name, std::move(schedule)});
  }
  if (has_current() && current().is_warp_specialized()) refusal_ = {};  // another pattern's
}

void ScheduleSearch::reject(Refusal refusal) {
  candidates_[at_].rejected = refusal.why;
  if (current().is_warp_specialized()) refusal_ = std::move(refusal);
  ++at_;
}

void ScheduleSearch::restart() {
  for (Candidate& candidate : candidates_) candidate.rejected.clear();
  at_ = 0;
}

std::vector<std::string> ScheduleSearch::log() const {
  std::vector<std::string> lines = before_;
  for (std::size_t i = 0; i < std::min(at_ + 1, candidates_.size()); ++i) {
    const Candidate& of = candidates_[i];
    const std::string text =
        fmt::format("{}, {} of {}: {}", of.pattern, i + 1, candidates_.size(), of.schedule->text(analysis_));
    lines.push_back(i == at_ ? "schedule " + text : fmt::format("rejected {}: {}", text, of.rejected));
  }
  return lines;
}

}  // namespace tessera::internal::lowering
