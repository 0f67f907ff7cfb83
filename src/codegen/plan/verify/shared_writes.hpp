// What threads wrote to shared memory: the copy engine and the matrix units see it behind a fence and a barrier, and
// threads write there anew when it has been read.
#pragma once
#include <map>
#include <vector>

#include "codegen/plan/verify/verify.hpp"

namespace tessera::internal::codegen {

/// As the steps of one role do so, in order.
class SharedWrites {
 public:
  SharedWrites(Diagnostics& diagnostics, const Role& role)
      : diagnostics_(diagnostics), plan_(diagnostics.plan), role_(role) {}

  void put(BufferId buffer);
  /// Rows of a pipeline's stages that no box fills.
  void clear(PipelineId pipeline);
  /// A stage of a pipeline has come.
  void read(PipelineId pipeline) const;
  /// The same of the one at the cursor, whose rows beyond a slice are cleared before it is read.
  void come(PipelineStateId state) { stages_[state] = Written::no; }
  void clear_beyond(PipelineStateId state) { stages_[state] = Written::plain; }
  void read(PipelineStateId state) const;
  /// A branch ends, whose steps other threads may not run: what they wrote in it is seen by then.
  void end_branch() const;
  void fence();
  /// The team says to the next, by a barrier, that it came so far; does the team at hand know it by that barrier?
  void tell(int barrier);
  bool told_by(int barrier) const { return told_ == barrier; }
  /// Threads of all teams, or of one, which wrote to buffers of its own.
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
  int read_ = 0, seen_read_ = 0;                  // groups that have been read, and that all threads know of
};

}  // namespace tessera::internal::codegen
