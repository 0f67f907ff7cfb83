#include "codegen/effects.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::lowering {
namespace {

std::string text_of(const Plan& plan, const Operand& operand) {
  if (operand.kind == Operand::Kind::value) return plan.values[static_cast<std::size_t>(operand.index)].name;
  return fmt::format("{}", operand.literal);
}

std::string place_of(const Plan& plan, const Step& step, const TileAccess& access) {
  // Of threads that hold copies all read, and one writes.
  if (access.rows >= 0 || step.layout.lane_copies() || step.layout.warp_copies(plan.warps)) return "";
  std::string text = to_string(step.layout);
  for (const TileAccess::Axis& axis : access.axes) {
    text += fmt::format(";{}*{}@{}", text_of(plan, axis.index), axis.extent, axis.tensor_axis);
    for (const TileAccess::Slice& slice : axis.slices)
      text += fmt::format("[{}:{}]", text_of(plan, slice.start), text_of(plan, slice.extent));
  }
  return text;
}

}  // namespace

std::vector<Effect> effects(const Plan& plan, const Step& step) {
  using Space = Effect::Space;
  std::vector<Effect> result;
  const auto tensor = [&](const TileAccess& access, bool write, bool atomic = false) {
    result.push_back({Space::tensor, access.parameter, write, atomic, place_of(plan, step, access)});
  };
  for (const TileAccess& read : step.reads) tensor(read, false);
  switch (step.kind) {
    case Step::Kind::load:
      tensor(*step.access, false);
      break;
    case Step::Kind::store:
    case Step::Kind::scatter:
      tensor(*step.access, true);
      break;
    case Step::Kind::atomic:
      tensor(*step.access, true, true);
      break;
    case Step::Kind::reduce:
    case Step::Kind::argmax:
    case Step::Kind::replicas:
      if (step.scratch >= 0) result.push_back({Space::scratch, step.scratch, true});
      break;
    case Step::Kind::put:
    case Step::Kind::scan:
      result.push_back({Space::scratch, step.scratch, true});
      break;
    case Step::Kind::get:
      result.push_back({Space::scratch, step.scratch, false});
      break;
    case Step::Kind::clear:
    case Step::Kind::stage:
      result.push_back({Space::buffer, step.buffer, true});
      break;
    case Step::Kind::fetch:
      for (int buffer : step.buffers) result.push_back({Space::buffer, buffer, true});
      for (const TileAccess& tile : step.tiles) tensor(tile, false);
      break;
    case Step::Kind::product:
      for (const ProductOperand* operand : {&step.product->a, &step.product->b})
        if (operand->buffer >= 0) result.push_back({Space::buffer, operand->buffer, false});
      break;
    default:
      break;
  }
  return result;
}

bool has_barrier(const Step& step) {
  return step.scratch >= 0 &&
         (step.kind == Step::Kind::reduce || step.kind == Step::Kind::argmax || step.kind == Step::Kind::replicas);
}

std::vector<ValueId> named_values(const Step& step, bool with_results) {
  std::vector<ValueId> ids;
  const auto operand = [&](const Operand& o) {
    if (o.kind == Operand::Kind::value) ids.push_back(o.index);
  };
  const auto access = [&](const TileAccess& a) {
    if (a.rows >= 0) ids.push_back(a.rows);
    for (const TileAccess::Axis& axis : a.axes) {
      operand(axis.index);
      for (const TileAccess::Slice& slice : axis.slices) operand(slice.start), operand(slice.extent);
    }
  };
  for (const Term& term : step.expression.terms)
    for (const Operand& in : term.in) operand(in);
  for (const TileAccess& read : step.reads) access(read);
  for (const TileAccess& tile : step.tiles) access(tile);
  if (step.access) access(*step.access);
  if (step.kind == Step::Kind::loop || step.kind == Step::Kind::branch) operand(step.count);
  if (step.product) {
    if (step.product->a.value >= 0) ids.push_back(step.product->a.value);
    if (step.product->b.value >= 0) ids.push_back(step.product->b.value);
  }
  if (with_results && step.out >= 0) ids.push_back(step.out);
  if (with_results && step.best >= 0) ids.push_back(step.best);
  return ids;
}

void Intervals::touch(std::size_t what, int position, const std::vector<Interval*>& loops) {
  touches_[what].push_back({position, loops});
}

Interval Intervals::of(std::size_t what) const {
  const auto& touches = touches_[what];
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

}  // namespace tessera::lowering
