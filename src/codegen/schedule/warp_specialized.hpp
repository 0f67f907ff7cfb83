// A kernel of warp roles: the producer copies tiles into pipelines, by TMA or by its threads; consumer warp groups
// multiply them by wgmma and do the rest. Two patterns of such kernels differ in this data alone.
#pragma once
#include "codegen/analysis/computed_operands.hpp"
#include "codegen/schedule/kernel_schedule.hpp"

namespace tessera::internal::lowering {

/// A tile that the producer copies and matmuls read, in a buffer of its own.
struct ProducedTile {
  Id load = no_id;
  Axes rows;                ///< axes of the load: those of the buffer's rows, whatever they are to a matmul;
  int columns = 0;          ///< and that of its columns
  ElementType type{};       ///< of its elements in the buffer
  bool left = false;        ///< matmuls read it as their left operand
  bool by_threads = false;  ///< TMA cannot address it
  bool clipped = false;     ///< TMA loads no more rows than the tensor has
  Id slice_extent = no_id;  ///< extent of the slice that its rows are in, if any: rows beyond are zeroed
};

/// Tiles whose stages are filled and released together.
struct TilePipeline {
  std::vector<int> tiles;
  int stages = 1;
  bool held = false;  ///< filled before the loop, for all k-iterations; otherwise in each
};

/// A tile as an operand.
struct WgmmaOperand {
  int tile = -1;        ///< -1: the operand comes from registers
  bool k_major = true;  ///< rows of its buffer run along k
};

struct WgmmaOperands {
  Id id = no_id;  ///< the matmul
  WgmmaOperand left, right;
};

/// Which matmuls are in flight at the same time.
enum class MatmulOverlap : std::uint8_t {
  accumulators,  ///< they only add to accumulators that the loop carries: those of a k-iteration and of the next
  none,          ///< each ends before the ops on its result begin
  k_iterations,  ///< the second of two matmuls, and the first of the next k-iteration
  grid_tiles,    ///< in addition, the last one of a grid tile, and the first one of the next
};

/// The decisions of a schedule for a warp-specialized kernel.
struct WarpSpecialization {
  Id loop = no_id;                     ///< the loop of k-iterations
  bool has_iteration = false;          ///< it has at least one
  std::vector<WgmmaOperands> matmuls;  ///< of the loop, in order
  std::vector<ProducedTile> tiles;
  std::vector<TilePipeline> pipelines;
  std::map<Id, ComputedOperand> computed;     ///< left operands that consumers compute from tiles on the way
  std::map<Id, WgmmaOperand> computed_tiles;  ///< the tiles of these, by their nodes
  RowOrder row_order{};                       ///< of the accumulators
  int groups = 1;                             ///< warp groups of a consumer group, which share the tile's rows
  int consumer_groups = 1;                    ///< with two, one multiplies while the other stores
  int blocks = 1;                             ///< CTAs of a multiprocessor at a time, which share its registers
  MatmulOverlap overlap{};
  /// fp8: the columns of the accumulators in parts. While wgmma sums up one, the sums of another are added to the
  /// accumulators (promoted). Empty: wgmma adds to the accumulators itself.
  std::vector<int> promoted_parts;
  SplitK split_k = SplitK::none;  ///< of the k-iterations of the loop
  bool transposed = false;        ///< all that follows the loop takes the transposes of the accumulators
  bool multicast = false;         ///< clusters of two CTAs, whose tiles are neighbors along m, share right operands
  bool reads_ahead =
      false;  ///< loads that are is_read_ahead() are done before the loop, or before the stores if it promotes
  bool fetches_rows = false;      ///< rows that computed operands take from memory are loaded a k-iteration ahead
  std::vector<Id> tma_stores;     ///< by TMA, if their values have the accumulators' layout
  int raster_group = 0, l2_group = 0;  ///< order of the grid's tiles: codegen::Schedule
  bool snake_order = false;
  std::vector<char> ahead;   ///< by node: a number that the producer needs, and that it computes itself
  std::vector<char> launch;  ///< by node: a number that is computed before the first grid tile

  /// Do the ops on a matmul's result make an operand of the next?
  bool is_fused_matmul() const { return overlap != MatmulOverlap::accumulators; }
  bool overlaps() const { return overlap == MatmulOverlap::k_iterations || overlap == MatmulOverlap::grid_tiles; }
  bool promotes() const { return !promoted_parts.empty(); }
  bool copies_by_threads() const { return std::ranges::any_of(tiles, &ProducedTile::by_threads); }
};

/// Numbers that the producer computes itself: those that follow from the launch, block indices, counters, and single
/// elements of tensors at such places. By node.
std::vector<char> known_ahead(const GraphAnalysis& analysis);

/// A load of a smaller tile that is broadcast to the accumulators' shape (a bias), from a place known before the loop.
bool is_read_ahead(const GraphAnalysis& analysis, const WarpSpecialization& how, Id id);

/// The loads in the loop that its computed operands take rows, columns or numbers from.
std::vector<Id> loaded_rows(const GraphAnalysis& analysis, const WarpSpecialization& how);

/// Does the carried value `argument` of a loop start from zeros?
bool starts_from_zeros(const GraphAnalysis& analysis, Id loop, Id argument);

/// The layout of the accumulators, or of their transposes.
Layout layout_of_result(const Layout& accumulators, bool transposed);

class WarpSpecializedSchedule : public KernelSchedule {
 public:
  explicit WarpSpecializedSchedule(WarpSpecialization how) : how_(std::move(how)) {}

  std::string text(const GraphAnalysis& analysis) const override;
  std::vector<Role> roles() const override;
  MatmulPlans matmuls(const GraphAnalysis& analysis) const override;
  void lower(const GraphAnalysis& analysis, const MatmulPlans& matmuls, const Layouts& layouts,
             const std::set<Id>& left_in_memory, Plan& plan) const override;
  SplitK split_k() const override { return how_.split_k; }
  bool reads_ahead() const override { return how_.reads_ahead; }

 private:
  WarpSpecialization how_;
};

}  // namespace tessera::internal::lowering
