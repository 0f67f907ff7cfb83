#include "jit/cuda/cupti.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <type_traits>

#include "jit/compile/nvrtc.hpp"
#include "jit/profile/profile.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal::cuda {
namespace {

namespace fs = std::filesystem;

// From cupti_activity.h and cupti_result.h of CUDA 12.0 to 13.5. Each version has longer records;
// the fields below are at the same places in all of them (CUpti_ActivityKernel8 to 13, CUpti_ActivityMemcpy5 to 7,
// CUpti_ActivityMemset4 and 5, CUpti_ActivityExternalCorrelation).
enum : int {
  CUPTI_ACTIVITY_KIND_MEMCPY = 1,
  CUPTI_ACTIVITY_KIND_MEMSET = 2,
  CUPTI_ACTIVITY_KIND_DRIVER = 4,
  CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL = 10,
  CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION = 39,
};
// A record of a driver's call is preceded by the number that begin() was given. Records of calls are not read; if only
// some calls are recorded (cuptiActivityEnableDriverApi), the numbers do not come (measured with CUPTI 13.0).
constexpr int kinds[] = {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_DRIVER,
                         CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL};
constexpr int CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0 = 3;
constexpr std::uint32_t CUPTI_ACTIVITY_FLAG_FLUSH_FORCED = 1;
constexpr int CUPTI_ERROR_INSUFFICIENT_PRIVILEGES = 35, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED = 39,
              CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES = 40;
// CUPTI_API_VERSION of CUDA 12.0, of the last 12, and of 13.
constexpr std::uint32_t first_version = 19, last_of_12 = 99, first_of_13 = 130000, first_unknown = 140000;

/// A field of a record.
template <class T>
T at(const std::byte* record, std::size_t offset) {
  T value;
  std::memcpy(&value, record + offset, sizeof value);
  return value;
}

const char* direction(std::uint8_t kind) {
  constexpr const char* words[] = {"", "to the device",     "from the device", "", "", "", "",
                                   "", "within the device", "on the host"};
  return kind < std::size(words) ? words[kind] : "";
}

profile::Activity times_of(const std::byte* record, std::size_t device, std::size_t stream) {
  profile::Activity activity;
  activity.begin = static_cast<profile::Time>(at<std::uint64_t>(record, 16));
  activity.end = static_cast<profile::Time>(at<std::uint64_t>(record, 24));
  activity.device = static_cast<int>(at<std::uint32_t>(record, device));
  activity.stream = at<std::uint32_t>(record, stream);
  return activity;
}

profile::Activity kernel_of(const std::byte* record) {
  profile::Activity kernel = times_of(record, 40, 48);
  kernel.details.registers = at<std::uint16_t>(record, 6);
  for (std::size_t axis = 0; axis < 3; ++axis) kernel.details.grid[axis] = at<std::int32_t>(record, 52 + 4 * axis);
  kernel.details.axes = 3;
  kernel.details.threads = at<std::int32_t>(record, 64) * at<std::int32_t>(record, 68) * at<std::int32_t>(record, 72);
  kernel.details.shared_bytes = at<std::int32_t>(record, 76) + at<std::int32_t>(record, 80);
  kernel.correlation = at<std::uint32_t>(record, 92);
  const char* const name = at<const char*>(record, 104);
  kernel.name = name ? name : "a kernel without a name";
  kernel.node = at<std::uint64_t>(record, 144);
  return kernel;
}

profile::Activity copy_of(const std::byte* record, bool fills) {
  profile::Activity copy = times_of(record, 32, 40);
  copy.kind = profile::Kind::copy;
  copy.name = fills ? "fill" : "copy";
  copy.details.note = fills ? "" : direction(at<std::uint8_t>(record, 4));
  copy.details.work.bytes = static_cast<std::int64_t>(at<std::uint64_t>(record, 8));
  copy.correlation = at<std::uint32_t>(record, 44);
  copy.node = at<std::uint64_t>(record, 64);
  return copy;
}

// CUPTI's callbacks take no pointer of ours.
std::mutex tracing_mutex;  // guards the next one
Cupti* tracing = nullptr;

}  // namespace

std::vector<std::string> Cupti::places(std::string_view option,
                                       const std::function<std::string(std::string_view)>& environment) {
  constexpr const char* names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
  std::vector<std::string> places;
  const auto add_folder = [&](const fs::path& folder) {
    for (const char* name : names) places.push_back((folder / name).string());
  };
  std::error_code unknown;
  if (!option.empty()) {
    fs::is_directory(option, unknown) ? add_folder(option) : void(places.emplace_back(option));
    return places;
  }
  places.assign(std::begin(names), std::end(names));
  const auto add_toolkit = [&](const fs::path& toolkit) {
    add_folder(toolkit / "extras/CUPTI/lib64"), add_folder(toolkit / "lib64");
  };
  for (const std::string_view variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const std::string toolkit = environment(variable); !toolkit.empty()) add_toolkit(toolkit);
  for (const fs::path& toolkit : installed_toolkits()) add_toolkit(toolkit);
  return places;
}

Cupti::Cupti(std::span<const std::string> places, profile::Join& join)
    : library_(*new SharedLibrary(SharedLibrary::open(
          "CUPTI, CUDA's library for profilers (libcupti; TESSERA_CUPTI can name its path),", places))),
      join_(join) {
  const auto find = [&](auto& call, const char* name) {
    call = library_.symbol<std::remove_reference_t<decltype(call)>>(name);
  };
  find(calls_.version, "cuptiGetVersion");
  find(calls_.register_clock, "cuptiActivityRegisterTimestampCallback");
  find(calls_.register_buffers, "cuptiActivityRegisterCallbacks");
  find(calls_.enable, "cuptiActivityEnable");
  find(calls_.disable, "cuptiActivityDisable");
  find(calls_.flush, "cuptiActivityFlushAll");
  find(calls_.next_record, "cuptiActivityGetNextRecord");
  find(calls_.push, "cuptiActivityPushExternalCorrelationId");
  find(calls_.pop, "cuptiActivityPopExternalCorrelationId");
  find(calls_.result_text, "cuptiGetResultString");

  std::uint32_t version = 0;
  check(calls_.version(&version), "cuptiGetVersion");
  version_ = fmt::format("CUPTI {} ({})", version, library_.path().native());
  if (version < first_version || (version > last_of_12 && version < first_of_13) || version >= first_unknown)
    throw Error(fmt::format("the records of {} are not known", version_));
  const std::lock_guard lock(tracing_mutex);
  if (tracing) throw Error("CUPTI already traces this process");
  try {
    begin_tracing();
  } catch (const Error&) {
    for (const int kind : kinds) calls_.disable(kind);
    throw;
  }
  tracing = this;
}

void Cupti::begin_tracing() {
  check(calls_.register_clock([] { return static_cast<std::uint64_t>(profile::now()); }),
        "cuptiActivityRegisterTimestampCallback");
  check(calls_.register_buffers(&give_buffer, &take_buffer), "cuptiActivityRegisterCallbacks");
  for (const int kind : kinds) check(calls_.enable(kind), "cuptiActivityEnable");
}

Cupti::~Cupti() {
  for (const int kind : kinds) calls_.disable(kind);
  flush();
  const std::lock_guard lock(tracing_mutex);
  tracing = nullptr;
}

void Cupti::check(Result result, std::string_view call) const {
  if (result == 0) return;
  const char* text = nullptr;
  if (calls_.result_text(result, &text) != 0 || !text) text = "an error without a name";
  std::string advice;
  if (result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES || result == CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES)
    advice =
        ": the driver permits this user no profiling; run the program as root, or let the administrator load the "
        "driver with NVreg_RestrictProfilingToAdminUsers=0";
  if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
    advice = ": another profiler uses CUPTI in this process; end it, or use that one";
  throw Error(fmt::format("{} failed with {} ({}){}", call, text, result, advice));
}

void Cupti::begin(std::uint64_t number) const { calls_.push(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, number); }
void Cupti::end() const {
  std::uint64_t last = 0;
  calls_.pop(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last);
}
void Cupti::flush() const { calls_.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED); }

void Cupti::give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  constexpr std::size_t size = std::size_t{1} << 20, alignment = 8;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(alignment, size));
  *bytes = *buffer ? size : 0;
  *most_records = 0;  // as many as fit
}

void Cupti::take_buffer(void*, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  try {
    const std::lock_guard lock(tracing_mutex);
    if (tracing) {
      tracing->read(buffer, valid);
      // A long profile is settled part by part; the parts of a graph may be apart.
      constexpr std::size_t most_waiting = std::size_t{1} << 16;
      const profile::Profile* const profile = profile::active();
      if (profile && profile->recorder && tracing->join_.waiting() > most_waiting)
        tracing->join_.settle(*profile->recorder);
    }
  } catch (const std::exception&) {  // there is no memory left; CUPTI's thread must not end
  }
  std::free(buffer);
}

void Cupti::read(std::uint8_t* buffer, std::size_t bytes) {
  for (std::byte* record = nullptr; calls_.next_record(buffer, bytes, &record) == 0 && record;) {
    switch (at<int>(record, 0)) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        join_.add(kernel_of(record));
        break;
      case CUPTI_ACTIVITY_KIND_MEMCPY:
      case CUPTI_ACTIVITY_KIND_MEMSET:
        join_.add(copy_of(record, at<int>(record, 0) == CUPTI_ACTIVITY_KIND_MEMSET));
        break;
      case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
        if (at<int>(record, 4) == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0)
          join_.correlate(at<std::uint32_t>(record, 16), at<std::uint64_t>(record, 8));
        break;
      default:  // a call of the driver
        break;
    }
  }
}

}  // namespace tessera::internal::cuda
