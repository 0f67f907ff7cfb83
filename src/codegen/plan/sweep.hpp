// What a step runs over: elements, what is computed for each, and the places in tensors that are read on the way.
#pragma once
#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

#include "codegen/plan/ids.hpp"
#include "codegen/plan/layout.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal::codegen {

struct Storage;
struct Value;
struct LoopInfo;
struct Buffer;
struct Scratch;
struct Pipeline;
struct PipelineState;
struct TensorMap;
using StorageId = IdOf<Storage>;
using ValueId = IdOf<Value>;
using LoopId = IdOf<LoopInfo>;
using BufferId = IdOf<Buffer>;
using ScratchId = IdOf<Scratch>;
using PipelineId = IdOf<Pipeline>;
using PipelineStateId = IdOf<PipelineState>;
using TensorMapId = IdOf<TensorMap>;

// --- expressions

/// An operand of a term.
struct Operand {
  enum class Kind : std::uint8_t {
    term,        ///< an earlier term of the expression
    value,       ///< the element of a value that belongs to the sweep's register, by `map`
    fetched,     ///< the element of one of the step's own reads
    literal,     ///< a number
    coordinate,  ///< along axis `index` of the sweep
  };
  Kind kind{};
  int index = 0;                ///< of the term, the read, or the axis
  ValueId value = {};           ///< value
  std::vector<Digit> map = {};  ///< value
  int first = 0;                ///< value: the register that the map counts from
  std::int64_t literal = 0;
  bool operator==(const Operand&) const = default;
};

/// An elementwise op, or a copy (Op::broadcast) of its only operand.
struct Term {
  Op op{};
  ElementType type{}, operand{};  ///< of the result, and of the operands
  std::vector<Operand> in;
  int function = -1;  ///< of the plan's, of a custom op
};

/// Terms in order; the last is the result.
struct Expression {
  std::vector<Term> terms;
};

// --- places in tensors

/// How an axis of a view is made of the tensor's, where it is not one of them.
struct Viewed {
  std::vector<int> outer = {};        ///< axes of the tensor that are flattened with it, the outer one first
  std::int64_t factor = 1;            ///< elements of the tensor's axis from one position to the next
  std::vector<Windows> windows = {};  ///< that it numbers: cut out of the elements, then out of those windows, ...
  int within = 0;                     ///< above 0: it has the positions of one window, which are so many
  bool is_tensors() const { return outer.empty() && factor == 1 && windows.empty() && within == 0; }
  bool operator==(const Viewed&) const = default;
};

/// A tile's place in a tensor: what a load or a store goes through.
struct TileAccess {
  struct Slice {
    Operand start, extent;
    int step = 1;  ///< its elements are start, start + step, ... of what it is a slice of
    bool operator==(const Slice&) const = default;
  };
  struct Axis {
    int tensor_axis = 0;        ///< -1: none; the tile has an extent of 1 there, or covers more than its only element
    Operand index;              ///< in tiles; a value of one element or a literal
    int extent = 1;             ///< of the tile
    std::vector<Slice> slices;  ///< of the views on the way, innermost first
    bool positive = false;      ///< the tile cannot start below 0
    std::optional<Operand> element = {};  ///< where each element of the sweep lies, by itself; no tile then
    Viewed viewed = {};
    /// Of the tensor's axis, between elements that follow one another.
    std::int64_t step() const {
      std::int64_t step = viewed.factor;
      for (const Slice& slice : slices) step *= slice.step;
      return step;
    }
    /// Positions of the tensor's axis from a tile's first element to its farthest one.
    std::int64_t reach() const { return (extent - 1) * std::abs(step()); }
    bool operator==(const Axis&) const = default;
  };
  Label label;
  int parameter = 0;
  std::vector<Axis> axes;
  int fast = -1;   ///< the tile's axis along which elements are neighbours in memory, or -1
  int vector = 1;  ///< elements along it that one access moves
  int run = 1;     ///< those that are read from one address on, by an access or several
  ValueId rows;    ///< gather, scatter: element indices along axis 0
  std::vector<Digit> rows_map;
  std::int64_t padding = 0;
  bool from_here = false;  ///< it is not read ahead of where it stands, which would take registers
  bool in_order = false;   ///< nor ahead of reads before it, nor of a wait for the launch before
  bool kept = false;       ///< the L2 cache keeps it longer than what is written, if it cannot hold the tensor
  bool read_only = false;  ///< nobody writes the tensor during the launch: reads may go by the read-only cache

  bool by_elements() const { return !axes.empty() && axes[0].element; }
  /// Is the tile's place along an axis given element by element?
  bool is_gathered(std::size_t axis) const { return (rows && axis == 0) || axes[axis].element; }
  /// Along an axis of the tensor, in positions: from a tile's first element to the farthest.
  std::int64_t reach(int tensor_axis) const {
    std::int64_t reach = 0;
    for (std::size_t i = 0; i < axes.size(); ++i)
      if (axes[i].tensor_axis == tensor_axis && !is_gathered(i)) reach += axes[i].reach();
    return reach;
  }
};

/// Where a part of a tile begins in it.
using Origin = std::array<int, max_rank>;

/// A step's elements: how they are spread, what is computed for each, and what is read on the way.
struct Sweep {
  Shape shape;
  Layout layout;
  bool part = false;  ///< of a tile, whose places reads name
  Origin origin{};
  Expression expression = {};
  std::vector<TileAccess> reads = {};
  int vector = 1;  ///< elements that reads or stores move at a time
  bool unrolled = true;
  int at_once = 0;  ///< of rounds that are not unrolled, those that are written out together; 0: as the compiler likes
};

}  // namespace tessera::internal::codegen
