// What a step does to memory that threads share.
#pragma once
#include <memory>

#include "codegen/plan.hpp"

namespace tessera::lowering {

struct Effect {
  enum class Space : std::uint8_t { scratch, buffer, tensor } space{};
  int index = 0;  ///< of the scratch, the buffer or the parameter
  bool write = false;
  bool atomic = false;
  /// Two accesses of a tensor with the same text here are by the same threads, element by element.
  std::string place = {};
};

/// In the order they happen. Those of a loop's or a branch's body are not among them.
std::vector<Effect> effects(const Plan& plan, const Step& step);

/// Does the step hold a barrier of its own, between its writes to scratch memory and its reads?
bool has_barrier(const Step& step);

/// The values a step names, as operands or results.
std::vector<ValueId> named_values(const Step& step, bool with_results);

/// When something is in use: positions of steps, a loop counting as its body and what is ahead of it.
struct Interval {
  int first = 1 << 30, last = -1;
  bool overlaps(const Interval& other) const { return first <= other.last && other.first <= last; }
};

/// From the first to the last touch; where some touches are in a loop and others are not, over all of the loop.
class Intervals {
 public:
  explicit Intervals(std::size_t count) : touches_(count) {}
  void touch(std::size_t what, int position, const std::vector<Interval*>& loops);
  Interval of(std::size_t what) const;

 private:
  struct Touch {
    int position;
    std::vector<Interval*> loops;
  };
  std::vector<std::vector<Touch>> touches_;
};

/// Calls visit(step, position, loops around it) for every step, in order.
template <class Visit>
void walk(const std::vector<Step>& steps, int& position, std::vector<Interval*>& loops,
          std::vector<std::unique_ptr<Interval>>& all, const Visit& visit) {
  for (const Step& step : steps) {
    const bool loop = step.kind == Step::Kind::loop;
    // What is fetched ahead is there from before the loop until its end.
    walk(step.ahead, position, loops, all, visit);
    if (loop) {
      all.push_back(std::make_unique<Interval>());
      loops.push_back(all.back().get());
      loops.back()->first = position;
    }
    visit(step, position++, loops);
    walk(step.body, position, loops, all, visit);
    if (loop) {
      loops.back()->last = position++;
      loops.pop_back();
    }
  }
}

}  // namespace tessera::lowering
