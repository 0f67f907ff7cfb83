// The effects of steps on memory that threads share, the values that steps refer to, and live intervals.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

struct Effect {
  enum class Space : std::uint8_t { scratch, buffer, tensor } space{};
  int index = 0;  ///< of the scratch memory, the buffer or the parameter
  bool write = false;
  /// For a write by an atomic whose old values are not used: its op. It may be reordered with other atomics of that op.
  std::optional<Op> commutes = {};
  bool releases = false;  ///< earlier accesses to tensors, by any thread, complete before it
  bool acquires = false;  ///< later accesses to tensors, by any thread, come after it
  /// Two accesses to a tensor with the same numbers here assign each element to the same thread; empty: the threads are
  /// not known. This holds for each tensor of a list: tensors of a list that is written share no memory.
  std::vector<std::int64_t> place = {};
  bool shifted = false;  ///< the place depends on slices, whose offset may change between iterations of a loop
};

/// The effects of a step, in order: without those of the bodies of loops and branches, but with those of exchanges
/// between warps in a reduction.
std::vector<Effect> effects(const Plan& plan, const Role& role, const Step& step);

/// The values that are operands of a step, and those it defines or changes.
std::vector<ValueId> operands(const Step& step);
std::vector<ValueId> results(const Step& step);

/// The sweep of a step, or nullptr.
inline const Sweep* sweep_of(const Step& step) {
  return visit_kind([]<class Kind>(const Kind& kind) -> const Sweep* {
    if constexpr (requires { kind.sweep; })
      return &kind.sweep;
    else
      return nullptr;
  }, step.action);
}

/// A live interval, in positions of steps. A loop covers its body and the steps ahead of it.
struct Interval {
  int first = 1 << 30, last = -1;
  bool overlaps(const Interval& other) const { return first <= other.last && other.first <= last; }
};

/// Live intervals from the first to the last touch. If some touches are in a loop and others are not, the whole loop is
/// covered.
class Intervals {
 public:
  explicit Intervals(int count) : touches_(static_cast<std::size_t>(count)) {}
  /// Adds an interval and returns its number.
  int add() { return touches_.emplace_back(), static_cast<int>(touches_.size()) - 1; }
  void touch(int what, int position, const std::vector<const Interval*>& loops);
  Interval of(int what) const;

 private:
  struct Touch {
    int position;
    std::vector<const Interval*> loops;
  };
  std::vector<std::vector<Touch>> touches_;
};

/// The steps of a plan in order, with positions.
class PlanWalk {
 public:
  /// `one_by_one`: concurrent roles have positions of their own, for memory that only one role uses.
  explicit PlanWalk(const Plan& plan, bool one_by_one = false) : plan_(plan), one_by_one_(one_by_one) {}
  /// Calls visit(role, step, position, loops around it) for every step except those of exchanges between warps in a
  /// reduction. Concurrent roles share one position. Returns the number of positions. The loops' intervals live as long
  /// as the walk.
  template <class Visit>
  int each(const Visit& visit) & {
    for (const Phase& phase : plan_.phases) {
      at_once_ = phase.roles.size() > 1 && !one_by_one_;
      if (!phase.roles.empty()) body(phase.roles.front(), phase.prologue, visit);
      for (const Role& role : phase.roles) body(role, role.body, visit);
      if (at_once_) ++position_;
    }
    return position_;
  }

 private:
  template <class Visit>
  void body(const Role& role, const Body& steps, const Visit& visit) {
    for (const Step& step : steps) {
      const Loop* const loop = step.action.as<Loop>();
      if (loop) {
        body(role, loop->arrive, visit);
        body(role, loop->ahead, visit);  // data that is fetched ahead is live from before the loop until its end
        body(role, loop->issued, visit);
        intervals_.push_back(std::make_unique<Interval>());
        intervals_.back()->first = position_;
        loops_.push_back(intervals_.back().get());
      }
      Interval* const own = loop ? intervals_.back().get() : nullptr;
      visit(role, step, next(), loops_);
      if (loop) {
        body(role, loop->body, visit);
        own->last = next();
        loops_.pop_back();
      } else {
        const Bodies bodies = bodies_of(const_cast<Step&>(step), false);
        for (int i = 0; i < bodies.count; ++i) body(role, *bodies.at[i], visit);
      }
    }
  }
  int next() { return at_once_ ? position_ : position_++; }

  const Plan& plan_;
  const bool one_by_one_;
  int position_ = 0;
  bool at_once_ = false;
  std::vector<const Interval*> loops_;
  std::vector<std::unique_ptr<Interval>> intervals_;
};

}  // namespace tessera::internal::codegen
