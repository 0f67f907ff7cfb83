// Converts runs of values between tensors and host form.
#pragma once
#include <cstdint>

#include "cpu/elements.hpp"

namespace tessera::internal::cpu {

/// `count` elements of a tensor, `stride` elements apart, into contiguous host form.
void from_memory(ElementType type, void* out, const void* memory, std::int64_t stride, std::int64_t count);
/// A row of a tile into contiguous host form: the part that exists, at `memory`, and padding around it.
void read_row(ElementType type, const TileRows::Axis& row, char* out, const char* memory, Part part,
              const Cell& padding);
/// `count` values in host form, `in_stride` apart, into a tensor, `stride` elements apart.
void to_memory(ElementType type, void* memory, std::int64_t stride, const void* in, std::int64_t in_stride,
               std::int64_t count);
/// The elements of a strip, in host form; `padding` for those that do not exist.
void from_places(ElementType type, void* out, const ElementStrip& strip, const Cell& padding);
/// Stores values in host form, in order, to the elements of a strip that exist.
void to_places(ElementType type, const ElementStrip& strip, const void* in);
/// Does the type have the same bits in tensors and in host form?
constexpr bool same_form(ElementType type) { return info(type).bytes == host_bytes(host_type(type)); }

void round_to_f16(float* out, const float* in, std::int64_t count);

}  // namespace tessera::internal::cpu
