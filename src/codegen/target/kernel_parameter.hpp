// What a launch passes to a generated kernel.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "tessera/graph/element.hpp"

namespace tessera::internal {

/// A tensor of which sm_90's copy engine moves boxes between memory and shared memory, rows of which it permutes with
/// the swizzle of 128 bytes; the launch encodes it (CUDA Driver API, "cuTensorMapEncodeTiled").
struct TmaTensor {
  int argument = 0;
  std::array<std::int8_t, 5> axes{-1, -1, -1, -1, -1};  ///< of the tensor, fastest first; -1: no more
  std::array<int, 5> box{1, 1, 1, 1, 1};                ///< elements of a box, in the same order
  bool clipped = false;  ///< boxes are no longer than the tensor, but along the fastest axis
  bool to_tf32 = false;  ///< f32 becomes tf32 on its way to shared memory
  /// What a box of a tensor of such elements has in shared memory.
  ElementType type(ElementType of_tensor) const { return to_tf32 ? ElementType::tf32 : of_tensor; }
  /// Elements along the box's axis `i`, of a tensor of that extent there.
  int length(std::size_t i, std::int64_t extent) const {
    return clipped && i > 0 && extent < box[i] ? static_cast<int>(extent) : box[i];
  }
  bool operator==(const TmaTensor&) const = default;
};

/// The statement that waits for the previous launch: a text without it does not.
inline constexpr std::string_view grid_dependency_wait = "griddep_wait();";

/// One parameter of a generated kernel, in order; the launcher fills it in.
struct KernelParameter {
  enum class Kind : std::uint8_t {
    pointer,        ///< of tensor `argument`, 8 bytes
    extent,         ///< of tensor `argument` along `axis`: int
    stride,         ///< of tensor `argument` along `axis`, in elements: long long in a wide variant, else int
    scalar,         ///< of scalar `argument`: 4 or 8 bytes, as its type is
    grid,           ///< extent `axis` of the grid: int
    blocks,         ///< blocks of the whole grid, for persistent blocks: as stride
    workspace,      ///< address of the launch's workspace, 8 bytes
    flags,          ///< address of a u32 for each block of threads, all 0 before and after the launch, 8 bytes
    l2_group,       ///< blocks of all axes of the grid but `axis` that run together along it: int
    lockstep_rows,  ///< tiles that as many blocks of threads walk through together, where the grid shares rounds: int
    may_prefetch,   ///< may what a kernel brings ahead be brought before launches before it have ended: int, 0 or 1
    reports,        ///< address of the board on which the kernel tells the host (graph/reports.hpp), 8 bytes
    tensor_map,     ///< of boxed tensor `argument`: 128 bytes
  };
  Kind kind{};
  int argument = 0, axis = 0;
  bool operator==(const KernelParameter&) const = default;
};

}  // namespace tessera::internal
