#include "cpu/tape.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "tessera/graph/error.hpp"

namespace tessera::internal::cpu {

std::array<std::int64_t, max_rank> dense_strides(const Shape& shape) {
  std::array<std::int64_t, max_rank> strides{};
  std::int64_t stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[static_cast<std::size_t>(axis)] = shape[axis] == 1 ? 0 : stride;
    stride *= shape[axis];
  }
  return strides;
}

namespace {

std::size_t bytes_of(const Node& node) {
  const std::size_t bytes =
      static_cast<std::size_t>(node.shape.size()) * static_cast<std::size_t>(host_bytes(host_type(node.type)));
  return (bytes + 63) / 64 * 64;
}

// Does the reshape only add or drop axes of extent 1? Then the elements need not move, whatever the strides.
bool only_unit_axes(const Shape& from, const Shape& to) {
  std::vector<int> a, b;
  for (int extent : from)
    if (extent != 1) a.push_back(extent);
  for (int extent : to)
    if (extent != 1) b.push_back(extent);
  return a == b;
}

// Does the extract take neighboring elements from a known start, all of which exist? Then they are read in place.
bool is_window(const Graph& graph, const Node& node) {
  if (node.op != Op::extract) return false;
  const Shape& from = graph[node.in[0]].shape;
  for (int axis = 0; axis < from.rank(); ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    const Node& first = graph[node.in[at + 1]];
    if (node.steps()[at] != 1 || first.op != Op::constant) return false;
    if (first.number().i32 < 0 || std::int64_t{first.number().i32} + node.shape[axis] > from[axis]) return false;
  }
  return true;
}

class TapeBuilder {
 public:
  explicit TapeBuilder(Tape& tape) : tape_(tape), graph_(tape.graph), order_(schedule(tape.graph)) {}

  void run() {
    const std::size_t count = graph_.nodes.size();
    tape_.stands_for.resize(count);
    tape_.slot.assign(count, -1);
    tape_.refs.resize(count);
    users_.resize(count);
    group_.assign(count, -1);
    owner_.resize(count);
    for (Id id = 0; id < count; ++id) {
      tape_.stands_for[id] = id;
      const Node& node = graph_[id];
      if (is_conversion(node) && !conversion(node)) tape_.stands_for[id] = value(node.in[0]);
    }
    find_users();
    find_raw_loads();
    prepare_sources();
    tape_.body = steps_of(0);
    number(tape_.body);
    place_values();
    for (const Chain& chain : tape_.chains) tape_.registers = std::max(tape_.registers, chain.registers);
    tape_.work_per_block = work(tape_.body);
  }

 private:
  Id value(Id id) const { return tape_.stands_for[id]; }

  static bool is_conversion(const Node& node) { return node.op == Op::cast || node.op == Op::bitcast; }
  /// nullptr if the value is the same as its operand.
  StripFunction conversion(const Node& node) const {
    const ElementType from = graph_[node.in[0]].type;
    return node.op == Op::cast ? strip_cast(from, node.type) : strip_bitcast(from, node.type);
  }

  bool is_uniform(Id id) const {
    const Node& node = graph_[id];
    return node.uniform && node.op != Op::constant && !is_view(node.op);
  }

  void find_users() {
    for (const auto& region : order_)
      for (Id id : region)
        if (value(id) == id)
          for (Id in : graph_[id].in) users_[value(in)].push_back(id);
    for (const Region& region : graph_.regions)
      for (Id id : region.yields) users_[value(id)].push_back(no_id);
  }

  // Loads of f16 and bf16 that are only used by matmuls, directly or with permuted axes.
  void find_raw_loads() {
    tape_.raw.assign(graph_.nodes.size(), false);
    std::vector<char> only_factor(graph_.nodes.size());
    for (Id id = static_cast<Id>(graph_.nodes.size()); id-- > 0;) {  // users come after their operands
      only_factor[id] = !users_[id].empty() && std::all_of(users_[id].begin(), users_[id].end(), [&](Id user) {
        if (user == no_id) return false;
        const Node& node = graph_[user];
        if (node.op == Op::mma) return value(node.in[2]) != id;
        const bool moves =
            node.op == Op::permute || (node.op == Op::reshape && only_unit_axes(graph_[node.in[0]].shape, node.shape));
        return moves && only_factor[user];
      });
      const Node& node = graph_[id];
      tape_.raw[id] = node.op == Op::load && !node.ordered &&
                      (node.type == ElementType::f16 || node.type == ElementType::bf16) && only_factor[id];
    }
  }

  // Values that exist before a grid tile runs: constants, positions, and values that the launch computes once.
  void prepare_sources() {
    std::vector<Id> uniforms, constants;
    for (const auto& region : order_)
      for (Id id : region) {
        const Node& node = graph_[id];
        if (is_uniform(id))
          uniforms.push_back(id);
        else if (node.op == Op::constant)
          constants.push_back(id);
        else if (node.op == Op::block)
          tape_.blocks.push_back(id);
        else if (node.op == Op::iota) {
          const int axis = node.axis();
          auto positions = std::make_unique<std::int32_t[]>(static_cast<std::size_t>(node.shape[axis]));
          for (int i = 0; i < node.shape[axis]; ++i) positions[static_cast<std::size_t>(i)] = i;
          tape_.refs[id].data = reinterpret_cast<char*>(positions.get());
          tape_.refs[id].stride[static_cast<std::size_t>(axis)] = 1;
          tape_.iotas.push_back(std::move(positions));
        }
      }
    tape_.constants.resize(constants.size());
    for (std::size_t i = 0; i < constants.size(); ++i) {
      const Node& node = graph_[constants[i]];
      tape_.constants[i] = node.number();
      tape_.refs[constants[i]].data = reinterpret_cast<char*>(&tape_.constants[i]);
    }
    tape_.uniform_program = UniformProgram(graph_, uniforms);
    for (std::size_t i = 0; i < uniforms.size(); ++i) {
      tape_.uniforms.emplace_back(uniforms[i], tape_.uniform_program.position(i));
      uniform_.push_back(uniforms[i]);
    }
    std::sort(uniform_.begin(), uniform_.end());
  }

  /// Does it exist before a grid tile runs, or is it made by a loop?
  bool is_source(Id id) const {
    const Op op = graph_[id].op;
    return info(op).in.count == 0 || op == Op::result || std::binary_search(uniform_.begin(), uniform_.end(), id);
  }

  struct Group {
    Shape shape;
    std::vector<Id> members;
    int number;
  };

  // Elementwise ops are collected in a group per shape. A group is emitted when an op outside of it needs one of its
  // values. Delaying it is safe: the operands of its members are computed, and no ordered step changes them.
  Body steps_of(RegionId region) {
    Body body;
    std::map<int, Group> open;  // by number, in the order in which they were begun
    std::map<std::vector<int>, int> of_shape;
    std::set<Id> done;  // emitted with an earlier step
    const auto shape_key = [](const Shape& shape) { return std::vector<int>(shape.begin(), shape.end()); };
    const auto emit = [&](std::map<int, Group>::iterator at) {
      const Group group = std::move(at->second);
      of_shape.erase(shape_key(group.shape));
      open.erase(at);
      body.push_back(chain_step(group));
    };
    const auto emit_holding = [&](Id id, int except) {
      const int number = group_[value(id)];
      if (const auto at = open.find(number); at != open.end() && number != except) emit(at);
    };
    for (Id id : order_[region]) {
      const Node& node = graph_[id];
      if (value(id) != id || is_source(id)) continue;
      if (is_elementwise(node.op)) {
        const auto joined = of_shape.find(shape_key(node.shape));
        const int number = joined == of_shape.end() ? groups_++ : joined->second;
        for (Id in : node.in) emit_holding(in, number);
        if (joined == of_shape.end()) {
          open.emplace(number, Group{node.shape, {}, number});
          of_shape.emplace(shape_key(node.shape), number);
        }
        open.at(number).members.push_back(id);
        group_[id] = number;
        continue;
      }
      if (has_region(node.op)) {
        while (!open.empty()) emit(open.begin());
        body.push_back(loop_step(id));
        continue;
      }
      if (info(node.op).role == OpRole::claim) continue;  // the launch has checked it
      if (done.contains(id)) continue;
      for (Id in : node.in) emit_holding(in, -1);
      Step step;
      step.id = id;
      if (view_operand(node.op) >= 0 && !is_view(node.op)) step.index = tape_.plans++;
      if (is_sort(node.op)) step.also = twin(id, order_[region]);
      if (step.also != no_id) done.insert(step.also);
      body.push_back(step);
    }
    while (!open.empty()) emit(open.begin());
    return body;
  }

  /// The argsort of the same elements as a sort, or the sort for an argsort, if the region has it.
  Id twin(Id id, const std::vector<Id>& region) const {
    const Node& node = graph_[id];
    const auto found = std::find_if(region.begin(), region.end(), [&](Id other) {
      const Node& candidate = graph_[other];
      return is_sort(candidate.op) && candidate.op != node.op && value(candidate.in[0]) == value(node.in[0]) &&
             candidate.attr == node.attr && candidate.shape == node.shape;
    });
    return found == region.end() ? no_id : *found;
  }

  Step loop_step(Id id) {
    const Node& node = graph_[id];
    const Region& region = graph_.body(id);
    Loop loop;
    loop.counter = region.arguments[0];
    for (std::size_t k = 0; k < graph_.carried(id); ++k)
      loop.carried.push_back({value(node.in[k + 1]), region.arguments[k + 1], value(region.yields[k])});
    if (node.op == Op::repeat) loop.again = value(region.yields.back());
    loop.body = steps_of(node.body());
    tape_.loops.push_back(std::move(loop));
    Step step;
    step.kind = StepKind::loop, step.id = id, step.index = static_cast<int>(tape_.loops.size()) - 1;
    return step;
  }

  // Registers of a fused elementwise loop: inputs first, then scratch strips, which are reused as soon as their value
  // is dead.
  Step chain_step(const Group& group) {
    Chain chain;
    chain.shape = group.shape;
    chain.single = group.shape.size() == 1;
    std::unordered_map<Id, int> reg, last_use;
    for (std::size_t i = 0; i < group.members.size(); ++i)
      for (Id in : graph_[group.members[i]].in) last_use[value(in)] = static_cast<int>(i);
    for (Id member : group.members)
      for (Id in : graph_[member].in)
        if (const Id input = value(in); group_[input] != group.number && !reg.count(input)) {
          reg[input] = static_cast<int>(chain.inputs.size());
          chain.inputs.push_back({input, graph_[input].shape, host_type(graph_[input].type)});
        }
    int next = static_cast<int>(chain.inputs.size());
    std::vector<int> free;
    for (std::size_t i = 0; i < group.members.size(); ++i) {
      const Id id = group.members[i];
      const Node& node = graph_[id];
      Chain::Step step{};
      for (std::size_t k = 0; k < step.in.size(); ++k) step.in[k] = k < node.in.size() ? reg[value(node.in[k])] : -1;
      step.function = is_conversion(node)     ? conversion(node)
                      : node.op == Op::custom ? graph_.functions[node.function()].run
                      : node.op == Op::select ? strip_function(Op::select, node.type)
                                              : strip_function(node.op, graph_[node.in[0]].type);
      const bool internal = std::all_of(users_[id].begin(), users_[id].end(),
                                        [&](Id user) { return user != no_id && group_[user] == group.number; });
      // An op may overwrite its own operand, unless their values differ in size.
      const auto release = [&](bool same_size) {
        for (std::size_t k = 0; k < node.in.size(); ++k) {
          const Id dead = value(node.in[k]);
          const bool fits = host_bytes(host_type(graph_[dead].type)) == host_bytes(host_type(node.type));
          const bool again = std::any_of(node.in.begin(), node.in.begin() + static_cast<std::ptrdiff_t>(k),
                                         [&](Id in) { return value(in) == dead; });
          if (group_[dead] == group.number && last_use[dead] == static_cast<int>(i) && !outputs_.count(dead) &&
              fits == same_size && !again)
            free.push_back(reg[dead]);
        }
      };
      release(true);
      if (internal && !free.empty()) {
        reg[id] = free.back();
        free.pop_back();
      } else {
        reg[id] = next++;
      }
      release(false);
      if (!internal) {
        outputs_.insert(id);
        chain.outputs.push_back({reg[id], id, host_type(node.type)});
      }
      step.out = reg[id];
      chain.steps.push_back(step);
    }
    chain.registers = next;
    chain.plan = tape_.plans++;
    tape_.chains.push_back(std::move(chain));
    Step step;
    step.kind = StepKind::chain, step.index = static_cast<int>(tape_.chains.size()) - 1;
    return step;
  }

  void number(Body& body) {
    for (Step& step : body) {
      step.position = next_position_++;
      if (step.kind == StepKind::loop) number(tape_.loops[static_cast<std::size_t>(step.index)].body);
      step.end = next_position_;
    }
  }

  // --- memory allocation: each slot is an interval of positions, and intervals that do not overlap may share memory

  struct Interval {
    std::size_t bytes;
    int begin, end;
    std::size_t offset = 0;
  };

  void place_values() {
    for (Id id = 0; id < owner_.size(); ++id) owner_[id] = id;
    find_aliases();
    results_.resize(graph_.nodes.size());
    for (const auto& region : order_)
      for (Id id : region)
        if (graph_[id].op == Op::result) results_[graph_[id].in[0]].push_back(id);
    own(tape_.body);
    measure(tape_.body);
    std::vector<Interval*> by_begin;
    for (auto& [id, interval] : intervals_) by_begin.push_back(&interval);
    for (auto& interval : temporaries_) by_begin.push_back(&interval);
    std::stable_sort(by_begin.begin(), by_begin.end(), [](auto* a, auto* b) { return a->begin < b->begin; });
    allocate(by_begin);
    for (Id id = 0; id < owner_.size(); ++id) {
      const auto interval = intervals_.find(owner(id));
      if (interval == intervals_.end()) continue;
      tape_.slot[id] = static_cast<std::int64_t>(interval->second.offset);
      tape_.refs[id].stride = dense_strides(graph_[id].shape);
    }
    std::size_t next = 0;
    for (Loop& loop : tape_.loops)
      for (Carried& carried : loop.carried)
        if (carried.through_temporary) carried.temporary = temporaries_[next++].offset;
  }

  // Allocates each interval at the lowest offset where it fits.
  void allocate(const std::vector<Interval*>& by_begin) {
    std::map<std::size_t, std::size_t> gaps;  // begin -> end, below the highest byte in use so far
    const auto later = [](const Interval* a, const Interval* b) { return a->end > b->end; };
    std::vector<Interval*> live;  // a heap with the first to end on top
    const auto release = [&](std::size_t begin, std::size_t end) {
      auto next = gaps.lower_bound(begin);
      if (next != gaps.end() && next->first == end) end = next->second, next = gaps.erase(next);
      if (next != gaps.begin() && std::prev(next)->second == begin)
        std::prev(next)->second = end;
      else
        gaps.emplace(begin, end);
    };
    for (Interval* interval : by_begin) {
      while (!live.empty() && live.front()->end < interval->begin) {
        release(live.front()->offset, live.front()->offset + live.front()->bytes);
        std::pop_heap(live.begin(), live.end(), later);
        live.pop_back();
      }
      auto gap =
          std::find_if(gaps.begin(), gaps.end(), [&](const auto& g) { return g.second - g.first >= interval->bytes; });
      if (gap == gaps.end() && !gaps.empty() && std::prev(gaps.end())->second == tape_.arena_bytes)
        gap = std::prev(gaps.end());  // the last gap ends at the end of the arena: both grow
      interval->offset = gap == gaps.end() ? tape_.arena_bytes : gap->first;
      const std::size_t end = interval->offset + interval->bytes;
      if (gap != gaps.end()) {
        const std::size_t gap_end = gap->second;
        gaps.erase(gap);
        if (end < gap_end) gaps.emplace(end, gap_end);
      }
      tape_.arena_bytes = std::max(tape_.arena_bytes, end);
      live.push_back(interval);
      std::push_heap(live.begin(), live.end(), later);
    }
  }

  // Finds the steps whose value gets a slot, those that are views of another value, and carried values that share a
  // slot.
  void own(const Body& body) {
    for (const Step& step : body) {
      switch (step.kind) {
        case StepKind::chain:
          for (const auto& output : tape_.chains[static_cast<std::size_t>(step.index)].outputs)
            add_slot(output.value, step.position);
          break;
        case StepKind::node: {
          const Node& node = graph_[step.id];
          if (alias_[step.id])
            owner_[step.id] = owner(value(node.in[0]));
          else if (has_value(node.op))
            add_slot(step.id, step.position);
          if (step.also != no_id) add_slot(step.also, step.position);
          break;
        }
        case StepKind::loop:
          own_loop(step);
          break;
      }
    }
  }

  // Values that are views of another value's elements. A reshape is one if the elements are certain to be dense in a
  // slot; a load may turn out to be a view of the tensor.
  void find_aliases() {
    alias_.resize(graph_.nodes.size());
    std::vector<char> dense(graph_.nodes.size());
    for (Id id = 0; id < graph_.nodes.size(); ++id) {
      const Node& node = graph_[id];
      const auto below = [&] { return value(node.in[0]); };
      alias_[id] = node.op == Op::permute || node.op == Op::broadcast || is_window(graph_, node) ||
                   (node.op == Op::reshape && (only_unit_axes(graph_[node.in[0]].shape, node.shape) || dense[below()]));
      dense[id] = node.op == Op::reshape ? !alias_[id] || dense[below()]
                                         : !alias_[id] && node.op != Op::load &&
                                               (!is_source(id) || node.op == Op::argument || node.op == Op::result);
    }
  }

  /// The value in whose slot a value is stored.
  Id owner(Id id) {
    Id last = id;
    while (owner_[last] != last) last = owner_[last];
    while (owner_[id] != last) id = std::exchange(owner_[id], last);
    return last;
  }

  void own_loop(const Step& step) {
    Loop& loop = tape_.loops[static_cast<std::size_t>(step.index)];
    for (const Carried& carried : loop.carried) add_slot(carried.argument, step.position);
    for (Id id : results_[step.id]) owner_[id] = loop.carried[graph_[id].position()].argument;
    own(loop.body);
    const Uses uses = uses_of(loop);
    for (Carried& carried : loop.carried) {
      carried.in_place = can_be_in_place(loop, uses, carried);
      if (!carried.in_place) continue;
      intervals_.erase(carried.yield);
      owner_[carried.yield] = carried.argument;
    }
    for (Carried& carried : loop.carried) {
      carried.through_temporary = !carried.in_place && is_carried(loop, owner(carried.yield));
      if (carried.through_temporary)
        temporaries_.push_back({bytes_of(graph_[carried.argument]), step.position, step.end});
    }
  }

  bool is_carried(const Loop& loop, Id id) const {
    return graph_[id].op == Op::argument && graph_[id].region == graph_[loop.counter].region && id != loop.counter;
  }

  // How a loop's body uses the slots of its carried values, before any of them is computed in place.
  struct Uses {
    std::unordered_map<Id, std::size_t> maker;  // value -> step that may overwrite a carried value
    std::unordered_map<Id, int> last_read;      // carried value -> position of the last step that reads it
    std::unordered_map<Id, int> yields;         // value -> number of yields in its slot
  };

  Uses uses_of(const Loop& loop) {
    Uses uses;
    for (std::size_t i = 0; i < loop.body.size(); ++i) {
      const Step& step = loop.body[i];
      if (step.kind == StepKind::node && graph_[step.id].op == Op::mma && owner_[step.id] == step.id)
        uses.maker[step.id] = i;
      if (step.kind == StepKind::chain)
        for (const auto& output : tape_.chains[static_cast<std::size_t>(step.index)].outputs)
          uses.maker[output.value] = i;
      each_read(step, [&](Id id) {
        if (const Id slot = owner(id); is_carried(loop, slot)) uses.last_read[slot] = step.position;
      });
    }
    for (const Carried& carried : loop.carried) ++uses.yields[owner(carried.yield)];
    if (loop.again != no_id && is_carried(loop, owner(loop.again)))  // the condition is evaluated at the end of an
                                                                     // iteration
      uses.last_read[owner(loop.again)] = std::numeric_limits<int>::max();
    return uses;
  }

  // The yield may overwrite the carried value if nothing reads the old value afterwards.
  bool can_be_in_place(const Loop& loop, const Uses& uses, const Carried& carried) {
    if (uses.yields.contains(carried.argument)) return false;
    if (const auto of_yield = uses.yields.find(carried.yield); of_yield != uses.yields.end())
      if (of_yield->second > (owner(carried.yield) == carried.yield ? 1 : 0)) return false;
    const auto maker = uses.maker.find(carried.yield);
    if (maker == uses.maker.end()) return false;  // made outside, in a nested loop, or a view of another value
    const Step& step = loop.body[maker->second];
    const auto read = uses.last_read.find(carried.argument);
    if (read == uses.last_read.end()) return true;
    return read->second <= step.position && safe_within(step, carried);
  }

  /// Calls visit(value) for all values that a step and the steps in it read.
  template <class Visit>
  void each_read(const Step& step, const Visit& visit) const {
    const auto each_in = [&](const Body& body) {
      for (const Step& inner : body) each_read(inner, visit);
    };
    switch (step.kind) {
      case StepKind::chain:
        for (const auto& input : tape_.chains[static_cast<std::size_t>(step.index)].inputs) visit(input.value);
        return;
      case StepKind::node:
        for (Id in : graph_[step.id].in) visit(value(in));
        return;
      case StepKind::loop: {
        const Loop& loop = tape_.loops[static_cast<std::size_t>(step.index)];
        for (const Carried& carried : loop.carried) visit(carried.initial), visit(carried.yield);
        if (loop.again != no_id) visit(loop.again);
        visit(value(graph_[step.id].in[0]));
        return each_in(loop.body);
      }
    }
  }

  // Within the step that makes the yield, the old value may be read only before the same position is written.
  bool safe_within(const Step& step, const Carried& carried) {
    if (step.kind == StepKind::node) {  // mma: only the accumulator itself, never an operand a or b
      const Node& node = graph_[step.id];
      const auto touches = [&](std::size_t i) {
        return i < node.in.size() && owner(value(node.in[i])) == carried.argument;
      };
      return !touches(0) && !touches(1) && (!touches(2) || value(node.in[2]) == carried.argument);
    }
    const Chain& chain = tape_.chains[static_cast<std::size_t>(step.index)];
    int written = -1;
    for (const auto& output : chain.outputs)
      if (output.value == carried.yield) written = output.reg;
    for (std::size_t i = 0; i < chain.inputs.size(); ++i) {
      const auto& input = chain.inputs[i];
      if (owner(input.value) != carried.argument) continue;
      if (input.value != carried.argument || input.shape != chain.shape) return false;
      bool done = false;
      for (const Chain::Step& op : chain.steps) {
        const int reg = static_cast<int>(i);
        if (done && std::ranges::count(op.in, reg) > 0) return false;
        done = done || op.out == written;
      }
    }
    return true;
  }

  void add_slot(Id id, int position) { intervals_[id] = {bytes_of(graph_[id]), position, position}; }

  // Extends every slot to its last reader. A slot from outside of a loop that is read inside lasts until the loop ends.
  void measure(const Body& body) {
    for (const Step& step : body) {
      const auto use = [&](Id id) { touch(owner(id), step.position); };
      switch (step.kind) {
        case StepKind::chain:
          for (const auto& input : tape_.chains[static_cast<std::size_t>(step.index)].inputs) use(input.value);
          for (const auto& output : tape_.chains[static_cast<std::size_t>(step.index)].outputs) use(output.value);
          break;
        case StepKind::node:
          for (Id in : graph_[step.id].in) use(value(in));
          use(step.id);
          if (step.also != no_id) use(step.also);
          break;
        case StepKind::loop: {
          const Loop& loop = tape_.loops[static_cast<std::size_t>(step.index)];
          use(value(graph_[step.id].in[0]));
          spans_.push_back({step.position, step.end});
          measure(loop.body);
          for (const Carried& carried : loop.carried) {
            use(carried.initial);
            touch(owner(carried.argument), step.end);
            touch(owner(carried.yield), step.end);
          }
          if (loop.again != no_id) touch(owner(loop.again), step.end);
          spans_.pop_back();
          break;
        }
      }
    }
  }

  void touch(Id owner, int position) {
    const auto found = intervals_.find(owner);
    if (found == intervals_.end()) return;
    Interval& interval = found->second;
    interval.end = std::max(interval.end, position);
    for (auto [begin, end] : spans_)
      if (interval.begin <= begin) interval.end = std::max(interval.end, end);
  }

  double work(const Body& body) const {
    double total = 0;
    for (const Step& step : body) {
      switch (step.kind) {
        case StepKind::chain: {
          const Chain& chain = tape_.chains[static_cast<std::size_t>(step.index)];
          total += static_cast<double>(chain.shape.size()) * static_cast<double>(chain.steps.size()) / 4;
          break;
        }
        case StepKind::node: {
          const Node& node = graph_[step.id];
          const auto elements = static_cast<double>(node.shape.size());
          total += node.op == Op::mma ? elements * graph_[node.in[0]].shape[node.shape.rank() - 1] / 8
                   : is_sort(node.op) ? static_cast<double>(graph_[node.in[0]].shape.size()) * 8
                                      : elements / 4;
          break;
        }
        case StepKind::loop:
          total +=
              (graph_[step.id].op == Op::branch ? 1 : 4) * work(tape_.loops[static_cast<std::size_t>(step.index)].body);
          break;
      }
      total += 10;
    }
    return total;
  }

  Tape& tape_;
  const Graph& graph_;
  std::vector<std::vector<Id>> order_;
  std::vector<std::vector<Id>> users_;
  std::vector<int> group_;
  std::vector<Id> uniform_;
  std::set<Id> outputs_;
  std::vector<char> alias_;
  std::vector<std::vector<Id>> results_;  // of each loop
  std::vector<Id> owner_;
  std::map<Id, Interval> intervals_;
  std::vector<Interval> temporaries_;
  std::vector<std::pair<int, int>> spans_;
  int groups_ = 0, next_position_ = 0;
};

}  // namespace

Tape::Tape(Graph source) : graph(std::move(source)), reports(graph) {
  static std::atomic<std::uint64_t> next{1};
  serial = next++;
  TapeBuilder(*this).run();
}

}  // namespace tessera::internal::cpu
