// The search for a kernel's schedule: candidates of all patterns, the best first. The first one that suits is taken.
#pragma once
#include "codegen/schedule/kernel_schedule.hpp"

namespace tessera::internal::lowering {

/// The author's place of the first matmul, or of the kernel if it has none.
Location place_of_matmul(const GraphAnalysis& analysis);

/// The results of a search without success, for a search of another form of the same kernel.
struct SearchHistory {
  std::vector<std::string> log = {};
  Refusal refusal = {};
  std::string why_not_swapped = {};  ///< why its matmuls cannot be done with swapped operands
};

/// The patterns whose schedules suit a form of a kernel.
enum class SearchedPatterns : std::uint8_t { all, warp_specialized };

class ScheduleSearch {
 public:
  ScheduleSearch(const GraphAnalysis& analysis, bool debug, SearchHistory before = {},
                 SearchedPatterns patterns = SearchedPatterns::all);

  /// Are there candidates left?
  bool has_current() const { return at_ < candidates_.size(); }
  const KernelSchedule& current() const { return *candidates_[at_].schedule; }
  bool is_last() const { return at_ + 1 == candidates_.size(); }
  /// Goes on to the next candidate.
  void reject(Refusal refusal);
  /// Goes back to the first candidate.
  void restart();

  /// Why no preferred schedule was taken, as far as is known: for a remark. Reasons of patterns come first, then that
  /// of the candidate rejected last.
  const Refusal& refusal() const { return refusal_; }
  const std::string& why_not_split() const { return why_not_split_; }
  /// A line for each candidate that was tried: the rejected ones with their reasons, then the current one.
  std::vector<std::string> log() const;
  SearchHistory history() const { return {log(), refusal_}; }

 private:
  struct Candidate {
    std::string_view pattern;
    std::shared_ptr<const KernelSchedule> schedule;
    std::string rejected = {};  // why
  };

  const GraphAnalysis& analysis_;
  std::vector<std::string> before_;  // lines of an earlier search
  std::vector<Candidate> candidates_;
  std::size_t at_ = 0;
  Refusal refusal_;
  std::string why_not_split_;
};

}  // namespace tessera::internal::lowering
