// Orders along one axis of a value.
#pragma once
#include "cpu/lines.hpp"

namespace tessera::internal::cpu {

/// Results are dense, with the first `kept` of the axis in order.
void sort(ElementType type, const Lines& lines, SortOptions options, int kept, char* out);
/// Their indices along the axis, equal ones in rising order.
void argsort(ElementType type, const Lines& lines, SortOptions options, int kept, std::int32_t* out);
/// How many elements of each line, of i32, are 0, 1, ..., bins - 1.
void histogram(const Lines& lines, int bins, std::int32_t* out);

}  // namespace tessera::internal::cpu
