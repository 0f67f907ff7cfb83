// The launch path of CUDA kernels.
#pragma once
#include <array>
#include <atomic>

#include "codegen/parameter_values.hpp"
#include "codegen/schedule/cost_model.hpp"
#include "codegen/schedule/split_k.hpp"
#include "jit/backend/lock_free_list.hpp"
#include "jit/cuda/cuda_stamps.hpp"
#include "jit/cuda/cuda_stream.hpp"
#include "jit/cuda/tensor_maps.hpp"

namespace tessera::internal {

/// A kernel on one GPU, with code for each variant that has been launched. Finding the code takes a few comparisons of
/// small integers.
class CudaKernel final : public DeviceKernel {
 public:
  CudaKernel(std::shared_ptr<CudaBackend> device, const Graph& graph);
  void launch(StreamBackend& stream, std::span<const Argument> arguments, std::span<const std::int64_t> grid) override;
  LaunchCode code(std::span<const Argument> arguments, std::span<const std::int64_t> grid) override;
  /// The properties of such a launch that its code depends on.
  Variant variant(std::span<const Argument> arguments, std::span<const std::int64_t> grid) const;
  cuda::CUdeviceptr board() const { return board_; }

 private:
  /// A parameter other than a tensor map, and its place in the parameter block.
  struct Slot {
    KernelParameter parameter;
    std::size_t offset, bytes;
  };
  struct Code {
    const LoadedCode* loaded;
    std::vector<Slot> slots;
    std::unique_ptr<TensorMaps> maps;  // null: none
    std::vector<std::size_t> offsets;  // of all parameters, if there are maps
    std::size_t parameter_bytes;
    bool index64;
    unsigned threads, shared_bytes;
    std::int64_t workspace_bytes;  // per CTA in flight
    std::int64_t most_blocks;      // CTAs of one launch, at most
    bool early;                    // PDL: begins while the previous kernel is ending
    SplitK split_k;
    int multicast;                             // CTAs of a cluster that load operands for each other; 1: none
    std::shared_ptr<const StampTable> stamps;  // null: its roles log nothing
    std::vector<int> prefetched_before_wait;   // indices of tensors
    std::array<int, most_blocks_of_cluster + 1> most_clusters;  // resident at a time, by CTAs per cluster; 0: none
  };
  /// The CTAs of a launch: a cluster of `cluster` CTAs for each of `count` grid tiles or, with multicast, pairs of
  /// them; or, for stream-K, `split_k` CTAs that share all grid tiles.
  struct Blocks {
    std::int64_t count;
    int cluster = 1;
    std::int64_t split_k = 0;  // 0: none
    int lockstep_rows = 1;
  };

  static std::uint64_t next_number();
  /// Such a launch in a profile.
  profile::Plan plan(const Code& code, std::span<const Argument> arguments, std::span<const std::int64_t> grid) const;
  Code make(const Variant& variant) const;
  /// Sets the variant of a launch of so many grid tiles; returns how it splits k.
  SplitKLaunch classify_launch(std::span<const Argument> arguments, std::span<const std::int64_t> grid,
                               std::int64_t blocks, Variant& variant) const;
  /// The code for a variant, which loses its multicast if the GPU has no room for a cluster.
  const Code& code_for(Variant& variant);
  /// The same for a thread that launches, whose time is counted.
  const Code& code_of_launch(Variant& variant);
  SplitKLaunch split_k_of(std::span<const Argument> arguments, std::span<const std::int64_t> grid,
                          std::int64_t blocks) const;
  void fill(const Code& code, std::span<const Argument> arguments, std::span<const std::int64_t> grid,
            const LaunchValues& values, std::byte* block) const;
  /// Returns the number of the launch in the profile; 0: it has none.
  std::uint64_t launch(const Code& code, CudaStream& stream, std::span<const Argument> arguments,
                       std::span<const std::int64_t> grid, Blocks blocks, const StampLog* log = nullptr);
  /// A launch whose roles log what they do. It ends before this returns.
  void launch_stamped(const Code& code, CudaStream& stream, std::span<const Argument> arguments,
                      std::span<const std::int64_t> grid, Blocks blocks);
  /// CTAs, or clusters, that a launch has; it may have fewer than grid tiles.
  static std::int64_t at_once(const Code& code, const Blocks& blocks);
  /// Launches a kernel written in CUDA C++.
  void launch_text(CudaStream& stream, std::span<const Argument> arguments, std::span<const std::int64_t> numbers);
  static Blocks blocks_of(const Code& code, std::span<const std::int64_t> grid, std::int64_t blocks,
                          const SplitKLaunch& shared);
  /// The number of CTAs per cluster, at most `most`, with which all clusters of a launch run at the same time.
  static int blocks_at_once(const Code& code, std::int64_t blocks, int most);
  unsigned shared_bytes(const Code& code, std::int64_t blocks, bool early) const;
  cuda::CUresult start(const Code& code, CudaStream& stream, unsigned blocks, unsigned cluster, bool early, void** each,
                       void** extra) const;

  std::shared_ptr<CudaBackend> device_;
  const Graph& graph_;
  const std::vector<TileReach> reaches_;
  const SplitKLoop k_iterations_;
  const std::uint64_t number_ = next_number();  // of this kernel alone, in this process
  const MachineModel& machine_;
  const Hints hints_;
  const cuda::CUdeviceptr board_;  // mailbox of its reports to the host; 0: it reports nothing
  const profile::LazySubject subject_;
  std::atomic<int> stamp_turns_{0};  // launches that might have been stamped
  LockFreeList<Variant, Code> codes_;
};

}  // namespace tessera::internal
