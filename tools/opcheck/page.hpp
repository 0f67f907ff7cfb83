// docs/ops.md: how each op and function of the language is written, what it takes and means.
#pragma once
#include <string>

namespace tessera::internal::opcheck {

/// The page, made from ops.def and functions.def.
std::string page();

}  // namespace tessera::internal::opcheck
