// Kinds of steps of concurrent roles: TMA, wgmma and mbarriers of sm_90.
#pragma once
#include <concepts>
#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/plan/step_fields.hpp"

namespace tessera::internal::codegen {

/// One of every `threads` threads of the role runs the body: an instruction that acts for all of them.
struct ElectOne {
  int threads = 128;
  Body body;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.body(s.body);
  }
};

/// Only this consumer group of the role runs the body.
struct IfConsumerGroup {
  int consumer_group = 0;
  Body body;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.body(s.body);
  }
};

/// Among the CTAs that share the k-iterations of a tile, the one that has the first k-iteration runs the body; or, if
/// not `first`, the others do.
struct IfFirstSplit {
  bool first = true;
  Body body;
  ValueId share = {};  ///< stream_k: the number of the CTA's first k-iteration

  template <class S>
  static void fields(S& s, auto&& f) {
    if (s.share) f.value(s.share);
    f.body(s.body);
  }
};

/// Not for a tile past the end of the grid's first axis: where CTAs of a cluster have neighboring tiles, the last one
/// may have none, and loads for the others only.
struct IfInGrid {
  Body body;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.body(s.body);
  }
};

/// For each CTA that has later k-iterations of the current tile, in the order of k-iterations.
struct ForEachPeer {
  Body body;
  Operand k_iterations;  ///< of a tile

  template <class S>
  static void fields(S& s, auto&& f) {
    f.operand(s.k_iterations);
    f.body(s.body);
  }
};

/// A role processes grid tiles one after another: the first, first + step, ... of those of its CTA or its cluster. Each
/// of several consumer groups begins at its own number. With stream_k, those of which the CTA has some k-iterations.
struct TileLoop {
  int first = 0, step = 1;
  Body body;
  std::optional<Operand> k_iterations = {};  ///< of a tile, with stream_k

  template <class S>
  static void fields(S& s, auto&& f) {
    if (s.k_iterations) f.operand(*s.k_iterations);
    f.body(s.body);
  }
};

/// Before GridDependencyWait, prefetches the data that the first `most` iterations of the body's loop read, for the
/// role's first grid tile. Only if the launch knows that no earlier launch writes the data. One thread of the role runs
/// it.
struct PrefetchBeforeWait {
  int most = 0;
  Body body;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.body(s.body);
  }
};

/// Prefetches into the L2 cache the positions of a tensor of rank 2 that the tile has along one axis, and the first of
/// the other axis. It is only a hint: L2 is coherent, so that later loads see what earlier launches write in the
/// meantime. So it may precede GridDependencyWait.
struct PrefetchL2 {
  TileAccess access;
  int selected = 0;  ///< the axis along which the prefetch is limited to the tile
  int most = 0;      ///< positions along the other axis, if there are as many
  bool unless_may_prefetch = false;  ///< only if the role waits before it loads them; see GridDependencyWait

  template <class S>
  static void fields(S& s, auto&& f) {
    f.copy(s.access);
  }
};

/// Runs in every k-iteration except those that PrefetchBeforeWait has loaded, by the same thread.
struct IfNotPrefetched {
  Body body;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.body(s.body);
  }
};

/// setmaxnreg: the registers that a thread of the role may use from here on, out of those of the CTA.
struct SetMaxNReg {
  int registers = 0;
  bool more = false;  ///< more than at launch
};

/// Initializes the pipeline's mbarriers, before their first use. One thread of the CTA runs it.
struct InitPipeline {
  PipelineId pipeline;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.pipeline(s.pipeline);
  }
};

/// fence.mbarrier_init: makes initialized mbarriers visible to TMA and to other CTAs. The same thread runs it.
struct MbarrierInitFence {};

/// Zeros in the rows of the pipeline's stages that no TMA box fills, because the tensor has fewer rows. If the CTA has
/// only one grid tile, only as many stages as that has k-iterations. All consumer groups run it.
struct ZeroFillRows {
  PipelineId pipeline;
  Operand k_iterations;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.clipped_rows(s.pipeline);
    f.operand(s.k_iterations);
  }
};

/// Zeros in the rows of the current stage from `filled` on: the view of the tile ends there.
struct ZeroFillPastEnd {
  PipelineStateId state;
  BufferId buffer;
  Operand filled;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.state(s.state);
    f.buffer(s.buffer, Use::write);
    f.operand(s.filled);
  }
};

/// Prefetches a TMA descriptor before its first use.
struct PrefetchMap {
  TensorMapId map;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.map(s.map);
  }
};

/// Waits until all readers have released the current stage.
struct WaitEmpty {
  PipelineStateId state;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.state(s.state);
  }
};

/// Arrives at the full barrier of the current stage, which completes once the pipeline's bytes and all other writers
/// have arrived (PTX mbarrier.arrive.expect_tx).
struct ArriveExpectTx {
  PipelineStateId state;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.state(s.state);
  }
};

/// A coordinate in elements of a tensor: index * scale + offset.
struct TileCoordinate {
  Operand index;
  int scale = 1, offset = 0;
  bool far = false;  ///< may exceed 32 bits: then the tile is outside of the tensor
};

/// TMA load of a box of a tensor into the current stage; elements outside of the tensor are 0.
struct TmaLoad {
  TensorMapId map;
  BufferId buffer;
  PipelineStateId state;
  std::int64_t offset = 0;         ///< bytes from the start of the stage
  std::vector<TileCoordinate> at;  ///< fastest axis first
  /// Multicast to all CTAs of the cluster: each loads an equal part of the tile along this coordinate. -1: no
  /// multicast.
  int multicast_axis = -1;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.map(s.map);
    f.buffer(s.buffer, Use::write);
    f.state(s.state);
    for (auto& at : s.at) f.operand(at.index);
  }
};

/// The thread has finished its writes to the current stage.
struct Arrive {
  PipelineStateId state;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.state(s.state);
  }
};

/// Waits until the current stage is full.
struct WaitFull {
  PipelineStateId state;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.state(s.state);
  }
};

/// Releases the stage that is `behind` stages before the current one: it has been read and may be filled again. Where
/// CTAs of a cluster fill stages together, it is released to all of them.
struct ArriveEmpty {
  PipelineStateId state;
  int behind = 0;
  LoopId not_first;  ///< not in the first iteration of this loop; none: always

  template <class S>
  static void fields(S& s, auto&& f) {
    f.state(s.state);
    if (s.not_first.index != -1) f.loop(s.not_first);
  }
};

/// Advances the pipeline state by this many stages.
struct AdvanceStage {
  PipelineStateId state;
  Operand by;
  bool of_others = false;  ///< skips stages that another consumer group uses

  template <class S>
  static void fields(S& s, auto&& f) {
    f.state(s.state);
    f.operand(s.by);
  }
};

/// Declares the value's registers: a later step sets them.
struct DeclareAccumulator {
  ValueId value;
  bool zeroed = false;  ///< zeros, which the first k-iteration promotes; otherwise uninitialized

  template <class S>
  static void fields(S& s, auto&& f) {
    f.result(s.value);
  }
};

/// The compiler moves no accesses to the value's registers across it.
struct RegisterFence {
  ValueId value;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.value(s.value);
  }
};

/// wgmma.fence: makes earlier writes to registers and shared memory visible to wgmma.
struct WgmmaFence {};

/// out += a b by wgmma, both from shared memory, or a from registers; in flight until a WgmmaWait.
struct Wgmma {
  ValueId out;  ///< the result, or some columns of it: those from its origin on
  BufferId a, b;
  ValueId left = {};                 ///< a in registers, instead of in a buffer; 16-bit elements in pairs
  PipelineStateId a_state, b_state;  ///< select the stages; none: the buffer is not in a pipeline
  ElementType type{};
  int m = 0, n = 0, k = 0;                  ///< of the role's tile; n: of the columns of `out`
  int first_k = 0;                          ///< where it begins along k in the buffers
  bool a_k_major = true, b_k_major = true;  ///< the buffers' rows run along k, not along m or n
  LoopId overwrites_first = {};             ///< out = a b in the first iteration of this loop
  bool overwrites = false;                  ///< out = a b
  ValueId accumulators = {};                ///< fp8: to which `out` is promoted

  template <class S>
  static void fields(S& s, auto&& f) {
    if (s.left)
      f.value(s.left);
    else
      f.buffer(s.a, Use::read);
    f.buffer(s.b, Use::read);
    f.result(s.out);
    if (s.accumulators) f.value(s.accumulators);
    if (s.overwrites_first.index != -1) f.loop(s.overwrites_first);
    for (const PipelineStateId at : {s.a_state, s.b_state})
      if (at.index != -1) f.state(at);
  }
};

/// Promotion: adds the sums of fp8 products, which are columns of the accumulators, to these in f32.
struct PromoteSums {
  ValueId accumulators, sums;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.value(s.sums);
    f.result(s.accumulators);
  }
};

/// wgmma.commit_group: ends a group of wgmma.
struct WgmmaCommit {};

/// wgmma.wait_group: waits until at most `pending` groups are in flight.
struct WgmmaWait {
  int pending = 0;
};

/// fence.proxy.async: makes the thread's writes to shared memory visible to TMA and wgmma.
struct ProxyFence {};

/// TMA store of a buffer into a box of a tensor; elements outside of the tensor are dropped.
struct TmaStore {
  TensorMapId map;
  BufferId buffer;
  int offset = 0;  ///< in bytes: that of the panel
  std::vector<TileCoordinate> at;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.map(s.map);
    f.buffer(s.buffer, Use::read);
    for (auto& at : s.at) f.operand(at.index);
  }
};

/// cp.async.bulk.commit_group: ends a group of TMA stores.
struct TmaStoreCommit {};

/// cp.async.bulk.wait_group.read: waits until at most `pending` groups of stores still read shared memory.
struct TmaStoreWait {
  int pending = 0;
};

/// Named barrier `id`, 1 to 15, of `threads` threads; consumer groups have one each, from `id` on.
struct NamedBarrier {
  int id = 1, threads = 0;
  bool arrives = false;              ///< without waiting
  bool next_consumer_group = false;  ///< the barrier of the consumer group whose turn is next
};

/// This CTA's range of the k-iterations of a loop: `count` of them, from number `first` on. With stream_k: of the
/// current tile.
struct SplitKRange {
  ValueId first, count;
  Operand k_iterations;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.operand(s.k_iterations);
    f.result(s.first);
    f.result(s.count);
  }
};

/// Stores this CTA's accumulators, for other CTAs to read.
struct StorePartial {
  ScratchId scratch;
  ValueId sums;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.value(s.sums);
    f.scratch(s.scratch, Use::write);
  }
};

/// sums += the partials of the cluster's other CTAs, in their order; or that of the current CTA of a ForEachPeer.
struct ReducePartials {
  ScratchId scratch;
  ValueId sums;

  template <class S>
  static void fields(S& s, auto&& f) {
    f.value(s.sums);
    f.peer_scratch(s.scratch);
    f.result(s.sums);
  }
};

/// Barrier of all threads of the cluster's CTAs. With multicast, roles end with one: no CTA exits while others may
/// still load into its shared memory, or arrive at its barriers.
struct ClusterBarrier {};

/// One thread signals that the CTA's partial is stored; a barrier before it covers all threads' stores.
struct SignalPartial {};

/// One thread waits until the current peer CTA has signaled, and resets the signal: only one CTA waits for it.
struct WaitPartial {};

/// Barrier of the threads of each warp.
struct WarpBarrier {};

/// Ordered barrier: a role's warp groups take turns, round-robin. Each waits for its turn and passes it to the next.
/// There is a named barrier for each group, from `id` on, at which that group and the previous one arrive.
struct OrderedBarrier {
  enum class Kind : std::uint8_t {
    begin,  ///< the last group passes the first turn to the first group
    wait,
    pass,
  };
  Kind kind{};
  int id = 1;
};

/// Waits until earlier launches no longer read, and their writes are visible (PTX ISA, "griddepcontrol").
struct GridDependencyWait {
  /// Only if an earlier launch may write a tensor that the role reads before its unconditional wait
  /// (Plan::prefetched_before_wait).
  bool unless_may_prefetch = false;
};

/// Lets the next launch begin as resources become free; that launch waits for this one itself.
struct GridDependencyTrigger {};

template <class T, class... Kinds>
concept OneOf = (std::same_as<T, Kinds> || ...);

/// A list of kinds of steps.
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
  template <class... More>
  KindList<Of..., More...> operator+(KindList<More...>) const {
    return {};
  }
};

/// Logs when Role::stamp_thread of the role, or of each consumer group, gets here, and what begins.
struct Stamp {
  std::uint32_t number = 0;  ///< codegen/target/stamps.hpp
  bool with_tile = false;    ///< with the number of the grid tile, where the stamp logs its place
};

/// Conditions of roles: which threads, groups or CTAs run a body.
using ConditionKinds = KindList<ElectOne, IfConsumerGroup, IfFirstSplit, IfInGrid, ForEachPeer, TileLoop,
                                PrefetchBeforeWait, IfNotPrefetched>;
/// Pipelines, asynchronous groups and proxies of concurrent roles; none has a body. verify_roles.cpp names each kind,
/// so that a new one does not compile before it is decided what it must find and what it leaves.
using RoleKinds =
    KindList<SetMaxNReg, PrefetchMap, PrefetchL2, InitPipeline, MbarrierInitFence, ZeroFillRows, ZeroFillPastEnd,
             WaitEmpty, ArriveExpectTx, TmaLoad, Arrive, WaitFull, ArriveEmpty, AdvanceStage, DeclareAccumulator,
             RegisterFence, WgmmaFence, Wgmma, PromoteSums, WgmmaCommit, WgmmaWait, ProxyFence, TmaStore,
             TmaStoreCommit, TmaStoreWait, NamedBarrier, GridDependencyWait, GridDependencyTrigger, SplitKRange,
             StorePartial, ReducePartials, ClusterBarrier, SignalPartial, WaitPartial, WarpBarrier, OrderedBarrier,
             Stamp>;

}  // namespace tessera::internal::codegen
