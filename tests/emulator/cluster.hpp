// A cluster: CTAs that run at the same time, synchronize, read each other's shared memory, and arrive at each other's
// mbarriers.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/block.hpp"

namespace tessera::internal::emulator {

class Cluster final : public Place {
 public:
  /// Cluster `index` of the launch; the threads of its CTAs use the stacks from `first_stack` on.
  Cluster(const Launch& launch, std::int64_t index, const Stacks& stacks, int first_stack);

  /// Lets a CTA make progress. Returns false if all have ended, or if one has stopped or waits for another cluster.
  bool step();
  bool waits_for_others() const;
  /// Reports a deadlock: what is awaited will never happen.
  void report_stuck();
  bool stopped() const;

  std::span<const std::unique_ptr<Block>> blocks() const { return blocks_; }
  int rank_of(const Block& block) const { return static_cast<int>(block.index() % launch_.cluster); }
  /// Rank of the CTA that owns the shared memory.
  std::optional<int> rank_of(const Shadow& memory) const;

  /// Returns once all live threads of the cluster have arrived.
  void meet(Thread& self, const Meeting& meeting);
  /// Called when a thread has ended.
  void left();
  std::string story(const Thread& waits) const override;
  const ClusterOrder* order() const { return blocks_.size() > 1 ? &order_ : nullptr; }

  /// Arrives at the mbarrier at this offset in each CTA, in any order.
  void arrive(Thread& self, const void* at_barrier, Code code);

  /// The address in the shared memory of CTA `rank` that corresponds to `at` in the thread's own CTA. `does` is what
  /// the thread does there: "reads".
  char* place_in(Thread& self, const void* at, int bytes, int rank, std::string_view does, Code code);

 private:
  int live_threads() const;
  void release();

  const Launch& launch_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<Thread*> waiting_;
  ClusterOrder order_;
};

}  // namespace tessera::internal::emulator
