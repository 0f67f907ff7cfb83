#include "tessera/dsl/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <limits>
#include <utility>

#include "graph/evaluate.hpp"
#include "graph/infer.hpp"
#include "graph/reports.hpp"
#include "graph/rewrite.hpp"

namespace tessera::internal {
namespace {

thread_local Trace* current_trace = nullptr;
std::atomic<std::uint32_t> next_serial{1};

}  // namespace

Trace::Trace(std::string name, std::vector<Parameter> parameters, Location location)
    : builder_(std::move(name), std::move(parameters), location),
      serial_(next_serial++),
      uncaught_(std::uncaught_exceptions()) {
  if (current_trace)
    builder_.fail(location,
                  fmt::format("a kernel is traced while kernel '{}' is being traced; make it before, and outside of, "
                              "the other",
                              current_trace->builder_.graph().name));
  const std::string& kernel = builder_.graph().name;
  const auto letter = [](char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (kernel.empty() || !letter(kernel[0]) ||
      !std::all_of(kernel.begin(), kernel.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); }))
    throw Error(fmt::format("{}:{}: a kernel's name must be a C++ identifier of letters, digits and _", location.file,
                            location.line));
  current_trace = this;
}

Trace::~Trace() {
  if (current_trace == this) current_trace = nullptr;
}

Trace* Trace::current_or_null() { return current_trace; }

Trace& Trace::current(Location location) {
  if (!current_trace)
    throw Error(
        fmt::format("{}:{}: a tile is used outside of a kernel; tiles exist only while kernel(...) runs its function",
                    location.file, location.line));
  return *current_trace;
}

void Trace::refuse_launch(const std::string& kernel) {
  if (current_trace)
    throw launch_refused(
        kernel, fmt::format("kernel '{}' is being traced, and launches in the function given to kernel(...) would not "
                            "be part of it; launch one kernel after the other",
                            current_trace->builder_.graph().name));
}

Graph Trace::finish() {
  // Report a region that is still open first; a Var that is destroyed later then counts as destroyed inside of it.
  if (builder_.depth() > 1)
    builder_.fail(builder_.graph().location,
                  "an exception left a loop or an if_ and was caught inside the kernel; let it leave the kernel");
  if (!broken_.empty()) throw Error(broken_);
  Graph graph = canonical(builder_.graph());
  verify(graph, "tracing");
  return graph;
}

Id Trace::use(Handle value, Location location) const {
  if (value.trace != serial_)
    builder_.fail(location, "a value of another kernel is used; a tile lives in the kernel that made it");
  builder_.check_visible(value.id, location);
  return value.id;
}

Handle Trace::apply(Op op, ElementType type, std::initializer_list<Handle> in, Location location) {
  return apply(op, type, in, {}, location);
}

Handle Trace::apply(Op op, ElementType type, std::initializer_list<Handle> in, std::initializer_list<std::int64_t> attr,
                    Location location, const Shape& shape) {
  Id ids[8];
  std::size_t count = 0;
  for (Handle value : in) ids[count++] = use(value, location);
  return handle(builder_.apply(op, type, {ids, count}, {attr.begin(), attr.size()}, location, shape));
}

Handle Trace::apply(Op op, ElementType type, const std::vector<Handle>& in, const std::vector<std::int64_t>& attr,
                    Location location, const Shape& shape) {
  std::vector<Id> ids;
  ids.reserve(in.size());
  for (Handle value : in) ids.push_back(use(value, location));
  return handle(builder_.apply(op, type, ids, attr, location, shape));
}

namespace {

// The smallest number above 0 of a floating-point type: the one whose bits are 1.
double smallest(ElementType type) {
  if (type == ElementType::f64) return std::numeric_limits<double>::denorm_min();
  if (info(type).computes || !info(type).stored) return std::numeric_limits<float>::denorm_min();
  const ElementType bits = info(type).bytes == 1 ? ElementType::u8 : ElementType::u16;
  return evaluate_bitcast(bits, type, cell_of(std::int32_t{1})).f32;
}

}  // namespace

std::int64_t Trace::literal_bits(ElementType type, Number value, Location location) {
  const auto misfit = [&](std::string_view why) {
    const std::string text = value.integral() && value.representable() ? fmt::format("{}", value.integer())
                                                                       : fmt::format("{}", static_cast<double>(value.real()));
    builder_.fail(location, fmt::format("the literal {} does not fit {}: {}", text, name(type), why));
  };
  const bool large = !value.representable();  // does not fit i64
  if (large && type != ElementType::u64) misfit("it is out of range");
  const ElementInfo target = info(type);
  Cell cell;
  if (target.kind == ElementKind::real) {
    // Rounded once: a long double to f64, or to odd on the way to a narrower type.
    const double real = type == ElementType::f64 ? static_cast<double>(value.real()) : detail::to_odd<double>(value.real());
    cell = evaluate_cast(ElementType::f64, type, cell_of(real));
    const ElementType held = type == ElementType::f64 ? type : ElementType::f32;
    const double kept = evaluate_cast(held, ElementType::f64, cell).f64;
    // fp8 types saturate: a number that is too large becomes the largest finite one.
    const Cell largest = evaluate_cast(ElementType::f64, type, cell_of(std::numeric_limits<double>::max()));
    const bool saturated = std::abs(real) > evaluate_cast(held, ElementType::f64, largest).f64;
    if ((std::isinf(kept) || saturated) && !std::isinf(value.real())) misfit("it is out of range");
    if (value.integral() && evaluate_cast(held, ElementType::i64, cell).i64 != value.integer())
      misfit("it would be rounded; write it as a floating literal if that is intended");
    if (kept == 0 && value.real() != 0)
      misfit(fmt::format("it would be 0, as its smallest number is {:.2g}; write 0 if that is intended",
                         smallest(type)));
  } else {
    if (!value.integral()) misfit("it is not an integer literal");
    const std::int64_t given = value.integer();
    if (!large && (given < lowest(type) || std::cmp_greater(given, highest(type))))
      misfit(fmt::format("it is not in [{}, {}]", lowest(type), highest(type)));
    cell = decode(type, given);
  }
  return encode(type, cell);
}

Handle Trace::literal(ElementType type, Number value, Location location, const Shape& shape) {
  const std::int64_t bits = literal_bits(type, value, location);
  return handle(builder_.apply(Op::constant, type, {}, {&bits, 1}, location, shape));
}

int Trace::axis(Axis axis, int rank, std::string_view what, std::string_view hint) const {
  const int number = axis.number;
  if (number < -rank || number >= rank)
    builder_.fail(axis.location, rank == 0 ? fmt::format("{}: axis {} does not exist, as rank 0 has no "
                                                         "axes{}",
                                                         what, number, hint)
                                           : fmt::format("{}: axis {} does not exist in rank {}; axes are {} to {}{}",
                                                         what, number, rank, -rank, rank - 1, hint));
  return number < 0 ? number + rank : number;
}

std::vector<Axis> Trace::axes(std::span<const int> named, int rank, std::string_view what, Location location) const {
  std::vector<Axis> axes;
  for (const int number : named) {
    const int normal = axis({number, location}, rank, what);
    if (std::ranges::any_of(axes, [&](Axis other) { return other.number == normal; }))
      builder_.fail(location, fmt::format("{}: axis {} is named twice; name each axis once", what, normal));
    axes.emplace_back(normal, location);
  }
  std::ranges::sort(axes, {}, &Axis::number);
  return axes;
}

Trace::VarSlot Trace::make_var(Handle value, Location location) {
  const Location declared{location.file, location.line, vars_of_line_[{location.file, location.line}]++};
  const Slot slot{use(value, location), builder_.open_region(), declared, open_.size()};
  if (free_slots_.empty()) {
    slots_.push_back(slot);
    return {slots_.size() - 1, serial_};
  }
  const std::size_t index = *free_slots_.begin();
  free_slots_.erase(free_slots_.begin());
  slots_[index] = slot;
  return {index, serial_};
}

void Trace::drop_var(VarSlot slot) {
  if (slot.trace != serial_) return;  // it outlived its kernel
  Slot& dropped = slots_[slot.index];
  if (dropped.region != builder_.open_region() && builder_.is_open(dropped.region) &&
      std::uncaught_exceptions() == uncaught_ && broken_.empty())
    broken_ = fmt::format(
        "kernel '{}': a Var that was made outside of a loop or an if_ is destroyed inside of it; make it inside, or "
        "keep it alive",
        builder_.graph().name);
  if (!broken_.empty()) return;
  dropped.value = no_id;
  free_slots_.insert(slot.index);
}

void Trace::assign_var(VarSlot slot, Handle value, Location location) {
  const Id id = use(value, location);
  const Graph& graph = builder_.graph();
  var(slot, location);
  Slot& target = slots_[slot.index];
  if (graph[id].shape != graph[target.value].shape)
    builder_.fail(location,
                  fmt::format("a Var of {} cannot take {}; a Var keeps its shape: broadcast or reshape the value",
                              type_text(graph[target.value]), type_text(graph[id])));
  target.value = id;
}

Id Trace::current_value(Slot& slot) {
  for (; slot.carriers < open_.size(); ++slot.carriers) {
    Open& open = open_[slot.carriers];
    const Node& initial = builder_.graph()[slot.value];
    const Id argument =
        builder_.argument(open.region, initial.type, Shape(initial.shape), open.location, slot.declared);
    open.carried.push_back({static_cast<std::size_t>(&slot - slots_.data()), argument, slot.value});
    slot.value = argument;
  }
  return slot.value;
}

Handle Trace::var(VarSlot slot, Location location) {
  if (slot.trace != serial_)
    builder_.fail(location, "a Var of another kernel is used; a Var lives in the kernel that made it");
  builder_.check_visible(slots_[slot.index].value, location);
  return handle(current_value(slots_[slot.index]));
}

Handle Trace::snapshot(VarSlot slot) {
  if (slot.trace != serial_) return {0, slot.trace};
  Slot& live = slots_[slot.index];
  const bool visible = builder_.is_open(builder_.graph()[live.value].region);
  return handle(visible ? current_value(live) : live.value);
}

RegionId Trace::begin_region(Op owner, Handle first, Location location) {
  const Id id = use(first, location);
  const RegionId region = builder_.begin_region(owner, location);
  open_.push_back({id, location, region, {}});
  return region;
}

Handle Trace::begin_loop(Handle count, Location location, int unroll) {
  const RegionId region = begin_region(Op::loop, count, location);
  builder_.set_unroll(unroll);
  return handle(builder_.graph().regions[region].arguments[0]);
}

void Trace::begin_branch(Handle condition, Location location) { begin_region(Op::branch, condition, location); }
void Trace::begin_repeat(Handle condition, Location location) { begin_region(Op::repeat, condition, location); }

// A value varies between iterations if it depends on a carried value that the body changes, or on an effect in the
// body.
bool Trace::may_change(Id value, const Open& open, const std::vector<Id>& yields) const {
  const Graph& graph = builder_.graph();
  std::set<Id> seen;
  std::vector<Id> ahead{value};
  while (!ahead.empty()) {
    const Id id = ahead.back();
    ahead.pop_back();
    const Node& node = graph[id];
    if (!seen.insert(id).second || (node.region != open.region && builder_.is_open(node.region))) continue;
    const auto carried = std::ranges::find(open.carried, id, &Carried::argument);
    if (carried != open.carried.end()) {
      if (yields[static_cast<std::size_t>(carried - open.carried.begin())] != id) return true;
    } else if (node.region != open.region || node.ordered || node.op == Op::result) {
      return true;
    }
    ahead.insert(ahead.end(), node.in.begin(), node.in.end());
  }
  return false;
}

void Trace::end_region(Handle again) {
  Open open = std::move(open_.back());
  open_.pop_back();
  // In the order of the Vars, independent of the order of use.
  std::sort(open.carried.begin(), open.carried.end(),
            [](const Carried& a, const Carried& b) { return a.slot < b.slot; });
  std::vector<Id> arguments, initial, yields;
  for (const Carried& carried : open.carried) {
    arguments.push_back(carried.argument);
    initial.push_back(carried.initial);
    yields.push_back(slots_[carried.slot].value);
  }
  builder_.order_carried(arguments);
  if (again.id != no_id) {
    yields.push_back(use(again, open.location));
    if (!may_change(yields.back(), open, yields))
      builder_.fail(
          open.location,
          "while_: no iteration changes the condition, as it depends on no Var that the body assigns and on no InOut; "
          "assign to one, or use if_");
  }
  const Id id = builder_.end_region(open.first, initial, yields, open.location);
  for (std::size_t k = 0; k < open.carried.size(); ++k) {
    Slot& slot = slots_[open.carried[k].slot];
    slot.value = yields[k] != arguments[k] ? builder_.result(id, static_cast<int>(k), open.location) : initial[k];
    slot.carriers = open_.size();
  }
}

void Trace::abandon_loop(Location location) {
  // While an exception propagates, its text is the one to show.
  if (std::uncaught_exceptions() > uncaught_) return;
  if (broken_.empty())
    broken_ = fmt::format(
        "kernel '{}', {}:{}: break or return leaves a traced loop, whose body is recorded once for all "
        "iterations; bound the loop by its range, or guard effects with if_",
        builder_.graph().name, location.file, location.line);
  end_region();
}

std::vector<Handle> Trace::blocks(const std::vector<Handle>& extents, Location location) {
  constexpr std::size_t most_axes = 8;
  if (extents.size() > most_axes)
    builder_.fail(location,
                  fmt::format("blocks(...) of {} extents; a grid has at most {} axes: merge several into one, and "
                              "divide its index in the kernel",
                              extents.size(), most_axes));
  std::vector<Id> ids;
  for (Handle extent : extents) ids.push_back(use(extent, location));
  builder_.set_grid(ids, location);
  std::vector<Handle> result;
  for (std::size_t i = 0; i < ids.size(); ++i)
    result.push_back(apply(Op::block, ElementType::i32, {}, {static_cast<std::int64_t>(i)}, location));
  return result;
}

void Trace::require(Handle condition, std::string text, Location location) {
  if (!builder_.graph()[use(condition, location)].uniform)
    builder_.fail(location, "require takes a condition on extents and scalars; this one depends on a tile");
  if (builder_.depth() > 1)
    builder_.fail(location, "require applies to the whole launch; call it outside of loops and if_");
  apply(Op::require, ElementType::pred, {condition}, {builder_.add_text(std::move(text))}, location);
}

void Trace::check(Handle condition, std::string text, Location location) {
  const Shape whole = shape(condition, location);
  for (int axis = 0; axis < whole.rank(); ++axis)
    if (whole[axis] > 1) condition = apply(Op::all, ElementType::pred, {condition}, {axis}, location);
  if (whole.rank() > 0) condition = apply(Op::reshape, ElementType::pred, {condition}, {}, location, Shape());
  apply(Op::check, ElementType::pred, {condition}, {builder_.add_text(std::move(text))}, location);
}

void Trace::print(std::string text, std::vector<Handle> values, Location location) {
  std::size_t places = 0;
  try {
    places = print_pieces(text).size() - 1;
  } catch (const Mismatch& mismatch) {
    builder_.fail(location, mismatch.what());
  }
  if (places != values.size())
    builder_.fail(location, fmt::format("print: the text has {} {{}}, and {} values are given; give one for "
                                        "each",
                                        places, values.size()));
  for (Handle& value : values) {  // storage types are printed as types that compute
    const ElementType type = builder_.graph()[use(value, location)].type;
    if (info(type).computes) continue;
    const ElementType as = info(type).kind == ElementKind::real ? ElementType::f32 : ElementType::i32;
    value = apply(Op::cast, as, {value}, {}, location);
  }
  apply(Op::print, ElementType::i32, values, {builder_.add_text(std::move(text))}, location);
}

std::vector<Handle> Trace::stretched(Op op, std::vector<Handle> tiles, Location location) {
  Shape common{};
  try {
    for (Handle tile : tiles) common = broadcast_shapes(common, builder_.graph()[use(tile, location)].shape, name(op));
  } catch (const Mismatch& mismatch) {
    fail(location, mismatch.what());
  }
  for (Handle& tile : tiles)
    if (shape(tile, location) != common)
      tile = apply(Op::broadcast, builder_.graph()[tile.id].type, {tile}, {}, location, common);
  return tiles;
}

void check_outs(const Graph& graph) {
  std::vector<bool> stored(graph.parameters.size());
  for (const Node& node : graph.nodes)
    if (is_write(node.op))
      stored[static_cast<std::size_t>(
          view_parameter(graph, node.in[static_cast<std::size_t>(view_operand(node.op))]))] = true;
  for (std::size_t i = 0; i < stored.size(); ++i)
    if (const Parameter& out = graph.parameters[i];
        out.access == Access::out && !stored[i] && (out.list == 0 || tensors_of_list(graph.parameters, i) > 0))
      throw Error(fmt::format(
          "kernel '{}', {}:{}: nothing is stored to parameter {}, an {}, which would keep its old contents; store to "
          "it, or remove it",
          graph.name, graph.location.file, graph.location.line, argument_number(graph.parameters, i),
          to_string(graph.parameters[i])));
}

}  // namespace tessera::internal
