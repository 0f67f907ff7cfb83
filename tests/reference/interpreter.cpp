#include "reference/interpreter.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "graph/reports.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal::reference {
namespace {

constexpr std::int64_t outside = -1, unknown = -2;

std::int64_t whole(const Tile& tile) { return static_cast<std::int64_t>(tile.item().low); }

}  // namespace

Interpreter::Interpreter(const Graph& graph, std::span<const Argument> arguments, std::vector<Memory>& memory)
    : graph_(graph),
      arguments_(arguments),
      memory_(memory),
      nodes_(graph.regions.size()),
      values_(graph.nodes.size()),
      views_(graph.nodes.size()) {
  // Operands come before their users, and the effects of a loop or a branch in program order: within each region the
  // nodes can run in the order of their ids.
  for (Id id = 0; id < graph.nodes.size(); ++id) {
    const Node& node = graph[id];
    if (node.uniform)
      run_node(id);
    else if (info(node.op).role == OpRole::claim)
      require(node);
    else if (node.op != Op::argument)
      nodes_[node.region].push_back(id);
  }
}

void Interpreter::require(const Node& node) const {
  if (operand(node, 0).item().high == 0)
    throw Error(fmt::format("launch of kernel '{}' refused: it requires: {}", graph_.name, graph_.texts[node.text()]));
}

// Printed lines are dropped.
void Interpreter::report(const Node& node) const {
  if (node.op == Op::check && operand(node, 0).item().high == 0)
    throw Error(Reports(graph_).failed(node.text(), block_));
}

std::vector<std::int64_t> Interpreter::grid() const {
  std::vector<std::int64_t> extents;
  for (const Id id : graph_.grid) extents.push_back(static_cast<std::int64_t>(values_[id].elements[0].low));
  return extents;
}

void Interpreter::run(std::int64_t block, std::span<const std::int64_t> coordinates) {
  block_ = block;
  coordinates_.assign(coordinates.begin(), coordinates.end());
  run_region(0);
}

void Interpreter::run_region(RegionId region) {
  for (Id id : nodes_[region]) run_node(id);
}

void Interpreter::run_node(Id id) {
  const Node& node = graph_[id];
  switch (info(node.op).role) {
    case OpRole::view:
      views_[id] = view(node);
      break;
    case OpRole::read:
      values_[id] = load(node);
      break;
    case OpRole::write:
      write(node);
      break;
    case OpRole::atomic:
      values_[id] = change(node);
      break;
    case OpRole::report:
      report(node);
      break;
    case OpRole::region:
      loop(id);
      break;
    default:
      values_[id] = compute(node);
  }
}

void Interpreter::loop(Id id) {
  const Node& node = graph_[id];
  const Region& body = graph_.body(id);
  std::vector<Tile>& carried = carried_[id];
  carried.clear();
  for (std::size_t k = 1; k < node.in.size(); ++k) carried.push_back(operand(node, k));
  const auto spoiled = [&] {
    for (Tile& tile : carried) tile = Tile(tile.type, tile.shape, Element::anything());
    spoil(node.body());
  };
  if (!operand(node, 0).item().exact()) return spoiled();
  std::int64_t count = whole(operand(node, 0));  // a condition is 0 or 1
  for (std::int64_t i = 0; i < count; ++i) {
    values_[body.arguments[0]] = Tile(ElementType::i32, {}, Element::of(static_cast<Real>(i)));
    for (std::size_t k = 0; k < carried.size(); ++k) values_[body.arguments[k + 1]] = std::move(carried[k]);
    run_region(node.body());
    for (std::size_t k = 0; k < carried.size(); ++k) carried[k] = values_[body.yields[k]];
    if (node.op != Op::repeat) continue;
    const Tile& again = values_[body.yields.back()];
    if (!again.item().exact()) return spoiled();
    count += whole(again);
  }
}

// The tensor of a parameter, or all of the list that begins with it.
void Interpreter::spoil_tensors(std::size_t parameter) {
  const int tensors = std::max(tensors_of_list(graph_.parameters, parameter), 1);
  for (int i = 0; i < tensors; ++i) memory_[parameter + static_cast<std::size_t>(i)].spoil();
}

void Interpreter::spoil(RegionId region) {
  for (Id id : graph_.regions[region].effects) {
    const Node& node = graph_[id];
    if (has_region(node.op))
      spoil(node.body());
    else if (is_write(node.op))
      spoil_tensors(
          static_cast<std::size_t>(view_parameter(graph_, node.in[static_cast<std::size_t>(view_operand(node.op))])));
  }
}

Tile Interpreter::compute(const Node& node) const {
  const auto in = [&](std::size_t i) -> const Tile& { return operand(node, i); };
  const auto single = [&](Real x) { return Tile(node.type, {}, Element::of(x)); };
  if (is_unary(node.op)) return unary(node.op, in(0));
  if (is_binary(node.op)) return binary(node.op, in(0), in(1));
  if (is_ternary(node.op)) return ternary(node.op, in(0), in(1), in(2));
  if (is_reduction(node.op)) return reduce(node.op, in(0), node.axis());
  if (is_scan(node.op)) return scan(node.op, in(0), node.axis(), node.scan_options());
  switch (node.op) {
    case Op::select:
      return select(in(0), in(1), in(2));
    case Op::cast:
      return cast(in(0), node.type);
    case Op::bitcast:
      return bitcast(in(0), node.type);
    case Op::custom: {
      std::vector<const Tile*> tiles;
      for (std::size_t i = 0; i < node.in.size(); ++i) tiles.push_back(&in(i));
      return custom(graph_.functions[node.function()], tiles);
    }
    case Op::constant:
      return {node.type, node.shape, element_of(node.type, node.number())};
    case Op::iota:
      return iota(node.shape, node.axis());
    case Op::block:
      return single(static_cast<Real>(coordinates_[node.grid_axis()]));
    case Op::scalar:
      return {node.type, {}, element_of(node.type, arguments_[node.parameter()].scalar)};
    case Op::extent:
      if (!views_[node.in[0]].known) return Tile(node.type, {}, Element::anything());
      return single(static_cast<Real>(views_[node.in[0]].extents[static_cast<std::size_t>(node.axis())]));
    case Op::reshape: {
      Tile result = in(0);
      result.shape = node.shape;
      return result;
    }
    case Op::permute:
      return permute(in(0), node.permutation());
    case Op::broadcast:
      return broadcast(in(0), node.shape);
    case Op::concat: {
      std::vector<const Tile*> parts;
      for (Id id : node.in) parts.push_back(&values_[id]);
      return concat(parts, node.axis());
    }
    case Op::extract: {
      std::vector<Element> first;
      for (std::size_t axis = 0; axis < node.steps().size(); ++axis) first.push_back(in(axis + 1).item());
      return extract(in(0), first, node.steps(), node.shape);
    }
    case Op::argmax:
      return argmax(in(0), node.axis());
    case Op::sort:
      return sort(in(0), node.axis(), node.sort_options(), node.shape);
    case Op::argsort:
      return argsort(in(0), node.axis(), node.sort_options(), node.shape);
    case Op::histogram:
      return histogram(in(0), node.axis(), node.shape);
    case Op::inverse_permutation:
      return inverse_permutation(in(0), node.axis(), node.shape);
    case Op::take_along_axis:
      return take_along_axis(in(0), in(1), node.axis());
    case Op::mma:
      return mma(in(0), in(1), in(2));
    case Op::result:
      return carried_.at(node.in[0])[node.position()];
    default:
      throw std::logic_error("the reference lacks " + std::string(name(node.op)));
  }
}

View Interpreter::view(const Node& node) const {
  if (node.op == Op::tensor) {
    return {node.parameter(), {}, memory_[node.parameter()].extents()};
  }
  using Coordinates = View::Coordinates;
  if (node.op == Op::member) {
    const std::size_t first = node.parameter();
    const std::vector<std::int64_t> nothing(memory_[first].extents().size());
    if (!operand(node, 0).item().exact()) return {first, {}, nothing, false};
    const std::int64_t tensor = whole(operand(node, 0));
    if (tensor < 0 || tensor >= tensors_of_list(graph_.parameters, first))
      return {first, {[](Coordinates&) { return false; }}, nothing};
    const std::size_t parameter = first + static_cast<std::size_t>(tensor);
    return {parameter, {}, memory_[parameter].extents()};
  }
  View result = views_[node.in[0]];
  if (node.op == Op::permute_view) {
    const std::vector<std::int64_t> axes(node.permutation().begin(), node.permutation().end()), from = result.extents;
    for (std::size_t i = 0; i < axes.size(); ++i) result.extents[i] = from[static_cast<std::size_t>(axes[i])];
    result.steps.push_back([axes](Coordinates& at) {
      const Coordinates transposed = at;
      for (std::size_t i = 0; i < axes.size(); ++i) at[static_cast<std::size_t>(axes[i])] = transposed[i];
      return true;
    });
    return result;
  }
  const auto axis = static_cast<std::size_t>(node.axis());
  const auto place = static_cast<std::ptrdiff_t>(axis);
  if (node.op == Op::unfold_view) {
    const auto [size, step] = node.windows();
    std::int64_t count = 0;
    while (count * step + size <= result.extents[axis]) ++count;
    result.extents[axis] = count;
    result.extents.insert(result.extents.begin() + place + 1, size);
    result.steps.push_back([=, size = size, step = step](Coordinates& at) {
      const std::int64_t window = at[axis], element = at[axis + 1];
      at.erase(at.begin() + place + 1);
      at[axis] = window * step + element;
      return window >= 0 && window < count && element >= 0 && element < size;
    });
    return result;
  }
  if (node.op == Op::flatten_view) {
    const std::int64_t rows = result.extents[axis], row = result.extents[axis + 1];
    result.extents[axis] = rows * row;
    result.extents.erase(result.extents.begin() + place + 1);
    result.steps.push_back([=](Coordinates& at) {
      const std::int64_t element = at[axis];
      if (element < 0 || element >= rows * row) return false;
      at[axis] = element / row;
      at.insert(at.begin() + place + 1, element % row);
      return true;
    });
    return result;
  }
  result.known &= operand(node, 1).item().exact() && operand(node, 2).item().exact();
  if (!result.known) return result;
  const std::int64_t start = whole(operand(node, 1)), extent = whole(operand(node, 2)), step = node.step();
  result.extents[axis] = extent;
  result.steps.push_back([=](Coordinates& at) {
    const bool is_there = at[axis] >= 0 && at[axis] < extent;
    at[axis] = start + at[axis] * step;
    return is_there;
  });
  return result;
}

std::vector<std::int64_t> Interpreter::places(const Node& node, const Shape& tile) const {
  using Numbers = std::vector<std::int64_t>;
  const bool by_element = by_elements(node.op);
  const std::size_t rows = operand_of(node.op, OperandKind::rows) >= 0 ? 1 : 0;  // axes whose indices are listed
  const auto view_at = static_cast<std::size_t>(view_operand(node.op));
  const View& view = views_[node.in[view_at]];
  const Numbers extents(tile.begin(), tile.end()), &of_tensor = memory_[view.parameter].extents();
  const Numbers steps = row_major(of_tensor);
  const std::size_t axes = static_cast<std::size_t>(graph_[node.in[view_at]].shape.rank());
  const auto position = [&](std::size_t axis, const Numbers& inside) {
    const Tile& index = operand(node, view_at + 1 + axis);
    if (axis < rows) return index.elements[static_cast<std::size_t>(inside[axis])];
    return index.item().exact() ? Element::of(static_cast<Real>(whole(index) * extents[axis] + inside[axis]))
                                : Element::anything();
  };
  const auto place = [&](std::size_t number) {
    const Numbers inside = coordinates(static_cast<std::int64_t>(number), extents);
    Numbers element;
    for (std::size_t axis = 0; axis < axes; ++axis) {
      const Element at = by_element ? operand(node, view_at + 1 + axis).elements[number] : position(axis, inside);
      if (!at.exact()) return unknown;
      element.push_back(static_cast<std::int64_t>(at.low));
    }
    for (std::size_t i = view.steps.size(); i-- > 0;)
      if (!view.steps[i](element)) return outside;
    std::int64_t sum = 0;
    for (std::size_t axis = 0; axis < element.size(); ++axis) {
      if (element[axis] < 0 || element[axis] >= of_tensor[axis]) return outside;
      sum += element[axis] * steps[axis];
    }
    return sum;
  };
  Numbers places(static_cast<std::size_t>(tile.size()), unknown);
  if (!view.known) return places;
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = place(i);
  return places;
}

Tile Interpreter::load(const Node& node) {
  Tile result(node.type, node.shape, element_of(node.type, node.number()));
  Memory& memory = memory_[views_[node.in[0]].parameter];
  const std::vector<std::int64_t> from = places(node, node.shape);
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i] != outside)
      result.elements[i] = from[i] == unknown ? Element::anything() : memory.load(from[i], block_);
  return result;
}

std::size_t Interpreter::list_of(const Node& access) const {
  const Id view = access.in[static_cast<std::size_t>(view_operand(access.op))];
  return views_[view].known ? views_[view].parameter : static_cast<std::size_t>(view_parameter(graph_, view));
}

void Interpreter::write(const Node& node) {
  const Tile& tile = operand(node, 0);
  Memory& memory = memory_[views_[node.in[1]].parameter];
  const std::vector<std::int64_t> to = places(node, tile.shape);
  ++effect_;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i] == unknown) return spoil_tensors(list_of(node));
    if (to[i] == outside) continue;
    memory.store(to[i], tile.elements[i], block_, effect_);
  }
}

Tile Interpreter::change(const Node& node) {
  const auto view = static_cast<std::size_t>(view_operand(node.op));
  const Tile &tile = operand(node, 0), &expected = operand(node, view - 1);
  Memory& memory = memory_[views_[node.in[view]].parameter];
  const std::vector<std::int64_t> to = places(node, tile.shape);
  Tile old(node.type, node.shape, Element::anything());
  ++effect_;
  if (std::ranges::find(to, unknown) != to.end()) {
    spoil_tensors(list_of(node));
    return old;
  }
  std::map<std::int64_t, int> meet;
  for (const std::int64_t place : to) ++meet[place];
  for (std::size_t i = 0; i < to.size(); ++i) {
    const Change change{at_position(node.op), tile.elements[i], expected.elements[i], meet[to[i]] == 1};
    old.elements[i] = to[i] == outside ? Element::of(0) : memory.change(to[i], change, block_, effect_);
  }
  return old;
}

}  // namespace tessera::internal::reference
