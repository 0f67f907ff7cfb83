// Orders along one axis of a value.
#pragma once
#include "cpu/lines.hpp"

namespace tessera::internal::cpu {

/// The first `kept` elements of each line in order, dense, and their indices along the axis, equal ones in rising
/// order. Either may be nullptr, if it is not wanted.
void sort(ElementType type, const Lines& lines, SortOptions options, int kept, char* values, std::int32_t* indices);
/// How many elements of each line, of i32, are 0, 1, ..., bins - 1.
void histogram(const Lines& lines, int bins, std::int32_t* out);

}  // namespace tessera::internal::cpu
