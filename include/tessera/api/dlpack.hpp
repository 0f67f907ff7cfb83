// Tensors from and to DLPack, without a copy: those of NumPy, PyTorch, CuPy and others. docs/host.md has the rules.
#pragma once
#include "tessera/api/tensor.hpp"
#include "tessera/jit/dlpack.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// A tensor over the memory of a DLPack capsule, with its strides. It owns the capsule from then on: the deleter is
/// called once, in any thread, when the last handle of the memory is destroyed. (It does not wait for work on the
/// memory.) Error, and `managed` remains the caller's, if type, rank, device or alignment does not match Tensor<T, R>.
///
/// Host memory becomes a tensor of Device::cpu(), memory of cuda:N one of that device; `device` names another device
/// that can access it.
template <Stored T, int R>
Tensor<T, R> from_dlpack(DLManagedTensor* managed, const std::optional<Device>& device = {}) {
  return Tensor<T, R>(detail::from_dlpack(managed, device, element_type<T>, R));
}
/// The same for a versioned capsule; a read-only one is rejected. Needs a Tessera that was built with DLPack 1.0 or
/// later.
template <Stored T, int R>
Tensor<T, R> from_dlpack(DLManagedTensorVersioned* managed, const std::optional<Device>& device = {}) {
  return Tensor<T, R>(detail::from_dlpack(managed, device, element_type<T>, R));
}

/// A DLPack capsule over the tensor's memory, which it keeps alive until its deleter is called, from any thread.
template <Stored T, int R>
DLManagedTensor* to_dlpack(const Tensor<T, R>& tensor) {
  return detail::to_dlpack(tensor.any());
}

}  // namespace internal
}  // namespace tessera
