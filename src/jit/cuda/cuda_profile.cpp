#include "jit/cuda/cuda_profile.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "codegen/schedule/machine_model.hpp"
#include "jit/cuda/cuda_stream.hpp"
#include "jit/options/log.hpp"
#include "jit/profile/profiler.hpp"
#include "jit/profile/recorder.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {

using namespace cuda;
using profile::Time;

EventTimer::EventTimer(CudaBackend& device) : device_(device) {}

EventTimer::Event EventTimer::record(CudaStream& stream) {
  const Driver& driver = device_.driver();
  Event event;
  if (unused_.empty()) {
    event = device_.make(driver.cuEventDestroy, driver.cuEventCreate, CU_EVENT_DEFAULT);
  } else {
    event = std::move(unused_.back());
    unused_.pop_back();
  }
  stream.check(driver.cuEventRecord(event.get(), stream.get()), driver.cuEventRecord.name);
  return event;
}

double EventTimer::milliseconds(const Event& from, const Event& to) const {
  float milliseconds = 0;
  device_.check(device_.driver().cuEventElapsedTime(&milliseconds, from.get(), to.get()),
                device_.driver().cuEventElapsedTime.name);
  return milliseconds;
}

void EventTimer::begin(CudaStream& stream, std::uint64_t number, const std::string& name, profile::Join& join) {
  const std::lock_guard lock(mutex_);
  constexpr std::size_t most_timed = 1024;
  if (timed_.size() >= most_timed) read(join);
  if (!last_) {  // the time of an event on the host's clock
    last_ = record(stream);
    device_.check(device_.driver().cuEventSynchronize(last_->get()), device_.driver().cuEventSynchronize.name);
    last_time_ = profile::now();
  }
  timed_.push_back({number, name, reinterpret_cast<std::uintptr_t>(stream.get()), record(stream), Event()});
}

void EventTimer::end(CudaStream& stream) {
  const std::lock_guard lock(mutex_);
  const auto on = reinterpret_cast<std::uintptr_t>(stream.get());
  for (auto timed = timed_.rbegin(); timed != timed_.rend(); ++timed) {
    if (timed->stream != on || timed->end.get()) continue;
    timed->end = record(stream);
    return;
  }
}

void EventTimer::collect(profile::Join& join) {
  const std::lock_guard lock(mutex_);
  read(join);
}

// Times follow from one event to the next: as floats, long times have few digits.
void EventTimer::read(profile::Join& join) {
  const ContextScope scope(device_.context());
  const OutsideRecording outside(device_.driver());
  const auto nanoseconds = [](double milliseconds) { return static_cast<Time>(milliseconds * 1e6); };
  for (Timed& timed : timed_) {
    if (!timed.end.get()) continue;  // another thread launches it now
    device_.check(device_.driver().cuEventSynchronize(timed.end.get()), device_.driver().cuEventSynchronize.name);
    const Time begin = last_time_ + nanoseconds(milliseconds(*last_, timed.begin)),
               end = begin + nanoseconds(milliseconds(timed.begin, timed.end));
    const auto correlation = static_cast<std::uint32_t>(timed.number);
    join.correlate(correlation, timed.number);
    join.add({.name = timed.name,
              .begin = begin,
              .end = end,
              .device = device_.info().ordinal.value_or(0),
              .stream = timed.stream,
              .correlation = correlation});
    unused_.push_back(std::move(*last_)), unused_.push_back(std::move(timed.begin));
    last_ = std::move(timed.end), last_time_ = end;
  }
  std::erase_if(timed_, [](const Timed& timed) { return !timed.begin.get(); });
}

CudaProfile& CudaProfile::process() {
  static CudaProfile& process = *[] {  // never destroyed, like the devices
    const std::string& option = options().cupti;
    auto* const made = new CudaProfile(
        option == "none" ? std::vector<std::string>() : Cupti::places(option, [](std::string_view variable) {
          const char* text = std::getenv(std::string(variable).c_str());
          return std::string(text ? text : "");
        }));
    profile::collect_with([made](profile::Recorder& recorder) { made->collect(recorder); });
    return made;
  }();
  return process;
}

void CudaProfile::add(CudaBackend& device) {
  const std::lock_guard lock(mutex_);
  const profile::Profile* const profile = profile::active();
  if (!profile || !profile->recorder) return;
  devices_.insert(&device);
  std::string why_not = places_.empty() ? "TESSERA_CUPTI=none" : "";
  if (!tried_ && !places_.empty()) try {
      cupti_.emplace(places_, join_);
      profile->recorder->note("clock", fmt::format("times of the device, by {}", cupti_->version()));
    } catch (const Error& error) {
      why_not = error.what();
    }
  if (!std::exchange(tried_, true) && !cupti_) {
    const std::string events =
        "launches are timed by events, so none begins while another one ends (PDL), and a graph "
        "is timed as a whole";
    log_warn(fmt::format("profile without CUPTI: {}: {}", events, why_not));
    profile->recorder->note("clock", fmt::format("times of the device, by events: {} ({})", events, why_not));
  }
  const DeviceInfo& info = device.info();
  constexpr double transfers_of_clock = 2;  // memory of double data rate
  profile::DeviceLimits limits{.name = info.name};
  limits.bytes_per_second = transfers_of_clock * info.memory_clock_mhz * 1e6 * device.memory_bus_bits() / 8;
  // The constants of the cost model are those of sm_90.
  if (info.arch && info.arch->major == 9)
    limits.macs16_per_second = MachineModel::of(info.name).macs * info.multiprocessors * info.clock_mhz * 1e6;
  profile->recorder->set_device(info.ordinal.value_or(0), limits);
}

void CudaProfile::remove(CudaBackend& device) {
  const std::lock_guard lock(mutex_);
  devices_.erase(&device);
}

void CudaProfile::collect(profile::Recorder& recorder) {
  {
    const std::lock_guard lock(mutex_);
    for (CudaBackend* device : devices_) try {
        device->wait_for_all();
        device->timer()->collect(join_);
      } catch (const Error& error) {  // the GPU is lost
        recorder.note("incomplete", error.what());
      }
  }
  if (cupti_) cupti_->flush();
  join_.settle(recorder);
}

void TimedCall::begin(profile::Kind kind, profile::Plan plan) {
  const profile::Profile* const profile = profile::active();
  CudaBackend& device = stream_.backend();
  if (!profile || stream_.keep_for_graph(plan) || stream_.is_recording()) return;
  const bool is_one = plan && plan->size() == 1 && kind == profile::Kind::launch;
  const std::string name = kind == profile::Kind::graph ? "graph" : plan ? "launch" : "copy";
  span_.emplace(kind, [&] { return is_one ? plan->front().subject : profile::named(name); });
  if (kind == profile::Kind::graph && plan) span_->details()->count = static_cast<std::int64_t>(plan->size());
  if (!profile->recorder || !device.profile()) return;
  has_plan_ = plan != nullptr;
  const std::uint64_t number = profile->recorder->next_number();
  span_->set_number(number);
  if (plan) device.profile()->join().submit(number, plan);
  if (const Cupti* const cupti = device.profile()->cupti())
    cupti->begin(number);
  else if (plan)
    device.timer()->begin(stream_, number, is_one ? plan->front().entry : name, device.profile()->join());
  constexpr std::size_t most_waiting = std::size_t{1} << 16;
  if (!device.profile()->cupti() && device.profile()->join().waiting() > most_waiting)
    device.profile()->join().settle(*profile->recorder);
}

void TimedCall::end() {
  CudaBackend& device = stream_.backend();
  if (!device.profile() || span_->event().number == 0) return;
  if (const Cupti* const cupti = device.profile()->cupti()) return cupti->end();
  if (!has_plan_) return;
  try {
    device.timer()->end(stream_);
  } catch (const Error&) {  // the GPU is lost, which the launch itself reports
  }
}

}  // namespace tessera::internal
