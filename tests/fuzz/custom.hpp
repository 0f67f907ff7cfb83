// The author's own functions that random programs have: exact ones, so that the GPU's and the host's agree.
#pragma once
#include <cmath>
#include <span>

#include "tessera/dsl/custom.hpp"

namespace tessera::internal::fuzz {

struct Custom {
  CustomFunction function;
  const char* lambda;  ///< as it is written
};

std::span<const Custom> customs();

}  // namespace tessera::internal::fuzz
