#include "reference/reference.hpp"

#include <fmt/format.h>

#include <sstream>

#include "reference/interpreter.hpp"
#include "reference/memory.hpp"
#include "reference/tile.hpp"

namespace tessera::internal::reference {
namespace {

std::string text_of(Real x) {
  std::ostringstream text;
  text.precision(12);
  text << x;
  return text.str();
}
std::string text_of(const Element& e) {
  if (e.empty()) return "nan";
  if (e.exact()) return text_of(e.low);
  return fmt::format("[{}, {}]{}", text_of(e.low), text_of(e.high), e.nan ? " or nan" : "");
}

bool is_written(const Parameter& parameter) {
  return parameter.access == Access::out || parameter.access == Access::in_out;
}

std::vector<Memory> memory_of(const Graph& graph, std::span<const Argument> arguments) {
  std::vector<Memory> memory;
  for (std::size_t i = 0; i < arguments.size(); ++i) memory.emplace_back(graph.parameters[i], arguments[i]);
  return memory;
}

}  // namespace

std::vector<std::int64_t> grid(const Graph& graph, std::span<const Argument> arguments) {
  std::vector<Memory> memory = memory_of(graph, arguments);
  return Interpreter(graph, arguments, memory).grid();
}

std::vector<Tensor> run(const Graph& graph, std::span<const Argument> arguments, std::span<const std::int64_t> grid,
                        const std::function<void()>& after_block) {
  std::vector<Memory> memory = memory_of(graph, arguments);
  const auto restart = [&] {
    bool again = false;
    for (Memory& m : memory) again |= m.restart();
    return again;
  };
  std::int64_t blocks = 1;
  for (std::int64_t extent : grid) blocks *= extent;
  Interpreter interpreter(graph, arguments, memory);
  std::vector<Tensor> results;
  while (restart()) {
    for (std::int64_t block = 0; block < blocks; ++block) {
      interpreter.run(block, coordinates(block, grid));
      if (after_block) after_block();
    }
    results.clear();
    for (const Memory& m : memory) results.push_back({m.values()});
  }
  return results;
}

std::string difference(const Graph& graph, std::span<const Argument> after, const std::vector<Tensor>& expected) {
  for (std::size_t p = 0; p < after.size(); ++p) {
    if (!is_written(graph.parameters[p])) continue;
    const std::vector<Real> actual = read(graph.parameters[p], after[p]);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const Element& element = expected[p].elements[i];
      if (element.may_be(actual[i])) continue;
      const auto at = coordinates(static_cast<std::int64_t>(i), extents_of(graph.parameters[p], after[p]));
      return fmt::format("parameter {} [{}]: {}, expected {}", p, fmt::join(at, ","), text_of(actual[i]),
                         text_of(element));
    }
  }
  return {};
}

}  // namespace tessera::internal::reference
