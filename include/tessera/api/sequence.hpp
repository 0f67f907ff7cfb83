// Typed launches added to a sequence.
#pragma once
#include "tessera/api/kernel.hpp"
#include "tessera/jit/sequence.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

namespace detail {
// The owner of an argument's memory.
template <class A>
std::shared_ptr<void> memory_of(const A& value) {
  if constexpr (IsTensor<A>::value)
    return value.memory();
  else if constexpr (IsTensor<typename TensorIn<A>::type>::value)
    return value ? value->memory() : nullptr;
  else
    return nullptr;
}
}  // namespace detail

template <class Kernel, class... A>
void Sequence::add(const Kernel& kernel, const A&... values) {
  const auto arguments = detail::arguments_for(device_.stream(), kernel, values...);
  const std::array<std::shared_ptr<void>, sizeof...(A)> memory{detail::memory_of(values)...};
  append(kernel.shared_executable(), arguments, memory);
}

}  // namespace internal
}  // namespace tessera
