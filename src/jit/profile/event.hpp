// The contents of a profile: times of launches, compilations, copies and tokens, and what is known about each.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jit/profile/work.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal::profile {

/// Nanoseconds of the host's steady clock.
using Time = std::int64_t;
inline Time now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

enum class Kind : std::uint8_t {
  kernel,   ///< runs, on a device or on a thread of the host
  launch,   ///< a call on the host that gives a launch to a GPU
  graph,    ///< a call on the host that launches a recorded graph
  compile,  ///< code is made
  copy,
  open,   ///< a device is opened
  load,   ///< a model's weights are read
  token,  ///< a step of a session: tokens are appended or chosen
  part,   ///< a thread's part of a kernel that runs on several
};
std::string_view name(Kind kind);

/// Something that takes time, by name: a kernel as its author called it, with the line of its kernel(...).
struct Subject {
  std::string name;
  std::string file = {};
  unsigned line = 0;
  std::vector<std::string> phases = {};  ///< of a persistent kernel: its launches, in order
  std::shared_ptr<const WorkCount> work = {};

  static std::shared_ptr<const Subject> of(const Graph& graph);
};
using SubjectRef = std::shared_ptr<const Subject>;

/// A subject that has only a name.
[[gnu::visibility("default")]] SubjectRef named(std::string name);
/// A persistent kernel of launches of these graphs.
SubjectRef persistent(std::string name, std::span<const Graph* const> launches);

struct Details {
  std::array<std::int32_t, 8> grid{};
  std::uint8_t axes = 0;    ///< of the grid; 0: there is none
  int threads = 0;          ///< of a CTA; 0: unknown
  int registers = 0;        ///< of a thread; 0: unknown
  int shared_bytes = -1;    ///< of a CTA; -1: unknown
  std::int64_t count = -1;  ///< of tokens, or of a graph's launches
  Work work = {};           ///< of a copy: its bytes
  const char* note = "";    ///< in one word, such as "cached"; a literal
};

constexpr int on_host = -1;

struct Event {
  Kind kind{};
  SubjectRef subject;
  Time begin = 0, end = 0;
  int device = on_host;
  std::uint64_t lane = 0;    ///< a thread of the host, or a stream of the device
  std::uint64_t number = 0;  ///< of the launch: on the host's call and on what the device does; 0: none
  Details details = {};
};

/// A device that does not work on the host's threads, and its limits, as far as they are known.
struct DeviceLimits {
  std::string name;
  double bytes_per_second = 0, macs16_per_second = 0;
};

/// The number by which the system knows this thread.
std::uint64_t this_thread();

}  // namespace tessera::internal::profile
