#include "jit/profile/join.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tessera::internal::profile {

void Join::submit(std::uint64_t number, Plan plan) {
  const std::lock_guard lock(mutex_);
  calls_.insert_or_assign(number, Call{std::move(plan)});
  if (calls_.size() > most_calls) calls_.erase(calls_.begin());
}

void Join::correlate(std::uint32_t correlation, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (numbers_.size() > most_calls) numbers_.clear();
  numbers_.insert_or_assign(correlation, number);
}

void Join::add(Activity activity) {
  const std::lock_guard lock(mutex_);
  activities_.push_back(std::move(activity));
}

std::size_t Join::waiting() const {
  const std::lock_guard lock(mutex_);
  return activities_.size();
}

void Join::settle(Recorder& recorder) {
  const std::lock_guard lock(mutex_);
  // Activities come in any order; a plan's kernels are in the order of a graph's nodes.
  std::ranges::stable_sort(activities_, {}, [](const Activity& activity) {
    return std::tuple(activity.correlation, activity.node, activity.begin);
  });
  for (Activity& activity : activities_) {
    Event event{.kind = activity.kind,
                .subject = nullptr,
                .begin = activity.begin,
                .end = std::max(activity.begin, activity.end),
                .device = activity.device,
                .lane = activity.stream,
                .details = activity.details};
    const auto number = numbers_.find(activity.correlation);
    if (number != numbers_.end()) event.number = number->second;
    const auto call = number != numbers_.end() ? calls_.find(number->second) : calls_.end();
    if (call != calls_.end() && activity.kind == Kind::kernel) {
      const std::vector<Planned>& plan = *call->second.plan;
      const auto from = plan.begin() + static_cast<std::ptrdiff_t>(call->second.next);
      // Kernels of a graph that are not ours are in between.
      const auto found = std::find_if(from, plan.end(), [&](const Planned& one) { return one.entry == activity.name; });
      if (found != plan.end()) {
        const Details measured = event.details;
        event.subject = found->subject, event.details = found->details;
        if (measured.registers > 0) event.details.registers = measured.registers;
        if (measured.threads > 0) event.details.threads = measured.threads;
        if (measured.shared_bytes >= 0) event.details.shared_bytes = measured.shared_bytes;
        call->second.next = static_cast<std::size_t>(found - plan.begin()) + 1;
        if (call->second.next == plan.size()) calls_.erase(call);
      }
    }
    if (!event.subject) event.subject = named(activity.name);
    recorder.add(std::move(event));
  }
  activities_.clear();
  // Calls that are complete need no number.
  std::erase_if(numbers_, [&](const auto& number) { return !calls_.contains(number.second); });
}

}  // namespace tessera::internal::profile
