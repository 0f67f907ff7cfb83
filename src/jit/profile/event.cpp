#include "jit/profile/event.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

namespace tessera::internal::profile {

std::string_view name(Kind kind) {
  switch (kind) {
    case Kind::kernel:
      return "kernel";
    case Kind::launch:
      return "launch";
    case Kind::graph:
      return "graph";
    case Kind::compile:
      return "compile";
    case Kind::copy:
      return "copy";
    case Kind::open:
      return "open";
    case Kind::load:
      return "load";
    case Kind::token:
      return "token";
    case Kind::part:
      return "part";
  }
  return "";
}

std::shared_ptr<const Subject> Subject::of(const Graph& graph) {
  return std::make_shared<const Subject>(Subject{.name = graph.name,
                                                 .file = graph.location.file,
                                                 .line = graph.location.line,
                                                 .phases = {},
                                                 .work = std::make_shared<const WorkCount>(graph)});
}

SubjectRef named(std::string name) { return std::make_shared<const Subject>(Subject{.name = std::move(name)}); }

SubjectRef persistent(std::string name, std::span<const Graph* const> launches) {
  Subject subject{.name = std::move(name)};
  for (const Graph* graph : launches)
    subject.phases.push_back(fmt::format("{} ({}:{})", graph->name, graph->location.file, graph->location.line));
  return std::make_shared<const Subject>(std::move(subject));
}

std::uint64_t this_thread() {
  // Needs no destructor, so it can be used to the end. A forked child has another number.
  static thread_local std::uint64_t number = 0;
  static thread_local pid_t process = 0;
  if (process != ::getpid()) process = ::getpid(), number = static_cast<std::uint64_t>(::gettid());
  return number;
}

}  // namespace tessera::internal::profile
