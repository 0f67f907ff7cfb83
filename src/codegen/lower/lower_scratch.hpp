// Scratch memory, and values that are written to it and read back.
#pragma once
#include "codegen/lower/lower_steps.hpp"

namespace tessera::internal::lowering {

/// Strides of consecutive elements, the last axis innermost.
Strides row_major(const Shape& shape);
ScratchId new_scratch(Plan& plan, std::int64_t elements, ElementType type);
/// Scratch memory = a value, for node `id`.
void put(Steps& steps, ValueId from, Id id, const Strides& strides, std::int64_t base, ScratchId scratch);
/// A value = scratch memory.
void get(Steps& steps, ValueId out, Id id, const Strides& strides, ScratchId scratch);

}  // namespace tessera::internal::lowering
