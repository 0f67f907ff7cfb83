// Where the axes of a view lie in its tensor: what views of views come to, for all who must address its elements.
#pragma once
#include <vector>

#include "tessera/graph/graph.hpp"

namespace tessera::internal {

/// An axis of a view. Position p of it is, by the slices, position q = (start + p step), ... of what they are slices
/// of, and that is element q * factor of the last of the tensor's axes.
struct ViewAxis {
  struct Slice {
    Id start, extent;
    int step;
  };
  std::vector<int> axes;         ///< of the tensor, the outer one first: several that are flattened into one
  std::int64_t factor = 1;       ///< elements of the last of them from one position to the next
  std::vector<Windows> windows;  ///< cut out of the axes' elements, then out of those windows, ...; it numbers them
  int within = 0;                ///< above 0: it has the positions of one window, which are so many
  std::vector<Slice> slices;     ///< of those positions: the first was taken first

  /// Elements of the last of the tensor's axes from one position to the next, slices included.
  std::int64_t step() const {
    std::int64_t step = factor;
    for (const Slice& slice : slices) step *= slice.step;
    return step;
  }
  /// Is it an axis of the tensor, or slices of one?
  bool of_tensor() const { return axes.size() == 1 && windows.empty() && within == 0; }
};
std::vector<ViewAxis> view_axes(const Graph& graph, Id view);

/// Two axes of a view that are flattened into one, which a launch's strides must allow: each is one of the tensor's.
struct Flattened {
  int parameter;
  std::vector<int> axes;  ///< of the tensor, the outer one first; two or more
  Id view;
};
/// Those that the graph's accesses go through.
std::vector<Flattened> flattened_axes(const Graph& graph);

}  // namespace tessera::internal
