#include "emulator/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tessera::internal::emulator {

Cluster::Cluster(const Launch& launch, std::int64_t index, const Stacks& stacks, int first_stack) : launch_(launch) {
  order_.first_block = launch.first_block + static_cast<std::uint32_t>(index * launch.cluster);
  order_.blocks.resize(static_cast<std::size_t>(launch.cluster));
  for (int rank = 0; rank < launch.cluster; ++rank)
    blocks_.push_back(std::make_unique<Block>(*this, launch, index * launch.cluster + rank, stacks,
                                              first_stack + rank * launch.threads));
}

bool Cluster::stopped() const { return std::ranges::any_of(blocks_, &Block::stopped); }

bool Cluster::step() {
  const int count = static_cast<int>(blocks_.size()), start = count > 1 ? launch_.random.below(count) : 0;
  for (int i = 0; i < count; ++i) {
    Block& block = *blocks_[static_cast<std::size_t>((start + i) % count)];
    if (block.step()) return true;
    if (block.stopped()) return false;
  }
  if (!waits_for_others()) report_stuck();
  return false;
}

bool Cluster::waits_for_others() const { return std::ranges::any_of(blocks_, &Block::waits_for_others); }

void Cluster::report_stuck() {
  const auto stuck = std::ranges::find_if(blocks_, [](const auto& block) { return !block->ended(); });
  if (stuck == blocks_.end()) return;
  std::string others;
  for (auto other = stuck + 1; other != blocks_.end(); ++other)
    if (const std::string waits = (*other)->waits(); !waits.empty())
      others += fmt::format("; in block {} {}", (*other)->index(), waits);
  (*stuck)->report_stuck(others);
}

std::optional<int> Cluster::rank_of(const Shadow& memory) const {
  for (const auto& block : blocks_)
    if (&block->shadow() == &memory) return rank_of(*block);
  return {};
}

int Cluster::live_threads() const {
  int count = 0;
  for (const auto& block : blocks_) count += block->live_threads();
  return count;
}

void Cluster::meet(Thread& self, const Meeting& meeting) {
  waiting_.push_back(&self);
  if (static_cast<int>(waiting_.size()) < live_threads()) return self.block.sleep(self, meeting);
  waiting_.pop_back();
  release();
}

std::string Cluster::story(const Thread&) const {
  return fmt::format(" of the cluster, at which {} of {} threads have arrived", waiting_.size(), live_threads());
}

void Cluster::left() {
  if (!waiting_.empty() && static_cast<int>(waiting_.size()) == live_threads()) release();
}

void Cluster::release() {
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    Order& order = blocks_[i]->order();
    order.barrier();
    order_.blocks[i] = {.time = order.last_barrier(), .known = order.all()};
  }
  for (Thread* thread : std::exchange(waiting_, {})) thread->block.wake(*thread);
}

void Cluster::arrive(Thread& self, const void* at_barrier, Code code) {
  const int count = launch_.cluster, start = count > 1 ? launch_.random.below(count) : 0;
  for (int i = 0; i < count; ++i) {
    const int rank = (start + i) % count;
    Block& block = *blocks_[static_cast<std::size_t>(rank)];
    if (i > 0) self.block.pause(self);
    if (&block == &self.block)
      block.memory_barriers().arrive(self, at_barrier, 0, code);
    else
      block.memory_barriers().arrive_from(self, place_in(self, at_barrier, barrier_bytes, rank, "arrives at", code),
                                          code);
  }
}

char* Cluster::place_in(Thread& self, const void* at, int bytes, int rank, std::string_view does, Code code) {
  const int offset = static_cast<int>(static_cast<const char*>(at) - self.block.shared_memory());
  if (rank < 0 || rank >= launch_.cluster)
    self.block.refuse(self, code, fmt::format("{} memory of block {} of a cluster of {}", does, rank, launch_.cluster));
  if (offset < 0 || offset + bytes > launch_.shared_bytes)
    self.block.refuse(
        self, code,
        fmt::format("{} byte {} of the {} bytes of another block's shared memory", does, offset, launch_.shared_bytes));
  Block& other = *blocks_[static_cast<std::size_t>(rank)];
  if (other.ended())
    self.block.refuse(self, code, fmt::format("{} memory of block {} of its cluster, which has ended", does, rank));
  return other.shared_memory() + offset;
}

}  // namespace tessera::internal::emulator
