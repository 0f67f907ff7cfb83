// A graph prepared for the CPU: steps in the order they run, values in slots of one arena, elementwise ops in chains.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "cpu/strip.hpp"
#include "graph/evaluate.hpp"
#include "graph/reports.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal::cpu {

/// Where a value lies while a block runs: address of its first element and strides in elements of its host form. A
/// value of rank 0, and one filled with a constant, has strides of 0.
struct Ref {
  char* data = nullptr;
  std::array<std::int64_t, max_rank> stride{};
  ElementType narrow = ElementType::f32;  // f16 or bf16: not in host form but as in a tensor, for a product to widen
};

/// A run of elementwise ops of one shape, computed strip by strip. Registers 0 .. inputs-1 are the inputs; then come
/// strips of scratch memory; what is needed outside of the chain goes to its slot.
struct Chain {
  struct Input {
    Id value;
    Shape shape;
    HostType type;
  };
  struct Step {
    StripFunction function;
    int out, a, b, c;
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
  int plan = 0;  // of its strips, which a thread keeps
};

struct Step;
using Body = std::vector<Step>;

/// A loop's carried value lives in the slot of its argument. Where the yield could not be computed in place it is
/// copied.
struct Carried {
  Id initial, argument, yield;
  bool in_place = false;
  bool through_temporary = false;  // the yield lies in a slot that this round of copies overwrites
  std::size_t temporary = 0;
};

/// A loop; a branch, which is one of at most one round; or a repeat, which has rounds as long as `again` holds.
struct Loop {
  Id counter;
  Id again = no_id;
  std::vector<Carried> carried;
  Body body;
};

enum class StepKind : std::uint8_t { chain, node, loop };

struct Step {
  StepKind kind = StepKind::node;
  Id id = no_id;     // of the node; of a chain: none
  Id also = no_id;   // of a sort: the argsort of the same elements, or the other way round, made at once
  int index = -1;    // into chains or loops; of a node: the plan of its strips
  int position = 0;  // in the order of all steps
  int end = 0;       // loop: position after the last step of the body
};

/// Everything about a kernel that does not depend on a launch.
struct Tape {
  explicit Tape(Graph source);

  Graph graph;
  std::uint64_t serial;        // no other tape has it
  std::vector<Id> stands_for;  // a value that another one stands for: casts that change nothing
  Body body;
  std::vector<Chain> chains;
  std::vector<Loop> loops;
  std::vector<char> raw;           // loads that only products read: f16 and bf16 stay as the tensor holds them
  std::vector<std::int64_t> slot;  // of a value: offset in the arena, or -1
  std::size_t arena_bytes = 0;
  std::vector<Ref> refs;   // of every value; a thread fills in the addresses of slots and of what a launch computes
  std::vector<Id> blocks;  // block nodes
  std::vector<std::pair<Id, int>> uniforms;  // values computed once per launch, and where
  UniformProgram uniform_program;
  Reports reports;
  std::vector<Cell> constants;
  std::vector<std::unique_ptr<std::int32_t[]>> iotas;
  int registers = 0;          // most registers of any chain
  int plans = 0;              // of strips, of chains and of accesses by elements
  double work_per_block = 0;  // about how many elementary operations, loops counted as four rounds: 4^100 in a nest
};

/// Strides of a dense row-major value.
std::array<std::int64_t, max_rank> dense_strides(const Shape& shape);

}  // namespace tessera::internal::cpu
