#include "cpu/convert.hpp"

#ifdef __F16C__
#include <immintrin.h>
#endif

#include <cstring>
#include <tuple>

#include "graph/host_ops.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal::cpu {
namespace {

float f16_value(std::uint16_t bits) {
#ifdef __F16C__
  return _cvtsh_ss(bits);
#else
  f16 value;
  value.bits = bits;
  return static_cast<float>(value);
#endif
}
std::uint16_t f16_bits(float value) {
#ifdef __F16C__
  return _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT);
#else
  return f16(value).bits;
#endif
}

// The shared loop; contiguous runs are a separate case, so that the compiler vectorizes them.
template <class Out, class In, class Convert>
void run(Out* out, std::int64_t out_stride, const In* in, std::int64_t in_stride, std::int64_t count, Convert convert) {
  if (out_stride == 1 && in_stride == 1)
    for (std::int64_t i = 0; i < count; ++i) out[i] = convert(in[i]);
  else
    for (std::int64_t i = 0; i < count; ++i) out[i * out_stride] = convert(in[i * in_stride]);
}

void widen_f16(float* out, const std::uint16_t* in, std::int64_t stride, std::int64_t count) {
  std::int64_t i = 0;
#ifdef __F16C__
  if (stride == 1)
    for (; i + 8 <= count; i += 8)
      _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
#endif
  for (; i < count; ++i) out[i] = f16_value(in[i * stride]);
}

void narrow_f16(std::uint16_t* out, std::int64_t stride, const float* in, std::int64_t in_stride, std::int64_t count) {
  std::int64_t i = 0;
#ifdef __F16C__
  if (stride == 1 && in_stride == 1)
    for (; i + 8 <= count; i += 8)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                       _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < count; ++i) out[i * stride] = f16_bits(in[i * in_stride]);
}

// The address of element i of a strip, or `elsewhere` if it does not exist. It is selected by bits, because a branch is
// often mispredicted.
template <class T>
T* place_of(char* base, std::int64_t place, T* elsewhere) {
  const auto missing = static_cast<std::uintptr_t>((place - ElementStrip::nowhere / 2) >> 63);
  const auto there = reinterpret_cast<std::uintptr_t>(base) + static_cast<std::uintptr_t>(place);
  return reinterpret_cast<T*>((there & ~missing) | (reinterpret_cast<std::uintptr_t>(elsewhere) & missing));
}

template <class T, class Held, class Convert>
void collect(Held* __restrict out, const ElementStrip& strip, const void* padding, Convert convert) {
  const auto [base, place, n] = std::tuple(strip.base, strip.place, strip.count);
  T none;
  std::memcpy(&none, padding, sizeof none);
  if (strip.all)
    for (int i = 0; i < n; ++i) out[i] = convert(*reinterpret_cast<const T*>(base + place[i]));
  else
    for (int i = 0; i < n; ++i) out[i] = convert(*place_of(base, place[i], &none));
}
template <class T, class Held, class Convert>
void spread(const ElementStrip& strip, const Held* in, Convert convert) {
  const auto [base, place, n] = std::tuple(strip.base, strip.place, strip.count);
  T sink;
  if (strip.all)
    for (int i = 0; i < n; ++i) *reinterpret_cast<T*>(base + place[i]) = convert(in[i]);
  else
    for (int i = 0; i < n; ++i) *place_of(base, place[i], &sink) = convert(in[i]);
}

template <ElementType type, class Body>
void with_type(const Body& body) {
  using T = typename tessera::internal::detail::TypeOf<type>::type;
  if constexpr (info(type).stored)
    body(T{}, math::host_form<type>{});
  else
    throw InternalError("an element type that tensors do not hold");
}

/// Calls body(T{}, Held{}), where T is the element type in memory and Held its host form.
template <class Body>
void with_stored(ElementType type, const Body& body) {
  switch (type) {
#define TYPE(name, ...)   \
  case ElementType::name: \
    return with_type<ElementType::name>(body);
#include "tessera/graph/types.def"
  }
}

}  // namespace

void from_memory(ElementType type, void* out, const void* memory, std::int64_t stride, std::int64_t count) {
  if (type == ElementType::f16)
    return widen_f16(static_cast<float*>(out), static_cast<const std::uint16_t*>(memory), stride, count);
  if (type == ElementType::bf16)
    return run(static_cast<float*>(out), 1, static_cast<const std::uint16_t*>(memory), stride, count, math::bf16_value);
  with_stored(type, [&]<class T, class Held>(T, Held) {
    run(static_cast<Held*>(out), 1, static_cast<const T*>(memory), stride, count,
        [](T x) { return static_cast<Held>(x); });
  });
}

void read_row(ElementType type, const TileRows::Axis& row, char* out, const char* memory, Part part,
              const Cell& padding) {
  const HostType held = host_type(type);
  const int bytes = host_bytes(held), stored = info(type).bytes;
  if (part.begin > 0) splat(out, &padding, held, static_cast<int>(part.begin));
  if (part.end > part.begin)
    from_memory(type, out + part.begin * bytes, memory + part.begin * row.stride * stored, row.stride,
                part.end - part.begin);
  if (part.end < row.extent) splat(out + part.end * bytes, &padding, held, static_cast<int>(row.extent - part.end));
}

void to_memory(ElementType type, void* memory, std::int64_t stride, const void* in, std::int64_t in_stride,
               std::int64_t count) {
  if (type == ElementType::f16)
    return narrow_f16(static_cast<std::uint16_t*>(memory), stride, static_cast<const float*>(in), in_stride, count);
  if (type == ElementType::bf16)
    return run(static_cast<std::uint16_t*>(memory), stride, static_cast<const float*>(in), in_stride, count,
               math::bf16_bits);
  with_stored(type, [&]<class T, class Held>(T, Held) {
    run(static_cast<T*>(memory), stride, static_cast<const Held*>(in), in_stride, count,
        [](Held x) { return static_cast<T>(x); });
  });
}

void from_places(ElementType type, void* out, const ElementStrip& strip, const Cell& padding) {
  Cell stored;
  to_memory(type, &stored, 1, &padding, 1, 1);
  if (type == ElementType::f16) return collect<std::uint16_t>(static_cast<float*>(out), strip, &stored, f16_value);
  if (type == ElementType::bf16)
    return collect<std::uint16_t>(static_cast<float*>(out), strip, &stored, math::bf16_value);
  with_stored(type, [&]<class T, class Held>(T, Held) {
    collect<T>(static_cast<Held*>(out), strip, &stored, [](T x) { return static_cast<Held>(x); });
  });
}

void to_places(ElementType type, const ElementStrip& strip, const void* in) {
  if (type == ElementType::f16) return spread<std::uint16_t>(strip, static_cast<const float*>(in), f16_bits);
  if (type == ElementType::bf16) return spread<std::uint16_t>(strip, static_cast<const float*>(in), math::bf16_bits);
  with_stored(type, [&]<class T, class Held>(T, Held) {
    spread<T>(strip, static_cast<const Held*>(in), [](Held x) { return static_cast<T>(x); });
  });
}

void round_to_f16(float* out, const float* in, std::int64_t count) {
  std::int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT)));
#endif
  for (; i < count; ++i) out[i] = f16_value(f16_bits(in[i]));
}

}  // namespace tessera::internal::cpu
