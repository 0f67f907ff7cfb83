#include "jit/backend/in_flight.hpp"

#include <algorithm>

namespace tessera::internal {

void InFlight::add(const Graph& graph, std::span<const Argument> arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Parameter& parameter = graph.parameters[i];
    if (parameter.access != Access::out && parameter.access != Access::in_out) continue;
    const std::optional<AddressRange> range = addresses(parameter, arguments[i]);
    // The layers of a model write the same memory again and again.
    if (!range || std::ranges::find(written_, *range) != written_.end()) continue;
    if (written_.size() == most) return forget();
    written_.push_back(*range);
  }
}

bool InFlight::write(const Graph& graph, std::span<const Argument> arguments, std::span<const int> tensors) const {
  return std::ranges::any_of(tensors, [&](int tensor) {
    const auto i = static_cast<std::size_t>(tensor);
    const std::optional<AddressRange> read = addresses(graph.parameters[i], arguments[i]);
    return read && std::ranges::any_of(written_, [&](const AddressRange& range) {
      return range.first <= read->last && read->first <= range.last;
    });
  });
}

}  // namespace tessera::internal
