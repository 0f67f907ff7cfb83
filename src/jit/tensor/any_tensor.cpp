#include "tessera/jit/any_tensor.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/graph/error.hpp"

namespace tessera::internal::detail {
namespace {

std::string list(std::span<const std::int64_t> numbers) { return fmt::format("[{}]", fmt::join(numbers, ",")); }

void set(AnyTensor& tensor, std::span<const std::int64_t> extents) {
  const auto negative = std::ranges::find_if(extents, [](std::int64_t extent) { return extent < 0; });
  if (negative != extents.end())
    throw Error(fmt::format("a tensor {} {} has a negative extent, {}", name(tensor.type), list(extents), *negative));
  tensor.rank = static_cast<int>(extents.size());
  std::ranges::copy(extents, tensor.place.extent.begin());
  std::int64_t bytes = info(tensor.type).bytes;
  if (std::ranges::find(extents, 0) != extents.end()) return;
  for (const std::int64_t extent : extents)
    if (__builtin_mul_overflow(bytes, extent, &bytes))
      throw Error(fmt::format("a tensor {} {} would have more than 2^63 bytes", name(tensor.type), list(extents)));
}

}  // namespace

std::int64_t AnyTensor::size() const {
  std::int64_t size = 1;
  for (const std::int64_t extent : extents()) size *= extent;
  return size;
}

bool AnyTensor::is_dense() const {
  std::int64_t dense = 1;
  for (std::size_t axis = extents().size(); axis-- > 0; dense *= place.extent[axis]) {
    if (place.extent[axis] == 0) return true;
    if (place.extent[axis] != 1 && place.stride[axis] != dense) return size() == 0;
  }
  return true;
}

std::string AnyTensor::text() const {
  const std::string text = fmt::format("{} {}", name(type), list(extents()));
  return is_dense() ? text : fmt::format("{} with strides {}", text, list(strides()));
}

void row_major(std::span<const std::int64_t> extents, std::span<std::int64_t> strides) {
  std::uint64_t stride = 1;  // wraps around where the size does not fit; such a tensor is rejected elsewhere
  for (std::size_t axis = extents.size(); axis-- > 0; stride *= static_cast<std::uint64_t>(extents[axis]))
    strides[axis] = static_cast<std::int64_t>(stride);
}

AnyTensor new_tensor(const Device& device, ElementType type, std::span<const std::int64_t> extents) {
  AnyTensor tensor{.type = type, .rank = 0, .place = {}, .device = device, .memory = {}};
  set(tensor, extents);
  row_major(extents, tensor.place.stride);
  tensor.memory = device.allocate(tensor.bytes());
  tensor.place.data = tensor.memory.get();
  return tensor;
}

AnyTensor tensor_over(const Device& device, ElementType type, void* data, std::span<const std::int64_t> extents,
                      std::span<const std::int64_t> strides, std::shared_ptr<void> owner) {
  AnyTensor tensor{.type = type, .rank = 0, .place = {}, .device = device, .memory = std::move(owner)};
  set(tensor, extents);
  std::ranges::copy(strides, tensor.place.stride.begin());
  tensor.place.data = data;
  if (!data && tensor.size() > 0) throw Error(fmt::format("a tensor {} is given no memory", tensor.text()));
  if (reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(info(type).bytes) != 0)
    throw Error(fmt::format("the memory of a tensor {} at {} is not aligned to its elements of {} bytes", tensor.text(),
                            data, info(type).bytes));
  return tensor;
}

std::size_t axis_of(int axis, int rank) {
  if (axis < -rank || axis >= rank)
    throw Error(fmt::format("a tensor of rank {} has no axis {}; axes are {} to {}", rank, axis, -rank, rank - 1));
  return static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
}

AnyTensor sliced(AnyTensor tensor, int axis, std::int64_t start, std::int64_t extent) {
  const std::size_t i = axis_of(axis, tensor.rank);
  const std::int64_t whole = tensor.place.extent[i];
  if (start < 0 || extent < 0 || start > whole || extent > whole - start)
    throw Error(fmt::format("a slice of {} elements from {} on along axis {} is outside of its tensor {}", extent,
                            start, axis, tensor.text()));
  tensor.place.data =
      static_cast<std::byte*>(tensor.place.data) + start * tensor.place.stride[i] * info(tensor.type).bytes;
  tensor.place.extent[i] = extent;
  return tensor;
}

AnyTensor permuted(const AnyTensor& tensor, std::span<const int> order) {
  AnyTensor view = tensor;
  unsigned named = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t axis = axis_of(order[i], tensor.rank);
    view.place.extent[i] = tensor.place.extent[axis];
    view.place.stride[i] = tensor.place.stride[axis];
    if (named >> axis & 1)
      throw Error(fmt::format("the permutation of a tensor {} is [{}], which names axis {} twice; name each axis once",
                              tensor.text(), fmt::join(order, ","), axis));
    named |= 1u << axis;
  }
  return view;
}

AnyTensor reshaped(const AnyTensor& tensor, std::span<const std::int64_t> extents) {
  const auto refuse = [&](std::string_view why) {
    throw Error(fmt::format("cannot reshape a tensor {} to {}: {}", tensor.text(), list(extents), why));
  };
  std::array<std::int64_t, max_rank> given{};
  std::ranges::copy(extents, given.begin());
  const std::span all(given.data(), extents.size());
  if (const auto open = std::ranges::find(all, -1); open != all.end()) {
    std::int64_t others = 1;
    for (std::int64_t& extent : all) {
      if (&extent == &*open) continue;
      if (extent == -1) refuse("only one extent may be -1");
      if (extent < 0) refuse("an extent is negative");
      if (__builtin_mul_overflow(others, extent, &others)) refuse("the number of elements differs");
    }
    if (others == 0 && all.size() > 1) refuse("an extent of -1 is ambiguous beside an extent of 0");
    if (tensor.size() % others != 0) refuse(fmt::format("{} elements are not a multiple of {}", tensor.size(), others));
    *open = tensor.size() / others;
  }
  AnyTensor view = tensor;
  set(view, all);
  if (view.size() != tensor.size()) refuse(fmt::format("{} elements are not {}", tensor.size(), view.size()));
  if (!tensor.is_dense()) refuse("it is not dense; reshape the copy that dense() makes");
  row_major(all, view.place.stride);
  return view;
}

std::string text_of(long double number) {
  const auto rounded = static_cast<double>(number);
  return static_cast<long double>(rounded) == number ? fmt::format("{}", rounded) : fmt::format("{}", number);
}

void expect(const AnyTensor& tensor, ElementType type, int rank) {
  if (tensor.type != type || tensor.rank != rank)
    throw Error(fmt::format("a tensor {}, of rank {}, is used as a Tensor<{}, {}>", tensor.text(), tensor.rank,
                            name(type), rank));
}

}  // namespace tessera::internal::detail
