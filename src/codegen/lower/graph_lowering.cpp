// Translates a graph to steps, region by region.
#include "codegen/lower/graph_lowering.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "codegen/lower/lower_atomic.hpp"
#include "codegen/lower/lower_exchange.hpp"
#include "codegen/lower/lower_matmul.hpp"
#include "codegen/lower/lower_sort.hpp"
#include "codegen/lower/store_by_parts.hpp"

namespace tessera::internal::lowering {

class GraphLowering::Nodes {
 public:
  Nodes(Steps& steps, Fetches& fetches, const std::map<Id, MatmulPlan>& matmuls, const RoleRules& rules)
      : steps_(steps), fetches_(fetches), matmuls_(matmuls), rules_(rules) {}

  bool does(Id id) const { return rules_.skipped.empty() || !rules_.skipped[id]; }

  void lower(RegionId region) {
    for (Id id : steps_.analysis.order[region])
      if (does(id)) lower_node(id);
  }

  void lower_node(Id id) {
    const Node& at = node(id);
    const bool absorbed = steps_.fusion.absorbed[id];
    if (is_elementwise(at.op)) {
      if (steps_.fusion.root[id] == id && !absorbed) steps_.compute(id);
      return;
    }
    if (is_reduction(at.op) || at.op == Op::argmax) return reduction(id);
    if (is_scan(at.op)) return scan(steps_, id);
    if (is_atomic(at.op)) return atomic(steps_, id);
    if (is_sort(at.op)) return order(id);
    switch (at.op) {
      case Op::scalar:
        steps_.values.add_known(id, ScalarParameter{steps_.place.first_parameter + static_cast<int>(at.parameter())});
        return;
      case Op::extent:
        return steps_.extent(id);
      case Op::block:
        steps_.values.add_known(id, BlockIndex{steps_.place.first_axis + static_cast<int>(at.grid_axis())});
        return;
      case Op::load:
        fetches_.in_place(id);
        [[fallthrough]];
      case Op::gather:
      case Op::gather_elements:
        if (!absorbed && !is_read_where_used(id)) steps_.load(id);
        return;
      case Op::store:
      case Op::scatter:
      case Op::scatter_elements:
        if (!store_by_parts(steps_, rules_, id)) steps_.store(id);
        return;
      case Op::reshape:
      case Op::permute:
        if (absorbed) return;
        [[fallthrough]];
      case Op::concat:
        return through_scratch(steps_, id);
      case Op::extract:
        return extract(steps_, id);
      case Op::take_along_axis:
        return take_along_axis(steps_, id);
      case Op::histogram:
      case Op::inverse_permutation:
        return histogram(steps_, id);
      case Op::mma:
        return mma(steps_, fetches_, id);
      case Op::loop:
        return loop(id);
      case Op::result:
        steps_.values.set(id, carried_.at(at.in[0])[at.position()]);
        return;
      case Op::branch:
        return branch(id);
      case Op::repeat:
        return repeat(id);
      case Op::check:
      case Op::print:
        return tell(steps_, id);
      default:
        return;  // constants, iotas, broadcasts: in expressions; views: in accesses; require: checked by the host
    }
  }

  void reduction(Id id) {
    const Id other = beside(id);
    if (other != no_id && steps_.values.of(id)) return;  // computed together with the other
    const Id index = node(id).op == Op::argmax ? id : other;
    if (index == no_id) return reduce(steps_, id);
    argmax(steps_, index, index == id ? other : id);
  }
  // For max or argmax: the other op over the same elements, if the same region computes it.
  Id beside(Id id) const {
    const Node& at = node(id);
    if (at.op != Op::max && at.op != Op::argmax) return no_id;
    return beside(id, at.op == Op::max ? Op::argmax : Op::max);
  }
  // Another op over the same elements with the same attributes and a result of the same shape.
  Id beside(Id id, Op wanted) const {
    const Node& at = node(id);
    for (Id other : steps_.analysis.users[at.in[0]])
      if (node(other).op == wanted && node(other).attr == at.attr && node(other).shape == at.shape && does(other) &&
          steps_.analysis.storage_class[other] == steps_.analysis.storage_class[id])
        return other;
    return no_id;
  }

  // sort and argsort of the same elements sort once.
  void order(Id id) {
    const bool values = node(id).op == Op::sort;
    const Id other = beside(id, values ? Op::argsort : Op::sort);
    if (other != no_id && steps_.values.of(id)) return;
    sort(steps_, values ? id : other, values ? other : id);
  }

  // Values that name rows or elements are not read where used: an expression would read that tile again, as its own
  // element. A gather of elements is not either: an expression has its indices in registers.
  bool is_read_where_used(Id id) const {
    if (names_places(id) || node(id).op == Op::gather_elements) return false;
    const bool ordered = node(id).ordered;
    const bool by_rule = rules_.read_where_used.contains(id);
    if (ordered) return by_rule && is_replaced(id) && !has_copies(steps_.layouts.of[id]);
    return steps_.values.is_large(steps_.layouts.of[id]) || by_rule || takes_registers(id);
  }
  // Do several threads hold an element? One of them writes it while others may still read.
  bool has_copies(const Layout& layout) const {
    return layout.lane_copies() != 0 || layout.warp_copies(steps_.threads / 32) != 0;
  }
  // A thread may hold as many elements of a row's scales and shifts as of the row itself. Where only a store uses them,
  // they need no registers before the store, and not all at once.
  bool takes_registers(Id id) const {
    constexpr int many = 16;
    if (!matmuls_.empty() || node(id).op != Op::load || steps_.layouts.of[id].registers() < many) return false;
    const Id store = stored_by(id);
    const std::vector<RegionId>& storage_class = steps_.analysis.storage_class;
    if (store == no_id || node(store).op != Op::store || storage_class[store] != storage_class[id]) return false;
    return std::ranges::any_of(steps_.analysis.order[storage_class[id]], [&](Id other) {
      return is_reduction(node(other).op) && steps_.analysis.number[other] < steps_.analysis.number[id];
    });
  }
  // Is a load only an operand of one store to the same place? Then the store may read it, unless something else is
  // written in between.
  bool is_replaced(Id id) const {
    const Id store = stored_by(id);
    if (store == no_id || node(store).region != node(id).region) return false;
    const auto place = [&](Id access) {
      const std::vector<Id>& in = node(access).in;
      return std::vector<Id>(in.begin() + view_operand(node(access).op), in.end());
    };
    if (node(store).op != Op::store || place(store) != place(id) || node(store).shape != node(id).shape) return false;
    const auto is_between = [&](Id other) {
      return steps_.analysis.number[other] > steps_.analysis.number[id] &&
             steps_.analysis.number[other] < steps_.analysis.number[store];
    };
    for (const auto& region : steps_.analysis.order)
      for (Id other : region)
        if (is_write(node(other).op) && is_between(other)) return false;
    return true;
  }
  // The only step that uses the value; none if several do, or if the value's user has a value of its own.
  Id stored_by(Id id) const {
    Id root = no_id;
    for (Id user : steps_.analysis.users[id]) {
      const Id next = is_elementwise(node(user).op) ? steps_.fusion.root[user] : user;
      if (next == user && is_elementwise(node(user).op)) return no_id;
      if (root != no_id && root != next) return no_id;
      root = next;
    }
    return root;
  }
  bool names_places(Id id) const {
    const std::vector<Id>& users = steps_.analysis.users[id];
    return std::any_of(users.begin(), users.end(), [&](Id user) {
      if (by_elements(node(user).op)) return true;
      const int rows = operand_of(node(user).op, OperandKind::rows);
      return rows >= 0 && node(user).in[static_cast<std::size_t>(rows)] == id;
    });
  }

  void branch(Id id) {
    std::vector<ValueId> carried = carry(id);
    Branch step{.condition = steps_.scalar(node(id).in[0]), .body = {}};
    steps_.within(step.body, [&] {
      lower(node(id).body());
      move_on(id, carried);
    });
    steps_.push(id, std::move(step));
    carried_[id] = std::move(carried);
  }

  // A loop whose condition each iteration computes for the next.
  void repeat(Id id) {
    const Id condition = node(id).in[0];
    std::vector<ValueId> carried = carry(id);
    const auto holds = [&](Id from) {
      return SweepBuilder(steps_, node(condition).shape, Layout(0)).express(from).take();
    };
    const ValueId again = steps_.values.add(steps_.values.label(id, "again"), condition, Layout(0));
    steps_.plan.storage(again).changes = true;
    steps_.push(id, Compute{.out = again, .sweep = holds(condition)});
    Loop step;
    step.loop = steps_.plan.loops.add({steps_.values.label(id, "iteration")});
    step.count = element_of(steps_.plan, again, Layout(0));
    step.repeats = true;
    steps_.within(step.body, [&] {
      lower(node(id).body());
      steps_.push(id, Compute{.out = again, .sweep = holds(body_of(id).yields.back())});
      move_on(id, carried);
    });
    steps_.push(id, std::move(step));
    carried_[id] = std::move(carried);
  }

  // --- loops

  void loop(Id id) {
    const Region& body = body_of(id);
    distribute_left_operands(id);
    std::vector<ValueId> carried = carry(id);
    const LoopId counter = count(id);
    Loop step = iterate(id, counter, iterations(id), [&] {
      lower(node(id).body());
      move_on(id, carried);
    });
    // Where an iteration only accumulates, the last k-step may be pending while the next iteration's tiles arrive.
    // (Smaller copies need more addresses: with these, and from sm_100 on, ptxas spills.)
    const bool has_registers = steps_.analysis.target.registers_more_for_matmuls == 0 && fetches_large_pieces(step);
    if (has_registers && step.body.size() == 1 && fetching_matmul(step)) {
      Mma& mma = step.body[0].action.get<Mma>();
      mma.holds_last = mma.matmul.k_steps() % 2 == 0;
    }
    const bool pipelined = step.stages > 1;
    steps_.push(id, std::move(step));
    if (pipelined) steps_.push(id, CpAsyncWait{0});
    // The partial sums that the loop left with each thread are added up.
    for (std::size_t k = 0; k < carried.size(); ++k)
      if (const PartialSums* sums = partial_sums(id, k)) add_replicas(steps_, body.yields[k], carried[k], *sums);
    end_loop(id, std::move(carried));
  }

  // Left operands of gemvs in a loop that are made before it go to the registers that need them once.
  void distribute_left_operands(Id loop) {
    for (const auto& [id, plan] : matmuls_) {
      const Id left = node(id).in[0];
      if (plan.matmul.kind == MatmulKind::gemv && node(id).region == node(loop).body() &&
          node(left).region != node(id).region)
        steps_.value_in(left, plan.matmul.layout_a);
    }
  }

  LoopId count(Id id) {
    const Id argument = body_of(id).arguments[0];
    const LoopId counter = steps_.plan.loops.add({steps_.values.label(argument, "i")});
    steps_.values.add_known(argument, Counter{counter});
    return counter;
  }
  Iterations iterations(Id id) { return {.count = steps_.scalar(node(id).in[0])}; }

  Loop iterate(Id id, LoopId counter, const Iterations& range, const std::function<void()>& iteration) {
    const Region& body = body_of(id);
    Loop step;
    step.unrolled = body.unroll;
    step.loop = counter;
    step.count = range.count;
    fetches_.ahead(node(id).body(), step);
    steps_.within(step.body, [&] {
      if (range.first) count_from(body.arguments[0], range.first);
      iteration();
    });
    return step;
  }

  Iterations peel_first(Id id, ValueId some, const Operand& count, const std::function<void()>& iteration) {
    const Id argument = body_of(id).arguments[0];
    const ElementType type = node(argument).type;
    const auto number = [&](std::string_view stem, Term term) {
      return steps_.number(argument, steps_.values.label(argument, stem), type, std::move(term));
    };
    const auto first = [&] {
      steps_.values.set(argument, number("first", {Op::broadcast, type, type, {literal(0)}}));
      steps_.values.call("_first");
      iteration();
      steps_.values.call("");
    };
    if (some) {
      Branch step{.condition = element_of(steps_.plan, some, Layout(0)), .body = {}};
      steps_.within(step.body, first);
      steps_.push(id, std::move(step));
    } else {
      steps_.apart(first);
    }
    const ValueId left = number("rest", {Op::sub, type, type, {count, literal(1)}});
    return {element_of(steps_.plan, left, Layout(0)), number("second", {Op::broadcast, type, type, {literal(1)}})};
  }

  std::vector<ValueId> for_next(Id id, const std::vector<Id>& nodes, const Iterations& range, bool first) {
    if (nodes.empty()) return {};
    const Id argument = body_of(id).arguments[0];
    const ElementType type = node(argument).type;
    const std::set<Id> needed = needed_in(node(id).body(), nodes);
    std::vector<ValueId> values;
    steps_.apart([&] {
      const Operand from = range.first ? element_of(steps_.plan, range.first, Layout(0)) : literal(0);
      Term index = first ? Term{Op::broadcast, type, type, {from}}
                         : Term{Op::add, type, type, {steps_.scalar(argument), literal(1)}};
      const ValueId at =
          steps_.number(argument, steps_.values.label(argument, first ? "first" : "next"), type, std::move(index));
      steps_.values.set(argument, at);
      steps_.values.call(first ? "_first" : "_next");
      for (const Id one : steps_.analysis.order[node(id).body()])
        if (needed.contains(one)) lower_node(one);
      for (const Id one : nodes) values.push_back(steps_.value(one));
      steps_.values.call("");
    });
    return values;
  }

  void end_loop(Id id, std::vector<ValueId> carried) { carried_[id] = std::move(carried); }

  // Initializes carried values.
  std::vector<ValueId> carry(Id loop) {
    std::vector<ValueId> carried;
    for (std::size_t k = 0; k < steps_.analysis.graph.carried(loop); ++k)
      carried.push_back(does(body_of(loop).arguments[k + 1]) ? carry(loop, k) : ValueId{});
    return carried;
  }

  // The loop's yields become its carried values, all at once.
  void move_on(Id loop, const std::vector<ValueId>& carried) {
    const Region& body = body_of(loop);
    std::vector<ValueId> source(carried.size());
    for (std::size_t k = 0; k < carried.size(); ++k)
      if (carried[k] && !is_virtual(body.yields[k]))
        source[k] = steps_.value_in(body.yields[k], steps_.plan.values[carried[k]].layout);
    // A source that another copy overwrites is saved first.
    std::set<StorageId> overwritten;
    for (std::size_t k = 0; k < carried.size(); ++k) {
      if (source[k] && overwritten.contains(steps_.plan.values[source[k]].storage))
        source[k] = save(loop, k, source[k]);
      if (source[k] != carried[k]) overwritten.insert(steps_.plan.values[carried[k]].storage);
    }
    for (std::size_t k = 0; k < carried.size(); ++k) {
      const Id yield = body.yields[k];
      if (!carried[k]) continue;
      if (!source[k]) {
        const Layout& layout = steps_.plan.values[carried[k]].layout;
        Sweep sweep = SweepBuilder(steps_, node(yield).shape, layout).express(yield).take();
        steps_.push(yield, Compute{.out = carried[k], .sweep = std::move(sweep)});
      } else if (source[k] != carried[k]) {
        steps_.copy(yield, source[k], carried[k]);
      }
    }
  }

 private:
  // The nodes of a region that `nodes` follow from, and these.
  std::set<Id> needed_in(RegionId region, std::vector<Id> nodes) const {
    std::set<Id> needed;
    while (!nodes.empty()) {
      const Id id = nodes.back();
      nodes.pop_back();
      if (node(id).region != region || node(id).op == Op::argument || !needed.insert(id).second) continue;
      nodes.insert(nodes.end(), node(id).in.begin(), node(id).in.end());
    }
    return needed;
  }

  const Node& node(Id id) const { return steps_.node(id); }
  const Region& body_of(Id owner) const { return steps_.analysis.graph.body(owner); }

  // Is each copy of 16 bytes, the largest size?
  bool fetches_large_pieces(const Loop& loop) const {
    return std::ranges::all_of(loop.ahead, [&](const Step& step) {
      const Fetch* const fetch = step.action.as<Fetch>();
      return !fetch || std::ranges::all_of(fetch->tiles, [&](const Fetch::Tile& tile) {
        const Parameter& tensor = steps_.plan.tensors[static_cast<std::size_t>(tile.access.parameter)];
        return tile.access.vector * info(tensor.type).bytes == 16;
      });
    });
  }
  // The loop's argument is its counter plus the iterations that are skipped.
  void count_from(Id argument, ValueId first) {
    const ElementType type = node(argument).type;
    const Layout& layout = steps_.layouts.of[argument];
    SweepBuilder sweep(steps_, node(argument).shape, layout);
    sweep.add({Op::add,
               type,
               type,
               {element_of(steps_.plan, first, layout), element_of(steps_.plan, steps_.values.of(argument), layout)}});
    const ValueId out = steps_.values.add(steps_.values.label(argument, "iteration"), argument, layout);
    steps_.push(argument, Compute{.out = steps_.values.set(argument, out), .sweep = sweep.take()});
  }

  // The partial sums that a loop leaves with several threads as its result k; nullptr: complete values.
  const PartialSums* partial_sums(Id loop, std::size_t k) const {
    const auto found = steps_.layouts.partial.find(body_of(loop).yields[k]);
    return found != steps_.layouts.partial.end() ? &found->second : nullptr;
  }

  ValueId carry(Id loop, std::size_t k) {
    const Id argument = body_of(loop).arguments[k + 1];
    const Layout& layout = steps_.layouts.of[argument];
    Compute start;
    start.sweep = SweepBuilder(steps_, node(argument).shape, layout).express(node(loop).in[k + 1]).take();
    if (const PartialSums* sums = partial_sums(loop, k)) {
      start.zero_lanes = sums->lanes;
      start.zero_warps = sums->warps;
    }
    const ValueId out = steps_.values.add(steps_.values.label(argument, "carry"), argument, layout);
    steps_.plan.storage(out).changes = true;
    start.out = steps_.values.set(argument, out);
    if (rules_.uninitialized.contains(argument))
      steps_.push(loop, DeclareAccumulator{out});
    else
      steps_.push(loop, std::move(start));
    return out;
  }

  // A value that neither memory nor registers hold.
  bool is_virtual(Id id) const {
    while (node(id).op == Op::broadcast) id = node(id).in[0];
    return node(id).op == Op::constant || node(id).op == Op::iota;
  }

  ValueId save(Id loop, std::size_t k, ValueId value) {
    const Id yield = body_of(loop).yields[k];
    const Layout layout = steps_.plan.values[value].layout;
    const ValueId saved = steps_.values.add(steps_.values.label(loop, fmt::format("next{}", k)), yield, layout);
    steps_.copy(yield, value, saved);
    return saved;
  }

  Steps& steps_;
  Fetches& fetches_;
  const std::map<Id, MatmulPlan>& matmuls_;
  const RoleRules& rules_;
  std::map<Id, std::vector<ValueId>> carried_;  // by loop
};

GraphLowering::GraphLowering(const GraphAnalysis& analysis, const std::map<Id, MatmulPlan>& matmuls,
                             const Layouts& layouts, int most_registers, const InMemory& in_memory,
                             const GraphPlace& place, Plan& plan, Role& role, RoleRules rules)
    : rules_(std::move(rules)),
      fusion_(fuse(analysis, matmuls, layouts)),
      values_(analysis, layouts, most_registers, in_memory, place, plan),
      steps_(analysis, fusion_, layouts, place, values_, plan, role),
      fetches_(steps_, rules_.stages_operands ? matmuls : std::map<Id, MatmulPlan>{}),
      nodes_(std::make_unique<Nodes>(steps_, fetches_, matmuls, rules_)) {}
GraphLowering::~GraphLowering() = default;

bool GraphLowering::does(Id id) const { return nodes_->does(id); }
void GraphLowering::node(Id id) { nodes_->lower_node(id); }
void GraphLowering::region(RegionId id) { nodes_->lower(id); }
std::vector<ValueId> GraphLowering::carry(Id loop) { return nodes_->carry(loop); }
LoopId GraphLowering::count(Id loop) { return nodes_->count(loop); }
Iterations GraphLowering::iterations(Id loop) { return nodes_->iterations(loop); }
void GraphLowering::iterate(Id loop, LoopId counter, const Iterations& range, const std::function<void()>& iteration) {
  steps_.push(loop, nodes_->iterate(loop, counter, range, iteration));
}
Iterations GraphLowering::peel_first(Id loop, ValueId some, const Operand& count,
                                     const std::function<void()>& iteration) {
  return nodes_->peel_first(loop, some, count, iteration);
}
std::vector<ValueId> GraphLowering::for_next(Id loop, const std::vector<Id>& nodes, const Iterations& range,
                                             bool first) {
  return nodes_->for_next(loop, nodes, range, first);
}
void GraphLowering::move_on(Id loop, const std::vector<ValueId>& carried) { nodes_->move_on(loop, carried); }
void GraphLowering::end_loop(Id loop, std::vector<ValueId> carried) { nodes_->end_loop(loop, std::move(carried)); }

}  // namespace tessera::internal::lowering
