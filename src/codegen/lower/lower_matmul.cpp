#include "codegen/lower/lower_matmul.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/lower/lower_exchange.hpp"

namespace tessera::internal::lowering {
namespace {

/// Lowers one matmul.
class MatmulLowering {
 public:
  MatmulLowering(Steps& steps, Fetches& fetches, Id id)
      : steps_(steps),
        fetches_(fetches),
        id_(id),
        at_(steps.node(id)),
        layout_(fetches.matmul(id).layout),
        matmul_(fetches.matmul(id).matmul) {}

  void run() {
    if (matmul_.kind == MatmulKind::gemv) return thin();
    place(matmul_.a, at_.in[0], true);
    place(matmul_.b, at_.in[1], false);
    // An operand a in registers is indexed by the k-step.
    matmul_.reads_ahead &= !matmul_.a.value;
    if (matmul_.kind == MatmulKind::mma_sync) matmul_.unrolled = matmul_.a.value || matmul_.reads_ahead ? 0 : 2;
    accumulate();
  }

 private:
  const Node& node(Id id) const { return steps_.node(id); }

  // Accumulates into the carried value itself where nothing else needs the old one.
  bool in_place() const {
    const Node& c = node(at_.in[2]);
    if (c.op != Op::argument || c.position() == 0 || c.region != at_.region) return false;
    if (steps_.analysis.users[at_.in[2]].size() != 1) return false;
    const Region& body = steps_.analysis.graph.regions[at_.region];
    if (body.yields[c.position() - 1] != id_) return false;
    return steps_.plan.values[steps_.values.of(at_.in[2])].layout == layout_;
  }
  // Slices of k only scale the carried value: each warp has accumulators of all columns, and no registers for others.
  bool scales_in_place() const {
    return matmul_.slices() > 1 && node(at_.in[2]).op == Op::mul && steps_.plan.values[carried()].layout == layout_;
  }
  ValueId carried() const { return steps_.values.of(node(at_.in[2]).in[0]); }
  ValueId start() {
    if (in_place()) return steps_.values.set(id_, steps_.values.of(at_.in[2]));
    Sweep sweep = SweepBuilder(steps_, at_.shape, layout_, id_).express(at_.in[2]).take();
    const ValueId out = steps_.values.set(id_, scales_in_place() ? carried() : add("mma"));
    steps_.plan.storage(out).changes = true;
    steps_.push(id_, Compute{.out = out, .sweep = std::move(sweep)});
    return out;
  }
  ValueId add(std::string_view stem) { return steps_.values.add(steps_.values.label(id_, stem), id_, layout_); }
  void push(ValueId out) {
    if (matmul_.kind == MatmulKind::gemv) keep_together(out);
    // For accumulators in memory ptxas keeps as many in registers as k-steps are unrolled: more than there are
    // registers.
    if (steps_.plan.storage(out).storage_class == StorageClass::workspace && !matmul_.a.value) {
      matmul_.unrolled = 1;
      matmul_.reads_ahead = false;
    }
    const LoopId fetching = matmul_.reads_ahead ? fetches_.within(id_) : LoopId{};
    steps_.push(id_, Mma{.out = out, .shape = at_.shape, .layout = layout_, .matmul = matmul_, .fetching = fetching});
  }

  // The loop over a thread's elements of b is unrolled if all that it indexes is in registers.
  void keep_together(ValueId out) {
    std::vector<ValueId> indexed{matmul_.a.value, matmul_.b.value};
    if (layout_.registers() > matmul_.m) indexed.push_back(out);
    const auto is = [&](StorageClass storage_class) {
      return [&, storage_class](ValueId id) { return steps_.plan.storage(id).storage_class == storage_class; };
    };
    if (!std::ranges::any_of(indexed, is(StorageClass::workspace))) return;
    for (ValueId id : indexed)
      if (is(StorageClass::registers)(id)) steps_.values.needs_memory(id);
  }

  // An operand from node `from`: from a load, from registers, or through shared memory.
  void place(MatmulOperand& operand, Id from, bool is_a) {
    if (operand.buffer) {
      operand.stage = fetches_.loop_of(operand.buffer);
      return;
    }
    if (is_a && stays_in_registers(from)) {
      operand.value = steps_.value_in(from, matmul_.left_layout());
      return;
    }
    // Written in row-major order of the operand.
    const Shape& shape = node(from).shape;
    const int k = round_up(matmul_.k, matmul_.kind == MatmulKind::mma_sync ? matmul_.depth() : 4);
    const int other = layout_.cover(is_a ? 0 : 1);
    operand.k_major = is_a;
    operand.stored = matmul_.type == ElementType::tf32 ? ElementType::f32 : matmul_.type;
    operand.casts.clear();
    Buffer buffer;
    buffer.label = steps_.values.label(from, is_a ? "left" : "right", fmt::format("_{}", steps_.analysis.number[id_]));
    buffer.type = operand.stored;
    buffer.rows = is_a ? other : k;
    buffer.columns = round_up(is_a ? k : other, 16 / info(operand.stored).bytes);
    const bool padded = buffer.rows != shape[0] || buffer.columns != shape[1];
    operand.buffer = fetches_.add_buffer(std::move(buffer));
    if (padded) steps_.push(from, ZeroFill{operand.buffer});
    Sweep sweep = SweepBuilder(steps_, shape, steps_.layouts.of[from]).express(from).take();
    steps_.push(from, StoreShared{.buffer = operand.buffer, .sweep = std::move(sweep)});
  }
  bool stays_in_registers(Id from) const {
    const Layout registers = matmul_.left_layout();
    return matmul_.kind == MatmulKind::mma_sync && info(matmul_.type).bytes > 1 && matmul_.warps_n == 1 &&
           matmul_.k % (matmul_.slices() * matmul_.depth()) == 0 && steps_.layouts.of[from] == registers &&
           !steps_.values.is_large(registers) && !steps_.values.is_in_memory(from) &&
           !steps_.values.left_in_memory(id_) &&
           std::int64_t(matmul_.k) * matmul_.n * 8 <= steps_.analysis.target.shared_bytes;
  }

  void thin() {
    matmul_.a.value = steps_.value_in(at_.in[0], matmul_.layout_a);
    matmul_.b.value = steps_.value_in(at_.in[1], matmul_.layout_b);
    accumulate();
  }

  // Where lanes or warps have slices of k, their sums are added up here, or after the loop.
  void accumulate() {
    const bool spread = matmul_.lanes_k || matmul_.warps_k;
    if (!spread || matmul_.partial) return push(start());
    // Partial sums start at 0; the addend comes last.
    const ElementType type = sum_type(matmul_.type);
    const ValueId sums = add("sums");
    steps_.plan.storage(sums).changes = true;
    SweepBuilder zero(steps_, at_.shape, layout_);
    zero.add({Op::broadcast, type, type, {literal(0)}});
    steps_.push(id_, Compute{.out = sums, .sweep = zero.take()});
    push(sums);
    add_replicas(steps_, id_, sums, {matmul_.lanes_k, matmul_.warps_k});
    SweepBuilder total(steps_, at_.shape, layout_, id_);
    Operand addend = total.operand(at_.in[2]);
    total.add({Op::add, type, type, {element_of(steps_.plan, sums, layout_), std::move(addend)}});
    const ValueId out = steps_.values.set(id_, add("mma"));
    steps_.push(id_, Compute{.out = out, .sweep = total.take()});
  }

  Steps& steps_;
  Fetches& fetches_;
  const Id id_;
  const Node& at_;
  const Layout& layout_;
  Matmul matmul_;
};

}  // namespace

void mma(Steps& steps, Fetches& fetches, Id id) { MatmulLowering(steps, fetches, id).run(); }

}  // namespace tessera::internal::lowering
