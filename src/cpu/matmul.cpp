#include "cpu/matmul.hpp"

#include <Eigen/Core>
#include <vector>

namespace tessera::cpu {
namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ColumnMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor>;
template <class Order>
using View = Eigen::Map<const Order, Eigen::Unaligned, Eigen::OuterStride<>>;

// Eigen wants one of the strides to be 1. Anything else is rare (a tile broadcast or sliced oddly) and copied.
template <class Body>
void with_view(Matrix matrix, int rows, int columns, const Body& body) {
  if (matrix.column_stride == 1 || columns == 1)
    return body(
        View<RowMajor>(matrix.data, rows, columns, Eigen::OuterStride<>(rows == 1 ? columns : matrix.row_stride)));
  if (matrix.row_stride == 1 || rows == 1)
    return body(View<ColumnMajor>(matrix.data, rows, columns, Eigen::OuterStride<>(matrix.column_stride)));
  std::vector<float> dense(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j)
      dense[static_cast<std::size_t>(i) * static_cast<std::size_t>(columns) + static_cast<std::size_t>(j)] =
          matrix.data[i * matrix.row_stride + j * matrix.column_stride];
  body(View<RowMajor>(dense.data(), rows, columns, Eigen::OuterStride<>(columns)));
}

}  // namespace

void multiply_add(Matrix a, Matrix b, float* c, int m, int n, int k) {
  Eigen::Map<RowMajor> result(c, m, n);
  with_view(a, m, k, [&](const auto& x) { with_view(b, k, n, [&](const auto& y) { result.noalias() += x * y; }); });
}

}  // namespace tessera::cpu
