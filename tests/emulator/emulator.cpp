#include "emulator/emulator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <numeric>
#include <set>

#include "codegen/parameter_values.hpp"
#include "emulator/block.hpp"
#include "emulator/checks.hpp"
#include "emulator/cluster.hpp"
#include "emulator/library.hpp"
#include "emulator/tensor_map.hpp"
#include "graph/reports.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {

using namespace emulator;

namespace {

/// The second number of a kernel's launch bounds; without it, ptxas takes 1.
int blocks_of_multiprocessor(std::string_view text) {
  constexpr std::string_view bounds = "__launch_bounds__(";
  const std::size_t begin = text.find(bounds), comma = text.find_first_of(",)", begin);
  int blocks = 1;
  if (begin != text.npos && text[comma] == ',') std::from_chars(&text[comma + 2], text.data() + text.size(), blocks);
  return blocks;
}

}  // namespace

class Emulator::State {
 public:
  State(std::span<const KernelSource> kernels, bool contract)
      : kernels_(kernels.begin(), kernels.end()), contract_(contract) {}

  Report run(std::size_t kernel, const Graph& graph, std::span<const Argument> arguments,
             std::span<const std::int64_t> grid, const RunOptions& options);

 private:
  const Library& library(bool checks);
  bool launch(const Launch& launch, const Stacks& stacks, int in_flight, bool in_order);

  std::vector<KernelSource> kernels_;
  bool contract_;
  std::shared_ptr<const Library> libraries_[2];  ///< without and with checks
};

const Library& Emulator::State::library(bool checks) {
  std::shared_ptr<const Library>& library = libraries_[checks];
  if (!library) library = Library::of(kernels_, checks, contract_);
  return *library;
}

/// Runs the clusters of a launch, `in_flight` at a time, in a random order; most clusters are a single CTA. If CTAs
/// wait for each other, they start in index order, as on a GPU. Returns false if one of them stopped.
bool Emulator::State::launch(const Launch& launch, const Stacks& stacks, int in_flight, bool in_order) {
  std::vector<std::int64_t> waiting(static_cast<std::size_t>(launch.blocks / launch.cluster));
  std::iota(waiting.begin(), waiting.end(), 0);
  for (std::size_t i = waiting.size(); i > 1 && !in_order; --i) {
    std::swap(waiting[i - 1], waiting[static_cast<std::size_t>(launch.random.below(static_cast<int>(i)))]);
  }
  if (in_order) std::ranges::reverse(waiting);
  std::vector<std::unique_ptr<Cluster>> running(static_cast<std::size_t>(in_flight));  // each with stacks of its own
  std::vector<int> live;
  std::set<int> stuck;  // since one last made progress
  for (int i = 0; i < in_flight; ++i) live.push_back(i);
  while (!live.empty()) {
    const int pick = launch.random.below(static_cast<int>(live.size()));
    const int slot = live[static_cast<std::size_t>(pick)];
    std::unique_ptr<Cluster>& cluster = running[static_cast<std::size_t>(slot)];
    if (!cluster) {
      if (waiting.empty()) {
        live.erase(live.begin() + pick);
        continue;
      }
      cluster = std::make_unique<Cluster>(launch, waiting.back(), stacks, slot * launch.cluster * launch.threads);
      waiting.pop_back();
    }
    if (cluster->step()) {
      stuck.clear();
      continue;
    }
    if (cluster->stopped()) return false;
    if (!cluster->waits_for_flag()) {
      cluster.reset();
      stuck.clear();
      continue;
    }
    stuck.insert(slot);
    if (stuck.size() < live.size()) continue;
    cluster->report_stuck();
    return false;
  }
  return true;
}

Report Emulator::State::run(std::size_t index, const Graph& graph, std::span<const Argument> arguments,
                            std::span<const std::int64_t> grid, const RunOptions& options) {
  const KernelSource& kernel = kernels_.at(index);
  if (kernel.threads <= 0 || kernel.threads % warp_size != 0 || kernel.threads > 1024) {
    throw InternalError(fmt::format("kernel {} has blocks of {} threads", kernel.name, kernel.threads));
  }
  std::int64_t blocks = std::accumulate(grid.begin(), grid.end(), std::int64_t{1}, std::multiplies<>());
  if (blocks == 0) return {};
  if (kernel.multicast > 1 && !grid.empty())  // grid tiles that the CTAs of a cluster take together
    blocks = blocks / grid[0] * ((grid[0] + kernel.multicast - 1) / kernel.multicast);
  const bool by_grid = kernel.split_k == SplitK::stream_k;
  const std::int64_t most = kernel.persistent ? options.persistent_blocks : blocks;
  const int in_flight = static_cast<int>(std::min<std::int64_t>(options.blocks_in_flight, most));
  const int cluster = kernel.split_k == SplitK::cluster ? options.cluster : kernel.multicast;
  const int lockstep_rows = kernel.split_k == SplitK::stream_k ? options.lockstep_rows : 1;
  const Library& library = this->library(options.checks);
  const LentStacks lent(in_flight * cluster * kernel.threads);
  const Stacks& stacks = *lent;
  DeviceMemory memory(graph, arguments);
  const std::span<const int> early =
      options.may_prefetch ? std::span<const int>(kernel.prefetched_before_wait) : std::span<const int>();
  Checks checks(stacks, library.lines(), options.checks ? memory.tensor_shadows(early) : std::vector<Shadow>());
  Random random(options.seed);
  Report report;
  const Reports reports(graph);
  std::vector<std::uint32_t> board(reports.empty() ? 0 : reports.words());
  const std::int64_t count = by_grid ? most / lockstep_rows * lockstep_rows : std::min(most, blocks);
  Flags flags(count * cluster);
  Atomics atomics;
  char* const workspace = memory.new_workspace(static_cast<std::size_t>(kernel.workspace_bytes * count * cluster));
  const auto address = [](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); };
  const LaunchValues values{.blocks = blocks,
                            .at_once = count,
                            .workspace = address(workspace),
                            .flags = address(flags.data()),
                            .reports = address(board.data()),
                            .lockstep_rows = lockstep_rows,
                            .may_prefetch = options.may_prefetch};
  std::vector<std::uint64_t> cells;
  for (const KernelParameter& parameter : kernel.parameters) {
    if (parameter.kind == KernelParameter::Kind::tensor_map) {
      const TmaTensor& tma_tensors = kernel.tma_tensors.at(static_cast<std::size_t>(parameter.argument));
      const auto argument = static_cast<std::size_t>(tma_tensors.argument);
      const MapWords words = encode(tma_tensors, graph.parameters.at(argument), memory.arguments()[argument]);
      cells.insert(cells.end(), words.begin(), words.end());
      continue;
    }
    if (parameter.kind == KernelParameter::Kind::list) {
      const std::size_t first = cells.size(), bytes = bytes_of(parameter, graph, kernel.index64);
      cells.resize(first + bytes / sizeof(std::uint64_t));
      write_list(parameter, memory.arguments(), graph, kernel.index64, reinterpret_cast<std::byte*>(&cells[first]));
      continue;
    }
    cells.push_back(static_cast<std::uint64_t>(value_of(parameter, memory.arguments(), grid, values)));
  }
  const Launch launch{.kernel = kernel.name,
                      .entry = library.entry(index),
                      .cells = cells,
                      .threads = kernel.threads,
                      .blocks_of_multiprocessor = blocks_of_multiprocessor(kernel.text),
                      .shared_bytes = kernel.shared_bytes,
                      .blocks = count * cluster,
                      .cluster = cluster,
                      .first_block = 1,
                      .lines = library.lines(),
                      .random = random,
                      .report = report,
                      .flags = flags,
                      .atomics = atomics,
                      .checks = options.checks ? &checks : nullptr};
  if (options.checks) checks.begin_launch(launch.first_block, memory.workspace_shadow());
  const bool ended = this->launch(launch, stacks, in_flight, by_grid);
  if (const int raised = ended ? flags.raised() : 0)
    report.faults.push_back({.kind = Fault::Kind::misuse,
                             .kernel = kernel.name,
                             .line = {},
                             .text = fmt::format("kernel {} leaves {} flags set", kernel.name, raised)});
  memory.copy_back();
  if (!reports.empty()) {
    const Reports::Told told = reports.take(board);
    std::fwrite(told.printed.data(), 1, told.printed.size(), stdout);
    if (!told.failed.empty())
      report.faults.push_back(
          {.kind = Fault::Kind::failed_check, .kernel = kernel.name, .line = {}, .text = told.failed});
  }
  return report;
}

std::string Report::text() const {
  std::string text;
  for (const Fault& fault : faults) text += fault.text + "\n";
  return text;
}

Emulator::Emulator(std::unique_ptr<State> state) : state_(std::move(state)) {}
Emulator::Emulator(Emulator&&) noexcept = default;
Emulator& Emulator::operator=(Emulator&&) noexcept = default;
Emulator::~Emulator() = default;

Emulator Emulator::compile(std::span<const KernelSource> kernels, bool contract) {
  return Emulator(std::make_unique<State>(kernels, contract));
}

Report Emulator::run(std::size_t kernel, const Graph& graph, std::span<const Argument> arguments,
                     std::span<const std::int64_t> grid, const RunOptions& options) const {
  return state_->run(kernel, graph, arguments, grid, options);
}

}  // namespace tessera::internal
