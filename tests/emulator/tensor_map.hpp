// Tensor maps: the contents of a kernel's TensorMap in the emulator, and the rows of its boxes.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "codegen/target/kernel_parameter.hpp"
#include "tessera/graph/argument.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal::emulator {

struct BoxMap {
  static constexpr int most_axes = 5;
  using Coordinates = std::array<int, most_axes>;

  std::uint32_t mark = 0;
  std::uint16_t element_bytes = 0, axes = 0;
  char* base = nullptr;
  std::array<std::int64_t, most_axes> extent{}, stride{};  ///< fastest axis first; strides in bytes
  std::array<std::uint16_t, most_axes> box{};
  std::uint16_t to_tf32 = 0;  ///< f32 is converted to tf32 by the copy to shared memory

  int row_bytes() const { return box[0] * element_bytes; }
  int bytes() const;

  /// Calls visit(offset, row, first, end) for each row of the box at these coordinates: `offset` is the row's byte
  /// offset in shared memory, relative to the box; bytes [first, end) of it are in the tensor, from `row` on.
  template <class Visit>
  void each_row(const Coordinates& at, Visit&& visit) const {
    const int rows = bytes() / row_bytes();
    for (int r = 0; r < rows; ++r) {
      char* row = base;
      bool inside = true;
      for (std::size_t a = 1, rest = static_cast<std::size_t>(r); a < axes; rest /= box[a++]) {
        const std::int64_t i = at[a] + static_cast<std::int64_t>(rest % box[a]);
        inside &= i >= 0 && i < extent[a];
        row += i * stride[a];
      }
      const std::int64_t first = std::clamp<std::int64_t>(-std::int64_t{at[0]}, 0, box[0]);
      const std::int64_t end = inside ? std::clamp<std::int64_t>(extent[0] - at[0], first, box[0]) : first;
      visit(r * row_bytes(), row + (at[0] + first) * element_bytes, static_cast<int>(first) * element_bytes,
            static_cast<int>(end) * element_bytes);
    }
  }
};

/// The 128 bytes that are passed to a kernel. Throws InternalError for tensors that the hardware does not support (CUDA
/// Driver API, "cuTensorMapEncodeTiled").
using MapWords = std::array<std::uint64_t, 16>;
MapWords encode(const TmaTensor& tma_tensors, const Parameter& parameter, const Argument& argument);

/// The encoded map; with 0 axes if `map` is not one.
BoxMap decode(const void* map);

}  // namespace tessera::internal::emulator
