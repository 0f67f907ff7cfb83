// Writes of threads to shared memory: TMA and wgmma see them after a fence and a barrier, and threads overwrite the
// memory only after it has been read.
#pragma once
#include <map>
#include <vector>

#include "codegen/plan/verify/verify.hpp"

namespace tessera::internal::codegen {

/// Follows the steps of one role in order.
class SharedWrites {
 public:
  SharedWrites(Diagnostics& diagnostics, const Role& role)
      : diagnostics_(diagnostics), plan_(diagnostics.plan), role_(role) {}

  void put(BufferId buffer);
  /// Zeroes the rows of a pipeline's stages that no TMA box fills.
  void clear(PipelineId pipeline);
  /// A stage of a pipeline is full and is read.
  void read(PipelineId pipeline) const;
  /// The current stage is full; its rows past the end of a slice must be zeroed before it is read.
  void come(PipelineStateId state) { stages_[state] = Written::no; }
  void clear_beyond(PipelineStateId state) { stages_[state] = Written::plain; }
  void read(PipelineStateId state) const;
  /// A branch ends, whose steps other threads may not run: writes in it must be visible by then.
  void end_branch() const;
  void fence();
  /// A consumer group arrives at the barrier of the next one. told_by: does the current group know of it by that
  /// barrier?
  void tell(int barrier);
  bool told_by(int barrier) const { return told_ == barrier; }
  /// Threads meet at a barrier: of all consumer groups, or of one, which wrote to its own buffers.
  void meet(bool all_consumer_groups);

  void copy(const TmaStore& store);
  void commit() { copies_.emplace_back(); }
  void wait(int pending);
  void end() const;

 private:
  enum class Written : std::uint8_t { no, plain, fenced, seen };
  static void fence(Written& state) {
    if (state == Written::plain) state = Written::fenced;
  }
  static void see(Written& state) {
    if (state == Written::fenced) state = Written::seen;
  }

  Diagnostics& diagnostics_;
  const Plan& plan_;
  const Role& role_;
  std::map<BufferId, Written> written_;
  std::map<PipelineId, Written> cleared_;
  std::map<PipelineStateId, Written> stages_;  // of slices
  int told_ = 0;
  std::vector<std::vector<BufferId>> copies_{1};  // groups of stores
  int read_ = 0, seen_read_ = 0;                  // groups that have been read, and those that all threads know of
};

}  // namespace tessera::internal::codegen
