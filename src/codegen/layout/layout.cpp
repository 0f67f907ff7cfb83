#include "codegen/layout/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "tessera/graph/error.hpp"

namespace tessera::internal::codegen {
namespace {

int ceil_div(int a, int b) { return (a + b - 1) / b; }
int power_at_least(int n) { return static_cast<int>(std::bit_ceil(static_cast<unsigned>(n))); }

// The largest power of two, at most `most`, by which `need` is spread with at most need / 8 places idle.
int spread(int need, int most) {
  int best = 1;
  for (int p = 2; p <= most && p <= power_at_least(need); p *= 2) {
    const int idle = ceil_div(need, p) * p - need;
    if (idle * 8 > need) continue;
    best = p;
  }
  return best;
}

}  // namespace

void Layout::add(int axis, Factor factor) {
  if (factor.size == 1) return;
  auto& factors = axes_[static_cast<std::size_t>(axis)];
  if (!factors.empty() && factors.back().place == factor.place && factors.back().unit == factor.unit * factor.size) {
    factors.back() = {factor.place, factors.back().size * factor.size, factor.unit};
    return;
  }
  factors.push_back(factor);
}

int Layout::registers() const {
  int count = 1;
  for (const auto& factors : axes_)
    for (const Factor& factor : factors)
      if (factor.place == Place::reg) count *= factor.size;
  return count;
}

int Layout::cover(int axis) const {
  int cover = 1;
  for (const Factor& factor : this->axis(axis)) cover *= factor.size;
  return cover;
}

void Layout::renumber() {
  std::vector<Factor*> registers;
  for (auto& factors : axes_)
    for (Factor& factor : factors)
      if (factor.place == Place::reg) registers.push_back(&factor);
  std::sort(registers.begin(), registers.end(), [](const Factor* a, const Factor* b) { return a->unit < b->unit; });
  int unit = 1;
  for (Factor* factor : registers) {
    factor->unit = unit;
    unit *= factor->size;
  }
  // Merges factors that have become one digit, so that equal layouts compare equal.
  for (auto& factors : axes_) {
    const std::vector<Factor> apart = std::move(factors);
    factors.clear();
    const int axis = static_cast<int>(&factors - axes_.data());
    for (const Factor& factor : apart) add(axis, factor);
  }
}

Layout Layout::without(int axis) const {
  Layout result = *this;
  result.axes_[static_cast<std::size_t>(axis)].clear();
  result.renumber();
  return result;
}

Layout Layout::of_operand(const Shape& operand, const Shape& result) const {
  Layout layout(operand.rank());
  for (int i = 1; i <= operand.rank(); ++i)
    if (operand[operand.rank() - i] == result[result.rank() - i])
      layout.axes_[static_cast<std::size_t>(operand.rank() - i)] = axis(result.rank() - i);
  layout.renumber();
  return layout;
}

Layout Layout::part(int axis, int extent) const {
  Layout result = *this;
  Factor& outermost = result.axes_[static_cast<std::size_t>(axis)].front();
  const int inner = cover(axis) / outermost.size;
  if (outermost.place != Place::reg || extent % inner)
    throw InternalError("no part of a tile of " + to_string(*this) + " has extent " + std::to_string(extent) +
                        " along the axis");
  outermost.size = extent / inner;
  result.renumber();
  return result;
}

Layout Layout::permuted(std::span<const std::int64_t> axes) const {
  Layout layout(rank());
  for (int i = 0; i < rank(); ++i)
    layout.axes_[static_cast<std::size_t>(i)] = axis(static_cast<int>(axes[static_cast<std::size_t>(i)]));
  return layout;
}

namespace {

using Digits = std::vector<Factor>;  // outermost first

// Takes the innermost digits, which count to `extent`, splitting the last of them; none if that is not possible. Digits
// of lanes and warps are bits.
std::optional<Digits> take_inner(Digits& digits, int extent) {
  Digits taken;
  while (extent > 1) {
    if (digits.empty()) return std::nullopt;
    Factor& digit = digits.back();
    const int size = std::min(extent, digit.size);
    const bool of_bits =
        digit.place == Place::reg || size == digit.size || std::has_single_bit(static_cast<unsigned>(size));
    if (extent % size || digit.size % size || !of_bits) return std::nullopt;
    taken.insert(taken.begin(), {digit.place, size, digit.unit});
    digit = {digit.place, digit.size / size, digit.unit * size};
    if (digit.size == 1) digits.pop_back();
    extent /= size;
  }
  return taken;
}

}  // namespace

// By groups of axes with equal numbers of elements, as few axes as possible. An axis that stays, and the outermost axis
// of a group, may be covered beyond its end.
std::optional<Layout> Layout::reshaped(const Shape& from, const Shape& to) const {
  Layout layout(to.rank());
  for (int source = 0, target = 0; source < from.rank() || target < to.rank();) {
    if (source < from.rank() && target < to.rank() && from[source] == to[target]) {
      layout.axes_[static_cast<std::size_t>(target++)] = axis(source++);
      continue;
    }
    const int first = target;
    Digits digits;
    std::int64_t elements = 1, made = 1;
    const auto take = [&] {
      const int extent = from[source];
      const bool fits = extent == 1 ? axis(source).empty() : elements == 1 || cover(source) == extent;
      digits.insert(digits.end(), axis(source).begin(), axis(source).end());
      elements *= extent;
      ++source;
      return fits;
    };
    if (source < from.rank() && !take()) return std::nullopt;
    if (target < to.rank()) made = to[target++];
    while (elements != made) {
      if (elements > made)
        made *= to[target++];
      else if (!take())
        return std::nullopt;
    }
    int outermost = first;
    while (outermost < target && to[outermost] == 1) ++outermost;
    for (int i = target; i-- > outermost;) {
      const std::optional<Digits> of_axis = i == outermost ? digits : take_inner(digits, to[i]);
      if (!of_axis) return std::nullopt;
      for (const Factor& factor : *of_axis) layout.add(i, factor);
    }
  }
  return layout;
}

Shape matrix_shape(const Shape& shape) {
  const int columns = shape[shape.rank() - 1];
  return {static_cast<int>(shape.size() / columns), columns};
}

Layout Layout::with_run(int axis) const {
  Layout result = *this;
  auto& factors = result.axes_[static_cast<std::size_t>(axis)];
  if (factors.empty() || factors.back().place != Place::reg) return result;
  factors.back().unit = 0;
  result.renumber();
  return result;
}

bool Layout::spreads_as(const Layout& other) const {
  const auto numbered = [](Layout layout) {
    int unit = 1;
    for (auto& factors : layout.axes_)
      for (Factor& factor : factors)
        if (factor.place == Place::reg) factor.unit = std::exchange(unit, unit * factor.size);
    layout.renumber();
    return layout;
  };
  return numbered(*this) == numbered(other);
}

std::vector<Digit> Layout::register_digits(int axis) const {
  std::vector<Digit> digits;
  int scale = cover(axis);
  for (const Factor& factor : this->axis(axis)) {
    scale /= factor.size;
    if (factor.place == Place::reg) digits.push_back({factor.unit, factor.size, scale});
  }
  return digits;
}

std::vector<std::pair<Factor, int>> Layout::thread_digits(int axis) const {
  std::vector<std::pair<Factor, int>> digits;
  int scale = cover(axis);
  for (const Factor& factor : this->axis(axis)) {
    scale /= factor.size;
    if (factor.place != Place::reg) digits.emplace_back(factor, scale);
  }
  return digits;
}

int Layout::run(int axis) const {
  const auto& factors = this->axis(axis);
  return !factors.empty() && factors.back().place == Place::reg && factors.back().unit == 1 ? factors.back().size : 1;
}

int Layout::bits_along(int axis, Place place) const {
  int bits = 0;
  for (const Factor& factor : this->axis(axis))
    if (factor.place == place) bits |= (factor.size - 1) * factor.unit;
  return bits;
}

int Layout::lane_copies() const {
  int used = 0;
  for (const auto& factors : axes_)
    for (const Factor& factor : factors)
      if (factor.place == Place::lane) used |= (factor.size - 1) * factor.unit;
  return 31 & ~used;
}

int Layout::warp_copies(int warps) const {
  int used = 0;
  for (const auto& factors : axes_)
    for (const Factor& factor : factors)
      if (factor.place == Place::warp) used |= (factor.size - 1) * factor.unit;
  return (warps - 1) & ~used;
}

int Layout::warps() const {
  int last = 0;
  for (const auto& factors : axes_)
    for (const Factor& factor : factors)
      if (factor.place == Place::warp) last += (factor.size - 1) * factor.unit;
  return last + 1;
}

std::vector<Digit> register_map(const Layout& operand, const Layout& result) {
  std::vector<Digit> map;
  for (int i = 1; i <= operand.rank(); ++i) {
    // A digit of one layout may correspond to several of the other, since fewer axes lie between digits of the operand.
    const auto from = operand.register_digits(operand.rank() - i);
    for (const Digit& to : result.register_digits(result.rank() - i))
      for (const Digit& digit : from) {
        const auto low = std::max(digit.scale, to.scale),
                   high = std::min(digit.scale * digit.size, to.scale * to.size);
        if (low < high)
          map.push_back({to.unit * (low / to.scale), high / low, digit.unit * (low / digit.scale)});
      }
  }
  std::sort(map.begin(), map.end(), [](const Digit& a, const Digit& b) { return a.unit > b.unit; });
  // Merges neighboring digits that keep their order.
  for (std::size_t k = 1; k < map.size();) {
    Digit &outer = map[k - 1], &inner = map[k];
    if (outer.unit == inner.unit * inner.size && outer.scale == inner.scale * inner.size) {
      inner.size *= outer.size;
      map.erase(map.begin() + static_cast<std::ptrdiff_t>(k) - 1);
    } else {
      ++k;
    }
  }
  return map;
}

std::optional<Line> line_of(const Layout& layout, int axis) {
  const std::vector<Factor>& factors = layout.axis(axis);
  Line line{{Place::reg}, {Place::warp}, {Place::lane}, {Place::reg}};
  Factor* const places[] = {&line.outer, &line.warps, &line.lanes, &line.run};
  // From the innermost factor out: each goes to the next member of its kind.
  auto place = std::rbegin(places);
  for (auto factor = factors.rbegin(); factor != factors.rend(); ++factor, ++place) {
    while (place != std::rend(places) && (*place)->place != factor->place) ++place;
    if (place == std::rend(places)) return std::nullopt;
    **place = *factor;
  }
  return line;
}

std::int64_t totals_of(const Layout& layout, int axis, int threads) {
  const Line line = *line_of(layout, axis);
  return std::int64_t{layout.registers()} / line.run.size * threads / line.lanes.size;
}

std::string to_string(const Layout& layout) {
  constexpr std::string_view place[] = {"reg", "lane", "warp"};
  std::string text;
  for (int axis = 0; axis < layout.rank(); ++axis) {
    if (axis) text += " | ";
    const auto& factors = layout.axis(axis);
    if (factors.empty()) text += "all";
    for (std::size_t k = 0; k < factors.size(); ++k) {
      text += fmt::format("{}{} {}", k ? ", " : "", place[static_cast<int>(factors[k].place)], factors[k].size);
      if (factors[k].unit != 1) text += fmt::format("/{}", factors[k].unit);
    }
  }
  return text;
}

Layout blocked_layout(const Shape& shape, int fast, int vector, int warps, const Run& across) {
  Layout layout(shape.rank());
  std::array<int, max_rank> lanes{}, warp{}, need{};
  for (int i = 0; i < shape.rank(); ++i) {
    const auto axis = static_cast<std::size_t>(i);
    lanes[axis] = warp[axis] = 1;
    need[axis] = i == fast          ? ceil_div(shape[i], vector)
                 : i == across.axis ? ceil_div(shape[i], across.length)
                                    : shape[i];
  }
  // Lanes take the fast axis first, and warps take it last, so that a reduction along it stays within a warp.
  std::vector<int> order;
  for (int i = shape.rank(); i-- > 0;)
    if (i != fast) order.push_back(i);
  int left = 32;
  const auto take_lanes = [&](int axis, int most) {
    const auto i = static_cast<std::size_t>(axis);
    const int more = std::min({left, most, power_at_least(need[i])});
    lanes[i] *= more;
    need[i] = ceil_div(need[i], more);
    left /= more;
  };
  if (across.axis >= 0) {  // whole 128-byte lines along one axis, and half lines along the other
    take_lanes(fast, 8);
    take_lanes(across.axis, 32);
  }
  if (shape.rank() > 0) take_lanes(fast, 32);
  for (int axis : order) take_lanes(axis, 32);
  left = warps;
  const auto take_warps = [&](int axis) {
    const auto i = static_cast<std::size_t>(axis);
    warp[i] = spread(need[i], left);
    need[i] = ceil_div(need[i], warp[i]);
    left /= warp[i];
  };
  for (int axis : order) take_warps(axis);
  if (shape.rank() > 0) take_warps(fast);

  // Units: the fast axis has the smallest, followed by the others from the last to the first.
  if (shape.rank() > 0) order.insert(order.begin(), fast);
  std::array<int, max_rank> lane_unit{}, warp_unit{}, register_unit{};
  int lane_next = 1, warp_next = 1, register_next = vector * across.length;
  for (int axis : order) {
    const auto i = static_cast<std::size_t>(axis);
    lane_unit[i] = lane_next;
    warp_unit[i] = warp_next;
    register_unit[i] = register_next;
    lane_next *= lanes[i];
    warp_next *= warp[i];
    register_next *= need[i];
  }
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    layout.add(axis, {Place::reg, need[i], register_unit[i]});
    layout.add(axis, {Place::warp, warp[i], warp_unit[i]});
    layout.add(axis, {Place::lane, lanes[i], lane_unit[i]});
    if (axis == fast) layout.add(axis, {Place::reg, vector, 1});
    if (axis == across.axis) layout.add(axis, {Place::reg, across.length, vector});
  }
  return layout;
}

Layout panels_layout(const Shape& shape, int panel_columns, int vector, int warps) {
  Layout layout(shape.rank());
  const int last = shape.rank() - 1, lanes = panel_columns / vector, rows = 32 / lanes;
  const int outer = ceil_div(shape[last - 1], warps * rows);
  layout.add(last - 1, {Place::reg, outer, vector});
  layout.add(last - 1, {Place::warp, warps, 1});
  layout.add(last - 1, {Place::lane, rows, lanes});
  layout.add(last, {Place::reg, shape[last] / panel_columns, vector * outer});
  layout.add(last, {Place::lane, lanes, 1});
  layout.add(last, {Place::reg, vector, 1});
  return layout;
}

Layout accumulator_layout(const Shape& shape, int warps_m, int warps_n, Pairs pairs, int slices) {
  const int run = pairs.columns ? 4 : 2;  // neighboring columns of a thread
  const int m = ceil_div(shape[0], 16 * warps_m), n = ceil_div(shape[1], 4 * run * warps_n);
  Layout layout(2);
  layout.add(0, {Place::warp, warps_m, warps_n * slices});
  layout.add(0, {Place::reg, m, 2 * run * n});
  if (!pairs.rows) layout.add(0, {Place::reg, 2, run});
  layout.add(0, {Place::lane, 8, 4});
  if (pairs.rows) layout.add(0, {Place::reg, 2, run});
  layout.add(1, {Place::warp, warps_n, slices});
  layout.add(1, {Place::reg, n, 2 * run});
  layout.add(1, {Place::lane, 4, 1});
  layout.add(1, {Place::reg, run, 1});
  return layout;
}

bool stores_by_quads(const Layout& layout, const Shape& shape, int warps) {
  if (shape.rank() < 2) return false;
  const Shape matrix = matrix_shape(shape);
  const std::optional<Layout> of_matrix = layout.reshaped(shape, matrix);
  for (int warps_m = 1; of_matrix && warps_m <= warps; ++warps_m)
    if (warps % warps_m == 0 && of_matrix->cover(1) % (32 * (warps / warps_m)) == 0 &&
        *of_matrix == accumulator_layout(matrix, warps_m, warps / warps_m))
      return true;
  return false;
}

Layout fma_layout(const Shape& shape, int warps_m, int warps_n, int lanes_m, int run_m, int run_n) {
  const int lanes_n = 32 / lanes_m;
  const int rows = ceil_div(shape[0], warps_m * lanes_m * run_m),
            columns = ceil_div(shape[1], warps_n * lanes_n * run_n);
  Layout layout(2);
  layout.add(0, {Place::reg, rows, run_m * run_n * columns});
  layout.add(0, {Place::warp, warps_m, warps_n});
  layout.add(1, {Place::reg, columns, run_n});
  layout.add(1, {Place::warp, warps_n, 1});
  // From the outermost lane bits in, alternating between the axes.
  for (int left_m = lanes_m, left_n = lanes_n; left_m * left_n > 1;) {
    const bool m = left_m >= left_n;
    (m ? left_m : left_n) /= 2;
    layout.add(m ? 0 : 1, {Place::lane, 2, left_m * left_n});
  }
  layout.add(0, {Place::reg, run_m, columns * run_n});
  layout.add(1, {Place::reg, run_n, 1});
  return layout;
}

namespace {

// Rows over warp groups and blocks of 64 rows. Registers `block` and `half` apart hold a block's rows, and the two rows
// of a lane.
void add_wgmma_rows(Layout& layout, int rows, int groups, int block, int half, RowOrder order) {
  layout.add(0, {Place::warp, groups, 4});
  layout.add(0, {Place::reg, ceil_div(rows, 64 * groups), block});
  if (order == RowOrder::spread) {
    layout.add(0, {Place::warp, 2, 2});
    layout.add(0, {Place::lane, 2, 8});
    layout.add(0, {Place::warp, 2, 1});
    layout.add(0, {Place::lane, 2, 16});
    layout.add(0, {Place::lane, 2, 4});
  } else {
    layout.add(0, {Place::warp, 4, 1});
    if (order != RowOrder::paired) layout.add(0, {Place::reg, 2, half});
    const int lanes = order == RowOrder::even_odd ? 4 : 8;
    layout.add(0, {Place::lane, lanes, 4});
    layout.add(0, {Place::lane, 8 / lanes, 16});
  }
  if (order == RowOrder::paired || order == RowOrder::spread) layout.add(0, {Place::reg, 2, half});
}

}  // namespace

Layout wgmma_accumulator_layout(const Shape& shape, int groups, RowOrder order) {
  const int columns = ceil_div(shape[1], 8);
  Layout layout(2);
  add_wgmma_rows(layout, shape[0], groups, columns * 4, 2, order);
  layout.add(1, {Place::reg, columns, 4});
  layout.add(1, {Place::lane, 4, 1});
  layout.add(1, {Place::reg, 2, 1});
  return layout;
}

Layout wgmma_operand_layout(const Shape& shape, int groups, ElementType type, RowOrder order) {
  const int word = 4 / info(type).bytes;  // elements per register
  const int outer = ceil_div(shape[1], 8 * word);
  Layout layout(2);
  add_wgmma_rows(layout, shape[0], groups, outer * 4 * word, word, order);
  layout.add(1, {Place::reg, outer, 4 * word});
  layout.add(1, {Place::reg, 2, 2 * word});
  layout.add(1, {Place::lane, 4, 1});
  layout.add(1, {Place::reg, word, 1});
  return layout;
}

}  // namespace tessera::internal::codegen
