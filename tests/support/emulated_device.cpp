#include "support/emulated_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string_view>

#include "codegen/generate.hpp"
#include "codegen/schedule/cost_model.hpp"
#include "codegen/schedule/split_k.hpp"
#include "emulator/emulator.hpp"
#include "jit/compile/compiler.hpp"
#include "jit/cpu/host_backend.hpp"
#include "jit/device/emulated.hpp"
#include "jit/options/options.hpp"
#include "jit/profile/inside.hpp"
#include "jit/profile/profile.hpp"
#include "jit/profile/recorder.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/jit/version.hpp"

namespace tessera::internal {
namespace {

bool has_checks() {
  const char* const checks = std::getenv("TESSERA_EMULATOR_CHECKS");
  return !checks || *checks != '0';
}

/// Faults as remarks at the author's lines.
std::vector<Remark> findings(const Report& report) {
  std::vector<Remark> remarks;
  for (const Fault& fault : report.faults) {
    const std::size_t colon = fault.line.rfind(':');
    Remark remark{.file = "", .status = Remark::Status::missed, .kind = "emulator", .message = fault.text};
    if (colon != fault.line.npos) {
      remark.file = fault.line.substr(0, colon);
      remark.line = static_cast<unsigned>(std::atoi(fault.line.c_str() + colon + 1));
    }
    remarks.push_back(std::move(remark));
  }
  return remarks;
}

/// Compiled forms of a kernel; captured launches share them.
class EmulatedCode {
 public:
  explicit EmulatedCode(const Graph& graph) : graph_(graph), rounds_(graph_) {}

  void run(std::span<const Argument> arguments, std::span<const std::int64_t> grid) {
    const std::lock_guard lock(mutex());
    Variant variant = classify(graph_, arguments);
    std::int64_t blocks = 1;
    for (const std::int64_t extent : grid) blocks *= extent;
    // Few CTAs, which split as much as possible.
    const bool by_grid = is_stream_k() && rounds_.of(arguments) > 1;
    // As large as possible, for few iterations, too.
    const int cluster = static_cast<int>(std::clamp<std::int64_t>(
        std::min(multiprocessors() / blocks, rounds_.of(arguments) / 2), 1, most_blocks_of_cluster));
    variant.split_k = by_grid ? SplitK::stream_k : cluster > 1 ? SplitK::cluster : SplitK::none;
    variant.multicast = variant.split_k == SplitK::none && !grid.empty() && grid[0] > 1 && multicasts();
    const profile::Profile* const profile = profile::active();
    variant.stamped = profile && profile->stamped && profile->recorder && profile->stamped->take(graph_.name, turns_);
    auto found = variants_.begin();
    while (found != variants_.end() && !(found->variant == variant)) ++found;
    if (found == variants_.end()) {
      const profile::Span span(profile::Kind::compile, [&] { return profile::Subject::of(graph_); });
      KernelSource source = emulated_kernel(graph_, variant);
      Emulator emulator = Emulator::compile(std::span(&source, 1));
      variants_.push_back({variant, std::move(source), std::move(emulator), {}});
      found = std::prev(variants_.end());
    }
    std::vector<std::uint64_t> log;
    const RunOptions run{.checks = has_checks(),
                         .seed = ++launches_,
                         .blocks_in_flight = by_grid        ? 2
                                             : has_atomics_ ? 1 + static_cast<int>(launches_ % 4)
                                                            : 1,
                         .persistent_blocks = by_grid       ? 4 + static_cast<int>(launches_ % 3)
                                              : cluster > 1 ? 2
                                                            : 3,
                         .cluster = cluster,
                         .lockstep_rows = by_grid ? 1 + static_cast<int>(launches_ % 2) : 1,
                         .stamps = &log,
                         .may_prefetch = launches_ % 4 < 2};
    const Report report = found->emulator.run(0, graph_, arguments, grid, run);
    if (variant.stamped) record(*profile->recorder, found->source, log, run.stamp_room);
    if (report.clean()) return;
    for (Remark& finding : findings(report))
      if (std::ranges::find(found->findings, finding) == found->findings.end())
        found->findings.push_back(std::move(finding));
    dump_findings(found->source, found->findings);
    throw Error(fmt::format("kernel '{}' in the emulator, in order {}: {}", graph_.name, run.seed, report.text()));
  }

 private:
  /// The clock of the emulator ticks once a stamp.
  static void record(profile::Recorder& recorder, const KernelSource& source, std::span<const std::uint64_t> log,
                     std::uint32_t room) {
    profile::Span* const launch = profile::Span::innermost();
    if (!launch) return;
    launch->set_number(recorder.next_number());
    profile::StampedLaunch stamped{.subject = launch->event().subject,
                                   .device = profile::on_host,
                                   .number = launch->event().number,
                                   .details = launch->event().details,
                                   .table = std::make_shared<const StampTable>(source.stamps)};
    profile::read_stamps(log, room, stamped);
    recorder.add(std::move(stamped));
  }

  static std::mutex& mutex() {
    static std::mutex mutex;
    return mutex;
  }
  static bool is_stream_k() {
    const char* const policy = std::getenv("TESSERA_EMULATOR_SPLIT_K");
    return policy && std::string_view(policy) == "stream_k";
  }
  static bool multicasts() {
    const char* const policy = std::getenv("TESSERA_EMULATOR_MULTICAST");
    return policy && *policy == '1';
  }
  // With few clusters each takes several grid tiles.
  static int multiprocessors() {
    const char* const count = std::getenv("TESSERA_EMULATOR_MULTIPROCESSORS");
    return count ? std::atoi(count) : 1;
  }
  const Graph graph_;
  const bool has_atomics_ = std::ranges::any_of(graph_.nodes, [](const Node& node) { return is_atomic(node.op); });
  const SplitKLoop rounds_;
  struct Compiled {
    Variant variant;
    KernelSource source;
    Emulator emulator;
    std::vector<Remark> findings = {};  ///< of all launches
  };
  std::vector<Compiled> variants_;
  std::uint64_t launches_ = 0;  ///< each has an order of its own
  std::atomic<int> turns_{0};   ///< launches that might have been stamped
};

/// Launches as one persistent kernel.
class EmulatedPersistent {
 public:
  EmulatedPersistent(std::string_view name, std::span<const DeviceLaunch> launches)
      : launches_(launches.begin(), launches.end()), source_(generated(name, launches)) {}

  void run() {
    const std::lock_guard lock(mutex_);
    const profile::Span span(profile::Kind::kernel, [&] {
      std::vector<const Graph*> graphs;
      for (const DeviceLaunch& launch : launches_) graphs.push_back(launch.graph);
      return profile::persistent(source_.kernel.author, graphs);
    });
    const RunOptions run{.checks = has_checks(), .seed = ++runs_, .persistent_blocks = 2 + static_cast<int>(runs_ % 4)};
    const Report report = emulator_.run(source_, launches_, run);
    if (!report.clean())
      throw Error(fmt::format("persistent kernel '{}' in the emulator, in order {}: {}", source_.kernel.author,
                              run.seed, report.text()));
  }

 private:
  static PersistentSource generated(std::string_view name, std::span<const DeviceLaunch> launches) {
    std::vector<SequenceLaunch> all;
    for (const DeviceLaunch& launch : launches)
      all.push_back({launch.graph, classify(*launch.graph, launch.arguments)});
    PersistentSource source = generate_persistent(name, all, 1, options().dump_arch, generate_options());
    source.kernel = Compiler::instance().dump(std::move(source.kernel), options().dump_arch);
    return source;
  }

  const std::vector<DeviceLaunch> launches_;
  const PersistentSource source_;
  const Emulator emulator_ = Emulator::compile(std::span(&source_.kernel, 1));
  std::mutex mutex_;
  std::uint64_t runs_ = 0;  ///< each has an order of its own
};

class EmulatedBackend final : public HostBackend {
 public:
  EmulatedBackend() {
    info_.name = "emulated " + options().dump_arch.name();
    info_.arch = options().dump_arch;
    info_.multiprocessors = 1;
  }
  std::unique_ptr<DeviceKernel> kernel(const Graph& graph) override {
    const auto code = std::make_shared<EmulatedCode>(graph);
    return std::make_unique<HostKernel>(
        graph, [code](std::span<const Argument> arguments, std::span<const std::int64_t> grid) {
          code->run(arguments, grid);
        });
  }
  std::shared_ptr<GraphBackend> persistent(std::string_view name, std::span<const DeviceLaunch> launches) override {
    const auto kernel = std::make_shared<EmulatedPersistent>(name, launches);
    auto graph = std::make_shared<HostGraph>();
    graph->calls.emplace_back([kernel] { kernel->run(); });
    return graph;
  }
};

}  // namespace
}  // namespace tessera::internal

void tessera_emulated_backend(std::shared_ptr<tessera::internal::DeviceBackend>& backend) {
  static const auto& one = *new auto(std::make_shared<tessera::internal::EmulatedBackend>());  // never destroyed
  backend = one;
}

void tessera_emulator_profile(const tessera::internal::profile::Profile* profile) {
  tessera::internal::profile::current = profile;
}

const char* tessera_emulator_version() { return tessera::internal::version(); }

tessera::internal::Device emulated_device() { return tessera::internal::Device::parse("emulated"); }
