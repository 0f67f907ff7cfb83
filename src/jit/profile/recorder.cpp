#include "jit/profile/recorder.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace tessera::internal::profile {

Recorder::Recorder(const Limits& limits) : limits_(limits) {}

void Recorder::sum(const Event& event) {
  const Subject& subject = *event.subject;
  const auto [at, is_new] =
      totals_.try_emplace(Key(event.device, event.kind, subject.name, subject.file, subject.line));
  Total& total = at->second;
  const Details before = total.details;
  total.kind = event.kind, total.subject = event.subject, total.device = event.device;
  total.count += 1;
  total.time += event.end - event.begin;
  total.details = event.details;
  if (is_new) return;
  total.details.work = before.work + event.details.work;
  total.details.count = before.count < 0 || event.details.count < 0 ? -1 : before.count + event.details.count;
}

Time Recorder::oldest() const {
  return limits_.seconds > 0 ? latest_ - static_cast<Time>(limits_.seconds * 1e9) : std::numeric_limits<Time>::min();
}

void Recorder::add(Event event) {
  const std::lock_guard lock(mutex_);
  sum(event);
  latest_ = std::max(latest_, event.end);
  events_.push_back(std::move(event));
  const Time oldest = this->oldest();
  while (events_.size() > limits_.events || (!events_.empty() && events_.front().end < oldest))
    events_.pop_front(), ++dropped_;
}

void Recorder::add(StampedLaunch launch) {
  const std::lock_guard lock(mutex_);
  stamped_.push_back(std::move(launch));
}

void Recorder::set_device(int device, DeviceLimits limits) {
  const std::lock_guard lock(mutex_);
  devices_.insert_or_assign(device, std::move(limits));
}

void Recorder::note(const std::string& about, std::string text) {
  const std::lock_guard lock(mutex_);
  notes_.insert_or_assign(about, std::move(text));
}

Trace Recorder::trace() const {
  const std::lock_guard lock(mutex_);
  Trace trace{.begin = begin_,
              .end = std::max(latest_, now()),
              .events = {events_.begin(), events_.end()},
              .dropped = dropped_,
              .totals = {},
              .devices = devices_,
              .notes = notes_,
              .stamped = stamped_};
  // A device tells what it did later, so events are not in order.
  const Time oldest = this->oldest();
  trace.dropped += std::erase_if(trace.events, [&](const Event& event) { return event.end < oldest; });
  for (const auto& [key, total] : totals_) trace.totals.push_back(total);
  return trace;
}

}  // namespace tessera::internal::profile
