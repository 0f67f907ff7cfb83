#include "opcheck/trial.hpp"

#include "graph/evaluate.hpp"

namespace tessera::opcheck {
namespace {

std::vector<std::int64_t> grid_of(const Graph& graph, std::span<const Argument> arguments) {
  const UniformProgram program(graph, graph.grid);
  std::vector<Cell> values(program.size());
  program.run(arguments, values);
  std::vector<std::int64_t> extents;
  for (std::size_t axis = 0; axis < graph.grid.size(); ++axis)
    extents.push_back(values[static_cast<std::size_t>(program.position(axis))].i32);
  return extents;
}

}  // namespace

Trial::Trial(const Case& of)
    : case_(of),
      tensors_(of),
      grid_(grid_of(of.graph, tensors_.arguments())),
      expected_(reference::run(of.graph, tensors_.arguments(), grid_)) {}

std::string Trial::difference() const {
  const std::string wrong = reference::difference(case_.graph, tensors_.arguments(), expected_);
  return wrong.empty() ? tensors_.damage() : wrong;
}

}  // namespace tessera::opcheck
