#include "jit/cuda/cuda_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>

#include "codegen/target/target.hpp"
#include "graph/of_this_thread.hpp"
#include "tessera/graph/cuda_text.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {

using namespace cuda;

namespace {

// Kernels whose last launch a thread keeps, by number.
constexpr std::size_t kept_launches = 64;

static_assert(alignof(CUtensorMap) == tensor_map_alignment);
constexpr std::size_t most_parameter_bytes = 32764;  // limit of a kernel (CUDA C++ Programming Guide, from CUDA 12.1)

/// The configuration of a launch with clusters of `cluster` CTAs. If `early`, its CTAs may begin while the previous
/// launch is ending (PDL).
struct LaunchConfig : CUlaunchConfig {
  LaunchConfig(unsigned threads, unsigned bytes, unsigned blocks, unsigned cluster, bool early, CUstream on)
      : CUlaunchConfig{.grid = {blocks, 1, 1},
                       .block = {threads, 1, 1},
                       .shared_bytes = bytes,
                       .stream = on,
                       .attributes = of_launch,
                       .attribute_count = 0} {
    if (cluster > 1)
      of_launch[attribute_count++] = {
          .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .pad = {}, .cluster = {cluster, 1, 1}};
    if (early)
      of_launch[attribute_count++] = {
          .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, .pad = {}, .early = 1};
  }
  LaunchConfig(const LaunchConfig&) = delete;
  LaunchConfig& operator=(const LaunchConfig&) = delete;

  CUlaunchAttribute of_launch[2];
};

/// Memory for one launch, allocated in stream order; recorded with the launch, if the stream records.
class Workspace {
 public:
  Workspace(CudaStream& stream, CudaBackend& device, std::string_view kernel, std::size_t bytes)
      : stream_(stream), device_(device) {
    if (bytes == 0) return;
    if (!device.has_pools() && stream.is_recording())
      throw Error(
          fmt::format("kernel '{}' cannot be recorded on {}: it needs {} bytes of workspace, and this device has "
                      "no memory pools",
                      kernel, device.info().name, bytes));
    const Driver& driver = device.driver();
    if (const CUresult result = device.has_pools() ? driver.cuMemAllocAsync(&address_, bytes, stream.get())
                                                   : driver.cuMemAlloc(&address_, bytes))
      device.check(result, driver.cuMemAllocAsync.name,
                   fmt::format("kernel '{}', {:.1f} MB of workspace", kernel, static_cast<double>(bytes) * 1e-6),
                   stream.last());
  }
  ~Workspace() {
    if (!address_) return;
    if (device_.has_pools())
      device_.driver().cuMemFreeAsync(address_, stream_.get());
    else
      device_.driver().cuMemFree(address_);  // waits for all work
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  CUdeviceptr address() const { return address_; }

 private:
  CudaStream& stream_;
  CudaBackend& device_;
  CUdeviceptr address_ = 0;
};

/// Memory for a launch whose CTAs share output tiles (split-K): partials, and flags that are all 0 when it begins. The
/// CTA that waits for a flag resets it, so the flags of a stream are 0 again for its next launch. A recorded launch may
/// run concurrently with the stream, on another one. It has memory of its own: owned by the recording of
/// Stream::capture, or allocated in the graph if someone else records.
class SplitKWorkspace {
 public:
  SplitKWorkspace(CudaStream& stream, CudaBackend& device, std::string_view kernel, std::size_t bytes,
                  std::int64_t blocks) {
    if (stream.captures()) {
      parts_ = stream.recorded_parts(bytes);
      flags_ = stream.flags();
      return;
    }
    workspace_.emplace(stream, device, kernel, bytes);
    parts_ = workspace_->address();
    if (!stream.is_recording()) {
      flags_ = stream.flags();
      return;
    }
    const auto count = static_cast<std::size_t>(blocks);
    recorded_.emplace(stream, device, kernel, count * sizeof(std::uint32_t));
    flags_ = recorded_->address();
    stream.check(device.driver().cuMemsetD32Async(flags_, 0, count, stream.get()),
                 device.driver().cuMemsetD32Async.name);
  }
  CUdeviceptr parts() const { return parts_; }
  CUdeviceptr flags() const { return flags_; }

 private:
  std::optional<Workspace> workspace_, recorded_;
  CUdeviceptr parts_ = 0, flags_ = 0;
};

}  // namespace

CudaKernel::CudaKernel(std::shared_ptr<CudaBackend> device, const Graph& graph)
    : device_(std::move(device)),
      graph_(graph),
      reaches_(tile_reaches(graph)),
      k_iterations_(Target::of(*device_->info().arch, generate_options().warp_specialize).tier == Target::Tier::wgmma
                        ? SplitKLoop(graph)
                        : SplitKLoop()),
      machine_(MachineModel::of(device_->info().name)),
      hints_(hints_for(graph.hints, device_->info().arch->name())),
      board_(device_->board(graph)) {}

std::uint64_t CudaKernel::next_number() {
  static std::atomic<std::uint64_t> numbers{0};
  return ++numbers;
}

CudaKernel::Code CudaKernel::make(const Variant& variant) const {
  const Compiling compiling;  // includes what the driver does
  auto [loaded, source] = device_->load(graph_, variant);
  Code code{};
  code.loaded = loaded;
  std::vector<TensorMaps::Place> maps;
  ParameterBlock block(source.parameters, graph_, variant.index64);
  for (std::size_t i = 0; i < source.parameters.size(); ++i) {
    const KernelParameter& parameter = source.parameters[i];
    if (parameter.kind == KernelParameter::Kind::tensor_map)
      maps.push_back({source.tma_tensors[static_cast<std::size_t>(parameter.argument)], block.offsets[i]});
    else
      code.slots.push_back({parameter, block.offsets[i], bytes_of(parameter, graph_, variant.index64)});
  }
  code.parameter_bytes = block.bytes;
  if (!maps.empty()) {
    code.maps = std::make_unique<TensorMaps>(*device_, graph_, std::move(maps));
    code.offsets = std::move(block.offsets);
  }
  if (code.parameter_bytes > most_parameter_bytes)
    throw Error(fmt::format("kernel '{}' has parameters of {} bytes, and a GPU takes {}; give it fewer tensors",
                            graph_.name, code.parameter_bytes, most_parameter_bytes));
  code.index64 = variant.index64;
  code.threads = static_cast<unsigned>(source.threads);
  code.shared_bytes = static_cast<unsigned>(source.shared_bytes);
  code.workspace_bytes = source.workspace_bytes;
  code.split_k = source.split_k;
  code.multicast = source.multicast;
  if (!source.stamps.rows.empty()) code.stamps = std::make_shared<const StampTable>(std::move(source.stamps));
  code.prefetched_before_wait = source.prefetched_before_wait;
  constexpr int records_early = 12030;  // CUDA version; older drivers cannot record such launches
  code.early = source.waits_for_previous && device_->settings().pdl && device_->driver().version() >= records_early;
  code.most_blocks = std::numeric_limits<std::int32_t>::max();

  const ContextScope scope(device_->context());
  const OutsideRecording outside(device_->driver());
  const Driver& driver = device_->driver();
  const std::string subject = fmt::format("kernel '{}'", graph_.name);
  if (const unsigned most = shared_bytes(code, 1, code.early); most > 0 && !source.by_hand)
    device_->check(driver.cuFuncSetAttribute(loaded->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                             static_cast<int>(most)),
                   driver.cuFuncSetAttribute.name, fmt::format("{}, {} bytes of shared memory", subject, most));
  if (source.persistent) {
    int blocks = 0;  // of a multiprocessor
    device_->check(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, loaded->function, source.threads,
                                                                      code.shared_bytes),
                   driver.cuOccupancyMaxActiveBlocksPerMultiprocessor.name, subject);
    code.most_blocks = std::int64_t{std::max(blocks, 1)} * device_->info().multiprocessors;
  }
  const int largest = source.split_k == SplitK::cluster ? most_blocks_of_cluster : source.multicast;
  for (int blocks = 2; blocks <= largest; ++blocks) {
    const auto cluster = static_cast<unsigned>(blocks);
    const LaunchConfig config(code.threads, code.shared_bytes, cluster, cluster, false, nullptr);
    int& most = code.most_clusters[static_cast<std::size_t>(blocks)];
    device_->check(driver.cuOccupancyMaxActiveClusters(&most, loaded->function, &config),
                   driver.cuOccupancyMaxActiveClusters.name, subject);
  }
  if (source.multicast > 1)
    code.most_blocks = std::int64_t{source.multicast} * code.most_clusters[static_cast<std::size_t>(source.multicast)];
  return code;
}

void CudaKernel::fill(const Code& code, std::span<const Argument> arguments, std::span<const std::int64_t> grid,
                      const LaunchValues& values, std::byte* block) const {
  for (const auto& [parameter, offset, bytes] : code.slots)
    write_parameter(parameter, bytes, arguments, grid, values, graph_, code.index64, block + offset);
}

profile::Plan CudaKernel::plan(const Code& code, std::span<const Argument> arguments,
                               std::span<const std::int64_t> grid) const {
  const CompileReport& report = code.loaded->entry->code.report;
  profile::Planned planned{.subject = subject_.of(graph_), .entry = code.loaded->entry->kernel};
  planned.details.registers = report.registers;
  planned.details.threads = static_cast<int>(code.threads);
  planned.details.shared_bytes = static_cast<int>(code.shared_bytes) + report.shared_bytes;
  profile::describe(planned.details, *planned.subject, arguments, graph_.cuda ? grid.first(CudaText::axes) : grid);
  return std::make_shared<const std::vector<profile::Planned>>(1, std::move(planned));
}

void CudaKernel::launch(StreamBackend& stream, std::span<const Argument> arguments,
                        std::span<const std::int64_t> grid) {
  if (graph_.cuda) return launch_text(static_cast<CudaStream&>(stream), arguments, grid);
  const std::int64_t blocks = tiles_in(grid);
  if (blocks == 0) return;
  Variant& variant = of_this_thread<Variant>();
  const SplitKLaunch shared = classify_launch(arguments, grid, blocks, variant);
  auto& cuda_stream = static_cast<CudaStream&>(stream);
  if (const profile::Profile* const profile = profile::active(); profile && profile->stamped) [[unlikely]]
    variant.stamped =
        profile->recorder && !cuda_stream.is_recording() && profile->stamped->take(graph_.name, stamp_turns_);
  const Code& code = code_of_launch(variant);
  const Blocks of_launch = blocks_of(code, grid, blocks, shared);
  if (code.stamps) [[unlikely]]
    return launch_stamped(code, cuda_stream, arguments, grid, of_launch);
  launch(code, cuda_stream, arguments, grid, of_launch);
}

std::int64_t CudaKernel::at_once(const Code& code, const Blocks& blocks) {
  return blocks.split_k > 0 ? blocks.split_k : std::min(blocks.count, code.most_blocks / blocks.cluster);
}

void CudaKernel::launch_stamped(const Code& code, CudaStream& stream, std::span<const Argument> arguments,
                                std::span<const std::int64_t> grid, Blocks blocks) {
  const std::int64_t ctas = at_once(code, blocks) * (blocks.split_k > 0 ? 1 : blocks.cluster);
  const StampLog log(stream, *code.stamps, ctas);
  const profile::Plan planned = plan(code, arguments, grid);
  const std::uint64_t number = launch(code, stream, arguments, grid, blocks, &log);
  log.read({.subject = planned->front().subject,
            .device = device_->info().ordinal.value_or(0),
            .number = number,
            .details = planned->front().details,
            .table = code.stamps});
}

LaunchCode CudaKernel::code(std::span<const Argument> arguments, std::span<const std::int64_t> grid) {
  const Variant variant = this->variant(arguments, grid);
  return {codes_.place(variant),
          [this, variant] {
    Variant changed = variant;
    code_for(changed);
          },
          codes_.has(variant)};
}

Variant CudaKernel::variant(std::span<const Argument> arguments, std::span<const std::int64_t> grid) const {
  Variant variant;
  if (!graph_.cuda) classify_launch(arguments, grid, tiles_in(grid), variant);
  return variant;
}

SplitKLaunch CudaKernel::classify_launch(std::span<const Argument> arguments, std::span<const std::int64_t> grid,
                                         std::int64_t blocks, Variant& variant) const {
  classify(graph_, reaches_, arguments, variant);
  variant.index64 |= blocks > most_narrow_blocks;
  SplitKLaunch shared = split_k_of(arguments, grid, blocks);
  if (shared.split_k == SplitK::cluster && hints_.cluster > 0) shared = limited(shared, hints_.cluster);
  variant.stamped = false;
  variant.split_k = variant.index64 && shared.split_k == SplitK::stream_k ? SplitK::none : shared.split_k;
  variant.multicast = shared.multicast;
  return shared;
}

const CudaKernel::Code& CudaKernel::code_of_launch(Variant& variant) {
  if (codes_.has(variant)) return code_for(variant);
  const WaitForCode waiting;
  return code_for(variant);
}

const CudaKernel::Code& CudaKernel::code_for(Variant& variant) {
  const auto find = [&]() -> const Code& { return codes_.find_or_make(variant, [&] { return make(variant); }); };
  const Code& code = find();
  if (code.multicast <= 1 || code.most_blocks > 0) return code;
  variant.multicast = false;  // a part of a GPU may have no room for a cluster
  return find();
}

// The cost model takes up to 0.6 us: each thread keeps what it said of the kernel's launch before.
SplitKLaunch CudaKernel::split_k_of(std::span<const Argument> arguments, std::span<const std::int64_t> grid,
                                    std::int64_t blocks) const {
  const CostModel model(machine_, device_->info().multiprocessors);
  const SplitKPolicy policy = hints_.deterministic ? SplitKPolicy::none : device_->settings().split_k;
  const bool may_multicast = k_iterations_.may_multicast() && hints_.cluster != 1;
  const MulticastPolicy multicast = may_multicast ? device_->settings().multicast : MulticastPolicy::never;
  const int right_alignment = k_iterations_.right_alignment(arguments);
  // The k-iterations are computed only where they matter.
  if (policy == SplitKPolicy::automatic && !model.may_split(blocks) && multicast != MulticastPolicy::always &&
      right_alignment >= 128)
    return {};
  const std::int64_t k_iterations = k_iterations_.of(arguments), rows = grid.size() >= 2 ? grid[0] : 1;
  if (k_iterations < 1) return {};
  struct Known {
    std::uint64_t kernel = 0;
    std::int64_t rows = 0, tiles = 0, k_iterations = 0;
    int right_alignment = 0;
    SplitKLaunch launch = {};
  };
  Known& of = of_this_thread<std::array<Known, kept_launches>>()[number_ % kept_launches];
  if (of.kernel != number_ || of.rows != rows || of.tiles != blocks || of.k_iterations != k_iterations ||
      of.right_alignment != right_alignment) {
    const MatmulWork work{.tile = k_iterations_.extents(),
                          .rows = rows,
                          .tiles = blocks,
                          .k_iterations = k_iterations,
                          .right_alignment = right_alignment};
    of = {number_, rows, blocks, k_iterations, right_alignment, model.split_k(work, policy, multicast)};
  }
  return of.launch;
}

std::uint64_t CudaKernel::launch(const Code& code, CudaStream& stream, std::span<const Argument> arguments,
                                 std::span<const std::int64_t> grid, Blocks blocks, const StampLog* log) {
  const Driver& driver = device_->driver();
  const ContextScope scope(device_->context());
  stream.catch_up();
  const TimedCall timed(stream, profile::Kind::launch, [&] { return plan(code, arguments, grid); });
  const std::int64_t at_once = CudaKernel::at_once(code, blocks);
  const auto workspace_bytes = static_cast<std::size_t>(code.workspace_bytes * at_once * blocks.cluster);
  const Workspace workspace(stream, *device_, graph_.name, blocks.split_k > 0 ? 0 : workspace_bytes);
  std::optional<SplitKWorkspace> shared;
  if (blocks.split_k > 0) shared.emplace(stream, *device_, graph_.name, workspace_bytes, at_once);
  alignas(CUtensorMap) std::byte block[most_parameter_bytes];
  std::size_t bytes = code.parameter_bytes;
  void* extra[] = {reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_POINTER), block,
                   reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_SIZE), &bytes,
                   reinterpret_cast<void*>(CU_LAUNCH_PARAM_END)};
  // Given as one buffer that begins with tensor maps, which are aligned to 64 bytes, the driver copied too few bytes
  // (seen on an H200): the last parameters arrived as 0. Passed one by one, all arrive.
  auto& each = of_this_thread<std::vector<void*>>();
  each.clear();
  for (const std::size_t offset : code.offsets) each.push_back(block + offset);
  if (code.maps) code.maps->write(arguments, block);
  CudaStream::Turn turn = stream.turn(graph_, arguments, code.early, code.prefetched_before_wait);
  fill(code, arguments, grid,
       {.blocks = blocks.count,
        .at_once = at_once,
        .workspace = shared ? shared->parts() : workspace.address(),
        .flags = shared ? shared->flags() : 0,
        .reports = board_,
        .stamps = log ? log->address() : 0,
        .lockstep_rows = blocks.lockstep_rows,
        .may_prefetch = turn.may_prefetch,
        .stamp_room = log ? log->room() : 0},
       block);
  const auto count = static_cast<unsigned>(blocks.split_k > 0 ? at_once : at_once * blocks.cluster);
  if (const CUresult result = start(code, stream, count, static_cast<unsigned>(blocks.cluster), turn.early,
                                    code.maps ? each.data() : nullptr, code.maps ? nullptr : extra)) {
    stream.failed(turn);
    device_->check(result, blocks.cluster > 1 || turn.early ? driver.cuLaunchKernelEx.name : driver.cuLaunchKernel.name,
                   fmt::format("kernel '{}'", graph_.name), stream.last());
  }
  stream.launched(code.loaded);
  turn.lock.unlock();
  if (device_->settings().synchronous && !stream.is_recording()) stream.synchronize();
  return timed.number();
}

void CudaKernel::launch_text(CudaStream& stream, std::span<const Argument> arguments,
                             std::span<const std::int64_t> numbers) {
  Variant variant;
  const Code& code = code_of_launch(variant);
  const Driver& driver = device_->driver();
  const ContextScope scope(device_->context());
  stream.catch_up();
  const TimedCall timed(stream, profile::Kind::launch, [&] { return plan(code, arguments, numbers); });
  const auto number = [&](std::size_t i) { return static_cast<unsigned>(numbers[i]); };
  const unsigned shared_bytes = number(CudaText::shared_bytes);
  constexpr unsigned always_there = 48 << 10;
  if (shared_bytes > always_there)
    device_->check(driver.cuFuncSetAttribute(code.loaded->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                             static_cast<int>(shared_bytes)),
                   driver.cuFuncSetAttribute.name,
                   fmt::format("kernel '{}', {} bytes of shared memory", graph_.name, shared_bytes));
  alignas(8) std::byte block[most_parameter_bytes];
  std::size_t bytes = code.parameter_bytes;
  void* extra[] = {reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_POINTER), block,
                   reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_SIZE), &bytes,
                   reinterpret_cast<void*>(CU_LAUNCH_PARAM_END)};
  fill(code, arguments, numbers, {}, block);
  CudaStream::Turn turn = stream.turn(graph_, arguments, false, {});
  constexpr std::size_t x = 0, y = 1, z = 2, thread = CudaText::first_thread;
  if (const CUresult result =
          driver.cuLaunchKernel(code.loaded->function, number(x), number(y), number(z), number(thread + x),
                                number(thread + y), number(thread + z), shared_bytes, stream.get(), nullptr, extra)) {
    stream.failed(turn);
    device_->check(result, driver.cuLaunchKernel.name, fmt::format("kernel '{}'", graph_.name), stream.last());
  }
  stream.launched(code.loaded);
  turn.lock.unlock();
  if (device_->settings().synchronous && !stream.is_recording()) stream.synchronize();
}

CudaKernel::Blocks CudaKernel::blocks_of(const Code& code, std::span<const std::int64_t> grid, std::int64_t blocks,
                                         const SplitKLaunch& shared) {
  if (code.multicast > 1)
    return {.count = (grid[0] + code.multicast - 1) / code.multicast * (blocks / grid[0]), .cluster = code.multicast};
  if (code.split_k == SplitK::cluster) return {.count = blocks, .cluster = blocks_at_once(code, blocks, shared.blocks)};
  if (code.split_k == SplitK::none) return {.count = blocks};
  // All CTAs must run at the same time, because a CTA waits for those with lower numbers.
  const std::int64_t most = std::min<std::int64_t>(code.most_blocks, CudaStream::most_flags);
  const std::int64_t parts = std::min<std::int64_t>(shared.blocks, most) / shared.lockstep_rows;
  return {.count = blocks,
          .split_k = std::max<std::int64_t>(parts, 1) * shared.lockstep_rows,
          .lockstep_rows = shared.lockstep_rows};
}

int CudaKernel::blocks_at_once(const Code& code, std::int64_t blocks, int most) {
  while (most > 1 && code.most_clusters[static_cast<std::size_t>(most)] < blocks) --most;
  return most;
}

// CTAs of a launch that begins early crowd the multiprocessors that become free first. If a multiprocessor has to run
// only a few, each requests shared memory that leaves no room for more.
unsigned CudaKernel::shared_bytes(const Code& code, std::int64_t blocks, bool early) const {
  constexpr std::int64_t few = 3;
  const std::int64_t each = (blocks + device_->info().multiprocessors - 1) / device_->info().multiprocessors;
  if (!early || each > few) return code.shared_bytes;
  return std::max(code.shared_bytes, device_->multiprocessor_shared_bytes() / static_cast<unsigned>(each + 1) + 1);
}

CUresult CudaKernel::start(const Code& code, CudaStream& stream, unsigned blocks, unsigned cluster, bool early,
                           void** each, void** extra) const {
  const Driver& driver = device_->driver();
  const unsigned bytes = shared_bytes(code, blocks, early && cluster == 1);
  if (cluster == 1 && !early)
    return driver.cuLaunchKernel(code.loaded->function, blocks, 1, 1, code.threads, 1, 1, bytes, stream.get(), each,
                                 extra);
  const LaunchConfig config(code.threads, bytes, blocks, cluster, early, stream.get());
  return driver.cuLaunchKernelEx(&config, code.loaded->function, each, extra);
}

}  // namespace tessera::internal
