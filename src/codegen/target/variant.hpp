// What generated code may assume of a launch's tensors: small facts that many launches share, never values.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/codegen/arch.hpp"
#include "tessera/graph/argument.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal {

/// What code may assume of one tensor.
struct TensorClass {
  std::int8_t contiguous_axis =
      -1;                         ///< the axis whose elements are neighbours in memory; -1: none, or a tensor of no use
  std::int8_t alignment = 1;      ///< bytes, at most 16: a power of two that divides the address and every other stride
  std::int8_t row_alignment = 1;  ///< bytes, at most 16: a power of two that divides the length of a row of neighbours
  /// sm_90's copy engine can address it: aligned to 16, strides positive, at most 5 axes, none of extent 0.
  bool tma_addressable = false;
  bool has_elements = false;  ///< no axis has an extent of 0
  bool operator==(const TensorClass&) const = default;
};

/// Who adds up the rounds of a product's tile.
enum class SplitK : std::uint8_t {
  none,      ///< a block of threads
  cluster,   ///< all blocks of a cluster, each a part of them
  stream_k,  ///< all blocks of the launch share all rounds of all tiles: of a tile one does all of them, or several do
};

/// The class of a launch.
struct Variant {
  std::vector<TensorClass> tensors;  ///< one a parameter; scalars keep the default
  bool index64 = false;              ///< the offset of an element, or a block's number, may need more than 31 bits
  SplitK split_k = SplitK::none;     ///< of the rounds of a product, where else multiprocessors would be idle
  bool operator==(const Variant&) const = default;
};

/// A launch of more blocks is wide. Of as many, a number stays below 2^32 when that of all persistent blocks is added.
inline constexpr std::int64_t most_narrow_blocks = std::int64_t{1} << 30;

/// The largest distance from a tile's first element to another one, along each axis of a tensor, in positions: of all
/// tiles of a kernel. A tile may begin that far outside of its tensor and still have elements in it.
using TileReach = std::array<std::int64_t, max_rank>;
/// One a parameter of the graph.
std::vector<TileReach> tile_reaches(const Graph& graph);

/// A narrow variant has no offset as large, neither within a tensor nor within a tile: the sum of both has 32 bits.
constexpr bool beyond_narrow(std::uint64_t offset) { return offset >= std::uint64_t{1} << 30; }

TensorClass classify(const Parameter& parameter, const Argument& argument);
Variant classify(const Graph& graph, std::span<const Argument> arguments);
/// The same into `result`, whose memory it uses again; `reaches` are the graph's.
void classify(const Graph& graph, std::span<const TileReach> reaches, std::span<const Argument> arguments,
              Variant& result);

/// The class of dense, aligned tensors whose extents divide: what a kernel is lowered for where no launch is at hand.
Variant dense_variant(const Graph& graph);

}  // namespace tessera::internal
