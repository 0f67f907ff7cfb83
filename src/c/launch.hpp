// Launches whose arguments are known only at run time: they are checked then, as the compiler checks typed ones.
#pragma once
#include <span>
#include <variant>
#include <vector>

#include "tessera/jit/any_tensor.hpp"
#include "tessera/jit/executable.hpp"

namespace tessera::internal::c {

using TensorList = std::vector<const detail::AnyTensor*>;
using LaunchValue = std::variant<const detail::AnyTensor*, std::int64_t, std::uint64_t, double, TensorList>;

/// Like launch() of api/kernel.hpp, with the same errors: a number is converted to the Scalar's type, and must fit it.
void launch(const Stream& stream, const Executable& kernel, std::span<const LaunchValue> values);

/// "scale(In<f32, 1>, Out<f32, 1>, Scalar<f32>)".
std::string signature(const Executable& kernel);

/// The element type of that name. Error that lists the types that tensors hold.
ElementType stored_type(std::string_view name);

}  // namespace tessera::internal::c
