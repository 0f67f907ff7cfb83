// The steps that a role's warps run, in order, barriers included.
//
// Most steps are sweeps: each thread iterates over the registers of a layout and, for each element it holds, evaluates
// an expression of earlier values. Each kind of step is a struct, and Action lists them all. Code that handles every
// kind visits it without a default case, so that it does not compile when a new kind is forgotten.
#pragma once
#include <any>
#include <array>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/plan/role_steps.hpp"

namespace tessera::internal::codegen {

/// Registers of a thread that go through scratch memory at a time when warps combine their partial results.
inline constexpr int most_partials = 8;

// --- matmuls

/// One operand of a matmul.
struct MatmulOperand {
  BufferId buffer;                 ///< shared memory; or
  ValueId value;                   ///< registers
  bool k_major = true;             ///< the buffer's rows run along k
  ElementType stored{};            ///< in the buffer
  std::vector<ElementType> casts;  ///< between the buffer and the matmul
  LoopId stage;                    ///< the loop whose stages the buffer has; none: one stage
};

enum class MatmulKind : std::uint8_t {
  mma_sync,  ///< mma.sync, operands from shared memory or accumulator registers
  simt,      ///< FMA, operands from shared memory
  gemv,      ///< FMA, operands in registers, k spread over lanes and warps
};

/// Elements of k in one tensor core instruction: 32 bytes of each row.
constexpr int depth_of(ElementType factor) { return 32 / info(factor).bytes; }

struct Matmul {
  MatmulKind kind{};
  ElementType type{};  ///< of the operands
  int m = 0, n = 0, k = 0;
  MatmulOperand a, b;
  Layout layout_a, layout_b;  ///< gemv; layout_a also for wgmma, if a is in registers
  int warps_m = 1, warps_n = 1;
  int lanes_k = 0, warps_k = 0;  ///< gemv: bits of lane and warp indices that hold partial sums
  bool partial = false;          ///< gemv: reduction over lanes and warps is left for after the loop
  int unrolled = 2;              ///< k-steps that are unrolled; 0: all
  bool reads_ahead = false;      ///< mma_sync, all k-steps unrolled: each reads the fragments of the next one

  /// For tensor core instructions: elements of k in one, and the number of k-steps.
  int depth() const { return depth_of(type); }
  int k_steps() const { return (k + depth() - 1) / depth(); }
  /// Are operands multiplied as they are stored in shared memory? Otherwise elements are converted on the way.
  bool in_stored_order() const { return kind == MatmulKind::mma_sync && type != ElementType::tf32; }
  Pairs pairs() const { return {info(type).bytes == 1 && !a.k_major, info(type).bytes == 1 && !b.k_major}; }
};

/// Axis of a tile -> stride in scratch memory, in elements.
using Strides = std::array<std::int64_t, max_rank>;

// --- kinds of steps

/// out = expression.
struct Compute {
  ValueId out;
  Sweep sweep;
  int zero_lanes = 0, zero_warps = 0;  ///< bits of lane and warp indices: the result is 0 where any of them is set

  template <class S>
  static void fields(S& s, auto&& f) {
    f.sweep(s.sweep);
    f.result(s.out);
  }
};

/// out = tile of a tensor.
struct Load {
  ValueId out;
  Sweep sweep;
  TileAccess access;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.sweep(s.sweep);
    f.access(s.access, Use::read);
    f.result(s.out);
  }
};

/// Tile of a tensor = expression.
struct Store {
  enum class Kind : std::uint8_t {
    store,
    scatter,  ///< rows, or elements
  };
  Kind kind{};
  Sweep sweep;
  TileAccess access;
  /// For accumulators of mma.sync, stored as 16-bit elements: the four lanes that hold a row's pairs exchange them, so
  /// that each stores eight neighbors.
  bool by_quads = false;
  bool whole = false;  ///< 16-byte accesses that no compiler may split

  template <class S>
  static void fields(S& s, auto&& f) {
    f.sweep(s.sweep);
    f.access(s.access, Use::write);
  }
};

/// Updates elements of a tensor by an expression, each atomically, by the first of the threads that hold copies of it.
/// out = the old values in that thread; 0 in the others, and for elements outside of the tensor.
struct Atomic {
  Op op{};  ///< the op at a tile position, also when places are given by element
  MemoryOrder order{};
  MemoryScope scope{};
  ValueId out;                           ///< none: the old values are not used
  std::optional<Operand> expected = {};  ///< compare_exchange
  Sweep sweep;
  TileAccess access;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.sweep(s.sweep);
    f.access(s.access, Use::write);
    if (s.expected) f.operand(*s.expected);
    if (s.out) f.result(s.out);
  }
};

/// out = expression reduced along an axis: by each thread, over lanes, and over warps by the steps in `across`.
struct Reduce {
  Op op{};
  int axis = 0;
  ValueId out;
  Sweep sweep;
  Body across;  ///< empty, or CrossWarpReduce

  template <class S>
  static void fields(S& s, auto&& f) {
    f.sweep(s.sweep);
    f.exchange(s.across);
    f.result(s.out);
  }
};

/// out = index of the largest element along an axis.
struct Argmax {
  int axis = 0;
  ValueId out, best;  ///< best: the largest element so far
  Sweep sweep;
  Body across;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.sweep(s.sweep);
    f.exchange(s.across);
    f.result(s.out);
    f.result(s.best);
  }
};

/// out = the sum of its partial sums over lanes and warps.
struct LaneReduce {
  ValueId out;
  int lanes = 0, warps = 0;  ///< bits of their indices that distinguish partial sums
  int kept = 0;              ///< registers that a lane reduces over the warps; other lanes have the rest
  Body across;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.exchange(s.across);
    f.result(s.out);
  }
};

/// Warps combine their partial results, `chunk` registers of a thread per pass. Each pass stores and reduces partials.
struct CrossWarpReduce {
  ValueId out;
  int registers = 0, chunk = 0;
  Body per_chunk;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.exchange(s.per_chunk);
    f.result(s.out);
  }
};

/// Scratch memory = this pass's registers of a thread.
struct StoreWarpPartials {
  ScratchId scratch;
  ValueId out, best;  ///< best: argmax
  int registers = 0, chunk = 0;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.scratch(s.scratch, Use::write);
  }
};

/// This pass's registers = those of all warps that hold partials of the same result, reduced.
struct ReduceWarpPartials {
  ScratchId scratch;
  ValueId out, best;
  Op op{};
  int registers = 0, chunk = 0;
  int warps = 0;  ///< bits of warp indices

  template <class S>
  static void fields(S& s, auto&& f) {
    f.scratch(s.scratch, Use::read);
    f.result(s.out);
    if (s.best) f.result(s.best);
  }
};

/// How a scan combines: its reduction, direction, and whether it is exclusive.
struct ScanBy {
  Op op = Op::sum;
  ScanOptions options;
};

/// out = expression scanned along an axis, whose layout is a Line. If several warps share a line, each scans its own
/// part inclusively, and WriteScanTotals and AddScanPrefix follow.
struct Scan {
  ScanBy by;
  int axis = 0;
  ValueId out;
  Sweep sweep;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.sweep(s.sweep);
    f.result(s.out);
  }
};

/// Scratch memory = the total of each warp's part of a line, for each of its parts.
struct WriteScanTotals {
  ScanBy by;
  ScratchId scratch;
  ValueId out;
  int axis = 0;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.value(s.out);
    f.scratch(s.scratch, Use::write);
  }
};

/// out = out combined with the totals of the parts before it, in their order.
struct AddScanPrefix {
  ScanBy by;
  ScratchId scratch;
  ValueId out;
  int axis = 0;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.value(s.out);
    f.scratch(s.scratch, Use::read);
    f.result(s.out);
  }
};

/// out = expression with each chunk of each line sorted on its own, and at = the positions of these elements along the
/// axis. The sweep holds a chunk, in any order, in the registers that hold it after the sort.
struct Sort {
  SortOptions by;
  int axis = 0;
  int chunk = 1;    ///< neighbors along the axis
  int kept = 1;     ///< the first elements of each chunk that are sorted; the others are arbitrary
  ValueId out, at;  ///< at: or none
  Sweep sweep;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.sweep(s.sweep);
    f.result(s.out);
    if (s.at) f.result(s.at);
  }
};

/// Scratch memory = expression, whose chunks are sorted, each element at its place in the sorted line; and the same for
/// the elements of `at`. Only the first `extent` elements of a line are stored.
struct Merge {
  SortOptions by;
  int axis = 0;
  int chunk = 1, kept = 1;  ///< as in Sort
  int extent = 1;           ///< elements of a line that are stored
  ValueId at;               ///< or none
  ScratchId from;           ///< has the expression, to be searched; neighbors along the axis are contiguous
  ScratchId to, to_at;      ///< or none
  Strides from_strides{}, to_strides{};
  Sweep sweep;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.sweep(s.sweep);
    if (s.at) f.value(s.at);
    f.scratch(s.from, Use::read);
    for (const ScratchId to : {s.to, s.to_at})
      if (to.index != -1) f.scratch(to, Use::write);
  }
};

/// Scratch memory, which has `copies` contiguous copies of each count: one copy of a count += 1 for each number of the
/// expression that is one of `bins`.
struct HistogramUpdate {
  ScratchId scratch;
  int axis = 0;
  int bins = 1, copies = 1;
  Strides strides{};  ///< of a count
  Sweep sweep;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.sweep(s.sweep);
    f.scratch(s.scratch, Use::write);
  }
};

/// out = the sum of the copies of each count in scratch memory.
struct HistogramReduce {
  ScratchId scratch;
  int copies = 1;
  Strides strides{};
  ValueId out;
  Sweep sweep;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.sweep(s.sweep);
    f.scratch(s.scratch, Use::read);
    f.result(s.out);
  }
};

/// Scratch memory = expression.
struct StoreScratch {
  ScratchId scratch;
  Strides strides{};
  std::int64_t base = 0;  ///< first element in scratch
  Sweep sweep;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.sweep(s.sweep);
    f.scratch(s.scratch, Use::write);
  }
};

/// Elements along an axis of a tile in scratch memory: first, first + step, ... Those outside of the tile are 0.
struct Picked {
  Operand first;  ///< a value of one element or a literal; first + step * i always fits an int
  int step = 1;
  int extent = 1;  ///< of the tile
};

/// out = scratch memory.
struct LoadScratch {
  ScratchId scratch;
  Strides strides{};
  std::vector<Picked> picked = {};  ///< by axis; none: all elements
  ValueId out;
  Sweep sweep;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.sweep(s.sweep);
    f.scratch(s.scratch, Use::read);
    for (auto& axis : s.picked) f.operand(axis.first);
    f.result(s.out);
  }
};

/// Buffer = expression.
struct StoreShared {
  BufferId buffer;
  PipelineStateId state = {};  ///< selects the stage of the buffer; none: it has one stage
  Sweep sweep;
  enum class By : std::uint8_t {
    element,
    vector,  ///< one access for the elements that the sweep moves at a time
    matrix,  ///< the same for 16 columns of wgmma accumulators, by stmatrix
  };
  By by = By::element;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.sweep(s.sweep);
    f.buffer(s.buffer, Use::write);
    if (s.state.index != -1) f.state(s.state);
  }
};

/// out = a tile, or a part of one, from a pipeline's stage, in the layout of wgmma's left operand.
struct LoadFragment {
  BufferId buffer;
  PipelineStateId state;
  bool transposed = false;  ///< the buffer's rows run along the tile's first axis, not its second
  ValueId out;
  Sweep sweep;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.sweep(s.sweep);
    f.buffer(s.buffer, Use::read);
    f.state(s.state);
    f.result(s.out);
  }
};

/// Buffer = 0.
struct ZeroFill {
  BufferId buffer;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.buffer(s.buffer, Use::write);
  }
};

/// Buffers = tiles of tensors; used at once, or by a later iteration of a loop.
struct Fetch {
  enum class Copy : std::uint8_t { async, element, vector };
  struct Tile {
    BufferId buffer;
    TileAccess access;
    Copy copy{};       ///< async: cp.async, followed by CpAsyncCommit and CpAsyncWait
    int unrolled = 0;  ///< unrolled copies; 0: all
  };
  LoopId loop;  ///< whose later iteration uses it; none: used at once
  std::vector<Tile> tiles;

  template <class S>
  static void fields(S& s, auto&& f) {
    for (auto& tile : s.tiles) f.buffer(tile.buffer, Use::write);
    for (auto& tile : s.tiles) f.copy(tile.access);
    if (s.loop.index != -1) f.loop(s.loop);
  }
};

/// cp.async.commit_group: ends a group of asynchronous copies.
struct CpAsyncCommit {};

/// cp.async.wait_group: until at most `pending` groups of copies are in flight.
struct CpAsyncWait {
  int pending = 0;
};

/// out += a b.
struct Mma {
  ValueId out;
  Shape shape;
  Layout layout;
  Matmul matmul;
  LoopId fetching;  ///< the loop around, if its fetch is issued inside, after the first k-step; or none
  /// The last k-step of an iteration is multiplied when the data of the next iteration has arrived and is being read;
  /// the very last one after the loop.
  bool holds_last = false;

  template <class S>
  static void fields(S& s, auto&& f) {
    for (auto* operand : {&s.matmul.a, &s.matmul.b}) {
      if (operand->buffer.index != -1) f.buffer(operand->buffer, Use::read);
      if (operand->value) f.value(operand->value);
      if (operand->stage.index != -1) f.loop(operand->stage);
    }
    f.result(s.out);
    if (s.fetching.index != -1) f.loop(s.fetching);
  }
};

/// Barrier of all threads of the role's consumer group; in a prologue, of the CTA.
struct Barrier {
  bool again = false;  ///< not in the first pass of the CrossWarpReduce around
};

/// A loop in the author's source. With `stages` > 1, `stages` iterations are in flight at a time: the loop begins
/// stages - 1 iterations early, and those only fetch. An iteration consists of
///   arrive   (not in the early iterations) waits until its copies have arrived
///   ahead    the fetch of a later iteration, if there is one
///   issued   steps that follow the fetch, also where it is skipped
///   body     (not in the early iterations)
/// If a matmul of the body contains the fetch, `ahead` and `issued` run there, and the early iterations are a loop of
/// their own.
struct Loop {
  LoopId loop;
  Operand count;
  bool repeats = false;  ///< `count` is a condition that the body recomputes: the loop runs while it holds
  int stages = 1;
  int unrolled = 0;  ///< iterations to unroll; 0: the compiler decides
  Body arrive, ahead, issued, body;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.own_loop(s.loop);
    f.operand(s.count);
    for (auto* body : {&s.arrive, &s.ahead, &s.issued, &s.body}) f.body(*body);
  }
};

/// if (condition) body.
struct Branch {
  Operand condition;
  Body body;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.operand(s.condition);
    f.body(s.body);
  }
};

/// Reports a text of the graph to the host, with values from scratch memory; not where the condition `unless` holds.
struct HostReport {
  struct Tile {
    ScratchId scratch;
    std::int64_t elements = 0;
  };
  int text = 0;
  std::optional<Operand> unless = {};
  std::vector<Tile> values = {};
  std::vector<Operand> block = {};  ///< the grid tile's index along each axis of the grid

  template <class S>
  static void fields(S& s, auto&& f) {
    if (s.unless) f.operand(*s.unless);
    for (auto& index : s.block) f.operand(index);
    for (auto& tile : s.values) f.scratch(tile.scratch, Use::read);
  }
};

/// Kinds of steps that work on tiles, and control flow.
using TileKinds = KindList<Compute, Load, Store, Atomic, Reduce, Argmax, LaneReduce, CrossWarpReduce, StoreWarpPartials, ReduceWarpPartials, Scan, WriteScanTotals, AddScanPrefix, Sort, Merge, HistogramUpdate, HistogramReduce, StoreScratch, LoadScratch, StoreShared, LoadFragment, ZeroFill, Fetch, CpAsyncCommit, CpAsyncWait, Mma, Barrier, Loop, Branch, HostReport>;
using Kinds = decltype(TileKinds() + ConditionKinds() + RoleKinds());

template <class T>
concept KindOfStep = Kinds::has<T>;

/// The action of a step: one of Kinds, by value. A std::variant of so many kinds instantiates thousands of functions,
/// and took half the time to compile a file that has steps.
class Action {
 public:
  template <KindOfStep Kind>
  Action(Kind kind) : index_(Kinds::index_of<Kind>()), kind_(std::in_place_type<Kind>, std::move(kind)) {}
  int index() const { return index_; }
  template <KindOfStep Kind>
  bool is() const {
    return index_ == Kinds::index_of<Kind>();
  }
  /// Null if it is another kind.
  template <KindOfStep Kind>
  Kind* as() {
    return is<Kind>() ? std::any_cast<Kind>(&kind_) : nullptr;
  }
  template <KindOfStep Kind>
  const Kind* as() const {
    return is<Kind>() ? std::any_cast<Kind>(&kind_) : nullptr;
  }
  /// Throws std::bad_any_cast if it is another kind.
  template <KindOfStep Kind>
  Kind& get() {
    return std::any_cast<Kind&>(kind_);
  }
  template <KindOfStep Kind>
  const Kind& get() const {
    return std::any_cast<const Kind&>(kind_);
  }

 private:
  int index_;
  std::any kind_;
};

struct Step {
  Action action;
  Id node = no_id;  ///< the node in the graph
  Location location = {};
};

/// A visitor for visit_kind() made of lambdas, one for each kind.
template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

/// Calls visitor(kind) with the kind that an action has.
template <class Visitor, OneOf<Action, const Action> A>
auto visit_kind(Visitor&& visitor, A& action) {
  return [&]<class First, class... Peers>(KindList<First, Peers...>) {
    using Result = decltype(visitor(*action.template as<First>()));
    if constexpr (std::is_void_v<Result>) {
      const auto is = [&]<class Kind>(Kind* kind) { return kind && (visitor(*kind), true); };
      (void)(is(action.template as<First>()) || (is(action.template as<Peers>()) || ...));
    } else {
      std::optional<Result> result;
      const auto is = [&]<class Kind>(Kind* kind) { return kind && (result.emplace(visitor(*kind)), true); };
      (void)(is(action.template as<First>()) || (is(action.template as<Peers>()) || ...));
      return *std::move(result);
    }
  }(Kinds());
}

template <class T>
concept OfRoles = RoleKinds::has<std::remove_const_t<T>>;
template <class T>
concept Condition = ConditionKinds::has<std::remove_const_t<T>>;

/// The matmul of a loop's body that issues the loop's fetch inside; or null.
inline const Mma* fetching_matmul(const Loop& loop) {
  for (const Step& step : loop.body)
    if (const Mma* mma = step.action.as<Mma>(); mma && mma->fetching == loop.loop) return mma;
  return nullptr;
}

/// The bodies of a step, in the order they run; at most four.
struct Bodies {
  Body* at[4];
  int count = 0;
};
/// With those in which warps combine their results, or without.
Bodies bodies_of(Step& step, bool with_exchanges = true);

/// Calls each(body) for them.
template <class Each>
void each_body(Step& step, const Each& each) {
  const Bodies bodies = bodies_of(step);
  for (int i = 0; i < bodies.count; ++i) each(*bodies.at[i]);
}
template <class Each>
void each_body(const Step& step, const Each& each) {
  each_body(const_cast<Step&>(step), [&](const Body& body) { each(body); });
}

}  // namespace tessera::internal::codegen
