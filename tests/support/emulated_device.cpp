#include "support/emulated_device.hpp"

#include <fmt/format.h>

#include <algorithm>
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
#include "tessera/graph/error.hpp"
#include "tessera/jit/version.hpp"

namespace tessera::internal {
namespace {

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
    auto found = variants_.begin();
    while (found != variants_.end() && !(found->first == variant)) ++found;
    if (found == variants_.end()) {
      const KernelSource source = Compiler::instance().dump(
          generate(graph_, variant, options().dump_arch, generate_options()), options().dump_arch);
      variants_.emplace_back(variant, Emulator::compile(std::span(&source, 1)));
      found = std::prev(variants_.end());
    }
    const char* checks = std::getenv("TESSERA_EMULATOR_CHECKS");
    const RunOptions run{.checks = !checks || *checks != '0',
                         .seed = ++launches_,
                         .blocks_in_flight = by_grid        ? 2
                                             : has_atomics_ ? 1 + static_cast<int>(launches_ % 4)
                                                            : 1,
                         .persistent_blocks = by_grid       ? 4 + static_cast<int>(launches_ % 3)
                                              : cluster > 1 ? 2
                                                            : 3,
                         .cluster = cluster,
                         .lockstep_rows = by_grid ? 1 + static_cast<int>(launches_ % 2) : 1,
                         .may_prefetch = launches_ % 4 < 2};
    const Report report = found->second.run(0, graph_, arguments, grid, run);
    if (report.clean()) return;
    throw Error(fmt::format("kernel '{}' in the emulator, in order {}: {}", graph_.name, run.seed, report.text()));
  }

 private:
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
  std::vector<std::pair<Variant, Emulator>> variants_;
  std::uint64_t launches_ = 0;  ///< each has an order of its own
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
};

}  // namespace
}  // namespace tessera::internal

void tessera_emulated_backend(std::shared_ptr<tessera::internal::DeviceBackend>& backend) {
  static const auto& one = *new auto(std::make_shared<tessera::internal::EmulatedBackend>());  // never destroyed
  backend = one;
}

const char* tessera_emulator_version() { return tessera::internal::version(); }

tessera::internal::Device emulated_device() { return tessera::internal::Device::parse("emulated"); }
