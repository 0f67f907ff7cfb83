// The user-defined functions in random programs: exact ones, so that the GPU's and the host's results agree.
#pragma once
#include <cmath>
#include <span>

#include "tessera/dsl/custom.hpp"

namespace tessera::internal::fuzz {

struct Custom {
  CustomFunction function;
  const char* lambda;  ///< its source text
};

std::span<const Custom> customs();

}  // namespace tessera::internal::fuzz
