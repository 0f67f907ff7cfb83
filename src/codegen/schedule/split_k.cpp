#include "codegen/schedule/split_k.hpp"

#include <numeric>
#include <utility>
#include <vector>

#include "codegen/analysis/graph_analysis.hpp"
#include "graph/views.hpp"

namespace tessera::internal {

namespace {

bool depends_on_first_axis(const Graph& graph, Id load) {
  std::vector<Id> open{load};
  std::vector<char> seen(graph.nodes.size());
  while (!open.empty()) {
    const Id id = open.back();
    open.pop_back();
    if (std::exchange(seen[id], 1)) continue;
    if (graph[id].op == Op::block && graph[id].grid_axis() == 0) return true;
    open.insert(open.end(), graph[id].in.begin(), graph[id].in.end());
  }
  return false;
}

}  // namespace

SplitKLoop::SplitKLoop(const Graph& graph) {
  Id matmul = no_id;
  for (Id id = 0; id < graph.nodes.size(); ++id) {
    if (graph[id].op != Op::mma) continue;
    if (matmul != no_id) return;
    matmul = id;
  }
  if (matmul == no_id || !has_wgmma(graph[graph[matmul].in[0]].type) || graph[matmul].type != ElementType::f32) return;
  const Node& left = graph[graph[matmul].in[0]];
  for (Id id = 0; id < graph.nodes.size(); ++id) {
    const Node& loop = graph[id];
    if (loop.op != Op::loop || loop.region != 0 || loop.body() != graph[matmul].region) continue;
    if (!graph[loop.in[0]].uniform) continue;
    count_ = UniformProgram(graph, std::span(&loop.in[0], 1));
    const lowering::Source right = lowering::find_source(graph, graph[matmul].in[1]);
    right_bytes_ = right.load == no_id ? 0 : info(graph[right.load].type).bytes;
    if (right.load != no_id && !depends_on_first_axis(graph, right.load))
      right_ = view_parameter(graph, graph[right.load].in[view_operand(Op::load)]);
    extents_ = {graph[matmul].shape[0], graph[matmul].shape[1], left.shape[1] * info(left.type).bytes / 2};
  }
}

int SplitKLoop::right_alignment(std::span<const Argument> arguments) const {
  constexpr std::uint64_t most = 128;
  if (right_ < 0) return most;
  const Argument& right = arguments[static_cast<std::size_t>(right_)];
  std::uint64_t bits = reinterpret_cast<std::uintptr_t>(right.data);
  for (std::size_t axis = 0; axis < right.extent.size(); ++axis)
    if (right.extent[axis] > 1 && right.stride[axis] != 1)
      bits |= static_cast<std::uint64_t>(right.stride[axis]) * static_cast<std::uint64_t>(right_bytes_);
  return static_cast<int>(std::gcd(bits, most));
}

std::int64_t SplitKLoop::of(std::span<const Argument> arguments) const {
  if (count_.size() == 0) return 0;
  constexpr std::size_t few = 16;
  Cell fixed[few];
  std::vector<Cell> many(count_.size() > few ? count_.size() : 0);
  const std::span<Cell> values = many.empty() ? std::span<Cell>(fixed) : std::span<Cell>(many);
  count_.run(arguments, values);
  return values[static_cast<std::size_t>(count_.position(0))].i32;
}

}  // namespace tessera::internal
