#include "emulated_device.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>

#include "codegen/clusters.hpp"
#include "codegen/generate.hpp"
#include "emulator/emulator.hpp"
#include "graph/error.hpp"
#include "jit/backend.hpp"
#include "jit/compile/compiler.hpp"
#include "jit/options/options.hpp"

namespace tessera {
namespace {

struct Event final : EventBackend {
  void synchronize() override {}
  double milliseconds_since(EventBackend&) override { return 0; }
};

class EmulatedKernel final : public DeviceKernel {
 public:
  explicit EmulatedKernel(const Graph& graph) : graph_(graph) {}

  void launch(StreamBackend&, std::span<const Argument> arguments, std::span<const std::int64_t> grid) override {
    const std::lock_guard lock(mutex());
    Variant variant = classify(graph_, arguments);
    std::int64_t blocks = 1;
    for (const std::int64_t extent : grid) blocks *= extent;
    // Blocks of threads are few, and share what they can.
    const bool by_grid = shares_grid() && rounds_.of(arguments) > 1;
    // As large as can be, for few rounds, too.
    const int cluster = static_cast<int>(std::clamp<std::int64_t>(
        std::min(multiprocessors() / blocks, rounds_.of(arguments) / 2), 1, most_blocks_of_cluster));
    variant.sharing = by_grid ? Sharing::grid : cluster > 1 ? Sharing::cluster : Sharing::none;
    auto found = variants_.begin();
    while (found != variants_.end() && !(found->first == variant)) ++found;
    if (found == variants_.end()) {
      const KernelSource source = generate(graph_, variant, options().dump_arch, generate_options());
      variants_.emplace_back(variant, Emulator::compile(std::span(&source, 1)));
      found = std::prev(variants_.end());
    }
    const char* checks = std::getenv("TESSERA_EMULATOR_CHECKS");
    const RunOptions run{.checks = !checks || *checks != '0',
                         .seed = ++launches_,
                         .blocks_in_flight = by_grid ? 2 : 1,
                         .persistent_blocks = by_grid       ? 4 + static_cast<int>(launches_ % 3)
                                              : cluster > 1 ? 2
                                                            : 3,
                         .cluster = cluster,
                         .abreast = by_grid ? 1 + static_cast<int>(launches_ % 2) : 1,
                         .ahead = launches_ % 4 < 2};
    const Report report = found->second.run(0, graph_, arguments, grid, run);
    if (report.clean()) return;
    throw Error(fmt::format("kernel '{}' in the emulator, in order {}: {}", graph_.name, run.seed, report.text()));
  }

 private:
  static std::mutex& mutex() {
    static std::mutex mutex;
    return mutex;
  }
  static bool shares_grid() {
    const char* const policy = std::getenv("TESSERA_EMULATOR_SHARING");
    return policy && std::string_view(policy) == "grid";
  }
  // Of few clusters each takes several of the grid's blocks.
  static int multiprocessors() {
    const char* const count = std::getenv("TESSERA_EMULATOR_MULTIPROCESSORS");
    return count ? std::atoi(count) : 1;
  }
  const Graph& graph_;
  const SharedRounds rounds_{graph_};
  std::vector<std::pair<Variant, Emulator>> variants_;
  std::uint64_t launches_ = 0;  ///< each in an order of its own
};

class EmulatedBackend;

class EmulatedStream final : public StreamBackend {
 public:
  explicit EmulatedStream(DeviceBackend& device) : device_(device) {}
  DeviceBackend& device() override { return device_; }
  void synchronize() override {}
  void copy(void* to, const void* from, std::size_t bytes) override { std::memmove(to, from, bytes); }
  std::shared_ptr<EventBackend> record() override { return std::make_shared<Event>(); }
  void wait(EventBackend&) override {}
  std::shared_ptr<GraphBackend> capture(const std::function<void()>&) override {
    throw Error("the emulated device records nothing");
  }
  void launch(GraphBackend&) override {}
  void* native() override { return nullptr; }

 private:
  DeviceBackend& device_;
};

class EmulatedBackend final : public DeviceBackend, public std::enable_shared_from_this<EmulatedBackend> {
 public:
  EmulatedBackend() {
    info_.name = "emulated " + options().dump_arch.name();
    info_.arch = options().dump_arch;
    info_.multiprocessors = 1;
  }
  const DeviceInfo& info() const override { return info_; }
  bool shares_host_memory() const override { return true; }
  std::shared_ptr<void> allocate(std::size_t bytes) override { return cpu_.allocate(bytes); }
  std::shared_ptr<void> pinned(std::size_t bytes) override { return cpu_.allocate(bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override { std::memmove(to, from, bytes); }
  std::shared_ptr<StreamBackend> stream() override { return {shared_from_this(), &stream_}; }
  std::shared_ptr<StreamBackend> new_stream() override { return std::make_shared<EmulatedStream>(*this); }
  std::shared_ptr<StreamBackend> stream_from(void*) override { throw Error("the emulated device has no CUstream"); }
  std::unique_ptr<DeviceKernel> kernel(const Graph& graph) override { return std::make_unique<EmulatedKernel>(graph); }

 private:
  DeviceInfo info_;
  Device cpu_ = Device::cpu();
  EmulatedStream stream_{*this};
};

}  // namespace
}  // namespace tessera

tessera::Device emulated_device() {
  static const tessera::Device device{std::make_shared<tessera::EmulatedBackend>()};
  return device;
}
