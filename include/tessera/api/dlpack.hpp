// Tensors from DLPack and to it, without a copy: those of NumPy, PyTorch, CuPy and others. docs/host.md has the rules.
#pragma once
#include "tessera/api/tensor.hpp"
#include "tessera/jit/dlpack.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// The tensor of a DLPack capsule, over the same memory, strides and all. Owns it from then on: the capsule's deleter
/// is called once, in whatever thread, when the last handle of the memory goes. (It does not wait for work on the
/// memory.) Error, and `managed` remains the caller's, if the type, the rank, the device or the alignment is another
/// than Tensor<T, R> has.
///
/// Memory of the host is of Device::cpu(), that of cuda:N of that device; `device` names another one that reaches it.
template <Stored T, int R>
Tensor<T, R> from_dlpack(DLManagedTensor* managed, const std::optional<Device>& device = {}) {
  return Tensor<T, R>(detail::from_dlpack(managed, device, element_type<T>, R));
}
/// Likewise; one that is read-only is refused. Needs a Tessera that was built with DLPack 1.0 or later.
template <Stored T, int R>
Tensor<T, R> from_dlpack(DLManagedTensorVersioned* managed, const std::optional<Device>& device = {}) {
  return Tensor<T, R>(detail::from_dlpack(managed, device, element_type<T>, R));
}

/// The tensor for others, over the same memory, which it keeps until its deleter is called, from whatever thread.
template <Stored T, int R>
DLManagedTensor* to_dlpack(const Tensor<T, R>& tensor) {
  return detail::to_dlpack(tensor.any());
}

}  // namespace internal
}  // namespace tessera
