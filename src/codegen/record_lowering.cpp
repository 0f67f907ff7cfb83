#include "codegen/record_lowering.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "codegen/plan/effects.hpp"
#include "codegen/plan/names.hpp"
#include "codegen/plan/plan_text.hpp"
#include "codegen/plan/tables_text.hpp"
#include "graph/text_lines.hpp"

namespace tessera::internal {

using namespace codegen;
using lowering::GraphAnalysis;

namespace {

LoweringRecord::Place place_of(const Location& location) {
  if (!location.file || !*location.file) return {};
  return {location.file, location.line};
}

std::int64_t elements(const Shape& shape) {
  std::int64_t count = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) count *= shape[axis];
  return count;
}

/// How often a node is computed for a grid tile, as far as trip counts are known.
struct Repeats {
  std::int64_t times = 1;
  bool unknown = false;
};
Repeats repeats_of(const GraphAnalysis& analysis, const Node& node) {
  const Graph& graph = analysis.graph;
  Repeats repeats;
  for (RegionId region = node.region; region != 0;) {
    const Id owner = analysis.owner[region];
    if (owner == no_id) break;
    if (graph[owner].op == Op::loop) {
      const Node& count = graph[graph[owner].in[0]];
      if (count.op == Op::constant)
        repeats.times *= count.number().i32;
      else
        repeats.unknown = true;
    } else if (graph[owner].op == Op::repeat) {
      repeats.unknown = true;
    }
    region = graph[owner].region;
  }
  return repeats;
}

/// Numbers of the nodes that labels of a step's fields name.
struct NodeNumbers : FieldVisitor {
  explicit NodeNumbers(const Plan& of) : plan(of) {}
  const Plan& plan;
  std::set<int> numbers;
  void add(const Label& label) {
    if (label.number >= 0 && label.graph == 0) numbers.insert(label.number);
  }
  void map(TensorMapId map) { add(plan.tensor_maps[map].label); }
};

/// The nodes that a step computes: its own, and those of its expression.
struct NodesOf : NodeNumbers {
  using NodeNumbers::NodeNumbers;
  void sweep(const Sweep& sweep) {
    for (const TileAccess& read : sweep.reads) add(read.label);
    for (const Term& term : sweep.expression.terms) add(term.label);
  }
  void access(const TileAccess& access, Use) { add(access.label); }
  void copy(const TileAccess& access) { add(access.label); }
};

/// The loads whose tiles a step copies, waits for, or releases.
struct LoadsOf : NodeNumbers {
  using NodeNumbers::NodeNumbers;
  void state(PipelineStateId state) { pipeline(plan.states[state].pipeline); }
  void pipeline(PipelineId id) {
    for (const BufferId buffer : plan.pipelines[id].buffers) add(plan.buffers[buffer].label);
  }
};

/// Calls each(step, depth) for all steps, in the order of tree_text.
void each_step(const Body& body, int depth, const auto& each) {
  for (const Step& step : body) {
    each(step, depth);
    each_body(step, [&](const Body& inner) { each_step(inner, depth + 1, each); });
  }
}
void each_step(const Plan& plan, const auto& each) {
  for (const Phase& phase : plan.phases) {
    each_step(phase.prologue, 0, each);
    for (const Role& role : phase.roles) each_step(role.body, 0, each);
  }
}

/// Bytes of an element of the operands that a step multiplies on tensor cores; 0: it does not.
int tensor_core_bytes(const Step& step) {
  if (const Wgmma* const wgmma = step.action.as<Wgmma>()) return info(wgmma->type).bytes;
  const Mma* const mma = step.action.as<Mma>();
  return mma && mma->matmul.kind == MatmulKind::mma_sync ? info(mma->matmul.type).bytes : 0;
}

std::string stage(const Plan& plan, PipelineStateId state, std::string_view barrier) {
  return fmt::format("{} {}", name_of(plan, plan.states[state].pipeline), barrier);
}

}  // namespace

void LoweringRecorder::begin(const GraphAnalysis& analysis) {
  record_ = std::make_shared<LoweringRecord>();
  node_numbers_ = analysis.number;
  steps_.clear();
  add_nodes(analysis);
}

void LoweringRecorder::add_nodes(const GraphAnalysis& analysis) {
  const Graph& graph = analysis.graph;
  record_->graph = to_string(graph, true);
  for (const std::string_view line : text_lines(record_->graph)) {
    const std::string_view inside = trimmed(line);
    int number = -1;
    if (inside.starts_with('%')) std::from_chars(inside.data() + 1, inside.data() + inside.size(), number);
    record_->graph_nodes.push_back(number);
  }
  for (Id id = 0; id < graph.nodes.size(); ++id) {
    const int number = analysis.number[id];
    if (number < 0) continue;
    const Node& node = graph[id];
    LoweringRecord::Node record{
        .op = std::string(name(node.op)), .result = {}, .operands = {}, .at = place_of(node.location)};
    if (has_value(node.op)) record.result = fmt::format("{}{}", name(node.type), to_string(node.shape));
    const auto follows = [&](Id other) {
      if (other != no_id && analysis.number[other] >= 0) record.operands.push_back(analysis.number[other]);
    };
    std::ranges::for_each(node.in, follows);
    if (node.op == Op::argument) follows(analysis.owner[node.region]);
    if (node.op == Op::result) std::ranges::for_each(graph.regions[graph[node.in[0]].body()].yields, follows);
    const Repeats repeats = repeats_of(analysis, node);
    record.repeated = repeats.unknown;
    record.is_access = is_read(node.op) || info(node.op).role == OpRole::write || is_atomic(node.op);
    record.is_matmul = node.op == Op::mma;
    const bool is_tile = node.shape.rank() > 0;
    if (record.is_access && is_tile) record.bytes = elements(node.shape) * info(node.type).bytes * repeats.times;
    if (record.is_matmul) {
      const Shape& left = graph[node.in[0]].shape;
      record.flops = 2 * elements(node.shape) * left[left.rank() - 1] * repeats.times;
    } else if (is_tile && info(node.op).role == OpRole::elementwise && node.op != Op::cast) {
      record.flops = elements(node.shape) * repeats.times;
    } else if (is_tile && info(node.op).group == OpGroup::reduction) {
      record.flops = elements(graph[node.in[0]].shape) * repeats.times;
    }
    if (record_->nodes.size() <= static_cast<std::size_t>(number))
      record_->nodes.resize(static_cast<std::size_t>(number) + 1);
    record_->nodes[static_cast<std::size_t>(number)] = std::move(record);
  }
}

PlanObserver LoweringRecorder::observer() {
  return {.begins = [this](const GraphAnalysis& analysis) { begin(analysis); },
          .after_pass = [this](const lowering::PlanPass& pass, const Plan& plan) {
            record_->passes.push_back({pass.name, pass.what, dump_text(plan)});
          },
          .rejected = [this] { record_->passes.clear(); }};
}

std::shared_ptr<LoweringRecord> LoweringRecorder::finish(const Plan& plan, const StepLines& plan_lines,
                                                         const StepLines& kernel) {
  add_steps(plan);
  record_->plan_steps = numbers(plan_lines);
  for (int& step : record_->plan_steps)
    if (step == 0) step = -1;
  record_->kernel_steps = numbers(kernel);
  add_layouts(plan);
  add_shared(plan);
  add_roles(plan);
  record_->sources = plan.words.lines;
  // A step that follows from others has no line of its own. It belongs to the one before it in the text.
  LoweringRecord::Place last = record_->steps.front().at;
  for (const int number : record_->kernel_steps) {
    if (number == 0) continue;
    LoweringRecord::Place& at = record_->steps[static_cast<std::size_t>(number)].at;
    if (at.file.empty()) at = last;
    last = at;
  }
  return record_;
}

int LoweringRecorder::number_of(const Step* step) const {
  const auto found = steps_.find(step);
  return found == steps_.end() ? 0 : found->second;
}

std::vector<int> LoweringRecorder::numbers(const StepLines& lines) const {
  std::vector<int> numbers;
  for (const Step* const step : lines.steps) numbers.push_back(number_of(step));
  return numbers;
}

void LoweringRecorder::add_steps(const Plan& plan) {
  record_->steps.push_back({{}, place_of(plan.location)});
  each_step(plan, [&](const Step& step, int) {
    steps_[&step] = static_cast<int>(record_->steps.size());
    NodesOf nodes(plan);
    if (step.node != no_id && step.node < node_numbers_.size() && node_numbers_[step.node] >= 0)
      nodes.numbers.insert(node_numbers_[step.node]);
    visit_kind([&](const auto& kind) { each_field(kind, nodes); }, step.action);
    LoweringRecord::Place at = place_of(step.location);
    // Its location is that of the matmul that it serves; a reader looks for its load, or for the grid.
    std::set<int> instead;
    if (step.action.is<TileLoop>()) {
      for (std::size_t node = 0; node < record_->nodes.size(); ++node)
        if (record_->nodes[node].op == name(Op::block)) instead.insert(static_cast<int>(node));
    } else if (!step.action.is<Wgmma>()) {  // which computes with the tiles
      visit_kind([&]<class Kind>(const Kind& kind) {
        if constexpr (OfRoles<Kind>) {
          LoadsOf loads(plan);
          each_field(kind, loads);
          instead = loads.numbers;
        }
      }, step.action);
    }
    if (!instead.empty()) {
      nodes.numbers = instead;
      at = record_->nodes[static_cast<std::size_t>(*instead.begin())].at;
    }
    if (const int bytes = tensor_core_bytes(step))
      for (const int node : nodes.numbers)
        if (LoweringRecord::Node& of = record_->nodes[static_cast<std::size_t>(node)]; of.is_matmul)
          of.tensor_core_bytes = bytes;
    record_->steps.push_back({{nodes.numbers.begin(), nodes.numbers.end()}, at});
  });
}

void LoweringRecorder::add_layouts(const Plan& plan) {
  std::set<std::string> known;
  for (const Value& value : plan.values) {
    const Storage& storage = plan.storages[value.storage];
    const bool in_registers = storage.storage_class == StorageClass::registers;
    if (storage.storage_class == StorageClass::variable || value.shape.rank() == 0) continue;
    LoweringRecord::Layout layout{.name = name_of(plan, value.storage),
                                  .type = std::string(name(storage.type)),
                                  .storage = in_registers ? "registers" : "memory",
                                  .text = to_string(value.layout),
                                  .registers = storage.registers / storage.packed,
                                  .shape = {},
                                  .axes = {}};
    for (int axis = 0; axis < value.shape.rank(); ++axis) {
      layout.shape.push_back(static_cast<int>(value.shape[axis]));
      std::vector<LoweringRecord::Factor>& factors = layout.axes.emplace_back();
      for (const Factor& factor : value.layout.axis(axis))
        factors.push_back({static_cast<int>(factor.place), factor.size, factor.unit});
    }
    if (known.insert(layout.name + layout.text).second) record_->layouts.push_back(std::move(layout));
  }
}

void LoweringRecorder::add_shared(const Plan& plan) {
  Intervals buffers(plan.buffers.size()), scratch(plan.scratch.size());
  PlanWalk walk(plan, true);  // roles one after another
  const int end =
      walk.each([&](const Role& role, const Step& step, int at, const std::vector<const Interval*>& around) {
        for (const Effect& effect : effects(plan, role, step)) {
          if (effect.space == Effect::Space::buffer) buffers.touch(effect.index, at, around);
          if (effect.space == Effect::Space::scratch) scratch.touch(effect.index, at, around);
        }
      });
  const auto add =
      [&](const std::string& name, std::int64_t bytes, std::int64_t offset, bool in_workspace, Interval in_use) {
    if (!in_workspace && in_use.last >= 0) record_->shared.push_back({name, bytes, offset, in_use.first, in_use.last});
  };
  for (int i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& buffer = plan.buffers[BufferId{i}];
    add(name_of(plan, BufferId{i}), buffer.bytes(), buffer.offset, buffer.in_workspace, buffers.of(i));
  }
  for (int i = 0; i < plan.scratch.size(); ++i) {
    const Scratch& piece = plan.scratch[ScratchId{i}];
    add(name_of(ScratchId{i}), piece.bytes, piece.offset, piece.in_workspace, scratch.of(i));
  }
  for (int i = 0; i < plan.storages.size(); ++i) {
    const Storage& storage = plan.storages[StorageId{i}];
    if (storage.storage_class == StorageClass::shared)
      add(name_of(plan, StorageId{i}), std::int64_t{storage.registers} * plan.threads() * info(storage.type).bytes,
          storage.offset, false, {0, std::max(end - 1, 0)});
  }
  for (const Pipeline& pipeline : plan.pipelines)
    add(name_of(pipeline.label) + " mbarriers", pipeline.barrier_bytes(), pipeline.offset, false,
        {0, std::max(end - 1, 0)});
}

void LoweringRecorder::add_roles(const Plan& plan) {
  const auto add = [&](std::string title, const Body& body) {
    LoweringRecord::Role role{std::move(title), {}};
    each_step(body, 0, [&](const Step& step, int depth) {
      LoweringRecord::RoleStep one{number_of(&step), depth, step_text(plan, step), {}, {}};
      if (const auto* s = step.action.as<WaitEmpty>()) one.waits = stage(plan, s->state, "empty");
      if (const auto* s = step.action.as<WaitFull>()) one.waits = stage(plan, s->state, "full");
      if (const auto* s = step.action.as<ArriveExpectTx>()) one.signals = stage(plan, s->state, "full");
      if (const auto* s = step.action.as<Arrive>()) one.signals = stage(plan, s->state, "full");
      if (const auto* s = step.action.as<ArriveEmpty>()) one.signals = stage(plan, s->state, "empty");
      role.steps.push_back(std::move(one));
    });
    record_->roles.push_back(std::move(role));
  };
  for (const Phase& phase : plan.phases) {
    if (!phase.prologue.empty()) add("all warps, before the roles", phase.prologue);
    for (const Role& role : phase.roles)
      add(phase.roles.size() > 1 ? role_text(role) : fmt::format("all {} warps", role.warps), role.body);
  }
}

}  // namespace tessera::internal
