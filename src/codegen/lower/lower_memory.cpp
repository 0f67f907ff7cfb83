// Accesses: computes the place of a tile in a tensor from values, and emits the steps that access it.
#include "codegen/lower/lower_steps.hpp"

namespace tessera::internal::lowering {

Operand Steps::scalar(Id id) {
  if (node(id).op == Op::constant) return literal(node(id).bits());
  Operand operand;
  operand.kind = Operand::Kind::value;
  operand.value = value(id);
  return operand;
}

TileAccess Steps::access_of(Id id) {
  const GraphAccess from = analysis.access(id);
  TileAccess access;
  access.label = values.label(id, name(node(id).op));
  access.parameter = place.first_parameter + from.parameter;
  if (from.member != no_id) access.member = scalar(from.member);
  access.fast = from.fast;
  access.vector = from.vector;
  access.padding = from.padding;
  access.read_only = analysis.graph.parameters[static_cast<std::size_t>(from.parameter)].access == Access::in;
  for (const GraphAccess::Axis& axis : from.axes) {
    TileAccess::Axis to;
    to.tensor_axis = axis.tensor_axis;
    to.index = axis.index == no_id ? literal(0) : scalar(axis.index);
    to.extent = axis.extent;
    to.viewed = axis.viewed;
    // The k-iteration of a CTA of a cluster is a sum, about which no more is known.
    const bool is_known = to.index.kind != Operand::Kind::value ||
                          !std::holds_alternative<std::monostate>(plan.storage(to.index.value).known);
    to.positive = axis.positive && is_known;
    for (const GraphAccess::Slice& slice : axis.slices) {
      Operand start = scalar(slice.start);
      to.slices.push_back({std::move(start), scalar(slice.extent), slice.step});
    }
    access.axes.push_back(std::move(to));
  }
  return access;
}

void Steps::set_rows(TileAccess& access, Id rows, const Sweep& sweep) {
  const int first = sweep.shape.rank() - static_cast<int>(access.axes.size());
  // A tile that is broadcast along its first axis has one row index.
  Layout along = sweep.layout;
  for (int axis = 0; axis < sweep.shape.rank(); ++axis)
    if (axis != first || access.axes[0].extent != sweep.shape[first]) along = along.without(axis);
  Layout line(1);
  for (const Factor& factor : along.axis(first)) line.add(0, factor);
  access.rows = value_in(rows, line);
  access.rows_map = register_map(along, sweep.layout);
}

void Steps::set_elements(TileAccess& access, Id id, SweepBuilder& sweep) {
  const auto first = static_cast<std::size_t>(operand_of(node(id).op, OperandKind::tiles));
  for (std::size_t axis = 0; axis < access.axes.size(); ++axis)
    access.axes[axis].element = sweep.operand(node(id).in[first + axis]);
}

namespace {

// A layout whose registers are numbered so that the elements of one access are in consecutive registers.
Layout along_access(const Layout& layout, const TileAccess& access) {
  return access.vector > 1 && layout.run(access.fast) == 1 ? layout.with_run(access.fast) : layout;
}

}  // namespace

ValueId Steps::load(Id id) {
  TileAccess access = access_of(id);
  const Layout layout = along_access(layouts.of[id], access);
  SweepBuilder sweep(*this, node(id).shape, layout);
  if (node(id).op == Op::gather) set_rows(access, node(id).in[1], sweep.sweep());
  if (by_elements(node(id).op)) set_elements(access, id, sweep);
  const ValueId out = layout == layouts.of[id]
                          ? values.add(id)
                          : values.set(id, values.add(values.label(id, name(node(id).op)), id, layout));
  push(id, Load{.out = out, .sweep = sweep.take(), .access = std::move(access)});
  return out;
}

void Steps::store(Id id) {
  const Op op = node(id).op;
  const Store::Kind kind = op == Op::store ? Store::Kind::store : Store::Kind::scatter;
  TileAccess access = access_of(id);
  Sweep along = sweep_of(analysis, layouts, id);
  along.layout = along_access(along.layout, access);
  SweepBuilder builder(*this, std::move(along), id);
  if (op == Op::scatter) set_rows(access, node(id).in[2], builder.sweep());
  if (by_elements(op)) set_elements(access, id, builder);
  Sweep sweep = builder.express(node(id).in[0]).take();
  leave_rounding_to_memory(sweep.expression);
  const Parameter& tensor = plan.tensors[static_cast<std::size_t>(access.parameter)];
  // Only for tensors that are not read: the other threads of a quad would overwrite elements that a thread reads there.
  // And a kernel that checks itself looks at elements in their places, not at pairs that are exchanged on the way.
  const bool by_quads = !plan.debug && !access.by_elements() && tensor.access == Access::out && access.vector == 8 &&
                        info(tensor.type).bytes == 2 && access.fast + 1 == sweep.shape.rank() && sweep.unrolled &&
                        stores_by_quads(sweep.layout, sweep.shape, threads / 32);
  push(id, Store{.kind = kind, .sweep = std::move(sweep), .access = std::move(access), .by_quads = by_quads});
}

}  // namespace tessera::internal::lowering
