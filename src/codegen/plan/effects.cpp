#include "codegen/plan/effects.hpp"

#include <algorithm>
#include <iterator>

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

class EffectFields : public FieldVisitor {
 public:
  using Space = Effect::Space;
  EffectFields(const Plan& plan, const Role& role, const Step& step)
      : plan_(plan), role_(role), sweep_(sweep_of(step)), atomic_(step.action.as<Atomic>()) {
    visit_kind([&](const auto& kind) { each_field(kind, *this); }, step.action);
  }

  void sweep(const Sweep& sweep) {
    for (const TileAccess& read : sweep.reads) tensor(read, false);
  }
  void access(const TileAccess& access, Use use) { tensor(access, use == Use::write, atomic_); }
  void copy(const TileAccess& access) { effects_.push_back({Space::tensor, access.parameter}); }
  void scratch(ScratchId id, Use use) { effects_.push_back({Space::scratch, id.index, use == Use::write}); }
  void peer_scratch(ScratchId id) {
    if (!plan_.scratch[id].in_workspace) scratch(id, Use::read);
  }
  void buffer(BufferId id, Use use) { effects_.push_back({Space::buffer, id.index, use == Use::write}); }
  void clipped_rows(PipelineId id) {
    for (const ClippedRows& rows : plan_.pipelines[id].clipped) buffer(rows.buffer, Use::write);
  }
  void exchange(const Body& body) {
    for (const Step& inner : body) std::ranges::move(effects(plan_, role_, inner), std::back_inserter(effects_));
  }
  std::vector<Effect> take() { return std::move(effects_); }

 private:
  void tensor(const TileAccess& access, bool write, const Atomic* atomic = nullptr) {
    Effect effect{Space::tensor, access.parameter, write};
    if (atomic) {
      const bool commutes = atomic->op != Op::atomic_exchange && atomic->op != Op::atomic_compare_exchange;
      if (commutes && !atomic->out) effect.commutes = atomic->op;
      effect.releases = releases(atomic->order);
      effect.acquires = acquires(atomic->order);
    }
    // Where threads hold copies of an element, the first of them writes it (layouts that are stored by quads have no
    // copies), and all of them read it: then the threads of a read are not known.
    const bool by_one = effect.write || (!sweep_->layout.lane_copies() && !sweep_->layout.warp_copies(role_.warps));
    if (!access.rows && !access.by_elements() && by_one) {
      effect.place = Places(plan_).of(sweep_->layout, access);
      for (const TileAccess::Axis& axis : access.axes) effect.shifted |= !axis.slices.empty();
    }
    effects_.push_back(std::move(effect));
  }

  const Plan& plan_;
  const Role& role_;
  const Sweep* const sweep_;
  const Atomic* const atomic_;
  std::vector<Effect> effects_;
};

struct OperandFields : FieldVisitor {
  void value(ValueId id) { ids.push_back(id); }
  void operand(const Operand& operand) {
    if (operand.kind == Operand::Kind::value) ids.push_back(operand.value);
  }
  void element(const Operand& operand) { this->operand(operand); }
  void access(const TileAccess& access, Use) { copy(access); }
  void copy(const TileAccess& access) {
    if (access.rows) ids.push_back(access.rows);
    if (access.member) operand(*access.member);
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
    for (const TileAccess& read : sweep.reads) copy(read);
  }

  std::vector<ValueId> ids = {};
};

struct ResultFields : FieldVisitor {
  void result(ValueId id) { ids.push_back(id); }

  std::vector<ValueId> ids = {};
};

template <class Fields>
std::vector<ValueId> ids_of(const Step& step) {
  Fields fields;
  visit_kind([&](const auto& kind) { each_field(kind, fields); }, step.action);
  return std::move(fields.ids);
}

}  // namespace

std::vector<Effect> effects(const Plan& plan, const Role& role, const Step& step) {
  return EffectFields(plan, role, step).take();
}

std::vector<ValueId> operands(const Step& step) { return ids_of<OperandFields>(step); }

std::vector<ValueId> results(const Step& step) { return ids_of<ResultFields>(step); }

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
