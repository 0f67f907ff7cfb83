// Matmuls with sums of f32: a block of the result stays in registers while the loop runs over k. Operands of f16 and
// bf16 are widened in registers. Except in dot products, the terms of a sum are added in the order of k, for any number
// of rows. Other types use Eigen.
#include "cpu/matmul.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "cpu/convert.hpp"
#include "graph/math.hpp"
#include "graph/of_this_thread.hpp"

#if defined(__F16C__) || defined(__FMA__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace tessera::internal::cpu {
namespace {

#ifdef __AVX512F__
constexpr int lanes = 16, most_rows = 12, most_strips = 16;  // 32 registers, of which sums take 24 at most
#else
constexpr int lanes = 8, most_rows = 6, most_strips = 8;  // 16 registers
#endif
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
#if defined(__AVX512F__)
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in)));
#elif defined(__F16C__)
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

Lanes multiply_add(Lanes a, Lanes b, Lanes c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}

float multiply_add(float a, float b, float c) {
#if defined(__AVX512F__) || defined(__FMA__)
  return std::fma(a, b, c);
#else
  return a * b + c;
#endif
}

float total(Lanes x) {
  float sum = 0;
  for (int i = 0; i < lanes; ++i) sum += x[i];
  return sum;
}

// --- a right operand whose rows are contiguous

// c += a b, for `rows` rows of c and `strips` vectors of columns.
template <class T, int rows, int strips, bool prefetches>
void add_block(const float* a, std::int64_t a_stride, const T* b, std::int64_t b_stride, float* c,
               std::int64_t c_stride, int k) {
  Lanes acc[rows][strips];
  for (int r = 0; r < rows; ++r) std::memcpy(acc[r], c + r * c_stride, sizeof acc[r]);
  for (int p = 0; p < k; ++p) {
    const T* const row = b + p * b_stride;
    // Rows of a tile are far apart, so the hardware prefetcher does not help.
    if constexpr (prefetches)
      for (std::size_t byte = 0; byte < strips * lanes * sizeof(T); byte += 64)
        __builtin_prefetch(reinterpret_cast<const char*>(row + 12 * b_stride) + byte);
    const auto left = [&](int r) { return Lanes{} + a[r * a_stride + p]; };
    // The operand with fewer vectors stays in registers.
    if constexpr (rows < strips) {
      Lanes lefts[rows];
      for (int r = 0; r < rows; ++r) lefts[r] = left(r);
      for (int s = 0; s < strips; ++s) {
        const Lanes right = widen_lanes(row + s * lanes);
        for (int r = 0; r < rows; ++r) acc[r][s] = multiply_add(lefts[r], right, acc[r][s]);
      }
    } else {
      Lanes rights[strips];
      for (int s = 0; s < strips; ++s) rights[s] = widen_lanes(row + s * lanes);
      for (int r = 0; r < rows; ++r)
        for (int s = 0; s < strips; ++s) acc[r][s] = multiply_add(left(r), rights[s], acc[r][s]);
    }
  }
  for (int r = 0; r < rows; ++r) std::memcpy(c + r * c_stride, acc[r], sizeof acc[r]);
}

// For all n columns.
template <class T, int rows>
void add_rows(const float* a, std::int64_t a_stride, const T* b, std::int64_t b_stride, float* c, int n, int k) {
  constexpr int strips = rows == 1 ? most_strips : rows <= 3 ? most_strips / 2 : rows <= 6 ? most_strips / 4 : 2;
  int j = 0;
  const auto add = [&]<int width>(std::integral_constant<int, width>) {
    for (; j + width * lanes <= n; j += width * lanes)
      add_block<T, rows, width, true>(a, a_stride, b + j, b_stride, c + j, n, k);
  };
  add(std::integral_constant<int, strips>());
  if constexpr (strips > 12) add(std::integral_constant<int, 12>());
  if constexpr (strips > 8) add(std::integral_constant<int, 8>());
  if constexpr (strips > 4) add(std::integral_constant<int, 4>());
  add(std::integral_constant<int, 1>());
  for (int p = 0; p < k; ++p)
    for (int r = 0; r < rows; ++r)
      for (int last = j; last < n; ++last)
        c[r * n + last] = multiply_add(a[r * a_stride + p], widen(b[p * b_stride + last]), c[r * n + last]);
}

// For 1 to most_rows rows.
template <class T>
void add_rows(int rows, const float* a, std::int64_t a_stride, const Matrix& b, float* c, int n, int k) {
  static constexpr auto functions = []<int... r>(std::integer_sequence<int, r...>) {
    return std::array{&add_rows<T, r + 1>...};
  }
  (std::make_integer_sequence<int, most_rows>());
  functions[static_cast<std::size_t>(rows - 1)](a, a_stride, static_cast<const T*>(b.data), b.row_stride, c, n, k);
}

// --- one row times a matrix whose columns are contiguous: dot products, four columns at a time

template <class T, int columns>
void add_dots(const float* a, const T* b, std::int64_t stride, float* c, int k) {
  Lanes acc[columns] = {};
  int i = 0;
  for (; i + lanes <= k; i += lanes) {
    const Lanes x = widen_lanes(a + i);
    for (int j = 0; j < columns; ++j) {
      __builtin_prefetch(b + (columns + j) * stride + i);  // of the next columns: these are too short for the hardware's
      acc[j] = multiply_add(widen_lanes(b + j * stride + i), x, acc[j]);
    }
  }
  for (int j = 0; j < columns; ++j) {
    float sum = total(acc[j]);
    for (int rest = i; rest < k; ++rest) sum += a[rest] * widen(b[j * stride + rest]);
    c[j] += sum;
  }
}

template <class T>
void add_dots(const float* a, const Matrix& b, float* c, int n, int k) {
  const auto* const columns = static_cast<const T*>(b.data);
  const std::int64_t stride = b.column_stride;
  int j = 0;
  for (; j + 4 <= n; j += 4) add_dots<T, 4>(a, columns + j * stride, stride, c + j, k);
  for (; j < n; ++j) add_dots<T, 1>(a, columns + j * stride, stride, c + j, k);
}

// --- all others: the right operand is packed into panels of a few vectors of columns, which are read row by row

template <int step, int... l>
void swap_halves(Lanes& a, Lanes& b, std::integer_sequence<int, l...>) {
  const Lanes low = __builtin_shufflevector(a, b, ((l & step) ? l - step + lanes : l)...);
  b = __builtin_shufflevector(a, b, ((l & step) ? l + lanes : l + step)...);
  a = low;
}
template <int step = lanes / 2>
void transpose(Lanes (&rows)[lanes]) {
  for (int i = 0; i < lanes; ++i)
    if (!(i & step)) swap_halves<step>(rows[i], rows[i + step], std::make_integer_sequence<int, lanes>());
  if constexpr (step > 1) transpose<step / 2>(rows);
}

// Panels of `width` columns, [k,width] each, of b [k,n]; the columns of the last one that do not exist become 0.
template <int width, class T>
void pack(const T* b, std::int64_t row_stride, std::int64_t column_stride, float* panels, int n, int k) {
  const auto place = [&](int p, int j) {
    return panels + static_cast<std::ptrdiff_t>(j / width) * width * k + p * width + j % width;
  };
  if (n % width != 0) std::fill_n(place(0, n / width * width), static_cast<std::ptrdiff_t>(k) * width, 0.0f);
  const int whole = column_stride == 1 || row_stride == 1 ? n / lanes * lanes : 0;
  const int blocks = column_stride == 1 ? k : k / lanes * lanes;  // rows that go by vectors
  const auto one_by_one = [&](int first, int last, int from) {
    for (int p = first; p < last; ++p)
      for (int j = from; j < n; ++j) *place(p, j) = widen(b[p * row_stride + j * column_stride]);
  };
  if (column_stride == 1) {
    for (int p = 0; p < k; ++p)
      for (int j = 0; j < whole; j += lanes) {
        __builtin_prefetch(b + (p + 8) * row_stride + j);
        const Lanes part = widen_lanes(b + p * row_stride + j);
        std::memcpy(place(p, j), &part, sizeof part);
      }
  } else {
    for (int j = 0; j < whole; j += lanes)
      for (int p = 0; p < blocks; p += lanes) {
        Lanes block[lanes];
        for (int i = 0; i < lanes; ++i) block[i] = widen_lanes(b + p + (j + i) * column_stride);
        transpose(block);
        for (int i = 0; i < lanes; ++i) std::memcpy(place(p + i, j), &block[i], sizeof block[i]);
      }
  }
  one_by_one(0, blocks, whole);
  one_by_one(blocks, k, 0);
}

template <int strips>
void add_panel(int rows, const float* a, std::int64_t a_stride, const float* panel, float* c, std::int64_t c_stride,
               int k) {
  static constexpr auto functions = []<int... r>(std::integer_sequence<int, r...>) {
    return std::array{&add_block<float, r + 1, strips, false>...};
  }
  (std::make_integer_sequence<int, most_rows>());
  functions[static_cast<std::size_t>(rows - 1)](a, a_stride, panel, strips * lanes, c, c_stride, k);
}

struct Scratch {
  std::vector<float> a, b;
};

// A few rows of k of all panels are packed at a time, so that they stay in the second-level cache.
template <class T>
void add_packed(const float* a, std::int64_t a_stride, const Matrix& b, float* c, int m, int n, int k) {
  constexpr int strips = 2, width = strips * lanes, depth = 256;
  std::vector<float>& packed = of_this_thread<Scratch>().b;
  const int panels = (n + width - 1) / width;
  packed.resize(std::max(packed.size(), static_cast<std::size_t>(panels) * width * std::min(depth, k)));
  for (int first = 0; first < k; first += depth) {
    const int part = std::min(depth, k - first);
    const T* const from = static_cast<const T*>(b.data) + first * b.row_stride;
    pack<width>(from, b.row_stride, b.column_stride, packed.data(), n, part);
    for (int j = 0; j < n; j += width)
      for (int i = 0; i < m; i += most_rows) {
        const int rows = std::min(most_rows, m - i), columns = std::min(width, n - j);
        const float* const left = a + i * a_stride + first;
        const float* const panel = &packed[static_cast<std::size_t>(j) * static_cast<std::size_t>(part)];
        float* const to = c + static_cast<std::ptrdiff_t>(i) * n + j;
        if (columns == width) {
          add_panel<strips>(rows, left, a_stride, panel, to, n, part);
        } else {
          float block[most_rows * width] = {};
          for (int r = 0; r < rows; ++r) std::copy_n(to + r * n, columns, block + r * width);
          add_panel<strips>(rows, left, a_stride, panel, block, width, part);
          for (int r = 0; r < rows; ++r) std::copy_n(block + r * width, columns, to + r * n);
        }
      }
  }
}

template <class T>
void add_product(const float* a, std::int64_t a_stride, const Matrix& b, float* c, int m, int n, int k) {
  // A single element has the bits that it has in a column of several.
  if (m == 1 && b.row_stride == 1 && (n == 1 || b.column_stride != 1)) return add_dots<T>(a, b, c, n, k);
  if (m <= most_rows && (b.column_stride == 1 || n == 1)) return add_rows<T>(m, a, a_stride, b, c, n, k);
  add_packed<T>(a, a_stride, b, c, m, n, k);
}

void multiply_add(Matrix a, Matrix b, float* c, int m, int n, int k) {
  if (n == 1) {  // a result of one column is one of one row
    std::swap(a, b);
    for (Matrix* matrix : {&a, &b}) std::swap(matrix->row_stride, matrix->column_stride);
    std::swap(m, n);
  }
  const auto* left = static_cast<const float*>(a.data);
  if (a.type != ElementType::f32 || (a.column_stride != 1 && k > 1)) {
    std::vector<float>& rows = of_this_thread<Scratch>().a;
    rows.resize(std::max(rows.size(), static_cast<std::size_t>(m) * static_cast<std::size_t>(k)));
    for (int i = 0; i < m; ++i)
      from_memory(a.type, &rows[static_cast<std::size_t>(i) * static_cast<std::size_t>(k)],
                  static_cast<const char*>(a.data) + i * a.row_stride * info(a.type).bytes, a.column_stride, k);
    left = rows.data(), a.row_stride = k;
  }
  switch (b.type) {
    case ElementType::f16:
      return add_product<f16>(left, a.row_stride, b, c, m, n, k);
    case ElementType::bf16:
      return add_product<bf16>(left, a.row_stride, b, c, m, n, k);
    default:
      return add_product<float>(left, a.row_stride, b, c, m, n, k);
  }
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
