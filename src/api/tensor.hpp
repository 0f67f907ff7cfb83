// Typed tensors: memory of a device with extents and strides.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "graph/argument.hpp"
#include "graph/error.hpp"
#include "jit/device.hpp"

namespace tessera {

/// A tensor of element type T and rank R, a handle: copies share the memory. It owns its memory, or looks at a user's.
template <Stored T, int R>
class Tensor {
  static_assert(R >= 1 && R <= max_rank, "tessera: a tensor has 1 to 6 axes");

 public:
  using type = T;
  static constexpr int rank = R;
  using Extents = std::array<std::int64_t, R>;

  /// No memory, of no device, and all extents 0.
  Tensor() = default;
  /// Fresh memory, row-major, contents undefined.
  Tensor(const Device& device, const Extents& extents)
      : device_(device), extents_(extents), strides_(row_major(extents)) {
    check_size();
    memory_ = device.allocate(static_cast<std::size_t>(size()) * sizeof(T));
    data_ = static_cast<T*>(memory_.get());
  }
  /// A user's memory of the device; strides in elements. It must live as long as launches use it, or `owner` must.
  Tensor(const Device& device, T* data, const Extents& extents, const Extents& strides,
         std::shared_ptr<void> owner = nullptr)
      : device_(device), memory_(std::move(owner)), data_(data), extents_(extents), strides_(strides) {
    check_size();
    if (!data && size() > 0) throw Error("a tensor is given no memory");
    if (reinterpret_cast<std::uintptr_t>(data) % alignof(T) != 0)
      throw Error("a tensor's memory is not aligned to its elements of " + std::to_string(sizeof(T)) + " bytes");
  }

  static Extents row_major(const Extents& extents) {
    Extents strides{};
    std::uint64_t stride = 1;  // wraps where the size does not fit, which check_size refuses
    for (std::size_t axis = R; axis-- > 0; stride *= static_cast<std::uint64_t>(extents[axis]))
      strides[axis] = static_cast<std::int64_t>(stride);
    return strides;
  }

  const Extents& extents() const { return extents_; }
  const Extents& strides() const { return strides_; }
  /// Of an axis in [-R, R), here and in slice(): negative ones count from the last.
  std::int64_t extent(int axis) const { return extents_[position(axis)]; }
  std::int64_t size() const {
    std::int64_t size = 1;
    for (std::int64_t extent : extents_) size *= extent;
    return size;
  }
  /// An address of the device.
  T* data() const { return data_; }
  /// What the memory goes with; null if it is a user's.
  const std::shared_ptr<void>& memory() const { return memory_; }

  /// Host values in row-major order into a dense tensor, and back.
  void copy_from(std::span<const T> values) const {
    check_dense(values.size());
    if (!values.empty()) device().copy_in(data_, values.data(), values.size_bytes());
  }
  void copy_to(std::span<T> values) const {
    check_dense(values.size());
    if (!values.empty()) device().copy_out(values.data(), data_, values.size_bytes());
  }
  std::vector<T> to_vector() const {
    std::vector<T> values(static_cast<std::size_t>(size()));
    copy_to(values);
    return values;
  }

  /// The part [start, start + extent) along an axis: the same memory.
  Tensor slice(int axis, std::int64_t start, std::int64_t extent) const {
    const std::size_t i = position(axis);
    if (start < 0 || extent < 0 || start > extents_[i] || extent > extents_[i] - start)
      throw Error("a slice lies outside of its tensor");
    Tensor part = *this;
    part.data_ += start * strides_[i];
    part.extents_[i] = extent;
    return part;
  }

  /// The same elements of a dense tensor in other extents: the same memory.
  template <std::size_t S>
  Tensor<T, static_cast<int>(S)> reshaped(const std::array<std::int64_t, S>& extents) const {
    check_dense(static_cast<std::size_t>(size()));
    Tensor<T, static_cast<int>(S)> view;
    view.extents_ = extents;
    view.check_size();
    view.strides_ = view.row_major(extents);
    view.device_ = device_, view.memory_ = memory_, view.data_ = data_;
    if (view.size() != size())
      throw Error("a tensor of " + std::to_string(size()) + " elements is reshaped to " + std::to_string(view.size()));
    return view;
  }

  /// As a launch is given it.
  Argument argument() const {
    Argument argument;
    argument.data = const_cast<std::remove_const_t<T>*>(data_);
    for (std::size_t axis = 0; axis < R; ++axis)
      argument.extent[axis] = extents_[axis], argument.stride[axis] = strides_[axis];
    return argument;
  }
  /// Not of a tensor that was given no memory.
  bool has_device() const { return device_.has_value(); }
  /// Error if it has none.
  const Device& device() const {
    if (!device_) throw Error("a tensor that was given no memory is of no device; make one with Device::tensor");
    return *device_;
  }

 private:
  template <Stored, int>
  friend class Tensor;

  static std::size_t position(int axis) {
    if (axis < -R || axis >= R)
      throw Error("a tensor of rank " + std::to_string(R) + " has no axis " + std::to_string(axis) + "; axes are " +
                  std::to_string(-R) + " to " + std::to_string(R - 1));
    return static_cast<std::size_t>(axis < 0 ? axis + R : axis);
  }
  void check_size() const {
    std::int64_t bytes = sizeof(T);
    for (std::int64_t extent : extents_)
      if (extent < 0) throw Error("a tensor has a negative extent");
    for (std::int64_t extent : extents_)
      if (extent == 0) return;
    for (std::int64_t extent : extents_)
      if (__builtin_mul_overflow(bytes, extent, &bytes)) throw Error("a tensor of more than 2^63 bytes is asked for");
  }
  void check_dense(std::size_t count) const {
    if (strides_ != row_major(extents_)) throw Error("only a dense tensor is copied as a whole; copy its parts");
    if (static_cast<std::int64_t>(count) != size())
      throw Error("a tensor of " + std::to_string(size()) + " elements cannot be copied from or to " +
                  std::to_string(count) + " values");
  }

  std::optional<Device> device_;
  std::shared_ptr<void> memory_;
  T* data_ = nullptr;
  Extents extents_{}, strides_ = row_major({});
};

template <class T, std::size_t R>
auto Device::tensor(const std::int64_t (&extents)[R]) const {
  return Tensor<T, static_cast<int>(R)>(*this, std::to_array(extents));
}

}  // namespace tessera
