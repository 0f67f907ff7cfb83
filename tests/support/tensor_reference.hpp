// The meaning of tensor programs, by plain loops in double precision.
#pragma once
#include <unordered_map>
#include <vector>

#include "tessera/tensors/lazy_node.hpp"

namespace tessera::internal {

/// The elements of a value in row-major order. Integers are exact up to 2^53; preds are 0 or 1.
struct Reference {
  Extents extents;
  std::vector<double> values;
};
/// Evaluates nodes; each once. It takes ops whose meaning does not depend on rounding: no bit operations.
class ReferenceEvaluator {
 public:
  const Reference& of(const LazyRef& node);

 private:
  Reference compute(const LazyNode& node);
  std::unordered_map<const LazyNode*, Reference> known_;
  std::vector<LazyRef> kept_;
};

}  // namespace tessera::internal
