// Element types: their C++ names, their properties, and how a single number of each is held on the host.
#pragma once
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

enum class ElementType : std::uint8_t {
#define TYPE(name, ...) name,
#include "tessera/graph/types.def"
};

enum class ElementKind : std::uint8_t { real, integer, logical };

/// How a value of an element type is held outside of tensors: each narrow floating-point type as a float of the same
/// value, narrow integers and pred (0 or 1) as an i32.
enum class HostType : std::uint8_t { f32, f64, i32, i64, u32, u64 };

struct ElementInfo {
  std::string_view name;
  int bytes;
  ElementKind kind;
  HostType held;
  bool computes, stored, multiplies;
  int dlpack;
};

namespace detail {
inline constexpr ElementInfo element_table[] = {
#define TYPE(name, bytes, kind, held, computes, stored, multiplies, dlpack) \
  {#name, bytes, ElementKind::kind, HostType::held, computes, stored, multiplies, dlpack},
#include "tessera/graph/types.def"
};
}  // namespace detail

constexpr const ElementInfo& info(ElementType type) { return detail::element_table[static_cast<int>(type)]; }
constexpr std::string_view name(ElementType type) { return info(type).name; }
/// Can the bits of one type, as stored in a tensor, be reinterpreted as the other? A pred has no bits of its own.
constexpr bool bitcasts(ElementType from, ElementType to) {
  const auto has_bits = [](ElementType type) { return info(type).stored && info(type).kind != ElementKind::logical; };
  return has_bits(from) && has_bits(to) && info(from).bytes == info(to).bytes;
}

using f32 = float;
using f64 = double;
using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;
using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

namespace detail {
/// Converts a number through To to a type that is narrower still, so that it is rounded once: if To cannot hold it
/// exactly, the result is the neighbor in To with an odd last bit ("round to odd", Boldo and Melquiond, 2008).
template <std::floating_point To, std::floating_point From>
To to_odd(From x) {
  using Bits = std::conditional_t<sizeof(To) == 4, std::uint32_t, std::uint64_t>;
  const To nearest = static_cast<To>(x);
  const From back = static_cast<From>(nearest);
  const Bits bits = std::bit_cast<Bits>(nearest);
  // Truncated, then made odd. An infinity that results from rounding becomes the largest number, which is odd.
  const Bits cut = std::fabs(back) > std::fabs(x) ? bits - 1 : bits;
  return back == x || x != x ? nearest : std::bit_cast<To>(cut | 1);
}
template <class N>
concept NarrowedByFloat = std::is_arithmetic_v<N> && !std::same_as<N, float>;
template <NarrowedByFloat N>
float to_be_narrowed(N number) {
  if constexpr (std::floating_point<N>)
    return to_odd<float>(number);
  else
    return to_odd<float>(static_cast<long double>(number));  // long double holds any integer
}
}  // namespace detail

// The narrow floating-point types, which are only stored. A number of any type is rounded once, to nearest even.

/// IEEE 754 binary16.
struct f16 {
  std::uint16_t bits = 0;
  f16() = default;
  explicit f16(float value);
  template <detail::NarrowedByFloat N>
  explicit f16(N value) : f16(detail::to_be_narrowed(value)) {}
  explicit operator float() const;
};

/// The upper half of a binary32.
struct bf16 {
  std::uint16_t bits = 0;
  bf16() = default;
  explicit bf16(float value);
  template <detail::NarrowedByFloat N>
  explicit bf16(N value) : bf16(detail::to_be_narrowed(value)) {}
  explicit operator float() const;
};

/// 8 bits, 4 of exponent and 3 of fraction (OCP 8-bit floating point, 2023): no infinity, the largest number is 448.
/// Larger numbers and infinities become 448.
struct f8e4m3 {
  std::uint8_t bits = 0;
  f8e4m3() = default;
  explicit f8e4m3(float value);
  template <detail::NarrowedByFloat N>
  explicit f8e4m3(N value) : f8e4m3(detail::to_be_narrowed(value)) {}
  explicit operator float() const;
};

/// 8 bits, 5 of exponent and 2 of fraction: the upper half of a binary16; the largest number is 57344. Larger finite
/// numbers become 57344, an infinity stays an infinity.
struct f8e5m2 {
  std::uint8_t bits = 0;
  f8e5m2() = default;
  explicit f8e5m2(float value);
  template <detail::NarrowedByFloat N>
  explicit f8e5m2(N value) : f8e5m2(detail::to_be_narrowed(value)) {}
  explicit operator float() const;
};

/// The operand type of tensor cores with 10 bits of fraction: exists in tiles only, made by cast.
struct tf32;
/// The result of a comparison. A tensor holds it as a byte, like a bool of PyTorch and NumPy: 1 is written; any number
/// but 0 is read as true.
struct pred {
  std::uint8_t bits = 0;
  pred() = default;
  constexpr pred(bool holds) : bits(holds) {}
  constexpr operator bool() const { return bits != 0; }
};

namespace detail {
template <class T>
struct ElementOf {};
#define TYPE(name, ...)                                     \
  template <>                                               \
  struct ElementOf<name> {                                  \
    static constexpr ElementType value = ElementType::name; \
  };
#include "tessera/graph/types.def"
template <ElementType type>
struct TypeOf;
#define TYPE(name, ...)              \
  template <>                        \
  struct TypeOf<ElementType::name> { \
    using type = name;               \
  };
#include "tessera/graph/types.def"
template <class T>
inline constexpr bool is_element = requires {
  ElementOf<T>::value;
};
}  // namespace detail
/// An element type: a line of types.def.
template <class T>
concept Element = detail::is_element<T>;  // a constant, not a requirement: GCC explains it in fewer lines
template <Element T>
inline constexpr ElementType element_type = detail::ElementOf<T>::value;
namespace detail {
template <Element T>
inline constexpr bool is_computing = info(element_type<T>).computes;
template <Element T>
inline constexpr bool is_stored = info(element_type<T>).stored;
}  // namespace detail
template <class T>
concept Computing = Element<T> && detail::is_computing<T>;
/// An element type of tensors: all but tf32.
template <class T>
concept Stored = Element<T> && detail::is_stored<T>;

constexpr HostType host_type(ElementType type) { return info(type).held; }

namespace detail {
// Errors that list the types with a property, from the table.
#define TESSERA_IF_true(text) text
#define TESSERA_IF_false(text)
template <class T>
constexpr bool check_stored() {
  static_assert(Stored<T>, "tessera: the element types of tensors are"
#define TYPE(name, bytes, kind, held, computes, stored, multiplies, ...) TESSERA_IF_##stored(" " #name)
#include "tessera/graph/types.def"
  );
  return true;
}
template <Element T>
constexpr bool check_multiplies() {
  static_assert(info(element_type<T>).multiplies, "tessera: the operand types of mma are"
#define TYPE(name, bytes, kind, held, computes, stored, multiplies, ...) TESSERA_IF_##multiplies(" " #name)
#include "tessera/graph/types.def"
  );
  return true;
}
#undef TESSERA_IF_true
#undef TESSERA_IF_false
}  // namespace detail

/// Does Tessera use tensor core instructions for operands of the type?
constexpr bool has_matrix_units(ElementType factor) {
  return factor == ElementType::f16 || factor == ElementType::bf16 || factor == ElementType::tf32 ||
         factor == ElementType::i8 || factor == ElementType::u8;
}
/// Floating-point numbers of 8 bits: f16 represents all of them.
constexpr bool is_fp8(ElementType type) { return info(type).kind == ElementKind::real && info(type).bytes == 1; }
/// Does it use wgmma of sm_90a for operands of the type as they are?
constexpr bool has_wgmma(ElementType factor) {
  return has_matrix_units(factor) || factor == ElementType::f8e4m3 || factor == ElementType::f8e5m2;
}
/// The accumulator type of mma for operands of a type: f32 for floating-point types of 32 bits or fewer, f64 for f64,
/// i32 for i8 and u8.
constexpr ElementType sum_type(ElementType factor) {
  if (info(factor).kind != ElementKind::real) return ElementType::i32;
  return factor == ElementType::f64 ? ElementType::f64 : ElementType::f32;
}

/// Calls body(T{}), where T is the C++ type that holds such values.
template <class Body>
constexpr decltype(auto) with_host(HostType type, Body&& body) {
  switch (type) {
    case HostType::f32:
      return body(float{});
    case HostType::f64:
      return body(double{});
    case HostType::i64:
      return body(std::int64_t{});
    case HostType::u32:
      return body(std::uint32_t{});
    case HostType::u64:
      return body(std::uint64_t{});
    case HostType::i32:
      break;
  }
  return body(std::int32_t{});
}
constexpr int host_bytes(HostType type) {
  return with_host(type, [](auto held) { return static_cast<int>(sizeof held); });
}

/// The least and the greatest number of an integer type or pred; the greatest is unsigned.
constexpr std::int64_t lowest(ElementType type) {
  const bool is_signed = name(type).front() == 'i';
  return is_signed ? std::numeric_limits<std::int64_t>::min() >> (64 - 8 * info(type).bytes) : 0;
}
constexpr std::uint64_t highest(ElementType type) {
  if (type == ElementType::pred) return 1;
  return ~std::uint64_t{0} >> (64 - 8 * info(type).bytes + (lowest(type) < 0 ? 1 : 0));
}

/// One number in host form; the element type that goes with it tells which member is active.
union Cell {
  std::int64_t i64 = 0;
  std::int32_t i32;
  std::uint32_t u32;
  std::uint64_t u64;
  float f32;
  double f64;
};
/// Converts between a T and the cell that holds it.
template <class T>
T value_in(const Cell& cell) {
  T value;
  std::memcpy(&value, &cell, sizeof value);
  return value;
}
template <class T>
Cell cell_of(T value) {
  Cell cell;
  std::memcpy(static_cast<void*>(&cell), &value, sizeof value);
  return cell;
}

/// A float rounded to f16, as a float. (The functions for bf16 and tf32 are inline, in math.hpp.)
float round_to_f16(float value);

}  // namespace internal
}  // namespace tessera
