#include "cpu/program.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "cpu/atomic.hpp"
#include "cpu/convert.hpp"
#include "cpu/elements.hpp"
#include "cpu/matmul.hpp"
#include "cpu/parallel.hpp"
#include "cpu/reduce.hpp"
#include "cpu/sort.hpp"
#include "cpu/strides.hpp"
#include "cpu/take_along_axis.hpp"
#include "cpu/tape.hpp"
#include "cpu/view_ref.hpp"
#include "graph/math.hpp"
#include "graph/of_this_thread.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal::cpu {
namespace {

// State shared by all grid tiles of a launch.
struct Launch {
  const Tape& tape;
  std::span<const Argument> arguments;
  std::span<const std::int64_t> grid;
  std::span<const Cell> uniforms;
  std::uint64_t serial;
  bool debug;
};

// The state of a thread while it runs grid tiles: the location of each value, and the memory behind it.
class Frame {
 public:
  void bind(const Launch& launch);
  void run_block(std::int64_t block);
  void run_blocks(const Launch& launch, std::int64_t begin, std::int64_t end);
  /// The kernel whose grid tiles it runs, or null.
  const Tape* running() const { return running_; }

 private:
  void reserve(std::size_t bytes, const Tape& tape);
  void run(const Body& body);
  void run_node(const Step& step);
  void run_chain(const Chain& chain);
  void run_step(const Chain::Step& step, int count) {
    const void* in[CustomFunction::most_operands];
    for (std::size_t i = 0; i < std::size(in); ++i) in[i] = step.in[i] < 0 ? nullptr : registers_[at(step.in[i])];
    step.function(registers_[at(step.out)], in, count);
  }
  Lines lines(Id in, const Node& along) { return {ref(in).data, ref(in).stride, node(in).shape, along.axis()}; }
  void run_loop(const Loop& loop, Id first);
  void load(Id id);
  void gather(Id id, int plan);
  void gather_elements(Id id, int plan);
  void store(Id id);
  void scatter(Id id, int plan);
  void scatter_elements(Id id, int plan);
  void atomic(Id id, int plan);
  ElementWalk elements(const Node& node, int plan, std::span<const Ref* const> operands);
  void look_for_nan(const Node& node, const Ref& tile, std::int64_t offset, std::int64_t step, std::int64_t count) const;
  void look_for_nan(const Node& node, const ElementStrip& strip) const;
  [[noreturn]] void fail(const Node& node, std::string_view what) const;
  void print(const Node& node) const;
  void reshape(Id id);
  void concat(Id id);
  void extract(Id id);
  void mma(Id id);

  const Node& node(Id id) const { return tape_->graph[id]; }
  Id value(Id id) const { return tape_->stands_for[id]; }
  const Ref& ref(Id id) const { return refs_[value(id)]; }
  std::int32_t index(Id id) const { return *reinterpret_cast<const std::int32_t*>(ref(id).data); }
  char* slot(Id id) { return arena_ + tape_->slot[id]; }
  /// Assigns one field at a time: a whole struct would be built elsewhere, and read back before its stores complete.
  void set(Id id, char* data, const Strides& stride, ElementType narrow = ElementType::f32) {
    Ref& ref = refs_[id];
    ref.data = data, ref.stride = stride, ref.narrow = narrow;
  }

  void tile_start(std::span<const Id> indices, const Shape& shape, int first_axis, Strides& start) const;

  const Tape* tape_ = nullptr;
  const Tape* running_ = nullptr;
  const Launch* launch_ = nullptr;
  std::uint64_t serial_ = 0;
  std::int64_t block_ = 0;
  std::vector<Ref> refs_;
  std::vector<ViewRef> views_;
  std::vector<Cell> blocks_;
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  std::unique_ptr<char, Free> memory_;
  std::size_t bytes_ = 0;
  char* arena_ = nullptr;
  char* strips_ = nullptr;
  std::vector<void*> registers_;
  std::vector<StripPlan> plans_;
  std::uint64_t plans_of_ = 0;           // the tape's serial
  std::vector<std::int32_t> positions_;  // 0, 1, 2, ...
};

// Strips of 4 KB would all map to the same sets of the L1 cache.
constexpr std::size_t strip_bytes = strip_length * 8 + 2048 + 64;

void Frame::reserve(std::size_t bytes, const Tape& tape) {
  if (bytes <= bytes_) return;
  const std::size_t rounded = (bytes + 63) / 64 * 64;
  memory_.reset();  // nothing in it outlives a launch
  bytes_ = 0;
  serial_ = 0;  // if the allocation fails, the next launch must bind again
  memory_.reset(static_cast<char*>(std::aligned_alloc(64, rounded)));
  if (!memory_)
    throw Error("kernel '" + tape.graph.name + "' needs " + std::to_string(rounded >> 20) +
                " MB for each thread, and that much memory is not available; make its tiles smaller");
  bytes_ = rounded;
}

void Frame::bind(const Launch& launch) {
  launch_ = &launch;
  if (serial_ == launch.serial) return;
  const Tape& tape = launch.tape;
  const std::size_t registers = at(tape.registers);
  reserve(tape.arena_bytes + registers * strip_bytes, tape);
  tape_ = &tape;
  serial_ = launch.serial;
  arena_ = memory_.get();
  strips_ = arena_ + tape.arena_bytes;
  if (registers_.size() < registers) registers_.resize(registers);
  if (plans_of_ != tape.serial) {
    plans_of_ = tape.serial;
    if (plans_.size() < at(tape.plans)) plans_.resize(at(tape.plans));
    for (StripPlan& plan : plans_) plan.made = false;
  }
  refs_.assign(tape.refs.begin(), tape.refs.end());
  for (Id id = 0; id < refs_.size(); ++id)
    if (tape.slot[id] >= 0) refs_[id].data = slot(id);
  for (auto [id, position] : tape.uniforms)
    refs_[id].data = reinterpret_cast<char*>(const_cast<Cell*>(&launch.uniforms[at(position)]));
  views_.resize(tape.graph.nodes.size());
  for (Id id = 0; id < views_.size(); ++id) {
    const Node& node = tape.graph[id];
    if (node.op != Op::tensor) continue;
    views_[id] = view_of(launch.arguments[node.parameter()]);
  }
  blocks_.resize(std::max<std::size_t>(1, tape.graph.grid.size()) + tape.loops.size());
  for (Id id : tape.blocks) refs_[id].data = reinterpret_cast<char*>(&blocks_[node(id).grid_axis()]);
  for (std::size_t i = 0; i < tape.loops.size(); ++i)
    refs_[tape.loops[i].counter].data = reinterpret_cast<char*>(&blocks_[blocks_.size() - 1 - i]);
}

void Frame::run_block(std::int64_t block) {
  block_ = block;
  for (std::size_t axis = launch_->grid.size(); axis-- > 0;) {
    blocks_[axis].i32 = static_cast<std::int32_t>(block % launch_->grid[axis]);
    block /= launch_->grid[axis];
  }
  run(tape_->body);
}

void Frame::run(const Body& body) {
  for (const Step& step : body) {
    switch (step.kind) {
      case StepKind::chain:
        run_chain(tape_->chains[at(step.index)]);
        break;
      case StepKind::node:
        run_node(step);
        break;
      case StepKind::loop:
        run_loop(tape_->loops[at(step.index)], node(step.id).in[0]);
        break;
    }
  }
}

// `first` is the count, or the condition, which is 0 or 1.
void Frame::run_loop(const Loop& loop, Id first) {
  for (const Carried& carried : loop.carried) {
    const Node& argument = node(carried.argument);
    copy(slot(carried.argument), refs_[carried.initial], argument.shape, host_type(argument.type));
  }
  auto& counter = *reinterpret_cast<std::int32_t*>(refs_[loop.counter].data);
  std::int64_t end = index(first);
  for (std::int64_t i = 0; i < end; ++i) {
    counter = static_cast<std::int32_t>(i);
    run(loop.body);
    if (loop.again != no_id && index(loop.again) != 0) ++end;
    if (launch_->debug && loop.again != no_id && end > 1 << 20)
      fail(node(loop.again), "a while_ has not ended after 1048576 iterations");
    for (const Carried& carried : loop.carried)
      if (carried.through_temporary) {
        const Node& argument = node(carried.argument);
        copy(arena_ + carried.temporary, refs_[carried.yield], argument.shape, host_type(argument.type));
      }
    for (const Carried& carried : loop.carried) {
      if (carried.in_place) continue;
      const Node& argument = node(carried.argument);
      Ref from = refs_[carried.yield];
      if (carried.through_temporary)
        from = {arena_ + carried.temporary, dense_strides(argument.shape), ElementType::f32};
      copy(slot(carried.argument), from, argument.shape, host_type(argument.type));
    }
  }
}

// --- fused elementwise loops

void Frame::run_chain(const Chain& chain) {
  const std::size_t inputs = chain.inputs.size();
  for (std::size_t r = inputs; r < at(chain.registers); ++r) registers_[r] = strips_ + r * strip_bytes;
  if (chain.single) {
    for (std::size_t i = 0; i < inputs; ++i) registers_[i] = refs_[chain.inputs[i].value].data;
    for (const auto& output : chain.outputs) registers_[at(output.reg)] = slot(output.value);
    for (const Chain::Step& step : chain.steps) run_step(step, 1);
    return;
  }
  StripPlan& plan = plans_[at(chain.plan)];
  plan.update(chain.shape, inputs, [&](std::size_t i) {
    const Chain::Input& input = chain.inputs[i];
    return std::pair<const Strides&, const Shape&>(refs_[input.value].stride, input.shape);
  });
  const auto bring = [&](const StripWalk& walk, std::size_t i) {
    const Chain::Input& input = chain.inputs[i];
    registers_[i] = const_cast<char*>(
        walk.elements(plan.sources[i], refs_[input.value].data, input.type, strips_ + i * strip_bytes));
  };
  StripWalk walk(plan);
  for (std::size_t i = 0; i < inputs; ++i) bring(walk, i);
  for (;;) {
    for (const auto& output : chain.outputs)
      registers_[at(output.reg)] = slot(output.value) + walk.first() * host_bytes(output.type);
    for (const Chain::Step& step : chain.steps) run_step(step, walk.count());
    walk.next();
    if (walk.done()) return;
    for (std::size_t i = 0; i < inputs; ++i)
      if (plan.sources[i].outside) bring(walk, i);
  }
}

// --- memory

void Frame::tile_start(std::span<const Id> indices, const Shape& shape, int first_axis, Strides& start) const {
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const int axis = static_cast<int>(i) + first_axis;
    start[at(axis)] = static_cast<std::int64_t>(index(indices[i])) * shape[axis];
  }
}

void Frame::load(Id id) {
  const Node& load = node(id);
  const ViewRef& view = views_[load.in[0]];
  const Shape& shape = load.shape;
  Strides start{};
  tile_start(std::span(load.in).subspan(1), shape, 0, start);
  bool whole = true;
  for (int axis = 0; axis < shape.rank(); ++axis)
    whole = whole && start[at(axis)] >= view.lo[at(axis)] && start[at(axis)] + shape[axis] <= view.hi[at(axis)];
  // Data that is complete, already in host form and unchanged during the launch need not be copied.
  const bool raw = tape_->raw[id];
  if (whole && !load.ordered && (raw || same_form(load.type))) {
    std::int64_t offset = 0;
    for (int axis = 0; axis < shape.rank(); ++axis) offset += start[at(axis)] * view.stride[at(axis)];
    return set(id, view.data + offset * info(load.type).bytes, view.stride, raw ? load.type : ElementType::f32);
  }
  const Cell padding = load.number();
  char* out = slot(id);
  const Strides& dense = tape_->refs[id].stride;
  set(id, out, dense);
  const int bytes = host_bytes(host_type(load.type)), stored = info(load.type).bytes;
  const TileRows rows = tile_rows(view, shape, start, stored, 0, view.data, dense);
  each_row(rows, stored, [&](const char* memory, std::int64_t offset, Part part) {
    read_row(load.type, rows.row(), out + offset * bytes, memory, part, padding);
  });
}

void Frame::gather(Id id, int plan) {
  const Node& gather = node(id);
  const Shape& shape = gather.shape;
  if (shape.rank() == 1) return gather_elements(id, plan);  // each row is one element
  const ViewRef& view = views_[gather.in[0]];
  const Cell padding = gather.number();
  const int bytes = host_bytes(host_type(gather.type)), stored = info(gather.type).bytes;
  Strides start{};
  tile_start(std::span(gather.in).subspan(2), shape, 1, start);
  const Ref& rows = ref(gather.in[1]);
  char* out = slot(id);
  const std::int64_t size = shape.size() / shape[0];
  TileRows inner = tile_rows(view, shape, start, stored, 1, view.data, dense_strides(shape));
  char* const first = inner.memory;
  for (int i = 0; i < shape[0]; ++i, out += size * bytes) {
    const std::int64_t source = reinterpret_cast<const std::int32_t*>(rows.data)[i * rows.stride[0]];
    inner.memory = source >= view.lo[0] && source < view.hi[0] ? first + source * view.stride[0] * stored : nullptr;
    each_row(inner, stored, [&](const char* memory, std::int64_t offset, Part part) {
      read_row(gather.type, inner.row(), out + offset * bytes, memory, part, padding);
    });
  }
}

// The strips of an access at tiles of indices.
ElementWalk Frame::elements(const Node& node, int plan, std::span<const Ref* const> operands) {
  const auto view = at(view_operand(node.op));
  const Ref* indices[max_rank];
  const std::size_t axes = node.in.size() - view - 1;
  for (std::size_t axis = 0; axis < axes; ++axis) indices[axis] = &ref(node.in[view + 1 + axis]);
  return ElementWalk(plans_[at(plan)], views_[node.in[view]], info(node.type).bytes, node.shape, {indices, axes},
                     operands, host_type(node.type));
}

void Frame::gather_elements(Id id, int plan) {
  const Node& gather = node(id);
  const Cell padding = gather.number();
  const int bytes = host_bytes(host_type(gather.type));
  ElementWalk walk = elements(gather, plan, {});
  for (ElementStrip strip; walk.next(strip);) from_places(gather.type, slot(id) + strip.first * bytes, strip, padding);
}

void Frame::fail(const Node& node, std::string_view what) const {
  throw Error("kernel '" + tape_->graph.name + "', " + node.location.file + ':' + std::to_string(node.location.line) +
              ": " + std::string(what) + " (block " + std::to_string(block_) + ')');
}

void Frame::print(const Node& node) const {
  std::vector<PrintedTile> values;
  for (Id in : node.in) {
    const Node& of = this->node(in);
    PrintedTile& tile =
        values.emplace_back(of.type, of.shape, std::vector<Cell>(static_cast<std::size_t>(of.shape.size())));
    const HostType type = host_type(of.type);
    std::vector<char> dense(tile.elements.size() * at(host_bytes(type)));
    copy(dense.data(), ref(in), of.shape, type);
    for (std::size_t i = 0; i < tile.elements.size(); ++i)
      std::memcpy(static_cast<void*>(&tile.elements[i]), &dense[i * at(host_bytes(type))], at(host_bytes(type)));
  }
  const std::string line = tape_->reports.printed(node.text(), values);
  std::fwrite(line.data(), 1, line.size(), stdout);
}

// Checks stored values, in a debug build of a kernel.
void Frame::look_for_nan(const Node& node, const Ref& tile, std::int64_t offset, std::int64_t step,
                         std::int64_t count) const {
  if (!launch_->debug) return;
  with_host(host_type(node.type), [&]<class T>(T) {
    const T* const elements = reinterpret_cast<const T*>(tile.data);
    for (std::int64_t i = 0; i < count; ++i)
      if (const T x = elements[offset + i * step]; x != x) fail(node, "NaN is stored");
  });
}

void Frame::look_for_nan(const Node& node, const ElementStrip& strip) const {
  if (!launch_->debug) return;
  with_host(host_type(node.type), [&]<class T>(T) {
    const T* const elements = reinterpret_cast<const T*>(strip.operand[0]);
    for (int i = 0; i < strip.count; ++i)
      if (strip.has(i) && elements[i] != elements[i]) fail(node, "NaN is stored");
  });
}

void Frame::store(Id id) {
  const Node& store = node(id);
  const ViewRef& view = views_[store.in[1]];
  const Ref& tile = ref(store.in[0]);
  const int bytes = host_bytes(host_type(store.type));
  Strides start{};
  tile_start(std::span(store.in).subspan(2), store.shape, 0, start);
  const int stored = info(store.type).bytes;
  const TileRows rows = tile_rows(view, store.shape, start, stored, 0, view.data, tile.stride);
  each_written_row(rows, stored, [&](char* memory, std::int64_t offset, std::int64_t count) {
    const auto& [extent, part, stride, step] = rows.row();
    look_for_nan(store, tile, offset, step, count);
    to_memory(store.type, memory, stride, tile.data + offset * bytes, step, count);
  });
}

void Frame::scatter(Id id, int plan) {
  const Node& scatter = node(id);
  if (scatter.shape.rank() == 1) return scatter_elements(id, plan);  // each row is one element
  const ViewRef& view = views_[scatter.in[1]];
  const Ref &tile = ref(scatter.in[0]), &rows = ref(scatter.in[2]);
  const int bytes = host_bytes(host_type(scatter.type)), stored = info(scatter.type).bytes;
  Strides start{};
  tile_start(std::span(scatter.in).subspan(3), scatter.shape, 1, start);
  TileRows inner = tile_rows(view, scatter.shape, start, stored, 1, view.data, tile.stride);
  char* const first = inner.memory;
  for (int i = 0; i < scatter.shape[0]; ++i) {
    const std::int64_t row = reinterpret_cast<const std::int32_t*>(rows.data)[i * rows.stride[0]];
    if (row < view.lo[0] || row >= view.hi[0]) continue;
    inner.memory = first + row * view.stride[0] * stored;
    const std::int64_t begin = i * (scatter.shape[0] == 1 ? 0 : tile.stride[0]);
    each_written_row(inner, stored, [&](char* memory, std::int64_t offset, std::int64_t count) {
      const auto& [extent, part, stride, step] = inner.row();
      look_for_nan(scatter, tile, begin + offset, step, count);
      to_memory(scatter.type, memory, stride, tile.data + (begin + offset) * bytes, step, count);
    });
  }
}

void Frame::scatter_elements(Id id, int plan) {
  const Node& scatter = node(id);
  const Ref* const tile = &ref(scatter.in[0]);
  ElementWalk walk = elements(scatter, plan, {&tile, 1});
  for (ElementStrip strip; walk.next(strip);) {
    look_for_nan(scatter, strip);
    to_places(scatter.type, strip, strip.operand[0]);
  }
}

void Frame::atomic(Id id, int plan) {
  const Node& atomic = node(id);
  const Ref* const operands[] = {&ref(atomic.in[0]), &ref(atomic.in[at(view_operand(atomic.op) - 1)])};
  const std::memory_order order = order_of(atomic.order());
  const Op op = at_position(atomic.op);
  const bool keeps_nan = op != Op::atomic_max && op != Op::atomic_min;
  const auto each_strip = [&](ElementWalk walk) {
    for (ElementStrip strip; walk.next(strip);) {
      if (keeps_nan) look_for_nan(atomic, strip);
      with_host(host_type(atomic.type), [&]<class T>(T) {
        T* const was = reinterpret_cast<T*>(slot(id)) + strip.first;
        const T* const values = reinterpret_cast<const T*>(strip.operand[0]);
        const T* const expected = reinterpret_cast<const T*>(strip.operand[1]);
        for (int i = 0; i < strip.count; ++i)
          was[i] = strip.has(i)
                       ? change(op, *reinterpret_cast<T*>(strip.base + strip.place[i]), values[i], expected[i], order)
                       : T();
      });
    }
  };
  if (by_elements(atomic.op)) return each_strip(elements(atomic, plan, operands));
  // An atomic at a tile position: access a view that begins there, with each element's position as its index.
  const auto view_at = at(view_operand(atomic.op));
  const Shape& shape = atomic.shape;
  ViewRef view = views_[atomic.in[view_at]];
  Strides start{};
  tile_start(std::span(atomic.in).subspan(view_at + 1), shape, 0, start);
  Ref positions[max_rank];
  const Ref* indices[max_rank];
  for (std::size_t axis = 0; axis < at(shape.rank()); ++axis) {
    const int extent = shape[static_cast<int>(axis)];
    slice(view, axis, start[axis], extent, 1, info(atomic.type).bytes);
    while (positions_.size() < static_cast<std::size_t>(extent))
      positions_.push_back(static_cast<std::int32_t>(positions_.size()));
  }
  for (std::size_t axis = 0; axis < at(shape.rank()); ++axis) {
    positions[axis].data = reinterpret_cast<char*>(positions_.data());
    positions[axis].stride[axis] = 1;
    indices[axis] = &positions[axis];
  }
  each_strip(ElementWalk(plans_[at(plan)], view, info(atomic.type).bytes, shape, {indices, at(shape.rank())}, operands,
                         host_type(atomic.type)));
}

// --- shapes and matmuls

void Frame::reshape(Id id) {
  const Node& reshape = node(id);
  const Ref& from = ref(reshape.in[0]);
  const Shape& shape = node(reshape.in[0]).shape;
  if (tape_->slot[id] >= 0 && tape_->slot[id] != tape_->slot[value(reshape.in[0])]) {
    set(id, slot(id), tape_->refs[id].stride);
    return copy(slot(id), from, shape, host_type(reshape.type));
  }
  set(id, from.data, reshaped(from.stride, shape, reshape.shape), from.narrow);
}

void Frame::concat(Id id) {
  const Node& concat = node(id);
  const int bytes = host_bytes(host_type(concat.type)), axis = concat.axis();
  std::int64_t inner = 1;
  for (int i = axis + 1; i < concat.shape.rank(); ++i) inner *= concat.shape[i];
  const std::int64_t row = inner * concat.shape[axis];
  std::int64_t done = 0;
  for (Id in : concat.in) {
    const Shape& shape = node(in).shape;
    Shape one = shape;  // the part of the operand for one outer position
    Ref from = ref(in);
    for (int i = 0; i < axis; ++i) one[i] = 1;
    char* out = slot(id) + done * bytes;
    for_each_position(extents_of(shape), axis, [&](const Strides& position) {
      Ref part = from;
      part.data += offset_of(position, from.stride, axis) * bytes;
      copy(out, part, one, host_type(concat.type));
      out += row * bytes;
    });
    done += inner * shape[axis];
  }
}

void Frame::extract(Id id) {
  const Node& extract = node(id);
  const Shape &from = node(extract.in[0]).shape, &shape = extract.shape;
  const HostType type = host_type(extract.type);
  const int bytes = host_bytes(type);
  const Ref& tile = ref(extract.in[0]);
  // For each axis: the range of result elements that exist in the tile, and the address of the first one.
  Ref part = tile;
  Strides begin{}, end{};
  bool whole = true;
  for (int axis = 0; axis < from.rank(); ++axis) {
    const std::int64_t first = index(extract.in[at(axis) + 1]), step = extract.steps()[at(axis)];
    const auto is_there = [&](std::int64_t i) { return first + i * step >= 0 && first + i * step < from[axis]; };
    std::int64_t i = 0;
    while (i < shape[axis] && !is_there(i)) ++i;
    begin[at(axis)] = i;
    while (i < shape[axis] && is_there(i)) ++i;
    end[at(axis)] = i;
    whole = whole && end[at(axis)] - begin[at(axis)] == shape[axis];
    const std::int64_t stride = from[axis] == 1 ? 0 : tile.stride[at(axis)];
    if (end[at(axis)] > begin[at(axis)]) part.data += (first + begin[at(axis)] * step) * stride * bytes;
    part.stride[at(axis)] = step * stride;
  }
  if (tape_->slot[id] < 0 || tape_->slot[id] == tape_->slot[value(extract.in[0])]) {
    return set(id, part.data, part.stride);  // a view of the operand
  }
  set(id, slot(id), tape_->refs[id].stride);
  if (whole) return copy(slot(id), part, shape, type);
  std::memset(slot(id), 0, static_cast<std::size_t>(shape.size() * bytes));
  char* out = slot(id);
  for_each_position(extents_of(shape), shape.rank(), [&](const Strides& position) {
    bool inside = true;
    std::int64_t offset = 0;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const std::int64_t i = position[at(axis)];
      inside = inside && i >= begin[at(axis)] && i < end[at(axis)];
      offset += (i - begin[at(axis)]) * part.stride[at(axis)];
    }
    if (inside) std::memcpy(out, part.data + offset * bytes, static_cast<std::size_t>(bytes));
    out += bytes;
  });
}

void Frame::mma(Id id) {
  const Node& mma = node(id);
  const Ref &a = ref(mma.in[0]), &b = ref(mma.in[1]), &c = ref(mma.in[2]);
  char* out = slot(id);
  if (c.data != out) copy(out, c, mma.shape, host_type(mma.type));
  const Shape& shape = mma.shape;
  const int batch = shape.rank() == 3 ? shape[0] : 1, m = shape[shape.rank() - 2], n = shape[shape.rank() - 1];
  const int k = node(mma.in[0]).shape[shape.rank() - 1];
  const auto matrix = [&](Id operand, const Ref& r, int i) {
    const bool raw = r.narrow != ElementType::f32;
    const std::int64_t bytes = raw ? info(r.narrow).bytes : host_bytes(host_type(node(operand).type));
    const std::size_t row = at(shape.rank() - 2);
    const std::int64_t offset = shape.rank() == 3 ? i * r.stride[0] * bytes : 0;
    return Matrix{r.data + offset, r.narrow, r.stride[row], r.stride[row + 1]};
  };
  const std::int64_t bytes = std::int64_t(m) * n * host_bytes(host_type(mma.type));
  for (int i = 0; i < batch; ++i)
    multiply_add(mma.type, matrix(mma.in[0], a, i), matrix(mma.in[1], b, i), out + i * bytes, m, n, k);
}

void Frame::run_node(const Step& step) {
  const Id id = step.id;
  const Node& node = this->node(id);
  if (is_atomic(node.op)) return atomic(id, step.index);
  switch (node.op) {
    case Op::member:
      views_[id] = member(tape_->graph, node, launch_->arguments, index(node.in[0]));
      return;
    case Op::extent:
      *reinterpret_cast<std::int32_t*>(slot(id)) = static_cast<std::int32_t>(views_[node.in[0]].hi[at(node.axis())]);
      return;
    case Op::slice:
      views_[id] = views_[node.in[0]];
      return slice(views_[id], at(node.axis()), index(node.in[1]), index(node.in[2]), node.step(),
                   info(node.type).bytes);
    case Op::permute_view:
      views_[id] = permuted(views_[node.in[0]], node.permutation());
      return;
    case Op::unfold_view:
      views_[id] = unfolded(views_[node.in[0]], at(node.axis()), node.windows());
      return;
    case Op::flatten_view:
      views_[id] = flattened(views_[node.in[0]], at(node.axis()));
      return;
    case Op::load:
      return load(id);
    case Op::gather:
      return gather(id, step.index);
    case Op::gather_elements:
      return gather_elements(id, step.index);
    case Op::store:
      return store(id);
    case Op::scatter:
      return scatter(id, step.index);
    case Op::scatter_elements:
      return scatter_elements(id, step.index);
    case Op::check:
      if (index(node.in[0]) == 0) throw Error(tape_->reports.failed(node.text(), block_));
      return;
    case Op::print:
      return print(node);
    case Op::reshape:
      return reshape(id);
    case Op::permute: {
      const Ref from = ref(node.in[0]);
      refs_[id].data = from.data;
      refs_[id].narrow = from.narrow;
      const auto axes = node.permutation();
      for (std::size_t i = 0; i < axes.size(); ++i)
        refs_[id].stride[i] = from.stride[static_cast<std::size_t>(axes[i])];
      return;
    }
    case Op::broadcast:
      return set(id, ref(node.in[0]).data, stretched(ref(node.in[0]).stride, this->node(node.in[0]).shape, node.shape));
    case Op::concat:
      return concat(id);
    case Op::extract:
      return extract(id);
    case Op::take_along_axis:
      return take_along_axis(host_type(node.type), lines(node.in[0], node), lines(node.in[1], node), slot(id));
    case Op::mma:
      return mma(id);
    default:
      break;
  }
  const Node& operand = this->node(node.in[0]);
  const Lines lines = this->lines(node.in[0], node);
  if (is_reduction(node.op)) return reduce(node.op, operand.type, lines, slot(id));
  if (node.op == Op::argmax) return argmax(operand.type, lines, reinterpret_cast<std::int32_t*>(slot(id)));
  if (is_scan(node.op)) return scan(node.op, operand.type, lines, node.scan_options(), slot(id));
  const int extent = node.shape[node.axis()];
  std::int32_t* const whole = reinterpret_cast<std::int32_t*>(slot(id));
  if (is_sort(node.op)) {
    const auto slot_of = [&](Op op) {
      return node.op == op ? slot(id) : step.also != no_id ? slot(step.also) : nullptr;
    };
    return sort(operand.type, lines, node.sort_options(), extent, slot_of(Op::sort),
                reinterpret_cast<std::int32_t*>(slot_of(Op::argsort)));
  }
  if (node.op == Op::histogram) return histogram(lines, extent, whole);
  if (node.op == Op::inverse_permutation) return inverse_permutation(lines, extent, whole);
  throw InternalError("the CPU executor does not know " + std::string(name(node.op)));
}

void Frame::run_blocks(const Launch& launch, std::int64_t begin, std::int64_t end) {
  struct Running {
    const Tape*& what;
    ~Running() { what = nullptr; }
  } const running{running_ = &launch.tape};
  bind(launch);
  for (std::int64_t block = begin; block < end; ++block) run_block(block);
}

std::atomic<std::uint64_t> next_serial{1};

// With less work than this, one core finishes a launch before the others wake up.
constexpr double worth_sharing = 20000;

}  // namespace

Program::Program(Graph graph, bool debug) : tape_(std::make_unique<const Tape>(std::move(graph))), debug_(debug) {}
Program::~Program() = default;
Program::Program(Program&&) noexcept = default;

void Program::run(std::span<const Argument> arguments, std::span<const std::int64_t> grid) const {
  if (std::any_of(grid.begin(), grid.end(), [](std::int64_t extent) { return extent <= 0; })) return;
  if (const Tape* const running = of_this_thread<Frame>().running())
    throw launch_refused(tape_->graph.name, "the function of a cuda_op, which computes an element of kernel '" +
                                                running->graph.name + "', " + running->graph.location.file + ':' +
                                                std::to_string(running->graph.location.line) +
                                                ", cannot launch, copy or fill; do so before the launch");
  std::int64_t blocks = 1;
  for (std::int64_t extent : grid) blocks *= extent;
  constexpr std::size_t few = 128;
  Cell fixed[few];
  std::vector<Cell> many;
  std::span<Cell> uniforms(fixed, std::min(few, tape_->uniform_program.size()));
  if (tape_->uniform_program.size() > few) {
    many.resize(tape_->uniform_program.size());
    uniforms = many;
  }
  tape_->uniform_program.run(arguments, uniforms);
  Launch launch{*tape_, arguments, grid, uniforms, next_serial++, debug_};
  const auto body = [](void* context, std::int64_t begin, std::int64_t end) {
    const Launch& launch = *static_cast<const Launch*>(context);
    Frame& frame = of_this_thread<Frame>();
    // A oneTBB thread that waits for tasks inside an author's function may be given further grid tiles meanwhile.
    frame.running() ? Frame().run_blocks(launch, begin, end) : frame.run_blocks(launch, begin, end);
  };
  // Grid tiles that print run one after the other.
  if (blocks == 1 || tape_->reports.prints() || static_cast<double>(blocks) * tape_->work_per_block < worth_sharing)
    return body(&launch, 0, blocks);
  parallel_for(blocks, body, &launch);
}

}  // namespace tessera::internal::cpu
