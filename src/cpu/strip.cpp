#include "cpu/strip.hpp"

#include <algorithm>

#include "cpu/convert.hpp"
#include "graph/host_ops.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal::cpu {
namespace {

// A strip function reads and writes at equal positions only, so iterations are independent even when out is an operand.
#ifdef __clang__
#define TESSERA_INDEPENDENT  // no such pragma; the compiler checks for overlap itself
#else
#define TESSERA_INDEPENDENT _Pragma("GCC ivdep")
#endif
template <Op op, class T>
void run(void* out, const void* const* in, int n) {
  using R = decltype([] {
    if constexpr (is_unary(op))
      return math::Host<op>::apply(T{});
    else if constexpr (is_binary(op))
      return math::Host<op>::apply(T{}, T{});
    else
      return math::Host<op>::apply(T{}, T{}, T{});
  }());
  using Stored = std::conditional_t<std::is_same_v<R, bool>, std::int32_t, R>;
  auto* result = static_cast<Stored*>(out);
  const auto* x = static_cast<const T*>(in[0]);
  [[maybe_unused]] const auto* y = static_cast<const T*>(in[1]);
  [[maybe_unused]] const auto* z = static_cast<const T*>(in[2]);
  TESSERA_INDEPENDENT
  for (int i = 0; i < n; ++i) {
    if constexpr (is_unary(op))
      result[i] = math::Host<op>::apply(x[i]);
    else if constexpr (is_binary(op))
      result[i] = math::Host<op>::apply(x[i], y[i]);
    else
      result[i] = math::Host<op>::apply(x[i], y[i], z[i]);
  }
}

template <class T>
void run_select(void* out, const void* const* in, int n) {
  auto* result = static_cast<T*>(out);
  const auto* c = static_cast<const std::int32_t*>(in[0]);
  const auto *x = static_cast<const T*>(in[1]), *y = static_cast<const T*>(in[2]);
  TESSERA_INDEPENDENT
  for (int i = 0; i < n; ++i) result[i] = c[i] != 0 ? x[i] : y[i];
}

template <ElementType to, class From>
void run_cast(void* out, const void* const* in, int n) {
  auto* result = static_cast<decltype(math::cast_to<to>(From{}))*>(out);
  const auto* x = static_cast<const From*>(in[0]);
  TESSERA_INDEPENDENT
  for (int i = 0; i < n; ++i) result[i] = math::cast_to<to>(x[i]);
}
void run_round_f16(void* out, const void* const* in, int n) {
  round_to_f16(static_cast<float*>(out), static_cast<const float*>(in[0]), n);
}

template <Op op>
StripFunction function_of(ElementType operand) {
  if (accepts(op, operand))
    return with_host(host_type(operand), []<class T>(T) -> StripFunction {
      if constexpr (math::takes<op, T>)
        return run<op, T>;
      else
        return nullptr;
    });
  throw InternalError("an op has no strip function for its operands");
}

template <class From>
StripFunction cast_from(ElementType to) {
  if (to == ElementType::f16 && std::is_same_v<From, float>) return run_round_f16;
  switch (to) {
#define TYPE(name, ...)   \
  case ElementType::name: \
    return run_cast<ElementType::name, From>;
#include "tessera/graph/types.def"
  }
  return nullptr;
}

template <ElementType from, ElementType to>
void run_bitcast(void* out, const void* const* in, int n) {
  auto* result = static_cast<math::host_form<to>*>(out);
  const auto* x = static_cast<const math::host_form<from>*>(in[0]);
  TESSERA_INDEPENDENT
  for (int i = 0; i < n; ++i) result[i] = math::bitcast_to<from, to>(x[i]);
}

template <ElementType from>
StripFunction bitcast_from(ElementType to) {
  switch (to) {
#define TYPE(name, ...)                                                                           \
  case ElementType::name:                                                                         \
    if constexpr (bitcasts(from, ElementType::name)) return run_bitcast<from, ElementType::name>; \
    break;
#include "tessera/graph/types.def"
  }
  throw InternalError("a bitcast between types of different sizes");
}

}  // namespace

StripFunction strip_function(Op op, ElementType operand) {
  if (op == Op::select) return with_host(host_type(operand), []<class T>(T) -> StripFunction { return run_select<T>; });
  switch (op) {
#define UNARY(name, ...) \
  case Op::name:         \
    return function_of<Op::name>(operand);
#define BINARY UNARY
#define TERNARY UNARY
#define REDUCTION(...)
#define STRUCTURAL(...)
#include "tessera/graph/ops.def"
    default:
      throw InternalError("not an elementwise op");
  }
}

StripFunction strip_cast(ElementType from, ElementType to) {
  const bool widens =
      from == to || ((to == ElementType::f32 || to == ElementType::i32) && host_type(from) == host_type(to));
  if (widens) return nullptr;
  return with_host(host_type(from), [&]<class T>(T) -> StripFunction { return cast_from<T>(to); });
}

StripFunction strip_bitcast(ElementType from, ElementType to) {
  const auto as_stored = [](ElementType type) { return host_bytes(host_type(type)) == info(type).bytes; };
  if (from == to || (as_stored(from) && as_stored(to))) return nullptr;
  switch (from) {
#define TYPE(name, ...)   \
  case ElementType::name: \
    return bitcast_from<ElementType::name>(to);
#include "tessera/graph/types.def"
  }
  return nullptr;
}

void splat(void* out, const void* value, HostType type, int n) {
  if (host_bytes(type) == 8)
    std::fill_n(static_cast<std::int64_t*>(out), n, *static_cast<const std::int64_t*>(value));
  else
    std::fill_n(static_cast<std::int32_t*>(out), n, *static_cast<const std::int32_t*>(value));
}

void collect(void* out, const void* in, std::int64_t stride, HostType type, int n) {
  const auto copy = [&](auto* to, const auto* from) {
    for (int i = 0; i < n; ++i) to[i] = from[i * stride];
  };
  if (host_bytes(type) == 8)
    copy(static_cast<std::int64_t*>(out), static_cast<const std::int64_t*>(in));
  else
    copy(static_cast<std::int32_t*>(out), static_cast<const std::int32_t*>(in));
}

}  // namespace tessera::internal::cpu
