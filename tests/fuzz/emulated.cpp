#include "fuzz/emulated.hpp"

#include <fmt/format.h>

#include "codegen/generate.hpp"
#include "codegen/passes.hpp"
#include "emulator/emulator.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal::fuzz {
namespace {

/// By Fault::Kind.
constexpr std::string_view fault_names[] = {
    "missing lane", "divergent barrier", "failed check",       "deadlock",       "misuse", "out of bounds",
    "misaligned",   "write to an In",    "uninitialised read", "copy in flight", "race",   "missing fence"};
static_assert(std::size(fault_names) == static_cast<std::size_t>(Fault::Kind::missing_fence) + 1);

struct Kernel {
  std::size_t trial;
  Graph graph;
  KernelSource source;
};

/// One in five programs computes offsets as for large tensors.
bool is_wide(const Trial& trial) { return trial.seed() % 5 == 0; }

}  // namespace

std::vector<std::optional<Failure>> check_emulated(std::span<const std::unique_ptr<Trial>> trials) {
  std::vector<std::optional<Failure>> failures(trials.size());
  std::vector<Kernel> kernels;
  std::vector<KernelSource> sources;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (!trials[i] || trials[i]->is_refused()) continue;
    // Generating is a part of the launch: its exceptions are this trial's failure.
    failures[i] = trials[i]->check("generate", [&](Memory& memory) -> std::optional<Failure> {
      Kernel kernel{i, run_passes(trials[i]->graph()), {}};
      Variant variant = classify(kernel.graph, memory.arguments());
      variant.index64 |= is_wide(*trials[i]);
      kernel.source = generate(kernel.graph, variant, Arch::sm_90a);
      // Every other kernel with a single role is generated for another architecture.
      if (trials[i]->seed() % 2 && kernel.source.tma_tensors.empty())
        kernel.source = generate(kernel.graph, variant, Arch::sm_80);
      sources.push_back(kernel.source);
      kernels.push_back(std::move(kernel));
      return Failure{};  // nothing has run yet
    });
    if (failures[i] && failures[i]->kind.empty()) failures[i].reset();
  }
  const bool contract = !kernels.empty() && trials[kernels[0].trial]->seed() / 16 % 2;  // every other batch
  const Emulator emulator = Emulator::compile(sources, contract);
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const Trial& trial = *trials[kernels[k].trial];
    failures[kernels[k].trial] = trial.check("emulated", [&](Memory& memory) -> std::optional<Failure> {
      const RunOptions options{.seed = trial.seed(),
                               .blocks_in_flight = 1 + static_cast<int>(trial.seed() % 3),
                               .persistent_blocks = 1 + static_cast<int>(trial.seed() % 4)};
      const Report report = emulator.run(k, kernels[k].graph, memory.arguments(), trial.grid(), options);
      if (report.clean()) return {};
      return Failure{fmt::format("emulated: {}", fault_names[static_cast<std::size_t>(report.faults[0].kind)]),
                     report.faults[0].text};
    });
  }
  return failures;
}

}  // namespace tessera::internal::fuzz
