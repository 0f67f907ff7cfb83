// What opcheck runs: kernels of one op each, and the tensors that they are launched with.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/graph/graph.hpp"

namespace tessera::internal::opcheck {

/// How a tensor's elements lie in memory.
enum class Layout : std::uint8_t {
  dense,       ///< row-major
  padded,      ///< row-major, with a gap behind each row, and no row aligned to more than an element
  strided,     ///< row-major, with a gap behind each element
  transposed,  ///< the first axis innermost
};

/// Which numbers a tensor or a scalar begins with. They depend on this and on the position among the parameters only.
struct Values {
  double low = -100, high = 100;
  bool whole = false;     ///< reals, too, are integers: many of them are equal
  bool distinct = false;  ///< integers: no two are equal, while there are enough from low to high
  bool edges = false;     ///< some are what an op may stumble over: extremes, 0, and of reals infinities and NaN
};

/// What a parameter is given.
struct Field {
  Access access{};
  ElementType type{};                 ///< in memory
  std::vector<std::int64_t> extents;  ///< of a tensor
  Layout layout = Layout::dense;
  Values values = {};
};

struct Case {
  Op op{};
  ElementType type{};  ///< the op's, as `list` shows it
  std::string name;    ///< "[5,33] of [13,40], padded": what sets it apart from others of the op and type
  std::vector<Field> fields;
  Graph graph;            ///< as the language would leave it
  double operations = 0;  ///< multiplications and additions, of a case whose time they bound
  /// Of a product: why no roles of sm_90a share its work, as its plan's note says; empty if they must.
  std::optional<std::string> why_no_roles = {};

  /// That a launch must read and write at least.
  double bytes() const;
};

/// Whether a case checks the op or measures it: large, and only of ops that have a time of their own.
enum class Purpose : std::uint8_t { test, perf_cpu, perf_gpu };

/// None if the op is not of this type; for perf, if it has no time of its own.
std::vector<Case> cases_of(Op op, ElementType type, Purpose purpose);

std::span<const Op> all_ops();
std::span<const ElementType> all_types();

}  // namespace tessera::internal::opcheck
