#include "codegen/plan/effects.hpp"

#include <algorithm>

namespace tessera::internal::codegen {
namespace {

class Places {
 public:
  explicit Places(const Plan& plan) : plan_(plan) {}

  // Layout and coordinates as numbers. Two operands are equal if they have the same storage or literal.
  std::vector<std::int64_t> of(const Layout& layout, const TileAccess& access) {
    for (int axis = 0; axis < layout.rank(); ++axis) {
      add(static_cast<std::int64_t>(layout.axis(axis).size()));
      for (const Factor& factor : layout.axis(axis)) add(static_cast<int>(factor.place), factor.size, factor.unit);
    }
    for (const TileAccess::Axis& axis : access.axes) {
      operand(axis.index);
      add(axis.extent, axis.tensor_axis, static_cast<std::int64_t>(axis.slices.size()));
      for (const TileAccess::Slice& slice : axis.slices) {
        operand(slice.start);
        operand(slice.extent);
        add(slice.step);
      }
      const Viewed& viewed = axis.viewed;
      add(viewed.factor, viewed.within, std::ssize(viewed.outer), std::ssize(viewed.windows));
      for (const int outer : viewed.outer) add(outer);
      for (const auto& [size, step] : viewed.windows) add(size, step);
    }
    return std::move(numbers_);
  }

 private:
  template <class... Numbers>
  void add(Numbers... numbers) {
    (numbers_.push_back(numbers), ...);
  }
  void operand(const Operand& operand) {
    if (operand.kind == Operand::Kind::value)
      add(1, plan_.values[operand.value].storage.index);
    else
      add(0, operand.literal);
  }

  const Plan& plan_;
  std::vector<std::int64_t> numbers_;
};

class Collector {
 public:
  using Space = Effect::Space;
  Collector(const Plan& plan, const Role& role) : plan_(plan), role_(role) {}

  void operator()(const Compute& s) { reads(s.sweep); }
  void operator()(const Load& s) {
    reads(s.sweep);
    tensor(s.sweep, s.access, false);
  }
  void operator()(const Store& s) {
    reads(s.sweep);
    tensor(s.sweep, s.access, true);
  }
  void operator()(const Atomic& s) {
    reads(s.sweep);
    tensor(s.sweep, s.access, true, &s);
  }
  void operator()(const Reduce& s) {
    reads(s.sweep);
    body(s.across);
  }
  void operator()(const Argmax& s) {
    reads(s.sweep);
    body(s.across);
  }
  void operator()(const LaneReduce& s) { body(s.across); }
  void operator()(const CrossWarpReduce& s) { body(s.per_chunk); }
  void operator()(const StoreWarpPartials& s) { scratch(s.scratch, true); }
  void operator()(const ReduceWarpPartials& s) { scratch(s.scratch, false); }
  void operator()(const StoreScratch& s) {
    reads(s.sweep);
    scratch(s.scratch, true);
  }
  void operator()(const Scan& s) { reads(s.sweep); }
  void operator()(const WriteScanTotals& s) { scratch(s.scratch, true); }
  void operator()(const AddScanPrefix& s) { scratch(s.scratch, false); }
  void operator()(const Sort& s) { reads(s.sweep); }
  void operator()(const Merge& s) {
    reads(s.sweep);
    scratch(s.from, false);
    if (s.to) scratch(s.to, true);
    if (s.to_at) scratch(s.to_at, true);
  }
  void operator()(const HistogramUpdate& s) {
    reads(s.sweep);
    scratch(s.scratch, true);
  }
  void operator()(const HistogramReduce& s) { scratch(s.scratch, false); }
  void operator()(const LoadScratch& s) { scratch(s.scratch, false); }
  void operator()(const StoreShared& s) {
    reads(s.sweep);
    buffer(s.buffer, true);
  }
  void operator()(const LoadFragment& s) { buffer(s.buffer, false); }
  void operator()(const ZeroFill& s) { buffer(s.buffer, true); }
  void operator()(const Fetch& s) {
    for (const Fetch::Tile& tile : s.tiles) buffer(tile.buffer, true);
    for (const Fetch::Tile& tile : s.tiles) effects_.push_back({Space::tensor, tile.access.parameter});
  }
  void operator()(const Mma& s) {
    for (const MatmulOperand* operand : {&s.matmul.a, &s.matmul.b})
      if (operand->buffer) buffer(operand->buffer, false);
  }
  void operator()(const ZeroFillRows& s) {
    for (const ClippedRows& rows : plan_.pipelines[s.pipeline].clipped) buffer(rows.buffer, true);
  }
  template <OneOf<ZeroFillPastEnd, TmaLoad> T>
  void operator()(const T& s) {
    buffer(s.buffer, true);
  }
  void operator()(const Wgmma& s) {
    if (!s.left) buffer(s.a, false);
    buffer(s.b, false);
  }
  void operator()(const TmaStore& s) { buffer(s.buffer, false); }
  void operator()(const HostReport& s) {
    for (const HostReport::Tile& tile : s.values) scratch(tile.scratch, false);
  }
  void operator()(const StorePartial& s) { scratch(s.scratch, true); }
  void operator()(const ReducePartials& s) {
    if (!plan_.scratch[s.scratch].in_workspace) scratch(s.scratch, false);  // else another CTA's
  }
  // No effects of their own.
  template <
      OneOf<CpAsyncCommit, CpAsyncWait, Barrier, Loop, Branch, ElectOne, IfConsumerGroup, IfFirstSplit, ForEachPeer,
            TileLoop, PrefetchBeforeWait, IfNotPrefetched, SetMaxNReg, PrefetchMap, InitPipeline, WaitEmpty,
            ArriveExpectTx, Arrive, WaitFull, ArriveEmpty, AdvanceStage, DeclareAccumulator, RegisterFence, WgmmaFence,
            WgmmaCommit, WgmmaWait, ProxyFence, TmaStoreCommit, TmaStoreWait, NamedBarrier, GridDependencyWait,
            GridDependencyTrigger, SplitKRange, ClusterBarrier, SignalPartial, WaitPartial, WarpBarrier, OrderedBarrier>
          T>
  void operator()(const T&) {}
  std::vector<Effect> take() { return std::move(effects_); }

 private:
  void body(const Body& steps) {
    for (const Step& inner : steps) visit_kind(*this, inner.action);
  }
  void scratch(ScratchId id, bool write) { effects_.push_back({Space::scratch, id.index, write}); }
  void buffer(BufferId id, bool write) { effects_.push_back({Space::buffer, id.index, write}); }
  void reads(const Sweep& sweep) {
    for (const TileAccess& read : sweep.reads) tensor(sweep, read, false);
  }
  void tensor(const Sweep& sweep, const TileAccess& access, bool write, const Atomic* atomic = nullptr) {
    Effect effect{Space::tensor, access.parameter, write};
    if (atomic) {
      const bool commutes = atomic->op != Op::atomic_exchange && atomic->op != Op::atomic_compare_exchange;
      if (commutes && !atomic->out) effect.commutes = atomic->op;
      effect.releases = releases(atomic->order);
      effect.acquires = acquires(atomic->order);
    }
    // Where threads hold copies of an element, all of them read it and one writes it, so the place is not known.
    if (!access.rows && !access.by_elements() && !sweep.layout.lane_copies() &&
        !sweep.layout.warp_copies(role_.warps)) {
      effect.place = Places(plan_).of(sweep.layout, access);
      for (const TileAccess::Axis& axis : access.axes) effect.shifted |= !axis.slices.empty();
    }
    effects_.push_back(std::move(effect));
  }

  const Plan& plan_;
  const Role& role_;
  std::vector<Effect> effects_;
};

class OperandsOf {
 public:
  void operator()(const Load& s) {
    sweep(s.sweep);
    access(s.access);
  }
  void operator()(const Store& s) {
    sweep(s.sweep);
    access(s.access);
  }
  void operator()(const Atomic& s) {
    sweep(s.sweep);
    access(s.access);
    if (s.expected) operand(*s.expected);
  }
  template <OneOf<Compute, Reduce, Argmax, Scan, Sort, HistogramUpdate, HistogramReduce, StoreScratch, StoreShared> T>
  void operator()(const T& s) {
    sweep(s.sweep);
  }
  void operator()(const Merge& s) {
    sweep(s.sweep);
    if (s.at) ids.push_back(s.at);
  }
  void operator()(const LoadScratch& s) {
    sweep(s.sweep);
    for (const Picked& axis : s.picked) operand(axis.first);
  }
  void operator()(const Fetch& s) {
    for (const Fetch::Tile& tile : s.tiles) access(tile.access);
  }
  void operator()(const Mma& s) {
    for (const MatmulOperand* operand : {&s.matmul.a, &s.matmul.b})
      if (operand->value) ids.push_back(operand->value);
  }
  void operator()(const Loop& s) { operand(s.count); }
  void operator()(const Branch& s) { operand(s.condition); }
  void operator()(const HostReport& s) {
    if (s.unless) operand(*s.unless);
    for (const Operand& index : s.block) operand(index);
  }
  template <OneOf<TmaLoad, TmaStore> T>
  void operator()(const T& s) {
    for (const TileCoordinate& at : s.at) operand(at.index);
  }
  template <OneOf<SplitKRange, ZeroFillRows, ForEachPeer> T>
  void operator()(const T& s) {
    operand(s.k_iterations);
  }
  void operator()(const ZeroFillPastEnd& s) { operand(s.filled); }
  void operator()(const TileLoop& s) {
    if (s.k_iterations) operand(*s.k_iterations);
  }
  void operator()(const IfFirstSplit& s) {
    if (s.share) ids.push_back(s.share);
  }
  void operator()(const AdvanceStage& s) { operand(s.by); }
  void operator()(const RegisterFence& s) { ids.push_back(s.value); }
  void operator()(const Wgmma& s) {
    if (s.left) ids.push_back(s.left);
  }
  template <OneOf<StorePartial, ReducePartials> T>
  void operator()(const T& s) {
    ids.push_back(s.sums);
  }
  template <OneOf<WriteScanTotals, AddScanPrefix> T>
  void operator()(const T& s) {
    ids.push_back(s.out);
  }
  template <OneOf<LaneReduce, CrossWarpReduce, StoreWarpPartials, ReduceWarpPartials, LoadFragment, ZeroFill,
                  CpAsyncCommit, CpAsyncWait, Barrier, ElectOne, IfConsumerGroup, PrefetchBeforeWait, IfNotPrefetched,
                  SetMaxNReg, PrefetchMap, InitPipeline, WaitEmpty, ArriveExpectTx, Arrive, WaitFull, ArriveEmpty,
                  DeclareAccumulator, WgmmaFence, WgmmaCommit, WgmmaWait, ProxyFence, TmaStoreCommit, TmaStoreWait,
                  NamedBarrier, GridDependencyWait, GridDependencyTrigger, ClusterBarrier, SignalPartial, WaitPartial,
                  WarpBarrier, OrderedBarrier>
                T>
  void operator()(const T&) {}

  std::vector<ValueId> ids;

 private:
  void operand(const Operand& operand) {
    if (operand.kind == Operand::Kind::value) ids.push_back(operand.value);
  }
  void access(const TileAccess& access) {
    if (access.rows) ids.push_back(access.rows);
    for (const TileAccess::Axis& axis : access.axes) {
      operand(axis.index);
      if (axis.element) operand(*axis.element);
      for (const TileAccess::Slice& slice : axis.slices) {
        operand(slice.start);
        operand(slice.extent);
      }
    }
  }
  void sweep(const Sweep& sweep) {
    for (const Term& term : sweep.expression.terms)
      for (const Operand& in : term.in) operand(in);
    for (const TileAccess& read : sweep.reads) access(read);
  }
};

struct ResultsOf {
  using Ids = std::vector<ValueId>;
  template <OneOf<Compute, Load, Reduce, LaneReduce, CrossWarpReduce, Scan, AddScanPrefix, HistogramReduce, LoadScratch,
                  LoadFragment, Mma, Wgmma>
                T>
  Ids operator()(const T& s) const {
    return {s.out};
  }
  Ids operator()(const Argmax& s) const { return {s.out, s.best}; }
  Ids operator()(const Sort& s) const { return s.at ? Ids{s.out, s.at} : Ids{s.out}; }
  Ids operator()(const ReduceWarpPartials& s) const { return s.best ? Ids{s.out, s.best} : Ids{s.out}; }
  Ids operator()(const Atomic& s) const { return s.out ? Ids{s.out} : Ids{}; }
  Ids operator()(const DeclareAccumulator& s) const { return {s.value}; }
  Ids operator()(const SplitKRange& s) const { return {s.first, s.count}; }
  Ids operator()(const ReducePartials& s) const { return {s.sums}; }
  template <OneOf<Store, StoreWarpPartials, WriteScanTotals, Merge, HistogramUpdate, StoreScratch, StoreShared,
                  ZeroFill, Fetch, CpAsyncCommit, CpAsyncWait, Barrier, Loop, Branch, HostReport, ElectOne,
                  IfConsumerGroup, IfFirstSplit, ForEachPeer, TileLoop, PrefetchBeforeWait, IfNotPrefetched, SetMaxNReg,
                  PrefetchMap, InitPipeline, ZeroFillRows, ZeroFillPastEnd, WaitEmpty, ArriveExpectTx, TmaLoad, Arrive,
                  WaitFull, ArriveEmpty, AdvanceStage, RegisterFence, WgmmaFence, WgmmaCommit, WgmmaWait, ProxyFence,
                  TmaStore, TmaStoreCommit, TmaStoreWait, NamedBarrier, GridDependencyWait, GridDependencyTrigger,
                  StorePartial, ClusterBarrier, SignalPartial, WaitPartial, WarpBarrier, OrderedBarrier>
                T>
  Ids operator()(const T&) const {
    return {};
  }
};

}  // namespace

std::vector<Effect> effects(const Plan& plan, const Role& role, const Step& step) {
  Collector collector(plan, role);
  visit_kind(collector, step.action);
  return collector.take();
}

std::vector<ValueId> operands(const Step& step) {
  OperandsOf collect;
  visit_kind(collect, step.action);
  return std::move(collect.ids);
}

std::vector<ValueId> results(const Step& step) { return visit_kind(ResultsOf(), step.action); }

void Intervals::touch(int what, int position, const std::vector<const Interval*>& loops) {
  touches_[static_cast<std::size_t>(what)].push_back({position, loops});
}

Interval Intervals::of(int what) const {
  const auto& touches = touches_[static_cast<std::size_t>(what)];
  Interval result;
  if (touches.empty()) return result;
  std::size_t common = touches[0].loops.size();
  for (const Touch& touch : touches) {
    common = std::min(common, touch.loops.size());
    for (std::size_t i = 0; i < common; ++i)
      if (touch.loops[i] != touches[0].loops[i]) common = i;
  }
  for (const Touch& touch : touches) {
    const bool deeper = touch.loops.size() > common;
    result.first = std::min(result.first, deeper ? touch.loops[common]->first : touch.position);
    result.last = std::max(result.last, deeper ? touch.loops[common]->last : touch.position);
  }
  return result;
}

}  // namespace tessera::internal::codegen
