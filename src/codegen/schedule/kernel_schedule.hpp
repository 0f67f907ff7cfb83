// A schedule decides which warps of a CTA do what. Each pattern of kernels is a line of schedules.def and a file of
// this folder, which says whether a kernel matches, and if not, why.
#pragma once
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/schedule/layouts.hpp"

namespace tessera::internal::lowering {

/// Why something does not suit, in a few words, and what prevents it; empty: it suits.
struct Refusal {
  std::string why = {};
  Location where = {};
  explicit operator bool() const { return !why.empty(); }
};

/// A schedule for a kernel.
class KernelSchedule {
 public:
  virtual ~KernelSchedule() = default;
  /// Describes it in a few words: "128x128x64 bf16 by wgmma, 2 consumer groups of 1 warp group, 5 stages".
  virtual std::string text(const GraphAnalysis& analysis) const = 0;
  /// The roles and their warps, without steps. The last one computes the tiles.
  virtual std::vector<Role> roles() const = 0;
  /// How the computing role does its matmuls, and the number of warps that share a tile.
  virtual MatmulPlans matmuls(const GraphAnalysis& analysis) const = 0;
  /// Adds the roles of the plan's last phase, with their steps, and the objects that they name. The left operands of
  /// the matmuls `left_in_memory` are not in registers.
  virtual void lower(const GraphAnalysis& analysis, const MatmulPlans& matmuls, const Layouts& layouts,
                     const std::set<Id>& left_in_memory, Plan& plan) const = 0;
  virtual SplitK split_k() const { return SplitK::none; }
  /// Are rows for the epilogue in registers during the loop?
  virtual bool reads_ahead() const { return false; }

  bool is_warp_specialized() const { return roles().size() > 1; }
};

/// The schedules that a pattern has for a kernel.
struct ScheduleMatch {
  std::vector<std::shared_ptr<const KernelSchedule>> candidates = {};  ///< the best first, then with fewer registers
  std::string why_not = {};        ///< why there is none, in a few words; empty: the kernel is of another kind
  Id where = no_id;                ///< the node that prevents it; none: the first matmul
  bool swappable = false;          ///< that is the right operand, which might be the left one
  std::string why_not_split = {};  ///< why there is no split-K, though the launch has few CTAs
};

struct SchedulePattern {
  std::string_view name, what;
  ScheduleMatch (*match)(const GraphAnalysis& analysis, bool debug);
};
/// All of them, in the order in which they are tried.
std::span<const SchedulePattern> schedule_patterns();

/// Why roles cannot share a kernel's work: some of its ops concern all threads of a CTA. "": they can.
std::string why_no_roles(const GraphAnalysis& analysis);

}  // namespace tessera::internal::lowering

namespace tessera::internal::schedule_pattern {

#define SCHEDULE(name, what) lowering::ScheduleMatch name(const lowering::GraphAnalysis& analysis, bool debug);
#include "codegen/schedules.def"

}  // namespace tessera::internal::schedule_pattern
