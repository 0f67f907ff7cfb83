#include "codegen/lower/lower_steps.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/analysis/ranges.hpp"
#include "codegen/lower/lower_exchange.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal::lowering {

Operand literal(std::int64_t value) {
  Operand operand;
  operand.kind = Operand::Kind::literal;
  operand.literal = value;
  return operand;
}

Operand element_of(const Plan& plan, ValueId value, const Layout& layout, const Origin& origin) {
  const Layout& from = plan.values[value].layout;
  Operand operand;
  operand.kind = Operand::Kind::value;
  operand.value = value;
  operand.map = register_map(from, layout);
  for (int axis = 0; axis < from.rank(); ++axis)
    for (const Digit& digit : from.register_digits(axis))
      operand.first +=
          origin[static_cast<std::size_t>(axis + layout.rank() - from.rank())] / digit.scale % digit.size * digit.unit;
  return operand;
}

void leave_rounding_to_memory(Expression& expression) {
  Term& last = expression.terms.back();
  if (last.op == Op::cast && info(last.type).kind == ElementKind::real && info(last.type).bytes < 4 &&
      host_type(last.operand) == HostType::f32)
    last = {Op::broadcast, last.operand, last.operand, std::move(last.in)};
}

namespace {

Operand indexed(Operand::Kind kind, int index) {
  Operand operand;
  operand.kind = kind;
  operand.index = index;
  return operand;
}

// Vector accesses along the layout's run, or accesses element by element.
void choose_vector(Sweep& sweep, TileAccess* access) {
  std::vector<TileAccess*> all;
  for (TileAccess& read : sweep.reads) all.push_back(&read);
  if (access) all.push_back(access);
  const auto [axis, run] = neighbors(sweep.layout, 16);
  sweep.vector = 1;
  const auto aligned = [&, run_axis = axis](const TileAccess& one) {
    const int rank = static_cast<int>(one.axes.size());
    return one.fast >= 0 && one.fast + sweep.shape.rank() - rank == run_axis;
  };
  for (const TileAccess* one : all)
    if (aligned(*one)) sweep.vector = std::max(sweep.vector, std::min(run, one->vector));
  for (TileAccess* one : all) one->vector = aligned(*one) && one->vector >= sweep.vector ? sweep.vector : 1;
}

// NVRTC fully unrolls a loop over values in memory and moves its reads together, and then ptxas runs out of registers.
// Partial unrolling bounds that. Loops of few reads and many iterations are left to NVRTC.
int rounds_at_once(const Sweep& sweep, const TileAccess* loaded) {
  constexpr int many = 16, few = 4, of_gather = 3;  // an element that is moved alone has an address and a condition
  if (sweep.unrolled || (loaded && loaded->vector > 1)) return 0;
  int reads = loaded ? of_gather : 0;
  for (const TileAccess& read : sweep.reads) reads += read.rows ? of_gather : 1;
  const int trips = sweep.layout.registers() / sweep.vector;
  if (trips == 1 || reads == 0 || (reads <= 2 && trips > many)) return 0;
  const int most = std::min(many / (1 + reads), trips / 2);
  return most < trips ? std::clamp(most, 1, few) : 0;
}

}  // namespace

// --- steps

// Panels are filled by 8x8 matrices, or in pairs; stages of a pipeline by vectors as they are read, at least in pairs.
void Steps::group(StoreShared& stage) const {
  const Buffer& to = plan.buffers[stage.buffer];
  if (to.form != SharedForm::panels) return;
  if (stage.state) {
    Sweep& sweep = stage.sweep;
    stage.by = StoreShared::By::vector;
    sweep.vector = neighbors(sweep.layout, 16 / info(to.type).bytes).second;
    for (TileAccess& read : sweep.reads)
      if (read.fast + 1 == sweep.shape.rank()) read.run = sweep.vector;
    return;
  }
  // A thread has neighbors along the first axis of transposed accumulators; eight lanes have the rows of a matrix.
  const Layout layout = stage.sweep.layout.reshaped(stage.sweep.shape, matrix_shape(stage.sweep.shape)).value();
  const bool transposed = layout.run(1) == 1,
             on_lanes = layout.axis(transposed ? 1 : 0).back().place == Place::lane,
             as_matrices = info(to.type).bytes == 2 && on_lanes;
  if (transposed) {
    if (as_matrices) stage.by = StoreShared::By::matrix_transposed, stage.sweep.vector = 8;
    return;
  }
  stage.by = as_matrices ? StoreShared::By::matrix : StoreShared::By::vector;
  stage.sweep.vector = as_matrices ? 8 : neighbors(stage.sweep.layout, 2).second;
}

void Steps::settle(Store& store) const {
  const int bytes =
      store.access.vector * info(plan.tensors[static_cast<std::size_t>(store.access.parameter)].type).bytes;
  store.by_quads &= store.sweep.unrolled && store.access.vector == 2;
  int runs = 0;  // axes along which a thread has neighbors
  for (int axis = 0; axis < store.sweep.layout.rank(); ++axis) {
    const std::vector<Factor>& factors = store.sweep.layout.axis(axis);
    runs += !factors.empty() && factors.back().place == Place::reg;
  }
  store.whole =
      layouts.transposed && runs > 1 && store.kind == Store::Kind::store && store.sweep.unrolled && bytes == 16;
}

void Steps::settle(Sweep& sweep, ValueId out, ValueId other, TileAccess* access, const Operand* beside) {
  choose_vector(sweep, access);
  if (out && plan.storage(out).packed == 2) sweep.vector = 2;
  // A loop that is not unrolled cannot index registers, and one that indexes none need not be unrolled.
  bool indexes = false;
  const auto check = [&](ValueId id) {
    if (!id || plan.storage(id).storage_class != StorageClass::registers) return;
    indexes = true;
    if (!sweep.unrolled) values.needs_memory(id);
  };
  check(out);
  check(other);
  for (const Term& term : sweep.expression.terms)
    for (const Operand& operand : term.in)
      if (operand.kind == Operand::Kind::value) check(operand.value);
  if (beside && beside->kind == Operand::Kind::value) check(beside->value);
  for (const TileAccess& read : sweep.reads) check(read.rows);
  if (access) {
    check(access->rows);
    for (const TileAccess::Axis& axis : access->axes)
      if (axis.element && axis.element->kind == Operand::Kind::value) check(axis.element->value);
  }
  sweep.unrolled &= indexes;
  if (sweep.at_once == 0) sweep.at_once = rounds_at_once(sweep, out ? access : nullptr);
}

ValueId Steps::value(Id id) {
  if (const ValueId made = values.of(id)) return made;
  const Node& at = node(id);
  if (is_read(at.op)) return load(id);
  if (at.op != Op::constant && at.op != Op::iota && at.op != Op::broadcast)
    throw InternalError(fmt::format("a value of '{}' is needed before its step", name(at.op)));
  compute(id);
  return values.of(id);
}

void Steps::compute(Id id) {
  Sweep sweep = SweepBuilder(*this, node(id).shape, layouts.of[id], id).express(id).take();
  const ValueId out = values.add(id);
  push(id, Compute{.out = out, .sweep = std::move(sweep)});
}

void Steps::extent(Id id) {
  const Node& tensor = node(node(id).in[0]);
  const int parameter = place.first_parameter + static_cast<int>(tensor.parameter()), axis = node(id).axis();
  if (tensor.op == Op::tensor) {
    values.add_known(id, ExtentParameter{parameter, axis});
    return;
  }
  SweepBuilder sweep(*this, node(id).shape, layouts.of[id]);
  Operand number = sweep.operand(tensor.in[0]);
  sweep.add({.op = Op::extent,
             .type = ElementType::i32,
             .operand = ElementType::i32,
             .in = {std::move(number)},
             .argument = parameter,
             .axis = axis});
  const ValueId out = values.add(id);
  push(id, Compute{.out = out, .sweep = sweep.take()});
}

ValueId Steps::value_in(Id id, Layout layout) { return moved(*this, value(id), id, layout); }

ValueId Steps::number(Id about, Label label, ElementType type, Expression expression) {
  Sweep sweep{.shape = Shape(std::span<const int>()), .layout = Layout(0)};
  sweep.expression = std::move(expression);
  const ValueId out = values.add_number(std::move(label), about, type);
  push(about, Compute{.out = out, .sweep = std::move(sweep)});
  return out;
}

void Steps::copy(Id id, ValueId from, ValueId to) {
  const Value value = plan.values[from];
  const ElementType type = plan.storage(from).type;
  SweepBuilder sweep(*this, value.shape, value.layout);
  sweep.add({Op::broadcast, type, type, {element_of(plan, from, value.layout)}});
  push(id, Compute{.out = to, .sweep = sweep.take()});
}

// --- sweeps

SweepBuilder::SweepBuilder(Steps& steps, const Shape& shape, const Layout& layout, Id root)
    : steps_(steps), root_(root), whole_shape_(shape), whole_layout_(layout) {
  sweep_.shape = shape;
  sweep_.layout = layout;
  sweep_.unrolled = !steps.values.is_large(layout);
}

SweepBuilder& SweepBuilder::part(int axis, int start, int extent) {
  sweep_.part = true;
  sweep_.origin[static_cast<std::size_t>(axis)] = start;
  sweep_.layout = whole_layout_.part(axis, extent);
  std::array<int, max_rank> extents{};
  for (int i = 0; i < whole_shape_.rank(); ++i)
    extents[static_cast<std::size_t>(i)] = i == axis ? extent : whole_shape_[i];
  sweep_.shape = Shape(std::span(extents).first(static_cast<std::size_t>(whole_shape_.rank())));
  return *this;
}

SweepBuilder& SweepBuilder::reading_first() {
  reads_first_ = true;
  return *this;
}

SweepBuilder& SweepBuilder::inlining(const std::set<Id>& nodes) {
  inlined_ = &nodes;
  return *this;
}

void SweepBuilder::give(Id id, ValueId value) {
  Operand operand = element_of(steps_.plan, value, sweep_.layout);
  ElementType from = steps_.plan.storage(value).type;
  for (const ElementType to : find_source(steps_.analysis.graph, id).casts) {
    if (to == from) continue;
    add({Op::cast, to, std::exchange(from, to), {std::move(operand)}});
    operand = indexed(Operand::Kind::term, static_cast<int>(sweep_.expression.terms.size()) - 1);
  }
  parts_.emplace(id, std::move(operand));
}

void SweepBuilder::give_twice(Id id, ValueId value) {
  Operand operand;
  operand.kind = Operand::Kind::value;
  operand.value = value;
  operand.map = {{2, sweep_.layout.registers() / 2, 1}};
  operand.twice = true;
  parts_.emplace(id, std::move(operand));
}

SweepBuilder& SweepBuilder::express(Id id) {
  const Node& at = steps_.node(id);
  if (is_elementwise(at.op) && (id == root_ || is_fused(id))) {
    term(id);
    return *this;
  }
  return add({Op::broadcast, at.type, at.type, {operand(id)}});
}

SweepBuilder& SweepBuilder::add(Term term) {
  sweep_.expression.terms.push_back(std::move(term));
  return *this;
}

bool SweepBuilder::is_fused(Id id) const {
  if (parts_.contains(id)) return false;
  if (inlined_) return inlined_->contains(id);
  return root_ != no_id && id != root_ && steps_.fusion.root[id] == root_;
}

Id SweepBuilder::behind_broadcasts(Id id) const {
  while (steps_.node(id).op == Op::broadcast) id = steps_.node(id).in[0];
  return id;
}

Operand SweepBuilder::operand(Id id) {
  id = behind_broadcasts(id);
  return is_fused(id) ? term(id) : leaf(id);
}

namespace {

// f32 holds such integers beside a number of 2^23: two additions convert them, without a conversion instruction.
bool converts_small(const GraphAnalysis& analysis, const Node& cast) {
  const bool to_real = info(cast.type).kind == ElementKind::real && host_type(cast.type) == HostType::f32,
             from_integer = info(analysis[cast.in[0]].type).kind == ElementKind::integer &&
                            host_type(analysis[cast.in[0]].type) == HostType::i32;
  if (!to_real || !from_integer) return false;
  const Range range = range_of(analysis, cast.in[0]);
  constexpr std::int64_t most = 1 << 22;
  return range.least >= -most && range.most < most;
}

}  // namespace

Operand SweepBuilder::term(Id id) {
  // Operands first, from left to right. The stack is explicit: an expression may be a hundred thousand ops deep.
  struct Frame {
    Id id;
    Term term;
  };
  std::vector<Frame> stack;
  const auto enter = [&](Id op) {
    const Node& at = steps_.node(op);
    stack.push_back({op, {at.op, at.type, steps_.node(at.in.back()).type, {}}});
    stack.back().term.label = steps_.values.label(op, name(at.op));
    if (at.op == Op::custom) stack.back().term.function = static_cast<int>(at.function());
    if (at.op == Op::cast) stack.back().term.small = converts_small(steps_.analysis, at);
  };
  if (!terms_.contains(id)) enter(id);
  while (!stack.empty()) {
    Frame& frame = stack.back();
    const std::vector<Id>& in = steps_.node(frame.id).in;
    if (frame.term.in.size() < in.size()) {
      const Id next = behind_broadcasts(in[frame.term.in.size()]);
      if (!is_fused(next))
        frame.term.in.push_back(leaf(next));
      else if (const auto made = terms_.find(next); made != terms_.end())
        frame.term.in.push_back(indexed(Operand::Kind::term, made->second));
      else
        enter(next);
      continue;
    }
    terms_[frame.id] = static_cast<int>(sweep_.expression.terms.size());
    add(std::move(frame.term));
    stack.pop_back();
  }
  return indexed(Operand::Kind::term, terms_.at(id));
}

// A node that is neither a broadcast nor computed in this expression.
Operand SweepBuilder::leaf(Id id) {
  if (const auto found = parts_.find(id); found != parts_.end()) return found->second;
  const Node& at = steps_.node(id);
  if (at.op == Op::constant) return literal(at.bits());
  if (at.op == Op::iota) {
    const int axis = at.axis();
    if (at.shape[axis] == 1) return literal(0);
    return indexed(Operand::Kind::coordinate, axis + sweep_.shape.rank() - at.shape.rank());
  }
  if ((at.op == Op::load || at.op == Op::gather) && !steps_.values.of(id)) return fetched(id);
  const Layout wanted = whole_layout_.of_operand(at.shape, whole_shape_);
  ValueId value = steps_.value(id);
  if (!steps_.plan.values[value].layout.spreads_as(wanted)) value = moved(steps_, value, id, wanted);
  return element_of(steps_.plan, value, sweep_.layout, sweep_.origin);
}

// A part of a load. Where the sweep's tile is broadcast from the load, it is read once for all elements.
Operand SweepBuilder::loaded_part(Id id) {
  const Node& at = steps_.node(id);
  const int shift = whole_shape_.rank() - at.shape.rank();
  SweepBuilder part(steps_, at.shape, whole_layout_.of_operand(at.shape, whole_shape_));
  for (int axis = 0; axis < at.shape.rank(); ++axis)
    if (at.shape[axis] != 1 && sweep_.shape[axis + shift] != at.shape[axis])
      part.part(axis, sweep_.origin[static_cast<std::size_t>(axis + shift)], sweep_.shape[axis + shift]);
  Sweep sweep = part.take();
  const ValueId out = steps_.values.add_part(id, sweep);
  TileAccess access = steps_.access_of(id);
  access.label = steps_.plan.storage(out).label;
  access.from_here = true;
  steps_.push(id, Load{.out = out, .sweep = std::move(sweep), .access = std::move(access)});
  return element_of(steps_.plan, out, sweep_.layout);
}

Operand SweepBuilder::fetched(Id id) {
  if (sweep_.part && steps_.node(id).op == Op::load && (reads_first_ || steps_.node(id).shape != whole_shape_))
    return parts_.emplace(id, loaded_part(id)).first->second;
  if (const auto found = reads_.find(id); found != reads_.end()) return indexed(Operand::Kind::fetched, found->second);
  TileAccess access = steps_.access_of(id);
  if (steps_.node(id).op == Op::gather) steps_.set_rows(access, steps_.node(id).in[1], sweep_);
  sweep_.reads.push_back(std::move(access));
  const int index = static_cast<int>(sweep_.reads.size()) - 1;
  reads_.emplace(id, index);
  return indexed(Operand::Kind::fetched, index);
}

}  // namespace tessera::internal::lowering
