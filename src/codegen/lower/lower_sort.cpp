#include "codegen/lower/lower_sort.hpp"

#include <algorithm>
#include <bit>

#include "codegen/layout/sort_layout.hpp"
#include "codegen/lower/lower_scratch.hpp"

namespace tessera::internal::lowering {
namespace {

// Strides that make lines along `axis` contiguous.
Strides line_by_line(const Shape& shape, int axis) {
  Strides strides{};
  strides[static_cast<std::size_t>(axis)] = 1;
  std::int64_t stride = shape[axis];
  for (int other = shape.rank(); other-- > 0;) {
    if (other == axis) continue;
    strides[static_cast<std::size_t>(other)] = stride;
    stride *= shape[other];
  }
  return strides;
}

/// Lowers sort and argsort.
class Sorter {
 public:
  Sorter(Steps& steps, Id sort, Id argsort)
      : steps_(steps),
        sort_(sort),
        argsort_(argsort),
        id_(sort == no_id ? argsort : sort),
        in_(steps.node(id_).in[0]),
        axis_(steps.node(id_).axis()),
        by_(steps.node(id_).sort_options()),
        extent_(steps.node(id_).shape[axis_]),
        shape_(steps.node(in_).shape),
        type_(steps.node(in_).type),
        chunk_(sort_chunk(shape_[axis_], type_)),
        kept_(std::min(chunk_, static_cast<int>(std::bit_ceil(static_cast<unsigned>(extent_))))) {}

  void run() {
    const Layout sorted = sorted_layout(shape_, axis_, type_, steps_.threads / 32);
    if (sort_chunks(shape_[axis_], type_) == 1) {
      const ValueId out = sort_ == no_id ? keys(sorted) : steps_.values.add(sort_);
      if (sort_ == no_id) steps_.plan.values[out].shape = steps_.node(id_).shape;
      push_sort(sorted, out, argsort_ == no_id ? ValueId{} : steps_.values.add(argsort_));
      return;
    }
    const ValueId out = keys(sorted);
    ValueId at;
    if (argsort_ != no_id) {
      at = steps_.values.add(steps_.values.label(argsort_, "places"), argsort_, sorted);
      steps_.plan.values[at].shape = shape_;
    }
    push_sort(sorted, out, at);
    merge(out, at);
  }

 private:
  ValueId keys(const Layout& layout) { return steps_.values.add(steps_.values.label(id_, "sorted"), in_, layout); }
  // Sorts the operand in its own layout if warps hold whole chunks of it.
  void push_sort(const Layout& sorted, ValueId out, ValueId at) {
    const Layout& of_operand = steps_.layouts.of[in_];
    const Layout from = sorts_from(of_operand, sorted, axis_) ? of_operand : unsorted_layout(sorted, axis_);
    Sweep sweep = SweepBuilder(steps_, shape_, from, id_).express(in_).take();
    steps_.push(
        id_,
        Sort{
            .by = by_, .axis = axis_, .chunk = chunk_, .kept = kept_, .out = out, .at = at, .sweep = std::move(sweep)});
  }
  // Chunks go to memory. Each element finds how many elements of the other chunks precede it, and moves to its place.
  void merge(ValueId chunks, ValueId at) {
    Shape first = shape_;
    first[axis_] = extent_;
    const ScratchId from = new_scratch(steps_.plan, shape_.size(), type_);
    const Strides from_strides = line_by_line(shape_, axis_), to_strides = line_by_line(first, axis_);
    put(steps_, chunks, id_, from_strides, 0, from);
    ScratchId to, to_at;
    if (sort_ != no_id) to = new_scratch(steps_.plan, first.size(), type_);
    if (at) to_at = new_scratch(steps_.plan, first.size(), ElementType::i32);
    const Layout layout = steps_.plan.values[chunks].layout;
    SweepBuilder sweep(steps_, shape_, layout);
    sweep.add({Op::broadcast, type_, type_, {element_of(steps_.plan, chunks, layout)}});
    Sweep merged = sweep.take();
    merged.at_once = 1;  // each element runs a loop of its own
    steps_.push(id_, Merge{.by = by_,
                           .axis = axis_,
                           .chunk = chunk_,
                           .kept = kept_,
                           .extent = extent_,
                           .at = at,
                           .from = from,
                           .to = to,
                           .to_at = to_at,
                           .from_strides = from_strides,
                           .to_strides = to_strides,
                           .sweep = std::move(merged)});
    if (sort_ != no_id) get(steps_, steps_.values.add(sort_), sort_, to_strides, to);
    if (at) get(steps_, steps_.values.add(argsort_), argsort_, to_strides, to_at);
  }

  Steps& steps_;
  const Id sort_, argsort_, id_, in_;
  const int axis_;
  const SortOptions by_;
  const int extent_;  // of the result
  const Shape shape_;
  const ElementType type_;
  const int chunk_, kept_;
};

// Copies of each count, so that lanes that count the same number rarely collide: up to one per lane, but fewer where
// clearing and adding them up would take as long as counting, or more memory than several CTAs have.
int copies_of_counts(std::int64_t counts, std::int64_t numbers) {
  constexpr std::int64_t most = 8192, numbers_of_copy = 4;
  const std::int64_t copies = std::min(most / counts, numbers / (numbers_of_copy * counts));
  return static_cast<int>(std::bit_floor(static_cast<std::uint64_t>(std::clamp<std::int64_t>(copies, 1, 32))));
}

}  // namespace

void sort(Steps& steps, Id sort, Id argsort) { Sorter(steps, sort, argsort).run(); }

void histogram(Steps& steps, Id id) {
  const Node& at = steps.node(id);
  const bool counting = at.op == Op::histogram;
  const int axis = at.axis();
  const ElementType type = ElementType::i32;
  const std::int64_t counts = at.shape.size();
  const int copies = counting ? copies_of_counts(counts, steps.node(at.in[0]).shape.size()) : 1;
  const Strides strides = row_major(at.shape);
  const ScratchId scratch = new_scratch(steps.plan, counts * copies, type);
  // All copies are cleared as one array; a single copy has the layout of the result.
  const Shape cleared = copies > 1 ? Shape{static_cast<int>(counts * copies)} : at.shape;
  const Layout clearing =
      copies > 1 ? blocked_layout(cleared, 0, 1, static_cast<int>(std::bit_floor(unsigned(steps.threads / 32))))
                 : steps.layouts.of[id];
  SweepBuilder zeros(steps, cleared, clearing);
  zeros.add({Op::broadcast, type, type, {literal(counting ? 0 : -1)}});
  constexpr int few = 4;  // NVRTC would compute the addresses of more iterations all at once
  Sweep clears = zeros.take();
  clears.at_once = few;
  steps.push(id, StoreScratch{.scratch = scratch, .strides = row_major(cleared), .sweep = std::move(clears)});
  Sweep numbers = SweepBuilder(steps, sweep_of(steps.analysis, steps.layouts, id), id).express(at.in[0]).take();
  steps.push(id, HistogramUpdate{.op = at.op,
                                 .scratch = scratch,
                                 .axis = axis,
                                 .bins = at.shape[axis],
                                 .copies = copies,
                                 .strides = strides,
                                 .sweep = std::move(numbers)});
  const ValueId out = steps.values.add(id);
  const Value value = steps.plan.values[out];
  Sweep sums = SweepBuilder(steps, value.shape, value.layout).take();
  sums.at_once = few;
  steps.push(id, HistogramReduce{
                     .scratch = scratch, .copies = copies, .strides = strides, .out = out, .sweep = std::move(sums)});
}

}  // namespace tessera::internal::lowering
