// Kernels whose rows are too long for a tile. A loop over chunks of a row computes what the reductions of one stage
// take, and adds it up in a tile of partial results; the next loop reads the row again, from the cache. The last one
// stores.
#include <algorithm>

#include "tensors/kernel_writer.hpp"

namespace tessera::internal {
namespace {

// The op that combines two elements of a reduction.
Op combining(Op reduction) {
  switch (reduction) {
    case Op::prod:
      return Op::mul;
    case Op::max:
      return Op::maximum;
    case Op::max_nan:
      return Op::maximum_nan;
    case Op::min:
      return Op::minimum;
    case Op::min_nan:
      return Op::minimum_nan;
    case Op::any:
      return Op::logical_or;
    case Op::all:
      return Op::logical_and;
    default:
      return Op::add;
  }
}

// Adds a value in a use to those that were visited, or says that it is one of them.
bool is_new(std::vector<std::pair<int, Use>>& seen, int v, const Use& use) {
  if (std::find(seen.begin(), seen.end(), std::pair(v, use)) != seen.end()) return false;
  seen.emplace_back(v, use);
  return true;
}

}  // namespace

bool KernelWriter::is_chunked(const AxisUse& along) const {
  return tiling_.row > 0 && along.axis == AxisUse::whole && along.extent == tiling_.row;
}
bool KernelWriter::is_chunked(const Use& use) const {
  return std::any_of(use.begin(), use.end(), [&](const AxisUse& along) { return is_chunked(along); });
}

bool KernelWriter::is_row_reduction(int v) const {
  const Value& x = value(v);
  return x.op == TensorOp::reduce && value(x.in[0]).extents[x.axis()] == tiling_.row;
}

// How many reductions of rows, each of which depends on the one before, a value depends on.
int KernelWriter::stage_of(int v) {
  if (value(v).is_number() || is_read(v)) return 0;
  if (const auto known = stages_.find(v); known != stages_.end()) return known->second;
  int stage = 0;
  const Value& x = value(v);
  for (std::size_t i = 0; i < x.in.size(); ++i)
    if (x.op != TensorOp::gather || i > 0) stage = std::max(stage, stage_of(x.in[i]));
  if (is_row_reduction(v)) ++stage;
  return stages_[v] = stage;
}

void KernelWriter::collect(int v, const Use& use, std::vector<RowReduction>& reductions, Seen& seen) {
  if (value(v).is_number() || is_read(v) || !is_new(seen, v, use)) return;
  const Value& x = value(v);
  if (is_row_reduction(v)) reductions.push_back({v, use, stage_of(x.in[0])});
  for (std::size_t i = 0; i < x.in.size(); ++i)
    if (x.op != TensorOp::gather || i > 0) collect(x.in[i], use_of_operand(v, use, i), reductions, seen);
}

// Emits what a value of a chunk takes that is the same for all chunks.
void KernelWriter::emit_ahead(int v, const Use& use, Seen& seen) {
  if (!is_chunked(use)) {
    emit(v, use);
    return;
  }
  if (value(v).is_number() || is_read(v) || !is_new(seen, v, use)) return;
  for (std::size_t i = 0; i < value(v).in.size(); ++i)
    if (value(v).op != TensorOp::gather || i > 0) emit_ahead(value(v).in[i], use_of_operand(v, use, i), seen);
}

void KernelWriter::write_row_loops() {
  std::vector<RowReduction> reductions;
  std::vector<std::size_t> of_rows, stored_last;  // results: of whole rows, and others
  Seen seen;
  int last = 0;
  for (std::size_t i = 0; i < kernel_.results.size(); ++i) {
    const int v = kernel_.results[i].value;
    const Use use = normalized(kernel_, whole_domain(value(v).extents));
    collect(v, use, reductions, seen);
    (is_chunked(use) ? of_rows : stored_last).push_back(i);
    if (is_chunked(use)) last = std::max(last, stage_of(v));
  }
  for (const RowReduction& reduction : reductions) last = std::max(last, reduction.stage);
  for (int stage = 0; stage <= last; ++stage) {
    std::vector<RowReduction> of_stage;
    std::vector<std::size_t> stored;
    for (const RowReduction& reduction : reductions)
      if (reduction.stage == stage) of_stage.push_back(reduction);
    for (const std::size_t i : of_rows)
      if (stage_of(kernel_.results[i].value) == stage) stored.push_back(i);
    if (of_stage.empty() && stored.empty()) continue;

    std::vector<Trace::VarSlot> partial;
    seen.clear();
    for (const RowReduction& reduction : of_stage) {
      const Value& x = value(reduction.value);
      const Use inside = use_of_operand(reduction.value, reduction.use, 0);
      emit_ahead(x.in[0], inside, seen);
      location_ = x.location;
      const Handle start = identity_of(x.element_op, computing_type(value(x.in[0]).type));
      partial.push_back(trace_.make_var(stretched(start, tile_shape(inside)), location_));
    }
    for (const std::size_t i : stored) {
      const int v = kernel_.results[i].value;
      emit_ahead(v, normalized(kernel_, whole_domain(value(v).extents)), seen);
    }
    const auto outside = known_;
    inner_ = trace_.begin_loop(index((tiling_.row + tiling_.inner - 1) / tiling_.inner), location_);
    for (std::size_t i = 0; i < of_stage.size(); ++i) {
      const RowReduction& reduction = of_stage[i];
      const Value& x = value(reduction.value);
      const Use inside = use_of_operand(reduction.value, reduction.use, 0);
      Handle tile = computing(stretched(emit(x.in[0], inside), tile_shape(inside)));
      location_ = x.location;
      if (tiling_.row % tiling_.inner != 0) tile = masked(tile, reduction.value, inside, tiling_.row);
      const Handle sum = trace_.var(partial[i], location_);
      trace_.assign_var(partial[i], elementwise(combining(x.element_op), sum, tile), location_);
    }
    for (const std::size_t i : stored) store(i);
    trace_.end_region();
    known_ = outside;
    for (std::size_t i = 0; i < of_stage.size(); ++i) {
      const Value& x = value(of_stage[i].value);
      location_ = x.location;
      const Handle sum = trace_.var(partial[i], location_);
      known_.push_back({{of_stage[i].value, of_stage[i].use}, op(x.element_op, type(sum), {sum}, {x.attr[0]})});
    }
    for (const Trace::VarSlot& slot : partial) trace_.drop_var(slot);
  }
  for (const std::size_t i : stored_last) store(i);
}

}  // namespace tessera::internal
