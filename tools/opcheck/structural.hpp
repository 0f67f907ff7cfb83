// A function for each structural op of ops.def, by its name: an op without one does not compile.
#pragma once
#include "opcheck/case.hpp"

namespace tessera::internal::opcheck::structural {

constexpr ElementType i32 = ElementType::i32, pred = ElementType::pred;

#define UNARY(...)
#define BINARY(...)
#define TERNARY(...)
#define REDUCTION(...)
#define STRUCTURAL(name, ...) std::vector<Case> name(ElementType type, Purpose purpose);
#include "tessera/graph/ops.def"

}  // namespace tessera::internal::opcheck::structural
