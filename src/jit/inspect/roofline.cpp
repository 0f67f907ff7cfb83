#include "jit/inspect/roofline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "codegen/schedule/machine_model.hpp"

namespace tessera::internal {
namespace {

/// Rates of one multiprocessor, a cycle.
struct Roof {
  double bytes, fma_flops, tensor_flops;  // the last one of 16-bit operands

  static std::optional<Roof> of(Arch arch) {
    if (arch != Arch::sm_90a) return {};  // no other one has a model
    const MachineModel& machine = MachineModel::h200();
    constexpr double multiprocessors = 132, fma_units = 128;  // of an H200 (NVIDIA H100 Tensor Core GPU Architecture)
    return Roof{machine.memory_bandwidth / multiprocessors, 2 * fma_units, 2 * machine.macs};
  }
  double flops(const LoweringRecord::Node& node) const {
    return node.tensor_core_bytes ? tensor_flops * 2 / node.tensor_core_bytes : fma_flops;
  }
};

}  // namespace

std::string bound_text(const LoweringRecord::Node& node, Arch arch) {
  std::string text;
  if (const std::optional<Roof> roof = Roof::of(arch)) {
    if (node.bytes)
      text = fmt::format("{:.0f} cycles of a multiprocessor's share of memory",
                         static_cast<double>(node.bytes) / roof->bytes);
    else if (node.flops)
      text = fmt::format("{:.0f} cycles of its {}", static_cast<double>(node.flops) / roof->flops(node),
                         node.tensor_core_bytes ? "tensor cores" : "FMA units");
  }
  if (node.repeated && (node.bytes || node.flops)) text += text.empty() ? "an iteration" : ", an iteration";
  return text;
}

std::string roofline_text(const LoweringRecord& record, Arch arch) {
  std::int64_t bytes = 0, flops = 0;
  bool repeated = false;
  const LoweringRecord::Node* matmul = nullptr;
  for (const LoweringRecord::Node& node : record.nodes) {
    bytes += node.bytes, flops += node.flops;
    repeated |= node.repeated && (node.bytes || node.flops);
    if (node.tensor_core_bytes) matmul = &node;
  }
  std::string text = fmt::format("{} bytes and {} flops{}: {:.1f} flops a byte, if every access reaches memory.", bytes,
                                 flops, repeated ? " (loops whose trip counts the launch decides count once)" : "",
                                 bytes ? static_cast<double>(flops) / static_cast<double>(bytes) : 0.0);
  if (const std::optional<Roof> roof = Roof::of(arch))
    text += fmt::format(" On an H200 memory and {} take equally long at {:.0f} flops a byte.",
                        matmul ? "tensor cores" : "FMA units",
                        (matmul ? roof->flops(*matmul) : roof->fma_flops) / roof->bytes);
  return text;
}

}  // namespace tessera::internal
