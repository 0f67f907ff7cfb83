// A matmul with one row reads its matrix once and is bound by memory: it has its own loops, which widen f16 and bf16 in
// registers. All others use Eigen.
#include "cpu/matmul.hpp"

#include <Eigen/Core>
#include <cstring>
#include <vector>

#include "cpu/convert.hpp"
#include "graph/math.hpp"
#include "graph/of_this_thread.hpp"

#ifdef __F16C__
#include <immintrin.h>
#endif

namespace tessera::internal::cpu {
namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ColumnMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor>;
template <class Order>
using View = Eigen::Map<const Order, Eigen::Unaligned, Eigen::OuterStride<>>;

// --- one row times a matrix

constexpr int lanes = 8;
using Lanes = float __attribute__((vector_size(lanes * sizeof(float))));

float widen(float x) { return x; }
float widen(f16 x) {
#ifdef __F16C__
  return _cvtsh_ss(x.bits);
#else
  return static_cast<float>(x);
#endif
}
float widen(bf16 x) { return math::bf16_value(x.bits); }

Lanes widen_lanes(const float* in) {
  Lanes out;
  std::memcpy(&out, in, sizeof out);
  return out;
}
Lanes widen_lanes(const f16* in) {
#ifdef __F16C__
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in)));
#else
  Lanes out;
  for (int i = 0; i < lanes; ++i) out[i] = widen(in[i]);
  return out;
#endif
}
Lanes widen_lanes(const bf16* in) {
  using Narrow = std::uint16_t __attribute__((vector_size(lanes * sizeof(std::uint16_t))));
  using Wide = std::uint32_t __attribute__((vector_size(lanes * sizeof(std::uint32_t))));
  Narrow bits;
  std::memcpy(&bits, in, sizeof bits);
  const Wide shifted = __builtin_convertvector(bits, Wide) << 16;
  Lanes out;
  std::memcpy(&out, &shifted, sizeof out);
  return out;
}

float total(Lanes x) {
  float sum = 0;
  for (int i = 0; i < lanes; ++i) sum += x[i];
  return sum;
}

// c += a b, b row-major: a strip of columns stays in registers while the loop runs over the rows.
template <class T, int strips>
void add_rows(const float* a, const T* b, std::int64_t stride, float* c, int k) {
  Lanes acc[strips];
  std::memcpy(acc, c, sizeof acc);
  for (int i = 0; i < k; ++i) {
    const T* row = b + i * stride;
    // Rows of a tile are far apart, so the hardware prefetcher does not help.
    for (std::size_t byte = 0; byte < strips * lanes * sizeof(T); byte += 64)
      __builtin_prefetch(reinterpret_cast<const char*>(row + 12 * stride) + byte);
    for (int s = 0; s < strips; ++s) acc[s] += widen_lanes(row + s * lanes) * a[i];
  }
  std::memcpy(c, acc, sizeof acc);
}

template <class T>
void row_times_row_major(const float* a, const T* b, std::int64_t stride, float* c, int n, int k) {
  int j = 0;
  for (; j + 8 * lanes <= n; j += 8 * lanes) add_rows<T, 8>(a, b + j, stride, c + j, k);
  for (; j + lanes <= n; j += lanes) add_rows<T, 1>(a, b + j, stride, c + j, k);
  for (; j < n; ++j)
    for (int i = 0; i < k; ++i) c[j] += a[i] * widen(b[i * stride + j]);
}

// c += a b, b column-major: dot products, four columns at a time.
template <class T, int columns>
void add_dots(const float* a, const T* b, std::int64_t stride, float* c, int k) {
  Lanes acc[columns] = {};
  int i = 0;
  for (; i + lanes <= k; i += lanes) {
    const Lanes x = widen_lanes(a + i);
    for (int j = 0; j < columns; ++j) acc[j] += widen_lanes(b + j * stride + i) * x;
  }
  for (int j = 0; j < columns; ++j) {
    float sum = total(acc[j]);
    for (int rest = i; rest < k; ++rest) sum += a[rest] * widen(b[j * stride + rest]);
    c[j] += sum;
  }
}

template <class T>
void row_times_column_major(const float* a, const T* b, std::int64_t stride, float* c, int n, int k) {
  int j = 0;
  for (; j + 4 <= n; j += 4) add_dots<T, 4>(a, b + j * stride, stride, c + j, k);
  for (; j < n; ++j) add_dots<T, 1>(a, b + j * stride, stride, c + j, k);
}

template <class T>
bool row_times(const float* a, const Matrix& b, float* c, int n, int k) {
  const auto* data = static_cast<const T*>(b.data);
  if (b.column_stride == 1)
    row_times_row_major(a, data, b.row_stride, c, n, k);
  else if (b.row_stride == 1)
    row_times_column_major(a, data, b.column_stride, c, n, k);
  else
    return false;
  return true;
}

bool row_times(const Matrix& a, const Matrix& b, float* c, int n, int k) {
  if (a.type != ElementType::f32 || (a.column_stride != 1 && k > 1)) return false;
  const auto* row = static_cast<const float*>(a.data);
  switch (b.type) {
    case ElementType::f16:
      return row_times<f16>(row, b, c, n, k);
    case ElementType::bf16:
      return row_times<bf16>(row, b, c, n, k);
    default:
      return row_times<float>(row, b, c, n, k);
  }
}

// --- all other matmuls

// Eigen needs f32 with one stride of 1. Any other matrix is copied, each thread into memory that it keeps.
template <class Body>
void with_view(const Matrix& matrix, int rows, int columns, std::vector<float>& scratch, const Body& body) {
  const auto* data = static_cast<const float*>(matrix.data);
  const auto row_major = [&](const float* at, std::int64_t stride) {
    body(View<RowMajor>(at, rows, columns, Eigen::OuterStride<>(std::max<std::int64_t>(stride, columns))));
  };
  const auto column_major = [&](const float* at, std::int64_t stride) {
    body(View<ColumnMajor>(at, rows, columns, Eigen::OuterStride<>(std::max<std::int64_t>(stride, rows))));
  };
  const bool by_rows = matrix.column_stride == 1 || columns == 1, by_columns = matrix.row_stride == 1 || rows == 1;
  if (matrix.type == ElementType::f32 && by_rows && (rows == 1 || matrix.row_stride >= columns))
    return row_major(data, matrix.row_stride);
  if (matrix.type == ElementType::f32 && by_columns && (columns == 1 || matrix.column_stride >= rows))
    return column_major(data, matrix.column_stride);
  const std::size_t size = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
  if (scratch.size() < size) scratch.resize(size);
  const auto* bytes = static_cast<const char*>(matrix.data);
  const int width = info(matrix.type).bytes;
  if (by_columns && !by_rows) {
    for (int j = 0; j < columns; ++j)
      from_memory(matrix.type, &scratch[static_cast<std::size_t>(j) * static_cast<std::size_t>(rows)],
                  bytes + j * matrix.column_stride * width, matrix.row_stride, rows);
    return column_major(scratch.data(), rows);
  }
  for (int i = 0; i < rows; ++i)
    from_memory(matrix.type, &scratch[static_cast<std::size_t>(i) * static_cast<std::size_t>(columns)],
                bytes + i * matrix.row_stride * width, matrix.column_stride, columns);
  row_major(scratch.data(), columns);
}

struct Scratch {
  std::vector<float> a, b;
};

void multiply_add(Matrix a, Matrix b, float* c, int m, int n, int k) {
  if (m == 1 && row_times(a, b, c, n, k)) return;
  Eigen::Map<RowMajor> result(c, m, n);
  Scratch& scratch = of_this_thread<Scratch>();
  with_view(a, m, k, scratch.a,
            [&](const auto& x) { with_view(b, k, n, scratch.b, [&](const auto& y) { result.noalias() += x * y; }); });
}

// For types other than f32, with any strides.
template <class T>
void multiply_add_as(const Matrix& a, const Matrix& b, void* c, int m, int n, int k) {
  using Elements = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Strides = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;
  const auto view = [](const Matrix& matrix, int rows, int columns) {
    return Eigen::Map<const Elements, Eigen::Unaligned, Strides>(static_cast<const T*>(matrix.data), rows, columns,
                                                                 Strides(matrix.row_stride, matrix.column_stride));
  };
  Eigen::Map<Elements>(static_cast<T*>(c), m, n).noalias() += view(a, m, k) * view(b, k, n);
}

}  // namespace

void multiply_add(ElementType type, Matrix a, Matrix b, void* c, int m, int n, int k) {
  if (type == ElementType::f32) return multiply_add(a, b, static_cast<float*>(c), m, n, k);
  if (type == ElementType::f64) return multiply_add_as<double>(a, b, c, m, n, k);
  multiply_add_as<std::uint32_t>(a, b, c, m, n, k);  // unsigned arithmetic wraps
}

}  // namespace tessera::internal::cpu
