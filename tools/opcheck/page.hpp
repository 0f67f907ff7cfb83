// docs/ops.md: the syntax, operands and meaning of each op and function of the language.
#pragma once
#include <string>

namespace tessera::internal::opcheck {

/// The page, made from ops.def and functions.def.
std::string page();

}  // namespace tessera::internal::opcheck
