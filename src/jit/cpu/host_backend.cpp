#include "jit/cpu/host_backend.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

struct HostEvent final : EventBackend {
  std::chrono::steady_clock::time_point time = std::chrono::steady_clock::now();
  void synchronize() override {}
  double milliseconds_since(EventBackend& earlier) override {
    return std::chrono::duration<double, std::milli>(time - own<HostEvent>(earlier).time).count();
  }
};

}  // namespace

thread_local const HostStream* HostStream::recorded_by = nullptr;
thread_local HostGraph* HostStream::recorded = nullptr;

void copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  profile::Span span(profile::Kind::copy, [] { return profile::named("copy"); });
  if (profile::Details* const details = span.details()) details->work.bytes = static_cast<std::int64_t>(bytes);
  std::memmove(to, from, bytes);
}

void HostStream::copy(void* to, const void* from, std::size_t bytes) {
  const auto call = [=] { copy_bytes(to, from, bytes); };
  recording() ? recording()->calls.emplace_back(call), void() : call();
}

std::shared_ptr<EventBackend> HostStream::record() { return std::make_shared<HostEvent>(); }
void HostStream::wait(EventBackend& event) { own<HostEvent>(event); }

std::shared_ptr<GraphBackend> HostStream::capture(const std::function<void()>& function) {
  struct End {  // also runs if `function` throws
    ~End() { recorded_by = nullptr, recorded = nullptr; }
  } const end;
  auto graph = std::make_shared<HostGraph>();
  recorded_by = this, recorded = graph.get();
  function();
  return graph;
}

void HostStream::launch(GraphBackend& graph) {
  const auto& calls = own<HostGraph>(graph).calls;
  if (HostGraph* outer = recording()) return void(outer->calls.insert(outer->calls.end(), calls.begin(), calls.end()));
  profile::Span span(profile::Kind::graph, [] { return profile::named("graph"); });
  if (profile::Details* const details = span.details()) details->count = static_cast<std::int64_t>(calls.size());
  for (const auto& call : calls) call();
}

HostKernel::HostKernel(const Graph& graph, Code code) : parts_(std::make_shared<const Parts>(graph, std::move(code))) {}

void HostKernel::Parts::run(std::span<const Argument> arguments, std::span<const std::int64_t> grid) const {
  profile::Span span(profile::Kind::kernel, [&] { return subject.of(graph); });
  if (profile::Details* const details = span.details())
    profile::describe(*details, *span.event().subject, arguments, grid);
  try {
    code(arguments, grid);
  } catch (const std::bad_alloc&) {
    refuse_for_memory(graph, arguments);
  }
}

void HostKernel::launch(StreamBackend& stream, std::span<const Argument> arguments,
                        std::span<const std::int64_t> grid) {
  HostGraph* const recording = static_cast<HostStream&>(stream).recording();
  if (!recording) return parts_->run(arguments, grid);
  recording->calls.emplace_back([parts = parts_, arguments = std::vector(arguments.begin(), arguments.end()),
                                 grid = std::vector(grid.begin(), grid.end())] { parts->run(arguments, grid); });
}

std::shared_ptr<void> HostBackend::allocate(std::size_t bytes) {
  // Large pages need fewer TLB entries, and are zeroed sooner. Without them, nothing is lost.
  constexpr std::size_t vector = 64, large_page = std::size_t{1} << 21;
  const bool is_large = bytes >= large_page;
  void* memory = nullptr;
  if (::posix_memalign(&memory, is_large ? large_page : vector, std::max<std::size_t>(bytes, 1)) == 0) {
    if (is_large) ::madvise(memory, bytes / large_page * large_page, MADV_HUGEPAGE);
    return {memory, std::free};
  }
  throw OutOfMemory(fmt::format("there is no memory left for {:.1f} MB", static_cast<double>(bytes) * 1e-6));
}

namespace {

/// The number behind a word in a file of the kernel; the first word if `after` is empty. None: there is no number.
std::optional<std::size_t> number_in(const char* file, std::string_view after) {
  std::ifstream stream(file);
  std::string word;
  if (!after.empty())
    while (stream >> word && word != after) {}
  std::size_t number = 0;
  return stream >> number ? std::optional(number) : std::nullopt;
}

}  // namespace

// Linux would grant more, and end the process when it is used.
std::optional<std::size_t> HostBackend::free_bytes(std::size_t) {
  std::optional<std::size_t> free = number_in("/proc/meminfo", "MemAvailable:");  // in KiB
  if (free) *free *= 1024;
  const auto limit = number_in("/sys/fs/cgroup/memory.max", ""), used = number_in("/sys/fs/cgroup/memory.current", "");
  if (limit && used) {
    std::size_t cached = 0;  // files, which make room
    for (const char* what : {"inactive_file", "active_file"})
      cached += number_in("/sys/fs/cgroup/memory.stat", what).value_or(0);
    free = std::min(free.value_or(*limit), *limit - std::min(*limit, *used - std::min(*used, cached)));
  }
  return free;
}

void HostBackend::copy(void* to, const void* from, std::size_t bytes) { copy_bytes(to, from, bytes); }

std::shared_ptr<StreamBackend> HostBackend::stream_from(void*) {
  throw Error("the CPU has no CUstream to be given; use Device::stream or Device::new_stream");
}

}  // namespace tessera::internal
