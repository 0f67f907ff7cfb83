// Copies between tensors of any strides and devices, and of one number to all elements of a tensor.
#pragma once
#include "tessera/jit/any_tensor.hpp"

namespace tessera::internal {
namespace [[gnu::visibility("default")]] detail {

// With a stream, work is given to it, in its order; all tensors are of its device. Without one, it comes behind all
// work given to the devices before, and is done when the call returns; a thread that records a stream may not.

/// All elements of `from` to those of `to`, which has the same type and extents. Without a stream they may be of
/// different devices (by way of the host, where both are GPUs) and may overlap.
void copy(const AnyTensor& to, const AnyTensor& from, const Stream* stream = nullptr);
/// Values of the host in row-major order, as many as the tensor has.
void copy_in(const AnyTensor& to, const void* values, std::size_t count);
void copy_out(void* values, std::size_t count, const AnyTensor& from);
/// The same bits, the lower ones of `bits`, in each element.
void fill(const AnyTensor& to, std::uint64_t bits, const Stream* stream = nullptr);
/// Itself if it is dense and of the device, else a dense copy there.
AnyTensor dense(const AnyTensor& tensor, const Device& device);

}  // namespace detail
}  // namespace tessera::internal
