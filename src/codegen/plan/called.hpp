// Long functions, which a kernel calls instead of inlining where there would be too many copies.
#pragma once
#include <utility>
#include <vector>

#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// Does the kernel call its long functions? It does if the inlined copies would together have more instructions than
/// ptxas compiles in a few seconds: its time grows with the square of their number.
bool calls_functions(const Plan& plan);
/// Is the term's op a long function?
bool is_long(const Term& term);

/// The long functions of a plan, each with the element type of its operands, in the order of their first use.
std::vector<std::pair<Op, ElementType>> long_functions(const Plan& plan);

}  // namespace tessera::internal::codegen
