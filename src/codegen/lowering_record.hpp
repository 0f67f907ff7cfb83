// How a kernel was lowered, as data for the inspector: its nodes, its plan after each pass, its steps, and which line
// of which text spells what. Numbers lead from a line of text to a step, and from a step to nodes and to the author's
// lines.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/graph/element.hpp"

namespace tessera::internal {

struct LoweringRecord {
  /// A line of the author; none if `file` is empty.
  struct Place {
    std::string file;
    unsigned line = 0;
  };
  /// An operation of the graph that was lowered, by its number in the graph's text.
  struct Node {
    std::string op, result;     ///< "load", "f32[1,768]"
    std::vector<int> operands;  ///< for what a loop carries: also the loop, and what it yields
    Place at;
    std::int64_t bytes = 0;  ///< that it moves between memory and a grid tile
    std::int64_t flops = 0;  ///< operations on elements of a grid tile; a multiply-add is two
    bool repeated = false;   ///< in a loop whose trip count is not known: bytes and flops are of one iteration
    bool is_access = false;
    /// A matmul on tensor cores: bytes of an element of its operands; 0: it runs on FMA units.
    bool is_matmul = false;
    int tensor_core_bytes = 0;
  };
  struct Pass {
    std::string_view name, what;
    std::string plan;
  };
  struct Step {
    std::vector<int> nodes;
    Place at;
  };
  /// Where threads hold a tile.
  struct Factor {
    int place = 0, size = 1, unit = 1;  ///< place: 0 registers, 1 lanes, 2 warps
  };
  struct Layout {
    std::string name, type, storage, text;
    int registers = 0;
    std::vector<int> shape;
    std::vector<std::vector<Factor>> axes;
  };
  /// A piece of shared memory, in use from one step to another; positions are those of the plan's walk.
  struct Shared {
    std::string name;
    std::int64_t bytes = 0, offset = 0;
    int first = 0, last = 0;
  };
  /// A step of a role, in order. `waits` and `signals` name a stage's barrier: "tiles full".
  struct RoleStep {
    int step = 0, depth = 0;
    std::string text, waits, signals;
  };
  struct Role {
    std::string title;
    std::vector<RoleStep> steps;
  };

  std::string graph;             ///< text of the graph that was lowered, with the author's lines
  std::vector<int> graph_nodes;  ///< the node of each of its lines; -1: none
  std::vector<Node> nodes;
  std::vector<Pass> passes;       ///< those of the schedule that was taken, in order
  std::vector<Step> steps;        ///< the first one stands for the kernel as a whole
  std::vector<int> plan_steps;    ///< the step of each line of KernelSource::plan; -1: none
  std::vector<int> kernel_steps;  ///< the same of the generated text, from the line after kernel_mark on
  std::vector<int> shown_lines;   ///< for each of those lines, its number in the same part of KernelSource::shown
  std::vector<Layout> layouts;
  std::vector<Shared> shared;
  std::vector<Role> roles;
  std::map<std::string, std::vector<std::string>> sources;  ///< lines of the author's files, if they could be read
};

}  // namespace tessera::internal
