// A tensor whose element type and rank are known only at run time: the basis of Tensor<T, R>, DLPack and the C API.
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
  Argument place;                ///< address, extents and strides, for the first `rank` axes
  std::optional<Device> device;  ///< none: it has no memory
  std::shared_ptr<void> memory;  ///< the owner of the memory; null if it is the user's

  std::span<const std::int64_t> extents() const { return {place.extent.data(), static_cast<std::size_t>(rank)}; }
  std::span<const std::int64_t> strides() const { return {place.stride.data(), static_cast<std::size_t>(rank)}; }
  /// The number of elements.
  std::int64_t size() const;
  std::size_t bytes() const { return static_cast<std::size_t>(size()) * static_cast<std::size_t>(info(type).bytes); }
  /// Are its elements in row-major order, without a gap? Strides of axes of extent 1, and of empty tensors,
  /// are ignored.
  bool is_dense() const;
  Parameter parameter(Access access) const { return {access, type, rank}; }
  /// "f32 [2,3]", followed by "with strides [1,2]" if it is not dense.
  std::string text() const;
};

/// New memory, row-major, contents undefined. Error if an extent is negative, or if the size exceeds 2^63 bytes.
AnyTensor new_tensor(const Device& device, ElementType type, std::span<const std::int64_t> extents);
/// Existing memory; strides in elements. Error as above, and if it is null or not aligned to its elements.
AnyTensor tensor_over(const Device& device, ElementType type, void* data, std::span<const std::int64_t> extents,
                      std::span<const std::int64_t> strides, std::shared_ptr<void> owner);
/// Strides of a dense tensor.
void row_major(std::span<const std::int64_t> extents, std::span<std::int64_t> strides);

/// Normalizes an axis in [-rank, rank) to [0, rank).
std::size_t axis_of(int axis, int rank);

// Views: the same memory.

/// The elements [start, start + extent) along an axis.
AnyTensor sliced(AnyTensor tensor, int axis, std::int64_t start, std::int64_t extent);
/// Axis i of the result is axis order[i].
AnyTensor permuted(const AnyTensor& tensor, std::span<const int> order);
/// A dense tensor with other extents, one of which may be -1.
AnyTensor reshaped(const AnyTensor& tensor, std::span<const std::int64_t> extents);

/// A number for an error text, in as few digits as represent it: "1e+300", not 301 of them.
std::string text_of(long double number);
template <std::integral N>
std::string text_of(N number) {
  return std::to_string(number);
}

/// Error that names both unless the tensor has the type and the rank.
void expect(const AnyTensor& tensor, ElementType type, int rank);

}  // namespace detail
}  // namespace tessera::internal
