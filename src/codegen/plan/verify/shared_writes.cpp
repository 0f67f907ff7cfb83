#include "codegen/plan/verify/shared_writes.hpp"

#include <algorithm>

namespace tessera::internal::codegen {

void SharedWrites::put(BufferId buffer) {
  for (int i = seen_read_; i < static_cast<int>(copies_.size()); ++i)
    for (BufferId copied : copies_[static_cast<std::size_t>(i)])
      diagnostics_.require(copied != buffer,
                           "a TMA store may still read {}: a wait and then a barrier must precede the write",
                           name_of(plan_, buffer));
  diagnostics_.require(plan_.buffers[buffer].consumer_groups == role_.consumer_groups,
                       "{} is for {} consumer groups, but {} has {}", name_of(plan_, buffer),
                       plan_.buffers[buffer].consumer_groups, role_.name, role_.consumer_groups);
  written_[buffer] = Written::plain;
}

void SharedWrites::clear(PipelineId pipeline) {
  cleared_[pipeline] = Written::plain;
  told_ = 0;
}

void SharedWrites::read(PipelineId pipeline) const {
  const auto cleared = cleared_.find(pipeline);
  diagnostics_.require(
      plan_.pipelines[pipeline].clipped.empty() || (cleared != cleared_.end() && cleared->second == Written::seen),
      "rows of {} that no TMA box fills are not zeroed, or the zeros are not visible", name_of(plan_, pipeline));
}

void SharedWrites::read(PipelineStateId state) const {
  const auto stage = stages_.find(state);
  if (stage == stages_.end()) return;
  diagnostics_.require(stage->second != Written::no, "its rows past the end of a slice are not zeroed");
  diagnostics_.require(stage->second == Written::no || stage->second == Written::seen,
                       "threads zeroed rows of it: a fence and then a barrier must precede the read");
}

void SharedWrites::end_branch() const {
  for (const auto& [at, state] : stages_)
    diagnostics_.require(state == Written::no || state == Written::seen,
                         "threads zeroed rows at {}: a fence and then a barrier must follow in the same branch",
                         name_of(plan_, at));
}

void SharedWrites::fence() {
  for (auto& [at, state] : stages_) fence(state);
  for (auto& [buffer, state] : written_) fence(state);
  for (auto& [pipeline, state] : cleared_) fence(state);
}

void SharedWrites::tell(int barrier) {
  const auto is_fenced = [](const auto& cleared) { return cleared.second >= Written::fenced; };
  told_ = std::ranges::all_of(cleared_, is_fenced) ? barrier : 0;
}

void SharedWrites::meet(bool all_consumer_groups) {
  for (auto& [at, state] : stages_) see(state);
  for (auto& [buffer, state] : written_) see(state);
  for (auto& [pipeline, state] : cleared_)
    if (all_consumer_groups) see(state);
  seen_read_ = read_;
}

void SharedWrites::copy(const TmaStore& s) {
  const auto found = written_.find(s.buffer);
  diagnostics_.require(found == written_.end() || found->second == Written::seen,
                       "threads wrote {}: a fence and then a barrier must precede its TMA store",
                       name_of(plan_, s.buffer));
  const TensorMap& map = plan_.tensor_maps[s.map];
  diagnostics_.require(map.store, "{} is not a tensor map for stores", name_of(plan_, s.map));
  const Parameter& tensor = plan_.tensors.at(static_cast<std::size_t>(map.tensor.argument));
  diagnostics_.require(static_cast<int>(s.at.size()) == tensor.rank, "{} coordinates for {} axes", s.at.size(),
                       tensor.rank);
  const Buffer& buffer = plan_.buffers[s.buffer];
  diagnostics_.require(map.box_bytes(tensor.type) == buffer.panel_bytes(),
                       "a box has {} bytes, but there are {} in a panel of {}", map.box_bytes(tensor.type),
                       buffer.panel_bytes(), name_of(plan_, s.buffer));
  diagnostics_.require(s.offset % buffer.panel_bytes() == 0 && s.offset >= 0 && s.offset < buffer.stage_bytes(),
                       "no panel of {} begins at byte {}", name_of(plan_, s.buffer), s.offset);
  copies_.back().push_back(s.buffer);
}

// All committed groups except the last `pending` have been read.
void SharedWrites::wait(int pending) {
  const int closed = static_cast<int>(copies_.size()) - 1;
  read_ = std::max(read_, closed - pending);
}

void SharedWrites::end() const {
  diagnostics_.require(read_ + 1 == static_cast<int>(copies_.size()) && copies_.back().empty(),
                       "role {} ends while its TMA stores may read shared memory", role_.name);
}

}  // namespace tessera::internal::codegen
