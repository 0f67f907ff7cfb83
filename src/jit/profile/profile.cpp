#include "jit/profile/profile.hpp"

#include <algorithm>
#include <utility>

#include "cpu/parallel.hpp"
#include "jit/profile/nvtx.hpp"
#include "jit/profile/recorder.hpp"

namespace tessera::internal::profile {
namespace {

thread_local Span* innermost_span = nullptr;

Time time_of(std::chrono::steady_clock::time_point point) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(point.time_since_epoch()).count();
}

// This thread's own part is the kernel itself.
void record_parts(std::span<const cpu::LoopPart> parts) {
  const Profile* const profile = active();
  if (!profile || !profile->recorder || !innermost_span) return;
  const Event& kernel = innermost_span->event();
  for (const cpu::LoopPart& part : parts)
    if (part.thread != kernel.lane)
      profile->recorder->add({.kind = Kind::part,
                              .subject = kernel.subject,
                              .begin = time_of(part.begin),
                              .end = time_of(part.end),
                              .lane = part.thread,
                              .number = kernel.number});
}

}  // namespace

std::atomic<const Profile*> current{nullptr};

Span* Span::innermost() { return innermost_span; }

void Span::begin(const Profile& profile, Kind kind, SubjectRef subject) {
  event_ = std::make_unique<Event>();
  event_->kind = kind, event_->subject = std::move(subject), event_->lane = this_thread();
  if (kind == Kind::kernel && profile.recorder) event_->number = profile.recorder->next_number();
  profile_ = &profile, outer_ = std::exchange(innermost_span, this);
  if (profile.nvtx) profile.nvtx->push(event_->subject->name.c_str());
  event_->begin = now();
}

void Span::end() {
  event_->end = now();
  innermost_span = outer_;
  if (profile_->nvtx) profile_->nvtx->pop();
  if (profile_->recorder) profile_->recorder->add(std::move(*event_));
}

void describe(Details& details, const Subject& subject, std::span<const Argument> arguments,
              std::span<const std::int64_t> grid) {
  details.axes = static_cast<std::uint8_t>(std::min(grid.size(), details.grid.size()));
  std::int64_t tiles = 1;
  for (std::size_t axis = 0; axis < grid.size(); ++axis) {
    tiles *= grid[axis];
    if (axis < details.axes) details.grid[axis] = static_cast<std::int32_t>(grid[axis]);
  }
  if (subject.work) details.work = subject.work->of(arguments, tiles);
}

void note_code(const char* how, int registers) {
  for (Span* span = innermost_span; span; span = span->outer_) {
    if (span->event_->kind != Kind::compile) continue;
    span->event_->details.note = how, span->event_->details.registers = registers;
    return;
  }
}

void watch_threads(bool watch) { cpu::watch_loops(watch ? &record_parts : nullptr); }

}  // namespace tessera::internal::profile
