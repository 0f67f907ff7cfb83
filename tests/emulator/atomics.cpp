#include "emulator/atomics.hpp"

#include <utility>

#include "emulator/block.hpp"

namespace tessera::internal::emulator {

// A thread that reads a word learns what the threads knew that wrote it, including earlier writers whose value was
// changed since by atomic operations.
void Atomics::meet(Thread& self, const void* word, bool for_all) {
  Fenced& fenced = self.fenced;
  const auto found = words_.find(word);
  if (found == words_.end() && !fenced.passes[0]) return;
  Word& at = found == words_.end() ? words_[word] : found->second;
  Knowledge& of_block = at.for_block[self.block.number()];
  fenced.read[0].join(of_block);
  if (for_all) fenced.read[1].join(at.for_all);
  if (fenced.passes[0]) of_block.join(fenced.passed_on[0]);
  if (fenced.passes[1] && for_all) at.for_all.join(fenced.passed_on[1]);
}

void Atomics::fence(Thread& self, bool for_all) {
  Order& order = self.block.order();
  const std::uint32_t block = self.block.number();
  for (const int reach : {0, 1}) {
    if (reach && !for_all) break;
    order.acquire(self.index, Knowledge::seen_from(block, std::exchange(self.fenced.read[reach], {})));
  }
  for (const int reach : {0, 1}) {
    if (reach && !for_all) break;
    self.fenced.passed_on[reach] = order.publish(self.index, block);
    self.fenced.passes[reach] = true;
  }
}

}  // namespace tessera::internal::emulator
