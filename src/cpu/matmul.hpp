// Tile products.
#pragma once
#include <cstdint>

namespace tessera::cpu {

/// A matrix somewhere in memory; strides in elements.
struct Matrix {
  const float* data;
  std::int64_t row_stride, column_stride;
};

/// c [m,n], dense, += a [m,k] times b [k,n].
void multiply_add(Matrix a, Matrix b, float* c, int m, int n, int k);

}  // namespace tessera::cpu
