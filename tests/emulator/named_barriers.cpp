#include "emulator/named_barriers.hpp"

#include <fmt/format.h>

#include <utility>

#include "emulator/block.hpp"

namespace tessera::internal::emulator {

std::string NamedBarrier::story(const Thread&) const {
  return fmt::format(" at barrier {}, at which {} of {} threads have arrived", id, came, threads);
}

NamedBarriers::NamedBarriers(Block& block) : block_(block) {
  for (int id = 0; NamedBarrier & barrier : barriers_) barrier.id = id++;
}

void NamedBarriers::come(Thread& self, int id, int threads, bool waits, Code code) {
  if (id < 0 || id >= static_cast<int>(barriers_.size()))
    block_.refuse(self, code, fmt::format("uses barrier {}, and there are {}", id, barriers_.size()));
  const int all = block_.launch().threads;
  if (threads < warp_size || threads % warp_size != 0 || threads > all)
    block_.refuse(
        self, code,
        fmt::format("uses barrier {} for {} threads of the block's {}, which must be whole warps", id, threads, all));
  NamedBarrier& barrier = barriers_[static_cast<std::size_t>(id)];
  const Meeting meeting{.what = waits ? "named_barrier" : "named_barrier_arrive", .code = code, .place = &barrier};
  if (barrier.came == 0) {
    barrier.threads = threads;
    barrier.first = meeting;
  } else if (barrier.threads != threads) {
    block_.report(
        Fault::Kind::divergent_barrier, self, code,
        fmt::format("thread {} arrives at barrier {} for {} threads at {}, and others for {} at {}", self.index, id,
                    threads, block_.launch().lines[code], barrier.threads, block_.launch().lines[barrier.first.code]));
    block_.stop();
  }
  barrier.coming.join(block_.order().release(self.index));
  if (++barrier.came < threads) {
    if (!waits) return;
    barrier.waiting.push_back(&self);
    return block_.sleep(self, meeting);
  }
  const Knowledge all_know = std::exchange(barrier.coming, {});
  barrier.came = 0;
  if (waits) block_.order().acquire(self.index, all_know);
  for (Thread* thread : std::exchange(barrier.waiting, {})) {
    block_.order().acquire(thread->index, all_know);
    block_.wake(*thread);
  }
}

}  // namespace tessera::internal::emulator
