// Properties of a launch's tensors that generated code may assume: few classes that many launches share, never values.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/codegen/arch.hpp"
#include "tessera/graph/argument.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal {

/// The properties of one tensor that code may assume.
struct TensorClass {
  std::int8_t contiguous_axis = -1;  ///< the axis whose stride is 1; -1: none, or a scalar
  std::int8_t alignment = 1;      ///< bytes, at most 16: a power of two that divides the address and every other stride
  std::int8_t row_alignment = 1;  ///< bytes, at most 16: a power of two that divides the length of a contiguous row
  /// TMA can address it: aligned to 16 bytes, positive strides, at most 5 axes, none of extent 0.
  bool tma_addressable = false;
  bool has_elements = false;  ///< no axis has an extent of 0
  bool operator==(const TensorClass&) const = default;
};

/// Which CTAs accumulate the k-iterations of a matmul's tile.
enum class SplitK : std::uint8_t {
  none,      ///< one CTA
  cluster,   ///< the CTAs of a cluster, each a part of them
  stream_k,  ///< all CTAs of the launch share the k-iterations of all tiles: a tile belongs to one CTA or to several
};

/// CTAs of a cluster that multicast operands to each other.
inline constexpr int multicast_ctas = 2;

/// The class of a launch.
struct Variant {
  /// One a parameter; scalars keep the default. The first tensor of a list has what all of its tensors have in common,
  /// the others keep the default.
  std::vector<TensorClass> tensors;
  bool index64 = false;           ///< offsets of elements, or numbers of grid tiles, may need more than 31 bits
  SplitK split_k = SplitK::none;  ///< shares k-iterations of a matmul where multiprocessors would otherwise be idle
  bool multicast = false;         ///< CTAs of clusters load right operands for each other, where a kernel can
  bool stamped = false;           ///< roles log when they begin what (codegen/target/stamps.hpp), for the profiler
  bool operator==(const Variant&) const = default;
};

/// A launch of more grid tiles is index64. Up to this limit, a tile number plus the number of persistent CTAs stays
/// below 2^32.
inline constexpr std::int64_t most_narrow_blocks = std::int64_t{1} << 30;

/// The largest distance from a tile's first element to another one along each axis of a tensor, in positions, over all
/// tiles of a kernel. A tile may begin that far outside of its tensor and still have elements in it.
using TileReach = std::array<std::int64_t, max_rank>;
/// One for each parameter of the graph.
std::vector<TileReach> tile_reaches(const Graph& graph);

/// Without index64, offsets within a tensor and within a tile are smaller than this: their sum fits 32 bits.
constexpr bool beyond_narrow(std::uint64_t offset) { return offset >= std::uint64_t{1} << 30; }

/// The class that all these tensors of a parameter have in common.
TensorClass classify(const Parameter& parameter, std::span<const Argument> tensors);
inline TensorClass classify(const Parameter& parameter, const Argument& tensor) {
  return classify(parameter, std::span(&tensor, 1));
}
Variant classify(const Graph& graph, std::span<const Argument> arguments);
/// The same into `result`, whose memory is reused; `reaches` are the graph's.
void classify(const Graph& graph, std::span<const TileReach> reaches, std::span<const Argument> arguments,
              Variant& result);

/// The variant for dense, aligned tensors with aligned rows: for lowering a kernel without a launch.
Variant dense_variant(const Graph& graph);

}  // namespace tessera::internal
