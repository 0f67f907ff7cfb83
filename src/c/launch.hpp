// Launches whose arguments are known when they are made: what the compiler checks of typed ones is checked then.
#pragma once
#include <span>
#include <variant>

#include "tessera/jit/any_tensor.hpp"
#include "tessera/jit/executable.hpp"

namespace tessera::internal::c {

using LaunchValue = std::variant<const detail::AnyTensor*, std::int64_t, std::uint64_t, double>;

/// As launch() of api/kernel.hpp, with its errors: a number is converted to the Scalar's type, which it must fit.
void launch(const Stream& stream, const Executable& kernel, std::span<const LaunchValue> values);

/// "scale(In<f32, 1>, Out<f32, 1>, Scalar<f32>)".
std::string signature(const Executable& kernel);

/// A type that tensors hold, by its name. Error that lists them.
ElementType stored_type(std::string_view name);

}  // namespace tessera::internal::c
