// split_matmuls: two stages of this matmul's operand tiles do not fit into shared memory,
//
//   for (k: n)       acc = mma(load(x, {m, k}, {128, 256}), load(w, {k, n}, {256, 128}), acc)
//
// so it is computed in strips of k, each a tile of its own:
//
//   for (k: n * 8)   acc = mma(load(x, {m, k}, {128, 32}), load(w, {k, n}, {32, 128}), acc)
//
// Where a matmul is in no loop, or its loop does anything else, the strips get a loop of their own:
//
//   for (s: 8)       acc = mma(load(x, {m, k * 8 + s}, {128, 32}), load(w, {k * 8 + s, n}, {32, 128}), acc)
#include "codegen/schedule/split_matmuls.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "codegen/analysis/budget.hpp"
#include "codegen/analysis/graph_analysis.hpp"
#include "graph/rewrite.hpp"

namespace tessera::internal {
namespace lowering {
namespace {

constexpr int shortest_strip = 8;  // shorter ones are mostly padding

Cell number(int value) {
  Cell cell{};
  cell.i32 = value;
  return cell;
}

/// The operands a and b of a matmul.
struct Operands {
  explicit Operands(const Graph& graph, Id matmul) : in{graph[matmul].in[0], graph[matmul].in[1]} {
    for (int side : {0, 1}) source[side] = find_source(graph, in[side]);
  }
  static int k_axis(int side) { return 1 - side; }
  /// Are both loaded, along one axis of k?
  bool loaded() const {
    return std::ranges::all_of(std::array{0, 1}, [&](int side) {
      return source[side].load != no_id && source[side].axes[k_axis(side)].size() == 1;
    });
  }

  Id in[2];
  Source source[2];
};

/// Finds the matmuls that are split, and the number of strips of each.
class StripPlanner {
 public:
  StripPlanner(const Graph& graph, const Target& target) : graph_(graph), target_(target) {}

  std::map<Id, int> run() {
    std::map<Id, int> counts;
    for (const auto& region : schedule(graph_))
      for (Id id : region)
        if (graph_[id].op == Op::mma && graph_[id].shape[0] > 8) counts[id] = 1;  // gemv uses no shared memory
    // First those that do not fit even alone, then those that do not fit beside the others.
    for (auto& [id, count] : counts) count = strips(id, 0);
    std::int64_t all = 0;
    for (auto [id, count] : counts) all += bytes(id, k_of(id) / count);
    for (auto& [id, count] : counts) {
      all -= bytes(id, k_of(id) / count);
      count = std::max(count, strips(id, all));
      all += bytes(id, k_of(id) / count);
    }
    std::erase_if(counts, [](const auto& entry) { return entry.second == 1; });
    return counts;
  }

 private:
  int k_of(Id id) const { return graph_[graph_[id].in[0]].shape[1]; }

  /// Bytes of shared memory for one stage of tiles of `k`.
  std::int64_t bytes(Id id, int k) const {
    const Operands operands(graph_, id);
    const ElementType type = graph_[operands.in[0]].type;
    const int step = has_matrix_units(type) ? codegen::depth_of(type) : 4;
    std::int64_t total = 0;
    for (int side : {0, 1}) {
      const Id load = operands.source[side].load;
      // 16-bit operands are converted on the way to shared memory, others after it.
      const bool as_loaded = load != no_id && info(type).bytes >= 4;
      const int element = info(as_loaded ? graph_[load].type : type).bytes;
      total += std::int64_t(graph_[id].shape[side]) * ((k + step - 1) / step * step) * element;
    }
    return total;
  }

  /// Does a matmul fit without strips, beside the memory of others? One stage is loaded while another is used. A tile
  /// from outside the matmul's loop is loaded once for all iterations. Strips of it are loaded in each iteration, which
  /// only pays where there is no space for all of it.
  bool fits(Id id, std::int64_t others) const {
    const Operands operands(graph_, id);
    const bool reused = graph_[operands.source[0].load].region != graph_[id].region ||
                        graph_[operands.source[1].load].region != graph_[id].region;
    const std::int64_t whole = bytes(id, k_of(id));
    // Few rows wait for memory, not for the matmul: they are loaded at once.
    const bool few =
        graph_[id].region == 0 && graph_[id].shape[0] <= 16 && has_matrix_units(graph_[operands.in[0]].type);
    return reused ? whole <= room() : others + (few ? 1 : 2) * whole <= room();
  }

  int strips(Id id, std::int64_t others) const {
    const int k = k_of(id);
    if (k <= 16 || !Operands(graph_, id).loaded() || fits(id, others)) return 1;
    for (int unit : {std::max(16, codegen::depth_of(graph_[graph_[id].in[0]].type)), 1})
      for (int count = 2; k / count >= shortest_strip; ++count) {
        if (k % count != 0 || k / count % unit != 0) continue;
        const std::int64_t strip = bytes(id, k / count);
        if (3 * strip <= target_.shared_bytes / 2 && others + 2 * strip <= room()) return count;
      }
    return 1;
  }

  std::int64_t room() const { return staging_bytes(target_, 2); }

  const Graph& graph_;
  const Target& target_;
};

/// The index of the first of `count` strips of tile `index`. Indices beyond every tensor may be as large as an i32:
/// they are clamped so that the multiplication does not overflow and the result is beyond every tensor, too. `apply`
/// makes an i32 scalar from an op and operands, `constant` one from a number.
template <class Apply, class Constant>
Id first_strip(const Node& node, Id index, int count, const Apply& apply, const Constant& constant) {
  const int last = std::numeric_limits<int>::max() / count - 1;
  if (node.op == Op::constant) return constant(std::clamp(node.number().i32, -1, last) * count);
  const bool positive = node.op == Op::block || (node.op == Op::argument && node.position() == 0);
  if (!positive) index = apply(Op::maximum, index, constant(-1));
  return apply(Op::mul, apply(Op::minimum, index, constant(last)), constant(count));
}

/// Is a loop there only for this matmul, accumulating over tiles that its counter counts along k?
bool fills_loop(const Graph& graph, const std::vector<std::vector<Id>>& order, Id id) {
  const Node& matmul = graph[id];
  const Region& body = graph.regions[matmul.region];
  if (body.kind != RegionKind::loop || body.yields != std::vector{id} || matmul.in[2] != body.arguments[1])
    return false;
  const Operands operands(graph, id);
  std::set<Id> known{id, body.arguments[0], body.arguments[1]};
  for (int side : {0, 1}) {
    const Source& source = operands.source[side];
    const Node& load = graph[source.load];
    for (int axis = 0; axis < load.shape.rank(); ++axis) {
      const bool counted = load.in[static_cast<std::size_t>(axis) + 1] == body.arguments[0];
      if (counted != (Axes{axis} == source.axes[Operands::k_axis(side)])) return false;
    }
    for (Id at = operands.in[side]; at != source.load; at = graph[at].in[0]) known.insert(at);
    known.insert(source.load);
  }
  return known.size() == order[matmul.region].size();
}

/// Makes the loop that only runs a matmul `count` times as long, with tiles shorter by that factor. The nodes that it
/// adds to the graph are appended, not yet in order.
void lengthen_loop(Graph& graph, Id loop, Id id, int count) {
  const Operands operands(graph, id);
  const int strip = graph[operands.in[0]].shape[Operands::k_axis(0)] / count;
  std::vector<std::pair<Id, int>> along_k;  // axes of nodes; one may be part of both operands
  for (int side : {0, 1}) {
    int axis = Operands::k_axis(side);
    for (Id at = operands.in[side]; at != operands.source[side].load; at = graph[at].in[0]) {
      along_k.emplace_back(at, axis);
      axis = axes_below(graph, graph[at], axis)[0];
    }
    along_k.emplace_back(operands.source[side].load, axis);
  }
  for (const auto& [at, axis] : along_k) graph.nodes[at].shape[axis] = strip;
  const auto append = [&](Op op, std::vector<Id> in, std::vector<std::int64_t> attr) {
    Node node;
    node.op = op;
    node.type = ElementType::i32;
    for (Id operand : in) node.region = std::max(node.region, graph[operand].region);
    node.in = std::move(in);
    node.attr = std::move(attr);
    node.location = graph[loop].location;
    graph.nodes.push_back(std::move(node));
    return static_cast<Id>(graph.nodes.size() - 1);
  };
  const auto apply = [&](Op op, Id a, Id b) { return append(op, {a, b}, {}); };
  const auto constant = [&](int value) { return append(Op::constant, {}, {encode(ElementType::i32, number(value))}); };
  const Id rounds = graph[loop].in[0];
  const Id all = first_strip(Node(graph[rounds]), rounds, count, apply, constant);
  graph.nodes[loop].in[0] = all;
}

/// Gives matmuls loops of their own.
class Splitter final : public Rewriter {
 public:
  Splitter(const Graph& source, const std::map<Id, int>& counts) : Rewriter(source), counts_(counts) {}

 private:
  Id rewrite(const Node& node, std::span<const Id> in) override {
    const auto found = counts_.find(static_cast<Id>(&node - source().nodes.data()));
    if (found == counts_.end()) return Rewriter::rewrite(node, in);
    const int count = found->second;
    const RegionId region = builder().begin_region(Op::loop, node.location);
    const Id round = builder().graph().regions[region].arguments[0];
    const Id sum = builder().argument(node.type, node.shape, node.location);
    const Id operands[] = {strip(in[0], 1, count, round), strip(in[1], 0, count, round), sum};
    const Id next = builder().apply(node.op, node.type, operands, node.attr, node.location);
    const Id rounds = builder().constant(ElementType::i32, number(count), {}, node.location);
    const Id loop = builder().end_region(rounds, in.subspan(2, 1), {&next, 1}, node.location);
    return builder().result(loop, 0, node.location);
  }

  /// Strip `round` of a new node along an axis.
  Id strip(Id id, int axis, int count, Id round) {
    std::vector<std::pair<Node, int>> above;  // nodes between load and matmul, with the strip's axis
    for (; made(id).op != Op::load; id = above.back().first.in[0]) {
      above.emplace_back(made(id), axis);
      axis = axes_below(builder().graph(), above.back().first, axis)[0];
    }
    Node load = made(id);
    Id& index = load.in[static_cast<std::size_t>(axis) + 1];
    const auto apply = [&](Op op, Id a, Id b) {
      const Id operands[] = {a, b};
      return builder().apply(op, ElementType::i32, operands, {}, load.location);
    };
    const auto constant = [&](int value) {
      return builder().constant(ElementType::i32, number(value), {}, load.location);
    };
    const Node at = made(index);
    const bool first = at.op == Op::constant && at.number().i32 == 0;
    index = first ? round : apply(Op::add, first_strip(at, index, count, apply, constant), round);
    const auto remade = [&](Node node, int along) {
      node.shape[along] /= count;
      return builder().apply(node.op, node.type, node.in, node.attr, node.location, node.shape);
    };
    Id strip = remade(load, axis);
    for (; !above.empty(); above.pop_back()) {
      above.back().first.in[0] = strip;
      strip = remade(above.back().first, above.back().second);
    }
    return strip;
  }

  const std::map<Id, int>& counts_;
};

}  // namespace
}  // namespace lowering

std::optional<Graph> split_matmuls(const Graph& graph, const Target& target) {
  using namespace lowering;
  std::map<Id, int> counts = StripPlanner(graph, target).run();
  if (counts.empty()) return std::nullopt;
  const auto order = schedule(graph);
  Graph lengthened = graph;
  std::vector<Id> owner(graph.regions.size(), no_id);
  for (Id id = 0; id < graph.nodes.size(); ++id)
    if (graph[id].op == Op::loop) owner[graph[id].body()] = id;
  std::erase_if(counts, [&](const auto& entry) {
    const bool fills = fills_loop(graph, order, entry.first);
    if (fills) lengthen_loop(lengthened, owner[graph[entry.first].region], entry.first, entry.second);
    return fills;
  });
  Graph result = Splitter(lengthened, counts).run();
  verify(result, "split_matmuls");
  return result;
}

}  // namespace tessera::internal
