#include "jit/cuda/cuda_stamps.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "jit/cuda/cuda_stream.hpp"
#include "jit/options/log.hpp"
#include "jit/profile/recorder.hpp"

namespace tessera::internal {

using namespace cuda;

StampLog::StampLog(CudaStream& stream, const StampTable& table, std::int64_t ctas)
    : stream_(stream), rows_(ctas * std::ssize(table.rows)), room_(profile::stamp_room(rows_)) {
  if (room_ == 0) return;
  CudaBackend& device = stream.backend();
  const ContextScope scope(device.context());
  const std::size_t words = static_cast<std::size_t>(rows_) * room_;
  device.check(device.driver().cuMemAlloc(&address_, words * sizeof(std::uint64_t)), device.driver().cuMemAlloc.name,
               fmt::format("{:.1f} MB for the profiler's stamps", static_cast<double>(words * 8) * 1e-6));
  if (const CUresult result = device.driver().cuMemsetD32Async(address_, 0, words * 2, stream.get())) {
    device.driver().cuMemFree(address_);  // no destructor runs
    stream.check(result, device.driver().cuMemsetD32Async.name);
  }
}

StampLog::~StampLog() {
  const ContextScope scope(stream_.backend().context());
  if (address_) stream_.backend().driver().cuMemFree(address_);
}

void StampLog::read(profile::StampedLaunch launch) const {
  const profile::Profile* const profile = profile::active();
  if (!profile || !profile->recorder) return;
  if (room_ == 0)
    return log_warn(
        fmt::format("profile: a launch of kernel '{}' has too many CTAs to be looked into ({} roles in all)",
                    launch.subject->name, rows_));
  CudaBackend& device = stream_.backend();
  std::vector<std::uint64_t> words(static_cast<std::size_t>(rows_) * room_);
  {
    const ContextScope scope(device.context());
    stream_.check(device.driver().cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(words.data()), address_,
                                                words.size() * sizeof words[0], stream_.get()),
                  device.driver().cuMemcpyAsync.name);
  }
  stream_.synchronize();
  profile::read_stamps(words, room_, launch);
  profile->recorder->add(std::move(launch));
}

}  // namespace tessera::internal
