// What the threads of a block have done to memory since the last barrier.
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
  /// Must a step with this effect wait for what is here?
  bool conflicts(const Plan& plan, const Effect& effect) const;
  void merge(const SharedState& other);
  /// In another round of a loop what is shifted lies elsewhere.
  void forget_shifted();
  bool operator==(const SharedState&) const = default;

 private:
  struct Memory {  // shared memory or the workspace
    Effect::Space space;
    int index;
    bool write;
    auto operator<=>(const Memory&) const = default;
  };
  using Places = std::map<Place, bool>;  // of a tensor, and whether they are shifted
  struct Tensor {
    Places read, written;
    std::map<Op, Places> changed;  // by atomics that may change places
    bool operator==(const Tensor&) const = default;
  };
  std::set<Memory> memory_;
  std::map<int, Tensor> tensors_;
  bool acquired_ = false;  // what other blocks have released is for the threads that acquired it alone
};

}  // namespace tessera::internal::codegen
