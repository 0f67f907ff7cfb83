// The elementwise ops over strips: short runs of contiguous values that stay in the L1 cache.
#pragma once
#include "tessera/graph/element.hpp"
#include "tessera/graph/op.hpp"

namespace tessera::internal::cpu {

/// Values in one strip.
inline constexpr int strip_length = 512;

/// out[i] = op(in[0][i], in[1][i], ...) for i < n, in host form. `out` may be one of the operands.
using StripFunction = void (*)(void* out, const void* const* in, int n);

/// A unary, binary or ternary op on operands of the type, or select of results of the type.
StripFunction strip_function(Op op, ElementType operand);
/// A cast that changes the host form or rounds; nullptr if it changes nothing.
StripFunction strip_cast(ElementType from, ElementType to);
/// A bitcast; nullptr if the host forms have the same bits.
StripFunction strip_bitcast(ElementType from, ElementType to);

/// out[i] = *value.
void splat(void* out, const void* value, HostType type, int n);
/// out[i] = in[i * stride].
void collect(void* out, const void* in, std::int64_t stride, HostType type, int n);

}  // namespace tessera::internal::cpu
