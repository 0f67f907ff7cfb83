// What a launch is given for one parameter: a tensor in memory, or a scalar.
#pragma once
#include <array>
#include <cstdint>

#include "graph/element.hpp"
#include "graph/shape.hpp"

namespace tessera {

struct Argument {
  void* data = nullptr;  ///< of element [0, 0, ...]
  std::array<std::int64_t, max_rank> extent{};
  std::array<std::int64_t, max_rank> stride{};  ///< in elements
  Cell scalar{};
};

}  // namespace tessera
