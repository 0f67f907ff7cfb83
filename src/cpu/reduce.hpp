// Reductions and scans along one axis of a value.
#pragma once
#include "cpu/lines.hpp"

namespace tessera::internal::cpu {

/// Results are dense; the axis has extent 1 (for scans, its extent is unchanged).
void reduce(Op op, ElementType type, const Lines& lines, char* out);
void argmax(ElementType type, const Lines& lines, std::int32_t* out);
void scan(Op op, ElementType type, const Lines& lines, ScanOptions options, char* out);

}  // namespace tessera::internal::cpu
