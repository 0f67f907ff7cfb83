#include "tessera/graph/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "tessera/graph/error.hpp"

namespace tessera::internal {

namespace {

// Does the parameter belong to the same list as the one before it?
bool continues_list(std::span<const Parameter> parameters, std::size_t at) {
  return at > 0 && parameters[at].list > 0 && parameters[at - 1].list == parameters[at].list + 1;
}

}  // namespace

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape.begin(), shape.end(), ",")); }

std::string to_string(const Parameter& parameter) {
  constexpr std::string_view access[] = {"In", "Out", "InOut", "Scalar"};
  const auto kind = access[static_cast<int>(parameter.access)];
  if (parameter.access == Access::scalar) return fmt::format("{}<{}>", kind, name(parameter.type));
  const std::string text = fmt::format("{}<{}, {}>", kind, name(parameter.type), parameter.rank);
  return parameter.optional ? fmt::format("Optional<{}>", text) : text;
}

std::string to_string(std::span<const Parameter> parameters) {
  std::string text;
  for (std::size_t i = 0; i < parameters.size(); i += argument_size(parameters, i)) {
    const int tensors = tensors_of_list(parameters, i);
    text += i == 0 ? "" : ", ";
    text += tensors > 0 ? fmt::format("List<{}, {}>", to_string(parameters[i]), tensors) : to_string(parameters[i]);
  }
  return text;
}

std::string type_text(const Node& node) {
  if (is_view(node.op)) return fmt::format("{} view of rank {}", name(node.type), node.shape.rank());
  return fmt::format("{}{}", name(node.type), to_string(node.shape));
}

Cell Node::number() const { return decode(type, bits()); }

ScanOptions Node::scan_options() const {
  check(Attribute::scan);
  return {(attr.at(1) & 1) != 0, (attr.at(1) & 2) != 0};
}

std::string_view name(MemoryOrder order) {
  constexpr std::string_view names[] = {"relaxed", "acquire", "release", "acq_rel"};
  return names[static_cast<int>(order)];
}
std::string_view name(MemoryScope scope) {
  constexpr std::string_view names[] = {"block", "device", "system"};
  return names[static_cast<int>(scope)];
}

SortOptions Node::sort_options() const {
  check(Attribute::sorted);
  return {attr.at(1) != 0};
}

void Node::lacks_attribute() const {
  throw InternalError(fmt::format("{} does not have the attribute that was requested", name(op)));
}

Id base_view(const Graph& graph, Id view) {
  while (!is_base_view(graph[view].op)) view = graph[view].in[0];
  return view;
}

int view_parameter(const Graph& graph, Id view) { return static_cast<int>(graph[base_view(graph, view)].parameter()); }

int tensors_of_list(std::span<const Parameter> parameters, std::size_t first) {
  return continues_list(parameters, first) ? 0 : std::max(parameters[first].list - 1, 0);
}

std::size_t argument_size(std::span<const Parameter> parameters, std::size_t first) {
  return static_cast<std::size_t>(tensors_of_list(parameters, first)) + 1;
}

int argument_number(std::span<const Parameter> parameters, std::size_t parameter) {
  int number = 0;
  for (std::size_t i = 0; i <= parameter; ++i) number += continues_list(parameters, i) ? 0 : 1;
  return number;
}

std::string argument_name(std::span<const Parameter> parameters, std::size_t parameter) {
  std::size_t first = parameter;
  while (continues_list(parameters, first)) --first;
  const bool in_list = parameters[parameter].list > 0 && parameters[parameter].access != Access::scalar;
  return fmt::format("{}{}", argument_number(parameters, parameter),
                     in_list ? fmt::format("[{}]", parameter - first) : "");
}

bool is_uniform(const Graph& graph, const Node& node) {
  switch (node.op) {
    case Op::constant:
      return node.shape.rank() == 0;
    case Op::scalar:
    case Op::tensor:
      return true;
    case Op::member:
    case Op::slice:
    case Op::permute_view:
    case Op::unfold_view:
    case Op::flatten_view:
    case Op::extent:
      break;
    default:
      if (!is_elementwise(node.op) || node.op == Op::custom || node.shape.rank() != 0) return false;
  }
  return std::all_of(node.in.begin(), node.in.end(), [&](Id in) { return graph[in].uniform; });
}

std::int64_t encode(ElementType type, Cell cell) {
  return with_host(host_type(type), [&]<class T>(T) -> std::int64_t {
    if constexpr (std::is_same_v<T, float>)
      return std::bit_cast<std::int32_t>(cell.f32);
    else if constexpr (std::is_same_v<T, double>)
      return std::bit_cast<std::int64_t>(cell.f64);
    else
      return static_cast<std::int64_t>(value_in<T>(cell));
  });
}

Cell decode(ElementType type, std::int64_t attribute) {
  return with_host(host_type(type), [&]<class T>(T) {
    if constexpr (std::is_same_v<T, float>)
      return cell_of(std::bit_cast<float>(static_cast<std::int32_t>(attribute)));
    else if constexpr (std::is_same_v<T, double>)
      return cell_of(std::bit_cast<double>(attribute));
    else
      return cell_of(static_cast<T>(attribute));
  });
}

}  // namespace tessera::internal
