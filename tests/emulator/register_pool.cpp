#include "emulator/register_pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "emulator/block.hpp"

namespace tessera::internal::emulator {
namespace {

// Registers per thread at launch, for a kernel with so many threads per SM: a multiple of 8, at most 255.
int at_launch(int threads) { return std::min(65536 / threads, 255) / 8 * 8; }

}  // namespace

RegisterPool::RegisterPool(Block& block, int threads, int blocks)
    : block_(block), owned_(static_cast<std::size_t>(threads), at_launch(threads * blocks)) {}

int& RegisterPool::owned(const Thread& thread) { return owned_[static_cast<std::size_t>(thread.index)]; }

void RegisterPool::check(Thread& self, int registers, Code code) {
  if (registers < 24 || registers > 256 || registers % 8 != 0)
    block_.refuse(self, code, fmt::format("sets {} registers, which is not a multiple of 8 from 24 to 256", registers));
}

void RegisterPool::give(Thread& self, int registers, Code code) {
  check(self, registers, code);
  if (registers > owned(self))
    block_.refuse(self, code, fmt::format("reduces its registers to {} and has {}", registers, owned(self)));
  free_ += std::exchange(owned(self), registers) - registers;
  for (Thread* thread : std::exchange(waiting_, {})) block_.wake(*thread);
}

void RegisterPool::take(Thread& self, int registers, Code code) {
  check(self, registers, code);
  int more = registers - owned(self);
  if (more < 0)
    block_.refuse(self, code, fmt::format("increases its registers to {} and has {}", registers, owned(self)));
  while (free_ < more) {
    waiting_.push_back(&self);
    block_.sleep(self, {.what = "setmaxnreg_inc", .code = code, .operands = &more, .place = this});
  }
  free_ -= more;
  owned(self) = registers;
}

std::string RegisterPool::story(const Thread& waits) const {
  return fmt::format(" for {} more registers, of which {} are free", *static_cast<const int*>(waits.meeting.operands),
                     free_);
}

}  // namespace tessera::internal::emulator
