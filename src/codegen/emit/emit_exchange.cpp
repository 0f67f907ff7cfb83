#include <algorithm>
#include <span>

#include "codegen/emit/emit_steps.hpp"
#include "codegen/plan/spelling.hpp"
#include "graph/evaluate.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal::codegen {
namespace {

Spelled combine(Op op, ElementType type, const Spelled& a, const Spelled& b) {
  return substitute(info(type).kind == ElementKind::real ? info(op).cuda_real : info(op).cuda_integer, a, b);
}

std::vector<int> lane_masks(const std::vector<std::pair<Factor, int>>& of_thread) {
  std::vector<int> masks;
  for (const auto& [factor, scale] : of_thread)
    if (factor.place == Place::lane)
      for (int bit = factor.unit; bit < factor.unit * factor.size; bit *= 2) masks.push_back(bit);
  std::sort(masks.begin(), masks.end());
  return masks;
}

std::vector<int> bits_of(int mask) {
  std::vector<int> bits;
  for (int bit = 1; bit <= mask; bit *= 2)
    if (mask & bit) bits.push_back(bit);
  return bits;
}

int registers_of(const Writer& w, ValueId id) { return w.plan.values[id].layout.registers(); }
bool in_registers(const Writer& w, ValueId id) { return w.plan.storage(id).storage_class == StorageClass::registers; }

// Calls each(index) for the first `count` registers of a value.
void over_results(Writer& w, ValueId out, int count, const Each& each) {
  if (count == 1) return each(0);
  w.unroll(in_registers(w, out));
  w.open("for (int i = 0; i < {}; ++i) {{", count);
  each(IndexExpression::variable("i", count));
  w.close();
}

void combine_lanes(Writer& w, Op op, ValueId out, int count, std::span<const int> masks) {
  const ElementType type = w.plan.storage(out).type;
  for (int mask : masks)
    over_results(w, out, count, [&](const IndexExpression& index) {
      const std::string to = element(w, out, index);
      w.line("{} = {};", to, combine(op, type, {to}, {fmt::format("shuffle_xor({}, {})", to, mask)}).text);
    });
}

// Keeps the better of x and the best so far.
std::string keep(Writer& w, ValueId out, ValueId best, const IndexExpression& index, std::string_view x,
                 std::string_view at) {
  const std::string of_best = element(w, best, index);
  return fmt::format("keep_best({}, {}, {}, {});", x, at, of_best, element(w, out, index));
}

// --- warps that hold partial results: each stores its own in a slot, and all read the slots in the same order

// Calls each(warp), in ascending order, for every warp whose index differs from this warp's only in `bits`, which
// belong to one factor.
void over_members(Writer& w, int bits, const Each& each) {
  const int unit = bits & -bits, others = ~bits & (w.role.warps - 1);
  if ((bits / unit & (bits / unit + 1)) != 0) throw InternalError("partial results are in warps of two factors");
  const IndexExpression first = w.warp() & others;
  each(first);
  if (bits == unit) return each(first + unit);
  w.unroll(true);
  w.open("for (int other = {}; other <= {}; {}) {{", unit, bits,
         unit == 1 ? "++other" : fmt::format("other += {}", unit));
  each(first + IndexExpression::variable("other"));
  w.close();
}

// Calls each(i, c + i) for the registers of this chunk: slot i, and register c + i of the result.
template <class EachPair>
void over_chunk(Writer& w, int registers, int chunk, const EachPair& each) {
  if (chunk == 1) return each(IndexExpression(0), IndexExpression(0));
  const IndexExpression i = IndexExpression::variable("i", chunk);
  w.unroll(true);
  w.open("for (int i = 0; i < {}; ++i) {{", chunk);
  const bool guarded = registers % chunk != 0;
  if (guarded) w.open("if (c + i < {}) {{", registers);
  each(i, registers > chunk ? IndexExpression::variable("c") + i : i);
  if (guarded) w.close();
  w.close();
}

// "[(i * 4 + warp) * 32 + lane]".
std::string slot(Writer& w, const IndexExpression& i, const IndexExpression& warp) {
  return fmt::format("[{}]", (i * w.role.warps + warp) * 32 + w.lane());
}

// The step by which a chunk's values are stored.
const StoreWarpPartials& put_of(const CrossWarpReduce& partials) {
  for (const Step& step : partials.per_chunk)
    if (const auto* put = step.action.as<StoreWarpPartials>()) return *put;
  throw InternalError("warps reduce partial results that no step stores");
}

}  // namespace

void emit(Writer& w, const Reduce& reduce) {
  const ElementType type = w.plan.storage(reduce.out).type;
  const Layout &of_sweep = reduce.sweep.layout, &of_result = w.plan.values[reduce.out].layout;
  const int count = of_result.registers();
  const Storage& storage = w.plan.storage(reduce.out);
  const std::string first = number(type, identity(reduce.op, type));
  if (storage.storage_class == StorageClass::variable && w.declares(w.plan.values[reduce.out].storage)) {
    w.line("{} {} = {};", register_type(type), w.name(reduce.out), first);
  } else {
    declare(w, reduce.out, false);
    if (in_registers(w, reduce.out) && count == storage.registers)
      w.line("fill({}, {});", w.name(reduce.out), first);
    else
      over_results(w, reduce.out, count,
                   [&](const IndexExpression& index) { w.line("{} = {};", element(w, reduce.out, index), first); });
  }
  const std::vector<Digit> map = register_map(of_result, of_sweep);
  const bool padded = of_sweep.covers_more(reduce.axis, reduce.sweep.shape);
  sweep(w, reduce.sweep, reduce.out, [&](const IndexExpression& index) {
    const Spelled value = expression(w, reduce.sweep, index);
    const std::string to = element(w, reduce.out, digits(map, index));
    const IndexExpression inside = padded
                                       ? coordinate(w, of_sweep, reduce.axis, index) < reduce.sweep.shape[reduce.axis]
                                       : IndexExpression::always();
    w.line("{}{} = {};", guard(inside), to, combine(reduce.op, type, {to}, value).text);
  });
  if (reduce.partial) return;
  combine_lanes(w, reduce.op, reduce.out, count, lane_masks(of_sweep.thread_digits(reduce.axis)));
  emit(w, reduce.across);
}

void emit(Writer& w, const LaneReduce& replicas) {
  const std::string name = w.name(replicas.out);
  const int registers = registers_of(w, replicas.out);
  const std::vector<int> masks = bits_of(replicas.lanes);
  std::size_t halvings = 0;
  for (; registers >> halvings > replicas.kept; ++halvings)
    w.line("add_halves<{}>({}, {});", registers >> halvings, name, masks[halvings]);
  combine_lanes(w, Op::sum, replicas.out, replicas.kept, std::span(masks).subspan(halvings));
  emit(w, replicas.across);
  while (halvings-- > 0) w.line("gather_halves<{}>({}, {});", registers >> halvings, name, masks[halvings]);
}

void emit(Writer& w, const Argmax& argmax) {
  const ValueId out = argmax.out, best = argmax.best;
  const ElementType type = w.plan.storage(best).type;
  const Layout &of_sweep = argmax.sweep.layout, &of_result = w.plan.values[out].layout;
  const int count = of_result.registers();
  declare(w, out, false);
  declare(w, best, false);
  over_results(w, out, count, [&](const IndexExpression& index) {
    w.line("{} = {};", element(w, best, index),
           info(type).kind == ElementKind::real ? not_a_number(type) : number(type, identity(Op::max, type)));
    w.line("{} = 0;", element(w, out, index));
  });
  const std::vector<Digit> map = register_map(of_result, of_sweep);
  const bool padded = of_sweep.covers_more(argmax.axis, argmax.sweep.shape);
  sweep(w, argmax.sweep, out, [&](const IndexExpression& index) {
    w.open("{{");
    const Spelled value = expression(w, argmax.sweep, index);
    w.line("const {} x = {};", register_type(type), value.text);
    w.line("const int at = {};", coordinate(w, of_sweep, argmax.axis, index));
    w.line("{}{}", padded ? fmt::format("if (at < {}) ", argmax.sweep.shape[argmax.axis]) : "",
           keep(w, out, best, digits(map, index), "x", "at"));
    w.close();
  });
  for (int mask : lane_masks(of_sweep.thread_digits(argmax.axis)))
    over_results(w, out, count, [&](const IndexExpression& index) {
      w.open("{{");
      w.line("const {} x = shuffle_xor({}, {});", register_type(type), element(w, best, index), mask);
      w.line("const int at = shuffle_xor({}, {});", element(w, out, index), mask);
      w.line("{}", keep(w, out, best, index, "x", "at"));
      w.close();
    });
  emit(w, argmax.across);
}

void emit(Writer& w, const CrossWarpReduce& partials) {
  const StoreWarpPartials& put = put_of(partials);
  const ElementType type = w.plan.storage(put.best ? put.best : put.out).type;
  w.open("{{");
  w.line("{}* const partial = {};", scratch_type(type), w.scratch(put.scratch, type));
  if (put.best)
    w.line("int* const partial_at = reinterpret_cast<int*>(partial + {});", partials.chunk * w.role.threads());
  const bool chunks = partials.registers > partials.chunk;
  if (chunks) {
    w.unroll(in_registers(w, partials.out));
    w.open("for (int c = 0; c < {}; c += {}) {{", partials.registers, partials.chunk);
  }
  emit(w, partials.per_chunk);
  if (chunks) w.close();
  w.close();
}

void emit(Writer& w, const StoreWarpPartials& put) {
  over_chunk(w, put.registers, put.chunk, [&](const IndexExpression& i, const IndexExpression& result) {
    const std::string at = slot(w, i, w.warp());
    w.line("partial{} = {};", at, element(w, put.best ? put.best : put.out, result));
    if (put.best) w.line("partial_at{} = {};", at, element(w, put.out, result));
  });
}

void emit(Writer& w, const ReduceWarpPartials& take) {
  bool first = true;
  over_members(w, take.warps, [&](const IndexExpression& warp) {
    over_chunk(w, take.registers, take.chunk, [&](const IndexExpression& i, const IndexExpression& result) {
      const std::string at = slot(w, i, warp);
      if (take.best) {
        w.line("{}", keep(w, take.out, take.best, result, "partial" + at, "partial_at" + at));
        return;
      }
      const Spelled to{element(w, take.out, result)}, from{"partial" + at};
      w.line("{} = {};", to.text, first ? from.text : combine(take.op, w.plan.storage(take.out).type, to, from).text);
    });
    first = false;
  });
}

// --- tiles that move from layout to layout

namespace {

/// Offset of an element in scratch memory, and the condition that it exists.
struct InScratch {
  IndexExpression at, inside;
};
InScratch picked(Writer& w, const LoadScratch& get, const IndexExpression& index) {
  InScratch place{0, inside_tile(w, get.sweep, index)};
  for (std::size_t axis = 0; axis < get.picked.size(); ++axis) {
    const Picked& pick = get.picked[axis];
    const int extent = get.sweep.shape[static_cast<int>(axis)];
    const IndexExpression i =
        extent == 1 ? IndexExpression(0) : coordinate(w, get.sweep.layout, static_cast<int>(axis), index);
    const IndexExpression first = scalar(w, pick.first), at = first + i * pick.step;
    if (pick.extent != 1) place.at = place.at + at * get.strides[axis];
    // A condition that constants decide is left out.
    const std::int64_t reach = std::int64_t{extent - 1} * pick.step;
    const auto is_there = [&](std::int64_t j) { return j >= 0 && j < pick.extent; };
    if (first.is_constant() && is_there(first.value()) && is_there(first.value() + reach)) continue;
    place.inside = both(place.inside, both(at >= 0, at < pick.extent));
  }
  return place;
}

}  // namespace

void emit(Writer& w, const StoreScratch& put) {
  const ElementType type = put.sweep.expression.terms.back().type;
  w.open("{{");
  w.line("{}* const to = {};", scratch_type(type), w.scratch(put.scratch, type));
  const IndexExpression mine = first_copy(w, put.sweep.layout);
  sweep(w, put.sweep, {}, [&](const IndexExpression& index) {
    const Spelled value = expression(w, put.sweep, index);
    const IndexExpression condition = both(mine, inside_tile(w, put.sweep, index));
    w.line("{}to[{}] = {};", guard(condition), linear(w, put.sweep, put.strides, put.base, index), value.text);
  });
  w.close();
}

void emit(Writer& w, const LoadScratch& get) {
  const ElementType type = w.plan.storage(get.out).type;
  declare(w, get.out, false);
  w.open("{{");
  w.line("const {}* const from = {};", scratch_type(type), w.scratch(get.scratch, type));
  sweep(w, get.sweep, get.out, [&](const IndexExpression& index) {
    const auto [at, inside] =
        get.picked.empty() ? InScratch{linear(w, get.sweep, get.strides, 0, index), inside_tile(w, get.sweep, index)}
                           : picked(w, get, index);
    w.line("{} = {};", element(w, get.out, index),
           inside.is_always() ? fmt::format("from[{}]", at)
                              : fmt::format("{} ? from[{}] : {}", inside, at, number(type, Cell{})));
  });
  w.close();
}

void emit(Writer& w, const GatherScratch& gather) {
  const ElementType type = w.plan.storage(gather.out).type;
  declare(w, gather.out, false);
  w.open("{{");
  w.line("const {}* const from = {};", scratch_type(type), w.scratch(gather.scratch, type));
  Strides of_line = gather.strides;
  of_line[static_cast<std::size_t>(gather.axis)] = 0;
  sweep(w, gather.sweep, gather.out, [&](const IndexExpression& index) {
    w.open("{{");
    w.line("const int position = {};", expression(w, gather.sweep, index).text);
    const IndexExpression position = IndexExpression::variable("position");
    const IndexExpression inside =
        both(inside_tile(w, gather.sweep, index), both(position >= 0, position < gather.extent));
    const IndexExpression at =
        linear(w, gather.sweep, of_line, 0, index) +
        IndexExpression::variable("position", gather.extent) * gather.strides[static_cast<std::size_t>(gather.axis)];
    w.line("{} = {} ? from[{}] : {};", element(w, gather.out, index), inside, at, number(type, Cell{}));
    w.close();
  });
  w.close();
}

}  // namespace tessera::internal::codegen
