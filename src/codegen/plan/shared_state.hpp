// Accesses of the threads of a CTA to memory since the last barrier.
#pragma once
#include <compare>
#include <map>
#include <set>

#include "codegen/plan/effects.hpp"

namespace tessera::internal::codegen {

class SharedState {
 public:
  using Place = std::vector<std::int64_t>;

  void add(const Effect& effect);
  /// Does a step with this effect need a barrier after the recorded accesses?
  bool conflicts(const Plan& plan, const Effect& effect) const;
  void merge(const SharedState& other);
  /// Shifted places are unknown in another iteration of a loop.
  void forget_shifted();
  bool operator==(const SharedState&) const = default;

 private:
  struct Memory {  // shared memory or the workspace
    Effect::Space space;
    int index;
    bool write;
    auto operator<=>(const Memory&) const = default;
  };
  using Places = std::map<Place, bool>;  // of a tensor -> is it shifted?
  struct Tensor {
    Places read, written;
    std::map<Op, Places> changed;  // by atomics that may be reordered
    bool operator==(const Tensor&) const = default;
  };
  std::set<Memory> memory_;
  std::map<int, Tensor> tensors_;
  bool acquired_ = false;  // only the acquiring threads see data that other CTAs released
};

}  // namespace tessera::internal::codegen
