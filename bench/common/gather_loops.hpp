// The kernels of gather_kernels.hpp as plain loops on one core, as one would write them in C++.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace tessera::internal::bench::loops {

/// A matrix in CSR form.
struct Csr {
  std::vector<std::int32_t> offsets, columns;
  std::vector<float> values;
};
void multiply(const Csr& a, const float* x, float* y);
/// count [height,width]
void mandelbrot(std::int32_t* count, int height, int width, float left, float top, float step, int rounds);
/// in [in_height,in_width,3], out [height,width,3]
void bilinear(const std::uint8_t* in, int in_height, int in_width, std::uint8_t* out, int height, int width,
              float scale_y, float scale_x);
void radix_pass(const std::uint32_t* keys, std::uint32_t* sorted, std::int64_t count, int shift);
/// out [columns,rows]
void transpose(const float* in, float* out, int rows, int columns);

}  // namespace tessera::internal::bench::loops
