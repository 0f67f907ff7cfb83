#include "jit/profile/profiler.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "jit/options/files.hpp"
#include "jit/options/log.hpp"
#include "jit/profile/inside.hpp"
#include "jit/profile/nvtx.hpp"
#include "jit/profile/profile.hpp"
#include "jit/profile/recorder.hpp"
#include "jit/profile/table.hpp"
#include "jit/profile/trace_json.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/jit/profile.hpp"

namespace tessera::internal::profile {
namespace {

namespace fs = std::filesystem;

/// The process's profile. Never destroyed, as threads may record to the end.
class Profiler {
 public:
  static Profiler& instance() {
    static Profiler& profiler = *new Profiler;
    return profiler;
  }

  void start(const std::function<ProfileOption()>& option, const std::string& source) {
    const std::lock_guard lock(mutex_);
    if (begun_) return;
    const ProfileOption asked = option();
    open(asked, source);
    begun_ = true, option_ = asked, process_ = ::getpid();
    if (!asked.file.empty() || asked.table || !asked.inside.empty()) {
      const double seconds = options().profile_seconds;
      const bool needs_events = !asked.file.empty() || !asked.inside.empty();
      recorder_.emplace(Recorder::Limits{.events = needs_events ? most_events : 0, .seconds = seconds});
      recorder_->note("clock", "times of the host's clock");
      if (seconds > 0 && !asked.file.empty()) recorder_->note("kept", fmt::format("the last {} s", seconds));
      profile_.recorder = &*recorder_;
    }
    if (!asked.inside.empty()) profile_.stamped = &stamped_.emplace(asked.inside);
    nvtx_ = Nvtx::attached();
    profile_.nvtx = nvtx_.get();
    if (!profile_.recorder && !profile_.nvtx) return;
    current.store(&profile_, std::memory_order_release);
    watch_threads(profile_.recorder != nullptr);
    finish_at_exit();
  }

  void finish_at_exit() {
    std::atexit([] { profile::finish(); });
  }

  void collect_with(std::function<void(Recorder&)> collect) {
    const std::lock_guard lock(mutex_);
    collectors_.push_back(std::move(collect));
  }

  // A forked child records nothing that its parent would write.
  void write(bool last) {
    const std::lock_guard lock(mutex_);
    if (!recorder_ || finished_ || process_ != ::getpid()) return;
    for (const auto& collect : collectors_) collect(*recorder_);
    finished_ = last;
    if (last) watch_threads(false), current.store(nullptr, std::memory_order_release);
    const Trace trace = recorder_->trace();
    if (option_.table && last) std::fputs(fmt::format("tessera: {}", table_text(trace)).c_str(), stderr);
    if (stamped_ && last) std::fputs(stamped_text(trace).c_str(), stderr);
    if (option_.file.empty()) return;
    if (!output_) output_.emplace(option_.file);
    output_->write(trace_json(trace));
    output_->publish();
    output_.reset();
  }

 private:
  /// The views inside of kernels, or why there is none.
  std::string stamped_text(const Trace& trace) const {
    if (!trace.stamped.empty()) return fmt::format("tessera: {}", inside_text(trace));
    std::set<std::string> kernels;
    for (const Total& total : trace.totals)
      if (total.kind == Kind::kernel) kernels.insert(total.subject->name);
    return fmt::format(
        "tessera: inside:{}: no launch was looked into. Kernels that ran: {}. The CPU executor, recorded graphs, "
        "persistent kernels and raw CUDA kernels have no roles that log; see docs/profiling.md\n",
        stamped_->pattern(), kernels.empty() ? "none" : fmt::format("{}", fmt::join(kernels, ", ")));
  }

  // Some 100 MB as JSON; Perfetto takes that in seconds.
  static constexpr std::size_t most_events = std::size_t{1} << 18;

  /// Finds out now whether the file can be written. A file that is not replaced but written in place, such as a pipe,
  /// stays open.
  void open(const ProfileOption& asked, const std::string& source) {
    if (asked.file.empty()) return;
    try {
      output_.emplace(asked.file);
    } catch (const std::exception& error) {
      throw Error(fmt::format("{}: {}", source, error.what()));
    }
    std::error_code unknown;
    if (!fs::exists(asked.file, unknown) || fs::is_regular_file(asked.file, unknown)) output_.reset();
  }

  std::mutex mutex_;  // guards all below
  bool begun_ = false, finished_ = false;
  ProfileOption option_;
  pid_t process_ = 0;
  std::optional<Recorder> recorder_;
  std::optional<StampedKernels> stamped_;
  std::unique_ptr<const Nvtx> nvtx_;
  Profile profile_;
  std::vector<std::function<void(Recorder&)>> collectors_;
  std::optional<OutputFile> output_;
};

}  // namespace

void start() {
  static std::atomic<bool> begun = false;
  if (begun.load(std::memory_order_acquire)) return;
  Profiler::instance().start([] { return options().profile; }, "TESSERA_PROFILE");
  begun.store(true, std::memory_order_release);
}

void start(const std::string& value, const std::string& source) {
  Profiler::instance().start([&] { return parse_profile(value, source); }, source);
}

void name_host(const std::string& name) {
  if (const Profile* const profile = active(); profile && profile->recorder)
    profile->recorder->set_device(on_host, {.name = name});
}

void collect_with(std::function<void(Recorder&)> collect) { Profiler::instance().collect_with(std::move(collect)); }
void finish_before_handlers() { Profiler::instance().finish_at_exit(); }

void finish() noexcept {
  try {
    Profiler::instance().write(true);
  } catch (const std::exception& error) {
    try {
      log_warn(fmt::format("the profile is lost: {}", error.what()));
    } catch (const std::exception&) {  // there is no memory left
    }
  }
}

Recording::Recording(Recorder& recorder, const Nvtx* nvtx, const StampedKernels* stamped)
    : before_(current.load()), profile_(std::make_unique<Profile>(Profile{&recorder, nvtx, stamped})) {
  current.store(profile_.get(), std::memory_order_release);
  watch_threads(true);
}
Recording::~Recording() {
  watch_threads(before_ && before_->recorder);
  current.store(before_, std::memory_order_release);
}

}  // namespace tessera::internal::profile

namespace tessera::internal {

void flush_profile() {
  try {
    profile::Profiler::instance().write(false);
  } catch (const std::exception& error) {
    throw Error(fmt::format("the profile is not written: {}", error.what()));
  }
}

}  // namespace tessera::internal
