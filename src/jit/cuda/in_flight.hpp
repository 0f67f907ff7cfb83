// What launches on a stream write that may not have ended.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "jit/backend/overlap.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal {

/// Launches that begin while those before them end are in flight together, however many there are: each waits for all
/// before it by itself, and what it does ahead of that it may only do with memory that none of them writes.
class InFlight {
 public:
  /// Is it known what the launches in flight write? Not behind work that is no launch, nor of too many.
  bool is_known() const { return known_; }
  /// Nothing more is known: the next launch is to begin behind all before it.
  void forget() { known_ = false; }
  /// A launch begins behind all before it.
  void begin() {
    written_.clear();
    known_ = true;
  }
  /// A launch that writes what its graph says.
  void add(const Graph& graph, std::span<const Argument> arguments);
  /// Does any of them write to one of these tensors?
  bool write(const Graph& graph, std::span<const Argument> arguments, std::span<const int> tensors) const;

 private:
  static constexpr std::size_t most = 64;
  std::vector<AddressRange> written_;
  bool known_ = false;
};

}  // namespace tessera::internal
