// Kernels of any size: what they take, from tracing to the text, must grow no faster than they do.
#pragma once
#include <span>
#include <string_view>

#include "tessera/tessera.hpp"

namespace tessera::internal {

struct Growing {
  std::string_view name;
  int size;  ///< in ops, or loops, that every stage is done with in some seconds
  Graph (*traced)(int of_size);
};

std::span<const Growing> growing_kernels();

}  // namespace tessera::internal
