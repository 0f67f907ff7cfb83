// Tensors from and to DLPack: memory shared with other libraries (NumPy, PyTorch, CuPy).
#pragma once
#include "tessera/jit/any_tensor.hpp"

// Declared as in dlpack/dlpack.h, of any version.
struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace tessera::internal {
namespace [[gnu::visibility("default")]] detail {

/// Like from_dlpack of api/dlpack.hpp. `type` and `rank` are the expected ones; without them any is accepted.
AnyTensor from_dlpack(DLManagedTensor* managed, const std::optional<Device>& device,
                      std::optional<ElementType> type = {}, int rank = 0);
AnyTensor from_dlpack(DLManagedTensorVersioned* managed, const std::optional<Device>& device,
                      std::optional<ElementType> type = {}, int rank = 0);
DLManagedTensor* to_dlpack(const AnyTensor& tensor);
/// Calls its deleter, if it has one.
void free_dlpack(DLManagedTensor* managed);

}  // namespace detail
}  // namespace tessera::internal
