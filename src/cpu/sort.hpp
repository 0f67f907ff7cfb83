// Sorting, histograms and inverse permutations along one axis of a value.
#pragma once
#include "cpu/lines.hpp"

namespace tessera::internal::cpu {

/// The first `kept` elements of each line in order, dense, and their indices along the axis; the order of equal
/// elements is stable. Either may be nullptr if it is not needed.
void sort(ElementType type, const Lines& lines, SortOptions options, int kept, char* values, std::int32_t* indices);
/// The number of elements of each line, of i32, that are 0, 1, ..., bins - 1.
void histogram(const Lines& lines, int bins, std::int32_t* out);
/// The last position in each line, of i32, of 0, 1, ..., extent - 1; -1 for a number that the line does not have.
void inverse_permutation(const Lines& lines, int extent, std::int32_t* out);

}  // namespace tessera::internal::cpu
