// What a user of Tessera includes: the language, tensors, devices, launches.
#pragma once
#include "api/kernel.hpp"           // IWYU pragma: export
#include "api/sequence.hpp"         // IWYU pragma: export
#include "api/tensor.hpp"           // IWYU pragma: export
#include "jit/choose.hpp"           // IWYU pragma: export
#include "jit/options/options.hpp"  // IWYU pragma: export
