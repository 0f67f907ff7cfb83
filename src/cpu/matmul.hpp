// Tile products.
#pragma once
#include <cstdint>

#include "graph/element.hpp"

namespace tessera::cpu {

/// A matrix of f32, or of f16 or bf16 as a tensor holds them; strides in elements.
struct Matrix {
  const void* data;
  ElementType type;
  std::int64_t row_stride, column_stride;
};

/// c [m,n], f32 and dense, += a [m,k] times b [k,n].
void multiply_add(Matrix a, Matrix b, float* c, int m, int n, int k);

}  // namespace tessera::cpu
