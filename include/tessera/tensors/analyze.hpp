// analyze(x): the contents of a tensor, its place in memory, and conclusions for kernels. analyze(x, w): the same of
// the operands of a product, with the tiles that choose() takes.
#pragma once
#include <string>
#include <vector>

#include "tessera/jit/choose.hpp"
#include "tessera/tensors/lazy.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// The result of analyze(x).
struct TensorAnalysis {
  ElementType type{};
  std::vector<std::int64_t> extents, strides;  ///< strides in elements
  // Memory.
  bool dense = false;        ///< row-major, without a gap
  int contiguous_axis = -1;  ///< the axis along which elements lie beside each other; -1: none
  int alignment = 1;         ///< bytes, at most 16, that divide the address and all other strides
  // Elements. Counts are 0 where the type has no such values.
  std::int64_t elements = 0, zeros = 0, nans = 0, infinities = 0, fractions = 0;
  double lowest = 0, highest = 0;  ///< of the finite ones; 0 if there is none
  double smallest = 0;             ///< the smallest finite magnitude above 0; 0 if there is none
  /// Conclusions, a sentence each, with its reason.
  std::vector<std::string> advice;
};

/// The result of analyze(x, w), of the operands of a product.
struct MatmulAnalysis {
  TensorAnalysis x, w;
  MatmulTiles tiles{};  ///< as choose() takes them
  std::vector<std::string> advice;
};

/// Reads the tensor once, and waits for the result.
TensorAnalysis analyze_tensor(const detail::AnyTensor& tensor);
/// x [m,k], w [k,n]. Error if the inner extents, the types or the devices differ.
MatmulAnalysis analyze_matmul(const detail::AnyTensor& x, const detail::AnyTensor& w);

/// Reads the tensor once, and waits for the result.
template <class T, int R>
TensorAnalysis analyze(const Tensor<T, R>& tensor) {
  return analyze_tensor(tensor.any());
}
/// The same of the operands of a product: x [m,k], w [k,n]. Error if the inner extents or the devices differ.
template <class T>
MatmulAnalysis analyze(const Tensor<T, 2>& x, const Tensor<T, 2>& w) {
  return analyze_matmul(x.any(), w.any());
}

/// Lines of text.
std::string to_string(const TensorAnalysis& analysis);
std::string to_string(const MatmulAnalysis& analysis);

}  // namespace internal
}  // namespace tessera
