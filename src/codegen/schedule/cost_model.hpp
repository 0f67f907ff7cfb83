// The one model of time: how long a launch of a wgmma matmul takes on a GPU, by its tile and by how CTAs share k. It
// answers choose() (which tile), a launch (split-K or not, and for how many CTAs) and the schedule (consumer groups).
#pragma once
#include <cstdint>
#include <limits>

#include "codegen/schedule/machine_model.hpp"
#include "codegen/target/variant.hpp"

namespace tessera::internal {

/// The work on an accumulator after the loop over k.
enum class Epilogue : std::uint8_t {
  plain,      ///< little: it is cast and stored
  activated,  ///< dozens of instructions
  residual,   ///< it is added to an element of memory
};

/// Do two warp groups share each tile, and store it together? Otherwise each of two consumer groups has tiles of its
/// own, and one multiplies while the other stores (ping-pong). A warp group holds at most 192 accumulators a thread; an
/// epilogue that computes leaves room for 128. `matmuls` of one loop have accumulators each.
bool is_cooperative(int m, int n, int matmuls = 1, Epilogue epilogue = Epilogue::plain);

/// A launch of a matmul.
struct MatmulWork {
  MmaExtents tile;
  std::int64_t rows = 1, tiles = 1;  ///< grid tiles along the first axis of the grid, and all of them
  std::int64_t k_iterations = 0;     ///< of each
  int right_alignment = 128;         ///< bytes that divide where rows of the right operand begin, at most 128
  // Known to choose() and not to a launch.
  Epilogue epilogue = Epilogue::plain;
  double rate = 0;        ///< as of MachineModel::Tile; 0: that of 16-bit operands
  bool promotes = false;  ///< fp8: a warp group has 64 rows, so that two share a tile of more
  // TMA loads no rows or columns that do not exist.
  std::int64_t left_rows = std::numeric_limits<std::int64_t>::max();
  std::int64_t right_columns = std::numeric_limits<std::int64_t>::max();
  bool left_aligned = true;  ///< its rows begin at 32-byte sectors
  double bytes = 0;          ///< of memory
};
/// That of y [m,n] = x [m,k] w, with w [k,n], or [n,k] if `nk`.
MatmulWork matmul_work(const MmaExtents& tile, std::int64_t m, std::int64_t n, std::int64_t k, bool nk = false);
/// The work as a launch knows it.
MatmulWork at_launch(const MatmulWork& work);

/// Policy for a launch: the fastest way, or one way wherever it is possible.
enum class SplitKPolicy : std::uint8_t { automatic, none, cluster, stream_k };

/// When clusters of CTAs load operands for each other: where that is faster, never, or wherever it is possible.
enum class MulticastPolicy : std::uint8_t { automatic, never, always };

/// How CTAs of a launch share work.
struct SplitKLaunch {
  SplitK split_k = SplitK::none;
  int blocks = 1;          ///< CTAs: of a cluster, or with stream-K of the launch
  int lockstep_rows = 1;   ///< stream-K: tiles that as many CTAs walk through together
  bool multicast = false;  ///< without split-K: clusters of two CTAs load the right operand for each other
  bool operator==(const SplitKLaunch&) const = default;
};

/// The size that every GPU with clusters supports (CUDA C++ Programming Guide, "Thread Block Clusters").
inline constexpr int most_blocks_of_cluster = 8;

class CostModel {
 public:
  /// Models a GPU with `multiprocessors`, each of which runs one CTA at a time.
  CostModel(const MachineModel& machine, int multiprocessors)
      : machine_(machine), multiprocessors_(multiprocessors < 1 ? 1 : multiprocessors) {}

  /// Cycles of a launch.
  double cycles(const MatmulWork& work, const SplitKLaunch& launch) const;
  /// The fastest way to share the work among CTAs that the policies allow.
  SplitKLaunch split_k(const MatmulWork& work, SplitKPolicy policy = SplitKPolicy::automatic,
                       MulticastPolicy multicast = MulticastPolicy::automatic) const;
  /// Can it pay off to split k? With many waves, the last one is a small part of the time.
  bool may_split(std::int64_t tiles) const { return tiles <= most_split_waves * multiprocessors_; }
  /// The time of `tiles` tiles of f32 by fused multiply-adds, in multiply-adds of one of the multiprocessor's units.
  double fma_cost(const MachineModel::FmaTile& tile, std::int64_t tiles) const;

 private:
  static constexpr std::int64_t most_split_waves = 8;

  double compute_cycles(const MatmulWork& work, const SplitKLaunch& launch) const;
  double k_iteration(const MatmulWork& work, bool multicast = false) const;
  double epilogue(const MatmulWork& work, int threads, bool in_turn = false) const;
  double cycles_of_cluster(const MatmulWork& work, int blocks) const;
  double cycles_of_stream_k(const MatmulWork& work, const SplitKLaunch& launch) const;
  SplitKLaunch none(const MatmulWork& work, MulticastPolicy policy) const;
  SplitKLaunch cluster(const MatmulWork& work, const SplitKLaunch& none) const;
  SplitKLaunch stream_k(const MatmulWork& work) const;
  /// The tiles of the multiprocessor that has the most of them.
  double waves(const MatmulWork& work, bool multicast) const;

  const MachineModel& machine_;
  const std::int64_t multiprocessors_;
};

/// The same launch with at most `most` CTAs; below two there is no split-K.
inline SplitKLaunch limited(const SplitKLaunch& launch, int most) {
  if (most < 2) return {};
  return {launch.split_k, launch.blocks < most ? launch.blocks : most, launch.lockstep_rows};
}

}  // namespace tessera::internal
