// A validator of traces: what Perfetto would show wrongly, or not at all.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/running.hpp"

namespace trace_check {

using nlohmann::json;
/// A process and a thread of it.
using Track = std::pair<std::int64_t, std::int64_t>;

/// Devices have numbers beyond those of processes.
constexpr std::int64_t first_device = std::int64_t{1} << 22;

/// Nanoseconds of a time in microseconds.
inline std::int64_t nanoseconds(const json& time) { return std::llround(time.get<double>() * 1e3); }

/// The events of a phase.
inline std::vector<json> events(const json& trace, const std::string& phase, const std::string& category = "") {
  std::vector<json> found;
  for (const json& event : trace.at("traceEvents"))
    if (event.at("ph") == phase && (category.empty() || event.value("cat", "") == category)) found.push_back(event);
  return found;
}

class Faults {
 public:
  explicit Faults(const std::string& text) {
    trace_ = json::parse(text, nullptr, false);
    if (!trace_.is_object() || !trace_.contains("traceEvents") || !trace_["traceEvents"].is_array()) {
      add("no trace");
      return;
    }
    for (const json& event : trace_["traceEvents"]) check_fields(event);
    if (!found.empty()) return;
    check_names();
    check_tracks();
    check_flows();
    check_dropped();
  }
  std::vector<std::string> found;

 private:
  template <class... A>
  void add(fmt::format_string<A...> text, A&&... values) {
    found.push_back(fmt::format(text, std::forward<A>(values)...));
  }

  void check_fields(const json& event) {
    const std::string phase = event.value("ph", "");
    if (phase != "X" && phase != "M" && phase != "s" && phase != "f" && phase != "i") return add("a phase '{}'", phase);
    if (!event.contains("name") || event["name"].get<std::string>().empty()) return add("an event without a name");
    if (!event.contains("pid")) return add("'{}' is in no process", event["name"].get<std::string>());
    if (phase == "M") return;
    if (!event.contains("tid") || !event.contains("ts"))
      return add("'{}' has no track or no time", event["name"].get<std::string>());
    if (phase != "X") return;
    static const std::set<std::string> categories{"kernel", "launch", "graph", "compile", "copy", "open",
                                                  "load",   "token",  "part",  "inside",  "tile"};
    if (!categories.contains(event.value("cat", ""))) add("'{}' is of no category", event["name"].get<std::string>());
    if (!event.contains("dur") || event["dur"].get<double>() < 0)
      add("'{}' has no duration", event["name"].get<std::string>());
    if (!event.contains("args") || !event["args"].is_object())
      add("'{}' has no arguments", event["name"].get<std::string>());
  }

  static Track track_of(const json& event) {
    return {event.at("pid").get<std::int64_t>(), event.at("tid").get<std::int64_t>()};
  }

  void check_names() {
    std::set<std::int64_t> processes;
    std::set<Track> threads;
    for (const json& event : events(trace_, "M")) {
      if (event["name"] == "process_name") processes.insert(event["pid"].get<std::int64_t>());
      if (event["name"] == "thread_name" && !threads.insert(track_of(event)).second)
        add("track {} has two names", event["tid"].get<std::int64_t>());
    }
    for (const json& event : events(trace_, "X")) {
      const Track track = track_of(event);
      if (!processes.contains(track.first)) add("process {} has no name", track.first);
      if (!threads.contains(track)) add("track {} has no name", track.second);
    }
  }

  /// Events of a track begin in order, and follow one another; on a thread of the host they may nest.
  void check_tracks() {
    struct State {
      std::int64_t latest = INT64_MIN;
      std::vector<std::int64_t> ends;
    };
    std::map<Track, State> tracks;
    for (const json& event : events(trace_, "X")) {
      State& state = tracks[track_of(event)];
      const std::string name = event["name"];
      const std::int64_t begin = nanoseconds(event["ts"]), end = begin + nanoseconds(event["dur"]);
      if (begin < state.latest) add("'{}' begins before the event that precedes it on its track", name);
      state.latest = std::max(state.latest, begin);
      while (!state.ends.empty() && state.ends.back() <= begin) state.ends.pop_back();
      if (!state.ends.empty() && end > state.ends.back()) add("'{}' ends after the event that contains it", name);
      if (!state.ends.empty() && track_of(event).first >= first_device)
        add("'{}' is nested in another event of its device", name);
      state.ends.push_back(end);
    }
  }

  bool is_within_event(const json& flow) const {
    const std::int64_t time = nanoseconds(flow["ts"]);
    return std::ranges::any_of(events(trace_, "X"), [&](const json& event) {
      const std::int64_t begin = nanoseconds(event["ts"]);
      return track_of(event) == track_of(flow) && begin <= time && time <= begin + nanoseconds(event["dur"]);
    });
  }

  void check_flows() {
    std::map<std::int64_t, std::pair<std::vector<json>, std::vector<json>>> flows;
    for (const json& event : events(trace_, "s")) flows[event.at("id").get<std::int64_t>()].first.push_back(event);
    for (const json& event : events(trace_, "f")) flows[event.at("id").get<std::int64_t>()].second.push_back(event);
    for (const auto& [id, ends] : flows) {
      if (ends.first.size() != 1 || ends.second.size() != 1) {
        add("arrow {} has {} beginnings and {} ends", id, ends.first.size(), ends.second.size());
        continue;
      }
      if (nanoseconds(ends.first[0]["ts"]) > nanoseconds(ends.second[0]["ts"])) add("arrow {} leads back in time", id);
      for (const json& end : {ends.first[0], ends.second[0]})
        if (!is_within_event(end)) add("arrow {} begins or ends at no event", id);
    }
  }

  void check_dropped() {
    const std::int64_t count = trace_.value("otherData", json::object()).value("dropped_events", std::int64_t{-1});
    std::int64_t told = 0;
    for (const json& event : events(trace_, "M"))
      if (event["name"] == "dropped_events") told = event.at("args").at("count").get<std::int64_t>();
    if (count != told) add("{} dropped events, and {} in the metadata", told, count);
  }

  json trace_;
};

/// The faults of a trace; empty: it has none.
inline std::vector<std::string> faults(const std::string& text) { return Faults(text).found; }

/// Where trace_processor_shell is on the PATH, the answer of its SQL, without the head line.
inline std::optional<std::string> answer_of_perfetto(const std::string& file, const std::string& query) {
  const Run which = run("/bin/sh", {"-c", "command -v trace_processor_shell"});
  if (which.status != 0) return {};
  const std::string shell = which.out.substr(0, which.out.find('\n'));
  const Run answered =
      run("/bin/sh", {"-c", fmt::format("echo '{}' > {}.sql; {} -q {}.sql {}", query, file, shell, file, file)});
  REQUIRE(answered.status == 0);
  return answered.out.substr(answered.out.find('\n') + 1);
}

}  // namespace trace_check
