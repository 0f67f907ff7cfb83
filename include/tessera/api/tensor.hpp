// Typed tensors: device memory with extents and strides.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tessera/graph/argument.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/jit/copy_tensor.hpp"
#include "tessera/jit/device.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

namespace detail {
// Values in R levels of nested braces.
template <class V, int R>
struct Braces {
  using type = std::initializer_list<typename Braces<V, R - 1>::type>;
};
template <class V>
struct Braces<V, 0> {
  using type = V;
};
[[noreturn]] inline void refuse_ragged(std::span<const std::int64_t> place, std::size_t size, std::int64_t expected) {
  std::string text;
  for (std::int64_t i : place) text += (text.empty() ? "" : ",") + std::to_string(i);
  throw Error("the values of a tensor are ragged: row [" + text + "] has " + std::to_string(size) +
              " elements, and those before it have " + std::to_string(expected));
}

[[noreturn]] inline void refuse_filling(ElementType type, const std::string& value) {
  throw Error("a tensor of " + std::string(name(type)) + " cannot be filled "
                                                         "with " + value + ", which is out of its range");
}
// The bits of a number as an element.
template <Stored T, class N>
std::uint64_t filling(N number) {
  constexpr bool is_pred = std::is_same_v<T, pred>;
  constexpr bool is_number =
      std::is_arithmetic_v<N> && !is_pred && !std::is_same_v<N, bool> && !std::is_same_v<N, char>;
  constexpr bool is_integer = info(element_type<T>).kind == ElementKind::integer;
  static_assert(is_number || std::is_same_v<N, T> || (is_pred && std::is_same_v<N, bool>),
                "tessera: a tensor is filled with a number, one of pred with true or false");
  static_assert(!is_number || !is_integer || std::is_integral_v<N>,
                "tessera: a tensor of integers is filled with an integer; convert the number first");
  T element{};
  if constexpr (std::is_same_v<N, T> || is_pred) {
    element = number;
  } else if constexpr (is_number && is_integer && std::is_integral_v<N>) {
    if (!std::in_range<T>(number)) refuse_filling(element_type<T>, text_of(number));
    element = static_cast<T>(number);
  } else if constexpr (is_number && !is_integer) {
    using Held = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
    element = static_cast<T>(number);
    // fp8 types saturate, so compare with their largest number.
    const auto most = static_cast<Held>(static_cast<T>(std::numeric_limits<Held>::max()));
    const auto given = static_cast<long double>(number);
    if (std::isfinite(given) && (std::isinf(static_cast<Held>(element)) ||
                                 (!std::is_arithmetic_v<T> && std::abs(given) > static_cast<long double>(most))))
      refuse_filling(element_type<T>, text_of(number));
  }
  std::uint64_t bits = 0;
  std::memcpy(&bits, &element, sizeof element);
  return bits;
}
}  // namespace detail

/// A tensor of element type T and rank R. It is a handle: copies share the memory. It owns its memory, or refers to
/// memory of the user. An axis is in [-R, R) everywhere: negative ones count from the last.
///
/// Copies and fills without a stream run after all work of the devices, and are done when the call returns. With a
/// stream they are enqueued in its order, and may be recorded.
template <class T, int R>
class Tensor {
  static_assert(detail::check_stored<T>());
  static_assert(R >= 1 && R <= max_rank, "tessera: a tensor has 1 to 6 axes");

 public:
  using type = T;
  static constexpr int rank = R;
  template <class I>
  T operator[](const I&) const {
    static_assert(std::is_same_v<I, void>,
                  "tessera: a Tensor has no [ ], because its memory may be on a GPU: to_vector() and copy_to read its "
                  "elements, copy_from and fill write them");
    return T();
  }
  using Extents = std::array<std::int64_t, R>;

  /// No memory, no device, and all extents 0.
  Tensor() = default;
  /// New memory, row-major, contents undefined.
  Tensor(const Device& device, const Extents& extents) : Tensor(detail::new_tensor(device, element_type<T>, extents)) {}
  template <std::size_t N>
  Tensor(const Device& device, const std::int64_t (&extents)[N]) : Tensor(device, all_axes(extents)) {}
  /// Use of() for values.
  template <class V>
  Tensor(const Device&, std::initializer_list<std::initializer_list<V>>) {
    static_assert(!std::is_same_v<V, V>,
                  "tessera: a tensor is constructed from its extents; Tensor<T, R>::of makes one from values in "
                  "braces");
  }
  /// Memory of the user on the device; strides in elements. It, or `owner`, must live as long as launches use it.
  Tensor(const Device& device, T* data, const Extents& extents, const Extents& strides,
         std::shared_ptr<void> owner = nullptr)
      : Tensor(detail::tensor_over(device, element_type<T>, data, extents, strides, std::move(owner))) {}
  template <std::size_t N, std::size_t M>
  Tensor(const Device& device, T* data, const std::int64_t (&extents)[N], const std::int64_t (&strides)[M],
         std::shared_ptr<void> owner = nullptr)
      : Tensor(device, data, all_axes(extents), all_axes(strides), std::move(owner)) {}
  /// From a tensor whose type is known only at run time. Error if the element type or the rank differs.
  explicit Tensor(detail::AnyTensor tensor) {
    detail::expect(tensor, element_type<T>, R);
    device_ = std::move(tensor.device), memory_ = std::move(tensor.memory);
    data_ = static_cast<T*>(tensor.place.data);
    std::copy_n(tensor.place.extent.begin(), R, extents_.begin());
    std::copy_n(tensor.place.stride.begin(), R, strides_.begin());
  }
  /// From values in as many levels of nested braces as there are axes: `Tensor<f32, 2>::of(device, {{1, 2}, {3, 4}})`.
  /// Values of f16, bf16 and fp8 are written as doubles, of pred as true and false. Error if rows differ in length.
  using Braces =
      typename detail::Braces<std::conditional_t<std::is_arithmetic_v<T> || std::is_same_v<T, pred>, T, double>,
                              R>::type;
  static Tensor of(const Device& device, Braces values) {
    Extents extents, place{};
    extents.fill(-1);
    std::vector<T> flat;
    collect<0>(values, extents, place, flat);
    for (std::int64_t& extent : extents) extent = std::max<std::int64_t>(extent, 0);  // after an axis without elements
    const Tensor tensor(device, extents);
    tensor.copy_from(flat);
    return tensor;
  }

  template <class V>
  requires(R > 1 && std::is_arithmetic_v<V>) static Tensor of(const Device&, std::initializer_list<V>) {
    static_assert(
        R == 1,
        "tessera: the values of a tensor need as many levels of braces as it has axes: Tensor<f32, 2>::of(device, {{1, "
        "2}, {3, 4}})");
    return {};
  }

  static Extents row_major(const Extents& extents) {
    Extents strides{};
    detail::row_major(extents, strides);
    return strides;
  }

  const Extents& extents() const { return extents_; }
  const Extents& strides() const { return strides_; }
  std::int64_t extent(int axis) const { return extents_[detail::axis_of(axis, R)]; }
  std::int64_t stride(int axis) const { return strides_[detail::axis_of(axis, R)]; }
  std::int64_t size() const {
    std::int64_t size = 1;
    for (std::int64_t extent : extents_) size *= extent;
    return size;
  }
  /// An address on the device.
  T* data() const { return data_; }
  /// The owner of the memory; null if the memory is the user's.
  const std::shared_ptr<void>& memory() const { return memory_; }

  /// Copies host values in row-major order, as many as there are elements, and back. Strides are arbitrary.
  void copy_from(std::span<const T> values) const { detail::copy_in(any(), values.data(), values.size()); }
  template <class U>
  requires(!std::is_same_v<U, T>)
  void copy_from(const std::vector<U>&) const {
    static_assert(std::is_same_v<U, T>,
                  "tessera: values are copied without conversion; convert values of another element type first");
  }
  void copy_to(std::span<T> values) const { detail::copy_out(values.data(), values.size(), any()); }
  std::vector<T> to_vector() const {
    std::vector<T> values(static_cast<std::size_t>(size()));
    copy_to(values);
    return values;
  }
  /// Copies all elements of another tensor with the same extents and any strides. Without a stream it may be on another
  /// device, and share memory with this tensor.
  template <Stored U, int S>
  void copy_from(const Tensor<U, S>& other) const {
    if constexpr (check_alike<U, S>()) detail::copy(any(), other.any());
  }
  template <Stored U, int S>
  void copy_from(const Tensor<U, S>& other, const Stream& stream) const {
    if constexpr (check_alike<U, S>()) detail::copy(any(), other.any(), &stream);
  }
  /// Sets all elements to one number. Error if it is out of the type's range.
  template <class N>
  void fill(N number) const {
    detail::fill(any(), detail::filling<T>(number));
  }
  template <class N>
  void fill(N number, const Stream& stream) const {
    detail::fill(any(), detail::filling<T>(number), &stream);
  }
  /// This tensor if it is on the device, else a dense copy there.
  Tensor to(const Device& other) const { return device() == other ? *this : Tensor(detail::dense(any(), other)); }
  /// This tensor if its elements are in row-major order without gaps, else a copy whose elements are.
  Tensor dense() const { return Tensor(detail::dense(any(), device())); }
  bool is_dense() const { return any().is_dense(); }

  /// The part [start, start + extent) along an axis, over the same memory. Error if it is out of range.
  Tensor slice(int axis, std::int64_t start, std::int64_t extent) const {
    return Tensor(detail::sliced(any(), axis, start, extent));
  }
  /// Axis i of the result is axis order[i]; over the same memory. Error if an axis is named twice.
  template <std::size_t N>
  Tensor permuted(const int (&order)[N]) const {
    static_assert(N == R, "tessera: permuted must name each axis of the tensor once");
    return Tensor(detail::permuted(any(), order));
  }
  /// Exchanges the last two axes; over the same memory.
  Tensor transposed() const {
    static_assert(R >= 2, "tessera: transposed takes a tensor of rank 2 or more");
    int order[R];
    for (int axis = 0; axis < R; ++axis) order[axis] = axis;
    if constexpr (R >= 2) std::swap(order[R - 1], order[R - 2]);
    return permuted(order);
  }

  /// The elements of a dense tensor with other extents, one of which may be -1; over the same memory.
  template <std::size_t S>
  Tensor<T, static_cast<int>(S)> reshaped(const std::array<std::int64_t, S>& extents) const {
    return Tensor<T, static_cast<int>(S)>(detail::reshaped(any(), extents));
  }
  template <std::size_t S>
  Tensor<T, static_cast<int>(S)> reshaped(const std::int64_t (&extents)[S]) const {
    return Tensor<T, static_cast<int>(S)>(detail::reshaped(any(), extents));
  }

  /// As a launch argument.
  Argument argument() const {
    Argument argument;
    argument.data = data_;
    for (std::size_t axis = 0; axis < R; ++axis)
      argument.extent[axis] = extents_[axis], argument.stride[axis] = strides_[axis];
    return argument;
  }
  /// As a tensor whose type is known only at run time.
  detail::AnyTensor any() const { return {element_type<T>, R, argument(), device_, memory_}; }
  /// Only for a tensor that has memory.
  bool has_device() const { return device_.has_value(); }
  /// Error if the tensor has no memory.
  const Device& device() const {
    if (!device_) throw Error("a tensor without memory has no device; make one with Device::tensor");
    return *device_;
  }

 private:
  template <std::size_t N>
  static Extents all_axes(const std::int64_t (&numbers)[N]) {
    static_assert(N == R, "tessera: a tensor takes an extent for each axis, and a stride for each if strides are "
                          "given");
    Extents all{};
    std::copy_n(numbers, std::min<std::size_t>(N, R), all.begin());
    return all;
  }
  template <class U, int S>
  static constexpr bool check_alike() {
    static_assert(std::is_same_v<T, U>, "tessera: a tensor is copied from one of the same element type; cast in a "
                                        "kernel");
    static_assert(R == S, "tessera: a tensor is copied from one of the same rank; reshape the other");
    return std::is_same_v<T, U> && R == S;
  }
  template <std::size_t axis, class V>
  static void collect(const std::initializer_list<V>& row, Extents& extents, Extents& place, std::vector<T>& values) {
    if (extents[axis] < 0) extents[axis] = static_cast<std::int64_t>(row.size());
    if (static_cast<std::size_t>(extents[axis]) != row.size())
      detail::refuse_ragged({place.data(), axis}, row.size(), extents[axis]);
    place[axis] = 0;
    for (const V& element : row) {
      if constexpr (axis + 1 == R)
        values.push_back(T(element));
      else
        collect<axis + 1>(element, extents, place, values);
      ++place[axis];
    }
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
template <class T, std::size_t R>
auto Device::tensor(const std::int64_t (&extents)[R], std::span<const T> values) const {
  const Tensor<T, static_cast<int>(R)> tensor(*this, std::to_array(extents));
  tensor.copy_from(values);
  return tensor;
}

}  // namespace internal
}  // namespace tessera
