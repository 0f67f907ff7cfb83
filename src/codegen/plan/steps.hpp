// What a role's warps do, step by step, in the order they run; the barriers are among the steps.
//
// A step mostly is a sweep: each thread runs over the registers of a layout and, for each element it holds, evaluates
// an expression of what was computed before. A kind of step is a struct, and Action lists them all: whoever must treat
// each of them visits it without a case for the rest, so that a new kind that is forgotten does not compile.
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

/// Registers of a thread that go through scratch memory at a time when warps combine their parts of a result.
inline constexpr int most_partials = 8;

// --- products

/// One operand of a product.
struct MatmulOperand {
  BufferId buffer;                 ///< or
  ValueId value;                   ///< registers
  bool k_major = true;             ///< the buffer's rows run along k
  ElementType stored{};            ///< in the buffer
  std::vector<ElementType> casts;  ///< on the way to the product
  LoopId stage;                    ///< the loop whose stages the buffer has; none: one stage
};

enum class MatmulKind : std::uint8_t {
  mma_sync,  ///< mma.sync, operands from shared memory or accumulator registers
  simt,      ///< fused multiply-add, operands from shared memory
  gemv,      ///< fused multiply-add, operands in registers, k spread over lanes and warps
};

/// Elements of k in a matrix instruction: 32 bytes of each row.
constexpr int depth_of(ElementType factor) { return 32 / info(factor).bytes; }

struct Matmul {
  MatmulKind kind{};
  ElementType type{};  ///< of the operands
  int m = 0, n = 0, k = 0;
  MatmulOperand a, b;
  Layout layout_a, layout_b;  ///< thin; of wgmma layout_a, if it is in registers
  int warps_m = 1, warps_n = 1;
  int lanes_k = 0, warps_k = 0;  ///< thin: bits of lane and warp indices that hold partial sums
  bool partial = false;          ///< thin: sums over lanes and warps are left for after the loop
  int unrolled = 2;              ///< rounds of k written out one after another; 0: all
  bool reads_ahead = false;      ///< tensor, all rounds written out: each reads what the next multiplies

  /// Of matrix instructions: elements of k in one, and how many make up all of k.
  int depth() const { return depth_of(type); }
  int k_steps() const { return (k + depth() - 1) / depth(); }
  /// Is an operand multiplied as it lies in shared memory? Of others elements are converted on the way.
  bool as_it_lies() const { return kind == MatmulKind::mma_sync && type != ElementType::tf32; }
  Pairs pairs() const { return {info(type).bytes == 1 && !a.k_major, info(type).bytes == 1 && !b.k_major}; }
};

/// Axis of a tile -> stride in scratch memory, in elements.
using Strides = std::array<std::int64_t, max_rank>;

// --- kinds of steps

/// out = expression.
struct Compute {
  ValueId out;
  Sweep sweep;
  int zero_lanes = 0, zero_warps = 0;  ///< bits of lane and warp indices: where any is set the result is 0
};

/// out = a tile of a tensor.
struct Load {
  ValueId out;
  Sweep sweep;
  TileAccess access;
};

/// A tile of a tensor = expression.
struct Store {
  enum class Kind : std::uint8_t {
    store,
    scatter,  ///< rows, or elements
  };
  Kind kind{};
  Sweep sweep;
  TileAccess access;
  /// Of mma.sync's accumulators, 16 bits each: the four lanes that have a row's pairs exchange them, so that each
  /// stores eight neighbours.
  bool by_quads = false;
  bool whole = false;  ///< accesses of 16 bytes that no compiler is to take apart
};

/// Elements of a tensor are changed by an expression, each at once, by the first of those who hold copies of it.
/// out = what they were, of the first; of others, and of what does not exist, 0.
struct Atomic {
  Op op{};  ///< the one at a tile position, also of elements
  MemoryOrder order{};
  MemoryScope scope{};
  ValueId out;                           ///< none: nobody asks
  std::optional<Operand> expected = {};  ///< compare_exchange
  Sweep sweep;
  TileAccess access;
};

/// out = expression combined along an axis: by each thread, over lanes, and over warps by what stands in `across`.
struct Reduce {
  Op op{};
  int axis = 0;
  ValueId out;
  Sweep sweep;
  Body across;  ///< empty, or CrossWarpReduce
};

/// out = index of the largest along an axis.
struct Argmax {
  int axis = 0;
  ValueId out, best;  ///< best: the largest so far
  Sweep sweep;
  Body across;
};

/// out = its partial sums over lanes and warps added up.
struct LaneReduce {
  ValueId out;
  int lanes = 0, warps = 0;  ///< bits of their indices that tell partial sums apart
  int kept = 0;              ///< registers that a lane adds up over the warps, the others having the rest
  Body across;
};

/// Warps combine their parts of a result, `chunk` registers of a thread at a time: rounds of a put and a take.
struct CrossWarpReduce {
  ValueId out;
  int registers = 0, chunk = 0;
  Body per_chunk;
};

/// Scratch memory = this round's registers of a thread.
struct StoreWarpPartials {
  ScratchId scratch;
  ValueId out, best;  ///< best: argmax
  int registers = 0, chunk = 0;
};

/// This round's registers = those of all warps that hold parts of the same result, combined.
struct ReduceWarpPartials {
  ScratchId scratch;
  ValueId out, best;
  Op op{};
  int registers = 0, chunk = 0;
  int warps = 0;  ///< bits of warp indices
};

/// How a scan combines: by a reduction, in which order, with or without the element itself.
struct ScanBy {
  Op op = Op::sum;
  ScanOptions options;
};

/// out = expression scanned along an axis, whose layout is a Line. Over several warps each scans its own, and not
/// exclusively: WriteScanTotals and AddScanPrefix follow.
struct Scan {
  ScanBy by;
  int axis = 0;
  ValueId out;
  Sweep sweep;
};

/// Scratch memory = what each warp's part of a line comes to, in each round.
struct WriteScanTotals {
  ScanBy by;
  ScratchId scratch;
  ValueId out;
  int axis = 0;
};

/// out = it, combined with what is before it of other rounds and warps, in their order.
struct AddScanPrefix {
  ScanBy by;
  ScratchId scratch;
  ValueId out;
  int axis = 0;
};

/// out = expression, the chunks of each line in order by themselves, and at = where along the axis these elements
/// stand. The sweep holds a chunk in the registers that have it behind, in whatever order.
struct Sort {
  SortOptions by;
  int axis = 0;
  int chunk = 1;    ///< neighbours along the axis
  int kept = 1;     ///< of each chunk these are in order, the first; behind them is anything
  ValueId out, at;  ///< at: or none
  Sweep sweep;
};

/// Scratch memory = expression, whose chunks are in order, each at its place in the order of its line; and what `at`
/// has of it. Only the first of a line are put.
struct Merge {
  SortOptions by;
  int axis = 0;
  int chunk = 1, kept = 1;  ///< as of the sort
  int extent = 1;           ///< how many of a line are put
  ValueId at;               ///< or none
  ScratchId from;           ///< what the expression is, to be searched; neighbours along the axis are neighbours there
  ScratchId to, to_at;      ///< or none
  Strides from_strides{}, to_strides{};
  Sweep sweep;
};

/// Scratch memory, which has `copies` of each count one beside another, += 1 for each number of the expression that is
/// one of `bins`, in one of its copies.
struct HistogramUpdate {
  ScratchId scratch;
  int axis = 0;
  int bins = 1, copies = 1;
  Strides strides{};  ///< of a count
  Sweep sweep;
};

/// out = the copies of each count in scratch memory added up.
struct HistogramReduce {
  ScratchId scratch;
  int copies = 1;
  Strides strides{};
  ValueId out;
  Sweep sweep;
};

/// Scratch memory = expression.
struct StoreScratch {
  ScratchId scratch;
  Strides strides{};
  std::int64_t base = 0;  ///< first element in scratch
  Sweep sweep;
};

/// Elements of an axis of a tile in scratch memory: first, first + step, ... Those that it lacks are 0.
struct Picked {
  Operand first;  ///< a value of one element or a literal; never so far outside that its sums do not fit an int
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
};

/// Buffer = expression.
struct StoreShared {
  BufferId buffer;
  PipelineStateId state = {};  ///< whose stage of the buffer; none: it has one
  Sweep sweep;
  enum class By : std::uint8_t {
    element,
    vector,  ///< what the sweep moves at a time, by one access
    matrix,  ///< the same, 16 columns of wgmma's accumulators, by stmatrix
  };
  By by = By::element;
};

/// out = what a pipeline's stage has of a tile, or of a part of it, as wgmma's left operand lies.
struct LoadFragment {
  BufferId buffer;
  PipelineStateId state;
  bool transposed = false;  ///< the buffer's rows run along the tile's first axis, not along its second
  ValueId out;
  Sweep sweep;
};

/// Buffer = 0.
struct ZeroFill {
  BufferId buffer;
};

/// Buffers = tiles of tensors; in place, or for a loop ahead of its use.
struct Fetch {
  enum class Copy : std::uint8_t { async, element, vector };
  struct Tile {
    BufferId buffer;
    TileAccess access;
    Copy copy{};       ///< async: cp.async, which a Commit and a Wait follow
    int unrolled = 0;  ///< pieces written out one after another; 0: all
  };
  LoopId loop;  ///< of whose round it is; none: in place
  std::vector<Tile> tiles;
};

/// Ends a group of asynchronous copies.
struct CpAsyncCommit {};

/// Until at most `pending` groups of copies are under way.
struct CpAsyncWait {
  int pending = 0;
};

/// out += a b.
struct Mma {
  ValueId out;
  Shape shape;
  Layout layout;
  Matmul matmul;
  LoopId fetching;  ///< the loop around whose fetch ahead stands within, behind the first round of k; or none
  /// The last round of k is multiplied when the loop's next round has arrived and is being read; the very last behind
  /// the loop.
  bool holds_last = false;
};

/// Of all threads of the role's team; in a prologue, of the block.
struct Barrier {
  bool again = false;  ///< not in the first round of the CrossWarpReduce around
};

/// A loop of the author's. With stages, `stages` rounds are under way at a time: the loop begins stages - 1 rounds
/// early and only fetches in those. A round is
///   arrive   from the first full round on: its copies have arrived
///   ahead    the fetch of a later round, if there is one
///   issued   what follows a fetch, made or not
///   body     from the first full round on
/// Where a product of the body has the fetch within, ahead and issued stand there, and those of the early rounds in a
/// loop of their own.
struct Loop {
  LoopId loop;
  Operand count;
  bool repeats = false;  ///< `count` is a condition, which the body computes anew: it has rounds as long as that holds
  int stages = 1;
  int unrolled = 0;  ///< rounds that are written out one after another; 0: as the compiler likes
  Body arrive, ahead, issued, body;
};

/// if (condition) body.
struct Branch {
  Operand condition;
  Body body;
};

/// The host is told a text of the graph, with what scratch memory has; or only `unless` a condition holds.
struct HostReport {
  struct Tile {
    ScratchId scratch;
    std::int64_t elements = 0;
  };
  int text = 0;
  std::optional<Operand> unless = {};
  std::vector<Tile> values = {};
  std::vector<Operand> block = {};  ///< the block's index along each axis of its grid
};

template <class T, class... Kinds>
concept OneOf = (std::same_as<T, Kinds> || ...);

template <class... Of>
struct KindList {
  template <class T>
  static constexpr bool has = OneOf<T, Of...>;
  /// Which of them T is.
  template <class T>
  static consteval int index_of() {
    int index = 0;
    (void)((std::same_as<T, Of> || (++index, false)) || ...);
    return index;
  }
};
using Kinds =
    KindList<Compute, Load, Store, Atomic, Reduce, Argmax, LaneReduce, CrossWarpReduce, StoreWarpPartials,
             ReduceWarpPartials, Scan, WriteScanTotals, AddScanPrefix, Sort, Merge, HistogramUpdate, HistogramReduce,
             StoreScratch, LoadScratch, StoreShared, LoadFragment, ZeroFill, Fetch, CpAsyncCommit, CpAsyncWait, Mma,
             Barrier, Loop, Branch, HostReport, ElectOne, IfConsumerGroup, IfFirstSplit, ForEachPeer, TileLoop,
             PrefetchBeforeWait, IfNotPrefetched, SetMaxNReg, PrefetchMap, InitPipeline, ZeroFillRows, ZeroFillPastEnd,
             WaitEmpty, ArriveExpectTx, TmaLoad, Arrive, WaitFull, ArriveEmpty, AdvanceStage, DeclareAccumulator,
             RegisterFence, WgmmaFence, Wgmma, WgmmaCommit, WgmmaWait, ProxyFence, TmaStore, TmaStoreCommit,
             TmaStoreWait, NamedBarrier, GridDependencyWait, GridDependencyTrigger, SplitKRange, StorePartial,
             ReducePartials, ClusterBarrier, SignalPartial, WaitPartial, WarpBarrier, OrderedBarrier>;

template <class T>
concept KindOfStep = Kinds::has<T>;

/// What a step does: one of Kinds, by value. As a std::variant of so many it was thousands of functions, and half of
/// what it took to compile a file that has steps.
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
  Id node = no_id;  ///< what the author wrote
  Location location = {};
};

/// visit_kind() by lambdas, one for each kind.
template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

/// visitor(kind) of what an action is.
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

/// What roles at work at the same time do to pipelines, open groups and proxies; without steps of their own. Visits
/// name each kind, also where there is nothing to do: a further kind does not compile before that is decided.
template <class T>
concept OfRoles =
    OneOf<std::remove_const_t<T>, SetMaxNReg, PrefetchMap, InitPipeline, ZeroFillRows, ZeroFillPastEnd, WaitEmpty,
          ArriveExpectTx, TmaLoad, Arrive, WaitFull, ArriveEmpty, AdvanceStage, DeclareAccumulator, RegisterFence,
          WgmmaFence, Wgmma, WgmmaCommit, WgmmaWait, ProxyFence, TmaStore, TmaStoreCommit, TmaStoreWait, NamedBarrier,
          GridDependencyWait, GridDependencyTrigger, SplitKRange, StorePartial, ReducePartials, ClusterBarrier,
          SignalPartial, WaitPartial, WarpBarrier, OrderedBarrier>;

/// The product of a loop's body that has its fetch within; or null.
inline const Mma* fetching_matmul(const Loop& loop) {
  for (const Step& step : loop.body)
    if (const Mma* mma = step.action.as<Mma>(); mma && mma->fetching == loop.loop) return mma;
  return nullptr;
}

/// The kinds that hold no steps.
template <class T>
concept Leaf =
    OfRoles<T> ||
    OneOf<std::remove_const_t<T>, Compute, Load, Store, Atomic, StoreWarpPartials, ReduceWarpPartials, Scan,
          WriteScanTotals, AddScanPrefix, Sort, Merge, HistogramUpdate, HistogramReduce, StoreScratch, LoadScratch,
          StoreShared, LoadFragment, ZeroFill, Fetch, CpAsyncCommit, CpAsyncWait, Mma, Barrier, HostReport>;

/// The bodies in a step, in the order they run; at most four.
struct Bodies {
  Body* at[4];
  int count = 0;
};
Bodies bodies_of(Step& step);

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
