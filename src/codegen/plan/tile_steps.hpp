// Kinds of steps that work on tiles: matmuls, memory, reductions, exchanges (exchange_steps.hpp); and loops and branches.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/plan/exchange_steps.hpp"
#include "codegen/plan/role_steps.hpp"

namespace tessera::internal::codegen {

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
  /// Bits of lane and warp indices that hold partial sums: of gemv, and in mma_sync the lowest bits of the warp.
  int lanes_k = 0, warps_k = 0;
  bool partial = false;          ///< reduction over lanes and warps is left for after the loop
  int unrolled = 2;              ///< k-steps that are unrolled; 0: all
  bool reads_ahead = false;      ///< mma_sync, all k-steps unrolled: each reads the fragments of the next one

  /// For tensor core instructions: slices of k, each of another warp; elements of k in one; and k-steps of a warp.
  int slices() const { return kind == MatmulKind::mma_sync ? warps_k + 1 : 1; }
  int depth() const { return depth_of(type); }
  int k_steps() const { return (k / slices() + depth() - 1) / depth(); }
  /// A gemv, or up to 16 rows times weights outside of a loop: its time is that of a chain of dependent steps.
  bool is_latency_bound() const { return kind == MatmulKind::gemv || (m <= 16 && slices() > 1 && !partial); }
  /// The layout of a left operand in registers.
  Layout left_layout() const { return accumulator_layout({m, k}, warps_m, slices()); }
  /// Are operands multiplied as they are stored in shared memory? Otherwise elements are converted on the way.
  bool in_stored_order() const { return kind == MatmulKind::mma_sync && type != ElementType::tf32; }
  Pairs pairs() const { return {info(type).bytes == 1 && !a.k_major, info(type).bytes == 1 && !b.k_major}; }
};

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
    if (s.expected) f.element(*s.expected);
    if (s.out) f.result(s.out);
  }
};

/// out = expression reduced along an axis: by each thread, over lanes, and over warps by the steps in `across`.
struct Reduce {
  Op op{};
  int axis = 0;
  ValueId out;
  Sweep sweep;
  bool partial = false;  ///< by each thread only: LaneReduce adds up the sums of lanes and warps
  Body across;           ///< empty, or CrossWarpReduce

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

/// Buffer = expression.
struct StoreShared {
  BufferId buffer;
  PipelineStateId state = {};  ///< selects the stage of the buffer; none: it has one stage
  Sweep sweep;
  enum class By : std::uint8_t {
    element,
    vector,             ///< one access for the elements that the sweep moves at a time
    matrix,             ///< the same for 16 columns of wgmma accumulators, by stmatrix
    matrix_transposed,  ///< the same for 16 rows of transposed accumulators
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
  bool by_matrix = false;   ///< 8-bit elements, 16 bytes of a row at a time, by ldmatrix
  bool to_reals = false;    ///< 8-bit integers become reals
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
    TileAccess access;    ///< its last axes are merged into the buffer's columns, all others into its rows
    int column_axes = 1;  ///< the number of these last axes
    Copy copy{};          ///< async: cp.async, followed by CpAsyncCommit and CpAsyncWait
    int unrolled = 0;     ///< unrolled copies; 0: all
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
using TileKinds = KindList<Compute, Load, Store, Atomic, Reduce, Argmax, LaneReduce, CrossWarpReduce, StoreWarpPartials,
                           ReduceWarpPartials, Scan, WriteScanTotals, AddScanPrefix, Sort, Merge, HistogramUpdate,
                           HistogramReduce, StoreScratch, LoadScratch, GatherScratch, StoreShared, LoadFragment,
                           ZeroFill, Fetch, CpAsyncCommit, CpAsyncWait, Mma, Barrier, Loop, Branch, HostReport>;

}  // namespace tessera::internal::codegen
