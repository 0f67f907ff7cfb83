// A graph prepared for the CPU: steps in execution order, values in slots of one arena, elementwise ops in fused loops.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "cpu/strip.hpp"
#include "graph/evaluate.hpp"
#include "graph/reports.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal::cpu {

/// The location of a value while a grid tile runs: address of its first element and strides in elements of its host
/// form. A value of rank 0, or one filled with a constant, has strides of 0.
struct Ref {
  char* data = nullptr;
  std::array<std::int64_t, max_rank> stride{};
  ElementType narrow = ElementType::f32;  // f16 or bf16: stored as in a tensor instead of host form, for a matmul that
                                          // widens it
};

/// A fused elementwise loop: elementwise ops of one shape, computed strip by strip. Registers 0 .. inputs-1 are the
/// inputs, followed by strips of scratch memory; values that are needed outside of the loop go to their slots.
struct Chain {
  struct Input {
    Id value;
    Shape shape;
    HostType type;
  };
  struct Step {
    StripFunction function;
    int out;
    std::array<int, CustomFunction::most_operands> in;  // -1: none
  };
  struct Output {
    int reg;
    Id value;
    HostType type;
  };
  Shape shape;
  bool single = false;  // of one element
  std::vector<Input> inputs;
  std::vector<Step> steps;
  std::vector<Output> outputs;
  int registers = 0;
  int plan = 0;  // the plan of its strips, which each thread keeps
};

struct Step;
using Body = std::vector<Step>;

/// A loop's carried value is stored in the slot of its argument. If the yield could not be computed in place, it is
/// copied.
struct Carried {
  Id initial, argument, yield;
  bool in_place = false;
  bool through_temporary = false;  // the yield is in a slot that the same group of copies overwrites
  std::size_t temporary = 0;
};

/// A loop; a branch, which has at most one iteration; or a repeat, which iterates while `again` holds.
struct Loop {
  Id counter;
  Id again = no_id;
  std::vector<Carried> carried;
  Body body;
};

enum class StepKind : std::uint8_t { chain, node, loop };

struct Step {
  StepKind kind = StepKind::node;
  Id id = no_id;     // the node; for a chain, none
  Id also = no_id;   // for a sort, the argsort of the same elements (or the other way around), computed together
  int index = -1;    // into chains or loops; for a node, the plan of its strips
  int position = 0;  // in the order of all steps
  int end = 0;       // loop: position after the last step of the body
};

/// All data of a kernel that does not depend on a launch.
struct Tape {
  explicit Tape(Graph source);

  Graph graph;
  std::uint64_t serial;        // unique among tapes
  std::vector<Id> stands_for;  // the value that represents each value: casts that change nothing are skipped
  Body body;
  std::vector<Chain> chains;
  std::vector<Loop> loops;
  std::vector<char> raw;           // loads that only matmuls read: f16 and bf16 stay as stored in the tensor
  std::vector<std::int64_t> slot;  // for each value, the offset in the arena, or -1
  std::size_t arena_bytes = 0;
  std::vector<Ref> refs;   // for each value; a thread fills in the addresses of slots and of values that a launch
                           // computes
  std::vector<Id> blocks;  // block nodes
  std::vector<std::pair<Id, int>> uniforms;  // values computed once per launch, and their positions
  UniformProgram uniform_program;
  Reports reports;
  std::vector<Cell> constants;
  std::vector<std::unique_ptr<std::int32_t[]>> iotas;
  int registers = 0;          // maximum over all chains
  int plans = 0;              // number of strip plans, of chains and of accesses by elements
  double work_per_block = 0;  // approximate number of elementary operations; loops count as four iterations, so a nest
                              // of 100 as 4^100
};

/// Strides of a dense row-major value.
std::array<std::int64_t, max_rank> dense_strides(const Shape& shape);

}  // namespace tessera::internal::cpu
