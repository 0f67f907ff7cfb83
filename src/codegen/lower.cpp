// lower: a graph becomes the steps of a plan.
#include "codegen/lower.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace tessera::lowering {
namespace {

int round_up(int a, int b) { return (a + b - 1) / b * b; }

Operand literal(std::int64_t value) { return {.kind = Operand::Kind::literal, .map = {}, .literal = value}; }

Strides row_major(const Shape& shape) {
  Strides strides{};
  std::int64_t stride = 1;
  for (int axis = shape.rank(); axis-- > 0; stride *= shape[axis]) strides[static_cast<std::size_t>(axis)] = stride;
  return strides;
}

struct Sweep {
  Shape shape;
  Layout layout;
};

class Lowering {
 public:
  Lowering(const Facts& facts, const std::map<Id, ProductPlan>& products, const Layouts& layouts, int most_registers,
           const InMemory& in_memory, Plan& plan)
      : facts_(facts),
        products_(products),
        layouts_(layouts),
        most_registers_(most_registers),
        in_memory_(in_memory),
        plan_(plan),
        value_(facts.graph.nodes.size(), -1),
        root_(facts.graph.nodes.size(), no_id),
        absorbed_(facts.graph.nodes.size()) {}

  std::set<Id> run() {
    find_absorbed();
    find_roots();
    make_buffers();
    within(plan_.steps, [&] { lower_region(0); });
    return std::move(must_be_in_memory_);
  }

 private:
  const Node& node(Id id) const { return facts_[id]; }
  std::vector<Id> by_number() const {
    std::vector<Id> ids;
    for (const auto& region : facts_.order) ids.insert(ids.end(), region.begin(), region.end());
    std::sort(ids.begin(), ids.end(), [&](Id a, Id b) { return facts_.number[a] < facts_.number[b]; });
    return ids;
  }

  // --- what needs no value of its own

  // A load, and what stands between it and a product, that the product reads from shared memory.
  void find_absorbed() {
    const auto ids = by_number();
    for (auto it = ids.rbegin(); it != ids.rend(); ++it) {
      const Node& at = node(*it);
      if (at.op != Op::load && at.op != Op::cast && at.op != Op::reshape && at.op != Op::permute) continue;
      bool all = !facts_.users[*it].empty() && !at.ordered;
      for (Id user : facts_.users[*it]) {
        const bool passed_on = absorbed_[user] && node(user).op != Op::load;  // a load's operands say where: not read
        all &= passed_on || reads_from_buffer(user, *it);
      }
      absorbed_[*it] = all;
    }
  }
  bool reads_from_buffer(Id user, Id operand) const {
    if (node(user).op != Op::mma) return false;
    const ProductPlan& plan = products_.at(user);
    if (plan.product.kind == ProductKind::thin || node(user).in[2] == operand) return false;
    return (node(user).in[0] != operand || plan.a.load != no_id) &&
           (node(user).in[1] != operand || plan.b.load != no_id);
  }

  // An elementwise op is computed on the way to the one step that needs it, its root.
  void find_roots() {
    const auto ids = by_number();
    for (auto it = ids.rbegin(); it != ids.rend(); ++it) {
      const Id id = *it;
      root_[id] = id;
      if (!is_elementwise(node(id).op) || absorbed_[id] || node(id).shape.rank() == 0) continue;
      Id root = no_id;
      bool one = true;
      for (Id user : facts_.users[id]) {
        const Id next = takes_expression(user, id) ? root_[user] : no_id;
        one &= next != no_id && (root == no_id || root == next);
        root = next;
      }
      if (!one || root == no_id || node(root).region != node(id).region) continue;
      const Sweep sweep = sweep_of(root);
      const Layout& layout = layouts_.of[id];
      if (layout == sweep.layout.of_operand(node(id).shape, sweep.shape) &&
          layout.registers() == sweep.layout.registers())
        root_[id] = root;
    }
  }
  bool takes_expression(Id user, Id operand) const {
    const Node& at = node(user);
    if (absorbed_[user]) return false;
    if (is_elementwise(at.op)) return at.shape.rank() > 0;
    const auto only_in = [&](std::size_t slot) {
      for (std::size_t i = 0; i < at.in.size(); ++i)
        if ((at.in[i] == operand) != (i == slot)) return false;
      return true;
    };
    if (is_reduction(at.op) || at.op == Op::argmax) return true;
    if (at.op == Op::store || at.op == Op::scatter || at.op == Op::atomic_add) return only_in(0);
    return at.op == Op::mma && only_in(2);
  }
  Sweep sweep_of(Id root) const {
    const Node& at = node(root);
    const bool of_operand = is_reduction(at.op) || at.op == Op::argmax || at.op == Op::store || at.op == Op::scatter ||
                            at.op == Op::atomic_add;
    const Id id = of_operand ? at.in[0] : root;
    return {node(id).shape, layouts_.of[id]};
  }

  // --- values

  bool is_large(const Layout& layout) const { return layout.registers() > most_registers_; }

  ValueId new_value(std::string name, Id id, const Layout& layout) {
    Value value;
    value.name = std::move(name);
    value.type = node(id).type;
    value.shape = node(id).shape;
    value.layout = layout;
    const int registers = layout.registers();
    value.home = registers == 1                                       ? Home::variable
                 : is_large(layout) || in_memory_.values.contains(id) ? Home::workspace
                                                                      : Home::registers;
    value.vector = vector_of(layout, 16 / host_bytes(host_type(value.type))).second;
    plan_.values.push_back(std::move(value));
    source_.push_back(id);
    return static_cast<ValueId>(plan_.values.size()) - 1;
  }
  std::string name_of(Id id, std::string_view what) const { return fmt::format("{}_{}", what, facts_.number[id]); }
  ValueId new_value(Id id) { return value_[id] = new_value(name_of(id, name(node(id).op)), id, layouts_.of[id]); }
  ValueId named(Id id, std::string text) {
    plan_.values.push_back({.name = std::move(text),
                            .type = node(id).type,
                            .shape = node(id).shape,
                            .layout = Layout(node(id).shape.rank()),
                            .home = Home::variable});
    source_.push_back(id);
    return value_[id] = static_cast<ValueId>(plan_.values.size()) - 1;
  }

  // The axis whose neighbours are in consecutive registers, and how many of them go together.
  static std::pair<int, int> vector_of(const Layout& layout, int most) {
    for (int axis = 0; axis < layout.rank(); ++axis) {
      const int run = layout.run(axis);
      if (run == 1) continue;
      int vector = 1;
      while (vector * 2 <= most && run % (vector * 2) == 0) vector *= 2;
      return {axis, vector};
    }
    return {-1, 1};
  }

  Step& add(Step::Kind kind, Id id) {
    steps_->push_back({});
    Step& step = steps_->back();
    step.kind = kind;
    step.node = id;
    step.location = node(id).location;
    return step;
  }
  Step sweep_step(Step::Kind kind, Id id, const Sweep& sweep) {
    Step step;
    step.kind = kind;
    step.node = id;
    step.location = node(id).location;
    step.shape = sweep.shape;
    step.layout = sweep.layout;
    step.unrolled = !is_large(sweep.layout);
    return step;
  }
  void push(Step step) {
    choose_vector(step);
    // A loop that is not unrolled cannot index registers, and one that indexes none need not be unrolled.
    bool indexes = false;
    const auto check = [&](ValueId id) {
      if (id < 0 || plan_.values[static_cast<std::size_t>(id)].home != Home::registers) return;
      indexes = true;
      if (!step.unrolled) must_be_in_memory_.insert(source_[static_cast<std::size_t>(id)]);
    };
    check(step.out);
    for (const Term& term : step.expression.terms)
      for (const Operand& operand : term.in)
        if (operand.kind == Operand::Kind::value) check(operand.index);
    for (const TileAccess& access : step.reads) check(access.rows);
    if (step.access) check(step.access->rows);
    step.unrolled &= indexes;
    steps_->push_back(std::move(step));
  }
  // Accesses go along the layout's run together, or element by element.
  void choose_vector(Step& step) {
    std::vector<TileAccess*> all;
    for (TileAccess& read : step.reads) all.push_back(&read);
    if (step.access) all.push_back(&*step.access);
    const auto [axis, run] = vector_of(step.layout, 16);
    step.vector = 1;
    const auto aligned = [&, run_axis = axis](const TileAccess& access) {
      const int rank = static_cast<int>(access.axes.size());
      return access.fast >= 0 && access.fast + step.shape.rank() - rank == run_axis;
    };
    for (TileAccess* access : all)
      if (aligned(*access)) step.vector = std::max(step.vector, std::min(run, access->vector));
    for (TileAccess* access : all) access->vector = aligned(*access) && access->vector >= step.vector ? step.vector : 1;
  }

  // --- expressions

  Operand resolve(Id id, Step& step, Id root, std::map<Id, int>& terms) {
    const Node& at = node(id);
    const int shift = step.shape.rank() - at.shape.rank();
    if (at.op == Op::constant) return literal(at.attr[0]);
    if (at.op == Op::broadcast) return resolve(at.in[0], step, root, terms);
    if (at.op == Op::iota) {
      const int axis = static_cast<int>(at.attr[0]);
      if (at.shape[axis] == 1) return literal(0);
      return {.kind = Operand::Kind::coordinate, .index = axis + shift, .map = {}};
    }
    if (id != root && root_[id] == root && root != no_id) return term(id, step, root, terms);
    if (at.op == Op::load || at.op == Op::gather)
      if (value_[id] < 0) return fetched(id, step);
    const Layout want = step.layout.of_operand(at.shape, step.shape);
    const ValueId value = value_in(id, want);
    return {.kind = Operand::Kind::value,
            .index = value,
            .map = register_map(plan_.values[static_cast<std::size_t>(value)].layout, step.layout)};
  }
  Operand term(Id id, Step& step, Id root, std::map<Id, int>& terms) {
    const Operand::Kind kind = Operand::Kind::term;
    if (const auto found = terms.find(id); found != terms.end())
      return {.kind = kind, .index = found->second, .map = {}};
    Term made{node(id).op, node(id).type, node(node(id).in.back()).type, {}};
    for (Id in : node(id).in) made.in.push_back(resolve(in, step, root, terms));
    step.expression.terms.push_back(std::move(made));
    return {.kind = kind, .index = terms[id] = static_cast<int>(step.expression.terms.size()) - 1, .map = {}};
  }
  Operand fetched(Id id, Step& step) {
    for (std::size_t i = 0; i < step.reads.size(); ++i)
      if (reads_of_step_[i] == id) return {.kind = Operand::Kind::fetched, .index = static_cast<int>(i), .map = {}};
    reads_of_step_.resize(step.reads.size());
    TileAccess access = access_of(id);
    if (node(id).op == Op::gather) gather_rows(node(id).in[1], access, step);
    step.reads.push_back(std::move(access));
    reads_of_step_.push_back(id);
    return {.kind = Operand::Kind::fetched, .index = static_cast<int>(step.reads.size()) - 1, .map = {}};
  }
  /// The step's expression is `id`: its op if it is the root, else a copy of it.
  void express(Id id, Step& step, Id root) {
    std::map<Id, int> terms;
    reads_of_step_.clear();
    if (is_elementwise(node(id).op) && (id == root || root_[id] == root)) {
      term(id, step, root, terms);
      return;
    }
    Term copy{Op::broadcast, node(id).type, node(id).type, {resolve(id, step, root, terms)}};
    step.expression.terms.push_back(std::move(copy));
  }

  /// A node's value, made now if nobody needed it before.
  ValueId value(Id id) {
    if (value_[id] >= 0) return value_[id];
    const Node& at = node(id);
    if (at.op == Op::load || at.op == Op::gather) return load(id);
    Step step = sweep_step(Step::Kind::compute, id, {at.shape, layouts_.of[id]});
    std::map<Id, int> terms;
    reads_of_step_.clear();
    step.expression.terms.push_back({Op::broadcast, at.type, at.type, {resolve(id, step, no_id, terms)}});
    step.out = new_value(id);
    push(std::move(step));
    return value_[id];
  }
  // The layout is a copy: it may be asked for as that of a value, and values move when one is added.
  ValueId value_in(Id id, Layout layout) {
    const ValueId from = value(id);
    return moved(from, id, std::move(layout));
  }
  /// A value in another layout: written to scratch memory by those who hold it, read by those who need it.
  ValueId moved(ValueId from, Id id, Layout layout) {
    if (plan_.values[static_cast<std::size_t>(from)].layout == layout) return from;
    const auto key = std::pair(from, to_string(layout));
    if (const auto found = moved_.find(key); found != moved_.end()) return found->second;
    const Strides strides = row_major(node(id).shape);
    const int scratch = new_scratch(node(id).shape.size(), node(id).type);
    put_value(from, id, strides, 0, scratch);
    const ValueId to =
        new_value(fmt::format("{}_moved{}", plan_.values[static_cast<std::size_t>(from)].name, moves_++), id, layout);
    get(id, to, strides, scratch);
    return moved_[key] = to;
  }

  int new_scratch(std::int64_t elements, ElementType type) {
    plan_.scratch.push_back({.type = type, .bytes = elements * host_bytes(host_type(type))});
    return static_cast<int>(plan_.scratch.size()) - 1;
  }
  void put_value(ValueId from, Id id, const Strides& strides, std::int64_t base, int scratch) {
    const Value& value = plan_.values[static_cast<std::size_t>(from)];
    Step step = sweep_step(Step::Kind::put, id, {value.shape, value.layout});
    step.expression.terms.push_back(
        {Op::broadcast,
         value.type,
         value.type,
         {{.kind = Operand::Kind::value, .index = from, .map = register_map(value.layout, value.layout)}}});
    step.strides = strides;
    step.base = base;
    step.scratch = scratch;
    push(std::move(step));
  }
  void get(Id id, ValueId out, const Strides& strides, int scratch) {
    const Value& value = plan_.values[static_cast<std::size_t>(out)];
    Step step = sweep_step(Step::Kind::get, id, {value.shape, value.layout});
    step.strides = strides;
    step.scratch = scratch;
    step.out = out;
    push(std::move(step));
  }

  // --- memory

  Operand scalar(Id id) {
    if (node(id).op == Op::constant) return literal(node(id).attr[0]);
    return {.kind = Operand::Kind::value, .index = value(id), .map = {}};
  }
  TileAccess access_of(Id id) {
    TileAccess access = facts_.access(id);
    access.name = name_of(id, name(node(id).op));
    for (std::size_t i = 0; i < access.axes.size(); ++i) {
      TileAccess::Axis& axis = access.axes[i];
      const Id index = facts_.index_of(id, static_cast<int>(i));
      if (index != no_id) axis.index = scalar(index);
      for (TileAccess::Slice& slice : axis.slices) {
        slice.start = scalar(static_cast<Id>(slice.start.index));
        slice.extent = scalar(static_cast<Id>(slice.extent.index));
      }
    }
    return access;
  }
  // Row indices lie along the tile's first axis. Of a tile that is stretched along it there is one.
  void gather_rows(Id rows, TileAccess& access, const Step& step) {
    const int first = step.shape.rank() - static_cast<int>(access.axes.size());
    Layout along = step.layout;
    for (int axis = 0; axis < step.shape.rank(); ++axis)
      if (axis != first || access.axes[0].extent != step.shape[first]) along = along.without(axis);
    Layout line(1);
    for (const Factor& factor : along.axis(first)) line.add(0, factor);
    access.rows = value_in(rows, line);
    access.rows_map = register_map(along, step.layout);
  }
  ValueId load(Id id) {
    Step step = sweep_step(Step::Kind::load, id, {node(id).shape, layouts_.of[id]});
    step.access = access_of(id);
    if (node(id).op == Op::gather) gather_rows(node(id).in[1], *step.access, step);
    step.out = new_value(id);
    push(std::move(step));
    return value_[id];
  }
  void write(Id id) {
    const Op op = node(id).op;
    const Step::Kind kind = op == Op::store     ? Step::Kind::store
                            : op == Op::scatter ? Step::Kind::scatter
                                                : Step::Kind::atomic;
    Step step = sweep_step(kind, id, sweep_of(id));
    step.access = access_of(id);
    if (op == Op::scatter) gather_rows(node(id).in[2], *step.access, step);
    express(node(id).in[0], step, id);
    // Memory rounds as the cast does.
    Term& last = step.expression.terms.back();
    if (last.op == Op::cast && (last.type == ElementType::f16 || last.type == ElementType::bf16) &&
        info(last.operand).kind == ElementKind::real)
      last = {Op::broadcast, last.operand, last.operand, std::move(last.in)};
    push(std::move(step));
  }

  // --- ops across threads

  void reduce(Id id) {
    const Sweep sweep = sweep_of(id);
    Step step = sweep_step(node(id).op == Op::argmax ? Step::Kind::argmax : Step::Kind::reduce, id, sweep);
    step.op = node(id).op;
    step.axis = static_cast<int>(node(id).attr[0]);
    express(node(id).in[0], step, id);
    const Layout layout = sweep.layout.without(step.axis);
    step.out = value_[id] = new_value(name_of(id, name(node(id).op)), id, layout);
    if (step.kind == Step::Kind::argmax) {
      step.best = new_value(name_of(id, "best"), node(id).in[0], layout);
      plan_.values[static_cast<std::size_t>(step.best)].home = plan_.values[static_cast<std::size_t>(step.out)].home;
    }
    bool across_warps = false;
    for (const Factor& factor : sweep.layout.axis(step.axis)) across_warps |= factor.place == Place::warp;
    if (across_warps)
      step.scratch = new_partials(layout.registers(), node(node(id).in[0]).type, step.kind == Step::Kind::argmax);
    push(std::move(step));
  }
  // Room for what the threads of a block have, some registers at a time.
  int new_partials(int registers, ElementType type, bool with_index) {
    return new_scratch(std::int64_t(std::min(registers, most_partials)) * plan_.threads() * (with_index ? 2 : 1), type);
  }

  void through_scratch(Id id) {
    const Node& at = node(id);
    const Shape& shape = at.shape;
    Strides to = row_major(shape), from = to;
    switch (at.op) {
      case Op::reshape:
        if (only_unit_axes(node(at.in[0]).shape, shape) && is_bare(layouts_.of[at.in[0]], node(at.in[0]).shape) &&
            layouts_.of[id] == layouts_.of[at.in[0]].with_unit_axes(node(at.in[0]).shape, shape))
          return rename(id);
        to = row_major(node(at.in[0]).shape);
        break;
      case Op::permute:
        if (layouts_.of[id] == layouts_.of[at.in[0]].permuted(at.attr)) return rename(id);
        to = row_major(node(at.in[0]).shape);
        for (std::size_t i = 0; i < at.attr.size(); ++i) from[i] = to[static_cast<std::size_t>(at.attr[i])];
        break;
      default:
        break;
    }
    const int scratch = new_scratch(shape.size(), at.type);
    if (at.op == Op::concat) {
      const auto axis = static_cast<std::size_t>(at.attr[0]);
      std::int64_t base = 0;
      for (Id in : at.in) {
        put_value(value(in), in, to, base, scratch);
        base += node(in).shape[static_cast<int>(axis)] * to[axis];
      }
    } else {
      put_value(value(at.in[0]), at.in[0], to, 0, scratch);
    }
    if (at.op == Op::cumsum) {
      Step& scan = add(Step::Kind::scan, id);
      scan.scratch = scratch;
      scan.length = shape[static_cast<int>(at.attr[0])];
      scan.inner = static_cast<int>(to[static_cast<std::size_t>(at.attr[0])]);
      scan.lines = shape.size() / scan.length;
    }
    get(id, new_value(id), from, scratch);
  }
  // No axis of extent 1 is spread over anything: else it cannot go without a trace.
  static bool is_bare(const Layout& layout, const Shape& shape) {
    for (int axis = 0; axis < shape.rank(); ++axis)
      if (shape[axis] == 1 && !layout.axis(axis).empty()) return false;
    return true;
  }
  // The same registers under other axes.
  void rename(Id id) {
    Value value = plan_.values[static_cast<std::size_t>(this->value(node(id).in[0]))];
    const Layout& of_source = layouts_.of[node(id).in[0]];
    if (value.layout != of_source) value = plan_.values[static_cast<std::size_t>(value_in(node(id).in[0], of_source))];
    value.shape = node(id).shape;
    value.layout = layouts_.of[id];
    plan_.values.push_back(value);
    source_.push_back(node(id).in[0]);
    value_[id] = static_cast<ValueId>(plan_.values.size()) - 1;
  }

  // --- products

  struct Fetch {
    Id load;
    int row_axis, column_axis;  // of the load, or -1
    bool operator<(const Fetch& other) const {
      return std::tie(load, row_axis, column_axis) < std::tie(other.load, other.row_axis, other.column_axis);
    }
  };

  // Buffers of what products read as it lies in memory. Equal loads share one.
  void make_buffers() {
    for (Id id : by_number()) {
      if (node(id).op != Op::mma) continue;
      ProductPlan plan = products_.at(id);
      Product& product = plan.product;
      if (product.kind != ProductKind::thin) {
        const int k_step = product.kind == ProductKind::tensor ? 16 : 4;
        const int k = round_up(product.k, k_step);
        for (int side = 0; side < 2; ++side) {
          ProductOperand& operand = side ? product.b : product.a;
          const Source& source = side ? plan.b : plan.a;
          if (source.load == no_id) continue;
          const int k_axis = side ? 0 : 1, other = plan.layout.cover(side);
          const Fetch fetch{source.load, source.axis[operand.k_major ? 1 - k_axis : k_axis],
                            source.axis[operand.k_major ? k_axis : 1 - k_axis]};
          operand.buffer = buffer_for(fetch, operand.stored, operand.k_major ? other : k, operand.k_major ? k : other);
        }
      }
      planned_.emplace(id, std::move(plan));
    }
  }
  int buffer_for(const Fetch& fetch, ElementType stored, int rows, int columns) {
    columns = round_up(columns, 16 / info(stored).bytes);
    const auto found = fetches_.find(fetch);
    if (found != fetches_.end()) {
      Buffer& buffer = plan_.buffers[static_cast<std::size_t>(found->second)];
      buffer.rows = std::max(buffer.rows, rows);
      buffer.columns = std::max(buffer.columns, columns);
      return found->second;
    }
    plan_.buffers.push_back({.name = name_of(fetch.load, "tile"), .type = stored, .rows = rows, .columns = columns});
    if (fetches_of_.contains(fetch.load)) plan_.buffers.back().name += "_turned";
    const int buffer = static_cast<int>(plan_.buffers.size()) - 1;
    fetches_of_[fetch.load].push_back(fetch);
    return fetches_[fetch] = buffer;
  }

  Step fetch_step(const std::vector<Id>& loads) {
    Step step;
    step.kind = Step::Kind::fetch;
    step.node = loads[0];
    step.location = node(loads[0]).location;
    for (Id id : loads)
      for (const Fetch& fetch : fetches_of_.at(id)) {
        TileAccess access = access_of(id);
        // Rows first, columns last: the buffer's order.
        std::vector<int> order;
        for (int axis = 0; axis < static_cast<int>(access.axes.size()); ++axis)
          if (axis != fetch.row_axis && axis != fetch.column_axis) order.push_back(axis);
        const int fast = access.fast;
        const auto axes = access.axes;
        access.axes.clear();
        for (int axis : order) access.axes.push_back(axes[static_cast<std::size_t>(axis)]);
        // An axis that the product does not see has an extent of 1; so has its place in the buffer.
        TileAccess::Axis unit;
        unit.tensor_axis = -1;
        access.axes.push_back(fetch.row_axis >= 0 ? axes[static_cast<std::size_t>(fetch.row_axis)] : unit);
        access.axes.push_back(fetch.column_axis >= 0 ? axes[static_cast<std::size_t>(fetch.column_axis)] : unit);
        access.fast = fast >= 0 && fast == fetch.column_axis ? static_cast<int>(access.axes.size()) - 1 : -1;
        if (access.fast < 0) access.vector = 1;
        access.vector = std::min(access.vector, 16 / info(node(id).type).bytes);
        step.tiles.push_back(std::move(access));
        step.buffers.push_back(fetches_.at(fetch));
      }
    return step;
  }

  // Can a loop fetch it ahead: does its place follow from the counter and from what the loop does not change?
  bool known_ahead(Id id, RegionId loop) const {
    if (!facts_.in_region(id, loop)) return true;
    const Node& at = node(id);
    if (at.op == Op::argument) return at.region == loop && at.attr[0] == 0;
    const bool follows = (is_elementwise(at.op) && at.shape.rank() == 0) || at.op == Op::constant || is_view(at.op) ||
                         at.op == Op::extent || at.op == Op::block;
    return follows && std::all_of(at.in.begin(), at.in.end(), [&](Id in) { return known_ahead(in, loop); });
  }
  bool is_fetched_ahead(Id load) const {
    const RegionId region = node(load).region;
    if (!fetches_of_.contains(load) || facts_.graph.regions[region].kind != RegionKind::loop) return false;
    return std::all_of(node(load).in.begin(), node(load).in.end(), [&](Id in) { return known_ahead(in, region); });
  }

  void product(Id id) {
    ProductPlan& plan = planned_.at(id);
    Product& product = plan.product;
    const Node& at = node(id);
    if (product.kind == ProductKind::thin) return thin(id, plan);
    operand(id, at.in[0], product.a, product, true);
    operand(id, at.in[1], product.b, product, false);
    const ValueId out = start_product(id, plan.layout);
    Step& step = add(Step::Kind::product, id);
    step.out = out;
    step.layout = plan.layout;
    step.shape = at.shape;
    step.product = product;
  }

  // Adds up in the carried value itself where nobody needs the old one.
  bool in_place(Id id) const {
    const Node &at = node(id), &c = node(at.in[2]);
    if (c.op != Op::argument || c.attr[0] == 0 || c.region != at.region || facts_.users[at.in[2]].size() != 1)
      return false;
    if (facts_.graph.regions[at.region].yields[static_cast<std::size_t>(c.attr[0]) - 1] != id) return false;
    return plan_.values[static_cast<std::size_t>(value_[at.in[2]])].layout == planned_.at(id).layout;
  }
  ValueId start_product(Id id, const Layout& layout) {
    if (in_place(id)) return value_[id] = value_[node(id).in[2]];
    Step step = sweep_step(Step::Kind::compute, id, {node(id).shape, layout});
    express(node(id).in[2], step, id);
    step.out = value_[id] = new_value(name_of(id, "mma"), id, layout);
    plan_.values[static_cast<std::size_t>(step.out)].changes = true;
    const ValueId out = step.out;
    push(std::move(step));
    return out;
  }

  void operand(Id id, Id from, ProductOperand& operand, const Product& product, bool is_a) {
    if (operand.buffer >= 0) {
      const Buffer& buffer = plan_.buffers[static_cast<std::size_t>(operand.buffer)];
      if (buffer.stages > 1) operand.stage = stage_of_.at(operand.buffer);
      return;
    }
    const Layout registers = accumulator_layout({product.m, product.k}, product.warps_m, 1);
    const int step = product.type == ElementType::tf32 ? 8 : 16;
    if (is_a && product.kind == ProductKind::tensor && product.warps_n == 1 && product.k % step == 0 &&
        layouts_.of[from] == registers && !is_large(registers) && !in_memory_.values.contains(from) &&
        !in_memory_.left.contains(id) && std::int64_t(product.k) * product.n * 8 <= facts_.arch.shared_bytes()) {
      operand.value = value_in(from, registers);
      return;
    }
    // Through shared memory, row by row as the operand is written.
    const int k = round_up(product.k, product.kind == ProductKind::tensor ? 16 : 4);
    const int other = planned_.at(id).layout.cover(is_a ? 0 : 1);
    operand.k_major = is_a;
    operand.stored = product.type == ElementType::tf32 ? ElementType::f32 : product.type;
    operand.casts.clear();
    Buffer buffer{.name = name_of(from, is_a ? "left" : "right"),
                  .type = operand.stored,
                  .rows = is_a ? other : k,
                  .columns = round_up(is_a ? k : other, 16 / info(operand.stored).bytes)};
    buffer.name += fmt::format("_{}", facts_.number[id]);
    const bool padded = buffer.rows != node(from).shape[0] || buffer.columns != node(from).shape[1];
    plan_.buffers.push_back(buffer);
    operand.buffer = static_cast<int>(plan_.buffers.size()) - 1;
    if (padded) add(Step::Kind::clear, from).buffer = operand.buffer;
    Step stage = sweep_step(Step::Kind::stage, from, {node(from).shape, layouts_.of[from]});
    express(from, stage, no_id);
    stage.buffer = operand.buffer;
    push(std::move(stage));
  }

  void thin(Id id, ProductPlan& plan) {
    Product& product = plan.product;
    product.a.value = value_in(node(id).in[0], product.layout_a);
    product.b.value = value_in(node(id).in[1], product.layout_b);
    const bool spread = product.lanes_k || product.warps_k;
    ValueId out;
    if (!spread || product.partial) {
      out = start_product(id, plan.layout);
    } else {
      Step zero = sweep_step(Step::Kind::compute, id, {node(id).shape, plan.layout});
      zero.expression.terms.push_back({Op::broadcast, ElementType::f32, ElementType::f32, {literal(0)}});
      zero.out = out = new_value(name_of(id, "sums"), id, plan.layout);
      plan_.values[static_cast<std::size_t>(out)].changes = true;
      push(std::move(zero));
    }
    Step& step = add(Step::Kind::product, id);
    step.out = out;
    step.layout = plan.layout;
    step.shape = node(id).shape;
    step.product = product;
    if (!spread || product.partial) return;
    add_replicas(id, out, product);
    Step sum = sweep_step(Step::Kind::compute, id, {node(id).shape, plan.layout});
    std::map<Id, int> terms;
    reads_of_step_.clear();
    const Id c = node(id).in[2];
    const bool fused = root_[c] == id && is_elementwise(node(c).op);
    Operand addend = fused ? term(c, sum, id, terms) : resolve(c, sum, id, terms);
    const Operand total{.kind = Operand::Kind::value, .index = out, .map = register_map(plan.layout, plan.layout)};
    sum.expression.terms.push_back({Op::add, ElementType::f32, ElementType::f32, {total, std::move(addend)}});
    sum.out = value_[id] = new_value(name_of(id, "mma"), id, plan.layout);
    push(std::move(sum));
  }
  void add_replicas(Id id, ValueId out, const Product& product) {
    Step& step = add(Step::Kind::replicas, id);
    step.out = out;
    step.op = Op::sum;
    step.shape = node(id).shape;
    step.layout = plan_.values[static_cast<std::size_t>(out)].layout;
    step.replica_lanes = product.lanes_k;
    step.replica_warps = product.warps_k;
    step.kept = step.layout.registers();
    if (!product.warps_k) return;
    // Lanes that are to have the same sums share the work of adding up over warps.
    if (plan_.values[static_cast<std::size_t>(out)].home == Home::registers)
      for (int lanes = product.lanes_k; lanes != 0 && step.kept % 2 == 0; lanes &= lanes - 1) step.kept /= 2;
    step.scratch = new_partials(step.kept, ElementType::f32, false);
  }

  // --- control

  // Runs `inside` with its steps going to `steps`. What it makes is not visible outside.
  template <class Inside>
  void within(std::vector<Step>& steps, Inside&& inside) {
    std::vector<Step>* const outer = std::exchange(steps_, &steps);
    const auto moved = moved_;
    const auto values = value_;
    inside();
    value_ = values;
    moved_ = moved;
    steps_ = outer;
  }
  void lower_region(RegionId region) {
    for (Id id : facts_.order[region]) lower(id);
  }

  const Product* partial_product(Id loop, std::size_t k) const {
    const Id yield = facts_.graph.regions[static_cast<RegionId>(node(loop).attr[0])].yields[k];
    const auto found = products_.find(yield);
    return found != products_.end() && found->second.product.partial ? &found->second.product : nullptr;
  }

  void loop(Id id) {
    const Node& at = node(id);
    const auto region = static_cast<RegionId>(at.attr[0]);
    const Region& body = facts_.graph.regions[region];
    // Carried values start.
    std::vector<ValueId> carried;
    for (std::size_t k = 1; k < at.in.size(); ++k) {
      const Id argument = body.arguments[k];
      Step step = sweep_step(Step::Kind::compute, id, {node(argument).shape, layouts_.of[argument]});
      express(at.in[k], step, no_id);
      if (const Product* product = partial_product(id, k - 1)) {
        step.replica_lanes = product->lanes_k;
        step.replica_warps = product->warps_k;
      }
      step.out = value_[argument] = new_value(name_of(argument, "carry"), argument, layouts_.of[argument]);
      plan_.values[static_cast<std::size_t>(step.out)].changes = true;
      carried.push_back(step.out);
      push(std::move(step));
    }
    const std::string counter = name_of(body.arguments[0], "i");
    named(body.arguments[0], counter);
    const Operand count = scalar(at.in[0]);

    Step step;
    step.kind = Step::Kind::loop;
    step.node = id;
    step.location = at.location;
    step.counter = counter;
    step.count = count;
    fetch_ahead(region, step);
    within(step.body, [&] {
      lower_region(region);
      move_on(id, carried);
    });
    steps_->push_back(std::move(step));
    // What a thread has of a sum that its loop left apart becomes the sum.
    for (std::size_t k = 0; k < carried.size(); ++k)
      if (const Product* product = partial_product(id, k)) {
        const Id yield = body.yields[k];
        add_replicas(yield, carried[k], *product);
      }
    carried_[id] = carried;
  }

  // A value that no memory or register holds.
  bool is_virtual(Id id) const {
    while (node(id).op == Op::broadcast) id = node(id).in[0];
    return node(id).op == Op::constant || node(id).op == Op::iota;
  }
  // The loop's yields become its carried values, all at once.
  void move_on(Id loop, const std::vector<ValueId>& carried) {
    const Region& body = facts_.graph.regions[static_cast<RegionId>(node(loop).attr[0])];
    std::vector<ValueId> source(carried.size(), -1);
    for (std::size_t k = 0; k < carried.size(); ++k) {
      const Id yield = body.yields[k];
      if (is_virtual(yield)) continue;
      source[k] = value_in(yield, plan_.values[static_cast<std::size_t>(carried[k])].layout);
    }
    // One that another copy overwrites is saved first.
    for (std::size_t k = 0; k < carried.size(); ++k)
      for (std::size_t j = 0; j < k; ++j)
        if (source[k] >= 0 && source[j] != carried[j] &&
            plan_.values[static_cast<std::size_t>(source[k])].name ==
                plan_.values[static_cast<std::size_t>(carried[j])].name) {
          const Id yield = body.yields[k];
          const ValueId saved = new_value(name_of(loop, fmt::format("next{}", k)), yield,
                                          plan_.values[static_cast<std::size_t>(source[k])].layout);
          copy_value(yield, source[k], saved);
          source[k] = saved;
          break;
        }
    for (std::size_t k = 0; k < carried.size(); ++k) {
      const Id yield = body.yields[k];
      if (source[k] < 0) {
        Step step = sweep_step(Step::Kind::compute, yield,
                               {node(yield).shape, plan_.values[static_cast<std::size_t>(carried[k])].layout});
        express(yield, step, no_id);
        step.out = carried[k];
        push(std::move(step));
      } else if (source[k] != carried[k]) {
        copy_value(yield, source[k], carried[k]);
      }
    }
  }
  void copy_value(Id id, ValueId from, ValueId to) {
    const Value& value = plan_.values[static_cast<std::size_t>(from)];
    Step step = sweep_step(Step::Kind::compute, id, {value.shape, value.layout});
    step.expression.terms.push_back(
        {Op::broadcast,
         value.type,
         value.type,
         {{.kind = Operand::Kind::value, .index = from, .map = register_map(value.layout, value.layout)}}});
    step.out = to;
    push(std::move(step));
  }

  // Loads for products whose place is known ahead are fetched some iterations before they are used.
  void fetch_ahead(RegionId region, Step& loop) {
    std::vector<Id> loads;
    for (Id id : facts_.order[region])
      if (node(id).op == Op::load && is_fetched_ahead(id)) loads.push_back(id);
    if (loads.empty()) return;
    std::int64_t all = 0, bytes = 0;
    for (const Buffer& buffer : plan_.buffers) all += buffer.bytes();
    for (Id id : loads)
      for (const Fetch& fetch : fetches_of_.at(id))
        bytes += plan_.buffers[static_cast<std::size_t>(fetches_.at(fetch))].stage_bytes();
    const std::int64_t others = all - bytes, room = facts_.arch.shared_bytes() - 4096;
    for (int stages = 4; stages > 1; --stages)
      if (others + bytes * stages <= (stages > 2 ? room / 2 : room)) {
        loop.stages = stages;
        break;
      }
    if (loop.stages == 1) return;
    for (Id id : loads)
      for (const Fetch& fetch : fetches_of_.at(id)) {
        const int buffer = fetches_.at(fetch);
        plan_.buffers[static_cast<std::size_t>(buffer)].stages = loop.stages;
        stage_of_[buffer] = loop.counter;
      }
    // The places of iteration `counter`, computed apart from the loop's body.
    within(loop.ahead, [&] {
      for (Id id : facts_.order[region])
        if (node(id).shape.rank() == 0 && is_elementwise(node(id).op) && known_ahead(id, region)) compute(id);
      Step fetch = fetch_step(loads);
      fetch.counter = loop.counter;
      fetch.stages = loop.stages;
      steps_->push_back(std::move(fetch));
    });
    ahead_.insert(loads.begin(), loads.end());
  }

  void compute(Id id) {
    Step step = sweep_step(Step::Kind::compute, id, {node(id).shape, layouts_.of[id]});
    express(id, step, id);
    step.out = new_value(id);
    push(std::move(step));
  }

  void lower(Id id) {
    const Node& at = node(id);
    if (is_elementwise(at.op)) {
      if (root_[id] == id && !absorbed_[id]) compute(id);
      return;
    }
    if (is_reduction(at.op) || at.op == Op::argmax) return reduce(id);
    switch (at.op) {
      case Op::scalar:
        named(id, fmt::format("scalar{}", at.attr[0]));
        return;
      case Op::extent:
        named(id, fmt::format("{}_extent{}", tensor_name(view_parameter(facts_.graph, at.in[0])), at.attr[0]));
        return;
      case Op::block:
        named(id, fmt::format("block{}", at.attr[0]));
        return;
      case Op::load:
        if (fetches_of_.contains(id) && !ahead_.contains(id)) {
          steps_->push_back(fetch_step({id}));
          add(Step::Kind::wait, id);
        }
        [[fallthrough]];
      case Op::gather:
        if (!absorbed_[id] && (at.ordered || !is_large(layouts_.of[id]))) load(id);
        return;
      case Op::store:
      case Op::scatter:
      case Op::atomic_add:
        return write(id);
      case Op::reshape:
      case Op::permute:
        if (absorbed_[id]) return;
        [[fallthrough]];
      case Op::concat:
      case Op::cumsum:
        return through_scratch(id);
      case Op::mma:
        return product(id);
      case Op::loop:
        return loop(id);
      case Op::result:
        value_[id] = carried_.at(at.in[0])[static_cast<std::size_t>(at.attr[0])];
        return;
      case Op::branch: {
        Step step;
        step.kind = Step::Kind::branch;
        step.node = id;
        step.location = at.location;
        step.count = scalar(at.in[0]);
        within(step.body, [&] { lower_region(static_cast<RegionId>(at.attr[0])); });
        steps_->push_back(std::move(step));
        return;
      }
      default:
        return;  // constants, iotas and broadcasts are part of expressions, views of accesses; the host checked require
    }
  }
  std::string tensor_name(int parameter) const {
    constexpr std::string_view access[] = {"in", "out", "inout", "scalar"};
    return fmt::format("{}{}",
                       access[static_cast<int>(facts_.graph.parameters[static_cast<std::size_t>(parameter)].access)],
                       parameter);
  }

  const Facts& facts_;
  const std::map<Id, ProductPlan>& products_;
  const Layouts& layouts_;
  const int most_registers_;
  const InMemory& in_memory_;
  Plan& plan_;
  std::vector<Step>* steps_ = nullptr;
  std::vector<ValueId> value_;  // of a node
  std::vector<Id> source_;      // of a value: its node
  std::vector<Id> root_;
  std::vector<char> absorbed_;
  std::vector<Id> reads_of_step_;
  std::map<std::pair<ValueId, std::string>, ValueId> moved_;
  int moves_ = 0;
  std::map<Id, ProductPlan> planned_;
  std::map<Fetch, int> fetches_;
  std::map<Id, std::vector<Fetch>> fetches_of_;
  std::map<int, std::string> stage_of_;  // buffer -> counter of its loop
  std::set<Id> ahead_;
  std::map<Id, std::vector<ValueId>> carried_;
  std::set<Id> must_be_in_memory_;
};

}  // namespace

std::set<Id> lower(const Facts& facts, const std::map<Id, ProductPlan>& products, const Layouts& layouts,
                   int most_registers, const InMemory& in_memory, Plan& plan) {
  return Lowering(facts, products, layouts, most_registers, in_memory, plan).run();
}

}  // namespace tessera::lowering
