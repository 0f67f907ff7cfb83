// Kinds of steps of roles at work at the same time: sm_90's copy engine, matrix units of warp groups, and barriers in
// memory.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/plan/sweep.hpp"

namespace tessera::internal::codegen {

struct Step;
using Body = std::vector<Step>;

/// One thread of each `threads` of the role runs it: what an instruction does for all of them.
struct ElectOne {
  int threads = 128;
  Body body;
};

/// The role's team of this number runs it.
struct IfConsumerGroup {
  int consumer_group = 0;
  Body body;
};

/// Of blocks of threads that share the rounds of a tile the one with the first of them runs it; or the others do.
struct IfFirstSplit {
  bool first = true;
  Body body;
  ValueId share = {};  ///< where the grid shares them: the number of the block's first round
};

/// For each block of threads that has later rounds of the tile at hand, in the order of rounds.
struct ForEachPeer {
  Body body;
  Operand k_iterations;  ///< of a tile
};

/// A role takes blocks of the grid one after another: those numbered first, first + step, ... of what falls to its
/// block of threads, or to its cluster; of several teams each begins at its own number. Where the grid shares rounds,
/// those of which a part falls to its block of threads.
struct TileLoop {
  int first = 0, step = 1;
  Body body;
  std::optional<Operand> k_iterations = {};  ///< of a tile, where the grid shares them
};

/// Ahead of the wait for launches before, if the launch knows that none of those writes it: what the first `most`
/// rounds of the body's loop read, in the role's first block of the grid. One thread of the role does it.
struct PrefetchBeforeWait {
  int most = 0;
  Body body;
};

/// In each round but as many as a PrefetchBeforeWait has done it for, by that thread.
struct IfNotPrefetched {
  Body body;
};

/// Registers that a thread of the role may have from here on, of those that the block's threads have together.
struct SetMaxNReg {
  int registers = 0;
  bool more = false;  ///< than it was launched with
};

/// The pipeline's barriers, before anybody uses them.
struct InitPipeline {
  PipelineId pipeline;
};

/// Zeros in the rows of the pipeline's stages that no box fills, since their tensor has fewer: of as many stages as a
/// block of the grid has rounds, if it is the only one; by all teams.
struct ZeroFillRows {
  PipelineId pipeline;
  Operand k_iterations;
};

/// Zeros in the rows of the stage at the cursor from `filled` on: the tile is of a view that ends there.
struct ZeroFillPastEnd {
  PipelineStateId state;
  BufferId buffer;
  Operand filled;
};

/// A tensor's map is fetched ahead of its first use.
struct PrefetchMap {
  TensorMapId map;
};

/// Until the stage at the cursor has been released by all who read it.
struct WaitEmpty {
  PipelineStateId state;
};

/// The stage at the cursor is full once the pipeline's bytes have arrived, and all who write to it have come.
struct ArriveExpectTx {
  PipelineStateId state;
};

/// A coordinate in elements of a tensor: index * scale + offset.
struct TileCoordinate {
  Operand index;
  int scale = 1, offset = 0;
  bool far = false;  ///< it may need more than 32 bits: then the tile is outside of the tensor
};

/// A box of a tensor into the stage at the cursor, by the copy engine; beyond the tensor are zeros.
struct TmaLoad {
  TensorMapId map;
  BufferId buffer;
  PipelineStateId state;
  std::int64_t offset = 0;         ///< bytes from the stage's first
  std::vector<TileCoordinate> at;  ///< fastest axis first
};

/// What the thread wrote to the stage at the cursor is there.
struct Arrive {
  PipelineStateId state;
};

/// Until the stage at the cursor is full.
struct WaitFull {
  PipelineStateId state;
};

/// The stage `behind` the cursor is read: it may be filled again.
struct ArriveEmpty {
  PipelineStateId state;
  int behind = 0;
  LoopId not_first;  ///< not in the first round of this loop; none: always
};

/// The cursor goes on by so many stages.
struct AdvanceStage {
  PipelineStateId state;
  Operand by;
  bool of_others = false;  ///< stages that another team uses
};

/// The value's registers, with nothing in them: what sets them stands behind it.
struct DeclareAccumulator {
  ValueId value;
};

/// No instruction moves accesses to the value's registers across it.
struct RegisterFence {
  ValueId value;
};

/// wgmma.fence: registers and shared memory written before are seen by the matrix units.
struct WgmmaFence {};

/// out += a b by wgmma, both from shared memory, or a from registers; open until a WgmmaWait.
struct Wgmma {
  ValueId out;
  BufferId a, b;
  ValueId left = {};            ///< a in registers, as pairs, in place of the buffer
  PipelineStateId a_state, b_state;  ///< whose stages they have; none: their buffer is no pipeline's
  ElementType type{};
  int m = 0, n = 0, k = 0;                  ///< of the role's tile
  int first_k = 0;                          ///< of what the buffers have along k
  bool a_k_major = true, b_k_major = true;  ///< their buffers' rows run along k, not along m or n
  LoopId overwrites_first = {};                        ///< in the first round of this loop out = a b
  bool overwrites = false;                  ///< out = a b
};

/// Ends a group of wgmma.
struct WgmmaCommit {};

/// Until at most `pending` groups are open.
struct WgmmaWait {
  int pending = 0;
};

/// What the thread wrote to shared memory is seen by the copy engine and the matrix units.
struct ProxyFence {};

/// A buffer into a box of a tensor; what lies beyond the tensor is dropped.
struct TmaStore {
  TensorMapId map;
  BufferId buffer;
  std::vector<TileCoordinate> at;
};

/// Ends a group of stores.
struct TmaStoreCommit {};

/// Until at most `pending` groups of stores still read shared memory.
struct TmaStoreWait {
  int pending = 0;
};

/// Of `threads` threads that come to barrier `id`, of the hardware's 1 to 15; teams have one each, from `id` on.
struct NamedBarrier {
  int id = 1, threads = 0;
  bool arrives = false;    ///< and does not wait
  bool next_consumer_group = false;  ///< the one of the team whose turn is next
};

/// The rounds of a loop that fall to this block of threads: `count` of them, from number `first` on. Where the grid
/// shares them: of the tile at hand.
struct SplitKRange {
  ValueId first, count;
  Operand k_iterations;
};

/// Sums of this block of threads, for others to read.
struct StorePartial {
  ScratchId scratch;
  ValueId sums;
};

/// sums += those that the cluster's other blocks have put, in their order; or the block at hand of a ForEachPeer.
struct ReducePartials {
  ScratchId scratch;
  ValueId sums;
};

/// Of all threads of the cluster's blocks.
struct ClusterBarrier {};

/// One thread of a block says that its sums are put, which all threads know of.
struct SignalPartial {};

/// One thread waits until the block at hand has said so, and takes that back: there is one who waits.
struct WaitPartial {};

/// Of all threads of each warp.
struct WarpBarrier {};

/// A role's warp groups go one after another, in a circle: each waits for its turn, and gives it to the next. A barrier
/// of the hardware for each group, from `id` on, to which it comes and the one before.
struct OrderedBarrier {
  enum class Kind : std::uint8_t {
    begin,  ///< the last group gives the first one the first turn
    wait,
    pass,
  };
  Kind kind{};
  int id = 1;
};

/// Until what the launches before this one have written is seen, and they read no more (PTX ISA, "griddepcontrol").
struct GridDependencyWait {};

/// The next launch may begin, as far as there is room for it; it waits for this one by itself.
struct GridDependencyTrigger {};

}  // namespace tessera::internal::codegen
