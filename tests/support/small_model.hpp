// A model that is traced and run in milliseconds.
#pragma once
#include "tessera/model/config.hpp"

namespace tessera::internal {

inline TransformerConfig small_model() {
  TransformerConfig config;
  config.vocab = 61, config.positions = 60, config.width = 16, config.layers = 2, config.heads = 2;
  config.inner = 4 * config.width;
  return config;
}

}  // namespace tessera::internal
