#include "reference/tile.hpp"

#include <algorithm>

#include "graph/evaluate.hpp"
#include "graph/infer.hpp"

namespace tessera::internal::reference {
namespace {

using numbers::real_inf;
using Extents = std::vector<std::int64_t>;

Extents extents_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

/// Element [i, j, ...] of the result is element i * strides[0] + j * strides[1] + ... of the tile.
Tile picked(const Tile& a, const Shape& shape, const Extents& strides) {
  Tile result(a.type, shape);
  std::size_t next = 0;
  const auto fill = [&](const auto& self, int axis, std::int64_t from) -> void {
    if (axis == shape.rank()) {
      result.elements[next++] = a.elements[static_cast<std::size_t>(from)];
      return;
    }
    for (int i = 0; i < shape[axis]; ++i) self(self, axis + 1, from + i * strides[static_cast<std::size_t>(axis)]);
  };
  fill(fill, 0, 0);
  return result;
}

/// Calls line(first, step, out) for each line of a tile along the axis: its elements are first + i * step, and `out`
/// numbers the lines in the order of a tile whose axis has the extent 1.
template <class F>
void each_line(const Shape& shape, int axis, const F& line) {
  std::size_t step = 1;
  for (int i = axis + 1; i < shape.rank(); ++i) step *= static_cast<std::size_t>(shape[i]);
  const auto extent = static_cast<std::size_t>(shape[axis]);
  for (std::size_t out = 0; out < static_cast<std::size_t>(shape.size()) / extent; ++out)
    line(out / step * step * extent + out % step, step, out);
}

Shape without(Shape shape, int axis) {
  shape[axis] = 1;
  return shape;
}

Op combination(Op reduction) {
  switch (reduction) {
    case Op::sum:
      return Op::add;
    case Op::prod:
      return Op::mul;
    case Op::any:
      return Op::logical_or;
    case Op::all:
      return Op::logical_and;
    case Op::max:
      return Op::maximum;
    case Op::min:
      return Op::minimum;
    case Op::max_nan:
      return Op::maximum_nan;
    default:
      return Op::minimum_nan;
  }
}

/// The initial value of a maximum or minimum of reals, chosen so that only NaN remain if all are NaN.
Element identity(Op reduction) {
  return Element::of(reduction == Op::min || reduction == Op::min_nan ? real_inf : -real_inf);
}

}  // namespace

std::vector<std::int64_t> row_major(std::span<const std::int64_t> extents) {
  Extents strides(extents.size());
  std::int64_t step = 1;
  for (std::size_t axis = extents.size(); axis-- > 0; step *= extents[axis]) strides[axis] = step;
  return strides;
}

std::vector<std::int64_t> coordinates(std::int64_t i, std::span<const std::int64_t> extents) {
  Extents at(extents.size());
  for (std::size_t axis = extents.size(); axis-- > 0; i /= extents[axis]) at[axis] = i % extents[axis];
  return at;
}

Tile broadcast(const Tile& a, const Shape& shape) {
  if (a.shape == shape) return a;
  const Extents from = extents_of(a.shape), steps = row_major(from);
  Extents strides(static_cast<std::size_t>(shape.rank()), 0);
  const std::size_t lead = strides.size() - from.size();
  for (std::size_t axis = 0; axis < from.size(); ++axis) strides[lead + axis] = from[axis] == 1 ? 0 : steps[axis];
  return picked(a, shape, strides);
}

Tile permute(const Tile& a, std::span<const std::int64_t> axes) {
  const Extents steps = row_major(extents_of(a.shape));
  Shape shape = a.shape;
  Extents strides;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    shape[static_cast<int>(i)] = a.shape[static_cast<int>(axes[i])];
    strides.push_back(steps[static_cast<std::size_t>(axes[i])]);
  }
  return picked(a, shape, strides);
}

Tile unary(Op op, const Tile& a) {
  Tile result = a;
  result.type = result_type(op, a.type);
  for (Element& x : result.elements) x = unary(op, a.type, x);
  return result;
}

Tile binary(Op op, const Tile& a, const Tile& b) {
  const Shape shape = broadcast_shapes(a.shape, b.shape, name(op));
  Tile result = broadcast(a, shape);
  const Tile right = broadcast(b, shape);
  result.type = result_type(op, a.type);
  for (std::size_t i = 0; i < result.elements.size(); ++i)
    result.elements[i] = binary(op, a.type, result.elements[i], right.elements[i]);
  return result;
}

Tile ternary(Op op, const Tile& a, const Tile& b, const Tile& c) {
  const Shape shape = broadcast_shapes(broadcast_shapes(a.shape, b.shape, name(op)), c.shape, name(op));
  Tile result = broadcast(a, shape);
  const Tile second = broadcast(b, shape), third = broadcast(c, shape);
  result.type = result_type(op, a.type);
  for (std::size_t i = 0; i < result.elements.size(); ++i)
    result.elements[i] = ternary(op, a.type, result.elements[i], second.elements[i], third.elements[i]);
  return result;
}

Tile select(const Tile& condition, const Tile& a, const Tile& b) {
  const Shape shape = broadcast_shapes(condition.shape, broadcast_shapes(a.shape, b.shape, "select"), "select");
  Tile result = broadcast(a, shape);
  const Tile holds = broadcast(condition, shape), other = broadcast(b, shape);
  for (std::size_t i = 0; i < result.elements.size(); ++i)
    result.elements[i] = select(holds.elements[i], result.elements[i], other.elements[i]);
  return result;
}

Tile custom(const CustomFunction& function, std::span<const Tile* const> in) {
  Shape shape = in[0]->shape;
  for (const Tile* tile : in) shape = broadcast_shapes(shape, tile->shape, "custom");
  std::vector<Tile> all;
  for (const Tile* tile : in) all.push_back(broadcast(*tile, shape));
  Tile result = all[0];
  const bool real = numbers::is_real(function.type);
  for (std::size_t i = 0; i < result.elements.size(); ++i) {
    const bool known = std::ranges::all_of(
        all, [&](const Tile& tile) { return tile.elements[i].exact() || (tile.elements[i].empty() && real); });
    result.elements[i] =
        real ? Element::anything()
             : Element{static_cast<Real>(lowest(function.type)), static_cast<Real>(highest(function.type))};
    if (!known) continue;
    with_host(host_type(function.type), [&]<class T>(T result_of_function) {
      T numbers[CustomFunction::most_operands];
      const void* in[CustomFunction::most_operands];
      for (std::size_t k = 0; k < all.size(); ++k) {
        const Element& x = all[k].elements[i];
        numbers[k] = x.empty() ? static_cast<T>(std::numeric_limits<double>::quiet_NaN()) : static_cast<T>(x.low);
        in[k] = &numbers[k];
      }
      function.run(&result_of_function, in, 1);
      result.elements[i] = Element::of(static_cast<Real>(result_of_function));
    });
  }
  return result;
}

Tile cast(const Tile& a, ElementType to) {
  Tile result = a;
  result.type = to;
  for (Element& x : result.elements) x = cast(a.type, to, x);
  return result;
}

Tile bitcast(const Tile& a, ElementType to) {
  Tile result = a;
  result.type = to;
  for (Element& x : result.elements) x = bitcast(a.type, to, x);
  return result;
}

Tile iota(const Shape& shape, int axis) {
  Tile result(ElementType::i32, shape);
  each_line(shape, axis, [&](std::size_t first, std::size_t step, std::size_t) {
    for (int i = 0; i < shape[axis]; ++i) result.elements[first + static_cast<std::size_t>(i) * step] = Element::of(i);
  });
  return result;
}

Tile concat(std::span<const Tile* const> parts, int axis) {
  Shape shape = parts[0]->shape;
  for (const Tile* part : parts.subspan(1)) shape[axis] += part->shape[axis];
  Tile result(parts[0]->type, shape);
  each_line(shape, axis, [&](std::size_t first, std::size_t step, std::size_t out) {
    for (const Tile* part : parts) {
      const auto extent = static_cast<std::size_t>(part->shape[axis]);
      const std::size_t from = out / step * step * extent + out % step;
      for (std::size_t i = 0; i < extent; ++i, first += step) result.elements[first] = part->elements[from + i * step];
    }
  });
  return result;
}

Tile extract(const Tile& a, std::span<const Element> first, std::span<const std::int64_t> steps, const Shape& shape) {
  Tile result(a.type, shape);
  if (!std::ranges::all_of(first, [](const Element& x) { return x.exact(); }))
    return Tile(a.type, shape, Element::anything());
  const std::vector<std::int64_t> extents(shape.begin(), shape.end()), of_tile(a.shape.begin(), a.shape.end());
  const std::vector<std::int64_t> strides = row_major(of_tile);
  for (std::size_t i = 0; i < result.elements.size(); ++i) {
    const std::vector<std::int64_t> at = coordinates(static_cast<std::int64_t>(i), extents);
    std::int64_t from = 0;
    bool inside = true;
    for (std::size_t axis = 0; axis < at.size(); ++axis) {
      const std::int64_t place = static_cast<std::int64_t>(first[axis].low) + at[axis] * steps[axis];
      inside = inside && place >= 0 && place < of_tile[axis];
      from += place * strides[axis];
    }
    result.elements[i] = inside ? a.elements[static_cast<std::size_t>(from)] : Element::of(0);
  }
  return result;
}

Tile take_along_axis(const Tile& a, const Tile& positions, int axis) {
  Tile result(a.type, positions.shape);
  const std::vector<std::int64_t> extents(positions.shape.begin(), positions.shape.end()),
      of_tile(a.shape.begin(), a.shape.end());
  const std::vector<std::int64_t> strides = row_major(of_tile);
  const auto along = static_cast<std::size_t>(axis);
  const Real last = static_cast<Real>(a.shape[axis]) - 1;
  for (std::size_t i = 0; i < result.elements.size(); ++i) {
    std::vector<std::int64_t> at = coordinates(static_cast<std::int64_t>(i), extents);
    const Element& position = positions.elements[i];
    Element taken = Element::no_number();
    taken.nan = false;  // of no element yet
    if (position.low < 0 || position.high > last) taken = Element::of(0);
    for (Real p = std::max(position.low, Real(0)); p <= std::min(position.high, last); ++p) {
      at[along] = static_cast<std::int64_t>(p);
      std::int64_t from = 0;
      for (std::size_t k = 0; k < at.size(); ++k) from += at[k] * strides[k];
      taken = hull(taken, a.elements[static_cast<std::size_t>(from)]);
    }
    result.elements[i] = taken;
  }
  return result;
}

Tile reduce(Op op, const Tile& a, int axis) {
  Tile result(a.type, without(a.shape, axis));
  const auto extent = static_cast<std::size_t>(a.shape[axis]);
  const bool real = numbers::is_real(a.type);
  each_line(a.shape, axis, [&](std::size_t first, std::size_t step, std::size_t out) {
    if (real && op == Op::sum) {
      Sum sum(a.type);
      for (std::size_t i = 0; i < extent; ++i) sum.add(a.elements[first + i * step]);
      result.elements[out] = sum.value();
      return;
    }
    if (real && op == Op::prod) {
      Product product(a.type);
      for (std::size_t i = 0; i < extent; ++i) product.multiply(a.elements[first + i * step]);
      result.elements[out] = product.value();
      return;
    }
    Element total = real ? identity(op) : a.elements[first];
    for (std::size_t i = real ? 0 : 1; i < extent; ++i)
      total = binary(combination(op), a.type, total, a.elements[first + i * step]);
    result.elements[out] = total;
  });
  return result;
}

Tile argmax(const Tile& a, int axis) {
  Tile result(ElementType::i32, without(a.shape, axis));
  const int extent = a.shape[axis];
  each_line(a.shape, axis, [&](std::size_t first, std::size_t step, std::size_t out) {
    const auto at = [&](int i) -> const Element& { return a.elements[first + static_cast<std::size_t>(i) * step]; };
    // The maximum is no less than this number at this index.
    Real surely = -real_inf;
    int there = extent;
    for (int i = 0; i < extent; ++i)
      if (!at(i).nan && (there == extent || at(i).low > surely)) surely = at(i).low, there = i;
    int lowest = extent, highest = 0;
    const auto possible = [&](int i) { lowest = std::min(lowest, i), highest = std::max(highest, i); };
    if (there == extent) possible(0);  // all may be NaN
    for (int i = 0; i < extent; ++i)
      if (!at(i).empty() && (at(i).high > surely || (at(i).high == surely && i <= there))) possible(i);
    result.elements[out] = {Real(lowest), Real(highest)};
  });
  return result;
}

Tile scan(Op op, const Tile& a, int axis, ScanOptions options) {
  Tile result = a;
  const Op reduction = reduction_of(op);
  const auto extent = static_cast<std::size_t>(a.shape[axis]);
  const bool real = numbers::is_real(a.type);
  each_line(a.shape, axis, [&](std::size_t first, std::size_t step, std::size_t) {
    Sum sum(a.type);
    Product product(a.type);
    Element total = element_of(a.type, tessera::internal::identity(reduction, a.type));
    const auto now = [&] {
      return real && op == Op::cumsum ? sum.value() : real && op == Op::cumprod ? product.value() : total;
    };
    for (std::size_t i = 0; i < extent; ++i) {
      const std::size_t at = first + (options.reverse ? extent - 1 - i : i) * step;
      const Element before = now();
      sum.add(a.elements[at]);
      product.multiply(a.elements[at]);
      total = binary(combination(reduction), a.type, total, a.elements[at]);
      result.elements[at] = options.exclusive ? before : now();
    }
  });
  return result;
}

Tile mma(const Tile& a, const Tile& b, const Tile& c) {
  Tile result = c;
  const int last = c.shape.rank() - 1;
  const auto depth = static_cast<std::size_t>(a.shape[last]), columns = static_cast<std::size_t>(b.shape[last]);
  const auto matrix = static_cast<std::size_t>(c.shape[last - 1]) * columns;  // of those of a batch
  for (std::size_t at = 0; at < result.elements.size(); ++at) {
    const auto product = [&](std::size_t l) {
      return binary(Op::mul, c.type, a.elements[at / columns * depth + l],
                    b.elements[(at / matrix * depth + l) * columns + at % columns]);
    };
    if (!numbers::is_real(c.type)) {
      for (std::size_t l = 0; l < depth; ++l)
        result.elements[at] = binary(Op::add, c.type, result.elements[at], product(l));
      continue;
    }
    Sum sum(c.type);
    sum.add(c.elements[at]);
    for (std::size_t l = 0; l < depth; ++l) sum.add(product(l));
    // Tensor cores truncate the terms when they align them.
    result.elements[at] = tessera::internal::is_fp8(a.type) ? sum.value_of_fp8() : sum.value(2);
  }
  return result;
}

}  // namespace tessera::internal::reference
