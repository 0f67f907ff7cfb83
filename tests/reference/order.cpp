// Sorting elements that may be anywhere in an interval: the value at an index, and the elements that may be there.
#include <algorithm>
#include <compare>

#include "reference/tile.hpp"

namespace tessera::internal::reference {
namespace {

/// A number, or NaN, which is larger than any.
struct Bound {
  bool nan = false;
  Real number = 0;
  std::partial_ordering operator<=>(const Bound& other) const {
    return nan || other.nan ? std::partial_ordering(nan <=> other.nan) : number <=> other.number;
  }
  bool operator==(const Bound& other) const { return (*this <=> other) == 0; }
};

Bound lowest(const Element& x) { return x.empty() ? Bound{true, 0} : Bound{false, x.low}; }
Bound highest(const Element& x) { return x.nan ? Bound{true, 0} : Bound{false, x.high}; }

/// Lines of a tile, and of a result that has another extent along the axis.
struct LinePair {
  std::size_t step = 1, extent, result, lines;
  LinePair(const Shape& from, const Shape& to, int axis)
      : extent(static_cast<std::size_t>(from[axis])), result(static_cast<std::size_t>(to[axis])) {
    for (int i = axis + 1; i < from.rank(); ++i) step *= static_cast<std::size_t>(from[i]);
    lines = static_cast<std::size_t>(from.size()) / extent;
  }
  /// Calls line(at, to): at(i) and to(i) are the indices of the line's elements and of its result's.
  template <class F>
  void each(const F& line) const {
    for (std::size_t l = 0; l < lines; ++l) {
      const std::size_t outer = l / step * step, inner = l % step;
      line([=, this](std::size_t i) { return outer * extent + inner + i * step; },
           [=, this](std::size_t i) { return outer * result + inner + i * step; });
    }
  }
};

}  // namespace

// The element at an index is no less than the one there if each is its minimum, and no more than if each is its
// maximum.
Tile sort(const Tile& a, int axis, SortOptions options, const Shape& shape) {
  Tile out(a.type, shape);
  const LinePair lines(a.shape, shape, axis);
  lines.each([&](const auto& at, const auto& to) {
    std::vector<Bound> low, high;
    Real most = -numbers::real_inf;
    for (std::size_t i = 0; i < lines.extent; ++i) {
      const Element& x = a.elements[at(i)];
      low.push_back(lowest(x));
      high.push_back(highest(x));
      if (!x.empty()) most = std::max(most, x.high);
    }
    const auto is_less = [](const Bound& x, const Bound& y) { return x < y; };
    std::ranges::sort(low, is_less);
    std::ranges::sort(high, is_less);
    for (std::size_t p = 0; p < lines.result; ++p) {
      const std::size_t place = options.descending ? lines.extent - 1 - p : p;
      const Bound &from = low[place], &until = high[place];
      out.elements[to(p)] = from.nan    ? Element::no_number()
                            : until.nan ? Element{from.number, most, true}
                                        : Element{from.number, until.number};
    }
  });
  return out;
}

// An element comes after those that certainly precede it, and before those that it certainly precedes.
Tile argsort(const Tile& a, int axis, SortOptions options, const Shape& shape) {
  Tile out(ElementType::i32, shape);
  const LinePair lines(a.shape, shape, axis);
  lines.each([&](const auto& at, const auto& to) {
    std::vector<Bound> low, high;
    for (std::size_t i = 0; i < lines.extent; ++i) {
      low.push_back(lowest(a.elements[at(i)]));
      high.push_back(highest(a.elements[at(i)]));
    }
    const auto surely_before = [&](std::size_t i, std::size_t j) {
      const auto order = options.descending ? high[j] <=> low[i] : high[i] <=> low[j];
      return order < 0 || (order == 0 && i < j);
    };
    struct Candidates {
      std::size_t first = static_cast<std::size_t>(-1), last = 0;
    };
    std::vector<Candidates> of_place(lines.extent);
    for (std::size_t i = 0; i < lines.extent; ++i) {
      std::size_t before = 0, behind = 0;
      for (std::size_t j = 0; j < lines.extent; ++j) {
        if (i == j) continue;
        before += surely_before(j, i);
        behind += surely_before(i, j);
      }
      for (std::size_t p = before; p < lines.extent - behind; ++p) {
        of_place[p].first = std::min(of_place[p].first, i);
        of_place[p].last = std::max(of_place[p].last, i);
      }
    }
    for (std::size_t p = 0; p < lines.result; ++p)
      out.elements[to(p)] = {static_cast<Real>(of_place[p].first), static_cast<Real>(of_place[p].last)};
  });
  return out;
}

Tile histogram(const Tile& a, int axis, const Shape& shape) {
  Tile out(ElementType::i32, shape);
  const LinePair lines(a.shape, shape, axis);
  const Real last = static_cast<Real>(lines.result) - 1;
  lines.each([&](const auto& at, const auto& to) {
    for (std::size_t i = 0; i < lines.extent; ++i) {
      const Element& x = a.elements[at(i)];
      for (Real bin = std::max(x.low, Real(0)); bin <= std::min(x.high, last); ++bin) {
        Element& count = out.elements[to(static_cast<std::size_t>(bin))];
        if (x.exact()) ++count.low;
        ++count.high;
      }
    }
  });
  return out;
}

Tile inverse_permutation(const Tile& a, int axis, const Shape& shape) {
  Tile out(ElementType::i32, shape, Element::of(-1));
  const LinePair lines(a.shape, shape, axis);
  const Real last = static_cast<Real>(lines.result) - 1;
  lines.each([&](const auto& at, const auto& to) {
    for (std::size_t i = 0; i < lines.extent; ++i) {
      const Element& x = a.elements[at(i)];
      for (Real number = std::max(x.low, Real(0)); number <= std::min(x.high, last); ++number) {
        Element& position = out.elements[to(static_cast<std::size_t>(number))];
        position.high = static_cast<Real>(i);
        if (x.exact()) position.low = position.high;
      }
    }
  });
  return out;
}

}  // namespace tessera::internal::reference
