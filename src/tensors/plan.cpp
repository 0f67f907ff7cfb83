#include "tensors/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "tensors/rewrite.hpp"

namespace tessera::internal {
namespace {

// Kernels with the same text are one, whatever program they are part of.
std::shared_ptr<const Executable> executable_of(Graph graph) {
  static std::mutex mutex;
  static auto& known =
      *new std::map<std::string, std::shared_ptr<const Executable>>();  // usable until the process ends
  constexpr std::size_t most = 4096;
  std::string text = to_string(graph);
  for (const CustomFunction& function : graph.functions)
    text += fmt::format("{} {} {} {} {}\n", function.name, function.expression, name(function.type), function.operands,
                        fmt::ptr(reinterpret_cast<const void*>(function.run)));
  const std::lock_guard lock(mutex);
  if (known.size() >= most) known.clear();
  auto& found = known[std::move(text)];
  if (!found) found = std::make_shared<const Executable>(std::move(graph));
  return found;
}

// The names of what the members compute, each once, in order.
std::vector<std::string_view> steps_of(const TensorProgram& program, const FusedKernel& kernel) {
  std::vector<std::string_view> steps;
  for (int member : kernel.members) {
    const Value& x = program.values[static_cast<std::size_t>(member)];
    if (x.op == TensorOp::broadcast && x.name == "broadcast") continue;
    if (x.op == TensorOp::cast && x.attr[0] == 0) continue;  // to and from the type that values are computed in
    if (std::find(steps.begin(), steps.end(), x.name) == steps.end()) steps.push_back(x.name);
  }
  if (steps.empty()) steps.push_back("copy");
  return steps;
}
std::string name_of(const std::vector<std::string_view>& steps) {
  std::string name;
  for (std::string_view step : steps) {
    if (name.size() + step.size() > 48) break;
    name += (name.empty() ? "" : "_") + std::string(step);
  }
  // The name of a map may be any text.
  for (char& c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))) c = '_';
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) name.insert(0, "map_");
  return name;
}

std::int64_t operations_of(const TensorProgram& program, int member) {
  const Value& x = program.values[static_cast<std::size_t>(member)];
  const auto operand = [&](std::size_t i) -> const Extents& {
    return program.values[static_cast<std::size_t>(x.in[i])].extents;
  };
  switch (x.op) {
    case TensorOp::matmul:
      return 2 * x.extents.size() * operand(0)[operand(0).rank() - 1];
    case TensorOp::attention: {
      const Extents &q = operand(0), &k = operand(1);
      const std::int64_t keys = k[k.rank() - 2];
      const std::int64_t all = 2 * q.size() * keys + 2 * x.extents.size() * keys;
      return x.attr[0] != 0 && q[q.rank() - 2] == keys ? all / 2 : all;
    }
    case TensorOp::map:
      return 10 * x.extents.size();
    case TensorOp::reduce:
      return operand(0).size();
    case TensorOp::permute:
    case TensorOp::slice:
    case TensorOp::broadcast:
      return 0;
    default:
      return x.extents.size();
  }
}

std::int64_t bytes_of(ElementType type) { return info(type).bytes; }

// The roofline: the bytes at the memory's speed, or the operations at that of their units, and the launch.
double predicted_us(const TensorProgram& program, const FusedKernel& kernel, const PlannedKernel& planned,
                    const MatmulTarget& target) {
  const MachineModel& machine = *target.machine;
  double macs = 128;  // a cycle, of a multiprocessor's f32 units
  if (!kernel.anchors.empty()) {
    const Value& anchor = program.values[static_cast<std::size_t>(kernel.anchors[0])];
    const ElementType operands = program.values[static_cast<std::size_t>(anchor.in[0])].type;
    const bool is_tf32 = anchor.op == TensorOp::matmul && anchor.attr[0] != 0;
    if (is_tf32 || has_wgmma(operands)) macs = machine.macs * 2 / static_cast<double>(bytes_of(operands));
  }
  const double compute = static_cast<double>(planned.operations) / 2 / (macs * target.multiprocessors);
  const double memory = static_cast<double>(planned.bytes) / machine.memory_bandwidth;
  return (machine.launch_overhead + std::max(compute, memory)) / machine.clock * 1e3;
}

}  // namespace

TensorPlan::TensorPlan(const TensorProgram& program, const MatmulTarget& target, bool fuse)
    : program_(split_reductions(fuse ? simplified(program) : program, std::max(target.multiprocessors, 1))) {
  fusion_ = internal::fuse(program_, {.fuse = fuse});
  const auto number = [&](const std::vector<int>& values) {
    std::vector<int> numbers(program_.values.size(), -1);
    for (std::size_t i = 0; i < values.size(); ++i)
      if (int& at = numbers[static_cast<std::size_t>(values[i])]; at < 0) at = static_cast<int>(i);
    return numbers;
  };
  input_ = number(program_.inputs), scalar_ = number(program_.scalars), result_ = number(program_.outputs);
  for (const FusedKernel& kernel : fusion_.kernels) {
    PlannedKernel planned;
    planned.steps = steps_of(program_, kernel);
    if (kernel.domain.size() > 0) {
      planned.tiling = choose_tiling(program_, fusion_, kernel, target);
      WrittenKernel written = write_kernel(program_, fusion_, kernel, planned.tiling, name_of(planned.steps));
      planned.executable = executable_of(std::move(written.graph));
      planned.arguments = std::move(written.arguments);
      for (const auto& [v, use] : kernel.reads) {
        std::int64_t read = 1;
        for (const AxisUse& along : use) read *= along.extent;
        planned.bytes += read * bytes_of(program_.values[static_cast<std::size_t>(v)].type);
      }
      for (const Result& result : kernel.results) {
        const Value& x = program_.values[static_cast<std::size_t>(result.value)];
        planned.bytes += x.extents.size() * bytes_of(x.type);
      }
      for (int member : kernel.members) planned.operations += operations_of(program_, member);
      if (target.gpu) planned.predicted_us = predicted_us(program_, kernel, planned, target);
    }
    kernels_.push_back(std::move(planned));
  }
  assign_memory();
}

// Each buffer from its first kernel to its last one; the largest first, at the lowest place where none that is needed
// at the same time is.
void TensorPlan::assign_memory() {
  struct Life {
    int value;
    std::size_t first, last;
    std::int64_t bytes, offset = 0;
  };
  std::map<int, Life> lives;
  for (std::size_t k = 0; k < kernels_.size(); ++k)
    for (const Passed& passed : kernels_[k].arguments) {
      const int base = passed.place.base;
      if (base < 0 || fusion_.storage[static_cast<std::size_t>(base)] != Storage::buffer ||
          result_[static_cast<std::size_t>(base)] >= 0)
        continue;
      const Value& x = program_.values[static_cast<std::size_t>(base)];
      constexpr std::int64_t alignment = 256;
      const std::int64_t bytes = (x.extents.size() * bytes_of(x.type) + alignment - 1) / alignment * alignment;
      lives.try_emplace(base, Life{base, k, k, bytes}).first->second.last = k;
    }
  std::vector<Life*> order;
  for (auto& [value, life] : lives) order.push_back(&life);
  std::stable_sort(order.begin(), order.end(), [](const Life* a, const Life* b) { return a->bytes > b->bytes; });
  offset_.assign(program_.values.size(), -1);
  for (std::size_t i = 0; i < order.size(); ++i) {
    Life& life = *order[i];
    std::vector<std::pair<std::int64_t, std::int64_t>> taken;
    for (std::size_t j = 0; j < i; ++j)
      if (order[j]->first <= life.last && life.first <= order[j]->last)
        taken.emplace_back(order[j]->offset, order[j]->offset + order[j]->bytes);
    std::sort(taken.begin(), taken.end());
    for (const auto& [begin, end] : taken)
      if (life.offset + life.bytes > begin) life.offset = std::max(life.offset, end);
    offset_[static_cast<std::size_t>(life.value)] = life.offset;
    memory_ = std::max(memory_, life.offset + life.bytes);
  }
}

std::vector<detail::AnyTensor> TensorPlan::new_results(const Device& device) const {
  std::vector<detail::AnyTensor> results;
  for (std::size_t i = 0; i < program_.outputs.size(); ++i) {
    const auto output = static_cast<std::size_t>(program_.outputs[i]);
    if (const auto first = static_cast<std::size_t>(result_[output]); first < i)
      results.push_back(results[first]);
    else
      results.push_back(detail::new_tensor(device, program_.values[output].type, program_.values[output].extents));
  }
  return results;
}

std::vector<Argument> TensorPlan::arguments(const PlannedKernel& kernel, const Given& given,
                                            std::span<const detail::AnyTensor> results, void* memory,
                                            std::vector<std::shared_ptr<void>>* owners) const {
  std::vector<Argument> arguments;
  for (const Passed& passed : kernel.arguments) {
    Argument argument;
    if (passed.scalar >= 0) {
      argument.scalar = given.scalars[static_cast<std::size_t>(scalar_[static_cast<std::size_t>(passed.scalar)])];
    } else {
      const auto base = static_cast<std::size_t>(passed.place.base);
      std::byte* data = nullptr;
      const detail::AnyTensor* tensor = nullptr;
      if (fusion_.storage[base] == Storage::input)
        tensor = &given.inputs[static_cast<std::size_t>(input_[base])];
      else if (result_[base] >= 0)
        tensor = &results[static_cast<std::size_t>(result_[base])];
      data = static_cast<std::byte*>(tensor ? tensor->place.data : memory);
      if (!tensor) data += offset_[base];
      if (owners && tensor) owners->push_back(tensor->memory);
      argument.data = data + passed.place.offset * bytes_of(program_.values[base].type);
      const std::span<const std::int64_t> extents = passed.place.extents;
      std::copy(extents.begin(), extents.end(), argument.extent.begin());
      argument.stride = passed.place.strides;
    }
    arguments.push_back(argument);
  }
  return arguments;
}

std::string TensorPlan::text_of(const PlannedKernel& kernel) const {
  const FusedKernel& fused = fusion_.kernels[static_cast<std::size_t>(&kernel - kernels_.data())];
  std::vector<std::string> results;
  for (const Result& result : fused.results) {
    const Value& x = program_.values[static_cast<std::size_t>(result.value)];
    results.push_back(fmt::format("{} {}", name(x.type), to_string(x.extents)));
  }
  const Location& place = program_.values[static_cast<std::size_t>(fused.results[0].value)].location;
  return fmt::format("{} -> {}  ({}:{})", fmt::join(kernel.steps, ", "), fmt::join(results, ", "), place.file,
                     place.line);
}

std::string TensorPlan::describe() const {
  std::string text = fmt::format("{} kernel{}, {} bytes of intermediate results\n", kernels_.size(),
                                 kernels_.size() == 1 ? "" : "s", memory_);
  for (std::size_t k = 0; k < kernels_.size(); ++k) {
    text += fmt::format("{:3}  {}\n", k + 1, text_of(kernels_[k]));
    for (const Result& result : fusion_.kernels[k].results) {
      const std::string& why = fusion_.reason[static_cast<std::size_t>(result.stored)];
      if (result_[static_cast<std::size_t>(result.stored)] < 0 && !why.empty())
        text += fmt::format("     stored: {}\n", why);
    }
  }
  return text;
}

std::string TensorPlan::graph() const {
  std::string text;
  const auto line = [&](int v) {
    const Location& place = program_.values[static_cast<std::size_t>(v)].location;
    text += fmt::format("{}  {}:{}\n", value_text(program_, v), place.file, place.line);
  };
  for (std::size_t v = 0; v < program_.values.size(); ++v)
    if (fusion_.storage[v] == Storage::input || fusion_.storage[v] == Storage::number ||
        fusion_.storage[v] == Storage::view)
      line(static_cast<int>(v));
  for (std::size_t k = 0; k < kernels_.size(); ++k) {
    const FusedKernel& kernel = fusion_.kernels[k];
    const Tiling& tiling = kernels_[k].tiling;
    std::vector<std::string> tile;
    for (int axis = 0; axis < kernel.domain.rank(); ++axis) {
      const bool is_whole = kernel.whole >> axis & 1u;
      tile.push_back(is_whole ? "row" : std::to_string(tiling.tile[static_cast<std::size_t>(axis)]));
    }
    text += fmt::format("kernel {}, tiles [{}]", fmt::join(kernels_[k].steps, "_"), fmt::join(tile, ","));
    if (!kernel.anchors.empty()) text += fmt::format(", in steps of {}", tiling.inner);
    text += '\n';
    for (int member : kernel.members) text += "  ", line(member);
    for (const Result& result : kernel.results)
      text += result.stored == result.value ? fmt::format("  stores %{}\n", result.value)
                                            : fmt::format("  stores %{} in %{}\n", result.value, result.stored);
  }
  return text;
}

}  // namespace tessera::internal
