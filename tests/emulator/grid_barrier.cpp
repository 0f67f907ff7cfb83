#include "emulator/grid_barrier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "emulator/block.hpp"

namespace tessera::internal::emulator {

void GridBarrier::check(Thread& self, const void* at, Code code) const {
  if (at != &arrivals_) self.block.refuse(self, code, "uses a grid barrier that is not the launch's");
}

void GridBarrier::arrive(Thread& self, const void* at, Code code) {
  check(self, at, code);
  const std::size_t barrier = arrivals_++ / ctas_;
  if (barrier >= released_.size()) released_.resize(barrier + 1);
  released_[barrier].join(self.block.order().publish(self.index, self.block.number()));
  for (const Waiting& waiting : std::exchange(waiting_, {})) {
    if (waiting.expected <= arrivals_)
      waiting.thread->block.wake(*waiting.thread);
    else
      waiting_.push_back(waiting);
  }
}

void GridBarrier::leave(Thread& self, const void* at, std::uint32_t expected, Code code) {
  arrive(self, at, code);
  if (arrivals_ > expected)
    self.block.refuse(self, code, fmt::format("arrives at a grid barrier, and {} of {} have", arrivals_ - 1, expected));
  if (arrivals_ == expected) arrivals_ = 0;
}

void GridBarrier::wait(Thread& self, const void* at, std::uint32_t expected, Code code) {
  check(self, at, code);
  while (arrivals_ < expected) {
    waiting_.push_back({&self, expected});
    self.block.sleep(self, {.what = "grid_wait", .code = code, .place = this});
  }
  const std::size_t barriers = std::min<std::size_t>(expected / ctas_, released_.size());
  for (std::size_t i = 0; i < barriers; ++i)
    self.block.order().acquire(self.index, Knowledge::seen_from(self.block.number(), released_[i]));
}

std::string GridBarrier::story(const Thread& waits) const {
  for (const Waiting& waiting : waiting_)
    if (waiting.thread == &waits)
      return fmt::format(" for {} arrivals at the grid barrier, of which there are {}", waiting.expected, arrivals_);
  return {};
}

}  // namespace tessera::internal::emulator
