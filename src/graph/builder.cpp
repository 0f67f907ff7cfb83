#include "tessera/graph/builder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "graph/infer.hpp"
#include "graph/views.hpp"

namespace tessera::internal {
namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ull;
  return hash ^ (hash >> 29);
}

// The meaning of a pure node, without names and locations. Nodes of equal meaning are one: common subexpression
// elimination (CSE) by hash-consing.
std::uint64_t hash_of(const Node& node) {
  std::uint64_t hash =
      mix(static_cast<std::uint64_t>(node.op) << 8 | static_cast<std::uint64_t>(node.type), node.region);
  for (int extent : node.shape) hash = mix(hash, static_cast<std::uint64_t>(extent));
  for (Id id : node.in) hash = mix(hash, id);
  for (std::int64_t attribute : node.attr) hash = mix(hash, static_cast<std::uint64_t>(attribute));
  return hash;
}

}  // namespace

GraphBuilder::GraphBuilder(std::string name, std::vector<Parameter> parameters, Location location) {
  graph_.name = std::move(name);
  graph_.parameters = std::move(parameters);
  graph_.location = location;
  graph_.nodes.reserve(64);
  begin(RegionKind::kernel, location);
}

void GraphBuilder::fail(Location location, std::string_view text) const {
  throw Error(fmt::format("kernel '{}', {}:{}: {}", graph_.name, location.file, location.line, text));
}

void GraphBuilder::check_visible(Id id, Location location) const {
  const Node& node = graph_[id];
  if (is_open(node.region)) return;
  const bool branch = graph_.regions[node.region].kind == RegionKind::branch;
  fail(location, fmt::format("the value made at {}:{} inside {} is used outside of it; carry it out in a Var",
                             node.location.file, node.location.line, branch ? "an if_" : "a loop"));
}

Id GraphBuilder::apply(Op op, ElementType type, std::span<const Id> in, std::span<const std::int64_t> attr,
                       Location location, const Shape& shape) {
  if (op == Op::extent && !is_base_view(graph_[in[0]].op)) return extent(in[0], attr[0], location);
  if (is_view(op) && !is_base_view(op)) check_views(in[0], location);
  Node node{op, type, false, is_effect(op), 0, {}, {in.begin(), in.end()}, {attr.begin(), attr.end()}, location};
  for (Id id : in) {
    check_visible(id, location);
    node.region = std::max(node.region, graph_[id].region);  // so invariant code leaves its loop (LICM) by itself
  }
  try {
    check_types(graph_, op, type, in);
    node.shape = infer_shape(graph_, op, in, attr, shape);
    if (!is_view(op)) check_tile(op, node.shape);
  } catch (const Mismatch& mismatch) {
    fail(location, mismatch.what());
  }
  if (is_read(op)) {
    const Access access = graph_.parameters[static_cast<std::size_t>(view_parameter(graph_, in[0]))].access;
    node.ordered = access == Access::in_out;
  }
  if (node.ordered) {
    node.region = open_.back();
    const Id id = append(std::move(node));
    graph_.regions[open_.back()].effects.push_back(id);
    return id;
  }
  node.uniform = is_uniform(graph_, node);
  const std::uint64_t hash = hash_of(node);
  if (const Id id = find(node, hash); id != no_id) return id;
  const Id id = append(std::move(node));
  known_.emplace(hash, id);
  return id;
}

// The extent of a view follows from known values: for a slice the given extent, otherwise the extents of the tensor
// below.
Id GraphBuilder::extent(Id view, std::int64_t axis, Location location) {
  if (axis < 0 || axis >= graph_[view].shape.rank())
    fail(location, fmt::format("extent: axis {} does not "
                               "exist",
                               axis));
  const ViewAxis at = view_axes(graph_, view)[static_cast<std::size_t>(axis)];
  if (!at.slices.empty()) return at.slices.back().extent;
  const auto number = [&](int value) { return constant(ElementType::i32, cell_of(value), {}, location); };
  const auto computed = [&](Op op, Id a, Id b) {
    const Id in[] = {a, b};
    return apply(op, ElementType::i32, in, {}, location);
  };
  if (at.within > 0) return number(at.within);
  view = base_view(graph_, view);
  Id result = no_id;
  for (const std::int64_t one : at.axes) {
    const Id extent = apply(Op::extent, ElementType::i32, {&view, 1}, {&one, 1}, location);
    result = result == no_id ? extent : computed(Op::mul, result, extent);
  }
  for (const auto& [size, step] : at.windows) {
    if (size != step) result = computed(Op::add, result, number(step - size));
    result = computed(Op::floor_div, result, number(step));
    if (size > step) result = computed(Op::maximum, result, number(0));
  }
  return result;
}

void GraphBuilder::check_views(Id view, Location location) const {
  int depth = 1;
  for (; !is_base_view(graph_[view].op); view = graph_[view].in[0])
    if (++depth > most_views)
      fail(location, fmt::format("views of views are nested more than {} deep; take them from the tensor", most_views));
}

Id GraphBuilder::constant(ElementType type, Cell value, const Shape& shape, Location location) {
  const std::int64_t bits = encode(type, value);
  return apply(Op::constant, type, {}, {&bits, 1}, location, shape);
}

Id GraphBuilder::find(const Node& node, std::uint64_t hash) const {
  for (auto [it, last] = known_.equal_range(hash); it != last; ++it) {
    const Node& other = graph_[it->second];
    if (other.op == node.op && other.type == node.type && other.region == node.region && other.shape == node.shape &&
        other.in == node.in && other.attr == node.attr)
      return it->second;
  }
  return no_id;
}

Id GraphBuilder::append(Node node) {
  if (node.location.order == 0) node.location.order = static_cast<unsigned>(graph_.nodes.size()) + 1;
  graph_.nodes.push_back(std::move(node));
  return static_cast<Id>(graph_.nodes.size() - 1);
}

RegionId GraphBuilder::begin(RegionKind kind, Location location) {
  if (static_cast<int>(open_.size()) > most_nested)
    fail(location, fmt::format("loops and if_ are nested more than {} deep; merge several loops into "
                               "one",
                               most_nested));
  const auto region = static_cast<RegionId>(graph_.regions.size());
  graph_.regions.push_back({kind, open_.empty() ? 0 : open_.back(), {}, {}, {}});
  open_.push_back(region);
  is_open_.push_back(true);
  return region;
}

RegionId GraphBuilder::end() {
  const RegionId region = open_.back();
  open_.pop_back();
  is_open_[region] = false;
  return region;
}

RegionId GraphBuilder::begin_region(Op owner, Location location) {
  const RegionId region = begin(owner == Op::loop     ? RegionKind::loop
                                : owner == Op::branch ? RegionKind::branch
                                                      : RegionKind::repeat,
                                location);
  argument(ElementType::i32, {}, location);
  return region;
}

Id GraphBuilder::argument(RegionId region, ElementType type, const Shape& shape, Location location, Location var) {
  std::vector<Id>& arguments = graph_.regions[region].arguments;
  const auto position = static_cast<std::int64_t>(arguments.size());
  const Id id = append({Op::argument, type, false, false, region, shape, {}, {position}, location, var});
  arguments.push_back(id);
  return id;
}

void GraphBuilder::order_carried(std::span<const Id> arguments) {
  std::copy(arguments.begin(), arguments.end(), graph_.regions[open_.back()].arguments.begin() + 1);
  for (std::size_t k = 0; k < arguments.size(); ++k)
    graph_.nodes[arguments[k]].attr[0] = static_cast<std::int64_t>(k) + 1;
}

Id GraphBuilder::end_region(Id first, std::span<const Id> initial, std::span<const Id> yields, Location location) {
  const RegionId region = end();
  const RegionKind kind = graph_.regions[region].kind;
  graph_.regions[region].yields.assign(yields.begin(), yields.end());
  std::vector<Id> in{first};
  in.insert(in.end(), initial.begin(), initial.end());
  const std::int64_t attr[] = {region};
  const Op owner = kind == RegionKind::loop ? Op::loop : kind == RegionKind::branch ? Op::branch : Op::repeat;
  return apply(owner, owner == Op::loop ? ElementType::i32 : ElementType::pred, in, attr, location);
}

Id GraphBuilder::result(Id loop, int position, Location location) {
  const Node& initial = graph_[graph_[loop].in[static_cast<std::size_t>(position) + 1]];
  const std::int64_t attr[] = {position};
  const Location var = graph_[graph_.body(loop).arguments[static_cast<std::size_t>(position) + 1]].var;
  const Id result = apply(Op::result, initial.type, {&loop, 1}, attr, location, Shape(initial.shape));
  graph_.nodes[result].var = var;
  return result;
}

void GraphBuilder::set_grid(std::span<const Id> extents, Location location) {
  if (!graph_.grid.empty()) fail(location, "blocks(...) is called twice; a kernel has one grid");
  for (Id id : extents)
    if (!graph_[id].uniform)
      fail(location, "blocks(...) takes values computed from extents and scalars; this one depends on a tile");
  graph_.grid.assign(extents.begin(), extents.end());
}

std::int64_t GraphBuilder::add_function(const CustomFunction& function, Location location) {
  const std::string& name = function.name;
  const bool is_identifier = !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
  if (!is_identifier) fail(location, fmt::format("cuda_op: '{}' is not a valid name; use letters, digits and _", name));
  if (function.expression.empty())
    fail(location, fmt::format("cuda_op '{}': it has no expression of its operands a, b, c and d", name));
  std::vector<CustomFunction>& functions = graph_.functions;
  for (const CustomFunction& other : functions) {
    // The same lambda in a template is a different function in each of its instances.
    const bool same = other.expression == function.expression && other.type == function.type &&
                      other.operands == function.operands;
    if (other.name == name && !same)
      fail(location, fmt::format("cuda_op '{}': the kernel has another cuda_op of this name, '{}'; rename one", name,
                                 other.expression));
  }
  const auto known = std::ranges::find(functions, function);
  if (known == functions.end()) {
    functions.push_back(function);
    return static_cast<std::int64_t>(functions.size() - 1);
  }
  return known - functions.begin();
}

std::int64_t GraphBuilder::add_text(std::string text) {
  graph_.texts.push_back(std::move(text));
  return static_cast<std::int64_t>(graph_.texts.size() - 1);
}

}  // namespace tessera::internal
