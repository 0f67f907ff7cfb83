#include "codegen/plan/shared_state.hpp"

#include <algorithm>

namespace tessera::internal::codegen {
namespace {

struct ByteRange {
  bool in_workspace;
  std::int64_t first, last;
};

ByteRange range_of(const Plan& plan, Effect::Space space, int index) {
  if (space == Effect::Space::scratch) {
    const Scratch& scratch = plan.scratch[ScratchId{index}];
    return {scratch.in_workspace, scratch.offset, scratch.offset + scratch.bytes};
  }
  const Buffer& buffer = plan.buffers[BufferId{index}];
  return {buffer.in_workspace, buffer.offset, buffer.offset + buffer.bytes()};
}

}  // namespace

void SharedState::add(const Effect& effect) {
  if (effect.space != Effect::Space::tensor) {
    memory_.insert({effect.space, effect.index, effect.write});
    return;
  }
  Tensor& tensor = tensors_[effect.index];
  Places& places = effect.commutes ? tensor.changed[*effect.commutes] : effect.write ? tensor.written : tensor.read;
  places[effect.place] |= effect.shifted;
  acquired_ |= effect.acquires;
}

bool SharedState::conflicts(const Plan& plan, const Effect& effect) const {
  if (effect.space != Effect::Space::tensor) {
    const ByteRange x = range_of(plan, effect.space, effect.index);
    return std::any_of(memory_.begin(), memory_.end(), [&](const Memory& before) {
      if (!before.write && !effect.write) return false;
      const ByteRange y = range_of(plan, before.space, before.index);
      return x.in_workspace == y.in_workspace && x.first < y.last && y.first < x.last;
    });
  }
  if (acquired_ || (effect.releases && !tensors_.empty())) return true;
  const auto found = tensors_.find(effect.index);
  if (found == tensors_.end()) return false;
  const auto elsewhere = [&](const auto& places) {
    if (places.empty()) return false;
    return effect.place.empty() || places.size() > 1 || places.begin()->first != effect.place;
  };
  const Tensor& tensor = found->second;
  const bool changed = std::ranges::any_of(
      tensor.changed, [&](const auto& by) { return by.first != effect.commutes && elsewhere(by.second); });
  return elsewhere(tensor.written) || changed || (effect.write && elsewhere(tensor.read));
}

void SharedState::merge(const SharedState& other) {
  memory_.insert(other.memory_.begin(), other.memory_.end());
  for (const auto& [index, theirs] : other.tensors_) {
    Tensor& ours = tensors_[index];
    const auto add = [](Places& to, const Places& from) {
      for (const auto& [place, shifted] : from) to[place] |= shifted;
    };
    add(ours.read, theirs.read);
    add(ours.written, theirs.written);
    for (const auto& [op, places] : theirs.changed) add(ours.changed[op], places);
  }
  acquired_ |= other.acquired_;
}

void SharedState::forget_shifted() {
  const auto forget = [](Places& places) {
    if (std::erase_if(places, [](const auto& place) { return place.second; })) places[Place{}];
  };
  for (auto& [index, tensor] : tensors_) {
    forget(tensor.read);
    forget(tensor.written);
    for (auto& [op, places] : tensor.changed) forget(places);
  }
}

}  // namespace tessera::internal::codegen
