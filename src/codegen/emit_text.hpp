// How pieces of generated text are spelled.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "codegen/layout.hpp"
#include "graph/host_ops.hpp"

namespace tessera {

/// An element of a tile in a register, in scratch memory (where a truth value takes as much room as a number), and in a
/// tensor.
std::string_view register_type(ElementType type);
std::string_view scratch_type(ElementType type);
std::string_view memory_type(ElementType type);

/// A constant.
std::string number(ElementType type, Cell cell);

/// Parentheses around what is not one name, number or call.
std::string atom(std::string text);

/// "a + b" with a and b replaced, by what needs no parentheses there.
std::string substitute(std::string_view pattern, const std::string& a, const std::string& b);

std::string joined(const std::vector<std::string>& parts, std::string_view between, std::string_view none);

/// Of two conditions, an empty one being always true.
std::string both(const std::string& a, const std::string& b);

/// The number that the digits make of an index below `count`.
std::string digits(const std::vector<Digit>& map, const std::string& index, int count);

}  // namespace tessera
