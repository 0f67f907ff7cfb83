// Typed launches added to a sequence.
#pragma once
#include "tessera/api/kernel.hpp"
#include "tessera/jit/sequence.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

namespace detail {
// Adds the owners of an argument's memory.
template <class A>
void add_owners(std::vector<std::shared_ptr<void>>& owners, const A& value) {
  if constexpr (GivesTensors<A>)
    for (const auto& tensor : tensors_in(value)) owners.push_back(tensor.memory());
}
}  // namespace detail

template <class Kernel, class... A>
void Sequence::add(const Kernel& kernel, const A&... values) {
  const auto arguments = detail::arguments_for(device_.stream(), kernel, values...);
  std::vector<std::shared_ptr<void>> owners;
  (detail::add_owners(owners, values), ...);
  append(kernel.shared_executable(), arguments, owners);
}

}  // namespace internal
}  // namespace tessera
