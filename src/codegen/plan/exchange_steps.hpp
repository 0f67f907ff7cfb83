// Kinds of steps by which threads exchange elements of tiles: reductions, scans and sorts over warps, scratch memory.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "codegen/plan/step_fields.hpp"

namespace tessera::internal::codegen {

/// Registers of a thread that go through scratch memory at a time when warps combine their partial results.
inline constexpr int most_partials = 8;

/// Axis of a tile -> stride in scratch memory, in elements.
using Strides = std::array<std::int64_t, max_rank>;

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
/// expression that is one of `bins`. For inverse_permutation a count is the last position of the number along the axis.
struct HistogramUpdate {
  Op op = Op::histogram;  ///< or inverse_permutation
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

/// out = element `expression` along the axis of a tile in scratch memory, 0 outside of its extent.
struct GatherScratch {
  ScratchId scratch;
  Strides strides{};
  int axis = 0;
  int extent = 1;  ///< of the tile, along the axis
  ValueId out;
  Sweep sweep;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.sweep(s.sweep);
    f.scratch(s.scratch, Use::read);
    f.result(s.out);
  }
};

}  // namespace tessera::internal::codegen
