// Sorting along an axis, with a network of comparisons in registers and across lanes and with merges through memory;
// and histograms.
#include "codegen/emit/emit_steps.hpp"
#include "codegen/plan/spelling.hpp"

namespace tessera::internal::codegen {
namespace {

// Type of sort keys: unsigned integers with the order of the elements, or keys that include the index.
std::string_view key_type(ElementType type, bool with_place) {
  const bool wide = host_bytes(host_type(type)) == 8;
  if (with_place) return wide ? "PlacedKey" : "u64";
  return wide ? "u64" : "u32";
}

}  // namespace

void emit(Writer& w, const Sort& sort) {
  const ElementType type = w.plan.storage(sort.out).type;
  const Layout& from = sort.sweep.layout;
  const Line line = *line_of(w.plan.values[sort.out].layout, sort.axis);
  const int registers = line.run.size, chunks = from.registers() / registers;
  const std::string_view key = key_type(type, bool(sort.at)), element_type = register_type(type);
  declare(w, sort.out, false);
  if (sort.at) declare(w, sort.at, false);
  sweep(w, sort.sweep, sort.out, [&](const IndexExpression& index) {
    w.line("{} = {};", element(w, sort.out, index), expression(w, sort.sweep, index).text);
  });
  const bool padded = from.covers_more(sort.axis, sort.sweep.shape), looped = chunks > 1;
  if (looped) {
    w.unroll(is_indexed_by_constants(w.plan.storage(sort.out)));
    w.open("for (int i = 0; i < {}; ++i) {{", chunks);
  } else {
    w.open("{{");
  }
  const IndexExpression first = looped ? IndexExpression::variable("i", chunks) * registers : IndexExpression(0);
  w.line("{} keys[{}];", key, registers);
  w.unrolled("k", registers, [&](const IndexExpression& k) {
    const IndexExpression at = coordinate(w, from, sort.axis, first + k);
    const std::string x = element(w, sort.out, first + k);
    w.line("keys[{}] = {};", k,
           where(padded ? at < sort.sweep.shape[sort.axis] : IndexExpression::always(),
                 sort.at ? fmt::format("placed_key<{}>({}, {})", sort.by.descending, x, at)
                         : fmt::format("key_of<{}>({})", sort.by.descending, x),
                 fmt::format("last_key<{}>()", key)));
  });
  w.line("sort_lanes<{}, {}, {}>(keys);", line.lanes.size, line.lanes.unit, sort.kept);
  w.unrolled("k", registers, [&](const IndexExpression& k) {
    w.line("{} = {}<{}, {}>(keys[{}]);", element(w, sort.out, first + k), sort.at ? "placed_value" : "key_value",
           element_type, sort.by.descending, k);
    if (sort.at) w.line("{} = key_place(keys[{}]);", element(w, sort.at, first + k), k);
  });
  w.close();
}

void emit(Writer& w, const Merge& merge) {
  const ElementType type = w.plan.scratch[merge.from].type;
  const int along = merge.sweep.shape[merge.axis];
  w.open("{{");
  w.line("const {0}* const from = {1};", scratch_type(type), w.scratch(merge.from, type));
  if (merge.to) w.line("{}* const to = {};", scratch_type(type), w.scratch(merge.to, type));
  if (merge.to_at) w.line("int* const to_at = {};", w.scratch(merge.to_at, ElementType::i32));
  const IndexExpression mine = first_copy(w, merge.sweep.layout);
  // Offset of the line, regardless of the position along it.
  const auto line_in = [&](Strides strides, const IndexExpression& index) {
    strides[static_cast<std::size_t>(merge.axis)] = 0;
    return linear(w, merge.sweep, strides, 0, index);
  };
  sweep(w, merge.sweep, {}, [&](const IndexExpression& index) {
    w.open("{{");
    w.line("const {} x = {};", register_type(type), expression(w, merge.sweep, index).text);
    const IndexExpression at = coordinate(w, merge.sweep.layout, merge.axis, index);
    const IndexExpression kept = merge.kept < merge.chunk ? at % merge.chunk < merge.kept : IndexExpression::always();
    w.open("{}{{", guard(both(both(mine, inside_tile(w, merge.sweep, index)), kept)));
    w.line("const int rank = rank_in_line<{}, {}>({}, {}, {}, {}, {}, x);", merge.by.descending, bool(merge.at),
           beyond("from", line_in(merge.from_strides, index)), along, merge.chunk, merge.kept, at);
    const IndexExpression rank = IndexExpression::variable("rank", along);
    const IndexExpression place =
        line_in(merge.to_strides, index) + rank * merge.to_strides[static_cast<std::size_t>(merge.axis)];
    const std::string inside = guard(rank < merge.extent);
    if (merge.to) w.line("{}to[{}] = x;", inside, place);
    if (merge.to_at) w.line("{}to_at[{}] = {};", inside, place, element(w, merge.at, index));
    w.close();
    w.close();
  });
  w.close();
}

void emit(Writer& w, const HistogramUpdate& count) {
  w.open("{{");
  w.line("int* const counts = {};", w.scratch(count.scratch, ElementType::i32));
  const IndexExpression mine = first_copy(w, count.sweep.layout);
  Strides of_line = count.strides;
  of_line[static_cast<std::size_t>(count.axis)] = 0;
  sweep(w, count.sweep, {}, [&](const IndexExpression& index) {
    w.open("{{");
    w.line("const int bin = {};", expression(w, count.sweep, index).text);
    const IndexExpression bin = IndexExpression::variable("bin");
    const IndexExpression counted = both(bin >= 0, bin < count.bins);
    const IndexExpression at =
        linear(w, count.sweep, of_line, 0, index) +
        IndexExpression::variable("bin", count.bins) * count.strides[static_cast<std::size_t>(count.axis)];
    // Lanes that increment the same bin mostly use different copies of it.
    const IndexExpression copy = count.copies > 1 ? w.lane() % count.copies : IndexExpression(0);
    const std::string condition = guard(both(both(mine, inside_tile(w, count.sweep, index)), counted)),
                      place = beyond("counts", at * count.copies + copy);
    if (count.op == Op::histogram)
      w.line("{}atomic_add({}, 1);", condition, place);
    else
      w.line("{}atomic_max({}, int({}));", condition, place, coordinate(w, count.sweep.layout, count.axis, index));
    w.close();
  });
  w.close();
}

void emit(Writer& w, const HistogramReduce& add) {
  declare(w, add.out, false);
  w.open("{{");
  w.line("const int* const counts = {};", w.scratch(add.scratch, ElementType::i32));
  sweep(w, add.sweep, add.out, [&](const IndexExpression& index) {
    const IndexExpression inside = inside_tile(w, add.sweep, index), at = linear(w, add.sweep, add.strides, 0, index);
    if (add.copies == 1)
      return w.line("{} = {};", element(w, add.out, index), where(inside, fmt::format("counts[{}]", at), "0"));
    w.line("{} = {};", element(w, add.out, index),
           where(inside, fmt::format("sum_of_copies<{}>({})", add.copies, beyond("counts", at * add.copies)), "0"));
  });
  w.close();
}

}  // namespace tessera::internal::codegen
