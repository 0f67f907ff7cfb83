// The memory that launches in flight on a stream write.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "jit/backend/overlap.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal {

/// Launches that begin while previous ones are ending (PDL) are in flight together, however many there are. Each waits
/// for all launches before it. Before that wait, it may only access memory that none of them writes.
class InFlight {
 public:
  /// Is it known what the launches in flight write? Not after other work than a launch, nor if they write too many
  /// ranges.
  bool is_known() const { return known_; }
  /// Forgets everything: the next launch must begin after all previous work has ended.
  void forget() { known_ = false; }
  /// A launch begins after all previous ones have ended.
  void begin() {
    written_.clear();
    known_ = true;
  }
  /// Adds a launch, which writes the outputs of its graph.
  void add(const Graph& graph, std::span<const Argument> arguments);
  /// Does any launch in flight write to one of these tensors?
  bool write(const Graph& graph, std::span<const Argument> arguments, std::span<const int> tensors) const;

 private:
  static constexpr std::size_t most = 64;
  std::vector<AddressRange> written_;
  bool known_ = false;
};

}  // namespace tessera::internal
