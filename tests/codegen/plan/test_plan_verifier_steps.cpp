// The plan verifier against faults in partial results, sorts, counts, and accesses of tensors.
#include "codegen/plan/plan.hpp"
#include "support/catch.hpp"
#include "support/kernel_faults.hpp"
#include "support/plan_steps.hpp"

namespace test_plan_verifier_steps {

using namespace tessera::internal;
using namespace tessera::internal::codegen;
using namespace kernel_faults;

namespace {

CrossWarpReduce& partials_of(Plan& plan) { return the<CrossWarpReduce>(plan); }

TileAccess::Axis& axis_of(TileAccess& access, std::size_t axis) { return access.axes.at(axis); }

using Kind = Operand::Kind;

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
    {"a scatter of vectors whose elements have a place each", "placed",
     [](Plan& p) {
  the<Store>(p).access.vector = 2;
  the<Store>(p).access.fast = 0;
}, "it moves 2 elements at a time"},
    {"a scatter of vectors in a sweep of single elements", "gathered", [](Plan& p) { the<Store>(p).sweep.vector = 2; },
     "vectors of 4 in a sweep by 2"},
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

}  // namespace

TEST_CASE("the verifier reports partial results that are not combined", "[plan]") { check(of_parts); }
TEST_CASE("the verifier reports wrong sorts and counts", "[plan]") { check(of_sorts); }
TEST_CASE("the verifier reports wrong offsets in tensors", "[plan]") { check(of_places); }

}  // namespace test_plan_verifier_steps
