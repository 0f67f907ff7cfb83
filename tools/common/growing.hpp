// Kernels of any size: the time from tracing to the text must grow no faster than the size.
#pragma once
#include <span>
#include <string_view>

#include "tessera/tessera.hpp"

namespace tessera::internal {

struct Growing {
  std::string_view name;
  int size;  ///< in ops, or loops, such that every stage takes at most some seconds
  Graph (*traced)(int of_size);
};

std::span<const Growing> growing_kernels();

}  // namespace tessera::internal
