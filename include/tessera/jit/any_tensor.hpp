// A tensor whose element type and rank the compiler does not know: what lies behind Tensor<T, R>, DLPack and the C API.
#pragma once
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "tessera/graph/argument.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/jit/device.hpp"

namespace tessera::internal {
namespace [[gnu::visibility("default")]] detail {

/// A handle: copies share the memory.
struct AnyTensor {
  ElementType type{};
  int rank = 0;
  Argument place;                ///< address, extents and strides, of the first `rank` axes
  std::optional<Device> device;  ///< none: it was given no memory
  std::shared_ptr<void> memory;  ///< what the memory goes with; null if it is a user's

  std::span<const std::int64_t> extents() const { return {place.extent.data(), static_cast<std::size_t>(rank)}; }
  std::span<const std::int64_t> strides() const { return {place.stride.data(), static_cast<std::size_t>(rank)}; }
  /// Of elements.
  std::int64_t size() const;
  std::size_t bytes() const { return static_cast<std::size_t>(size()) * static_cast<std::size_t>(info(type).bytes); }
  /// Do its elements lie in row-major order, without a gap? Strides of single elements, and of none, mean nothing.
  bool is_dense() const;
  Parameter parameter(Access access) const { return {access, type, rank}; }
  /// "f32 [2,3]", and "with strides [1,2]" if it is not dense.
  std::string text() const;
};

/// Fresh memory, row-major, contents undefined. Error if an extent is negative, or the size is beyond 2^63 bytes.
AnyTensor new_tensor(const Device& device, ElementType type, std::span<const std::int64_t> extents);
/// Memory that there is; strides in elements. Error as above, and if it is null or not aligned to its elements.
AnyTensor tensor_over(const Device& device, ElementType type, void* data, std::span<const std::int64_t> extents,
                      std::span<const std::int64_t> strides, std::shared_ptr<void> owner);
/// Strides of a dense tensor.
void row_major(std::span<const std::int64_t> extents, std::span<std::int64_t> strides);

/// An axis in [-rank, rank) as one in [0, rank).
std::size_t axis_of(int axis, int rank);

// Views: the same memory.

/// The elements [start, start + extent) along an axis.
AnyTensor sliced(AnyTensor tensor, int axis, std::int64_t start, std::int64_t extent);
/// Axis i of the result is axis order[i].
AnyTensor permuted(const AnyTensor& tensor, std::span<const int> order);
/// A dense tensor in other extents, of which one may be -1.
AnyTensor reshaped(const AnyTensor& tensor, std::span<const std::int64_t> extents);

/// A number as an error says it, in as few digits as stand for it: "1e+300", not 301 of them.
std::string text_of(long double number);
template <std::integral N>
std::string text_of(N number) {
  return std::to_string(number);
}

/// Error that names both unless the tensor has the type and the rank.
void expect(const AnyTensor& tensor, ElementType type, int rank);

}  // namespace detail
}  // namespace tessera::internal
