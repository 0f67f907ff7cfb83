// Element types: their C++ names, what they can do, and how one number of each is held on the host.
#pragma once
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace tessera {

enum class ElementType : std::uint8_t {
#define TYPE(name, ...) name,
#include "graph/types.def"
};

enum class ElementKind : std::uint8_t { real, integer, logical };

struct ElementInfo {
  std::string_view name;
  int bytes;
  ElementKind kind;
  bool computes, stored, multiplies;
};

namespace detail {
inline constexpr ElementInfo element_table[] = {
#define TYPE(name, bytes, kind, computes, stored, multiplies) \
  {#name, bytes, ElementKind::kind, computes, stored, multiplies},
#include "graph/types.def"
};
}  // namespace detail

constexpr const ElementInfo& info(ElementType type) { return detail::element_table[static_cast<int>(type)]; }
constexpr std::string_view name(ElementType type) { return info(type).name; }
/// May the bits of one, as a tensor holds them, be taken for the other?
constexpr bool bitcasts(ElementType from, ElementType to) {
  return info(from).stored && info(to).stored && info(from).bytes == info(to).bytes;
}

using f32 = float;
using i32 = std::int32_t;
using i64 = std::int64_t;
using u8 = std::uint8_t;

/// IEEE 754 binary16. Conversion from float rounds to nearest even.
struct f16 {
  std::uint16_t bits = 0;
  f16() = default;
  explicit f16(float value);
  explicit operator float() const;
};

/// The upper half of a binary32. Conversion from float rounds to nearest even.
struct bf16 {
  std::uint16_t bits = 0;
  bf16() = default;
  explicit bf16(float value);
  explicit operator float() const;
};

/// The operand type of tensor cores with 10 bits of fraction: exists in tiles only, made by cast.
struct tf32;
/// The result of a comparison: exists in tiles only.
struct pred;

namespace detail {
template <class T>
struct ElementOf {};
#define TYPE(name, ...)                                     \
  template <>                                               \
  struct ElementOf<name> {                                  \
    static constexpr ElementType value = ElementType::name; \
  };
#include "graph/types.def"
template <class T>
inline constexpr bool is_element = requires {
  ElementOf<T>::value;
};
}  // namespace detail
template <class T>
concept Element = detail::is_element<T>;  // a constant, not a requirement: GCC explains it in fewer lines
template <Element T>
inline constexpr ElementType element_type = detail::ElementOf<T>::value;
template <class T>
concept Computing = Element<T> && info(element_type<T>)
.computes;
template <class T>
concept Stored = Element<T> && info(element_type<T>)
.stored;

/// How a value of an element type is held outside of tensors: every narrow real as the float it stands for, u8 and
/// pred (0 or 1) as an int.
enum class HostType : std::uint8_t { f32, i32, i64 };
constexpr HostType host_type(ElementType type) {
  if (info(type).kind == ElementKind::real) return HostType::f32;
  return type == ElementType::i64 ? HostType::i64 : HostType::i32;
}
constexpr int host_bytes(HostType type) { return type == HostType::i64 ? 8 : 4; }

/// One number in host form; which member is alive follows from the element type beside it.
union Cell {
  std::int64_t i64 = 0;
  std::int32_t i32;
  float f32;
};

/// A float rounded to what f16 can hold, as a float. (Its siblings for bf16 and tf32 are inline, in math.hpp.)
float round_to_f16(float value);

}  // namespace tessera
