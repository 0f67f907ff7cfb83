#include "codegen/plan/effects.hpp"

#include <algorithm>

namespace tessera::internal::codegen {
namespace {

class Places {
 public:
  explicit Places(const Plan& plan) : plan_(plan) {}

  // Layout and coordinates as numbers; two operands are equal if they are the same elements.
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
  void operator()(const Replicas& s) { body(s.across); }
  void operator()(const Partials& s) { body(s.round); }
  void operator()(const PutPartials& s) { scratch(s.scratch, true); }
  void operator()(const TakePartials& s) { scratch(s.scratch, false); }
  void operator()(const Put& s) {
    reads(s.sweep);
    scratch(s.scratch, true);
  }
  void operator()(const Scan& s) { reads(s.sweep); }
  void operator()(const PutTotals& s) { scratch(s.scratch, true); }
  void operator()(const AddTotals& s) { scratch(s.scratch, false); }
  void operator()(const Sort& s) { reads(s.sweep); }
  void operator()(const Merge& s) {
    reads(s.sweep);
    scratch(s.from, false);
    if (s.to) scratch(s.to, true);
    if (s.to_at) scratch(s.to_at, true);
  }
  void operator()(const CountNumbers& s) {
    reads(s.sweep);
    scratch(s.scratch, true);
  }
  void operator()(const AddCounts& s) { scratch(s.scratch, false); }
  void operator()(const Get& s) { scratch(s.scratch, false); }
  void operator()(const Stage& s) {
    reads(s.sweep);
    buffer(s.buffer, true);
  }
  void operator()(const ReadStage& s) { buffer(s.buffer, false); }
  void operator()(const Clear& s) { buffer(s.buffer, true); }
  void operator()(const Fetch& s) {
    for (const Fetch::Tile& tile : s.tiles) buffer(tile.buffer, true);
    for (const Fetch::Tile& tile : s.tiles) effects_.push_back({Space::tensor, tile.access.parameter});
  }
  void operator()(const Multiply& s) {
    for (const ProductOperand* operand : {&s.product.a, &s.product.b})
      if (operand->buffer) buffer(operand->buffer, false);
  }
  void operator()(const ClearRest& s) {
    for (const ClippedRows& rows : plan_.rings[s.ring].clipped) buffer(rows.buffer, true);
  }
  template <OneOf<ClearBeyond, TmaLoad> T>
  void operator()(const T& s) {
    buffer(s.buffer, true);
  }
  void operator()(const Wgmma& s) {
    if (!s.left) buffer(s.a, false);
    buffer(s.b, false);
  }
  void operator()(const TmaStore& s) { buffer(s.buffer, false); }
  void operator()(const Tell& s) {
    for (const Tell::Tile& tile : s.values) scratch(tile.scratch, false);
  }
  void operator()(const PutPart& s) { scratch(s.scratch, true); }
  void operator()(const AddParts& s) {
    if (!plan_.scratch[s.scratch].in_workspace) scratch(s.scratch, false);  // else another block's
  }
  // None of their own.
  template <
      OneOf<Commit, Wait, Barrier, Loop, Branch, Elected, OfTeam, OfPart, EachPart, TileLoop, BringAhead, UnlessBrought,
            SetRegisters, PrefetchMap, InitRing, Acquire, Expect, Arrive, WaitFull, Release, Advance, Reserve,
            RegisterFence, WgmmaFence, CommitWgmma, WaitWgmma, ProxyFence, CommitStores, WaitStores, NamedBarrier,
            WaitForPrevious, LetNextBegin, ShareRounds, ClusterBarrier, TellPart, AwaitPart, WarpBarrier, Turn>
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
    // Of threads that hold copies all read, and one writes.
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
  template <OneOf<Compute, Reduce, Argmax, Scan, Sort, CountNumbers, AddCounts, Put, Stage> T>
  void operator()(const T& s) {
    sweep(s.sweep);
  }
  void operator()(const Merge& s) {
    sweep(s.sweep);
    if (s.at) ids.push_back(s.at);
  }
  void operator()(const Get& s) {
    sweep(s.sweep);
    for (const Picked& axis : s.picked) operand(axis.first);
  }
  void operator()(const Fetch& s) {
    for (const Fetch::Tile& tile : s.tiles) access(tile.access);
  }
  void operator()(const Multiply& s) {
    for (const ProductOperand* operand : {&s.product.a, &s.product.b})
      if (operand->value) ids.push_back(operand->value);
  }
  void operator()(const Loop& s) { operand(s.count); }
  void operator()(const Branch& s) { operand(s.condition); }
  void operator()(const Tell& s) {
    if (s.unless) operand(*s.unless);
    for (const Operand& index : s.block) operand(index);
  }
  template <OneOf<TmaLoad, TmaStore> T>
  void operator()(const T& s) {
    for (const TileCoordinate& at : s.at) operand(at.index);
  }
  template <OneOf<ShareRounds, ClearRest, EachPart> T>
  void operator()(const T& s) {
    operand(s.rounds);
  }
  void operator()(const ClearBeyond& s) { operand(s.filled); }
  void operator()(const TileLoop& s) {
    if (s.rounds) operand(*s.rounds);
  }
  void operator()(const OfPart& s) {
    if (s.share) ids.push_back(s.share);
  }
  void operator()(const Advance& s) { operand(s.by); }
  void operator()(const RegisterFence& s) { ids.push_back(s.value); }
  void operator()(const Wgmma& s) {
    if (s.left) ids.push_back(s.left);
  }
  template <OneOf<PutPart, AddParts> T>
  void operator()(const T& s) {
    ids.push_back(s.sums);
  }
  template <OneOf<PutTotals, AddTotals> T>
  void operator()(const T& s) {
    ids.push_back(s.out);
  }
  template <OneOf<Replicas, Partials, PutPartials, TakePartials, ReadStage, Clear, Commit, Wait, Barrier, Elected,
                  OfTeam, BringAhead, UnlessBrought, SetRegisters, PrefetchMap, InitRing, Acquire, Expect, Arrive,
                  WaitFull, Release, Reserve, WgmmaFence, CommitWgmma, WaitWgmma, ProxyFence, CommitStores, WaitStores,
                  NamedBarrier, WaitForPrevious, LetNextBegin, ClusterBarrier, TellPart, AwaitPart, WarpBarrier, Turn>
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
  template <
      OneOf<Compute, Load, Reduce, Replicas, Partials, Scan, AddTotals, AddCounts, Get, ReadStage, Multiply, Wgmma> T>
  Ids operator()(const T& s) const {
    return {s.out};
  }
  Ids operator()(const Argmax& s) const { return {s.out, s.best}; }
  Ids operator()(const Sort& s) const { return s.at ? Ids{s.out, s.at} : Ids{s.out}; }
  Ids operator()(const TakePartials& s) const { return s.best ? Ids{s.out, s.best} : Ids{s.out}; }
  Ids operator()(const Atomic& s) const { return s.out ? Ids{s.out} : Ids{}; }
  Ids operator()(const Reserve& s) const { return {s.value}; }
  Ids operator()(const ShareRounds& s) const { return {s.first, s.count}; }
  Ids operator()(const AddParts& s) const { return {s.sums}; }
  template <OneOf<Store, PutPartials, PutTotals, Merge, CountNumbers, Put, Stage, Clear, Fetch, Commit, Wait, Barrier,
                  Loop, Branch, Tell, Elected, OfTeam, OfPart, EachPart, TileLoop, BringAhead, UnlessBrought,
                  SetRegisters, PrefetchMap, InitRing, ClearRest, ClearBeyond, Acquire, Expect, TmaLoad, Arrive,
                  WaitFull, Release, Advance, RegisterFence, WgmmaFence, CommitWgmma, WaitWgmma, ProxyFence, TmaStore,
                  CommitStores, WaitStores, NamedBarrier, WaitForPrevious, LetNextBegin, PutPart, ClusterBarrier,
                  TellPart, AwaitPart, WarpBarrier, Turn>
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
