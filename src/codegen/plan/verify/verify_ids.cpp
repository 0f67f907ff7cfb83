// Ids and indices are valid, and names are unique.
#include <concepts>
#include <map>
#include <set>

#include "codegen/plan/verify/verify.hpp"

namespace tessera::internal::codegen {
namespace {

class Ids {
 public:
  explicit Ids(Diagnostics& diagnostics) : diagnostics_(diagnostics), plan_(diagnostics.plan) {}

  void run() {
    diagnostics_.require(plan_.variant.tensors.size() == plan_.tensors.size(), "{} tensors with {} classes",
                         plan_.tensors.size(), plan_.variant.tensors.size());
    for (int i = 0; i < plan_.values.size(); ++i) {
      const Value& value = plan_.values[ValueId{i}];
      diagnostics_.require(plan_.storages.has(value.storage), "value {} has no storage", i);
      diagnostics_.require(value.layout.rank() == value.shape.rank(),
                           "value {} has a shape of {} axes and a layout of {}", i, value.shape.rank(),
                           value.layout.rank());
    }
    for (int i = 0; i < plan_.storages.size(); ++i) known(i, plan_.storages[StorageId{i}]);
    for (int i = 0; i < plan_.states.size(); ++i)
      diagnostics_.require(plan_.pipelines.has(plan_.states[PipelineStateId{i}].pipeline),
                           "pipeline state {} has no pipeline", i);
    for (const Pipeline& pipeline : plan_.pipelines)
      for (BufferId id : pipeline.buffers) buffer(id);
    for (const Phase& phase : plan_.phases) {
      body(phase.prologue);
      for (const Role& role : phase.roles) body(role.body);
    }
    for (const auto& [loop, times] : loops_)
      diagnostics_.require(times == 1, "loop {} is in the plan {} times", loop.index, times);
  }

 private:
  void known(int index, const Storage& storage) {
    const int tensors = static_cast<int>(plan_.tensors.size());
    std::visit(Overloaded{
                   [](std::monostate) {},
                   [&](const ScalarParameter& s) {
      diagnostics_.require(s.argument >= 0 && s.argument < tensors, "storage {} is not a scalar parameter", index);
    },
                   [&](const ExtentParameter& s) {
      const bool has = s.argument >= 0 && s.argument < tensors && s.axis >= 0 &&
                       s.axis < plan_.tensors[static_cast<std::size_t>(s.argument)].rank;
      diagnostics_.require(has, "storage {} is not an extent of a tensor", index);
    },
                   [&](const BlockIndex& s) {
      int axes = 0;
      for (const Phase& phase : plan_.phases) axes = std::max(axes, phase.first_axis + phase.axes);
      diagnostics_.require(s.axis >= 0 && s.axis < axes, "storage {} is not a grid index", index);
    },
                   [&](const Counter& s) {
      diagnostics_.require(plan_.loops.has(s.loop), "storage {} is the counter of no loop", index);
    },
               },
               storage.known);
  }

  void body(const Body& steps) {
    for (const Step& step : steps) {
      diagnostics_.about(nullptr);  // a step with invalid ids has no text
      for (ValueId id : operands(step)) value(id);
      for (ValueId id : results(step)) value(id);
      if (const Sweep* sweep = sweep_of(step)) this->sweep(*sweep);
      each_access(step, [&](const TileAccess& access, const Sweep* sweep) { this->access(access, sweep); });
      visit_kind([&]<class Kind>(const Kind& kind) {
        each_field(kind, Fields{{}, *this});
        if constexpr (requires { kind.axis, kind.sweep; })
          diagnostics_.require(kind.axis >= 0 && kind.axis < kind.sweep.shape.rank(), "axis {} does not exist",
                               kind.axis);
        if constexpr (std::same_as<Kind, Mma>) mma(kind);
      }, step.action);
      each_body(step, [&](const Body& inner) { body(inner); });
    }
  }
  struct Fields : FieldVisitor {
    void operand(const Operand& operand) { ids.single(operand); }
    void scratch(ScratchId id, Use) { ids.scratch(id); }
    void peer_scratch(ScratchId id) { ids.scratch(id); }
    void buffer(BufferId id, Use) { ids.buffer(id); }
    void pipeline(PipelineId id) { ids.pipeline(id); }
    void clipped_rows(PipelineId id) { ids.pipeline(id); }
    void state(PipelineStateId id) { ids.state(id); }
    void map(TensorMapId id) { ids.map(id); }
    void loop(LoopId id) { ids.loop(id); }
    void own_loop(LoopId id) {
      ids.loop(id);
      ++ids.loops_[id];
    }

    Ids& ids;
  };
  void sweep(const Sweep& sweep) {
    const int axes = sweep.shape.rank();
    diagnostics_.require(sweep.layout.rank() == axes, "the sweep's shape has {} axes and its layout {}", axes,
                         sweep.layout.rank());
    const std::vector<Term>& terms = sweep.expression.terms;
    for (std::size_t i = 0; i < terms.size(); ++i) {
      if (terms[i].op == Op::extent) extent(terms[i]);
      for (const Operand& in : terms[i].in) {
        if (in.kind == Operand::Kind::term)
          diagnostics_.require(in.index >= 0 && static_cast<std::size_t>(in.index) < i, "term {} uses term {}", i,
                               in.index);
        if (in.kind == Operand::Kind::fetched)
          diagnostics_.require(in.index >= 0 && in.index < std::ssize(sweep.reads), "read {} of {} does not exist",
                               in.index, sweep.reads.size());
        if (in.kind == Operand::Kind::coordinate)
          diagnostics_.require(in.index >= 0 && in.index < axes, "axis {} does not exist", in.index);
      }
    }
  }
  void extent(const Term& term) {
    const bool is_list = term.argument >= 0 && term.argument < std::ssize(plan_.tensors) &&
                         tensors_of_list(plan_.tensors, static_cast<std::size_t>(term.argument)) > 0;
    if (!is_list) return diagnostics_.require(false, "parameter {} is not a list of tensors", term.argument);
    const int rank = plan_.tensors[static_cast<std::size_t>(term.argument)].rank;
    diagnostics_.require(term.axis >= 0 && term.axis < rank, "axis {} of tensors of {} axes", term.axis, rank);
  }
  void mma(const Mma& s) {
    diagnostics_.require(s.shape.rank() == 2 && s.layout.rank() == 2, "a matmul must have two axes");
    for (const MatmulOperand* o : {&s.matmul.a, &s.matmul.b})
      diagnostics_.require(bool(o->buffer) != bool(o->value),
                           "an operand of a matmul must be either in a buffer or in registers");
  }
  void access(const TileAccess& access, const Sweep* sweep) {
    diagnostics_.require(access.parameter >= 0 && access.parameter < std::ssize(plan_.tensors),
                         "parameter {} does not exist", access.parameter);
    diagnostics_.require(!access.rows || !access.axes.empty(), "a gather of rows of a tensor without axes");
    diagnostics_.require(access.fast >= -1 && access.fast < std::ssize(access.axes), "axis {} does not exist",
                         access.fast);
    if (sweep && !access.by_elements())
      diagnostics_.require(std::ssize(access.axes) <= sweep->shape.rank(), "an access of {} axes in a sweep of {} axes",
                           access.axes.size(), sweep->shape.rank());
    if (access.member) single(*access.member);
    for (const TileAccess::Axis& axis : access.axes) {
      single(axis.index);
      for (const TileAccess::Slice& slice : axis.slices) {
        single(slice.start);
        single(slice.extent);
      }
    }
  }
  void single(const Operand& operand) {
    diagnostics_.require(operand.kind == Operand::Kind::value || operand.kind == Operand::Kind::literal,
                         "an index, a count or a condition is neither a value nor a literal");
  }
  void value(ValueId id) {
    diagnostics_.require(plan_.values.has(id), "a step refers to value {}, which does not exist", id.index);
  }
  void buffer(BufferId id) {
    diagnostics_.require(plan_.buffers.has(id), "a step refers to buffer {}, which does not exist", id.index);
  }
  void scratch(ScratchId id) {
    diagnostics_.require(plan_.scratch.has(id), "a step refers to scratch memory {}, which does not exist", id.index);
  }
  void pipeline(PipelineId id) {
    diagnostics_.require(plan_.pipelines.has(id), "a step refers to pipeline {}, which does not exist", id.index);
  }
  void state(PipelineStateId id) {
    diagnostics_.require(plan_.states.has(id), "a step refers to pipeline state {}, which does not exist", id.index);
  }
  void map(TensorMapId id) {
    diagnostics_.require(plan_.tensor_maps.has(id), "a step refers to tensor map {}, which does not exist", id.index);
  }
  void loop(LoopId id) {
    diagnostics_.require(plan_.loops.has(id), "a step refers to loop {}, which does not exist", id.index);
  }

  Diagnostics& diagnostics_;
  const Plan& plan_;
  std::map<LoopId, int> loops_;
};

void check_names(Diagnostics& diagnostics) {
  const Plan& plan = diagnostics.plan;
  std::set<std::string> names;
  const auto name = [&](const std::string& name) {
    diagnostics.require(names.insert(name).second, "two entries of the plan have the name {}", name);
  };
  std::set<std::string> known;  // several storages may be the same scalar, extent or index: they are never written
  for (int i = 0; i < plan.storages.size(); ++i)
    if (std::holds_alternative<std::monostate>(plan.storages[StorageId{i}].known))
      name(name_of(plan, StorageId{i}));
    else
      known.insert(name_of(plan, StorageId{i}));
  for (const std::string& one : known) name(one);
  for (int i = 0; i < plan.buffers.size(); ++i) name(name_of(plan, BufferId{i}));
  for (int i = 0; i < plan.pipelines.size(); ++i) name(name_of(plan, PipelineId{i}));
  for (int i = 0; i < plan.states.size(); ++i) name(name_of(plan, PipelineStateId{i}));
  for (int i = 0; i < plan.tensor_maps.size(); ++i) name(name_of(plan, TensorMapId{i}));
  std::set<std::string> counters;
  for (int i = 0; i < plan.loops.size(); ++i) {
    const std::string counter = name_of(plan, LoopId{i});
    diagnostics.require(counters.insert(counter).second, "two loops have the counter {}", counter);
    if (!known.contains(counter)) name(counter);
  }
}

}  // namespace

bool check_ids(Diagnostics& diagnostics) {
  Ids(diagnostics).run();
  if (!diagnostics.found.empty()) return false;
  check_names(diagnostics);
  return true;
}

}  // namespace tessera::internal::codegen
