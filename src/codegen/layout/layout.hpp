// Layouts: which thread of a CTA holds which element of a tile, in which of its registers; including the fragments of
// mma.sync and wgmma.
//
// Every axis of the tile is split into factors, outermost first. Each factor is spread over registers, lanes or warps.
// The coordinate along the axis is the number whose mixed-radix digits are those of the factors. For example, the
// accumulator of mma.sync (m16n8) is
//   axis 0: registers 2, lanes 8 (unit 4)     row    = 8 * (r / 2 % 2) + lane / 4
//   axis 1: lanes 4 (unit 1), registers 2     column = 2 * (lane % 4) + r % 2
// A layout may cover more than the tile; registers outside of the tile hold nothing. Lanes and warps in no factor hold
// copies.
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
  int unit = 1;  ///< the digit is index / unit % size, where index is that of the register, lane or warp
  bool operator==(const Factor&) const = default;
};

/// A digit of a register index, scaled: r / unit % size * scale.
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
  /// Adds a factor inside of those that the axis has. Ignores a factor of size 1.
  void add(int axis, Factor factor);

  int registers() const;
  /// The number of coordinates that the factors of an axis cover.
  int cover(int axis) const;
  bool covers_more(int axis, const Shape& shape) const { return cover(axis) > shape[axis]; }

  /// The same layout without the factors of an axis, which then has an extent of 1. Registers are renumbered in order.
  Layout without(int axis) const;
  /// The layout of an operand that is broadcast to the shape of this layout's tile.
  Layout of_operand(const Shape& operand, const Shape& result) const;
  /// The layout of a part of the tile, shorter along an axis whose outermost factor is registers.
  Layout part(int axis, int extent) const;
  /// Axis i of the result is axis axes[i].
  Layout permuted(std::span<const std::int64_t> axes) const;
  /// The layout of the same elements in the same registers, for their tile of shape `from` as one of shape `to`. None
  /// if an axis that is merged with an outer one is covered beyond its end, or if a digit cannot be split between axes.
  std::optional<Layout> reshaped(const Shape& from, const Shape& to) const;

  /// The same layout, with registers numbered so that neighbors along an axis are consecutive, if a thread has some.
  Layout with_run(int axis) const;
  /// Do the same threads hold the same elements, regardless of register numbers?
  bool spreads_as(const Layout& other) const;

  /// The part of a coordinate that depends on the register, and the part that depends on lane and warp.
  std::vector<Digit> register_digits(int axis) const;
  std::vector<std::pair<Factor, int>> thread_digits(int axis) const;  ///< with the scale of each digit

  /// The number of neighbors along an axis that a thread holds in consecutive registers.
  int run(int axis) const;

  /// Bits of the lane or warp indices over which an axis is spread.
  int bits_along(int axis, Place place) const;
  /// Bits of lane and warp indices that distinguish only copies.
  int lane_copies() const;
  int warp_copies(int warps) const;
  /// The number of warps up to the last one that holds elements no earlier warp holds.
  int warps() const;

  bool operator==(const Layout&) const = default;

 private:
  void renumber();
  std::vector<std::vector<Factor>> axes_;
};

/// The shape of a tile as a matrix, whose rows are merged of all axes but the last. The tile has two axes or more.
Shape matrix_shape(const Shape& shape);

/// The register of `operand` for a register of `result`, when the operand is broadcast to the result.
std::vector<Digit> register_map(const Layout& operand, const Layout& result);

/// An axis along which a scan may run. Factors, outermost first: registers, warps, lanes, and a thread's run of
/// neighbors. Any of them may have size 1.
struct Line {
  Factor outer, warps, lanes, run;
};
std::optional<Line> line_of(const Layout& layout, int axis);
/// The number of totals of all lines of a tile: one for each outer register and warp.
std::int64_t totals_of(const Layout& layout, int axis, int threads);

/// "reg 2, warp 4, lane 8/4 | lane 4, reg 2".
std::string to_string(const Layout& layout);

/// Neighbors of a thread along an axis.
struct Run {
  int axis = -1, length = 1;
};

/// A layout for coalesced accesses along axis `fast`, `vector` elements per lane: for tiles that need no other layout.
/// For a tile that is read along one axis and written along another, a thread also holds neighbors along `across`, so
/// that no exchange is needed.
Layout blocked_layout(const Shape& shape, int fast, int vector, int warps, const Run& across = {});

/// The layout for writes to panels, `vector` elements at a time, a row of a panel in one warp. A thread's rows differ
/// in other bits of the row number than the rows of different threads, so that the swizzle is the exclusive or of one
/// for the thread and one for the register.
Layout panels_layout(const Shape& shape, int panel_columns, int vector, int warps);

/// From an 8-bit operand that is not k-major, a thread reads two neighbors across k at a time. Such a pair of rows is
/// rows g and g + 8 of one instruction; such a pair of columns is column g of two instructions, whose registers
/// alternate.
struct Pairs {
  bool rows = false, columns = false;
};
/// The accumulators of mma.sync m16n8 (PTX ISA, "Matrix Fragments for mma.m16n8k16") for `warps_m` x `warps_n` warps.
/// Registers of one instruction are consecutive, or with pairs of columns those of two instructions. `slices` warps in
/// a row have the same elements: each may hold the sums of a slice of k.
Layout accumulator_layout(const Shape& shape, int warps_m, int warps_n, Pairs pairs = {}, int slices = 1);
/// Is it the accumulator layout for this many warps, and do the four lanes of a row have eight neighbors each to store?
bool stores_by_quads(const Layout& layout, const Shape& shape, int warps);

/// The accumulators of simt matmuls: `warps_m` x `warps_n` warps, each of `lanes_m` x (32 / `lanes_m`) lanes. A lane
/// holds blocks of `run_m` x `run_n` neighbors. The number of blocks is the outermost factor, so that a thread's blocks
/// are as far apart as possible. Lanes are assigned to the two axes alternately, so that among two or four neighboring
/// lanes some read the same elements of each operand: only then does shared memory serve half a warp at a time with
/// 16-byte accesses.
Layout fma_layout(const Shape& shape, int warps_m, int warps_n, int lanes_m, int run_m, int run_n);

/// Which rows of a warp's 16 the instruction computes where. With the left operand in registers, any order may be
/// chosen.
enum class RowOrder : std::uint8_t {
  natural,   ///< rows g and g + 8 of the instruction are those of the tile
  even_odd,  ///< of eight rows, the even ones come first: half a warp reads pairs of 32 bits without a bank conflict
  paired,    ///< they are rows 2 g and 2 g + 1, which a thread reads together from a transposed tile
  spread,    ///< the same, with a warp's pairs over 32 rows: four rows of 32 bits are read without a bank conflict
};
inline constexpr RowOrder row_orders[] = {RowOrder::natural, RowOrder::even_odd, RowOrder::paired, RowOrder::spread};
/// The accumulators of wgmma, m64 by n (PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16"): rows of an m by n
/// tile over `groups` warp groups, each with blocks of 64 rows. Registers of one instruction are consecutive.
Layout wgmma_accumulator_layout(const Shape& shape, int groups, RowOrder order = RowOrder::natural);
/// The left operand of wgmma in registers, m by k. Elements of one instruction, 32 bytes of k, are consecutive: 16
/// bytes per thread for every 64 rows.
Layout wgmma_operand_layout(const Shape& shape, int groups, ElementType type, RowOrder order = RowOrder::natural);

}  // namespace tessera::internal::codegen
