#include "graph/rewrite.hpp"

namespace tessera::internal {

Rewriter::Rewriter(const Graph& source)
    : source_(source),
      builder_(source.name, source.parameters, source.location),
      order_(schedule(source)),
      map_(source.nodes.size(), no_id),
      results_(source.nodes.size()) {
  for (const std::string& text : source.texts) builder_.add_text(text);
  for (const CustomFunction& function : source.functions) builder_.add_function(function, source.location);
  for (const Hints& hints : source.hints) builder_.add_hints(hints);
  builder_.set_cuda(source.cuda);
}

Graph Rewriter::run() {
  // Grid extents come first: a block index may only name an axis that exists.
  for (Id id : order_[0]) {
    if (!keep(id) || !source_[id].uniform) continue;
    copy_node(id);
  }
  if (!source_.grid.empty()) builder_.set_grid(mapped(source_.grid), source_.location);
  copy_region(0);
  return builder_.take();
}

Id Rewriter::rewrite(const Node& node, std::span<const Id> in) {
  return builder_.apply(node.op, node.type, in, node.attr, node.location, node.shape);
}

std::vector<Id> Rewriter::mapped(std::span<const Id> ids) const {
  std::vector<Id> result;
  result.reserve(ids.size());
  for (Id id : ids) result.push_back(map_[id]);
  return result;
}

void Rewriter::copy_region(RegionId region) {
  for (Id id : order_[region])
    if (map_[id] == no_id && keep(id)) copy_node(id);
}

void Rewriter::copy_node(Id id) {
  const Node& node = source_[id];
  switch (node.op) {
    case Op::argument:
      break;  // made together with its loop
    case Op::loop:
    case Op::branch:
    case Op::repeat:
      copy_owner(id);
      break;
    case Op::result:
      map_[id] = results_[node.in[0]][node.position()];
      break;
    default:
      map_[id] = rewrite(node, mapped(node.in));
  }
}

void Rewriter::copy_owner(Id id) {
  const Node& node = source_[id];
  const Region& body = source_.body(id);
  std::vector<Id> entered;
  for (std::size_t k = 0; k < source_.carried(id); ++k) {
    const Id initial = map_[node.in[k + 1]];
    entered.push_back(initial == no_id ? no_id : enter(body.arguments[k + 1], initial));
  }
  const RegionId region = builder_.begin_region(node.op, node.location);
  builder_.set_unroll(body.unroll);
  map_[body.arguments[0]] = builder_.graph().regions[region].arguments[0];
  std::vector<std::size_t> kept;
  for (std::size_t k = 0; k < source_.carried(id); ++k) {
    const Id argument = body.arguments[k + 1], initial = entered[k];
    if (body.yields[k] == argument || initial == no_id || !keep(argument)) {
      map_[argument] = initial;
      continue;
    }
    kept.push_back(k);
    const Node of_initial = made(initial);
    map_[argument] =
        builder_.argument(of_initial.type, of_initial.shape, source_[argument].location, source_[argument].var);
  }
  copy_region(node.body());
  std::vector<Id> initial, yields;
  for (std::size_t k : kept) {
    initial.push_back(entered[k]);
    yields.push_back(map_[body.yields[k]]);
  }
  if (node.op == Op::repeat) yields.push_back(map_[body.yields.back()]);
  const Id loop = builder_.end_region(map_[node.in[0]], initial, yields, node.location);
  map_[id] = loop;
  results_[id] = mapped(std::span(node.in).subspan(1));
  for (std::size_t i = 0; i < kept.size(); ++i)
    results_[id][kept[i]] =
        leave(body.arguments[kept[i] + 1], builder_.result(loop, static_cast<int>(i), node.location));
}

Graph canonical(const Graph& graph) { return Rewriter(graph).run(); }

}  // namespace tessera::internal
