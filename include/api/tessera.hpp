// As tessera/tessera.hpp, for programs in the tree that include it by this name.
#pragma once
#include "tessera/tessera.hpp"  // IWYU pragma: export
