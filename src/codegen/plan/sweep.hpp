// Sweeps: the elements that a step iterates over, the expression for each, and the tensor elements that it reads.
#pragma once
#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

#include "codegen/layout/layout.hpp"
#include "codegen/plan/ids.hpp"
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
    value,       ///< the element of a value for the sweep's register, by `map`
    fetched,     ///< an element of one of the step's own reads
    literal,     ///< a number
    coordinate,  ///< the coordinate along axis `index` of the sweep
  };
  Kind kind{};
  int index = 0;                ///< of the term, the read, or the axis
  ValueId value = {};           ///< value
  std::vector<Digit> map = {};  ///< value
  int first = 0;                ///< value: the register that the map counts from
  bool twice = false;           ///< value: of a part; along the last axis each element is that of two neighbors
  std::int64_t literal = 0;
  bool operator==(const Operand&) const = default;
};

/// An elementwise op, or a copy (Op::broadcast) of its only operand.
struct Term {
  Op op{};
  ElementType type{}, operand{};  ///< of the result, and of the operands
  std::vector<Operand> in;
  bool small = false;            ///< cast of integers to reals: of 22 bits and a sign at most
  int function = -1;             ///< custom op: index among the plan's functions
  int argument = -1, axis = -1;  ///< extent of a tensor of a list: the list's first one, and the axis
  Label label = {};              ///< of the graph's node, if it is one
};

/// Terms in order; the last is the result.
struct Expression {
  std::vector<Term> terms;
};

// --- places in tensors

/// How an axis of a view is derived from axes of the tensor, if it is not one of them.
struct Viewed {
  std::vector<int> outer = {};        ///< axes of the tensor that are flattened into it, outermost first
  std::int64_t factor = 1;            ///< elements of the tensor's axis between neighboring positions
  std::vector<Windows> windows = {};  ///< it indexes windows of the elements, then windows of those, ...
  int within = 0;                     ///< above 0: it indexes the positions of one window, and there are this many
  bool is_tensors() const { return outer.empty() && factor == 1 && windows.empty() && within == 0; }
  bool operator==(const Viewed&) const = default;
};

/// The elements of a tensor that a load or a store accesses.
struct TileAccess {
  struct Slice {
    Operand start, extent;
    int step = 1;  ///< its elements are start, start + step, ... of the view that is sliced
    bool operator==(const Slice&) const = default;
  };
  struct Axis {
    int tensor_axis = 0;        ///< -1: none; the tile has an extent of 1 there, or only its first element exists
    Operand index;              ///< in tiles; a value of one element or a literal
    int extent = 1;             ///< of the tile
    std::vector<Slice> slices;  ///< of the views between, innermost first
    bool positive = false;      ///< the tile cannot start below 0
    std::optional<Operand> element = {};  ///< the position of each element of the sweep; no tile then
    Viewed viewed = {};
    /// Positions of the tensor's axis between neighboring elements.
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
  int parameter = 0;                   ///< of a list: the first
  std::optional<Operand> member = {};  ///< the number of the tensor in its list
  std::vector<Axis> axes;
  int fast = -1;   ///< the tile's axis along which elements are contiguous in memory, or -1
  int vector = 1;  ///< elements along it per access
  int run = 1;     ///< elements that are read from one address on, by one access or several
  ValueId rows;    ///< gather, scatter: element indices along axis 0
  std::vector<Digit> rows_map;
  std::int64_t padding = 0;
  bool from_here = false;  ///< the read is not hoisted above its place in the text, to save registers
  bool in_order = false;   ///< nor above earlier reads or a grid dependency wait
  bool kept = false;       ///< evict_last: L2 retains it longer than written data, if the tensor does not fit
  bool read_only = false;  ///< the launch does not write the tensor: reads may use the read-only cache

  bool by_elements() const { return !axes.empty() && axes[0].element; }
  /// Are positions along an axis given element by element?
  bool is_gathered(std::size_t axis) const { return (rows && axis == 0) || axes[axis].element; }
  /// Can the tile have elements beyond the first position of the tensor's axis? If not, that axis's stride is not needed.
  bool leaves_first(std::size_t axis) const {
    const Axis& a = axes[axis];
    const bool at_first = a.index.kind == Operand::Kind::literal && a.index.literal == 0 && a.slices.empty();
    return a.tensor_axis >= 0 && (!at_first || a.extent > 1 || is_gathered(axis));
  }
  /// Positions along an axis of the tensor from a tile's first element to its farthest one.
  std::int64_t reach(int tensor_axis) const {
    std::int64_t reach = 0;
    for (std::size_t i = 0; i < axes.size(); ++i)
      if (axes[i].tensor_axis == tensor_axis && !is_gathered(i)) reach += axes[i].reach();
    return reach;
  }
};

/// The first coordinates of a part of a tile.
using Origin = std::array<int, max_rank>;

/// The elements of a step: their layout, the expression for each, and the reads.
struct Sweep {
  Shape shape;
  Layout layout;
  bool part = false;  ///< a part of a tile; reads name the places of the whole tile
  Origin origin{};
  Expression expression = {};
  std::vector<TileAccess> reads = {};
  int vector = 1;  ///< elements per access of reads and stores
  bool unrolled = true;
  int at_once = 0;  ///< iterations to unroll together, if not all are; 0: the compiler decides
};

}  // namespace tessera::internal::codegen
