// Tensors from DLPack and to it: memory that other libraries (NumPy, PyTorch, CuPy) share with us, and we with them.
#pragma once
#include "tessera/jit/any_tensor.hpp"

// As dlpack/dlpack.h has them, of whichever version.
struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace tessera::internal {
namespace [[gnu::visibility("default")]] detail {

/// As from_dlpack of api/dlpack.hpp. `type` and `rank` are what is wanted; without them any is taken.
AnyTensor from_dlpack(DLManagedTensor* managed, const std::optional<Device>& device,
                      std::optional<ElementType> type = {}, int rank = 0);
AnyTensor from_dlpack(DLManagedTensorVersioned* managed, const std::optional<Device>& device,
                      std::optional<ElementType> type = {}, int rank = 0);
DLManagedTensor* to_dlpack(const AnyTensor& tensor);
/// Calls its deleter, if it has one.
void free_dlpack(DLManagedTensor* managed);

}  // namespace detail
}  // namespace tessera::internal
