// The parameters that a launch passes to a generated kernel.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "tessera/graph/element.hpp"

namespace tessera::internal {

/// The alignment of a tensor map in bytes (CUDA Driver API, CUtensorMap).
inline constexpr std::size_t tensor_map_alignment = 64;

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
#define KERNEL_PARAMETER(kind, bytes, type, name, value) kind,
#include "codegen/target/kernel_parameters.def"
  };
  Kind kind{};
  int argument = 0, axis = 0;
  bool operator==(const KernelParameter&) const = default;
};

}  // namespace tessera::internal
