#include "opcheck/sketch.hpp"

#include <algorithm>

#include "graph/evaluate.hpp"
#include "graph/rewrite.hpp"

namespace tessera::internal::opcheck {
namespace {

std::vector<Parameter> parameters(const std::vector<Field>& fields) {
  std::vector<Parameter> parameters;
  for (const Field& field : fields)
    parameters.push_back({field.access, field.type, static_cast<int>(field.extents.size()), false, field.list});
  return parameters;
}

/// The next number of the type.
Cell cell(ElementType type, double value) {
  if (info(type).kind == ElementKind::real) return evaluate_cast(ElementType::f64, type, cell_of(value));
  if (type == ElementType::pred) return cell_of(std::int32_t{value != 0});
  return with_host(host_type(type), [&]<class T>(T) { return cell_of(static_cast<T>(value)); });
}

}  // namespace

ElementType stored_as(ElementType type) {
  if (info(type).stored) return type;
  return info(type).kind == ElementKind::real ? ElementType::f32 : ElementType::u8;
}

Field input(ElementType type, std::vector<std::int64_t> extents, Layout layout, Values values) {
  if (type == ElementType::pred) values = {.low = 0, .high = 1};
  if (info(type).kind == ElementKind::integer && lowest(type) == 0)
    values.low = std::max(values.low, 0.0), values.high = std::max(values.high, 1.0);
  return {Access::in, stored_as(type), std::move(extents), layout, values};
}

Field output(ElementType type, std::vector<std::int64_t> extents, Layout layout) {
  return {Access::out, stored_as(type), std::move(extents), layout};
}

Field update(ElementType type, std::vector<std::int64_t> extents, Layout layout, Values values) {
  Field field = input(type, std::move(extents), layout, values);
  field.access = Access::in_out;
  return field;
}

Field given(ElementType type, double value) { return given(type, Values{.low = value, .high = value}); }

Field given(ElementType type, Values values) { return {Access::scalar, type, {}, Layout::dense, values}; }

std::vector<Field> list(std::vector<Field> tensors) {
  const auto count = static_cast<int>(tensors.size());
  tensors.push_back(given(ElementType::i32, count));
  for (int i = 0; i <= count; ++i) tensors[static_cast<std::size_t>(i)].list = count + 1 - i;
  return tensors;
}

std::vector<Id> access(std::vector<Id> first, std::span<const Id> at) {
  first.insert(first.end(), at.begin(), at.end());
  return first;
}

Sketch::Sketch(std::vector<Field> fields, Location location)
    : fields_(std::move(fields)), location_(location), builder_("opcheck", parameters(fields_), location) {}

Id Sketch::apply(Op op, ElementType type, std::vector<Id> in, std::vector<std::int64_t> attr, const Shape& shape) {
  return builder_.apply(op, type, in, attr, location_, shape);
}

Id Sketch::apply(Op op, std::vector<Id> in, std::vector<std::int64_t> attr, const Shape& shape) {
  const ElementType type = builder_.graph()[in.front()].type;
  return apply(op, type, std::move(in), std::move(attr), shape);
}

Id Sketch::cast(Id x, ElementType type) { return builder_.graph()[x].type == type ? x : apply(Op::cast, type, {x}); }

Id Sketch::constant(ElementType type, double value, const Shape& shape) {
  return builder_.constant(type, cell(type, value), shape, location_);
}

Id Sketch::scalar(int parameter) {
  return apply(Op::scalar, fields_[static_cast<std::size_t>(parameter)].type, {}, {parameter});
}

Id Sketch::tensor(int parameter) {
  const Field& field = fields_[static_cast<std::size_t>(parameter)];
  return apply(Op::tensor, field.type, {}, {parameter}, Shape::of_rank(static_cast<int>(field.extents.size())));
}

std::vector<Id> Sketch::grid(const std::vector<std::int64_t>& extents) {
  std::vector<Id> ids, at;
  for (const std::int64_t extent : extents) ids.push_back(index(extent));
  builder_.set_grid(ids, location_);
  for (std::size_t axis = 0; axis < extents.size(); ++axis)
    at.push_back(apply(Op::block, ElementType::i32, {}, {static_cast<std::int64_t>(axis)}));
  return at;
}

std::vector<Id> Sketch::tiles(int parameter, const Shape& tile) {
  std::vector<std::int64_t> counts = fields_[static_cast<std::size_t>(parameter)].extents;
  for (int axis = 0; axis < tile.rank(); ++axis) {
    std::int64_t& count = counts[static_cast<std::size_t>(axis)];
    count = (count + tile[axis] - 1) / tile[axis];
  }
  return grid(counts);
}

Id Sketch::load(Id view, const std::vector<Id>& at, const Shape& tile, double padding) {
  const ElementType type = builder_.graph()[view].type;
  return apply(Op::load, access({view}, at), {encode(type, cell(type, padding))}, tile);
}

Id Sketch::gather_elements(std::vector<Id> in, double padding) {
  const ElementType type = builder_.graph()[in[0]].type;
  return apply(Op::gather_elements, type, std::move(in), {encode(type, cell(type, padding))});
}

Id Sketch::gather(Id view, Id rows, std::span<const Id> at, const Shape& tile, double padding) {
  const ElementType type = builder_.graph()[view].type;
  return apply(Op::gather, access({view, rows}, at), {encode(type, cell(type, padding))}, tile);
}

void Sketch::store(Id view, const std::vector<Id>& at, Id tile) { apply(Op::store, access({tile, view}, at)); }

Id Sketch::load(int parameter, ElementType type, const std::vector<Id>& at, const Shape& tile) {
  return cast(load(tensor(parameter), at, tile), type);
}

void Sketch::store(int parameter, const std::vector<Id>& at, Id tile) {
  store(tensor(parameter), at, cast(tile, fields_[static_cast<std::size_t>(parameter)].type));
}

std::vector<Id> Sketch::region(Op owner, Id first, const std::vector<Id>& initial, const Step& step) {
  builder_.begin_region(owner, location_);
  const Id counter = builder_.graph().regions[builder_.open_region()].arguments[0];
  std::vector<Id> carried, results;
  for (const Id value : initial) {
    const Node& node = builder_.graph()[value];
    carried.push_back(builder_.argument(node.type, Shape(node.shape), location_));
  }
  const std::vector<Id> yields = step(counter, carried);
  const Id made = builder_.end_region(first, initial, yields, location_);
  for (std::size_t i = 0; i < initial.size(); ++i)
    results.push_back(builder_.result(made, static_cast<int>(i), location_));
  return results;
}

std::vector<Id> Sketch::loop(Id count, const std::vector<Id>& initial, const Step& step) {
  return region(Op::loop, count, initial, step);
}
std::vector<Id> Sketch::branch(Id condition, const std::vector<Id>& initial, const Round& step) {
  return region(Op::branch, condition, initial, [&](Id, const std::vector<Id>& carried) { return step(carried); });
}
std::vector<Id> Sketch::repeat(Id condition, const std::vector<Id>& initial, const Round& step) {
  return region(Op::repeat, condition, initial, [&](Id, const std::vector<Id>& carried) { return step(carried); });
}

Id Sketch::loop(Id count, Id initial, const std::function<Id(Id counter, Id carried)>& step) {
  return loop(count, std::vector{initial},
              [&](Id counter, const std::vector<Id>& carried) { return std::vector{step(counter, carried[0])}; })[0];
}

void Sketch::branch(Id condition, const std::function<void()>& body) {
  branch(condition, {}, [&](const std::vector<Id>&) {
    body();
    return std::vector<Id>();
  });
}

Case Sketch::finish(Op op, ElementType type, std::string name) {
  Case made{.op = op, .type = type, .name = std::move(name), .fields = fields_, .graph = canonical(builder_.graph())};
  made.graph.name = "opcheck_" + std::string(tessera::internal::name(op));
  verify(made.graph, "opcheck");
  return made;
}

}  // namespace tessera::internal::opcheck
