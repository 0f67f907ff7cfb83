// Copies between tensors of any strides and devices, and fills with one number.
#pragma once
#include "tessera/jit/any_tensor.hpp"

namespace tessera::internal {
namespace [[gnu::visibility("default")]] detail {

// With a stream, work is enqueued in its order; all tensors are on its device. Without one, it runs after all work
// enqueued on the devices so far, and is done when the call returns; a thread that records a stream may not do this.

/// Copies all elements of `from` to `to`, which has the same type and extents. Without a stream they may be on
/// different devices (through the host, if both are GPUs) and may overlap.
void copy(const AnyTensor& to, const AnyTensor& from, const Stream* stream = nullptr);
/// Copies host values in row-major order, as many as the tensor has elements.
void copy_in(const AnyTensor& to, const void* values, std::size_t count);
void copy_out(void* values, std::size_t count, const AnyTensor& from);
/// Sets each element to the same bits, the low ones of `bits`.
void fill(const AnyTensor& to, std::uint64_t bits, const Stream* stream = nullptr);
/// The tensor itself if it is dense and on the device, else a dense copy there.
AnyTensor dense(const AnyTensor& tensor, const Device& device);

}  // namespace detail
}  // namespace tessera::internal
