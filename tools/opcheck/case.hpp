// The cases of opcheck: kernels of one op each, and their tensors.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/graph/graph.hpp"

namespace tessera::internal::opcheck {

/// The layout of a tensor in memory.
enum class Layout : std::uint8_t {
  dense,       ///< row-major
  padded,      ///< row-major, with a gap after each row, and rows aligned to one element only
  strided,     ///< row-major, with a gap after each element
  transposed,  ///< the first axis innermost
};

/// The initial numbers of a tensor or a scalar. They depend on this and on the parameter's position only.
struct Values {
  double low = -100, high = 100;
  bool whole = false;     ///< reals are integers, too: many of them are equal
  bool distinct = false;  ///< integers: no two are equal, while there are enough from low to high
  bool edges = false;     ///< includes difficult operands: extremes, 0, and for reals infinities and NaN
};

/// The argument of a parameter.
struct Field {
  Access access{};
  ElementType type{};                 ///< in memory
  std::vector<std::int64_t> extents;  ///< of a tensor
  Layout layout = Layout::dense;
  Values values = {};
  int list = 0;  ///< as of the parameter
};

struct Case {
  Op op{};
  ElementType type{};  ///< the op's, as `list` shows it
  std::string name;    ///< "[5,33] of [13,40], padded": distinguishes it from other cases of the op and type
  std::vector<Field> fields;
  Graph graph;            ///< after tracing
  double operations = 0;  ///< multiplications and additions, if they bound the case's time
  /// For a matmul: why it is not warp-specialized on sm_90a, as its plan's note says; empty if it must be.
  std::optional<std::string> why_no_roles = {};

  /// Bytes that a launch must read and write at least.
  double bytes() const;
};

/// Does a case check the op or measure it? The latter is large, and exists only for ops that have a time of their own.
enum class Purpose : std::uint8_t { test, perf_cpu, perf_gpu };

/// None if the op does not support this type; for perf, if it has no time of its own.
std::vector<Case> cases_of(Op op, ElementType type, Purpose purpose);

std::span<const Op> all_ops();
std::span<const ElementType> all_types();

}  // namespace tessera::internal::opcheck
