// Blocks of threads that run at the same time, wait for each other, and read each other's shared memory.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "emulator/block.hpp"

namespace tessera::internal::emulator {

class Cluster final : public Place {
 public:
  /// Of the launch's clusters the one of this number; its blocks' threads have stacks from `first_stack` on.
  Cluster(const Launch& launch, std::int64_t index, const Stacks& stacks, int first_stack);

  /// Lets some block go on. False: all have come to their ends, or one has stopped or waits for another cluster.
  bool step();
  bool waits_for_flag() const;
  /// Nobody will raise it.
  void report_stuck();
  bool stopped() const;

  std::span<const std::unique_ptr<Block>> blocks() const { return blocks_; }
  int rank_of(const Block& block) const { return static_cast<int>(block.index() % launch_.cluster); }
  /// The block whose shared memory it is.
  std::optional<int> rank_of(const Shadow& memory) const;

  /// Returns when all threads of the cluster have come that have not ended.
  void meet(Thread& self, const Meeting& meeting);
  /// A thread has ended.
  void left();
  std::string story(const Thread& waits) const override;
  const ClusterOrder* order() const { return blocks_.size() > 1 ? &order_ : nullptr; }

  /// The place in the memory of block `rank` that `at` is in that of the thread's own.
  const void* place_in(Thread& self, const void* at, int bytes, int rank, Code code);

 private:
  int live_threads() const;
  void release();

  const Launch& launch_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<Thread*> waiting_;
  ClusterOrder order_;
};

}  // namespace tessera::internal::emulator
