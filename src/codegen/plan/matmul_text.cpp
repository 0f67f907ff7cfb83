#include "codegen/plan/matmul_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/plan/names.hpp"

namespace tessera::internal::codegen {

std::string matmul_text(const Plan& plan, const Role& role, const Wgmma& s) {
  const auto matrix = [&](const Buffer& buffer, bool k_major) {
    const MatrixDescriptor at = descriptor_of(buffer, k_major);
    return fmt::format("{} advances {} per {} of k, stride {} per 8 rows{}", name_of(buffer.label), at.k_step,
                       wgmma_depth(buffer.type), at.stride,
                       at.leading > 1 ? fmt::format(", leading {} per panel", at.leading) : "");
  };
  const int rows = s.m / std::max(role.warps / 4, 1);
  std::string text = fmt::format(
      "{} {} {} {}: wgmma, {} rows per warp group by {}; descriptors in units of 16 bytes: ", name_of(plan, s.out),
      s.overwrites ? "=" : "+=", s.left ? name_of(plan, s.left) : name_of(plan, s.a), name_of(plan, s.b), rows, s.n);
  if (!s.left) text += matrix(plan.buffers[s.a], s.a_k_major) + "; ";
  return text + matrix(plan.buffers[s.b], s.b_k_major);
}

std::string warps_text(const Matmul& matmul) {
  const std::string text = fmt::format("{} x {} warps", matmul.warps_m, matmul.warps_n);
  return matmul.slices() == 1 ? text : fmt::format("{} for each of {} slices of k", text, matmul.slices());
}

std::string matmul_text(const Plan& plan, const Mma& mma) {
  const Matmul& matmul = mma.matmul;
  constexpr std::string_view kind[] = {"mma.sync", "simt, operands in shared memory", "gemv, operands in registers"};
  const auto operand = [&](const MatmulOperand& o) {
    if (o.buffer) return name_of(plan, o.buffer);
    return name_of(plan, o.value);
  };
  std::string text =
      fmt::format("{} += {} {}: [{},{}] x [{},{}] {}, {}", name_of(plan, mma.out), operand(matmul.a), operand(matmul.b),
                  matmul.m, matmul.k, matmul.k, matmul.n, name(matmul.type), kind[static_cast<int>(matmul.kind)]);
  if (matmul.kind != MatmulKind::gemv) text += ", " + warps_text(matmul);
  if (matmul.reads_ahead) text += ", fragments read one k-step ahead";
  if (mma.fetching) text += fmt::format(", fetch of {} inside", name_of(plan, mma.fetching));
  if (mma.holds_last) text += ", last k-step deferred";
  if (matmul.partial) text += ", reduced over lanes and warps after the loop";
  return text;
}

}  // namespace tessera::internal::codegen
