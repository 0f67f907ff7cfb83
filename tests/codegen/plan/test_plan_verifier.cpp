// The plan verifier against planted faults: each takes a real plan and breaks one thing in it. Here: values and their
// layouts, types, launches; and a plan without one of its steps.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "codegen/plan/plan.hpp"
#include "codegen/plan/plan_text.hpp"
#include "codegen/plan/verify/verify_plan.hpp"
#include "support/catch.hpp"
#include "support/kernel_faults.hpp"
#include "support/plan_kernels.hpp"
#include "support/plan_steps.hpp"

namespace test_plan_verifier {

using namespace tessera::internal;
using namespace tessera::internal::codegen;
using namespace kernel_faults;

namespace {

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

void drop_parameter(Plan& plan, KernelParameter::Kind kind) {
  std::erase_if(plan.parameters, [&](const KernelParameter& parameter) { return parameter.kind == kind; });
}

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

}  // namespace

TEST_CASE("the verifier reports ids and indices that are out of range", "[plan]") { check(of_ids); }
TEST_CASE("the verifier reports wrong layouts, storage and scopes", "[plan]") { check(of_values); }
TEST_CASE("the verifier reports wrong terms and types", "[plan]") { check(of_types); }
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
