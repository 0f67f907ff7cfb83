// The spelling of types and constants in generated text.
#pragma once
#include <string>
#include <string_view>

#include "graph/host_ops.hpp"

namespace tessera::internal::codegen {

/// The type of an element of a tile in a register, in scratch memory (where a predicate is an int), and in a tensor.
std::string_view register_type(ElementType type);
std::string_view scratch_type(ElementType type);
std::string_view memory_type(ElementType type);

/// A constant in C++.
std::string number(ElementType type, Cell cell);
/// The NaN of a real type, as a register holds it.
std::string not_a_number(ElementType type);

}  // namespace tessera::internal::codegen
