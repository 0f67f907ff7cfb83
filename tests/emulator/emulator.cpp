#include "emulator/emulator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <map>
#include <numeric>
#include <set>

#include "codegen/parameter_values.hpp"
#include "emulator/block.hpp"
#include "emulator/checks.hpp"
#include "emulator/cluster.hpp"
#include "emulator/library.hpp"
#include "emulator/tensor_map.hpp"
#include "graph/reports.hpp"
#include "jit/backend/launch_table.hpp"
#include "jit/backend/overlap.hpp"
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

/// Reports of a kernel to the host.
class Mailbox {
 public:
  explicit Mailbox(const Graph& graph) : reports_(graph), board_(reports_.empty() ? 0 : reports_.words()) {}
  std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(board_.data()); }
  /// Prints, and adds a failed check to the report.
  void take(const std::string& kernel, Report& report) {
    if (reports_.empty()) return;
    const Reports::Told told = reports_.take(board_);
    std::fwrite(told.printed.data(), 1, told.printed.size(), stdout);
    if (!told.failed.empty())
      report.faults.push_back({.kind = Fault::Kind::failed_check, .kernel = kernel, .line = {}, .text = told.failed});
  }

 private:
  Reports reports_;
  std::vector<std::uint32_t> board_;
};

/// The table of a persistent kernel and all tensors of its launches, as the arguments of one kernel. A tensor that one
/// launch writes and another one reads is an InOut.
struct SequenceMemory {
  Graph graph;
  std::vector<Argument> arguments;

  SequenceMemory(const std::string& name, std::span<std::int32_t> table, std::span<const DeviceLaunch> launches) {
    graph.name = name;
    Parameter of_table;
    of_table.access = Access::in;
    of_table.type = ElementType::i32;
    of_table.rank = 1;
    graph.parameters.push_back(of_table);
    Argument at;
    at.data = table.data();
    at.extent[0] = static_cast<std::int64_t>(table.size());
    at.stride[0] = 1;
    arguments.push_back(at);
    for (const DeviceLaunch& launch : launches) {
      graph.parameters.insert(graph.parameters.end(), launch.graph->parameters.begin(), launch.graph->parameters.end());
      arguments.insert(arguments.end(), launch.arguments.begin(), launch.arguments.end());
    }
    const auto is_tensor = [&](std::size_t i) { return graph.parameters[i].access != Access::scalar; };
    std::vector<Access> access;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      access.push_back(graph.parameters[i].access);
      for (std::size_t j = 0; is_tensor(i) && j < arguments.size(); ++j)
        if (is_tensor(j) && graph.parameters[j].access != graph.parameters[i].access &&
            overlap(graph.parameters[i], arguments[i], graph.parameters[j], arguments[j]))
          access.back() = Access::in_out;
    }
    for (std::size_t i = 0; i < access.size(); ++i) graph.parameters[i].access = access[i];
  }
};

}  // namespace

class Emulator::State {
 public:
  State(std::span<const KernelSource> kernels, bool contract)
      : kernels_(kernels.begin(), kernels.end()), contract_(contract) {}

  Report run(std::size_t kernel, const Graph& graph, std::span<const Argument> arguments,
             std::span<const std::int64_t> grid, const RunOptions& options);
  Report run(const PersistentSource& kernel, std::span<const DeviceLaunch> launches, const RunOptions& options);

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
    if (!cluster->waits_for_others()) {
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
  Mailbox mailbox(graph);
  const std::int64_t count = by_grid ? most / lockstep_rows * lockstep_rows : std::min(most, blocks);
  Flags flags(count * cluster);
  GridBarrier no_barrier(1);
  Atomics atomics;
  char* const workspace = memory.new_workspace(static_cast<std::size_t>(kernel.workspace_bytes * count * cluster));
  const auto address = [](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); };
  if (!kernel.stamps.rows.empty())
    options.stamps->assign(static_cast<std::size_t>(count * cluster) * kernel.stamps.rows.size() * options.stamp_room,
                           0);
  const LaunchValues values{.blocks = blocks,
                            .at_once = count,
                            .workspace = address(workspace),
                            .flags = address(flags.data()),
                            .reports = mailbox.address(),
                            .stamps = options.stamps ? address(options.stamps->data()) : 0,
                            .lockstep_rows = lockstep_rows,
                            .may_prefetch = options.may_prefetch,
                            .stamp_room = options.stamp_room};
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
                      .grid_barrier = no_barrier,
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
  mailbox.take(kernel.name, report);
  return report;
}

Report Emulator::State::run(const PersistentSource& source, std::span<const DeviceLaunch> launches,
                            const RunOptions& options) {
  const KernelSource& kernel = source.kernel;
  const int ctas = options.persistent_blocks;
  std::vector<std::int32_t> table(launches.size() * source.launch_bytes / sizeof(std::int32_t));
  const SequenceMemory sequence(kernel.name, table, launches);
  DeviceMemory memory(sequence.graph, sequence.arguments);
  std::map<const Graph*, Mailbox> mailboxes;
  std::vector<std::uintptr_t> reports;
  std::vector<DeviceLaunch> there(launches.begin(), launches.end());
  auto argument = memory.arguments().begin() + 1;
  for (DeviceLaunch& launch : there) {
    for (Argument& own : launch.arguments) own = *argument++;
    reports.push_back(mailboxes.try_emplace(launch.graph, *launch.graph).first->second.address());
  }
  const std::vector<std::byte> filled = launch_table(source, there, reports);
  std::memcpy(memory.arguments()[0].data, filled.data(), filled.size());

  const Library& library = this->library(options.checks);
  const LentStacks lent(ctas * kernel.threads);
  Checks checks(*lent, library.lines(), options.checks ? memory.tensor_shadows({}) : std::vector<Shadow>());
  Random random(options.seed);
  Report report;
  Flags flags(0);
  GridBarrier barrier(ctas);
  Atomics atomics;
  memory.new_workspace(0);
  const LaunchValues values{.blocks = static_cast<std::int64_t>(launches.size()),
                            .flags = reinterpret_cast<std::uintptr_t>(barrier.data())};
  std::vector<std::uint64_t> cells;
  for (const KernelParameter& parameter : kernel.parameters)
    cells.push_back(static_cast<std::uint64_t>(value_of(parameter, memory.arguments(), {}, values)));
  const Launch launch{.kernel = kernel.name,
                      .entry = library.entry(0),
                      .cells = cells,
                      .threads = kernel.threads,
                      .blocks_of_multiprocessor = blocks_of_multiprocessor(kernel.text),
                      .shared_bytes = kernel.shared_bytes,
                      .blocks = ctas,
                      .cluster = 1,
                      .first_block = 1,
                      .lines = library.lines(),
                      .random = random,
                      .report = report,
                      .flags = flags,
                      .grid_barrier = barrier,
                      .atomics = atomics,
                      .checks = options.checks ? &checks : nullptr};
  if (options.checks) checks.begin_launch(launch.first_block, memory.workspace_shadow());
  const bool ended = this->launch(launch, *lent, ctas, false);
  if (ended && barrier.arrivals() > 0)
    report.faults.push_back({.kind = Fault::Kind::misuse,
                             .kernel = kernel.name,
                             .line = {},
                             .text = fmt::format("kernel {} leaves {} arrivals", kernel.name, barrier.arrivals())});
  memory.copy_back();
  for (auto& [graph, mailbox] : mailboxes) mailbox.take(graph->name, report);
  return report;
}

std::string Report::text() const {
  std::string text;
  for (const Fault& fault : faults) text += (text.empty() ? "" : "\n") + fault.text;
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

Report Emulator::run(const PersistentSource& kernel, std::span<const DeviceLaunch> launches,
                     const RunOptions& options) const {
  return state_->run(kernel, launches, options);
}

}  // namespace tessera::internal
