#include "tensors/run_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>

#include "jit/backend/overlap.hpp"
#include "jit/options/options.hpp"
#include "tessera/jit/copy_tensor.hpp"
#include "tessera/jit/source.hpp"

namespace tessera::internal {
namespace {

// Plans by the program and the device, in the order in which they were made.
class Plans {
 public:
  std::shared_ptr<const TensorPlan> of(const TensorProgram& program, const Device& device, bool fuse) {
    std::string key = fmt::format("{} {} ", device.name(), fuse) + program.key;
    const std::lock_guard lock(mutex_);
    if (const auto found = plans_.find(key); found != plans_.end()) return found->second;
    auto plan = std::make_shared<const TensorPlan>(program, matmul_target(device), fuse);
    constexpr std::size_t most = 1024;
    if (order_.size() >= most) plans_.erase(order_.front()), order_.pop_front();
    order_.push_back(key);
    return plans_[std::move(key)] = std::move(plan);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const TensorPlan>> plans_;
  std::deque<std::string> order_;
};

[[noreturn]] void refuse_numbers() {
  throw Error("a tensor program of numbers alone has no device; give it a tensor, or full() of a device");
}

struct Prepared {
  Given given;
  std::shared_ptr<const TensorPlan> plan;
};

Prepared prepare(const std::vector<LazyRef>& values, bool fuse = true) {
  Trace::refuse_launch("of a tensor program");
  Prepared prepared;
  const TensorProgram program = canonical(values, prepared.given);
  if (!prepared.given.device) refuse_numbers();
  prepared.plan = plan_of(program, *prepared.given.device, fuse);
  return prepared;
}

std::shared_ptr<void> memory_of(const TensorPlan& plan, const Device& device) {
  return plan.memory() > 0 ? device.allocate(static_cast<std::size_t>(plan.memory())) : nullptr;
}

}  // namespace

std::shared_ptr<const TensorPlan> plan_of(const TensorProgram& program, const Device& device, bool fuse) {
  static Plans& plans = *new Plans;  // usable until the process ends
  return plans.of(program, device, fuse && options().fusion == "on");
}

void launch_plan(const TensorPlan& plan, const Given& given, std::span<const detail::AnyTensor> results,
                 const Stream& stream) {
  const Device& device = *given.device;
  if (!device.has(stream))
    throw Error(fmt::format("the tensors of a program are on {}, and the stream is of {}", device.name(),
                            stream.device_name()));
  // Its memory is free again when the call returns, and a recorded graph would go on using it.
  refuse_while_recording("a tensor program is run (record its launches instead: compile(f).sequence(...))");
  const std::shared_ptr<void> memory = memory_of(plan, device);
  if (plan.kernels().size() > 1 && plan.begins_warm_up()) {
    Sequence launches(device);
    for (const PlannedKernel& kernel : plan.kernels())
      if (kernel.executable)
        launches.append(kernel.executable, plan.arguments(kernel, given, results, memory.get()), {});
    launches.warm_up();
  }
  for (const PlannedKernel& kernel : plan.kernels())
    if (kernel.executable) kernel.executable->launch(stream, plan.arguments(kernel, given, results, memory.get()));
}

LazySequence sequence_of(const TensorPlan& plan, const Given& given) {
  const Device& device = *given.device;
  LazySequence made{Sequence(device), plan.new_results(device)};
  const std::shared_ptr<void> memory = memory_of(plan, device);
  for (const PlannedKernel& kernel : plan.kernels()) {
    if (!kernel.executable) continue;
    std::vector<std::shared_ptr<void>> owners{memory};
    const auto arguments = plan.arguments(kernel, given, made.results, memory.get(), &owners);
    made.sequence.append(kernel.executable, arguments, owners);
  }
  return made;
}

std::vector<detail::AnyTensor> run_lazy(const std::vector<LazyRef>& values, const Stream* stream, bool fuse) {
  const Prepared prepared = prepare(values, fuse);
  auto results = prepared.plan->new_results(*prepared.given.device);
  launch_plan(*prepared.plan, prepared.given, results, stream ? *stream : prepared.given.device->stream());
  return results;
}

void run_lazy_into(const LazyRef& value, const detail::AnyTensor& out, const Stream* stream) {
  if (out.type != value->type || !(Extents(out.extents()) == value->extents))
    throw Error(fmt::format("{}:{}: run into {}, where the result is {} {}", value->location.file, value->location.line,
                            out.text(), name(value->type), to_string(value->extents)));
  const Prepared prepared = prepare({value});
  const Device& device = *prepared.given.device;
  if (!out.device || !(*out.device == device))
    throw Error(fmt::format("{}:{}: run into a tensor of {}, and the inputs are on {}", value->location.file,
                            value->location.line, out.device ? out.device->name() : "no device", device.name()));
  const Stream to = stream ? *stream : device.stream();
  const auto overlaps = [&](const detail::AnyTensor& input) {
    return overlap(out.parameter(Access::out), out.place, input.parameter(Access::in), input.place);
  };
  if (out.is_dense() && std::none_of(prepared.given.inputs.begin(), prepared.given.inputs.end(), overlaps)) {
    launch_plan(*prepared.plan, prepared.given, std::span(&out, 1), to);
    return;
  }
  const auto results = prepared.plan->new_results(device);
  launch_plan(*prepared.plan, prepared.given, results, to);
  detail::copy(out, results.front(), &to);
}

std::string lazy_text(const std::vector<LazyRef>& values) {
  Given given;
  return to_string(canonical(values, given));
}

namespace {

// A plan for the program's device, or for GPUs of an architecture. It is a new one, with the places of this program.
std::shared_ptr<const TensorPlan> plan_for(const std::vector<LazyRef>& values, std::optional<Arch> arch) {
  Given given;
  const TensorProgram program = canonical(values, given);
  if (!arch && !given.device) refuse_numbers();
  const MatmulTarget target = arch ? matmul_target(*arch) : matmul_target(*given.device);
  return std::make_shared<const TensorPlan>(program, target, options().fusion == "on");
}

}  // namespace

std::string describe_lazy(const std::vector<LazyRef>& values, std::optional<Arch> arch) {
  return plan_for(values, arch)->describe();
}

std::string lazy_graph(const std::vector<LazyRef>& values, std::optional<Arch> arch) {
  return plan_for(values, arch)->graph();
}

std::vector<std::shared_ptr<const Executable>> lazy_kernels(const std::vector<LazyRef>& values,
                                                            std::optional<Arch> arch) {
  const auto plan = plan_for(values, arch);
  std::vector<std::shared_ptr<const Executable>> kernels;
  for (const PlannedKernel& kernel : plan->kernels())
    if (kernel.executable) kernels.push_back(kernel.executable);
  return kernels;
}

std::string lazy_cuda_source(const std::vector<LazyRef>& values, Arch arch) {
  std::string text;
  for (const auto& kernel : lazy_kernels(values, arch)) text += cuda_source(kernel->graph(), arch) + "\n";
  return text;
}

std::string explain_lazy(const std::vector<LazyRef>& values) {
  const Prepared prepared = prepare(values);
  const LazySequence run = sequence_of(*prepared.plan, prepared.given);
  std::string text = prepared.plan->describe();
  const Stream stream = prepared.given.device->stream();
  run.sequence.run(stream);
  stream.synchronize();
  std::size_t launch = 0;
  double total = 0;
  text += fmt::format("{:>4} {:>12} {:>12} {:>12} {:>10} {:>8} {:>8}  {}\n", "", "MB", "GFLOP", "predicted us", "us",
                      "GB/s", "GFLOP/s", "kernel");
  for (const PlannedKernel& kernel : prepared.plan->kernels()) {
    if (!kernel.executable) continue;
    constexpr int rounds = 7;
    std::vector<double> times;
    for (int i = 0; i < rounds; ++i) {
      const Event begin = stream.record();
      run.sequence.run(stream, launch, launch + 1);
      times.push_back(stream.record().milliseconds_since(begin) * 1e3);
    }
    std::sort(times.begin(), times.end());
    const double us = std::max(times[rounds / 2], 1e-3);
    total += us;
    const std::string predicted = kernel.predicted_us > 0 ? fmt::format("{:.1f}", kernel.predicted_us) : "-";
    text += fmt::format("{:4} {:12.3f} {:12.4f} {:>12} {:10.1f} {:8.0f} {:8.0f}  {}\n", ++launch,
                        static_cast<double>(kernel.bytes) * 1e-6, static_cast<double>(kernel.operations) * 1e-9,
                        predicted, us, static_cast<double>(kernel.bytes) / us * 1e-3,
                        static_cast<double>(kernel.operations) / us * 1e-3, kernel.executable->name());
  }
  return text + fmt::format("{:>4} {:>12} {:>12} {:>12} {:10.1f}\n", "all", "", "", "", total);
}

}  // namespace tessera::internal
