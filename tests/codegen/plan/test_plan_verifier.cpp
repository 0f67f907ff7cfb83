// The plan verifier against planted faults: each takes a real plan and breaks one thing in it.
#include "codegen/plan/plan.hpp"
#include "codegen/plan/plan_text.hpp"
#include "codegen/plan/verify/verify_plan.hpp"
#include "support/catch.hpp"
#include "support/plan_kernels.hpp"
#include "support/plan_steps.hpp"
#include "support/planted_faults.hpp"

namespace test_plan_verifier {

using namespace tessera::internal;
using namespace tessera::internal::codegen;

namespace {

struct KernelFault {
  const char* name;
  const char* kernel;
  void (*plant)(Plan&);
  const char* words;  ///< part of one of the verifier's messages
};

// --- helpers that break a plan

Body& body_of(Plan& plan) { return plan.phases[0].roles[0].body; }
Value& value_of(Plan& plan, ValueId id) { return plan.values[id]; }

/// The nth barrier directly before a step of a kind.
template <class Kind>
StepPlace barrier_before(Plan& plan, std::size_t nth = 0) {
  for (const StepPlace& place : places_of<Barrier>(plan))
    if (place.index + 1 < place.body->size() && (*place.body)[place.index + 1].action.is<Kind>() &&
        nth-- == 0)
      return place;
  throw std::runtime_error("there is no such barrier");
}

/// A layout whose factors are modified.
Layout edited(const Layout& layout, const std::function<void(std::vector<std::vector<Factor>>&)>& edit) {
  std::vector<std::vector<Factor>> axes;
  for (int axis = 0; axis < layout.rank(); ++axis) axes.push_back(layout.axis(axis));
  edit(axes);
  Layout made(static_cast<int>(axes.size()));
  for (int axis = 0; axis < made.rank(); ++axis)
    for (const Factor& factor : axes[static_cast<std::size_t>(axis)]) made.add(axis, factor);
  return made;
}
Factor& factor_of(std::vector<std::vector<Factor>>& axes, Place place) {
  for (auto& axis : axes)
    for (Factor& factor : axis)
      if (factor.place == place) return factor;
  throw std::runtime_error("the layout has no such factor");
}

/// An operand of a kind in a step's expression.
template <class Step>
Operand& operand_of(Step& step, Operand::Kind kind) {
  for (Term& term : step.sweep.expression.terms)
    for (Operand& operand : term.in)
      if (operand.kind == kind) return operand;
  throw std::runtime_error("the expression has no such operand");
}
/// The nth step of a kind whose expression has an operand of a kind.
template <class Kind>
Kind& with_operand(Plan& plan, Operand::Kind kind) {
  for (const StepPlace& place : places_of<Kind>(plan)) {
    Kind& step = place.step().action.get<Kind>();
    for (const Term& term : step.sweep.expression.terms)
      for (const Operand& operand : term.in)
        if (operand.kind == kind) return step;
  }
  throw std::runtime_error("no expression has such an operand");
}

Operand literal(std::int64_t number) {
  Operand operand;
  operand.kind = Operand::Kind::literal;
  operand.literal = number;
  return operand;
}
Operand value(ValueId id) {
  Operand operand;
  operand.kind = Operand::Kind::value;
  operand.value = id;
  return operand;
}
Operand of_kind(Operand::Kind kind, int index) {
  Operand operand;
  operand.kind = kind;
  operand.index = index;
  return operand;
}

/// A value that is a thread's own.
template <class What>
ValueId known(Plan& plan) {
  for (int i = 0; i < plan.values.size(); ++i)
    if (std::holds_alternative<What>(plan.storage(ValueId{i}).known)) return ValueId{i};
  throw std::runtime_error("nothing is known so");
}
Storage& known_storage(Plan& plan, const Known& becomes) {
  for (Storage& storage : plan.storages)
    if (!std::holds_alternative<std::monostate>(storage.known)) {
      storage.known = becomes;
      return storage;
    }
  throw std::runtime_error("nothing is known");
}

Fetch::Tile& fetched(Plan& plan) { return the<Fetch>(plan).tiles.front(); }
Buffer& buffer_of(Plan& plan, int index = 0) { return plan.buffers[BufferId{index}]; }
CrossWarpReduce& partials_of(Plan& plan) { return the<CrossWarpReduce>(plan); }
TileAccess::Axis& axis_of(TileAccess& access, std::size_t axis) { return access.axes.at(axis); }
void drop_parameter(Plan& plan, KernelParameter::Kind kind) {
  std::erase_if(plan.parameters, [&](const KernelParameter& parameter) { return parameter.kind == kind; });
}

// --- the faults

using Kind = Operand::Kind;

// Ids, and indices in expressions and offsets.
const KernelFault of_ids[] = {
    {"an operand that is not a value", "pointwise",
     [](Plan& p) { the<Store>(p).access.axes[0].index.value = ValueId{9999}; }, "value 9999, which does not exist"},
    {"a matmul's operand is in a buffer that does not exist", "in_place",
     [](Plan& p) { the<Mma>(p).matmul.b.buffer = BufferId{99}; }, "buffer 99, which does not exist"},
    {"scratch memory that does not exist", "transposed", [](Plan& p) { the<LoadScratch>(p).scratch = ScratchId{99}; },
     "scratch memory 99, which does not exist"},
    {"a loop that does not exist", "pipelined", [](Plan& p) { the<Loop>(p).loop = LoopId{99}; },
     "loop 99, which does not exist"},
    {"the stage of a loop that does not exist", "pipelined", [](Plan& p) { the<Mma>(p).matmul.a.stage = LoopId{99}; },
     "loop 99, which does not exist"},
    {"a fetch for a loop that does not exist", "pipelined", [](Plan& p) { the<Fetch>(p).loop = LoopId{99}; },
     "loop 99, which does not exist"},
    {"a fetch during a matmul for a loop that does not exist", "pipelined",
     [](Plan& p) { the<Mma>(p).fetching = LoopId{99}; }, "loop 99, which does not exist"},
    {"a value without storage", "pointwise", [](Plan& p) { value_of(p, ValueId{0}).storage = StorageId{999}; },
     "value 0 has no storage"},
    {"a loop occurs twice", "shifted", [](Plan& p) { body_of(p).push_back(place_of<Loop>(p).step()); },
     "is in the plan 2 times"},
    {"an operand in a buffer and in registers", "in_place",
     [](Plan& p) { the<Mma>(p).matmul.a.value = the<Mma>(p).out; }, "either in a buffer or in registers"},
    {"an operand nowhere", "in_place", [](Plan& p) { the<Mma>(p).matmul.b.buffer = {}; },
     "either in a buffer or in registers"},
    {"two values with one name", "normalized",
     [](Plan& p) { p.storage(the<Reduce>(p, 1).out).label = p.storage(the<Reduce>(p, 0).out).label; },
     "two entries of the plan have the name sum_"},
    {"a buffer has the name of a value", "in_place",
     [](Plan& p) { buffer_of(p).label = p.storage(the<Mma>(p).out).label; },
     "two entries of the plan have the name mma_"},
    {"two loop counters with one name", "two_loops",
     [](Plan& p) { p.loops[LoopId{1}].counter = p.loops[LoopId{0}].counter; }, "two loops have the counter i_"},
    {"a counter without a loop", "shifted", [](Plan& p) { known_storage(p, Counter{LoopId{9}}); },
     "is the counter of no loop"},
    {"a scalar that is not a parameter", "pointwise", [](Plan& p) { known_storage(p, ScalarParameter{9}); },
     "is not a scalar parameter"},
    {"an extent of an axis that does not exist", "pointwise", [](Plan& p) { known_storage(p, ExtentParameter{0, 3}); },
     "is not an extent of a tensor"},
    {"the index of a grid axis that does not exist", "pointwise", [](Plan& p) { known_storage(p, BlockIndex{1}); },
     "is not a grid index"},
    {"a term uses itself", "pointwise",
     [](Plan& p) {
  Expression& expression = the<Store>(p).sweep.expression;
  operand_of(the<Store>(p), Kind::term).index = static_cast<int>(expression.terms.size()) - 1;
}, "uses term"},
    {"a negative term", "pointwise", [](Plan& p) { operand_of(the<Store>(p), Kind::term).index = -1; }, "uses term -1"},
    {"a read that does not exist", "large",
     [](Plan& p) { operand_of(with_operand<Compute>(p, Kind::fetched), Kind::fetched).index = 5; }, "read 5 of"},
    {"a coordinate along no axis", "pointwise",
     [](Plan& p) { the<Store>(p).sweep.expression.terms[0].in[0] = of_kind(Kind::coordinate, 1); },
     "axis 1 does not exist"},
    {"a tensor that does not exist", "pointwise", [](Plan& p) { the<Load>(p).access.parameter = 9; },
     "parameter 9 does not exist"},
    {"a tensor that does not exist, before a loop", "pipelined", [](Plan& p) { fetched(p).access.parameter = -1; },
     "parameter -1 does not exist"},
    {"neighbors along an axis that does not exist", "pointwise", [](Plan& p) { the<Load>(p).access.fast = 1; },
     "axis 1 does not exist"},
    {"a reduction along an axis that does not exist", "rows", [](Plan& p) { the<Reduce>(p).axis = 2; },
     "axis 2 does not exist"},
    {"a tensor without a class", "pointwise", [](Plan& p) { p.variant.tensors.pop_back(); },
     "3 tensors with 2 classes"},
    {"a value with more axes than its layout", "pointwise",
     [](Plan& p) { value_of(p, the<Load>(p).out).shape = Shape{1, 1024}; }, "has a shape of 2 axes and a layout of 1"},
    {"a sweep with more axes than its layout", "pointwise", [](Plan& p) { the<Store>(p).sweep.shape = Shape{1, 1024}; },
     "the sweep's shape has 2 axes and its layout 1"},
    {"a matmul with three axes", "in_place", [](Plan& p) { the<Mma>(p).shape = Shape{1, 64, 64}; },
     "a matmul must have two axes"},
    {"an index of more axes than the sweep", "pointwise",
     [](Plan& p) { the<Store>(p).access.axes.push_back(the<Store>(p).access.axes[0]); },
     "an access of 2 axes in a sweep of 1"},
    {"a trip count that is a coordinate", "shifted", [](Plan& p) { the<Loop>(p).count = of_kind(Kind::coordinate, 0); },
     "neither a value nor a literal"},
};

// Layouts, storage, and values that are read before they are defined.
const KernelFault of_values[] = {
    {"a layout that does not reach the tile's end", "pointwise",
     [](Plan& p) {
  Layout& layout = value_of(p, the<Load>(p).out).layout;
  layout = edited(layout, [](auto& axes) { factor_of(axes, Place::lane).size /= 2; });
}, "covers 512 of 1024 along axis 0"},
    {"a sweep that does not reach the tile's end", "pointwise",
     [](Plan& p) {
  Layout& layout = the<Store>(p).sweep.layout;
  layout = edited(layout, [](auto& axes) { factor_of(axes, Place::lane).size /= 2; });
}, "the layout of the sweep covers 512 of 1024"},
    {"the same lanes twice in a layout", "transposed",
     [](Plan& p) {
  Layout& layout = value_of(p, the<LoadScratch>(p).out).layout;
  layout = edited(layout, [](auto& axes) { axes[0].push_back({Place::lane, 2, 1}); });
}, "use the same threads"},
    {"the same warps twice in a sweep", "transposed",
     [](Plan& p) {
  Layout& layout = the<Store>(p).sweep.layout;
  layout = edited(layout, [](auto& axes) {
    for (auto& axis : axes) axis.insert(axis.begin(), {Place::warp, 2, 1});
  });
}, "two digits of the layout of the sweep use the same threads"},
    {"more lanes than a warp has", "pointwise",
     [](Plan& p) {
  Layout& layout = value_of(p, the<Load>(p).out).layout;
  layout = edited(layout, [](auto& axes) { factor_of(axes, Place::lane).unit = 2; });
}, "needs more than 32 lanes"},
    {"lanes with a scale of 3", "pointwise",
     [](Plan& p) {
  Layout& layout = value_of(p, the<Load>(p).out).layout;
  layout = edited(layout, [](auto& axes) { factor_of(axes, Place::lane).unit = 3; });
}, "over threads in steps of 3"},
    {"more warps than the role has", "pointwise",
     [](Plan& p) {
  Layout& layout = value_of(p, the<Load>(p).out).layout;
  layout = edited(layout, [](auto& axes) { axes[0].insert(axes[0].begin(), {Place::warp, 2, 32}); });
}, "needs more warps than a role has"},
    {"registers with a gap", "transposed",
     [](Plan& p) {
  Layout& layout = value_of(p, the<LoadScratch>(p).out).layout;
  layout = edited(layout, [](auto& axes) { factor_of(axes, Place::reg).unit *= 2; });
}, "are not numbered without gaps"},
    {"storage with fewer registers than its layout", "transposed",
     [](Plan& p) { p.storage(the<LoadScratch>(p).out).registers /= 2; }, "registers, its storage"},
    {"a variable of many elements", "transposed",
     [](Plan& p) { p.storage(the<LoadScratch>(p).out).storage_class = StorageClass::variable; },
     "is a variable, but has"},
    {"memory that is no whole number of vectors", "large",
     [](Plan& p) {
  for (Storage& storage : p.storages)
    if (storage.storage_class == StorageClass::shared || storage.storage_class == StorageClass::workspace)
      storage.vector = 3;
}, "are not whole vectors of 3"},
    {"a step with another layout than its result's", "exchanged",
     [](Plan& p) { the<Load>(p, 0).sweep.layout = the<Load>(p, 1).sweep.layout; }, "the sweep is over"},
    {"a step with another shape than its result's", "pointwise",
     [](Plan& p) { the<Load>(p).sweep.shape = Shape{1023}; }, "the sweep is over [1023]"},
    {"vectors of 3", "pointwise", [](Plan& p) { the<Store>(p).sweep.vector = 3; }, "not whole vectors of 3"},
    {"registers in the wrong order", "normalized",
     [](Plan& p) {
  for (const StepPlace& place : places_of<Store>(p))
    for (Term& term : place.step().action.get<Store>().sweep.expression.terms)
      for (Operand& in : term.in)
        if (!in.map.empty()) in.map[0].scale *= 2;
}, "are mapped to wrong ones"},
    {"the registers of one operand used for those of another", "normalized",
     [](Plan& p) {
  // One that is broadcast, and one that is not.
  Operand *all = nullptr, *one = nullptr;
  for (Term& term : the<Store>(p).sweep.expression.terms)
    for (Operand& in : term.in)
      if (in.kind == Kind::value) (in.map.empty() ? one : all) = &in;
  std::swap(all->map, one->map);
}, "are mapped to wrong ones"},
    {"rows in the wrong order", "gathered",
     [](Plan& p) {
  for (Digit& digit : the<Store>(p).access.rows_map) digit.scale *= 2;
  if (the<Store>(p).access.rows_map.empty()) the<Store>(p).access.rows_map.push_back({1, 2, 1});
}, "are mapped to wrong ones"},
    {"rows in another distribution", "gathered",
     [](Plan& p) {
  const Layout layout = edited(value_of(p, the<Store>(p).access.rows).layout, [](auto& axes) {
    axes[0] = {{Place::reg, 64, 1}};
  });
  const StorageId storage = p.storages.add({.label = {"other"}, .type = ElementType::i32, .registers = 64});
  the<Store>(p).access.rows = p.values.add({storage, Shape{64}, layout});
}, "does not have the layout of the rows of the sweep"},
    {"an operand in another layout", "exchanged",
     [](Plan& p) { operand_of(the<Store>(p, 0), Kind::value).value = the<Load>(p, 1).out; }, "load_7 has layout"},
    {"an operand that cannot be broadcast", "normalized",
     [](Plan& p) { value_of(p, the<Reduce>(p).out).shape = Shape{1, 2}; }, "cannot be broadcast"},
    {"a value is read before it is defined", "pointwise", [](Plan& p) { place_of<Load>(p).move(1); },
     "is read before it is defined"},
    {"a value is read after the branch that defines it", "branched",
     [](Plan& p) {
  const StepPlace store = place_of<Store>(p);
  Step moved = store.step();
  store.drop();
  body_of(p).push_back(std::move(moved));
}, "before it is defined"},
    {"a value is read after the loop that defines it", "shifted",
     [](Plan& p) {
  const StepPlace store = place_of<Store>(p);
  Step moved = store.step();
  store.drop();
  body_of(p).push_back(std::move(moved));
}, "load_8 is read before it is defined"},
    {"a counter is read outside of its loop", "shifted",
     [](Plan& p) {
  const StepPlace load = place_of<Load>(p);
  Step moved = load.step();
  load.drop();
  body_of(p).insert(body_of(p).begin(), std::move(moved));
}, "is read outside of its loop"},
    {"a value is defined twice", "pointwise",
     [](Plan& p) {
  Step again = place_of<Load>(p).step();
  body_of(p).insert(body_of(p).begin(), std::move(again));
}, "is defined twice, but not marked as changing"},
    {"accumulators that are not marked as changing", "in_place",
     [](Plan& p) { p.storage(the<Mma>(p).out).changes = false; }, "is defined twice, but not marked as changing"},
    {"accumulation into undefined accumulators", "in_place",
     [](Plan& p) {
  for (const StepPlace& place : places_of<Compute>(p))
    if (place.step().action.get<Compute>().out == the<Mma>(p).out) return place.drop();
}, "is accumulated to before it is defined"},
    {"a CTA's index is written", "pointwise", [](Plan& p) { the<Load>(p).out = known<BlockIndex>(p); },
     "block0 is written"},
    {"an index with many elements", "pointwise",
     [](Plan& p) { the<Store>(p).access.axes[0].index = value(the<Load>(p).out); }, "is not a single element"},
    {"a condition that is a number", "branched",
     [](Plan& p) { the<Branch>(p).condition = value(known<ScalarParameter>(p)); }, "is i32, not pred"},
    {"a trip count that is a real number", "shifted",
     [](Plan& p) {
  const ValueId count = known<ExtentParameter>(p);
  the<Loop>(p).count = value(count);
  p.storage(count).type = ElementType::f32;
}, "is f32, not i32"},
    {"registers that a loop indexes", "transposed", [](Plan& p) { the<LoadScratch>(p).sweep.unrolled = false; },
     "is in registers, but the sweep is not unrolled"},
    {"rows that a loop indexes", "gathered",
     [](Plan& p) {
  the<Store>(p).sweep.unrolled = false;
  p.storage(the<Store>(p).access.rows).storage_class = StorageClass::registers;
}, "but the sweep is not unrolled"},
};

// Types and terms.
const KernelFault of_types[] = {
    {"a result of another type than its expression", "transposed",
     [](Plan& p) { p.storage(the<Compute>(p).out).type = ElementType::i32; },
     "the expression is f32, the result is i32"},
    {"a load of another type than its tensor", "pointwise",
     [](Plan& p) { p.storage(the<Load>(p).out).type = ElementType::f16; }, "the elements are f32, the result is f16"},
    {"an operand of another type", "pointwise", [](Plan& p) { p.storage(the<Load>(p).out).type = ElementType::i32; },
     "'mul' takes f32, but gets i32"},
    {"a term of another type than its op returns", "pointwise",
     [](Plan& p) { the<Store>(p).sweep.expression.terms[0].type = ElementType::i32; },
     "'mul' of f32 does not return i32"},
    {"a term with an operand too few", "pointwise",
     [](Plan& p) { the<Store>(p).sweep.expression.terms[0].in.pop_back(); }, "'mul' has 1 operands"},
    {"a term with an op that is not elementwise", "pointwise",
     [](Plan& p) { the<Store>(p).sweep.expression.terms[0].op = Op::sum; }, "'sum' is not a valid term"},
    {"an op on an unsupported type", "pointwise",
     [](Plan& p) { the<Store>(p).sweep.expression.terms[1].operand = ElementType::i32; }, "'exp' does not take i32"},
    {"no expression", "pointwise", [](Plan& p) { the<Store>(p).sweep.expression.terms.clear(); },
     "the step has no expression"},
    {"a tensor of another type than the stored value", "pointwise",
     [](Plan& p) { p.tensors[1].type = ElementType::i64; }, "the expression is f32, the result is i64"},
    {"scratch memory of another type than the loaded value", "transposed",
     [](Plan& p) { p.scratch[the<LoadScratch>(p).scratch].type = ElementType::i32; },
     "the elements are i32, the result is f32"},
    {"partials of another type than the result", "rows",
     [](Plan& p) { p.scratch[the<StoreWarpPartials>(p).scratch].type = ElementType::i64; },
     "the elements are i64, the result is f32"},
    {"an index of argmax that is a real number", "best_rows",
     [](Plan& p) { p.storage(the<Argmax>(p).out).type = ElementType::f32; }, "the elements are i32, the result is f32"},
    {"a reduction by an op that is none", "rows", [](Plan& p) { the<Reduce>(p).op = Op::mul; },
     "'mul' is not a reduction"},
};

// Partial results.
const KernelFault of_parts[] = {
    {"a result that keeps the reduced axis", "rows",
     [](Plan& p) { value_of(p, the<Reduce>(p).out).shape = Shape{32, 512}; }, "does not keep axis 0 with extent 1"},
    {"a result in another layout than the reduced value", "rows",
     [](Plan& p) {
  Layout& layout = value_of(p, the<Reduce>(p).out).layout;
  layout = edited(layout, [](auto& axes) { std::swap(axes[1][0], axes[1][1]); });
}, "without axis 0"},
    {"warps do not combine their partials", "rows", [](Plan& p) { the<Reduce>(p).across.clear(); },
     "do not reduce them"},
    {"warps do not combine their best elements", "best_rows", [](Plan& p) { the<Argmax>(p).across.clear(); },
     "do not reduce them"},
    {"warps combine complete results", "normalized",
     [](Plan& p) {
  for (const StepPlace& place : places_of<Reduce>(p)) {
    Reduce& reduce = place.step().action.get<Reduce>();
    reduce.axis = 0;
  }
}, "warps & 0 hold partials, but reduce some"},
    {"some registers are not combined", "rows", [](Plan& p) { partials_of(p).registers = 8; }, "8 registers of sum_"},
    {"a pass reads fewer registers than it should", "rows", [](Plan& p) { the<ReduceWarpPartials>(p).chunk = 4; },
     "a pass reduces other registers than its own"},
    {"a pass writes another value", "best_rows", [](Plan& p) { the<StoreWarpPartials>(p).best = {}; },
     "a pass reduces other registers than its own"},
    {"partial sums are combined by max", "rows", [](Plan& p) { the<ReduceWarpPartials>(p).op = Op::max; },
     "partials of 'sum' are reduced by 'max'"},
    {"partials of half of the warps", "rows", [](Plan& p) { the<ReduceWarpPartials>(p).warps /= 2; },
     "partials of warps &"},
    {"partials are read before they are written", "rows",
     [](Plan& p) {
  Body& per_chunk = partials_of(p).per_chunk;
  std::reverse(per_chunk.begin(), per_chunk.end());
}, "reads partials that it has not stored"},
    {"partials are read from other scratch memory", "rows",
     [](Plan& p) { the<ReduceWarpPartials>(p).scratch = p.scratch.add(p.scratch[the<StoreWarpPartials>(p).scratch]); },
     "reads partials that it has not stored"},
    {"partials are written and not read", "rows", [](Plan& p) { place_of<ReduceWarpPartials>(p).drop(); },
     "a pass must store partials and read them"},
    {"more registers per pass than there are", "rows",
     [](Plan& p) { partials_of(p).chunk = the<StoreWarpPartials>(p).chunk = the<ReduceWarpPartials>(p).chunk = 64; },
     "64 per pass"},
    {"a reduction over lanes with different elements", "thin", [](Plan& p) { the<LaneReduce>(p).lanes = 31; },
     "hold different elements, not partial"},
    {"a reduction over warps with different elements", "thin_alone", [](Plan& p) { the<LaneReduce>(p).warps = 255; },
     "hold different elements, not partial"},
    {"lanes keep no whole fraction of the registers", "thin", [](Plan& p) { the<LaneReduce>(p).kept = 3; },
     "registers are kept per lane"},
    {"partial sums are not combined", "thin", [](Plan& p) { place_of<LaneReduce>(p).drop(); },
     "hold partial sums of it"},
    {"totals of warps are not accumulated", "scanned", [](Plan& p) { place_of<AddScanPrefix>(p).drop(); },
     "hold partial sums of it"},
    {"totals that nobody wrote are accumulated", "scanned", [](Plan& p) { place_of<WriteScanTotals>(p).drop(); },
     "is read before it is written"},
    {"totals along another axis", "scanned", [](Plan& p) { the<AddScanPrefix>(p).axis = 2; },
     "a scan runs along axis 2 of"},
    {"partial sums are not combined in place", "thin_alone", [](Plan& p) { place_of<LaneReduce>(p).drop(); },
     "hold partial"},
    {"the initial value is added by all holders of partial sums", "thin",
     [](Plan& p) {
  for (const StepPlace& place : places_of<Compute>(p)) {
    Compute& compute = place.step().action.get<Compute>();
    compute.zero_lanes = compute.zero_warps = 0;
  }
}, "accumulate, but"},
    {"a thread's own elements are set to 0", "thin",
     [](Plan& p) {
  for (const StepPlace& place : places_of<Compute>(p)) {
    Compute& compute = place.step().action.get<Compute>();
    if (compute.zero_lanes || compute.zero_warps) compute.zero_lanes = 31;
  }
}, "which hold different elements"},
    {"a step reads partial sums", "thin",
     [](Plan& p) { place_of<Loop>(p).step().action.get<Loop>().body.push_back(place_of<Store>(p).step()); },
     "hold partial sums of it"},
};

// Sorted chunks and counts.
const KernelFault of_sorts[] = {
    {"chunks that are distributed over other lanes", "sorted",
     [](Plan& p) { the<Sort>(p).sweep.layout = value_of(p, the<Sort>(p).out).layout.without(1); },
     "are not the chunks of"},
    {"chunks of another length", "sorted", [](Plan& p) { the<Sort>(p).chunk = 128; }, "chunks have 256 elements"},
    {"a number of kept elements that no network supports", "sorted", [](Plan& p) { the<Sort>(p).kept = 9; },
     "the first 9 of each 256"},
    {"no axis to sort along", "sorted", [](Plan& p) { the<Sort>(p).axis = 2; }, "axis 2 does not exist"},
    {"indices that are real numbers", "sorted", [](Plan& p) { p.storage(the<Sort>(p).at).type = ElementType::f32; },
     "positions are f32, not i32"},
    {"indices in another layout than the values", "sorted",
     [](Plan& p) { value_of(p, the<Sort>(p).at).layout = value_of(p, the<Sort>(p).at).layout.without(0); },
     "does not have the layout of"},
    {"chunks are merged where nobody wrote them", "merged", [](Plan& p) { place_of<StoreScratch>(p).drop(); },
     "is read before it is written"},
    {"chunks are not merged", "merged", [](Plan& p) { place_of<Merge>(p).drop(); }, "is read before it is written"},
    {"chunks of another length are merged", "merged", [](Plan& p) { the<Merge>(p).chunk = 512; },
     "chunks have 1024 elements"},
    {"more of a line is written than it has", "merged", [](Plan& p) { the<Merge>(p).extent = 3001; },
     "it stores 3001 elements of lines"},
    {"a searched line is not contiguous", "merged",
     [](Plan& p) { std::swap(the<Merge>(p).from_strides[0], the<Merge>(p).from_strides[1]); },
     "neighbors of a line are not contiguous"},
    {"indices are merged that nobody has", "merged", [](Plan& p) { the<Merge>(p).at = {}; },
     "memory without positions"},
    {"nothing is written", "merged", [](Plan& p) { the<Merge>(p).to = the<Merge>(p).to_at = {}; }, "it stores nothing"},
    {"elements are merged into memory of another type", "merged",
     [](Plan& p) { p.scratch[the<Merge>(p).to].type = ElementType::i32; }, "the stored elements have another type"},
    {"no memory for written lines", "merged", [](Plan& p) { p.scratch[the<Merge>(p).to].bytes = 16; },
     "in 16 bytes of scratch memory"},
    {"counts that begin with any value", "bins", [](Plan& p) { place_of<StoreScratch>(p).drop(); },
     "is read before it is written"},
    {"counts of nothing", "bins", [](Plan& p) { place_of<HistogramUpdate>(p).drop(); }, "holds no counts"},
    {"three copies of the counts", "bins", [](Plan& p) { the<HistogramReduce>(p).copies = 3; }, "3 copies of a count"},
    {"more bins than there is memory for", "bins", [](Plan& p) { the<HistogramUpdate>(p).bins = 1000; },
     "bytes of scratch memory"},
    {"counts are reduced before all threads have counted", "bins",
     [](Plan& p) {
  std::vector<StepPlace> barriers = places_of<Barrier>(p);
  barriers.back().drop();
}, "a barrier is missing between"},
    {"chunks are merged before all are written", "merged", [](Plan& p) { places_of<Barrier>(p).front().drop(); },
     "a barrier is missing between"},
};

const KernelFault of_places[] = {
    {"an In is written", "pointwise", [](Plan& p) { the<Store>(p).access.parameter = 0; }, "in0 is written"},
    {"an Out is read", "same_place", [](Plan& p) { p.tensors[0].access = Access::out; }, "out0 is read"},
    {"a written tensor is read through the read-only cache", "same_place",
     [](Plan& p) { the<Load>(p).access.read_only = true; }, "inout0 is assumed to be read only"},
    {"a scalar as a tensor", "pointwise", [](Plan& p) { the<Load>(p).access.parameter = 2; }, "is not a tensor"},
    {"a tile that reaches farther than a launch allows", "pointwise", [](Plan& p) { p.reaches[0][0] -= 1; },
     "elements along axis 0 of in0, but a launch allows"},
    {"a tile with steps that no launch knows", "pointwise",
     [](Plan& p) { axis_of(the<Load>(p).access, 0).slices.push_back({literal(0), literal(9), -2}); },
     "elements along axis 0 of in0, but a launch allows"},
    {"a tile of far steps in 32 bits", "pointwise",
     [](Plan& p) {
  axis_of(the<Load>(p).access, 0).viewed.factor = 1 << 22;
  p.reaches[0][0] = std::int64_t{1} << 40;
}, "along axis 0 of in0 are computed in 32 bits"},
    {"an axis occurs twice", "transposed", [](Plan& p) { axis_of(the<Load>(p).access, 0).tensor_axis = 1; },
     "axis 1 of in0 is used twice or does not exist"},
    {"an axis that the tensor does not have", "transposed",
     [](Plan& p) { axis_of(the<Load>(p).access, 0).tensor_axis = 2; }, "axis 2 of in0 is used twice or does not exist"},
    {"an axis without a coordinate", "transposed",
     [](Plan& p) {
  axis_of(the<Store>(p).access, 0).tensor_axis = -1;
  axis_of(the<Store>(p).access, 0).extent = 1;
}, "not every axis of out1 is used"},
    {"many elements along no axis", "transposed", [](Plan& p) { axis_of(the<Store>(p).access, 0).tensor_axis = -1; },
     "elements along no axis"},
    {"a tile of another extent than the sweep", "pointwise",
     [](Plan& p) { axis_of(the<Store>(p).access, 0).extent = 512; },
     "a tile of 512 along axis 0, in a sweep over [1024]"},
    {"a tile that may start below 0 is assumed not to", "branched",
     [](Plan& p) {
  for (const StepPlace& place : steps_of(p))
    if (Load* load = place.step().action.as<Load>())
      load->access.axes[0].positive = true;
    else if (Store* store = place.step().action.as<Store>())
      for (TileAccess& read : store->sweep.reads) read.axes[0].positive = true;
}, "is assumed to start at 0 or above"},
    {"vectors wider than the tensor's alignment", "pointwise", [](Plan& p) { p.variant.tensors[0].alignment = 4; },
     "in0, which is aligned to 4"},
    {"vectors beyond the end of rows that are no multiples of them", "pointwise",
     [](Plan& p) { p.variant.tensors[1].row_alignment = 4; }, "may reach past its end"},
    {"vectors along an axis that is not contiguous", "pointwise",
     [](Plan& p) { p.variant.tensors[0].contiguous_axis = -1; }, "whose contiguous axis is -1"},
    {"vectors of 3 elements", "pointwise", [](Plan& p) { the<Load>(p).access.vector = 3; }, "vectors of 3"},
    {"vectors of 8 elements where registers have runs of 4", "pointwise",
     [](Plan& p) {
  the<Load>(p).access.vector = 8;
  p.tensors[0].type = ElementType::f16;
}, "a thread has runs of 4"},
    {"vectors along no axis", "pointwise", [](Plan& p) { the<Load>(p).access.fast = -1; },
     "vectors of 4 along no axis"},
    {"vectors along rows that are gathered", "gathered",
     [](Plan& p) {
  for (const StepPlace& place : steps_of(p))
    if (Load* load = place.step().action.as<Load>(); load && load->access.rows)
      load->access.fast = 0;
    else if (Store* store = place.step().action.as<Store>())
      for (TileAccess& read : store->sweep.reads)
        if (read.rows) read.fast = 0;
}, "along no axis"},
    {"vectors that do not divide the tile", "pointwise", [](Plan& p) { axis_of(the<Load>(p).access, 0).extent = 1022; },
     "vectors of 4 in a tile of 1022"},
    {"vectors of a tile that a slice moves", "pointwise",
     [](Plan& p) { axis_of(the<Load>(p).access, 0).slices.push_back({literal(1), literal(100)}); },
     "which a slice shifts"},
    {"vectors in a sweep of single elements", "pointwise", [](Plan& p) { the<Store>(p).sweep.vector = 2; },
     "vectors of 4 in a sweep by 2"},
    {"a scatter without rows", "gathered", [](Plan& p) { the<Store>(p).access.rows = {}; }, "a scatter has no indices"},
    {"a scatter of vectors", "gathered",
     [](Plan& p) {
  the<Store>(p).access.vector = 2;
  the<Store>(p).access.fast = 1;
}, "it moves 2 elements at a time"},
    {"an atomic addition to an Out", "counted", [](Plan& p) { p.tensors[1].access = Access::out; },
     "it updates out1, which is not an in-out tensor"},
    {"an atomic that takes no element type", "drawn", [](Plan& p) { the<Atomic>(p).op = Op::add; },
     "'add' cannot update i32"},
    {"a compare-exchange without an expected value", "drawn", [](Plan& p) { the<Atomic>(p).expected.reset(); },
     "'atomic_compare_exchange' and an expected value do not match"},
    {"an atomic with a superfluous expected value", "mixed", [](Plan& p) { the<Atomic>(p).expected = literal(1); },
     "'atomic_add' and an expected value do not match"},
    {"an atomic of vectors", "drawn",
     [](Plan& p) {
  the<Atomic>(p).access.vector = 2;
  the<Atomic>(p).access.fast = 0;
}, "it updates 2 elements at a time"},
    {"two local names of one step are equal", "large",
     [](Plan& p) {
  Compute& compute = with_operand<Compute>(p, Kind::fetched);
  compute.sweep.reads.push_back(compute.sweep.reads[0]);
}, "two accesses have the name load_"},
};

// Matmuls and their buffers.
const KernelFault of_matmuls[] = {
    {"a buffer of another type than the matmul reads", "in_place",
     [](Plan& p) { buffer_of(p).type = ElementType::f16; }, "holds f16, but bf16 is read"},
    {"a buffer of another type than its tensor", "in_place", [](Plan& p) { buffer_of(p).type = ElementType::f16; },
     "holds f16, but the tensor bf16"},
    {"a buffer with a row too few", "in_place", [](Plan& p) { buffer_of(p).rows -= 1; },
     "is [63,32], but [64,32] is read"},
    {"a buffer of half of the columns", "in_place", [](Plan& p) { buffer_of(p).columns /= 2; },
     "is [64,16], but [64,32] is read"},
    {"rows that are no whole number of chunks", "in_place", [](Plan& p) { buffer_of(p).columns -= 1; },
     "do not consist of 16-byte chunks"},
    {"a matmul with more rows than its tile", "in_place", [](Plan& p) { the<Mma>(p).matmul.m *= 2; },
     "a matmul of [128,64] in a tile of [64,64]"},
    {"a matmul with more k-steps than its operands have", "in_place", [](Plan& p) { the<Mma>(p).matmul.k *= 2; },
     "is [64,32], but [64,64] is read"},
    {"accumulators in another layout than the value", "in_place",
     [](Plan& p) {
  const Matmul& matmul = the<Mma>(p).matmul;
  the<Mma>(p).layout = accumulator_layout({matmul.m, matmul.n}, 4, 1);
}, "the matmul has layout"},
    {"accumulators in a layout that the instruction does not have", "in_place",
     [](Plan& p) {
  Mma& mma = the<Mma>(p);
  mma.layout = edited(mma.layout, [](auto& axes) { std::swap(axes[1].front(), axes[1].back()); });
  value_of(p, mma.out).layout = mma.layout;
}, "but the instruction's is"},
    {"accumulators that are not real", "in_place", [](Plan& p) { p.storage(the<Mma>(p).out).type = ElementType::i32; },
     "accumulators in i32"},
    {"a matmul of unsupported types", "in_place", [](Plan& p) { the<Mma>(p).matmul.type = ElementType::i64; },
     "matmuls of i64"},
    {"instructions of more warps than exist", "in_place", [](Plan& p) { the<Mma>(p).matmul.warps_m *= 2; },
     "warps in a role of"},
    {"instructions of half of the warps", "in_place",
     [](Plan& p) {
  Matmul& matmul = the<Mma>(p).matmul;
  (matmul.warps_m > 1 ? matmul.warps_m : matmul.warps_n) /= 2;
}, "warps in a role of"},
    {"the left operand's registers in another layout", "chained",
     [](Plan& p) {
  for (const StepPlace& place : places_of<Mma>(p)) {
    const Mma& mma = place.step().action.get<Mma>();
    if (!mma.matmul.a.value) continue;
    Layout& layout = value_of(p, mma.matmul.a.value).layout;
    layout = edited(layout, [](auto& axes) { std::swap(axes[1].front(), axes[1].back()); });
  }
}, "does not have the layout of the left operand"},
    {"the left operand's registers of another type", "chained",
     [](Plan& p) {
  for (const StepPlace& place : places_of<Mma>(p))
    if (const ValueId left = place.step().action.get<Mma>().matmul.a.value)
      p.storage(left).type = ElementType::f32;
}, "is f32, but bf16 is multiplied"},
    {"the left operand's registers in a loop that is not unrolled", "chained",
     [](Plan& p) {
  for (const StepPlace& place : places_of<Mma>(p)) place.step().action.get<Mma>().matmul.unrolled = 2;
}, "is in registers, but the matmul is not unrolled"},
    {"a SIMT matmul with an operand in registers", "chained",
     [](Plan& p) {
  for (const StepPlace& place : places_of<Mma>(p)) {
    Matmul& matmul = place.step().action.get<Mma>().matmul;
    if (matmul.a.value) matmul.kind = MatmulKind::simt;
  }
}, "the left operand is not in a buffer"},
    {"a right operand in registers", "chained",
     [](Plan& p) {
  for (const StepPlace& place : places_of<Mma>(p)) {
    Matmul& matmul = place.step().action.get<Mma>().matmul;
    if (matmul.a.value) std::swap(matmul.a, matmul.b);
  }
}, "the right operand is not in a buffer"},
    {"16-bit operands are converted", "in_place",
     [](Plan& p) { the<Mma>(p).matmul.a.casts.push_back(ElementType::f32); }, "is multiplied without conversion"},
    {"a matmul prefetches fragments in a loop over its k-steps", "pipelined",
     [](Plan& p) { the<Mma>(p).matmul.unrolled = 2; }, "its k-steps are not all unrolled"},
    {"a matmul without fragment prefetch contains a fetch", "pipelined",
     [](Plan& p) { the<Mma>(p).matmul.reads_ahead = false; }, "it contains a fetch"},
    {"a second matmul contains the loop's fetch", "pipelined",
     [](Plan& p) { the<Loop>(p).body.push_back(place_of<Mma>(p).step()); }, "it contains a fetch"},
    {"an iteration's accumulation is delayed beyond a read", "pipelined",
     [](Plan& p) { the<Loop>(p).body.push_back(place_of<Store>(p).step()); }, "its last k-step is deferred"},
    {"eight neighboring 32-bit accumulators are stored together", "in_place",
     [](Plan& p) { the<Store>(p).by_quads = true; }, "is not a layout of pairs of mma.sync accumulators"},
    {"eight neighbors are stored where four are aligned", "pipelined",
     [](Plan& p) { p.variant.tensors[2].alignment = 8; }, "accesses of 16 bytes to out2, which is aligned to 8"},
    {"a matmul reads a fixed stage", "pipelined", [](Plan& p) { the<Mma>(p).matmul.a.stage = {}; },
     "stages, but no loop is given"},
    {"a matmul reads the stage of another loop", "two_loops",
     [](Plan& p) { the<Mma>(p, 0).matmul.a.stage = the<Loop>(p, 1).loop; },
     "by the stage of a loop that does not enclose it"},
    {"a matmul reads stages of a single-stage buffer", "in_place",
     [](Plan& p) { the<Mma>(p).matmul.a.stage = p.loops.add({}); }, "has 1 stages, but a loop is given"},
    {"a gemv of registers in another layout", "thin_alone",
     [](Plan& p) {
  Matmul& matmul = the<Mma>(p).matmul;
  matmul.layout_b = edited(matmul.layout_b, [](auto& axes) { std::swap(axes[0], axes[1]); });
}, "is multiplied"},
    {"a gemv with fewer registers", "thin_alone", [](Plan& p) { the<Mma>(p).matmul.k /= 2; }, "is multiplied"},
    {"a gemv whose k is marked as complete", "thin_alone",
     [](Plan& p) { the<Mma>(p).matmul.lanes_k = the<Mma>(p).matmul.warps_k = 0; }, "k is recorded as spread over"},
    {"a gemv of another type", "thin_alone", [](Plan& p) { the<Mma>(p).matmul.type = ElementType::bf16; },
     "is f32, but bf16 is multiplied"},
    {"a gemv from memory", "thin_alone",
     [](Plan& p) {
  the<Mma>(p).matmul.b.value = {};
  the<Mma>(p).matmul.b.buffer =
      p.buffers.add({.label = {"tile"}, .type = ElementType::f32, .rows = 256, .columns = 64});
}, "a gemv must multiply registers by registers"},
    {"a tile that is larger than its buffer", "staged",
     [](Plan& p) { the<StoreShared>(p).sweep.shape = Shape{40, 100}; }, "a tile of [40,100] in a buffer of"},
    {"padding of an operand is not cleared", "staged", [](Plan& p) { place_of<ZeroFill>(p).drop(); }, "and not zeroed"},
    {"an operand is not written", "staged", [](Plan& p) { place_of<StoreShared>(p).drop(); },
     "is read before it is written"},
    {"an operand is not fetched", "in_place", [](Plan& p) { place_of<Fetch>(p).drop(); },
     "is read before it is written"},
    {"one of two operands is not fetched ahead", "pipelined", [](Plan& p) { the<Fetch>(p).tiles.pop_back(); },
     "is read before it is written"},
    {"a copy pads with ones", "in_place", [](Plan& p) { fetched(p).access.padding = 1; }, "copy an In tensor"},
    {"a copy of a tensor that the kernel writes", "in_place",
     [](Plan& p) {
  p.tensors[0].access = Access::in_out;
  fetched(p).access.read_only = false;
}, "copy an In tensor"},
    {"a copy of more than the buffer has", "in_place", [](Plan& p) { fetched(p).access.axes.back().extent *= 2; },
     "where its buffer has"},
    {"a copy of vectors that do not divide the rows", "in_place",
     [](Plan& p) { buffer_of(p).columns = 8 * (buffer_of(p).columns / 8) + 4; }, "not whole vectors of 8"},
    {"a copy of vectors across rows", "in_place",
     [](Plan& p) { fetched(p).access.fast = static_cast<int>(fetched(p).access.axes.size()) - 2; },
     "vectors of 8 across rows"},
    {"an asynchronous copy of 2 bytes", "in_place", [](Plan& p) { fetched(p).access.vector = 1; },
     "is copied asynchronously, 2 bytes at a time"},
    {"an asynchronous copy to the workspace", "in_place", [](Plan& p) { buffer_of(p).in_workspace = true; },
     "is copied asynchronously, 16 bytes at a time"},
    {"tensor cores read the workspace", "in_place", [](Plan& p) { buffer_of(p).in_workspace = true; },
     "tensor cores read shared memory only"},
    {"a fetch in place into several stages", "in_place", [](Plan& p) { buffer_of(p).stages = 2; },
     "has several stages, but its fetch is for no loop"},
};

// Barriers, and waits for copies.
const KernelFault of_sync[] = {
    {"no barrier before values are read from scratch memory", "transposed",
     [](Plan& p) { barrier_before<LoadScratch>(p).drop(); }, "a barrier is missing between it and writes of scratch"},
    {"a barrier after the step that needs it", "transposed", [](Plan& p) { barrier_before<LoadScratch>(p).move(1); },
     "a barrier is missing between it and writes of scratch"},
    {"no barrier before scratch memory is written again", "transposed",
     [](Plan& p) { barrier_before<StoreScratch>(p).drop(); }, "a barrier is missing between it and uses of scratch"},
    {"no barrier before totals are accumulated", "scanned", [](Plan& p) { barrier_before<AddScanPrefix>(p).drop(); },
     "a barrier is missing between it and writes of scratch"},
    {"no barrier before a matmul", "in_place", [](Plan& p) { barrier_before<Mma>(p).drop(); },
     "visible to all threads: a barrier is missing"},
    {"no barrier before a matmul of elements that threads wrote", "staged",
     [](Plan& p) { barrier_before<Mma>(p).drop(); }, "a barrier is missing between it and writes of"},
    {"no barrier between zeros and the writes that replace them", "staged",
     [](Plan& p) { barrier_before<StoreShared>(p).drop(); }, "a barrier is missing between it and uses of left_"},
    {"no barrier between a store and a load", "exchanged", [](Plan& p) { barrier_before<Load>(p).drop(); },
     "a barrier is missing between it and writes of inout0"},
    {"no barrier between a load and a store", "exchanged", [](Plan& p) { barrier_before<Store>(p).drop(); },
     "a barrier is missing between it and uses of inout0"},
    {"no barrier between an atomic addition and a load", "counted", [](Plan& p) { barrier_before<Load>(p).drop(); },
     "a barrier is missing between it and writes of inout1"},
    {"no barrier before a release", "released", [](Plan& p) { barrier_before<Atomic>(p).drop(); },
     "a barrier is missing between it and uses of inout2"},
    {"no barrier after an acquire", "awaited", [](Plan& p) { barrier_before<Load>(p).drop(); },
     "a barrier is missing between it and writes of inout0"},
    {"no barrier between atomics of two ops", "mixed", [](Plan& p) { barrier_before<Atomic>(p, 0).drop(); },
     "a barrier is missing between it and uses of inout0"},
    {"no barrier between values that are swapped", "mixed", [](Plan& p) { barrier_before<Atomic>(p, 2).drop(); },
     "a barrier is missing between it and uses of inout0"},
    {"no barrier in a branch", "counted", [](Plan& p) { barrier_before<Store>(p).drop(); },
     "a barrier is missing between it and uses of inout1"},
    {"an iteration does not wait for the previous one", "shifted", [](Plan& p) { place_of<Barrier>(p).drop(); },
     "of inout0"},
    {"partials are read before all are written", "rows", [](Plan& p) { barrier_before<ReduceWarpPartials>(p).drop(); },
     "a barrier is missing between it and writes of scratch"},
    {"an iteration writes partials while the previous one reads some", "rows",
     [](Plan& p) { barrier_before<StoreWarpPartials>(p).drop(); },
     "a barrier is missing between it and uses of scratch"},
    {"a barrier of later iterations is the only one", "rows",
     [](Plan& p) { barrier_before<ReduceWarpPartials>(p).step().action.get<Barrier>().again = true; },
     "a barrier is missing between it and writes of scratch"},
    {"no barrier at the beginning of an iteration", "pipelined",
     [](Plan& p) { std::erase_if(the<Loop>(p).arrive, [](const Step& s) { return s.action.is<Barrier>(); }); },
     "0 barriers at the start of an iteration"},
    {"the barrier before copies have arrived", "pipelined",
     [](Plan& p) { std::swap(the<Loop>(p).arrive.front(), the<Loop>(p).arrive.back()); },
     "the barrier precedes the wait"},
    {"copies into memory that the previous iteration still reads", "unpipelined",
     [](Plan& p) { barrier_before<Fetch>(p).drop(); }, "a barrier is missing between it and uses of tile_"},
    {"copies for a loop into memory that is still read", "two_loops", [](Plan& p) { barrier_before<Loop>(p).drop(); },
     "a barrier is missing between its first fetch and uses of"},
    {"a CTA does not wait for the previous one", "beyond", [](Plan& p) { barrier_before<StoreShared>(p).drop(); },
     "a barrier is missing between it and uses of left_"},
    {"a copy ends in no group", "in_place", [](Plan& p) { place_of<CpAsyncCommit>(p, 1).drop(); },
     "is not committed to a group"},
    {"a copy is not waited for", "in_place", [](Plan& p) { place_of<CpAsyncWait>(p, 1).drop(); }, "is not waited for"},
    {"a copy's group is committed after the wait", "in_place", [](Plan& p) { place_of<CpAsyncCommit>(p, 1).move(1); },
     "is not waited for"},
    {"a copy is waited for after its use", "in_place",
     [](Plan& p) {
  const StepPlace wait = place_of<CpAsyncWait>(p, 1);
  Step moved = wait.step();
  wait.drop();
  body_of(p).push_back(std::move(moved));
}, "is not waited for"},
    {"a copy is waited for after the barrier", "in_place",
     [](Plan& p) {
  const StepPlace barrier = barrier_before<Mma>(p);
  Step moved = barrier.step();
  barrier.drop();
  const StepPlace wait = place_of<CpAsyncWait>(p, 1);
  wait.body->insert(wait.body->begin() + static_cast<std::ptrdiff_t>(wait.index), std::move(moved));
}, "visible to all threads: a barrier is missing"},
    {"one copy may still be pending", "in_place", [](Plan& p) { the<CpAsyncWait>(p, 1).pending = 1; },
     "a wait outside of a loop must be for all copies"},
    {"an iteration may begin before its copies have arrived", "pipelined",
     [](Plan& p) { the<CpAsyncWait>(p).pending += 1; },
     "it waits until 3 groups are pending, but 4 stages are in flight"},
    {"a wait for a negative number of groups", "pipelined", [](Plan& p) { the<CpAsyncWait>(p).pending = -1; },
     "it waits until -1 groups are pending"},
    {"an iteration does not wait for its copies", "pipelined",
     [](Plan& p) { the<Loop>(p).arrive.erase(the<Loop>(p).arrive.begin()); }, "0 waits at the start of an iteration"},
    {"an iteration waits in its body", "pipelined",
     [](Plan& p) {
  Loop& loop = the<Loop>(p);
  loop.body.insert(loop.body.begin(), loop.arrive.front());
  loop.arrive.erase(loop.arrive.begin());
}, "0 waits at the start of an iteration"},
    {"an iteration's copies are not committed", "pipelined", [](Plan& p) { the<Loop>(p).issued.clear(); },
     "0 groups of copies per iteration"},
    {"an iteration without a fetch commits no group", "pipelined",
     [](Plan& p) {
  Loop& loop = the<Loop>(p);
  loop.ahead.push_back(loop.issued.front());
  loop.issued.clear();
}, "0 groups of copies per iteration"},
    {"two groups per iteration", "pipelined",
     [](Plan& p) {
  const Step commit = the<Loop>(p).issued.front();
  the<Loop>(p).issued.push_back(commit);
}, "2 groups of copies per iteration"},
    {"a loop is not drained", "pipelined",
     [](Plan& p) {
  for (const StepPlace& place : places_of<CpAsyncWait>(p))
    if (place.body == &body_of(p)) return place.drop();
}, "copies of the previous loop may be in flight"},
    {"a loop is drained too late", "pipelined",
     [](Plan& p) {
  for (const StepPlace& place : places_of<CpAsyncWait>(p))
    if (place.body == &body_of(p)) return place.move(1);
}, "copies of the previous loop may be in flight"},
    {"a loop with one more iteration in flight than stages", "pipelined", [](Plan& p) { the<Loop>(p).stages += 1; },
     "which differ from those of the loop"},
    {"a buffer of one stage too few", "pipelined", [](Plan& p) { buffer_of(p).stages -= 1; },
     "which differ from those of the loop"},
    {"a loop with a prefetch and one iteration in flight", "pipelined", [](Plan& p) { the<Loop>(p).stages = 1; },
     "1 stages are in flight, but something is fetched ahead"},
    {"a loop without stages", "shifted", [](Plan& p) { the<Loop>(p).stages = 0; }, "0 stages"},
    {"a fetch for another loop", "two_loops", [](Plan& p) { the<Fetch>(p, 0).loop = the<Loop>(p, 1).loop; },
     "it fetches for another loop"},
    {"a prefetch of a loop that fetches in place", "pipelined", [](Plan& p) { the<Fetch>(p).loop = {}; },
     "it fetches for another loop"},
    {"nothing is prefetched", "pipelined", [](Plan& p) { place_of<Fetch>(p).drop(); }, "0 fetches ahead"},
    {"a fetch for a loop in its body", "pipelined",
     [](Plan& p) {
  Loop& loop = the<Loop>(p);
  const Step fetch = loop.ahead.back();
  loop.body.insert(loop.body.begin(), fetch);
}, "it fetches for a loop, but is not in its"},
    {"a step between a wait and its barrier", "pipelined",
     [](Plan& p) {
  Loop& loop = the<Loop>(p);
  loop.arrive.insert(loop.arrive.begin() + 1, loop.issued.front());
}, "an iteration must begin with only a wait and a barrier"},
    {"a matmul before an iteration", "pipelined",
     [](Plan& p) {
  const Step matmul = place_of<Mma>(p).step();
  the<Loop>(p).ahead.push_back(matmul);
}, "only fetches and positions may be computed ahead"},
};

// Offsets.
const KernelFault of_memory[] = {
    {"two buffers at one offset", "in_place", [](Plan& p) { buffer_of(p, 1).offset = buffer_of(p, 0).offset; },
     "overlap while both are live"},
    {"two buffers that overlap by a stage", "pipelined",
     [](Plan& p) {
  Buffer &a = buffer_of(p, 0), &b = buffer_of(p, 1);
  (a.offset > b.offset ? a : b).offset -= 128;
}, "overlap while both are live"},
    {"scratch memory at the offset of a value", "large",
     [](Plan& p) {
  for (const Storage& storage : p.storages)
    if (storage.storage_class == StorageClass::shared)
      p.scratch[the<StoreWarpPartials>(p).scratch].offset = storage.offset;
}, "overlap while both are live"},
    {"two values at one offset", "large",
     [](Plan& p) {
  std::vector<Storage*> large;
  for (Storage& storage : p.storages)
    if (storage.storage_class == StorageClass::shared || storage.storage_class == StorageClass::workspace)
      large.push_back(&storage);
  large.at(1)->storage_class = large.at(0)->storage_class;
  large.at(1)->offset = large.at(0)->offset;
}, "overlap while both are live"},
    {"a buffer that is not aligned to 128 bytes", "in_place", [](Plan& p) { buffer_of(p).offset += 64; },
     "not at a multiple of 128"},
    {"scratch memory that is not aligned to 16 bytes", "transposed",
     [](Plan& p) { p.scratch[the<StoreScratch>(p).scratch].offset = 8; }, "not at a multiple of 16"},
    {"a buffer at a negative offset", "in_place", [](Plan& p) { buffer_of(p).offset = -128; }, "begins at -128"},
    {"a buffer beyond the end", "in_place", [](Plan& p) { buffer_of(p).offset = 128 * 1024; }, "ends at"},
    {"less shared memory than is used", "in_place", [](Plan& p) { p.shared_bytes -= 128; }, "ends at"},
    {"less workspace than is used", "beyond", [](Plan& p) { p.workspace_bytes -= 128; }, "ends at"},
    {"more shared memory than a CTA may have", "in_place", [](Plan& p) { p.shared_bytes = 228 * 1024; },
     "bytes of shared memory, but sm_90a has"},
    {"a workspace whose parts for CTAs are not aligned", "beyond", [](Plan& p) { p.workspace_bytes += 16; },
     "not a multiple of 128"},
    {"scratch memory too small for the stored value", "transposed",
     [](Plan& p) { p.scratch[the<StoreScratch>(p).scratch].bytes -= 4; }, "of scratch memory"},
    {"scratch memory too small for partials", "rows",
     [](Plan& p) { p.scratch[the<StoreWarpPartials>(p).scratch].bytes /= 2; }, "of scratch memory"},
    {"a part that begins where the last one ends", "joined", [](Plan& p) { the<StoreScratch>(p, 1).base += 64; },
     "of scratch memory"},
    {"a part that begins below 0", "joined", [](Plan& p) { the<StoreScratch>(p).base = -1; }, "it begins at -1"},
    {"elements are stored over each other", "transposed",
     [](Plan& p) {
  Strides& strides = the<StoreScratch>(p).strides;
  strides[0] = strides[1];
}, "overlap others"},
    {"elements are loaded from each other's offsets", "transposed", [](Plan& p) { the<LoadScratch>(p).strides[0] = 2; },
     "overlap others"},
    {"scratch memory too small for totals", "scanned",
     [](Plan& p) { p.scratch[the<WriteScanTotals>(p).scratch].bytes -= 4; }, "of scratch memory"},
};

// Roles, phases and parameters.
const KernelFault of_launch[] = {
    {"no phase", "rows", [](Plan& p) { p.phases.clear(); }, "the plan has no phase"},
    {"a phase without a role", "pointwise", [](Plan& p) { p.phases[0].roles.clear(); }, "a phase has no role"},
    {"a gap before the first role", "pointwise", [](Plan& p) { p.phases[0].roles[0].first_warp = 1; },
     "begins at warp 1, not 0"},
    {"a role that overlaps another", "pointwise",
     [](Plan& p) { p.phases[0].roles.push_back({"producer", p.phases[0].roles[0].warps - 1, 1, {}}); },
     "role producer begins at warp"},
    {"a gap between roles", "pointwise",
     [](Plan& p) { p.phases[0].roles.push_back({"producer", p.phases[0].roles[0].warps + 1, 1, {}}); },
     "role producer begins at warp"},
    {"a role without warps", "pointwise",
     [](Plan& p) { p.phases[0].roles.push_back({"producer", p.phases[0].roles[0].warps, 0, {}}); },
     "role producer has 1 consumer groups of 0 warps"},
    {"more warps than a CTA can have", "pointwise", [](Plan& p) { p.phases[0].roles[0].warps = 64; },
     "64 warps in a CTA"},
    {"more CTAs at a time than threads allow", "pointwise", [](Plan& p) { p.blocks = 1000; },
     "threads on a multiprocessor"},
    {"raster groups in a grid with one axis", "pointwise", [](Plan& p) { p.phases[0].schedule.raster_group = 8; },
     "a raster group of 8 in a grid of 1 axes"},
    {"a grid that begins at another axis", "pointwise", [](Plan& p) { p.phases[0].first_axis = 1; },
     "the grid of a phase begins at axis 1, not 0"},
    {"a second phase with one CTA per grid tile", "pointwise",
     [](Plan& p) {
  Phase second = p.phases[0];
  second.first_axis = 1;
  second.roles[0].body.clear();
  p.phases.push_back(std::move(second));
}, "a plan has several phases, and one of them is not persistent"},
    {"a second phase of fewer warps", "transposed",
     [](Plan& p) {
  Phase second = p.phases[0];
  second.first_axis = 2;
  second.roles[0].body.clear();
  second.roles[0].warps = 1;
  p.phases.push_back(std::move(second));
}, "the only one of its phase, has 1 of"},
    {"a CTA's index in a phase with another grid", "pointwise",
     [](Plan& p) {
  Phase second = p.phases[0];
  p.phases[0].roles[0].body.clear();
  second.first_axis = 1;
  p.phases.push_back(std::move(second));
}, "in a phase with another grid"},
    {"a parameter is missing", "pointwise", [](Plan& p) { drop_parameter(p, KernelParameter::Kind::scalar); },
     "parameters, but needs"},
    {"a parameter occurs twice", "pointwise", [](Plan& p) { p.parameters.push_back(p.parameters[0]); },
     "a parameter is passed twice"},
    {"a parameter of another tensor", "transposed", [](Plan& p) { p.parameters[0].argument = 7; },
     "parameters, but needs"},
    {"the number of grid tiles is missing", "beyond", [](Plan& p) { drop_parameter(p, KernelParameter::Kind::blocks); },
     "parameters, but needs"},
    {"a workspace without persistent CTAs", "beyond",
     [](Plan& p) {
  p.phases[0].schedule.kind = Schedule::Kind::grid;
  drop_parameter(p, KernelParameter::Kind::blocks);
}, "CTAs are not persistent"},
};

void check(std::span<const KernelFault> faults) {
  for (const KernelFault& fault : faults) {
    INFO(fault.name << ", in " << fault.kernel);
    Plan plan = plan_of(fault.kernel);
    REQUIRE(violations(plan) == std::vector<std::string>{});
    check_reported(std::move(plan), fault.plant, fault.words);
  }
}

}  // namespace

TEST_CASE("the verifier reports ids and indices that are out of range", "[plan]") { check(of_ids); }
TEST_CASE("the verifier reports wrong layouts, storage and scopes", "[plan]") { check(of_values); }
TEST_CASE("the verifier reports wrong terms and types", "[plan]") { check(of_types); }
TEST_CASE("the verifier reports partial results that are not combined", "[plan]") { check(of_parts); }
TEST_CASE("the verifier reports wrong sorts and counts", "[plan]") { check(of_sorts); }
TEST_CASE("the verifier reports wrong offsets in tensors", "[plan]") { check(of_places); }
TEST_CASE("the verifier reports wrong matmuls", "[plan]") { check(of_matmuls); }
TEST_CASE("the verifier reports missing barriers and waits", "[plan]") { check(of_sync); }
TEST_CASE("the verifier reports overlapping memory", "[plan]") { check(of_memory); }
TEST_CASE("the verifier reports wrong roles and parameters", "[plan]") { check(of_launch); }

namespace {

/// Would a kernel without this step compute the same? Not asked of steps that define what a kernel computes.
bool must_stand(const Plan& plan, const Body& body, std::size_t index) {
  const Step& step = body[index];
  // A later wait covers these copies, too, if more are fetched in place before it.
  const bool more_copies =
      std::any_of(body.begin() + static_cast<std::ptrdiff_t>(index) + 1, body.end(), [](const Step& later) {
        const Fetch* fetch = later.action.as<Fetch>();
        return fetch && !fetch->loop;
      });
  const auto puts_into = [&](ScratchId scratch) {
    return std::count_if(body.begin(), body.end(), [&](const Step& other) {
      const StoreScratch* put = other.action.as<StoreScratch>();
      return put && put->scratch == scratch;
    });
  };
  const Overloaded stands{
      [&]<OneOf<Compute, Load, Reduce, Argmax> T>(const T& s) { return !plan.storage(s.out).changes; },
      [&](const StoreScratch& s) { return puts_into(s.scratch) == 1; },
      [&]<OneOf<CpAsyncCommit, CpAsyncWait> T>(const T&) { return !more_copies; },
      []<OneOf<Barrier, Fetch, ZeroFill, StoreShared, LoadScratch, LaneReduce, CrossWarpReduce, StoreWarpPartials, ReduceWarpPartials, Sort, Merge,
               HistogramUpdate, HistogramReduce>
             T>(const T&) { return true; },
      [](const auto&) { return false; },
  };
  return visit_kind(stands, step.action);
}

}  // namespace

TEST_CASE("no step can be left out of a plan", "[plan]") {
  int tried = 0;
  for (const std::string& kernel : plan_kernels()) {
    const Plan plan = plan_of(kernel);
    Plan shorter = plan;
    const std::size_t steps = steps_of(shorter).size();
    for (std::size_t i = 0; i < steps; ++i) {
      shorter = plan;
      const StepPlace place = steps_of(shorter)[i];
      if (!must_stand(plan, *place.body, place.index)) continue;
      const std::string text = step_text(plan, place.step());
      place.drop();
      INFO(kernel << " without step " << i << ": " << text);
      CHECK(!violations(shorter).empty());
      ++tried;
    }
  }
  CHECK(tried > 150);
}

}  // namespace test_plan_verifier
