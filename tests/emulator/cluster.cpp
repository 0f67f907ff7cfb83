#include "emulator/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tessera::internal::emulator {

Cluster::Cluster(const Launch& launch, std::int64_t index, const Stacks& stacks, int first_stack) : launch_(launch) {
  order_.first_block = launch.first_block + static_cast<std::uint32_t>(index * launch.cluster);
  order_.times.resize(static_cast<std::size_t>(launch.cluster));
  for (int rank = 0; rank < launch.cluster; ++rank)
    blocks_.push_back(std::make_unique<Block>(*this, launch, index * launch.cluster + rank, stacks,
                                              first_stack + rank * launch.threads));
}

bool Cluster::stopped() const { return std::ranges::any_of(blocks_, &Block::stopped); }

bool Cluster::step() {
  const int count = static_cast<int>(blocks_.size()), start = count > 1 ? launch_.random.below(count) : 0;
  for (int i = 0; i < count; ++i)
    if (blocks_[static_cast<std::size_t>((start + i) % count)]->step()) return true;
  if (stopped()) return false;
  if (!waits_for_flag()) report_stuck();
  return false;
}

bool Cluster::waits_for_flag() const { return std::ranges::any_of(blocks_, &Block::waits_for_flag); }

void Cluster::report_stuck() {
  const auto stuck = std::ranges::find_if(blocks_, [](const auto& block) { return !block->ended(); });
  if (stuck != blocks_.end()) (*stuck)->report_stuck();
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
    blocks_[i]->order().barrier();
    order_.times[i] = blocks_[i]->order().last_barrier();
  }
  for (Thread* thread : std::exchange(waiting_, {})) thread->block.wake(*thread);
}

const void* Cluster::place_in(Thread& self, const void* at, int bytes, int rank, Code code) {
  const int offset = static_cast<int>(static_cast<const char*>(at) - self.block.shared_memory());
  if (rank < 0 || rank >= launch_.cluster)
    self.block.refuse(self, code, fmt::format("reads memory of block {} of a cluster of {}", rank, launch_.cluster));
  if (offset < 0 || offset + bytes > launch_.shared_bytes)
    self.block.refuse(
        self, code,
        fmt::format("reads byte {} of the {} bytes of another block's shared memory", offset, launch_.shared_bytes));
  Block& other = *blocks_[static_cast<std::size_t>(rank)];
  if (other.ended())
    self.block.refuse(self, code, fmt::format("reads memory of block {} of its cluster, which has ended", rank));
  return other.shared_memory() + offset;
}

}  // namespace tessera::internal::emulator
