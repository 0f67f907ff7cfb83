// Kernels specialized for what the arguments of a launch say about memory: tensors that are left out, and tensors that
// are written in place of one that is read.
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "tessera/graph/graph.hpp"

namespace tessera::internal {

/// The memory of each parameter of a launch.
struct Specialization {
  static constexpr std::size_t most_parameters = 64;
  static constexpr std::int8_t own = -1, none = -2;
  /// own; none, for an optional tensor that is left out; or, for an In, the number of the Out whose memory it shares.
  std::array<std::int8_t, most_parameters> memory;

  Specialization() { memory.fill(own); }
  bool operator==(const Specialization&) const = default;
};

/// The graph for such launches: reads of a tensor that is left out are padding, writes to it are dropped. An Out that
/// shares its memory with an In becomes an InOut that is read in its place.
Graph specialize(const Graph& graph, const Specialization& specialization);

/// Why a launch may not give parameters `in` and `out` one tensor: the code that is generated for an InOut in their
/// place would read elements that were written before. Empty if it may: there is one store, of the tile that all reads
/// take, it depends on all of them, and no other block or iteration accesses that tile.
std::string why_not_in_place(const Graph& graph, int in, int out);

}  // namespace tessera::internal
