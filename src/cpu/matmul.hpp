// Tile matmuls.
#pragma once
#include <cstdint>

#include "tessera/graph/element.hpp"

namespace tessera::internal::cpu {

/// A matrix in host form, or of f16 or bf16 as stored in a tensor; strides in elements.
struct Matrix {
  const void* data;
  ElementType type;  ///< f16 or bf16; f32 means host form of any type
  std::int64_t row_stride, column_stride;
};

/// c [m,n] += a [m,k] times b [k,n]. c is dense and of type f32, f64 or i32; a and b have the same host type. Integers
/// wrap.
void multiply_add(ElementType type, Matrix a, Matrix b, void* c, int m, int n, int k);

}  // namespace tessera::internal::cpu
