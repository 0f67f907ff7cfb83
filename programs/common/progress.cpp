#include "common/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>

#include "common/terminal.hpp"
#include "jit/compile/compiler.hpp"

namespace tessera::internal {
namespace {

void draw(const Progress& progress) {
  constexpr int width = 30;
  std::string bar;
  if (progress.part >= 0) {
    const int full = std::clamp(static_cast<int>(progress.part * width), 0, width);
    bar = fmt::format(" [{:<{}}] {:3.0f} %", std::string(static_cast<std::size_t>(full), '='), width,
                      std::clamp(progress.part, 0.0, 1.0) * 100);
    bar = Paint(has_colors(2)).progress(bar);
  }
  std::fputs(fmt::format("\r{}{}\x1b[K", progress.what, bar).c_str(), stderr);  // also clears the rest of the line
}

}  // namespace

Progress compile_progress() {
  const CompileTimes times = compile_times();
  if (times.running == 0 && times.awaited == 0) return {};
  const std::uint64_t done = times.compiled + times.cached, all = done + static_cast<std::uint64_t>(times.awaited);
  if (times.awaited == 0) return {.what = fmt::format("compiling kernels, {} done", done)};
  return {.what = fmt::format("compiling kernels, {} of {} done", done, all),
          .part = static_cast<double>(done) / static_cast<double>(all)};
}

ProgressLine::ProgressLine(std::function<Progress()> progress) {
  if (!is_terminal(2)) return;
  thread_ = std::jthread([progress = std::move(progress)](std::stop_token stop) {
    using namespace std::chrono_literals;
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    bool shown = false;
    for (auto wait = 1000ms; !stopped.wait_for(lock, stop, wait, [&] { return stop.stop_requested(); }); wait = 100ms) {
      const Progress now = progress();
      if (now.what.empty()) continue;
      draw(now);
      shown = true;
    }
    if (shown) std::fputs("\r\x1b[K", stderr);
  });
}

}  // namespace tessera::internal
