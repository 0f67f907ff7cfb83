#include "jit/profile/trace_json.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "tessera/jit/version.hpp"

namespace tessera::internal::profile {
namespace {

// Linux has fewer processes and threads than this, so devices and further tracks get the numbers from here on.
constexpr std::uint64_t beyond_threads = std::uint64_t{1} << 22;

std::string json_text(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      json += '\\', json += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      json += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      json += c;
    }
  }
  return json + '"';
}

/// Microseconds with all digits of the nanoseconds.
std::string microseconds(Time time) {
  const Time magnitude = time < 0 ? -time : time;
  return fmt::format("{}{}.{:03}", time < 0 ? "-" : "", magnitude / 1000, magnitude % 1000);
}

/// Puts the events of a thread or a stream on tracks.
class Tracks {
 public:
  /// Do events nest?
  explicit Tracks(bool nests) : nests_(nests) {}
  /// The track for an event, which begins no earlier than those before it.
  std::size_t of(const Event& event) {
    for (std::size_t track = 0;; ++track) {
      if (track == open_.size()) open_.emplace_back();
      std::vector<Time>& ends = open_[track];
      while (!ends.empty() && ends.back() <= event.begin) ends.pop_back();
      if (!ends.empty() && !(nests_ && event.end <= ends.back())) continue;
      ends.push_back(event.end);
      return track;
    }
  }

 private:
  bool nests_;
  std::vector<std::vector<Time>> open_;  // of each track: the ends of what runs, the innermost last
};

class Writer {
 public:
  explicit Writer(const Trace& trace) : trace_(trace), process_(static_cast<std::uint64_t>(::getpid())) {}

  std::string text() {
    std::vector<const Event*> events;
    for (const Event& event : trace_.events) events.push_back(&event);
    // An event comes before those that it contains.
    std::ranges::stable_sort(events, [](const Event* a, const Event* b) {
      return a->begin != b->begin ? a->begin < b->begin : a->end > b->end;
    });
    find_flows(events);
    name_processes();
    for (const Event* event : events) add(*event);
    for (const StampedLaunch& launch : trace_.stamped) add(launch, events);
    if (trace_.dropped > 0) {
      line(R"("ph":"M","name":"dropped_events","pid":{},"args":{{"count":{}}})", process_, trace_.dropped);
      line(R"("ph":"i","s":"g","name":"{} earlier events were dropped","cat":"profile","ts":{},"pid":{},"tid":{})",
           trace_.dropped, microseconds(events.empty() ? 0 : events.front()->begin - trace_.begin), process_, process_);
    }
    std::string other = fmt::format(R"("tessera":{},"dropped_events":{})", json_text(version()), trace_.dropped);
    for (const auto& [about, text] : trace_.notes) other += fmt::format(",{}:{}", json_text(about), json_text(text));
    return fmt::format("{{\"displayTimeUnit\":\"ns\",\"otherData\":{{{}}},\"traceEvents\":[\n{}\n]}}\n", other, lines_);
  }

 private:
  struct Place {
    std::uint64_t process, track;
  };

  template <class... A>
  void line(fmt::format_string<A...> text, A&&... values) {
    lines_ += lines_.empty() ? "{" : ",\n{";
    fmt::format_to(std::back_inserter(lines_), text, std::forward<A>(values)...);
    lines_ += '}';
  }

  /// Arrows lead from the host's call to the first thing that the device does for it.
  void find_flows(std::span<const Event* const> events) {
    std::map<std::uint64_t, const Event*> calls;
    for (const Event* event : events)
      if (event->device == on_host && event->number > 0 && (event->kind == Kind::launch || event->kind == Kind::graph))
        calls.emplace(event->number, event);
    for (const Event* event : events) {
      if (event->device == on_host || event->number == 0) continue;
      const auto call = calls.find(event->number);
      // Clocks of host and device differ by some microseconds; no arrow leads back.
      if (call == calls.end() || event->begin < call->second->begin) continue;
      begins_.emplace(call->second), ends_.emplace(event);
      calls.erase(call);
    }
  }

  std::uint64_t process_of(int device) const {
    return device == on_host ? process_ : beyond_threads + static_cast<std::uint64_t>(device);
  }

  void name_processes() {
    if (!trace_.devices.contains(on_host))
      line(R"("ph":"M","name":"process_name","pid":{},"args":{{"name":"host"}})", process_);
    for (const auto& [device, limits] : trace_.devices) {
      line(R"("ph":"M","name":"process_name","pid":{},"args":{{"name":{}}})", process_of(device),
           json_text(device == on_host ? "host: " + limits.name : limits.name));
      line(R"("ph":"M","name":"process_sort_index","pid":{},"args":{{"sort_index":{}}})", process_of(device),
           device == on_host ? 1 : 0);
    }
  }

  Place place_of(const Event& event) {
    const bool is_host = event.device == on_host;
    const std::size_t further = tracks_.try_emplace({event.device, event.lane}, is_host).first->second.of(event);
    const auto [at, is_new] = numbers_.try_emplace({event.device, event.lane, further});
    if (is_new) {
      at->second = !is_host ? numbers_.size() : further > 0 ? beyond_threads + numbers_.size() : event.lane;
      std::string name = !is_host                   ? fmt::format("stream {}", event.lane)
                         : event.lane == process_   ? "main thread"
                         : event.kind == Kind::part ? fmt::format("worker {}", event.lane)
                                                    : fmt::format("thread {}", event.lane);
      if (further > 0) name += is_host ? ", also" : ", overlapping";
      line(R"("ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}})", process_of(event.device),
           at->second, json_text(name));
      line(R"("ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}})",
           process_of(event.device), at->second, numbers_.size());
    }
    return {process_of(event.device), at->second};
  }

  static std::string arguments(const Event& event) {
    const Details& details = event.details;
    std::vector<std::string> all;
    const auto add = [&](std::string_view name, const auto& value) {
      all.push_back(fmt::format("\"{}\":{}", name, value));
    };
    if (!event.subject->file.empty())
      add("line", json_text(fmt::format("{}:{}", event.subject->file, event.subject->line)));
    if (event.number > 0) add("launch", event.number);
    if (details.axes > 0)
      add("grid", fmt::format("[{}]", fmt::join(details.grid.begin(), details.grid.begin() + details.axes, ",")));
    if (details.threads > 0) add("threads", details.threads);
    if (details.registers > 0) add("registers", details.registers);
    if (details.shared_bytes >= 0) add("shared_bytes", details.shared_bytes);
    const Work& work = details.work;
    const double seconds = static_cast<double>(event.end - event.begin) * 1e-9;
    if (work.bytes >= 0) {
      add(work.bytes_at_most ? "bytes_at_most" : "bytes", work.bytes);
      if (seconds > 0 && !work.bytes_at_most)
        add("GB/s", fmt::format("{:.3f}", static_cast<double>(work.bytes) / seconds * 1e-9));
    }
    if (work.flops > 0) {
      add("flops", fmt::format("{:.0f}", work.flops));
      if (seconds > 0) add("TFLOP/s", fmt::format("{:.4f}", work.flops / seconds * 1e-12));
    }
    if (details.count >= 0) add(event.kind == Kind::token ? "tokens" : "launches", details.count);
    if (*details.note) add("how", json_text(details.note));
    if (!event.subject->phases.empty()) {
      std::vector<std::string> phases;
      for (const std::string& phase : event.subject->phases) phases.push_back(json_text(phase));
      add("phases", fmt::format("[{}]", fmt::join(phases, ",")));
    }
    return fmt::format("{}", fmt::join(all, ","));
  }

  void add(const Event& event) {
    const Place place = place_of(event);
    const std::string begin = microseconds(event.begin - trace_.begin);
    const std::string prefix = event.kind == Kind::compile ? "compile " : event.kind == Kind::launch ? "launch " : "";
    line(R"("ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}})",
         json_text(prefix + event.subject->name), name(event.kind), place.process, place.track, begin,
         microseconds(event.end - event.begin), arguments(event));
    const auto flow = [&](std::string_view phase) {
      line(R"("ph":"{}"{},"name":"launch","cat":"flow","id":{},"pid":{},"tid":{},"ts":{})", phase,
           phase == "f" ? R"(,"bp":"e")" : "", event.number, place.process, place.track, begin);
    };
    if (begins_.contains(&event)) flow("s");
    if (ends_.contains(&event)) flow("f");
  }

  /// A launch from inside, as two processes: the roles of one CTA, and the grid tiles by multiprocessor.
  void add(const StampedLaunch& launch, std::span<const Event* const> events) {
    const auto kernel = std::ranges::find_if(events, [&](const Event* event) {
      return event->kind == Kind::kernel && event->number == launch.number && event->subject == launch.subject;
    });
    if (kernel == events.end()) return;  // it was dropped
    // Clocks differ: what was logged is in the middle of the launch.
    const Time idle = std::max<Time>(0, (*kernel)->end - (*kernel)->begin - launch.duration);
    const Time origin = (*kernel)->begin - trace_.begin + idle / 2;
    const StampTable& table = *launch.table;
    const auto name_process = [&](std::string_view what) {
      const std::uint64_t process = beyond_threads + first_inside + insides_++;
      line(R"("ph":"M","name":"process_name","pid":{},"args":{{"name":{}}})", process,
           json_text(fmt::format("inside {}, launch {}: {}", launch.subject->name, launch.number, what)));
      return process;
    };
    const auto name_thread = [&](std::uint64_t process, std::size_t thread, const std::string& name) {
      line(R"("ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}})", process, thread, json_text(name));
    };
    const auto add_slice = [&](std::uint64_t process, std::size_t thread, std::string_view name,
                               std::string_view category, Time begin, Time end, const std::string& arguments) {
      line(R"("ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}})", json_text(name),
           category, process, thread, microseconds(origin + begin), microseconds(end - begin), arguments);
    };

    const std::uint64_t roles = name_process(fmt::format("roles of CTA {}", launch.shown_cta));
    for (std::size_t row = 0; row < table.rows.size(); ++row) name_thread(roles, row + 1, table.rows[row]);
    for (const StampedLaunch::Span& span : launch.spans) {
      const auto thread = static_cast<std::size_t>(span.row) + 1;
      if (stamps::has_place(span.number)) {
        add_slice(roles, thread, "begin", "inside", span.begin, span.end, "");
        continue;
      }
      const StampTable::Activity& activity = table.activities[span.number - stamps::first_activity];
      add_slice(roles, thread, fmt::format("{}: {}", internal::name(activity.kind), activity.what), "inside",
                span.begin, span.end,
                activity.file.empty()
                    ? ""
                    : fmt::format(R"("line":{})", json_text(fmt::format("{}:{}", activity.file, activity.line))));
    }

    const std::uint64_t tiles = name_process("grid tiles by multiprocessor");
    // CTAs of a multiprocessor, and their roles, run at the same time.
    std::map<std::tuple<std::uint32_t, std::int64_t, int>, std::size_t> threads;
    for (const StampedLaunch::Tile& tile : launch.tiles) threads.try_emplace({tile.multiprocessor, tile.cta, tile.row});
    std::size_t count = 0;
    for (auto& [key, thread] : threads) {
      const auto& [multiprocessor, cta, row] = key;
      thread = ++count;
      name_thread(
          tiles, thread,
          fmt::format("multiprocessor {}, CTA {}, {}", multiprocessor, cta, table.rows[static_cast<std::size_t>(row)]));
    }
    for (const StampedLaunch::Tile& tile : launch.tiles)
      add_slice(tiles, threads.at({tile.multiprocessor, tile.cta, tile.row}), fmt::format("tile {}", tile.tile), "tile",
                tile.begin, tile.end, "");
  }

  static constexpr std::uint64_t first_inside = 1024;  // numbers below are devices

  const Trace& trace_;
  const std::uint64_t process_;
  std::uint64_t insides_ = 0;
  std::string lines_;
  std::map<std::pair<int, std::uint64_t>, Tracks> tracks_;
  std::map<std::tuple<int, std::uint64_t, std::size_t>, std::uint64_t> numbers_;
  std::set<const Event*> begins_, ends_;  // of flows
};

}  // namespace

std::string trace_json(const Trace& trace) { return Writer(trace).text(); }

}  // namespace tessera::internal::profile
