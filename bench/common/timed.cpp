#include "common/timed.hpp"

#include <ctime>

#include "common/median.hpp"
#include "common/program.hpp"

namespace tessera::internal::bench {
namespace {

double process_milliseconds() {
  std::timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

}  // namespace

Timed::Timed(Call call, std::function<double()> error) : call_(std::move(call)), error_(std::move(error)) { call_(); }

double Timed::turn() {
  const double before = process_milliseconds();
  const Stopwatch watch;
  call_();
  const double elapsed = watch.milliseconds();
  cpu_.push_back(process_milliseconds() - before);
  return elapsed;
}

std::optional<double> Timed::error() { return error_ ? std::optional(error_()) : std::nullopt; }

std::optional<double> Timed::cpu() { return cpu_.empty() ? std::nullopt : std::optional(median(cpu_)); }

}  // namespace tessera::internal::bench
