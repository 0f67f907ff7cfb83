#include "tessera/dsl/combine.hpp"

#include <fmt/format.h>

namespace tessera::internal::detail {

Combination::Combination(Handles tiles, std::vector<ElementType> types, std::vector<Number> identities, Axis axis,
                         int rank, std::string_view what, Combine combine)
    : trace_(Trace::current(axis.location)),
      tiles_(std::move(tiles)),
      types_(std::move(types)),
      identities_(std::move(identities)),
      what_(what),
      combine_(std::move(combine)),
      location_(axis.location),
      axis_(trace_.axis(axis, rank, what)),
      shape_(trace_.shape(tiles_[0], location_)) {
  for (const Handle tile : tiles_)
    if (trace_.shape(tile, location_) != shape_)
      trace_.fail(location_, fmt::format("{}: tiles {} and {}; broadcast them to one shape", what_, to_string(shape_),
                                         to_string(trace_.shape(tile, location_))));
}

Combination::Handles Combination::reduce() const {
  const int count = shape_[axis_];
  int whole = 1;
  while (whole < count) whole *= 2;
  Handles tiles = whole > count ? joined(tiles_, nothing(whole - count)) : tiles_;
  for (int half = whole / 2; half > 0; half /= 2) tiles = combined(part(tiles, 0, half, 2), part(tiles, 1, half, 2));
  return tiles;
}

// In step k = 0, 1, ... each element is combined with the partial result 2^k before it: Hillis and Steele, Data
// parallel algorithms.
Combination::Handles Combination::scan(ScanOptions options) const {
  Handles tiles = options.exclusive ? moved(tiles_, 1, options.reverse) : tiles_;
  for (int reach = 1; reach < shape_[axis_]; reach *= 2) tiles = combined(moved(tiles, reach, options.reverse), tiles);
  return tiles;
}

// The elements `by` positions before each (or after, if reversed).
Combination::Handles Combination::moved(const Handles& tiles, int by, bool reverse) const {
  const int rest = shape_[axis_] - by;
  if (rest == 0) return nothing(by);
  return reverse ? joined(part(tiles, by, rest), nothing(by)) : joined(nothing(by), part(tiles, 0, rest));
}

Combination::Handles Combination::combined(const Handles& before, const Handles& behind) const {
  Handles result = combine_(before, behind);
  for (const Handle tile : result)
    if (trace_.shape(tile, location_) != trace_.shape(before[0], location_))
      trace_.fail(location_, fmt::format("{}: the function returns {} for {}; it must combine element by element, with "
                                         "operators, so that the shape is kept",
                                         what_, to_string(trace_.shape(tile, location_)),
                                         to_string(trace_.shape(before[0], location_))));
  return result;
}

Shape Combination::with_extent(int count) const {
  Shape shape = shape_;
  shape[axis_] = count;
  return shape;
}

Combination::Handles Combination::nothing(int count) const {
  Handles result;
  for (std::size_t i = 0; i < types_.size(); ++i)
    result.push_back(trace_.literal(types_[i], identities_[i], location_, with_extent(count)));
  return result;
}

Combination::Handles Combination::part(const Handles& of, int start, int count, int step) const {
  std::vector<std::int64_t> steps(static_cast<std::size_t>(shape_.rank()), 1);
  steps[static_cast<std::size_t>(axis_)] = step;
  Handles result;
  for (std::size_t i = 0; i < of.size(); ++i) {
    Handles in{of[i]};
    for (int axis = 0; axis < shape_.rank(); ++axis)
      in.push_back(trace_.literal(ElementType::i32, axis == axis_ ? start : 0, location_));
    result.push_back(trace_.apply(Op::extract, types_[i], in, steps, location_, with_extent(count)));
  }
  return result;
}

Combination::Handles Combination::joined(const Handles& a, const Handles& b) const {
  Handles result;
  for (std::size_t i = 0; i < a.size(); ++i)
    result.push_back(trace_.apply(Op::concat, types_[i], Handles{a[i], b[i]}, {axis_}, location_));
  return result;
}

}  // namespace tessera::internal::detail
