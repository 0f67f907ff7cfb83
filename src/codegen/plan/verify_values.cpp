// Layouts against shapes, expressions, and values that are there where they are named.
#include <bit>
#include <set>

#include "codegen/plan/verify.hpp"

namespace tessera::codegen {
namespace {

class Values {
 public:
  explicit Values(Findings& findings) : findings_(findings), plan_(findings.plan) {}

  void run() {
    for (int i = 0; i < plan_.values.size(); ++i) value(ValueId{i});
    for (const Phase& phase : plan_.phases)
      for (const Role& role : phase.roles) {
        role_ = &role;
        made_ = {};
        body(role.body);
      }
    findings_.about(nullptr);
  }

 private:
  void value(ValueId id) {
    const Value& value = plan_.values[id];
    const Storage& storage = plan_.storages[value.storage];
    const std::string name = name_of(plan_, id);
    findings_.require(value.layout.rank() == value.shape.rank(), "{} has a shape of {} axes and a layout of {}", name,
                      value.shape.rank(), value.layout.rank());
    if (value.layout.rank() != value.shape.rank()) return;
    covers(name, value.layout, value.shape);
    findings_.require(value.layout.registers() == storage.registers,
                      "the layout of {} has {} registers, its storage {}", name, value.layout.registers(),
                      storage.registers);
    findings_.require(storage.home != Home::variable || storage.registers == 1, "{} is one variable of {} elements",
                      name, storage.registers);
    const bool in_memory = storage.home == Home::shared || storage.home == Home::workspace;
    findings_.require(!in_memory || (storage.vector >= 1 && storage.registers % storage.vector == 0),
                      "{} registers of {} are not whole vectors of {}", storage.registers, name, storage.vector);
  }

  // Digits of lanes, warps and registers that name each element once.
  void covers(const std::string& name, const Layout& layout, const Shape& shape) {
    std::vector<Factor> registers;
    int lanes = 0, warps = 0;
    for (int axis = 0; axis < layout.rank(); ++axis) {
      findings_.require(layout.cover(axis) >= shape[axis], "the layout of {} reaches {} of {} along axis {}", name,
                        layout.cover(axis), shape[axis], axis);
      for (const Factor& factor : layout.axis(axis)) {
        if (factor.place == Place::reg) {
          registers.push_back(factor);
          continue;
        }
        const bool power = std::has_single_bit(static_cast<unsigned>(factor.size)) &&
                           std::has_single_bit(static_cast<unsigned>(factor.unit));
        findings_.require(power, "the layout of {} spreads {} over threads by steps of {}", name, factor.size,
                          factor.unit);
        int& used = factor.place == Place::lane ? lanes : warps;
        const int bits = (factor.size - 1) * factor.unit;
        findings_.require((used & bits) == 0, "two digits of the layout of {} are the same threads", name);
        used |= bits;
      }
    }
    findings_.require(lanes < 32, "the layout of {} needs more than 32 lanes", name);
    int most = 0;
    for (const Phase& phase : plan_.phases)
      for (const Role& role : phase.roles) most = std::max(most, role.warps);
    findings_.require(warps < most, "the layout of {} needs more warps than a role has", name);
    std::sort(registers.begin(), registers.end(), [](const Factor& a, const Factor& b) { return a.unit < b.unit; });
    int unit = 1;
    for (const Factor& factor : registers) {
      findings_.require(factor.unit == unit, "the registers of {} are not numbered without gaps", name);
      unit = factor.unit * factor.size;
    }
  }

  // --- scopes: what a body makes is gone behind it

  void body(const Body& steps) {
    std::vector<StorageId> here;
    for (const Step& step : steps) {
      findings_.about(&step);
      for (ValueId id : operands(step)) available(id, "read");
      const bool adds = std::holds_alternative<Replicas>(step.action) ||
                        std::holds_alternative<Multiply>(step.action) || std::holds_alternative<Wgmma>(step.action);
      for (ValueId id : results(step)) {
        if (adds) available(id, "added to");
        const StorageId storage = plan_.values[id].storage;
        findings_.require(std::holds_alternative<std::monostate>(plan_.storages[storage].known), "{} is written",
                          name_of(plan_, id));
        if (made_.insert(storage).second)
          here.push_back(storage);
        else
          findings_.require(plan_.storages[storage].changes || is_partial(step), "{} is made twice",
                            name_of(plan_, id));
      }
      sweeps(step);
      if (const Loop* loop = std::get_if<Loop>(&step.action)) counters_.insert(loop->loop);
      each_body(step, [&](const Body& inner) { body(inner); });
      if (const Loop* loop = std::get_if<Loop>(&step.action)) counters_.erase(loop->loop);
    }
    for (StorageId storage : here) made_.erase(storage);
  }
  static bool is_partial(const Step& step) {
    return std::holds_alternative<Partials>(step.action) || std::holds_alternative<TakePartials>(step.action) ||
           std::holds_alternative<Replicas>(step.action) || std::holds_alternative<Multiply>(step.action) ||
           std::holds_alternative<Wgmma>(step.action);
  }
  void available(ValueId id, std::string_view how) {
    const Storage& storage = plan_.storage(id);
    if (const Counter* counter = std::get_if<Counter>(&storage.known))
      findings_.require(counters_.contains(counter->loop), "{} is {} outside of its loop", name_of(plan_, id), how);
    else if (std::holds_alternative<std::monostate>(storage.known))
      findings_.require(made_.contains(plan_.values[id].storage), "{} is {} where nothing has made it",
                        name_of(plan_, id), how);
  }

  // --- sweeps

  void sweeps(const Step& step) {
    std::visit(
        Overloaded{
            [&](const Compute& s) {
      expression(s.sweep, plan_.storage(s.out).type);
      same(s.sweep, s.out);
            },
            [&](const Load& s) {
      shape_of(s.sweep);
      rows(s.access, s.sweep);
      same(s.sweep, s.out);
        },
        [&](const Store& s) {
      expression(s.sweep, std::nullopt);
      rows(s.access, s.sweep);
        },
        [&](const Reduce& s) {
      expression(s.sweep, plan_.storage(s.out).type);
      without(s.sweep, s.axis, s.out);
      across(s.sweep, s.axis, s.across);
    },
        [&](const Argmax& s) {
      expression(s.sweep, plan_.storage(s.best).type);
      without(s.sweep, s.axis, s.out);
      without(s.sweep, s.axis, s.best);
      across(s.sweep, s.axis, s.across);
        }, [&](const Replicas& s) { replicas(s); },
        [&](const Partials& s) {
      findings_.require(s.chunk >= 1 && s.chunk <= s.registers && s.registers <= plan_.storage(s.out).registers,
                        "{} registers, {} at a time, of {}", s.registers, s.chunk, plan_.storage(s.out).registers);
        },
        []<OneOf<PutPartials, TakePartials, Scan, Clear, Fetch, Commit, Wait, Multiply, Barrier, Loop, Branch, Elected,
                 TileLoop>
               T>(const T&) {},
        []<OfRoles T>(const T&) {}, [&](const Put& s) { expression(s.sweep, plan_.scratch[s.scratch].type); },
        [&](const Get& s) {
      shape_of(s.sweep);
      same(s.sweep, s.out);
        }, [&](const Stage& s) { expression(s.sweep, std::nullopt); },
        }, step.action);
  }
  bool shape_of(const Sweep& sweep) {
    const bool same = sweep.layout.rank() == sweep.shape.rank();
    findings_.require(same, "the sweep's shape has {} axes and its layout {}", sweep.shape.rank(), sweep.layout.rank());
    if (!same) return false;
    for (int axis = 0; axis < sweep.shape.rank(); ++axis)
      findings_.require(sweep.layout.cover(axis) >= sweep.shape[axis], "the sweep reaches {} of {} along axis {}",
                        sweep.layout.cover(axis), sweep.shape[axis], axis);
    findings_.require(sweep.layout.registers() % std::max(sweep.vector, 1) == 0 && sweep.vector >= 1,
                      "{} registers are not whole vectors of {}", sweep.layout.registers(), sweep.vector);
    return true;
  }
  void same(const Sweep& sweep, ValueId out) {
    const Value& value = plan_.values[out];
    findings_.require(value.shape == sweep.shape && value.layout == sweep.layout,
                      "the sweep is over {} {}, and {} is {} {}", to_string(sweep.shape), to_string(sweep.layout),
                      name_of(plan_, out), to_string(value.shape), to_string(value.layout));
    rolled(sweep, out);
  }
  void without(const Sweep& sweep, int axis, ValueId out) {
    if (axis < 0 || axis >= sweep.layout.rank()) return findings_.require(false, "there is no axis {}", axis);
    const Value& value = plan_.values[out];
    findings_.require(value.layout == sweep.layout.without(axis), "{} is {}, which is not {} without axis {}",
                      name_of(plan_, out), to_string(value.layout), to_string(sweep.layout), axis);
    findings_.require(value.shape.rank() == sweep.shape.rank() && value.shape[axis] == 1,
                      "{} keeps no axis {} of extent 1", name_of(plan_, out), axis);
    rolled(sweep, out);
  }
  void across(const Sweep& sweep, int axis, const Body& across) {
    bool warps = false;
    for (const Factor& factor : sweep.layout.axis(axis)) warps |= factor.place == Place::warp;
    findings_.require(warps == !across.empty(), "the axis is {}spread over warps, and they combine {}",
                      warps ? "" : "not ", across.empty() ? "nothing" : "what they have");
  }
  void replicas(const Replicas& s) {
    const int copies = plan_.values[s.out].layout.lane_copies();
    findings_.require((s.lanes & ~copies) == 0, "lanes & {} hold other elements, not parts of the same", s.lanes);
    const int warps = plan_.values[s.out].layout.warp_copies(role_->warps);
    findings_.require((s.warps & ~warps) == 0, "warps & {} hold other elements, not parts of the same", s.warps);
    findings_.require((s.warps != 0) == !s.across.empty(), "sums of warps & {} are {}added up", s.warps,
                      s.across.empty() ? "not " : "");
    const int registers = plan_.storage(s.out).registers;
    findings_.require(s.kept >= 1 && registers % s.kept == 0 &&
                          registers / s.kept <= 1 << std::popcount(static_cast<unsigned>(s.lanes)),
                      "{} of {} registers are kept, with lanes & {}", s.kept, registers, s.lanes);
  }
  // A loop that is not unrolled cannot index registers.
  void rolled(const Sweep& sweep, ValueId id) {
    findings_.require(sweep.unrolled || plan_.storage(id).home != Home::registers,
                      "{} is in registers, and the sweep is not unrolled", name_of(plan_, id));
  }

  void expression(const Sweep& sweep, std::optional<ElementType> result) {
    if (!shape_of(sweep)) return;
    findings_.require(!sweep.expression.terms.empty(), "there is no expression");
    for (std::size_t i = 0; i < sweep.expression.terms.size(); ++i) {
      const Term& term = sweep.expression.terms[i];
      findings_.require(!term.in.empty(), "{} has no operand", name(term.op));
      for (const Operand& operand : term.in) this->operand(sweep, operand, i);
    }
    for (const TileAccess& read : sweep.reads) rows(read, sweep);
    if (result && !sweep.expression.terms.empty())
      findings_.require(host_type(sweep.expression.terms.back().type) == host_type(*result),
                        "the expression is {}, the result {}", name(sweep.expression.terms.back().type), name(*result));
  }
  void operand(const Sweep& sweep, const Operand& operand, std::size_t term) {
    switch (operand.kind) {
      case Operand::Kind::term:
        return findings_.require(operand.index >= 0 && static_cast<std::size_t>(operand.index) < term,
                                 "term {} uses term {}", term, operand.index);
      case Operand::Kind::value: {
        const Value& value = plan_.values[operand.value];
        rolled(sweep, operand.value);
        if (value.layout.rank() > sweep.layout.rank())
          return findings_.require(false, "{} has more axes than the sweep", name_of(plan_, operand.value));
        findings_.require(value.layout == sweep.layout.of_operand(value.shape, sweep.shape),
                          "{} lies as {}, and the sweep is {}", name_of(plan_, operand.value), to_string(value.layout),
                          to_string(sweep.layout));
        return findings_.require(operand.map == register_map(value.layout, sweep.layout),
                                 "registers of {} are taken for others", name_of(plan_, operand.value));
      }
      case Operand::Kind::fetched:
        return findings_.require(operand.index >= 0 && operand.index < static_cast<int>(sweep.reads.size()),
                                 "read {} of {}", operand.index, sweep.reads.size());
      case Operand::Kind::literal:
        return;
      case Operand::Kind::coordinate:
        return findings_.require(operand.index >= 0 && operand.index < sweep.shape.rank(), "there is no axis {}",
                                 operand.index);
    }
  }
  void rows(const TileAccess& access, const Sweep& sweep) {
    if (!access.rows) return;
    findings_.require(plan_.values[access.rows].shape.rank() == 1, "rows are named by {}", name_of(plan_, access.rows));
    rolled(sweep, access.rows);
  }

  Findings& findings_;
  const Plan& plan_;
  const Role* role_ = nullptr;
  std::set<StorageId> made_;
  std::set<LoopId> counters_;
};

}  // namespace

void check_values(Findings& findings) { Values(findings).run(); }

}  // namespace tessera::codegen
