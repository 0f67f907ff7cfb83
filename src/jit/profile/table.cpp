#include "jit/profile/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

namespace tessera::internal::profile {
namespace {

double seconds(Time time) { return static_cast<double>(time) * 1e-9; }

std::string share(double part, double whole) { return whole > 0 ? fmt::format("{:.0f} %", 100 * part / whole) : "-"; }

std::string place(const Subject& subject) {
  return subject.file.empty() ? subject.name : fmt::format("{}  {}:{}", subject.name, subject.file, subject.line);
}

/// One line for each kernel of a device.
std::string kernels_text(const std::vector<const Total*>& kernels, const DeviceLimits& limits) {
  Time all = 0;
  std::int64_t launches = 0;
  for (const Total* total : kernels) all += total->time, launches += total->count;
  std::string text = fmt::format("{}: {} launches of {} kernels, {:.3f} ms\n", limits.name, launches, kernels.size(),
                                 seconds(all) * 1e3);
  constexpr auto row = "{:>10} {:>6} {:>8} {:>9} {:>8} {:>7} {:>8} {:>7} {:>5} {:>7}  {}\n";
  const auto add = [&](const auto&... cells) { fmt::format_to(std::back_inserter(text), fmt::runtime(row), cells...); };
  add("ms", "share", "launches", "us each", "GB/s", "of peak", "TFLOP/s", "of peak", "regs", "shared", "kernel");
  bool at_most = false;
  for (const Total* total : kernels) {
    const double time = seconds(total->time);
    const Work& work = total->details.work;
    const bool has_bytes = work.bytes >= 0 && time > 0, has_flops = work.flops > 0 && time > 0;
    const char* const limit = work.bytes_at_most ? "<" : "";
    at_most |= has_bytes && work.bytes_at_most;
    add(fmt::format("{:.3f}", time * 1e3), share(time, seconds(all)), total->count,
        fmt::format("{:.2f}", time * 1e6 / static_cast<double>(total->count)),
        has_bytes ? fmt::format("{}{:.1f}", limit, static_cast<double>(work.bytes) / time * 1e-9) : "-",
        has_bytes && limits.bytes_per_second > 0
            ? limit + share(static_cast<double>(work.bytes) / time, limits.bytes_per_second)
            : "-",
        has_flops ? fmt::format("{:.3f}", work.flops / time * 1e-12) : "-",
        has_flops && work.macs16 > 0 ? share(work.macs16 / time, limits.macs16_per_second) : "-",
        total->details.registers > 0 ? fmt::format("{}", total->details.registers) : "-",
        total->details.shared_bytes >= 0 ? fmt::format("{}", total->details.shared_bytes) : "-",
        place(*total->subject));
  }
  if (at_most) text += "<: at most, as the device alone knows how often a loop runs\n";
  return text;
}

/// The sum of all events of a kind; empty if there are none.
std::string sum_text(const Trace& trace, Kind kind, std::string_view what) {
  std::int64_t count = 0, bytes = 0;
  Time time = 0;
  for (const Total& total : trace.totals)
    if (total.kind == kind)
      count += total.count, time += total.time, bytes += std::max<std::int64_t>(0, total.details.work.bytes);
  if (count == 0) return "";
  return fmt::format("{}: {}, {:.3f} ms{}\n", what, count, seconds(time) * 1e3,
                     kind == Kind::copy ? fmt::format(", {:.3f} MB", static_cast<double>(bytes) * 1e-6) : "");
}

}  // namespace

std::string table_text(const Trace& trace) {
  std::string text = fmt::format("profile of {:.3f} s", seconds(trace.end - trace.begin));
  if (const auto clock = trace.notes.find("clock"); clock != trace.notes.end()) text += "; " + clock->second;
  text += '\n';
  std::map<int, std::vector<const Total*>> kernels;
  for (const Total& total : trace.totals)
    if (total.kind == Kind::kernel) kernels[total.device].push_back(&total);
  for (auto& [device, all] : kernels) {
    std::ranges::sort(all, [](const Total* a, const Total* b) {
      return a->time != b->time ? a->time > b->time : a->subject->name < b->subject->name;
    });
    const auto limits = trace.devices.find(device);
    text += kernels_text(all, limits != trace.devices.end() ? limits->second : DeviceLimits{.name = "host"});
  }
  text += sum_text(trace, Kind::compile, "kernels made") + sum_text(trace, Kind::copy, "copies") +
          sum_text(trace, Kind::load, "models loaded") + sum_text(trace, Kind::token, "steps of sessions");
  return text;
}

}  // namespace tessera::internal::profile
