// Everything decided about a kernel, as plain data: what is left for emission is spelling.
//
// A plan is a tree of steps. A step mostly is a sweep: each thread runs over the registers of a layout and, for each
// element it holds, evaluates an expression of what was computed before. Steps are listed in the order they run, the
// barriers among them.
#pragma once
#include <memory>
#include <optional>

#include "codegen/generate.hpp"
#include "codegen/layout.hpp"

namespace tessera {

using ValueId = int;

/// Registers of a thread that go through scratch memory at a time when warps combine their parts of a result.
inline constexpr int most_partials = 8;

/// Where the elements of a value are kept by the threads that hold them.
enum class Home : std::uint8_t {
  variable,   ///< one element a thread, the same in all of them or one of its own
  registers,  ///< an array that the compiler puts into registers, indexed by constants only
  shared,     ///< too many for registers: a part of shared memory of each thread's own
  workspace,  ///< the same in global memory
};

struct Value {
  std::string name;
  ElementType type{};
  Shape shape;
  Layout layout;
  Home home = Home::registers;
  std::int64_t offset = 0;  ///< shared, workspace: bytes
  int vector = 1;           ///< shared, workspace: elements of a thread side by side
  bool changes = false;     ///< a loop carries it
};

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
  int index = 0;           ///< of the term, the value, the read, or the axis
  std::vector<Digit> map;  ///< value
  std::int64_t literal = 0;
};

/// An elementwise op, or a copy (Op::broadcast) of its only operand.
struct Term {
  Op op{};
  ElementType type{}, operand{};  ///< of the result, and of the operands
  std::vector<Operand> in;
};

/// Terms in order; the last is the result.
struct Expression {
  std::vector<Term> terms;
};

/// A tile's place in a tensor: what a load or a store goes through.
struct TileAccess {
  struct Slice {
    Operand start, extent;
  };
  struct Axis {
    int tensor_axis = 0;
    Operand index;              ///< in tiles; a value of one element or a literal
    int extent = 1;             ///< of the tile
    std::vector<Slice> slices;  ///< of the views on the way, innermost first
    bool positive = false;      ///< the tile cannot start below 0
  };
  std::string name;  ///< of what the emitted variables are called after
  int parameter = 0;
  std::vector<Axis> axes;
  int fast = -1;      ///< the tile's axis along which elements are neighbours in memory, or -1
  int vector = 1;     ///< elements along it that one access moves
  ValueId rows = -1;  ///< gather, scatter: element indices along axis 0
  std::vector<Digit> rows_map;
  std::int64_t padding = 0;
};

/// A tile in shared memory (or the workspace), as the products read it: rows of 16-byte chunks, swizzled.
struct Buffer {
  std::string name;
  ElementType type{};  ///< as stored
  int rows = 0, columns = 0;
  int stages = 1;
  std::int64_t offset = 0;
  bool in_workspace = false;
  int chunks() const { return columns * info(type).bytes / 16; }
  std::int64_t stage_bytes() const { return std::int64_t(rows) * chunks() * 16; }
  std::int64_t bytes() const { return stage_bytes() * stages; }
};

/// Plain row-major scratch memory: for exchanges between threads.
struct Scratch {
  ElementType type{};
  std::int64_t bytes = 0, offset = 0;
  bool in_workspace = false;
};

/// One operand of a product.
struct ProductOperand {
  int buffer = -1;                 ///< or
  ValueId value = -1;              ///< registers
  bool k_major = true;             ///< the buffer's rows run along k
  ElementType stored{};            ///< in the buffer
  std::vector<ElementType> casts;  ///< on the way to the product
  std::string stage;               ///< counter of the loop whose stages the buffer has; empty: one stage
};

enum class ProductKind : std::uint8_t {
  tensor,  ///< mma.sync, operands from shared memory or accumulator registers
  block,   ///< fused multiply-add, operands from shared memory
  thin,    ///< fused multiply-add, operands in registers, k spread over lanes and warps
};

struct Product {
  ProductKind kind{};
  ElementType type{};  ///< of the operands
  int m = 0, n = 0, k = 0;
  ProductOperand a, b;
  Layout layout_a, layout_b;  ///< thin
  int warps_m = 1, warps_n = 1;
  int lanes_k = 0, warps_k = 0;  ///< thin: bits of lane and warp indices that hold partial sums
  bool partial = false;          ///< thin: sums over lanes and warps are left for after the loop
  int unrolled = 2;              ///< block: rounds of k written out one after another
};

/// Axis of a tile -> stride in scratch memory, in elements.
using Strides = std::array<std::int64_t, max_rank>;

struct Step {
  enum class Kind : std::uint8_t {
    compute,   ///< out = expression
    load,      ///< out = tile of a tensor
    store,     ///< tile of a tensor = expression
    scatter,   ///< rows of a tensor = expression
    atomic,    ///< tile of a tensor += expression, atomically
    reduce,    ///< out = expression combined along an axis, by op
    argmax,    ///< out = index of the largest along an axis
    replicas,  ///< out = its partial sums over lanes and warps added up
    put,       ///< scratch = expression
    scan,      ///< sums along an axis, in scratch
    get,       ///< out = scratch
    stage,     ///< buffer = expression
    clear,     ///< buffer = 0
    fetch,     ///< buffers = tiles of tensors, asynchronously; in place, or for a loop ahead of its use
    wait,      ///< until fetched
    product,   ///< out += a b
    barrier,
    loop,
    branch,
  };
  Kind kind{};
  Id node = no_id;  ///< what the author wrote
  Location location;
  ValueId out = -1;
  ValueId best = -1;  ///< argmax: the largest so far
  Op op{};
  int axis = 0;
  Shape shape;    ///< of the sweep
  Layout layout;  ///< of the sweep
  Expression expression;
  std::vector<TileAccess> reads;     ///< fetched on the way
  std::optional<TileAccess> access;  ///< of a load, a store, an atomic
  int vector = 1;                    ///< elements of the sweep that reads or stores move at a time
  bool unrolled = true;
  int scratch = -1, buffer = -1;
  Strides strides{};
  std::int64_t base = 0;   ///< put: first element in scratch
  std::int64_t lines = 0;  ///< scan: how many, how long, how far apart
  int length = 0, inner = 0;
  std::optional<Product> product;
  /// compute: bits of lane and warp indices, where any is set the result is 0. replicas: those to add up over.
  int replica_lanes = 0, replica_warps = 0;
  int kept = 0;  ///< replicas: registers that a lane adds up over the warps, the others having the rest

  // Loops and what runs ahead of them.
  std::string counter;
  Operand count;
  std::vector<Step> body;
  std::vector<Step> ahead;   ///< loop: the steps of one fetch, of iteration `counter`
  int stages = 1;            ///< loop: how many iterations are in flight
  std::vector<int> buffers;  ///< fetch: one per access
  std::vector<TileAccess> tiles;
};

struct ThreadTerm {
  std::string name;
  std::vector<std::pair<Factor, int>> digits;
};

struct Plan {
  std::string kernel;
  std::string author;  ///< the kernel's name as the author gave it
  Location location;
  Arch arch;
  Variant variant;
  bool debug = false;
  std::vector<Parameter> tensors;
  std::vector<KernelParameter> parameters;
  int warps = 4;
  int raster = 0;  ///< blocks along the first axis that run together, so that they meet in L2; 0: in order
  bool persistent = false;
  int blocks = 1;  ///< at least so many on a multiprocessor at a time: bounds the registers of a thread
  std::int64_t shared_bytes = 0, workspace_bytes = 0;
  std::vector<Value> values;
  std::vector<Buffer> buffers;
  std::vector<Scratch> scratch;
  std::vector<Step> steps;
  std::vector<std::string> notes;  ///< why it is as it is
  int threads() const { return warps * 32; }
};

/// The plan of a graph for a class of launches.
Plan make_plan(const Graph& graph, const Variant& variant, Arch arch, const GenerateOptions& options);
/// Decisions as lines of text, those that the top of a kernel shows.
std::string to_string(const Plan& plan);
/// The kernel as CUDA C++, without the prelude.
std::string emit(const Plan& plan);

}  // namespace tessera
