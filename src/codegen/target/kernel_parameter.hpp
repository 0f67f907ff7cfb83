// The parameters that a launch passes to a generated kernel.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "tessera/graph/element.hpp"

namespace tessera::internal {

/// A tensor map: TMA copies boxes of the tensor between global and shared memory, with the 128-byte swizzle. The launch
/// encodes it (CUDA Driver API, "cuTensorMapEncodeTiled").
struct TmaTensor {
  int argument = 0;
  std::array<std::int8_t, 5> axes{-1, -1, -1, -1, -1};  ///< axes of the tensor, fastest first; -1: no more axes
  std::array<int, 5> box{1, 1, 1, 1, 1};                ///< extents of a box in elements, in the same order
  bool clipped = false;  ///< except along the fastest axis, boxes are no longer than the tensor
  bool to_tf32 = false;  ///< f32 is converted to tf32 on its way to shared memory
  /// The element type of a box in shared memory, for a tensor of this element type.
  ElementType type(ElementType of_tensor) const { return to_tf32 ? ElementType::tf32 : of_tensor; }
  /// The extent of the box's axis `i`, for a tensor of this extent there.
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
    pointer,        ///< address of tensor `argument`: 8 bytes
    extent,         ///< extent of tensor `argument` along `axis`: int
    stride,         ///< stride of tensor `argument` along `axis`, in elements: long long with index64, else int
    scalar,         ///< value of scalar `argument`: 4 or 8 bytes, by its type
    grid,           ///< extent `axis` of the grid: int
    blocks,         ///< number of grid tiles, for persistent CTAs: type as of stride
    workspace,      ///< address of the launch's workspace: 8 bytes
    flags,          ///< address of a u32 for each CTA, all 0 before and after the launch: 8 bytes
    l2_group,       ///< grid tiles of all axes but `axis` that run together along it: int
    lockstep_rows,  ///< stream-K: tiles through whose k-iterations as many CTAs run in lockstep: int
    may_prefetch,   ///< may the kernel prefetch before earlier launches have ended: int, 0 or 1
    reports,        ///< address of the mailbox for host reports (graph/reports.hpp): 8 bytes
    tensor_map,     ///< tensor map number `argument`: 128 bytes
  };
  Kind kind{};
  int argument = 0, axis = 0;
  bool operator==(const KernelParameter&) const = default;
};

}  // namespace tessera::internal
