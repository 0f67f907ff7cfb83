// What a user of Tessera includes: the language, tensors, devices, launches.
#pragma once
#include "dsl/expr.hpp"  // ahead of what includes it, as compilers name all files on the way in each error

#include "api/dlpack.hpp"           // IWYU pragma: export
#include "api/kernel.hpp"           // IWYU pragma: export
#include "api/sequence.hpp"         // IWYU pragma: export
#include "api/tensor.hpp"           // IWYU pragma: export
#include "jit/choose.hpp"           // IWYU pragma: export
#include "jit/options/options.hpp"  // IWYU pragma: export
