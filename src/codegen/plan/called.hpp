// Functions of many instructions that a kernel's text calls where it would otherwise have very many copies of them.
#pragma once
#include <utility>
#include <vector>

#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// Does the text call its long functions? It does if the copies of them that ptxas would see have more instructions in
/// all than ptxas compiles in a few seconds, for its time grows with their square.
bool calls_functions(const Plan& plan);
/// Is it of a long function?
bool is_long(const Term& term);

/// The long functions of a plan, each with the element type of its operands, in the order of their first use.
std::vector<std::pair<Op, ElementType>> long_functions(const Plan& plan);

}  // namespace tessera::internal::codegen
