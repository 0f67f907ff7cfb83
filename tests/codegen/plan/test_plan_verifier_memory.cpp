// The plan verifier against faults in matmuls and their buffers, barriers, waits for copies, and shared memory.
#include <stdexcept>

#include "codegen/plan/plan.hpp"
#include "support/catch.hpp"
#include "support/kernel_faults.hpp"
#include "support/plan_steps.hpp"

namespace test_plan_verifier_memory {

using namespace tessera::internal;
using namespace tessera::internal::codegen;
using namespace kernel_faults;

namespace {

/// The nth barrier directly before a step of a kind.
template <class Kind>
StepPlace barrier_before(Plan& plan, std::size_t nth = 0) {
  for (const StepPlace& place : places_of<Barrier>(plan))
    if (place.index + 1 < place.body->size() && (*place.body)[place.index + 1].action.is<Kind>() && nth-- == 0)
      return place;
  throw std::runtime_error("there is no such barrier");
}

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
    if (const ValueId left = place.step().action.get<Mma>().matmul.a.value) p.storage(left).type = ElementType::f32;
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

}  // namespace

TEST_CASE("the verifier reports wrong matmuls", "[plan]") { check(of_matmuls); }
TEST_CASE("the verifier reports missing barriers and waits", "[plan]") { check(of_sync); }
TEST_CASE("the verifier reports overlapping memory", "[plan]") { check(of_memory); }

}  // namespace test_plan_verifier_memory
