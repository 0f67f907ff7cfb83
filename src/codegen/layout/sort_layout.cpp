#include "codegen/layout/sort_layout.hpp"

#include <algorithm>
#include <bit>
#include <set>

namespace tessera::internal::codegen {
namespace {

int parts_of(int a, int b) { return (a + b - 1) / b; }
int power_from(int n) { return static_cast<int>(std::bit_ceil(static_cast<unsigned>(n))); }

// A thread has registers for 32 keys with their positions, 64 bits together, or for 16 keys of 64-bit elements.
int registers_of_lane(ElementType type) { return host_bytes(host_type(type)) == 8 ? 16 : 32; }

// The separate contributions of register, lane and warps to a coordinate.
int of_register(const Layout& layout, int axis, int index) {
  int sum = 0;
  for (const Digit& digit : layout.register_digits(axis)) sum += index / digit.unit % digit.size * digit.scale;
  return sum;
}
int of_lane(const Layout& layout, int axis, int lane) {
  int sum = 0;
  for (const auto& [factor, scale] : layout.thread_digits(axis))
    if (factor.place == Place::lane) sum += lane / factor.unit % factor.size * scale;
  return sum;
}
std::vector<std::pair<Factor, int>> of_warps(const Layout& layout, int axis) {
  auto digits = layout.thread_digits(axis);
  std::erase_if(digits, [](const auto& digit) { return digit.first.place != Place::warp; });
  return digits;
}

}  // namespace

int sort_chunk(int extent, ElementType type) { return std::min(power_from(extent), 32 * registers_of_lane(type)); }

int sort_chunks(int extent, ElementType type) { return parts_of(extent, sort_chunk(extent, type)); }

Layout sorted_layout(const Shape& shape, int axis, ElementType type, int warps) {
  const int chunk = sort_chunk(shape[axis], type), chunks = sort_chunks(shape[axis], type);
  std::int64_t lines = 1;
  bool innermost = true;
  for (int other = 0; other < shape.rank(); ++other) {
    if (other == axis) continue;
    lines = std::min<std::int64_t>(lines * shape[other], 32);
    innermost &= other < axis || shape[other] == 1;
  }
  // For lines along another axis, lanes are better placed along the last axis, as far as registers of a lane suffice.
  const int fewest =
      innermost ? 32 : std::max(32 / power_from(static_cast<int>(lines)), chunk / registers_of_lane(type));
  const int lanes = std::min(fewest, chunk), registers = chunk / lanes;
  struct Spread {
    Factor reg{Place::reg}, warp{Place::warp}, lane{Place::lane};
  };
  std::array<Spread, max_rank> spread;
  int left_lanes = 32 / lanes, left_warps = static_cast<int>(std::bit_floor(static_cast<unsigned>(warps)));
  int lane_unit = lanes, warp_unit = 1, register_unit = registers;
  const auto take = [](Factor& factor, int need, int most, int& unit) {
    factor.size = std::min(most, power_from(need));
    factor.unit = unit;
    unit *= factor.size;
    return parts_of(need, factor.size);
  };
  for (int other = shape.rank(); other-- > 0;) {
    if (other == axis) continue;
    Spread& to = spread[static_cast<std::size_t>(other)];
    const int rest = take(to.lane, shape[other], left_lanes, lane_unit);
    left_lanes /= to.lane.size;
    const int outer = take(to.warp, rest, left_warps, warp_unit);
    left_warps /= to.warp.size;
    to.reg.size = outer;
    to.reg.unit = register_unit;
    register_unit *= outer;
  }
  Spread& line = spread[static_cast<std::size_t>(axis)];
  line.reg.size = take(line.warp, chunks, left_warps, warp_unit);
  line.reg.unit = register_unit;
  line.lane = {Place::lane, lanes, 1};
  Layout layout(shape.rank());
  for (int i = 0; i < shape.rank(); ++i) {
    const Spread& of = spread[static_cast<std::size_t>(i)];
    layout.add(i, of.reg);
    layout.add(i, of.warp);
    layout.add(i, of.lane);
    if (i == axis) layout.add(i, {Place::reg, registers, 1});
  }
  return layout;
}

Layout unsorted_layout(const Layout& sorted, int axis) {
  const std::optional<Line> line = line_of(sorted, axis);
  const int run = std::min(line->run.size, 4);  // 16-byte accesses, for 32-bit elements
  Layout layout(sorted.rank());
  for (int i = 0; i < sorted.rank(); ++i) {
    if (i != axis) {
      for (const Factor& factor : sorted.axis(i)) layout.add(i, factor);
      continue;
    }
    layout.add(i, line->outer);
    layout.add(i, line->warps);
    layout.add(i, {Place::reg, line->run.size / run, run});
    layout.add(i, line->lanes);
    layout.add(i, {Place::reg, run, 1});
  }
  return layout;
}

bool sorts_from(const Layout& from, const Layout& to, int axis) {
  const std::optional<Line> line = line_of(to, axis);
  if (!line || from.rank() != to.rank() || from.registers() != to.registers() || from.cover(axis) != to.cover(axis))
    return false;
  for (int other = 0; other < to.rank(); ++other)
    if (other != axis && from.axis(other) != to.axis(other)) return false;
  const int registers = line->run.size, chunk = registers * line->lanes.size;
  if ((registers > 1 && line->run.unit != 1) || of_warps(from, axis) != of_warps(to, axis)) return false;
  for (const auto& [factor, scale] : of_warps(to, axis))
    if (scale % chunk != 0) return false;
  std::set<int> places;
  for (int index = 0; index < to.registers(); ++index) {
    const int first = of_register(to, axis, index / registers * registers), here = of_register(from, axis, index);
    if (here / chunk * chunk != first) return false;
    for (int i = 0; index < registers && i < line->lanes.size; ++i)
      places.insert(here + of_lane(from, axis, i * line->lanes.unit));
  }
  return static_cast<int>(places.size()) == chunk && *places.rbegin() == chunk - 1;
}

}  // namespace tessera::internal::codegen
