#include "jit/cuda/cuda_persistent.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "jit/backend/launch_table.hpp"
#include "jit/cuda/cuda_kernel.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {

using namespace cuda;

namespace {

// Two CTAs on a multiprocessor cost registers and arrivals, and pay off where launches have many waves of tiles. On an
// H200, steps of gpt2 and -medium, with 1.2 and 2.0 waves on average, take 0.99 and 1.06 times as long with two CTAs,
// those of gpt2-large and -xl, with 2.2 and 3.4 waves, 0.93 and 0.88 times.
int ctas_of_multiprocessor(const CudaBackend& device, std::span<const DeviceLaunch> launches) {
  std::int64_t waves = 0;
  for (const DeviceLaunch& launch : launches)
    waves += (tiles_in(launch.grid) + device.info().multiprocessors - 1) / device.info().multiprocessors;
  return 10 * waves > 21 * static_cast<std::int64_t>(launches.size()) ? 2 : 1;
}

}  // namespace

CudaPersistent::Loaded CudaPersistent::loaded(CudaBackend& device, std::string_view name,
                                              std::span<const DeviceLaunch> launches) {
  std::vector<SequenceLaunch> all;
  for (const DeviceLaunch& launch : launches)
    all.push_back(
        {launch.graph, static_cast<const CudaKernel&>(*launch.kernel).variant(launch.arguments, launch.grid)});
  return device.load(name, all, ctas_of_multiprocessor(device, launches));
}

CudaPersistent::CudaPersistent(const std::shared_ptr<CudaBackend>& device, std::string_view name,
                               std::span<const DeviceLaunch> launches)
    : CudaPersistent(device, loaded(*device, name, launches), launches) {}

CudaPersistent::CudaPersistent(const std::shared_ptr<CudaBackend>& device, Loaded loaded,
                               std::span<const DeviceLaunch> launches)
    : CudaWork(loaded.first),
      device_(device),
      launches_(static_cast<int>(launches.size())),
      threads_(static_cast<unsigned>(loaded.second.kernel.threads)),
      shared_bytes_(static_cast<unsigned>(loaded.second.kernel.shared_bytes)),
      ended_(device->make(device->driver().cuEventDestroy, device->driver().cuEventCreate, CU_EVENT_DISABLE_TIMING)) {
  const ContextScope scope(device_->context());
  const OutsideRecording outside(device_->driver());
  std::vector<std::uintptr_t> reports;
  std::int64_t most = 1;  // tiles of a launch
  for (const DeviceLaunch& launch : launches) {
    reports.push_back(static_cast<const CudaKernel&>(*launch.kernel).board());
    most = std::max(most, tiles_in(launch.grid));
  }
  const std::vector<std::byte> table = launch_table(loaded.second, launches, reports);
  table_ = device_->allocate(table.size());
  device_->copy(table_.get(), table.data(), table.size());
  const std::uint32_t none = 0;
  arrivals_ = device_->allocate(sizeof none);
  device_->copy(arrivals_.get(), &none, sizeof none);

  const Driver& driver = device_->driver();
  const std::string subject = fmt::format("kernel '{}'", loaded.second.kernel.author);
  const CUfunction function = loaded.first->function;
  device_->check(driver.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                           static_cast<int>(shared_bytes_)),
                 driver.cuFuncSetAttribute.name, subject);
  int resident = 0;  // CTAs of a multiprocessor
  device_->check(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(&resident, function, loaded.second.kernel.threads,
                                                                    shared_bytes_),
                 driver.cuOccupancyMaxActiveBlocksPerMultiprocessor.name, subject);
  if (resident < 1) throw Error(fmt::format("{} does not fit a multiprocessor of {}", subject, device_->info().name));
  const int of_multiprocessor = std::min(resident, loaded.second.ctas);
  if (profile::active()) plan_ = plan(loaded, launches);
  ctas_ = static_cast<unsigned>(std::min<std::int64_t>(most, device_->info().multiprocessors * of_multiprocessor));
}

profile::Plan CudaPersistent::plan(const Loaded& loaded, std::span<const DeviceLaunch> launches) {
  std::vector<const Graph*> graphs;
  for (const DeviceLaunch& launch : launches) graphs.push_back(launch.graph);
  profile::Planned planned{.subject = profile::persistent(loaded.second.kernel.author, graphs),
                           .entry = loaded.second.kernel.name};
  planned.details.work = {.bytes = 0, .flops = 0, .macs16 = 0};
  for (const DeviceLaunch& launch : launches)
    planned.details.work =
        planned.details.work + profile::WorkCount(*launch.graph).of(launch.arguments, tiles_in(launch.grid));
  return std::make_shared<const std::vector<profile::Planned>>(1, std::move(planned));
}

void CudaPersistent::launch(CudaStream& stream) {
  const Driver& driver = device_->driver();
  const std::lock_guard lock(mutex_);
  const TimedCall timed(stream, profile::Kind::launch,
                        [&] { return plan_ ? plan_ : std::make_shared<const std::vector<profile::Planned>>(); });
  // Two runs at the same time would count their arrivals together.
  if (stream.is_recording())
    throw Error(
        fmt::format("kernel '{}' is persistent and cannot be recorded, since a graph could run beside it; record "
                    "its sequence, or launch it directly",
                    last()->kernel));
  if (has_run_) stream.check(driver.cuStreamWaitEvent(stream.get(), ended_.get(), 0), driver.cuStreamWaitEvent.name);
  void *table = table_.get(), *arrivals = arrivals_.get();
  void* parameters[] = {&table, &launches_, &arrivals};
  CUlaunchAttribute cooperative{.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .pad = {}, .cooperative = 1};
  const CUlaunchConfig config{.grid = {ctas_, 1, 1},
                              .block = {threads_, 1, 1},
                              .shared_bytes = shared_bytes_,
                              .stream = stream.get(),
                              .attributes = &cooperative,
                              .attribute_count = 1};
  if (const CUresult result = driver.cuLaunchKernelEx(&config, last()->function, parameters, nullptr)) {
    const std::string subject = fmt::format("kernel '{}', {} CTAs at once", last()->kernel, ctas_);
    if (!is_fatal(result))
      throw PersistentRefused(
          fmt::format("{}: {}", device_->info().name, driver.describe(result, driver.cuLaunchKernelEx.name, subject)));
    device_->check(result, driver.cuLaunchKernelEx.name, subject, stream.last());
  }
  stream.check(driver.cuEventRecord(ended_.get(), stream.get()), driver.cuEventRecord.name);
  has_run_ = true;
}

}  // namespace tessera::internal
