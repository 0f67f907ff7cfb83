#include "codegen/plan/effects.hpp"

#include <algorithm>

namespace tessera::codegen {
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
      }
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

  void step(const Step& step) {
    std::visit(
        Overloaded{
            [&](const Compute& s) { reads(s.sweep); },
            [&](const Load& s) {
      reads(s.sweep);
      tensor(s.sweep, s.access, false);
            },
            [&](const Store& s) {
      reads(s.sweep);
      tensor(s.sweep, s.access, true, s.kind == Store::Kind::atomic_add);
        },
        [&](const Reduce& s) {
      reads(s.sweep);
      body(s.across);
        },
        [&](const Argmax& s) {
      reads(s.sweep);
      body(s.across);
    },
        [&](const Replicas& s) { body(s.across); }, [&](const Partials& s) { body(s.round); },
        [&](const PutPartials& s) { scratch(s.scratch, true); },
        [&](const TakePartials& s) { scratch(s.scratch, false); },
        [&](const Put& s) {
      reads(s.sweep);
      scratch(s.scratch, true);
        }, [&](const Scan& s) { scratch(s.scratch, true); }, [&](const Get& s) { scratch(s.scratch, false); },
        [&](const Stage& s) {
      reads(s.sweep);
      buffer(s.buffer, true);
        }, [&](const Clear& s) { buffer(s.buffer, true); },
        [&](const Fetch& s) {
      for (const Fetch::Tile& tile : s.tiles) buffer(tile.buffer, true);
      for (const Fetch::Tile& tile : s.tiles) effects_.push_back({Space::tensor, tile.access.parameter});
        }, [](const Commit&) {}, [](const Wait&) {},
        [&](const Multiply& s) {
      for (const ProductOperand* operand : {&s.product.a, &s.product.b})
        if (operand->buffer) buffer(operand->buffer, false);
        }, [](const Barrier&) {}, [](const Loop&) {},
        []<OneOf<Branch, Elected, OfTeam, OfPart, TileLoop> T>(const T&) {},
        [&]<OfRoles T>(const T& s) {
      if constexpr (OneOf<T, TmaLoad>) buffer(s.buffer, true);
      if constexpr (OneOf<T, TmaStore>) buffer(s.buffer, false);
      if constexpr (OneOf<T, ClearRest>)
        for (const ClippedRows& rows : plan_.rings[s.ring].clipped) buffer(rows.buffer, true);
      if constexpr (OneOf<T, PutPart, AddParts>) scratch(s.scratch, OneOf<T, PutPart>);
      if constexpr (OneOf<T, Wgmma>) {
        buffer(s.a, false);
        buffer(s.b, false);
      }
        },
        }, step.action);
  }
  std::vector<Effect> take() { return std::move(effects_); }

 private:
  void body(const Body& steps) {
    for (const Step& inner : steps) step(inner);
  }
  void scratch(ScratchId id, bool write) { effects_.push_back({Space::scratch, id.index, write}); }
  void buffer(BufferId id, bool write) { effects_.push_back({Space::buffer, id.index, write}); }
  void reads(const Sweep& sweep) {
    for (const TileAccess& read : sweep.reads) tensor(sweep, read, false);
  }
  void tensor(const Sweep& sweep, const TileAccess& access, bool write, bool atomic = false) {
    Effect effect{Space::tensor, access.parameter, write, atomic};
    // Of threads that hold copies all read, and one writes.
    if (!access.rows && !sweep.layout.lane_copies() && !sweep.layout.warp_copies(role_.warps)) {
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
  void operator()(const Compute& s) { sweep(s.sweep); }
  void operator()(const Load& s) {
    sweep(s.sweep);
    access(s.access);
  }
  void operator()(const Store& s) {
    sweep(s.sweep);
    access(s.access);
  }
  void operator()(const Reduce& s) { sweep(s.sweep); }
  void operator()(const Argmax& s) { sweep(s.sweep); }
  void operator()(const Replicas&) {}
  void operator()(const Partials&) {}
  void operator()(const PutPartials&) {}
  void operator()(const TakePartials&) {}
  void operator()(const Put& s) { sweep(s.sweep); }
  void operator()(const Scan&) {}
  void operator()(const Get& s) { sweep(s.sweep); }
  void operator()(const Stage& s) { sweep(s.sweep); }
  void operator()(const Clear&) {}
  void operator()(const Fetch& s) {
    for (const Fetch::Tile& tile : s.tiles) access(tile.access);
  }
  void operator()(const Commit&) {}
  void operator()(const Wait&) {}
  void operator()(const Multiply& s) {
    for (const ProductOperand* operand : {&s.product.a, &s.product.b})
      if (operand->value) ids.push_back(operand->value);
  }
  void operator()(const Barrier&) {}
  void operator()(const Loop& s) { operand(s.count); }
  void operator()(const Branch& s) { operand(s.condition); }
  void operator()(const Elected&) {}
  void operator()(const OfTeam&) {}
  void operator()(const OfPart&) {}
  void operator()(const TileLoop&) {}
  template <OfRoles T>
  void operator()(const T& s) {
    if constexpr (OneOf<T, TmaLoad, TmaStore>)
      for (const TileCoordinate& at : s.at) operand(at.index);
    if constexpr (OneOf<T, Advance>) operand(s.by);
    if constexpr (OneOf<T, RegisterFence>) ids.push_back(s.value);
    if constexpr (OneOf<T, ShareRounds, ClearRest>) operand(s.rounds);
    if constexpr (OneOf<T, PutPart, AddParts>) ids.push_back(s.sums);
  }

  std::vector<ValueId> ids;

 private:
  void operand(const Operand& operand) {
    if (operand.kind == Operand::Kind::value) ids.push_back(operand.value);
  }
  void access(const TileAccess& access) {
    if (access.rows) ids.push_back(access.rows);
    for (const TileAccess::Axis& axis : access.axes) {
      operand(axis.index);
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

}  // namespace

std::vector<Effect> effects(const Plan& plan, const Role& role, const Step& step) {
  Collector collector(plan, role);
  collector.step(step);
  return collector.take();
}

std::vector<ValueId> operands(const Step& step) {
  OperandsOf collect;
  std::visit(collect, step.action);
  return std::move(collect.ids);
}

std::vector<ValueId> results(const Step& step) {
  return std::visit(
      Overloaded{
          [](const Reserve& s) -> std::vector<ValueId> {
    return {s.value}; },
          [](const ShareRounds& s) -> std::vector<ValueId> {
    return {s.first, s.count}; },
          [](const AddParts& s) -> std::vector<ValueId> {
    return {s.sums}; },
          []<OneOf<Compute, Load, Reduce, Replicas, Get, Multiply, Wgmma> T>(const T& s) -> std::vector<ValueId> {
    return {s.out};
          },
          [](const Argmax& s) -> std::vector<ValueId> {
    return {s.out, s.best};
          },
          [](const Partials& s) -> std::vector<ValueId> {
    return {s.out}; },
          [](const TakePartials& s) -> std::vector<ValueId> {
    if (s.best) return {s.out, s.best};
    return {s.out};
          },
          []<OneOf<Store, PutPartials, Put, Scan, Stage, Clear, Fetch, Commit, Wait, Barrier, Loop, Branch, Elected, OfTeam, OfPart, TileLoop> T>(const T&) -> std::vector<ValueId> {
    return {}; },
                        []<OfRoles T>(const T&) -> std::vector<ValueId> requires(!OneOf<T, Wgmma, Reserve, ShareRounds, AddParts>) { return {};
}
,
}  // namespace tessera::codegen
,
      step.action);
}

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

}  // namespace tessera::codegen
