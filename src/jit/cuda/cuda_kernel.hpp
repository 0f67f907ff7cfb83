// The launch path of CUDA kernels.
#pragma once
#include <array>

#include "codegen/schedule/split_k.hpp"
#include "jit/backend/lock_free_list.hpp"
#include "jit/cuda/cuda_stream.hpp"
#include "jit/cuda/tensor_maps.hpp"

namespace tessera::internal {

/// A kernel on one GPU: code for each class of launches that there has been. Finding it takes a few comparisons of
/// small integers.
class CudaKernel final : public DeviceKernel {
 public:
  CudaKernel(std::shared_ptr<CudaBackend> device, const Graph& graph);
  void launch(StreamBackend& stream, std::span<const Argument> arguments, std::span<const std::int64_t> grid) override;

 private:
  /// A parameter, other than a tensor map, and where it lies in the block of parameters.
  struct Slot {
    KernelParameter parameter;
    std::size_t offset, bytes;
  };
  struct Code {
    const LoadedCode* loaded;
    std::vector<Slot> slots;
    std::unique_ptr<TensorMaps> maps;  // null: none
    std::vector<std::size_t> offsets;  // with maps, of all parameters
    std::size_t parameter_bytes;
    unsigned threads, shared_bytes;
    std::int64_t workspace_bytes;  // of a block in flight
    std::int64_t most_blocks;      // of one launch
    bool early;                    // begins while the kernel before ends
    SplitK split_k;
    std::vector<int> prefetched_before_wait;                    // tensors
    std::array<int, most_blocks_of_cluster + 1> most_clusters;  // at a time, by how many blocks they have; 0: none
  };
  /// The parameters that a launch adds to arguments and grid.
  struct Part {
    std::int64_t blocks, at_once;
    cuda::CUdeviceptr workspace, flags, reports;
    int lockstep_rows;
    bool ahead;
  };
  /// What a launch is of: blocks of the grid, each of which so many blocks of threads share; or so many share all.
  struct Blocks {
    std::int64_t count;
    int cluster = 1;
    std::int64_t split_k = 0;  // 0: none
    int lockstep_rows = 1;
  };

  Code make(const Variant& variant) const;
  static void fill(const Code& code, std::span<const Argument> arguments, std::span<const std::int64_t> grid,
                   const Part& part, std::byte* block);
  void launch(const Code& code, CudaStream& stream, std::span<const Argument> arguments,
              std::span<const std::int64_t> grid, Blocks blocks);
  /// Of a kernel in CUDA C++.
  void launch_text(CudaStream& stream, std::span<const Argument> arguments, std::span<const std::int64_t> numbers);
  static Blocks blocks_of(const Code& code, std::int64_t blocks, const SplitKLaunch& shared);
  /// As many blocks a cluster as keep all clusters of a launch at work at the same time, at most `most`.
  static int blocks_at_once(const Code& code, std::int64_t blocks, int most);
  cuda::CUresult start(const Code& code, CudaStream& stream, unsigned blocks, unsigned cluster, bool early, void** each,
                       void** extra) const;

  std::shared_ptr<CudaBackend> device_;
  const Graph& graph_;
  const std::vector<TileReach> reaches_;
  const SplitKLoop k_iterations_;
  const int most_of_cluster_;      // as the kernel's hints say; 0: nothing
  const cuda::CUdeviceptr board_;  // on which it tells the host; 0: it tells nothing
  LockFreeList<Variant, Code> codes_;
};

}  // namespace tessera::internal
