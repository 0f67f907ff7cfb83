#include "graph/views.hpp"

#include <algorithm>

namespace tessera::internal {

std::vector<ViewAxis> view_axes(const Graph& graph, Id view) {
  std::vector<Id> way;  // from the view down to the tensor
  for (; !is_base_view(graph[view].op); view = graph[view].in[0]) way.push_back(view);
  std::vector<ViewAxis> axes(static_cast<std::size_t>(graph[view].shape.rank()));
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i].axes = {static_cast<int>(i)};
  for (; !way.empty(); way.pop_back()) {
    const Node& at = graph[way.back()];
    const auto axis = [&] { return axes.begin() + at.axis(); };
    switch (at.op) {
      case Op::slice:
        axis()->slices.push_back({at.in[1], at.in[2], at.step()});
        break;
      case Op::permute_view: {
        const std::vector<ViewAxis> before = axes;
        for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = before[static_cast<std::size_t>(at.permutation()[i])];
        break;
      }
      case Op::unfold_view: {
        const Windows windows = at.windows();
        ViewAxis inner = *axis();
        inner.windows.clear();
        inner.within = windows.size;
        ViewAxis& outer = *axis();
        if (outer.within > 0)
          outer.within = std::max(0, (outer.within + windows.step - windows.size) / windows.step);
        else
          outer.windows.push_back(windows);
        outer.factor *= windows.step;
        axes.insert(axis() + 1, std::move(inner));
        break;
      }
      default: {  // flatten_view
        const std::vector<int> further = (axis() + 1)->axes;
        axis()->axes.insert(axis()->axes.end(), further.begin(), further.end());
        axes.erase(axis() + 1);
      }
    }
  }
  return axes;
}

std::vector<Flattened> flattened_axes(const Graph& graph) {
  std::vector<Flattened> found;
  for (const std::vector<Id>& region : schedule(graph))
    for (const Id id : region) {
      if (graph[id].op != Op::flatten_view) continue;
      const ViewAxis axis = view_axes(graph, id)[static_cast<std::size_t>(graph[id].axis())];
      const int first = view_parameter(graph, id);
      const int tensors = std::max(tensors_of_list(graph.parameters, static_cast<std::size_t>(first)), 1);
      for (int i = 0; i < tensors; ++i) found.push_back({first + i, axis.axes, id});
    }
  return found;
}

}  // namespace tessera::internal
