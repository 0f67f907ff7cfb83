#include "common/gather_loops.hpp"

#include <algorithm>
#include <cmath>

namespace tessera::internal::bench::loops {

void multiply(const Csr& a, const float* x, float* y) {
  for (std::size_t row = 0; row + 1 < a.offsets.size(); ++row) {
    float sum = 0;
    for (std::int32_t k = a.offsets[row]; k < a.offsets[row + 1]; ++k)
      sum += a.values[static_cast<std::size_t>(k)] * x[a.columns[static_cast<std::size_t>(k)]];
    y[row] = sum;
  }
}

void mandelbrot(std::int32_t* count, int height, int width, float left, float top, float step, int rounds) {
  for (int i = 0; i < height; ++i)
    for (int j = 0; j < width; ++j) {
      const float c_x = left + step * static_cast<float>(j), c_y = top + step * static_cast<float>(i);
      float x = 0, y = 0;
      int n = 0;
      while (n < rounds && x * x + y * y <= 4) {
        const float next = x * x - y * y + c_x;
        y = 2 * x * y + c_y;
        x = next;
        ++n;
      }
      count[i * width + j] = n;
    }
}

void bilinear(const std::uint8_t* in, int in_height, int in_width, std::uint8_t* out, int height, int width,
              float scale_y, float scale_x) {
  for (int i = 0; i < height; ++i) {
    const float y = (static_cast<float>(i) + 0.5f) * scale_y - 0.5f, top = std::floor(y), share_y = y - top;
    const int y0 = std::clamp(static_cast<int>(top), 0, in_height - 1);
    const int y1 = std::clamp(static_cast<int>(top) + 1, 0, in_height - 1);
    for (int j = 0; j < width; ++j) {
      const float x = (static_cast<float>(j) + 0.5f) * scale_x - 0.5f, left = std::floor(x), share_x = x - left;
      const int x0 = std::clamp(static_cast<int>(left), 0, in_width - 1);
      const int x1 = std::clamp(static_cast<int>(left) + 1, 0, in_width - 1);
      for (int c = 0; c < 3; ++c) {
        const auto at = [&](int r, int s) { return static_cast<float>(in[(r * in_width + s) * 3 + c]); };
        const float above = at(y0, x0) + share_x * (at(y0, x1) - at(y0, x0));
        const float below = at(y1, x0) + share_x * (at(y1, x1) - at(y1, x0));
        out[(i * width + j) * 3 + c] = static_cast<std::uint8_t>(above + share_y * (below - above) + 0.5f);
      }
    }
  }
}

void radix_pass(const std::uint32_t* keys, std::uint32_t* sorted, std::int64_t count, int shift) {
  std::int32_t offsets[256] = {};
  for (std::int64_t i = 0; i < count; ++i) ++offsets[keys[i] >> shift & 255];
  std::int32_t before = 0;
  for (std::int32_t& offset : offsets) {
    const std::int32_t here = offset;
    offset = before;
    before += here;
  }
  for (std::int64_t i = 0; i < count; ++i) sorted[offsets[keys[i] >> shift & 255]++] = keys[i];
}

void transpose(const float* in, float* out, int rows, int columns) {
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) out[j * rows + i] = in[i * columns + j];
}

}  // namespace tessera::internal::bench::loops
