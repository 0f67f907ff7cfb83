// The launch argument for one parameter: a tensor in memory, or a scalar.
#pragma once
#include <array>
#include <cstdint>

#include "tessera/graph/element.hpp"
#include "tessera/graph/shape.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

struct Argument {
  void* data = nullptr;  ///< of element [0, 0, ...]
  std::array<std::int64_t, max_rank> extent{};
  std::array<std::int64_t, max_rank> stride{};  ///< in elements
  Cell scalar{};
};

}  // namespace internal
}  // namespace tessera
