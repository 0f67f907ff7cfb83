// Layouts against shapes, expressions, and values that are defined before they are used.
#include <bit>
#include <set>

#include "codegen/plan/verify/part_places.hpp"
#include "codegen/plan/verify/verify.hpp"

namespace tessera::internal::codegen {
namespace {

class Values {
 public:
  explicit Values(Diagnostics& diagnostics) : diagnostics_(diagnostics), plan_(diagnostics.plan) {}

  void run() {
    for (int i = 0; i < plan_.values.size(); ++i) value(ValueId{i});
    for (const Phase& phase : plan_.phases)
      for (const Role& role : phase.roles) {
        phase_ = &phase;
        role_ = &role;
        made_ = {};
        reserved_ = {};
        body(role.body);
      }
    diagnostics_.about(nullptr);
  }

 private:
  void value(ValueId id) {
    const Value& value = plan_.values[id];
    const Storage& storage = plan_.storages[value.storage];
    const std::string name = name_of(plan_, id);
    int most = 0;
    for (const Phase& phase : plan_.phases)
      for (const Role& role : phase.roles) most = std::max(most, role.warps);
    covers(name, value.layout, value.shape, most);
    diagnostics_.require(value.layout.registers() == storage.registers,
                         "the layout of {} has {} registers, its storage {}", name, value.layout.registers(),
                         storage.registers);
    diagnostics_.require(storage.storage_class != StorageClass::variable || storage.registers == 1,
                         "{} is a variable, but has {} elements", name, storage.registers);
    diagnostics_.require(
        storage.packed == 1 ||
            (storage.storage_class == StorageClass::registers && info(storage.type).bytes * storage.packed == 4 &&
             value.layout.rank() > 0 && value.layout.run(value.layout.rank() - 1) == storage.packed),
        "{} does not hold {} elements in each register", name, storage.packed);
    const bool in_memory =
        storage.storage_class == StorageClass::shared || storage.storage_class == StorageClass::workspace;
    diagnostics_.require(!in_memory || (storage.vector >= 1 && storage.registers % storage.vector == 0),
                         "{} registers of {} are not whole vectors of {}", storage.registers, name, storage.vector);
  }

  // The digits of lanes, warps and registers address each element once.
  void covers(const std::string& name, const Layout& layout, const Shape& shape, int most_warps) {
    std::vector<Factor> registers;
    int lanes = 0, warps = 0, last_warp = 0;
    for (int axis = 0; axis < layout.rank(); ++axis) {
      diagnostics_.require(layout.cover(axis) >= shape[axis], "the layout of {} covers {} of {} along axis {}", name,
                           layout.cover(axis), shape[axis], axis);
      for (const Factor& factor : layout.axis(axis)) {
        if (factor.place == Place::reg) {
          registers.push_back(factor);
          continue;
        }
        // The outermost factor of warps need not be a power of two: no warps follow it.
        const bool last = factor.place == Place::warp && factor.size * factor.unit == most_warps;
        const bool power = (last || std::has_single_bit(static_cast<unsigned>(factor.size))) &&
                           std::has_single_bit(static_cast<unsigned>(factor.unit));
        diagnostics_.require(power, "the layout of {} spreads {} over threads in steps of {}", name, factor.size,
                             factor.unit);
        int& used = factor.place == Place::lane ? lanes : warps;
        const int bits = (static_cast<int>(std::bit_ceil(static_cast<unsigned>(factor.size))) - 1) * factor.unit;
        diagnostics_.require((used & bits) == 0, "two digits of the layout of {} use the same threads", name);
        used |= bits;
        if (factor.place == Place::warp) last_warp += (factor.size - 1) * factor.unit;
      }
    }
    diagnostics_.require(lanes < 32, "the layout of {} needs more than 32 lanes", name);
    diagnostics_.require(last_warp < most_warps, "the layout of {} needs more warps than a role has", name);
    std::sort(registers.begin(), registers.end(), [](const Factor& a, const Factor& b) { return a.unit < b.unit; });
    int unit = 1;
    for (const Factor& factor : registers) {
      diagnostics_.require(factor.unit == unit, "the registers of {} are not numbered without gaps", name);
      unit = factor.unit * factor.size;
    }
  }

  // --- scopes: values defined in a body are not available after it

  void body(const Body& steps) {
    std::vector<StorageId> here;
    for (const Step& step : steps) {
      diagnostics_.about(&step);
      for (ValueId id : operands(step)) {
        available(id, "read");
        diagnostics_.require(!reserved_.contains(plan_.values[id].storage), "{} is read before it is set",
                             name_of(plan_, id));
      }
      reserved(step);
      const bool adds = step.action.is<LaneReduce>() || step.action.is<Mma>() || step.action.is<Wgmma>() ||
                        step.action.is<PromoteSums>() || step.action.is<ReducePartials>() ||
                        step.action.is<AddScanPrefix>();
      for (ValueId id : results(step)) {
        if (adds) available(id, "accumulated to");
        const StorageId storage = plan_.values[id].storage;
        diagnostics_.require(std::holds_alternative<std::monostate>(plan_.storages[storage].known), "{} is written",
                             name_of(plan_, id));
        if (made_.insert(storage).second)
          here.push_back(storage);
        else
          diagnostics_.require(plan_.storages[storage].changes || is_partial(step),
                               "{} is defined twice, but not marked as changing", name_of(plan_, id));
      }
      sweeps(step);
      each_access(step, [&](const TileAccess& access, const Sweep* sweep) { this->access(access, sweep); });
      if (const Branch* branch = step.action.as<Branch>()) single(branch->condition, ElementType::pred);
      if (const HostReport* tell = step.action.as<HostReport>()) {
        if (tell->unless) single(*tell->unless, ElementType::pred);
        for (const Operand& index : tell->block) single(index, ElementType::i32);
      }
      if (const Loop* loop = step.action.as<Loop>()) {
        single(loop->count, loop->repeats ? ElementType::pred : ElementType::i32);
        counters_.insert(loop->loop);
      }
      each_body(step, [&](const Body& inner) { body(inner); });
      if (const Loop* loop = step.action.as<Loop>()) counters_.erase(loop->loop);
    }
    for (StorageId storage : here) made_.erase(storage);
  }
  void reserved(const Step& step) {
    if (const DeclareAccumulator* reserve = step.action.as<DeclareAccumulator>(); reserve && !reserve->zeroed)
      reserved_.insert(plan_.values[reserve->value].storage);
    if (const Compute* compute = step.action.as<Compute>()) reserved_.erase(plan_.values[compute->out].storage);
    if (const LoadFragment* load = step.action.as<LoadFragment>()) reserved_.erase(plan_.values[load->out].storage);
    if (const Wgmma* matmul = step.action.as<Wgmma>()) {
      const bool was = reserved_.erase(plan_.values[matmul->out].storage) != 0;
      diagnostics_.require(!matmul->overwrites_first || counters_.contains(matmul->overwrites_first),
                           "it refers to a loop that it is not in");
      diagnostics_.require(!was || matmul->overwrites_first || matmul->overwrites,
                           "{} is accumulated to before it is set", name_of(plan_, matmul->out));
    }
  }
  static bool is_partial(const Step& step) {
    return step.action.is<CrossWarpReduce>() || step.action.is<ReduceWarpPartials>() || step.action.is<AddScanPrefix>();
  }
  void available(ValueId id, std::string_view how) {
    const Storage& storage = plan_.storage(id);
    if (const Counter* counter = std::get_if<Counter>(&storage.known))
      diagnostics_.require(counters_.contains(counter->loop), "{} is {} outside of its loop", name_of(plan_, id), how);
    else if (const BlockIndex* block = std::get_if<BlockIndex>(&storage.known))
      diagnostics_.require(block->axis >= phase_->first_axis && block->axis < phase_->first_axis + phase_->axes,
                           "{} is {} in a phase with another grid", name_of(plan_, id), how);
    else if (std::holds_alternative<std::monostate>(storage.known))
      diagnostics_.require(made_.contains(plan_.values[id].storage), "{} is {} before it is defined",
                           name_of(plan_, id), how);
  }

  // --- sweeps

  void sweeps(const Step& step) {
    visit_kind(
        Overloaded{
            [&](const Compute& s) {
      expression(s.sweep, plan_.storage(s.out).type);
      same(s.sweep, s.out);
      const int packed = plan_.storage(s.out).packed;
      diagnostics_.require(packed == 1 || (packed == 2 && s.sweep.vector == 2 && s.sweep.reads.empty()),
                           "{} elements for a register are computed {} at a time, from {} tiles", packed,
                           s.sweep.vector, s.sweep.reads.size());
      const Layout& layout = plan_.values[s.out].layout;
      diagnostics_.require(
          (s.zero_lanes & ~layout.lane_copies()) == 0 && (s.zero_warps & ~layout.warp_copies(role_->warps)) == 0,
          "it is 0 where lanes & {}, warps & {}, which hold different elements", s.zero_lanes, s.zero_warps);
    },
            [&](const Load& s) {
      shape_of(s.sweep);
      same(s.sweep, s.out);
      of_type(plan_.tensors[static_cast<std::size_t>(s.access.parameter)].type, plan_.storage(s.out).type);
    },
            [&](const Store& s) {
      expression(s.sweep, plan_.tensors[static_cast<std::size_t>(s.access.parameter)].type);
    },
            [&](const Atomic& s) {
      const ElementType type = plan_.tensors[static_cast<std::size_t>(s.access.parameter)].type;
      diagnostics_.require(is_atomic(s.op) && accepts(s.op, type), "'{}' cannot update {}", name(s.op), name(type));
      diagnostics_.require(s.expected.has_value() == (s.op == Op::atomic_compare_exchange),
                           "'{}' and an expected value do not match", name(s.op));
      expression(s.sweep, type);
      if (s.expected) operand(s.sweep, *s.expected);
      if (!s.out) return;
      same(s.sweep, s.out);
      of_type(type, plan_.storage(s.out).type);
    },
            [&](const Reduce& s) {
      expression(s.sweep, plan_.storage(s.out).type);
      without(s.sweep, s.axis, s.out);
      diagnostics_.require(is_reduction(s.op), "'{}' is not a reduction", name(s.op));
      diagnostics_.require(!s.partial || s.op == Op::sum, "partial results of '{}' stay apart", name(s.op));
      across(s.across, s.partial ? 0 : s.sweep.layout.bits_along(s.axis, Place::warp), s.out, {}, s.op,
             plan_.storage(s.out).registers);
    },
            [&](const Argmax& s) {
      expression(s.sweep, plan_.storage(s.best).type);
      without(s.sweep, s.axis, s.out);
      without(s.sweep, s.axis, s.best);
      of_type(ElementType::i32, plan_.storage(s.out).type);
      across(s.across, s.sweep.layout.bits_along(s.axis, Place::warp), s.out, s.best, Op::argmax,
             plan_.storage(s.out).registers);
    },
            [&](const LaneReduce& s) { replicas(s); },
            [&](const CrossWarpReduce& s) {
      diagnostics_.require(s.chunk >= 1 && s.chunk <= s.registers && s.registers <= plan_.storage(s.out).registers,
                           "{} registers, {} per pass, of {}", s.registers, s.chunk, plan_.storage(s.out).registers);
    },
            []<class T>(const T&) { static_assert(!requires(T s) { s.sweep; }, "do the layouts of this kind fit?"); },
            [&](const Scan& s) {
      expression(s.sweep, plan_.storage(s.out).type);
      same(s.sweep, s.out);
      line(s.out, s.axis);
      diagnostics_.require(is_reduction(s.by.op), "'{}' is not a reduction", name(s.by.op));
    },
            [&]<OneOf<WriteScanTotals, AddScanPrefix> T>(const T& s) {
      line(s.out, s.axis);
      of_type(plan_.scratch[s.scratch].type, plan_.storage(s.out).type);
    },
            [&](const Sort& s) {
      expression(s.sweep, plan_.storage(s.out).type);
      for (const ValueId id : results(step)) rolled(s.sweep, id);
    },
            [&](const Merge& s) {
      expression(s.sweep, plan_.scratch[s.from].type);
      if (s.at) rolled(s.sweep, s.at);
    },
            [&](const HistogramUpdate& s) { expression(s.sweep, plan_.scratch[s.scratch].type); },
            [&](const HistogramReduce& s) {
      shape_of(s.sweep);
      same(s.sweep, s.out);
      of_type(plan_.scratch[s.scratch].type, plan_.storage(s.out).type);
    },
            [&](const StoreScratch& s) { expression(s.sweep, plan_.scratch[s.scratch].type); },
            [&](const LoadScratch& s) {
      shape_of(s.sweep);
      for (const Picked& axis : s.picked) single(axis.first, ElementType::i32);
      same(s.sweep, s.out);
      of_type(plan_.scratch[s.scratch].type, plan_.storage(s.out).type);
    },
            [&](const GatherScratch& s) {
      expression(s.sweep, ElementType::i32);
      same(s.sweep, s.out);
      of_type(plan_.scratch[s.scratch].type, plan_.storage(s.out).type);
    },
            [&](const StoreShared& s) { expression(s.sweep, plan_.buffers[s.buffer].type); },
            [&](const LoadFragment& s) {
      shape_of(s.sweep);
      same(s.sweep, s.out);
      const ElementType from = plan_.buffers[s.buffer].type, to = plan_.storage(s.out).type;
      const bool bytes = from == ElementType::i8 || from == ElementType::u8;
      if (s.to_reals)
        diagnostics_.require(bytes && info(to).kind == ElementKind::real && host_type(to) == HostType::f32,
                             "{} become {}", name(from), name(to));
      else
        of_type(from, to);
      diagnostics_.require(s.sweep.origin == plan_.values[s.out].origin, "{} is another part of the tile",
                           name_of(plan_, s.out));
    },
        },
        step.action);
  }
  void line(ValueId out, int axis) {
    const Value& value = plan_.values[out];
    diagnostics_.require(axis < value.shape.rank() && line_of(value.layout, axis),
                         "a scan runs along axis {} of {}, whose layout is {}", axis, name_of(plan_, out),
                         to_string(value.layout));
  }
  void shape_of(const Sweep& sweep) {
    covers("the sweep", sweep.layout, sweep.shape, role_->warps);
    diagnostics_.require(sweep.layout.registers() % std::max(sweep.vector, 1) == 0 && sweep.vector >= 1,
                         "{} registers are not whole vectors of {}", sweep.layout.registers(), sweep.vector);
  }
  void of_type(ElementType given, ElementType result) {
    diagnostics_.require(given == result, "the elements are {}, the result is {}", name(given), name(result));
  }
  void same(const Sweep& sweep, ValueId out) {
    const Value& value = plan_.values[out];
    diagnostics_.require(value.shape == sweep.shape && value.layout == sweep.layout,
                         "the sweep is over {} {}, but {} is {} {}", to_string(sweep.shape), to_string(sweep.layout),
                         name_of(plan_, out), to_string(value.shape), to_string(value.layout));
    rolled(sweep, out);
  }
  void without(const Sweep& sweep, int axis, ValueId out) {
    const Value& value = plan_.values[out];
    diagnostics_.require(value.layout == sweep.layout.without(axis), "{} is {}, which is not {} without axis {}",
                         name_of(plan_, out), to_string(value.layout), to_string(sweep.layout), axis);
    diagnostics_.require(value.shape.rank() == sweep.shape.rank() && value.shape[axis] == 1,
                         "{} does not keep axis {} with extent 1", name_of(plan_, out), axis);
    rolled(sweep, out);
  }

  // --- cross-warp reductions: all registers of the result, over all warps that have partials, once

  void across(const Body& across, int warps, ValueId out, ValueId best, Op op, int registers) {
    diagnostics_.require((warps != 0) == !across.empty(), "warps & {} hold partials, but {}", warps,
                         across.empty() ? "do not reduce them" : "reduce some");
    if (across.empty()) return;
    const CrossWarpReduce* const partials = across.front().action.as<CrossWarpReduce>();
    diagnostics_.require(partials && across.size() == 1, "warps reduce partials by steps other than CrossWarpReduce");
    if (!partials) return;
    diagnostics_.require(partials->out == out && partials->registers == registers,
                         "{} registers of {} are reduced, but there are {} of {}", partials->registers,
                         name_of(plan_, partials->out), registers, name_of(plan_, out));
    const auto same = [&](const auto& part) {
      diagnostics_.require(
          part.out == out && part.best == best && part.registers == registers && part.chunk == partials->chunk,
          "a pass reduces other registers than its own");
      of_type(plan_.scratch[part.scratch].type, plan_.storage(best ? best : out).type);
    };
    const StoreWarpPartials* put = nullptr;
    const ReduceWarpPartials* take = nullptr;
    for (const Step& step : partials->per_chunk) {
      const StoreWarpPartials* const puts = step.action.as<StoreWarpPartials>();
      const ReduceWarpPartials* const takes = step.action.as<ReduceWarpPartials>();
      if (puts) {
        diagnostics_.require(!put && !take, "a pass stores its partials twice or too late");
        same(*(put = puts));
      } else if (takes) {
        diagnostics_.require(put && !take && takes->scratch == put->scratch,
                             "a pass reads partials that it has not stored");
        same(*(take = takes));
        diagnostics_.require(takes->warps == warps, "partials of warps & {} are read, but warps & {} have some",
                             takes->warps, warps);
        diagnostics_.require(takes->op == op, "partials of '{}' are reduced by '{}'", name(op), name(takes->op));
      } else {
        diagnostics_.require(step.action.is<Barrier>(), "a pass must store partials and read them");
      }
    }
    diagnostics_.require(put && take, "a pass must store partials and read them");
  }
  void replicas(const LaneReduce& s) {
    const int copies = plan_.values[s.out].layout.lane_copies();
    diagnostics_.require((s.lanes & ~copies) == 0, "lanes & {} hold different elements, not partials of the same ones",
                         s.lanes);
    const int warps = plan_.values[s.out].layout.warp_copies(role_->warps);
    diagnostics_.require((s.warps & ~warps) == 0, "warps & {} hold different elements, not partials of the same ones",
                         s.warps);
    across(s.across, s.warps, s.out, {}, Op::sum, s.kept);
    const int registers = plan_.storage(s.out).registers;
    diagnostics_.require(s.kept >= 1 && registers % s.kept == 0 &&
                             registers / s.kept <= 1 << std::popcount(static_cast<unsigned>(s.lanes)),
                         "{} of {} registers are kept per lane, with lanes & {}", s.kept, registers, s.lanes);
  }
  void rolled(const Sweep& sweep, ValueId id) {
    diagnostics_.require(sweep.unrolled || plan_.storage(id).storage_class != StorageClass::registers,
                         "{} is in registers, but the sweep is not unrolled", name_of(plan_, id));
  }

  void expression(const Sweep& sweep, std::optional<ElementType> result) {
    shape_of(sweep);
    diagnostics_.require(!sweep.expression.terms.empty(), "the step has no expression");
    for (const Term& term : sweep.expression.terms) {
      this->term(sweep, term);
      for (const Operand& operand : term.in) this->operand(sweep, operand);
    }
    if (result && !sweep.expression.terms.empty())
      diagnostics_.require(host_type(sweep.expression.terms.back().type) == host_type(*result),
                           "the expression is {}, the result is {}", name(sweep.expression.terms.back().type),
                           name(*result));
  }
  void term(const Sweep& sweep, const Term& term) {
    const bool copies = term.op == Op::broadcast;
    if (!copies && !is_elementwise(term.op) && term.op != Op::extent)
      return diagnostics_.require(false, "'{}' is not a valid term", name(term.op));
    const bool custom = term.op == Op::custom;
    if (custom && (term.function < 0 || term.function >= std::ssize(plan_.functions)))
      return diagnostics_.require(false, "a custom op calls function {}, which does not exist", term.function);
    const std::size_t operands =
        copies   ? 1
        : custom ? static_cast<std::size_t>(plan_.functions[static_cast<std::size_t>(term.function)].operands)
                 : info(term.op).in.count;
    diagnostics_.require(term.in.size() == operands, "'{}' has {} operands", name(term.op), term.in.size());
    diagnostics_.require(accepts(term.op, term.operand), "'{}' does not take {}", name(term.op), name(term.operand));
    const bool gives =
        term.op == Op::cast ||
        (term.op == Op::bitcast ? bitcasts(term.operand, term.type) : term.type == result_type(term.op, term.operand));
    diagnostics_.require(gives, "'{}' of {} does not return {}", name(term.op), name(term.operand), name(term.type));
    for (std::size_t i = 0; i < term.in.size(); ++i) {
      const ElementType wanted = term.op == Op::select && i == 0 ? ElementType::pred : term.operand;
      const std::optional<ElementType> given = type_of(sweep, term.in[i]);
      if (given)
        diagnostics_.require(*given == wanted, "'{}' takes {}, but gets {}", name(term.op), name(wanted), name(*given));
    }
  }
  std::optional<ElementType> type_of(const Sweep& sweep, const Operand& operand) const {
    switch (operand.kind) {
      case Operand::Kind::term:
        return sweep.expression.terms[static_cast<std::size_t>(operand.index)].type;
      case Operand::Kind::value:
        return plan_.storage(operand.value).type;
      case Operand::Kind::fetched: {
        const TileAccess& read = sweep.reads[static_cast<std::size_t>(operand.index)];
        return plan_.tensors[static_cast<std::size_t>(read.parameter)].type;
      }
      case Operand::Kind::literal:
        return std::nullopt;
      case Operand::Kind::coordinate:
        return ElementType::i32;
    }
    return std::nullopt;
  }
  void operand(const Sweep& sweep, const Operand& operand) {
    if (operand.kind != Operand::Kind::value) return;
    const Value& value = plan_.values[operand.value];
    rolled(sweep, operand.value);
    diagnostics_.require(plan_.storages[value.storage].packed == 1,
                         "{} has several elements in a register, which only wgmma may read",
                         name_of(plan_, operand.value));
    if (value.layout.rank() > sweep.layout.rank())
      return diagnostics_.require(false, "{} has more axes than the sweep", name_of(plan_, operand.value));
    if (sweep.part)
      return diagnostics_.require(reads_own_places(plan_, sweep, operand), "registers of {} are mapped to wrong ones",
                                  name_of(plan_, operand.value));
    diagnostics_.require(!operand.twice, "{} is half a part", name_of(plan_, operand.value));
    for (int i = 1; i <= value.shape.rank(); ++i) {
      const int extent = value.shape[value.shape.rank() - i];
      diagnostics_.require(extent == 1 || extent == sweep.shape[sweep.shape.rank() - i],
                           "{} is {}, which cannot be broadcast to {}", name_of(plan_, operand.value),
                           to_string(value.shape), to_string(sweep.shape));
    }
    diagnostics_.require(value.layout.spreads_as(sweep.layout.of_operand(value.shape, sweep.shape)),
                         "{} has layout {}, but the sweep has {}", name_of(plan_, operand.value),
                         to_string(value.layout), to_string(sweep.layout));
    diagnostics_.require(operand.map == register_map(value.layout, sweep.layout),
                         "registers of {} are mapped to wrong ones", name_of(plan_, operand.value));
  }

  // --- accesses

  void access(const TileAccess& access, const Sweep* sweep) {
    if (access.member) single(*access.member, ElementType::i32);
    for (const TileAccess::Axis& axis : access.axes) {
      single(axis.index, ElementType::i32);
      if (axis.element && sweep) element(*axis.element, *sweep);
      for (const TileAccess::Slice& slice : axis.slices) {
        single(slice.start, ElementType::i32);
        single(slice.extent, ElementType::i32);
      }
    }
    if (access.rows && sweep) rows(access, *sweep);
  }
  void element(const Operand& of, const Sweep& sweep) {
    diagnostics_.require(of.kind != Operand::Kind::term && of.kind != Operand::Kind::fetched,
                         "a position that the step itself computes or reads");
    if (of.kind == Operand::Kind::value)
      diagnostics_.require(plan_.storage(of.value).type == ElementType::i32, "{} is {}, but positions are i32",
                           name_of(plan_, of.value), name(plan_.storage(of.value).type));
    operand(sweep, of);
  }
  void single(const Operand& operand, ElementType type) {
    if (operand.kind != Operand::Kind::value) return;
    diagnostics_.require(plan_.values[operand.value].shape.size() == 1 && plan_.storage(operand.value).registers == 1,
                         "{} is not a single element", name_of(plan_, operand.value));
    diagnostics_.require(plan_.storage(operand.value).type == type, "{} is {}, not {}", name_of(plan_, operand.value),
                         name(plan_.storage(operand.value).type), name(type));
  }
  // Rows are indexed along the tile's first axis. If the tile is broadcast along it, there is one row.
  void rows(const TileAccess& access, const Sweep& sweep) {
    const Value& rows = plan_.values[access.rows];
    rolled(sweep, access.rows);
    if (rows.shape.rank() != 1)
      return diagnostics_.require(false, "rows are indexed by {}, which is not one-dimensional",
                                  name_of(plan_, access.rows));
    const int first = sweep.shape.rank() - static_cast<int>(access.axes.size());
    const bool stretched = access.axes[0].extent != sweep.shape[first];
    Layout along = sweep.layout;
    for (int axis = 0; axis < sweep.shape.rank(); ++axis)
      if (axis != first || stretched) along = along.without(axis);
    diagnostics_.require(rows.shape[0] == access.axes[0].extent && rows.layout.axis(0) == along.axis(first),
                         "{} does not have the layout of the rows of the sweep", name_of(plan_, access.rows));
    diagnostics_.require(access.rows_map == register_map(along, sweep.layout),
                         "registers of {} are mapped to wrong ones", name_of(plan_, access.rows));
  }

  Diagnostics& diagnostics_;
  const Plan& plan_;
  const Phase* phase_ = nullptr;
  const Role* role_ = nullptr;
  std::set<StorageId> made_;
  std::set<StorageId> reserved_;  // declared, and not yet set
  std::set<LoopId> counters_;
};

}  // namespace

void check_values(Diagnostics& diagnostics) { Values(diagnostics).run(); }

}  // namespace tessera::internal::codegen
