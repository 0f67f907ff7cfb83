// The axes of a view in terms of its tensor, with all views of views combined, for code that addresses its elements.
#pragma once
#include <vector>

#include "tessera/graph/graph.hpp"

namespace tessera::internal {

/// An axis of a view. Its slices map position p to position q = (start + p step), ..., of the axis that they slice, and
/// q is element q * factor of the last of the tensor's axes.
struct ViewAxis {
  struct Slice {
    Id start, extent;
    int step;
  };
  std::vector<int> axes;         ///< of the tensor, outer axis first; several if they are flattened into one
  std::int64_t factor = 1;       ///< elements of the last of them from one position to the next
  std::vector<Windows> windows;  ///< taken from the axes' elements, then from those windows, ...; the axis numbers the
                                 ///< windows
  int within = 0;                ///< above 0: the axis is the elements of one window, whose size this is
  std::vector<Slice> slices;     ///< of those positions; the first one was taken first

  /// Elements of the last of the tensor's axes from one position to the next, including slices.
  std::int64_t step() const {
    std::int64_t step = factor;
    for (const Slice& slice : slices) step *= slice.step;
    return step;
  }
  /// Is it an axis of the tensor, or slices of one?
  bool of_tensor() const { return axes.size() == 1 && windows.empty() && within == 0; }
};
std::vector<ViewAxis> view_axes(const Graph& graph, Id view);

/// Axes of a tensor that a view flattens into one, which the strides at launch must allow.
struct Flattened {
  int parameter;
  std::vector<int> axes;  ///< of the tensor, outer axis first; two or more
  Id view;
};
/// The flattened axes that the graph's accesses use.
std::vector<Flattened> flattened_axes(const Graph& graph);

}  // namespace tessera::internal
