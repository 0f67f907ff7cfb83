// Cases of the ops that ops.def describes in columns, and the functions that make the cases of the others.
#include "opcheck/axes.hpp"
#include "opcheck/setting.hpp"
#include "opcheck/sketch.hpp"
#include "opcheck/structural.hpp"

namespace tessera::internal::opcheck {
namespace {

/// An elementwise op of one, two or three operands.
struct Elementwise {
  Op op;
  ElementType type;
  double low, high;

  ElementType result() const { return result_type(op, type); }
  int operands() const { return static_cast<int>(info(op).in.count); }
  /// Many operands of a comparison should be equal.
  Values values() const { return {.low = low, .high = high, .whole = result() == ElementType::pred}; }
  Id apply(Sketch& sketch, const std::vector<Id>& in) const { return sketch.apply(op, result(), in); }

  Case on_tiles(const Setting& setting, bool edges = false) const {
    Values values = this->values();
    values.edges = edges;
    std::vector<Field> fields(static_cast<std::size_t>(operands()),
                              input(type, setting.extents, setting.layout, values));
    fields.push_back(output(result(), setting.extents, setting.layout));
    Sketch sketch(fields);
    const std::vector<Id> at = sketch.tiles(0, setting.tile);
    std::vector<Id> in;
    for (int i = 0; i < operands(); ++i) in.push_back(sketch.load(i, type, at, setting.tile));
    sketch.store(operands(), at, apply(sketch, in));
    return sketch.finish(op, type, setting.name() + (edges ? ", extreme numbers" : ""));
  }

  /// The operands' shapes are broadcast by NumPy's rule.
  Case stretched() const {
    const Shape shapes[] = {{4, 1, 8}, {3, 1}, {8}};
    std::vector<Field> fields;
    std::string name;
    for (const Shape& shape : std::span(shapes).first(static_cast<std::size_t>(operands()))) {
      fields.push_back(input(type, {shape.begin(), shape.end()}, Layout::dense, values()));
      name += (name.empty() ? "" : " with ") + to_string(shape);
    }
    fields.push_back(output(result(), {4, 3, 8}));
    Sketch sketch(fields);
    std::vector<Id> in;
    for (int i = 0; i < operands(); ++i) in.push_back(sketch.load(i, type, sketch.origin(shapes[i].rank()), shapes[i]));
    sketch.store(operands(), sketch.origin(3), apply(sketch, in));
    return sketch.finish(op, type, name);
  }

  /// On numbers given at launch: the host computes the result.
  Case on_scalars() const {
    std::vector<Field> fields(static_cast<std::size_t>(operands()), given(type, values()));
    fields.push_back(output(result(), {3}));
    Sketch sketch(fields);
    std::vector<Id> in;
    for (int i = 0; i < operands(); ++i) in.push_back(sketch.scalar(i));
    const Id y = apply(sketch, in);
    sketch.store(operands(), sketch.origin(1), sketch.apply(Op::broadcast, {y}, {}, Shape{3}));
    return sketch.finish(op, type, "scalars");
  }
};

std::vector<Case> elementwise(Op op, ElementType type, double low, double high, Purpose purpose) {
  if (!accepts(op, type)) return {};
  const Elementwise of{op, type, low, high};
  std::vector<Case> cases;
  for (const Setting& setting : settings(purpose)) cases.push_back(of.on_tiles(setting));
  if (purpose != Purpose::test) return cases;
  cases.push_back(of.on_tiles({{3, 40}, {3, 40}}, true));
  if (!is_unary(op)) cases.push_back(of.stretched());
  if (info(type).computes) cases.push_back(of.on_scalars());
  return cases;
}

}  // namespace

std::vector<Case> cases_of(Op op, ElementType type, Purpose purpose) {
  switch (op) {
#define UNARY(name, operands, result, host, real, integer, low, high, ...) \
  case Op::name:                                                           \
    return elementwise(op, type, low, high, purpose);
#define BINARY(name, operands, result, host, real, integer, low, high, ...) \
  case Op::name:                                                            \
    return elementwise(op, type, low, high, purpose);
#define TERNARY(name, operands, result, host, real, integer, low, high, ...) \
  case Op::name:                                                             \
    return elementwise(op, type, low, high, purpose);
#define REDUCTION(name, ...) \
  case Op::name:             \
    return accepts(op, type) ? along_axes(op, type, type, Axis::one, purpose) : std::vector<Case>();
#define SCAN(name, ...) \
  case Op::name:        \
    return accepts(op, type) ? along_axes(op, type, type, Axis::kept, purpose) : std::vector<Case>();
#define STRUCTURAL(name, ...) \
  case Op::name:              \
    return structural::name(type, purpose);
#include "tessera/graph/ops.def"
  }
  return {};
}

std::span<const Op> all_ops() {
  static constexpr Op ops[] = {
#define UNARY(name, ...) Op::name,
#define BINARY(name, ...) Op::name,
#define TERNARY(name, ...) Op::name,
#define REDUCTION(name, ...) Op::name,
#define SCAN(name, ...) Op::name,
#define STRUCTURAL(name, ...) Op::name,
#include "tessera/graph/ops.def"
  };
  return ops;
}

std::span<const ElementType> all_types() {
  static constexpr ElementType types[] = {
#define TYPE(name, ...) ElementType::name,
#include "tessera/graph/types.def"
  };
  return types;
}

double Case::bytes() const {
  double bytes = 0;
  for (const Field& field : fields) {
    double size = field.access == Access::scalar ? 0 : info(field.type).bytes;
    for (const std::int64_t extent : field.extents) size *= static_cast<double>(extent);
    bytes += field.access == Access::in_out ? 2 * size : size;
  }
  return bytes;
}

}  // namespace tessera::internal::opcheck
