// Bytes and flops of a grid tile against what a GPU can do.
#pragma once
#include <string>

#include "codegen/lowering_record.hpp"
#include "tessera/codegen/arch.hpp"

namespace tessera::internal {

/// How long a node takes at least, in words; empty if nothing is known of it.
std::string bound_text(const LoweringRecord::Node& node, Arch arch);
/// The same of a kernel: its bytes, flops and their ratio, and the ratio at which memory and arithmetic take equally
/// long.
std::string roofline_text(const LoweringRecord& record, Arch arch);

}  // namespace tessera::internal
