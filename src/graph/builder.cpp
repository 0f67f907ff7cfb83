#include "graph/builder.hpp"

#include <fmt/format.h>

#include "graph/infer.hpp"

namespace tessera {
namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ull;
  return hash ^ (hash >> 29);
}

// Everything a pure node means, and nothing else: no names, no places.
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
  begin(RegionKind::kernel);
}

void GraphBuilder::fail(Location location, std::string_view text) const {
  throw Error(fmt::format("kernel '{}', {}:{}: {}", graph_.name, location.file, location.line, text));
}

bool GraphBuilder::is_open(RegionId region) const {
  return std::find(open_.begin(), open_.end(), region) != open_.end();
}

void GraphBuilder::check_visible(Id id, Location location) const {
  const Node& node = graph_[id];
  if (is_open(node.region)) return;
  const bool loop = graph_.regions[node.region].kind == RegionKind::loop;
  fail(location, fmt::format("the value made at {}:{} inside {} is used outside of it; {}", node.location.file,
                             node.location.line, loop ? "a loop" : "an if_",
                             loop ? "carry it out in a Var" : "make it before the if_"));
}

Id GraphBuilder::apply(Op op, ElementType type, std::span<const Id> in, std::span<const std::int64_t> attr,
                       Location location, const Shape& shape) {
  if (op == Op::extent && graph_[in[0]].op != Op::tensor) return extent(in[0], static_cast<int>(attr[0]), location);
  Node node{op, type, false, is_effect(op), 0, {}, {in.begin(), in.end()}, {attr.begin(), attr.end()}, location};
  for (Id id : in) {
    check_visible(id, location);
    node.region = std::max(node.region, graph_[id].region);
  }
  try {
    check_types(graph_, op, type, in);
    node.shape = infer_shape(graph_, op, in, attr, shape);
    if (!is_view(op)) check_tile(op, node.shape);
  } catch (const Mismatch& mismatch) {
    fail(location, mismatch.what());
  }
  if (op == Op::load || op == Op::gather) {
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

// The extent of a view is one that is already known: of the slice as the author gave it, else of the tensor below.
Id GraphBuilder::extent(Id view, int axis, Location location) {
  const Node& node = graph_[view];
  if (node.op == Op::slice && node.attr[0] == axis) return node.in[2];
  const std::int64_t below = node.op == Op::permute_view ? node.attr[static_cast<std::size_t>(axis)] : axis;
  const Id operand = node.in[0];
  return apply(Op::extent, ElementType::i32, {&operand, 1}, {&below, 1}, location);
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
  graph_.nodes.push_back(std::move(node));
  return static_cast<Id>(graph_.nodes.size() - 1);
}

RegionId GraphBuilder::begin(RegionKind kind) {
  const auto region = static_cast<RegionId>(graph_.regions.size());
  graph_.regions.push_back({kind, open_.empty() ? 0 : open_.back(), {}, {}, {}});
  open_.push_back(region);
  return region;
}

RegionId GraphBuilder::begin_loop(Location location) {
  const RegionId region = begin(RegionKind::loop);
  argument(ElementType::i32, {}, location);
  return region;
}

Id GraphBuilder::argument(ElementType type, const Shape& shape, Location location) {
  Region& region = graph_.regions[open_.back()];
  Node node{Op::argument, type,  false, false,
            open_.back(), shape, {},    {static_cast<std::int64_t>(region.arguments.size())},
            location};
  const Id id = append(std::move(node));
  region.arguments.push_back(id);
  return id;
}

Id GraphBuilder::end_loop(Id count, std::span<const Id> initial, std::span<const Id> yields, Location location) {
  const RegionId region = open_.back();
  graph_.regions[region].yields.assign(yields.begin(), yields.end());
  open_.pop_back();
  std::vector<Id> in{count};
  in.insert(in.end(), initial.begin(), initial.end());
  const std::int64_t attr[] = {region};
  return apply(Op::loop, ElementType::i32, in, attr, location);
}

Id GraphBuilder::result(Id loop, int position, Location location) {
  const Node& initial = graph_[graph_[loop].in[static_cast<std::size_t>(position) + 1]];
  const std::int64_t attr[] = {position};
  return apply(Op::result, initial.type, {&loop, 1}, attr, location, Shape(initial.shape));
}

RegionId GraphBuilder::begin_branch() { return begin(RegionKind::branch); }

Id GraphBuilder::end_branch(Id condition, Location location) {
  const std::int64_t attr[] = {open_.back()};
  open_.pop_back();
  return apply(Op::branch, ElementType::pred, {&condition, 1}, attr, location);
}

void GraphBuilder::set_grid(std::span<const Id> extents, Location location) {
  if (!graph_.grid.empty()) fail(location, "blocks(...) is called twice; a kernel has one grid");
  for (Id id : extents)
    if (!graph_[id].uniform)
      fail(location,
           "blocks(...) must be given extents, scalars and what is computed from them; this depends on a tile");
  graph_.grid.assign(extents.begin(), extents.end());
}

std::int64_t GraphBuilder::add_text(std::string text) {
  graph_.texts.push_back(std::move(text));
  return static_cast<std::int64_t>(graph_.texts.size() - 1);
}

}  // namespace tessera
