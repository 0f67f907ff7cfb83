#include "codegen/lower/lower_exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "codegen/lower/lower_scratch.hpp"
#include "graph/evaluate.hpp"

namespace tessera::internal::lowering {
namespace {

// --- reductions

/// Partial results of threads, by register. Across warps they go through scratch memory.
struct Parts {
  Op op{};
  ElementType type{};
  ValueId out, best;  ///< best: for argmax
  int registers = 0;
  int warps = 0;  ///< bits of warp indices that distinguish the parts
};
Body across_warps(Steps& steps, Id id, const Parts& parts) {
  if (parts.warps == 0) return {};
  const int chunk = std::min(parts.registers, most_partials);
  const std::int64_t elements = std::int64_t(chunk) * steps.threads * (parts.best ? 2 : 1);
  const ScratchId scratch = new_scratch(steps.plan, elements, parts.type);
  CrossWarpReduce partials{.out = parts.out, .registers = parts.registers, .chunk = chunk, .per_chunk = {}};
  partials.per_chunk.push_back(steps.step(
      id, StoreWarpPartials{
              .scratch = scratch, .out = parts.out, .best = parts.best, .registers = parts.registers, .chunk = chunk}));
  partials.per_chunk.push_back(steps.step(id, ReduceWarpPartials{.scratch = scratch,
                                                                 .out = parts.out,
                                                                 .best = parts.best,
                                                                 .op = parts.op,
                                                                 .registers = parts.registers,
                                                                 .chunk = chunk,
                                                                 .warps = parts.warps}));
  Body body;
  body.push_back(steps.step(id, std::move(partials)));
  return body;
}

// --- moves

// Does the node only rename, merge or split axes, with its registers those of its operand?
bool is_renamed(const Steps& steps, Id id) {
  const Node& at = steps.node(id);
  if (at.op != Op::reshape && at.op != Op::permute) return false;
  const Layout &of_source = steps.layouts.of[at.in[0]], &wanted = steps.layouts.of[id];
  if (at.op == Op::permute) return wanted == of_source.permuted(at.permutation());
  return wanted == of_source.reshaped(steps.node(at.in[0]).shape, at.shape);
}

}  // namespace

ValueId moved(Steps& steps, ValueId from, Id id, const Layout& layout) {
  Plan& plan = steps.plan;
  if (plan.values[from].layout == layout) return from;
  if (const ValueId found = steps.values.moved(from, layout)) return found;
  const Node& node = steps.node(id);
  if (plan.values[from].layout.spreads_as(layout)) {  // other registers of the same threads
    SweepBuilder sweep(steps, node.shape, layout);
    sweep.add({Op::broadcast, node.type, node.type, {element_of(plan, from, layout)}});
    const ValueId to = steps.values.add_moved(id, from, layout);
    steps.push(id, Compute{.out = to, .sweep = sweep.take()});
    return to;
  }
  const Strides strides = row_major(node.shape);
  const ScratchId scratch = new_scratch(plan, node.shape.size(), node.type);
  put(steps, from, id, strides, 0, scratch);
  const ValueId to = steps.values.add_moved(id, from, layout);
  get(steps, to, id, strides, scratch);
  return to;
}

void spread(Steps& steps, ValueId first, Id id) {
  const Node& node = steps.node(id);
  const Strides strides = row_major(node.shape);
  const ScratchId scratch = new_scratch(steps.plan, node.shape.size(), node.type);
  put(steps, first, id, strides, 0, scratch);
  get(steps, steps.values.add(id), id, strides, scratch);
}

namespace {

// The sweep of a reduction, and the partial results of its threads; its value has a label of its own.
std::pair<Sweep, Parts> reduction(Steps& steps, Id id) {
  const Node& at = steps.node(id);
  Sweep sweep = SweepBuilder(steps, sweep_of(steps.analysis, steps.layouts, id), id).express(at.in[0]).take();
  const Layout layout = sweep.layout.without(at.axis());
  Parts parts{.op = at.op,
              .type = steps.node(at.in[0]).type,
              .out = steps.values.set(id, steps.values.add(steps.values.label(id, name(at.op)), id, layout)),
              .best = {},
              .registers = layout.registers(),
              .warps = sweep.layout.bits_along(at.axis(), Place::warp)};
  return {std::move(sweep), parts};
}

// The max that argmax found. It found NaN where all elements are NaN; a max reduction returns its identity there.
void largest(Steps& steps, Id id, ValueId best) {
  const Node& at = steps.node(id);
  const Value found = steps.plan.values[best];
  SweepBuilder sweep(steps, found.shape, found.layout);
  sweep.add({Op::maximum,
             at.type,
             at.type,
             {element_of(steps.plan, best, found.layout), literal(encode(at.type, identity(Op::max, at.type)))}});
  const ValueId out = steps.values.set(id, steps.values.add(steps.values.label(id, name(at.op)), id, found.layout));
  steps.plan.storage(out).storage_class = steps.plan.storage(best).storage_class;
  steps.push(id, Compute{.out = out, .sweep = sweep.take()});
}

}  // namespace

void reduce(Steps& steps, Id id) {
  auto [sweep, parts] = reduction(steps, id);
  const bool partial = steps.layouts.partial.contains(id);
  Body across = partial ? Body() : across_warps(steps, id, parts);
  steps.push(id, Reduce{.op = parts.op,
                        .axis = steps.node(id).axis(),
                        .out = parts.out,
                        .sweep = std::move(sweep),
                        .partial = partial,
                        .across = std::move(across)});
}

void argmax(Steps& steps, Id id, Id max) {
  auto [sweep, parts] = reduction(steps, id);
  parts.best = steps.values.add(steps.values.label(id, "best"), steps.node(id).in[0],
                                sweep.layout.without(steps.node(id).axis()));
  steps.plan.storage(parts.best).storage_class = steps.plan.storage(parts.out).storage_class;
  steps.plan.values[parts.best].shape = steps.plan.values[parts.out].shape;
  Body across = across_warps(steps, id, parts);
  steps.push(id, Argmax{.axis = steps.node(id).axis(),
                        .out = parts.out,
                        .best = parts.best,
                        .sweep = std::move(sweep),
                        .across = std::move(across)});
  if (max != no_id) largest(steps, max, parts.best);
}

void add_replicas(Steps& steps, Id id, ValueId out, const PartialSums& partial) {
  const Storage& storage = steps.plan.storage(out);
  int kept = storage.registers;
  // Lanes that end up with the same sums share the additions across warps.
  if (partial.warps && storage.storage_class == StorageClass::registers)
    for (int lanes = partial.lanes; lanes != 0 && kept % 2 == 0; lanes &= lanes - 1) kept /= 2;
  Body across = across_warps(
      steps, id,
      {.op = Op::sum, .type = storage.type, .out = out, .best = {}, .registers = kept, .warps = partial.warps});
  steps.push(
      id, LaneReduce{
              .out = out, .lanes = partial.lanes, .warps = partial.warps, .kept = kept, .across = std::move(across)});
}

void scan(Steps& steps, Id id) {
  const Node& at = steps.node(id);
  const Layout& layout = steps.layouts.of[id];
  const int axis = at.axis();
  const ScanBy by{reduction_of(at.op), at.scan_options()};
  SweepBuilder sweep(steps, at.shape, layout, id);
  const bool largest = by.op == Op::max;
  if (info(at.type).kind == ElementKind::real && (largest || by.op == Op::min)) {
    // Where all elements so far are NaN, the result is the identity of the reduction.
    const std::int64_t none = encode(at.type, identity(by.op, at.type));
    sweep.add({largest ? Op::maximum : Op::minimum, at.type, at.type, {sweep.operand(at.in[0]), literal(none)}});
  } else {
    sweep.express(at.in[0]);
  }
  const ValueId out = steps.values.add(id);
  steps.push(id, Scan{.by = by, .axis = axis, .out = out, .sweep = sweep.take()});
  if (line_of(layout, axis)->warps.size == 1) return;
  const ScratchId scratch = new_scratch(steps.plan, totals_of(layout, axis, steps.threads), at.type);
  steps.push(id, WriteScanTotals{.by = by, .scratch = scratch, .out = out, .axis = axis});
  steps.push(id, AddScanPrefix{.by = by, .scratch = scratch, .out = out, .axis = axis});
}

void through_scratch(Steps& steps, Id id) {
  const Node& at = steps.node(id);
  if (is_renamed(steps, id)) {
    steps.values.add_view(id, steps.value_in(at.in[0], steps.layouts.of[at.in[0]]));
    return;
  }
  // Written in row-major order of the operand; for concat, of the result, of which each operand is a part.
  const bool parts = at.op == Op::concat;
  const Strides to = row_major(parts ? at.shape : steps.node(at.in[0]).shape);
  Strides from = row_major(at.shape);
  if (at.op == Op::permute)
    for (std::size_t i = 0; i < at.permutation().size(); ++i)
      from[i] = to[static_cast<std::size_t>(at.permutation()[i])];
  const ScratchId scratch = new_scratch(steps.plan, at.shape.size(), at.type);
  std::int64_t base = 0;
  for (Id in : at.in) {
    put(steps, steps.value(in), in, to, base, scratch);
    if (parts) base += steps.node(in).shape[at.axis()] * to[static_cast<std::size_t>(at.axis())];
  }
  get(steps, steps.values.add(id), id, from, scratch);
}

namespace {

// A tile in scratch memory, in row-major order. Several ops may read it.
ScratchId in_scratch(Steps& steps, Id tile) {
  const ValueId value = steps.value(tile);
  ScratchId scratch = steps.values.in_scratch(value);
  if (scratch) return scratch;
  const Node& node = steps.node(tile);
  scratch = new_scratch(steps.plan, node.shape.size(), node.type);
  put(steps, value, tile, row_major(node.shape), 0, scratch);
  steps.values.put_in_scratch(value, scratch);
  return scratch;
}

}  // namespace

void take_along_axis(Steps& steps, Id id) {
  const Node& at = steps.node(id);
  const Shape& from = steps.node(at.in[0]).shape;
  const ScratchId scratch = in_scratch(steps, at.in[0]);
  Sweep positions = SweepBuilder(steps, sweep_of(steps.analysis, steps.layouts, id), id).express(at.in[1]).take();
  steps.push(id, GatherScratch{.scratch = scratch,
                               .strides = row_major(from),
                               .axis = at.axis(),
                               .extent = from[at.axis()],
                               .out = steps.values.add(id),
                               .sweep = std::move(positions)});
}

void extract(Steps& steps, Id id) {
  const Node& at = steps.node(id);
  const Shape& from = steps.node(at.in[0]).shape;
  const Strides strides = row_major(from);
  const ScratchId scratch = in_scratch(steps, at.in[0]);
  std::vector<Picked> picked;
  for (int axis = 0; axis < from.rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    Picked pick{steps.scalar(at.in[i + 1]), static_cast<int>(at.steps()[i]), from[axis]};
    // Parts that begin beyond their own reach outside the tile have no element of it: the start may be clamped.
    const std::int64_t reach = at.shape[axis] * std::abs(at.steps()[i]);
    if (pick.first.kind == Operand::Kind::literal) {
      pick.first.literal = std::clamp<std::int64_t>(pick.first.literal, -reach, from[axis] + reach);
    } else {
      const ElementType type = ElementType::i32;
      const Term held{Op::clamp, type, type, {pick.first, literal(-reach), literal(from[axis] + reach)}};
      const ValueId first = steps.number(id, steps.values.label(id, fmt::format("first{}", axis)), type, held);
      pick.first = element_of(steps.plan, first, Layout(0));
    }
    picked.push_back(std::move(pick));
  }
  const ValueId out = steps.values.add(id);
  const Value value = steps.plan.values[out];
  SweepBuilder sweep(steps, value.shape, value.layout);
  steps.push(
      id, LoadScratch{
              .scratch = scratch, .strides = strides, .picked = std::move(picked), .out = out, .sweep = sweep.take()});
}

void tell(Steps& steps, Id id) {
  const Node& at = steps.node(id);
  HostReport step{.text = static_cast<int>(at.text())};
  for (int axis = 0; axis < static_cast<int>(steps.analysis.graph.grid.size()); ++axis)
    step.block.push_back(element_of(steps.plan, steps.values.add_block(id, steps.place.first_axis + axis), Layout(0)));
  if (at.op == Op::check) {
    step.unless = steps.scalar(at.in[0]);
    return steps.push(id, std::move(step));
  }
  for (Id in : at.in) {
    const Node& value = steps.node(in);
    const ScratchId scratch = new_scratch(steps.plan, value.shape.size(), value.type);
    Sweep sweep = SweepBuilder(steps, value.shape, steps.layouts.of[in]).express(in).take();
    steps.push(id, StoreScratch{.scratch = scratch, .strides = row_major(value.shape), .sweep = std::move(sweep)});
    step.values.push_back({scratch, value.shape.size()});
  }
  steps.push(id, std::move(step));
}

}  // namespace tessera::internal::lowering
