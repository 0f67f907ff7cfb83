#include "jit/launch/specialize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <unordered_set>
#include <vector>

#include "graph/rewrite.hpp"

namespace tessera::internal {
namespace {

class Specializer final : public Rewriter {
 public:
  Specializer(const Graph& graph, const Specialization& specialization)
      : Rewriter(graph), memory_(specialization.memory) {}

 private:
  Id rewrite(const Node& node, std::span<const Id> in) override {
    if (node.op == Op::tensor && memory_[node.parameter()] >= 0) {
      const std::int64_t shared[] = {memory_[node.parameter()]};
      return builder().apply(node.op, node.type, in, shared, node.location, node.shape);
    }
    if (node.op == Op::extent && is_absent(node.in[0]))
      return builder().constant(node.type, Cell{}, node.shape, node.location);
    if (is_read(node.op) && is_absent(view_of(node)))
      return builder().constant(node.type, decode(node.type, node.bits()), node.shape, node.location);
    if (is_atomic(node.op) && is_absent(view_of(node)))
      return builder().constant(node.type, Cell{}, node.shape, node.location);
    return Rewriter::rewrite(node, in);
  }
  bool keep(Id id) const override {
    const Node& node = source()[id];
    return !is_write(node.op) || is_atomic(node.op) || !is_absent(view_of(node));
  }

  static Id view_of(const Node& node) { return node.in[static_cast<std::size_t>(view_operand(node.op))]; }
  bool is_absent(Id view) const {
    return memory_[static_cast<std::size_t>(view_parameter(source(), view))] == Specialization::none;
  }

  const decltype(Specialization::memory) memory_;
};

// The nodes that a value depends on, also through loops and branches.
std::unordered_set<Id> operands_of(const Graph& graph, Id value) {
  std::unordered_set<Id> found;
  std::vector<Id> work{value};
  while (!work.empty()) {
    const Id id = work.back();
    work.pop_back();
    if (!found.insert(id).second) continue;
    const Node& node = graph[id];
    work.insert(work.end(), node.in.begin(), node.in.end());
    if (has_region(node.op)) {
      const std::vector<Id>& yields = graph.body(id).yields;
      work.insert(work.end(), yields.begin(), yields.end());
    }
  }
  return found;
}

std::span<const Id> indices_of(const Node& access) {
  return std::span(access.in).subspan(static_cast<std::size_t>(view_operand(access.op)) + 1);
}
bool is_whole(const Graph& graph, const Node& access) {
  const bool is_tile = access.op == Op::load || access.op == Op::store;
  return is_tile && graph[access.in[static_cast<std::size_t>(view_operand(access.op))]].op == Op::tensor;
}
Shape tile_of(const Graph& graph, const Node& access) {
  return access.op == Op::store ? graph[access.in[0]].shape : access.shape;
}
std::string place(const Location& at) { return fmt::format("{}:{}", at.file, at.line); }

}  // namespace

Graph specialize(const Graph& graph, const Specialization& specialization) {
  Graph changed = graph;
  for (std::size_t i = 0; i < changed.parameters.size(); ++i) {
    const std::int8_t memory = specialization.memory[i];
    if (memory == Specialization::none) changed.parameters[i].optional = false;
    if (memory >= 0) changed.parameters[static_cast<std::size_t>(memory)].access = Access::in_out;
  }
  return Specializer(changed, specialization).run();
}

std::string why_not_in_place(const Graph& graph, int in, int out) {
  if (graph.cuda) return "it is raw CUDA";
  std::vector<Id> loads;
  Id store = no_id;
  for (const std::vector<Id>& region : schedule(graph))
    for (const Id id : region) {
      const Node& node = graph[id];
      if (!is_read(node.op) && !is_write(node.op)) continue;
      const int parameter = view_parameter(graph, node.in[static_cast<std::size_t>(view_operand(node.op))]);
      if (parameter != in && parameter != out) continue;
      if (!is_whole(graph, node))
        return fmt::format("{}: '{}' is not of a tile of the whole tensor", place(node.location), name(node.op));
      if (is_read(node.op)) loads.push_back(id);
      if (is_write(node.op) && store != no_id) return fmt::format("{}: it is stored twice", place(node.location));
      if (is_write(node.op)) store = id;
    }
  if (store == no_id) return "it is not stored";
  const Node& to = graph[store];
  const std::unordered_set<Id> before = operands_of(graph, store);
  const std::span<const Id> indices = indices_of(to);
  for (const Id load : loads) {
    const Node& from = graph[load];
    if (!std::ranges::equal(indices_of(from), indices) || tile_of(graph, from) != tile_of(graph, to))
      return fmt::format("the tile that {} loads is not the one that {} stores", place(from.location),
                         place(to.location));
    if (!before.contains(load))
      return fmt::format("the store at {} does not depend on the load at {}", place(to.location), place(from.location));
  }
  const auto indexes = [&](auto is) { return std::ranges::any_of(indices, [&](Id id) { return is(id); }); };
  for (std::size_t axis = 0; axis < graph.grid.size(); ++axis)
    if (!indexes([&](Id id) { return graph[id].op == Op::block && graph[id].grid_axis() == axis; }))
      return fmt::format("blocks along axis {} of the grid access the same tile of {}", axis, place(to.location));
  for (RegionId region = to.region; region != 0; region = graph.regions[region].parent) {
    const Region& body = graph.regions[region];
    if (body.kind == RegionKind::branch) continue;
    const Id counter = body.arguments[0];
    if (body.kind != RegionKind::loop || !indexes([&](Id id) { return id == counter; }))
      return fmt::format("iterations of the loop around {} access the same tile", place(to.location));
  }
  return {};
}

}  // namespace tessera::internal
