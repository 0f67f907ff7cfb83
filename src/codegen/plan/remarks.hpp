// Remarks of a plan. Passes append them where they make decisions.
#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// The subject of a remark.
namespace remark_kind {
inline constexpr std::string_view launch = "launch", wgmma = "wgmma", mma_sync = "mma.sync", fma = "fma", tma = "tma",
                                  cp_async = "cp.async", vector = "vector", split_k = "split-k", exchange = "exchange",
                                  registers = "registers", shared = "shared", pdl = "pdl", hint = "hint";
}  // namespace remark_kind

template <class... Args>
void add_remark(Plan& plan, Location at, Remark::Status status, std::string_view kind,
                fmt::format_string<Args...> format, Args&&... args) {
  plan.remarks.push_back({.file = at.file ? at.file : "",
                          .line = at.line,
                          .status = status,
                          .kind = std::string(kind),
                          .message = fmt::format(format, std::forward<Args>(args)...)});
}

/// The remarks that explain a plan as a whole, as lines of its text.
std::vector<std::string> notes(const Plan& plan);

/// The warning for a kernel's author: tiles outside of registers, operands outside of shared memory. It names the
/// first one (remarks about registers are sorted by size, largest first) and counts the others. Empty if there is none.
std::string slow_tiles(std::string_view kernel, const std::vector<Remark>& remarks);

}  // namespace tessera::internal::codegen
