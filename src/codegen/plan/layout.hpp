// Which thread of a block holds which element of a tile, in which of its registers.
//
// Every axis of the tile is cut into factors, outermost first, each of which is spread over registers, lanes or warps:
// the coordinate along the axis is the number whose mixed-radix digits are those of the factors. The accumulator of
// mma.sync (m16n8), for one, is
//   axis 0: registers 2, lanes 8 (unit 4)     row    = 8 * (r / 2 % 2) + lane / 4
//   axis 1: lanes 4 (unit 1), registers 2     column = 2 * (lane % 4) + r % 2
// A layout may cover more than the tile; what lies beyond holds nothing. Lanes and warps in no factor hold copies.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/graph/element.hpp"
#include "tessera/graph/shape.hpp"

namespace tessera::internal::codegen {

enum class Place : std::uint8_t { reg, lane, warp };

struct Factor {
  Place place{};
  int size = 1;
  int unit = 1;  ///< the digit is index / unit % size, the index being that of the register, lane or warp
  bool operator==(const Factor&) const = default;
};

/// A digit of a register index times a factor: r / unit % size * scale.
struct Digit {
  int unit, size, scale;
  bool operator==(const Digit&) const = default;
};

class Layout {
 public:
  Layout() = default;
  explicit Layout(int rank) : axes_(static_cast<std::size_t>(rank)) {}

  int rank() const { return static_cast<int>(axes_.size()); }
  const std::vector<Factor>& axis(int axis) const { return axes_[static_cast<std::size_t>(axis)]; }
  /// Adds a factor inside of those the axis has; a factor of size 1 is nothing.
  void add(int axis, Factor factor);

  int registers() const;
  /// Coordinates that the factors of an axis reach.
  int cover(int axis) const;
  bool covers_more(int axis, const Shape& shape) const { return cover(axis) > shape[axis]; }

  /// The same spread without an axis, which has an extent of 1 then; registers are numbered anew, in their order.
  Layout without(int axis) const;
  /// Of an operand that is stretched to the shape of this layout's tile.
  Layout of_operand(const Shape& operand, const Shape& result) const;
  /// Of a part of the tile, shorter along an axis whose outermost factor is registers.
  Layout part(int axis, int extent) const;
  /// Axis i of the result is axis axes[i].
  Layout permuted(std::span<const std::int64_t> axes) const;
  /// Of a tile whose axes of extent 1 are others; all other axes and their order are the same.
  Layout with_unit_axes(const Shape& from, const Shape& to) const;

  /// The same spread, the registers numbered so that those of neighbours along an axis follow one another, if a thread
  /// has some.
  Layout with_run(int axis) const;
  /// Do the same threads hold the same elements, in registers of whatever numbers?
  bool spreads_as(const Layout& other) const;

  /// The part of a coordinate that follows from the register, and from lane and warp.
  std::vector<Digit> register_digits(int axis) const;
  std::vector<std::pair<Factor, int>> thread_digits(int axis) const;  ///< with what the digit is multiplied by

  /// How many neighbours along an axis a thread holds in consecutive registers.
  int run(int axis) const;

  /// Bits of lane and warp indices that tell only copies apart.
  int lane_copies() const;
  int warp_copies(int warps) const;
  /// Warps up to the last that holds elements which none before it does.
  int warps() const;

  bool operator==(const Layout&) const = default;

 private:
  void renumber();
  std::vector<std::vector<Factor>> axes_;
};

/// The register of `operand` that belongs to a register of `result`, when the operand is stretched to the result.
std::vector<Digit> register_map(const Layout& operand, const Layout& result);

/// An axis along which sums may run: rounds of warps, of lanes, of a thread's neighbours; any may be one.
struct Line {
  Factor outer, warps, lanes, run;
};
std::optional<Line> line_of(const Layout& layout, int axis);
/// The totals of all lines of a tile: one for each round and warp.
std::int64_t totals_of(const Layout& layout, int axis, int threads);

/// "reg 2, warp 4, lane 8/4 | lane 4, reg 2".
std::string to_string(const Layout& layout);

/// Neighbours of a thread along an axis.
struct Run {
  int axis = -1, length = 1;
};

/// Rows spread so that neighbours along axis `fast` are read together, `vector` elements by each lane: for tiles that
/// nothing else places. Of a tile that is read one way and written another a thread has blocks, neighbours `across`,
/// too, so that nothing is exchanged.
Layout blocked_layout(const Shape& shape, int fast, int vector, int warps, const Run& across = {});

/// What threads write to panels, `vector` elements at a time, a row of a panel in one warp. What tells a thread's rows
/// apart are other bits of their numbers than tell threads apart, so that the swizzle is the thread's and that of each
/// register, together by exclusive or.
Layout panels_layout(const Shape& shape, int panel_columns, int vector, int warps);

/// Of an operand of bytes that does not lie along k a thread reads two neighbours across k at a time: such pairs of rows
/// are rows g and g + 8 of one instruction, of columns column g of two, whose registers alternate.
struct Pairs {
  bool rows = false, columns = false;
};
/// The accumulators of mma.sync m16n8 (PTX ISA, "Matrix Fragments for mma.m16n8k16"), `warps_m` times `warps_n` warps.
/// Registers are numbered so that those of one instruction are neighbours, or with pairs of columns those of two.
Layout accumulator_layout(const Shape& shape, int warps_m, int warps_n, Pairs pairs = {});
/// Is it that of so many warps' accumulators, and do the four lanes of a row have eight neighbours each to store?
bool stores_by_quads(const Layout& layout, const Shape& shape, int warps);

/// Sums in fused multiply-adds: `warps_m` times `warps_n` warps of `lanes_m` times as many lanes as are left, which
/// have `run_m` times `run_n` neighbours in each of their registers' rounds. Rounds are outermost, so that a thread's
/// are as far apart as can be; and lanes go to both axes in turn, so that of two or four neighbouring lanes some read
/// the same of either operand: only then shared memory serves half a warp at a time by accesses of 16 bytes.
Layout fma_layout(const Shape& shape, int warps_m, int warps_n, int lanes_m, int run_m, int run_n);

/// The accumulators of wgmma, m64 by n (PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16"): rows of a tile of
/// m by n over `groups` warp groups, each with blocks of 64 rows. Registers of one instruction are neighbours.
Layout wgmma_accumulator_layout(const Shape& shape, int groups);
/// The left operand of wgmma in registers, of 16 bits or tf32: rows of m by k. Elements of one instruction, 32 bytes of
/// k, are neighbours, eight of a thread or four for each 64 rows.
Layout wgmma_operand_layout(const Shape& shape, int groups, ElementType type);

}  // namespace tessera::internal::codegen
