#include "common/measure.hpp"

#include <fmt/format.h>

#include <cmath>
#include <list>
#include <nlohmann/json.hpp>
#include <thread>
#include <tuple>

#include "common/machine.hpp"
#include "common/median.hpp"

namespace tessera::internal::bench {
namespace {

template <class T>
nlohmann::json or_null(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

std::string cell(const std::optional<double>& value, double scale, int digits, std::string_view unit) {
  return value ? fmt::format("{:.{}f}{}", *value * scale, digits, unit) : "-";
}

/// Times of one side's turns, or why there are none.
class Side {
 public:
  explicit Side(std::string& failure) : failure_(failure) {}
  bool alive() const { return failure_.empty(); }
  /// Runs `work`; after a failure it does nothing.
  void attempt(const auto& work) {
    if (!alive()) return;
    try {
      work();
    } catch (const std::exception& error) {
      failure_ = error.what();
    }
  }
  std::optional<double> median_ms() const {
    return alive() && !turns.empty() ? std::optional(median(turns)) : std::nullopt;
  }
  std::vector<double> turns;

 private:
  std::string& failure_;
};

/// The error of a workload's results; throws Error if they are wrong.
std::optional<double> checked_error(Workload& workload, const Row& row) {
  const std::optional<double> error = workload.error();
  if (error && std::isinf(*error)) throw Error("elements of the result are not written, or not finite");
  if (error && !(*error <= row.allowed))
    throw Error(fmt::format("the result is wrong by {:.1e}, {:.1e} is allowed", *error, row.allowed));
  return error;
}

/// Our alternatives, in the role of the peer.
class Rivals {
 public:
  Rivals(const Row& row, const Device& device, const Turns& turns) : row_(row) {
    for (const Alternative& alternative : row.alternatives(device)) {
      Rival& rival = rivals_.emplace_back(alternative.name);
      rival.launch = alternative.launch;
      rival.side.attempt([&] { rival.workload = alternative.make(device, turns); });
    }
  }
  void turn() {
    for (Rival& rival : rivals_) rival.side.attempt([&] { rival.side.turns.push_back(rival.workload->turn()); });
  }
  void finish(Figures& figures) {
    figures.peer = fmt::format("the best of {} tiles, which are ours", rivals_.size() + 1),
    figures.peer_ms = figures.ours_ms;
    for (Rival& rival : rivals_) {
      rival.side.attempt([&] { checked_error(*rival.workload, row_); });
      const std::optional<double> ms = rival.side.median_ms();
      figures.alternatives[rival.name] = {ms, rival.failure, rival.launch};
      if (!ms || (figures.peer_ms && *ms >= *figures.peer_ms)) continue;
      figures.peer_ms = ms;
      figures.peer = fmt::format("{}, the best of {} tiles", rival.name, rivals_.size() + 1);
    }
  }

 private:
  struct Rival {
    explicit Rival(std::string name) : name(std::move(name)) {}
    std::string name, failure, launch;
    std::unique_ptr<Workload> workload;
    Side side{failure};
  };
  const Row& row_;
  std::list<Rival> rivals_;  // a list, since its elements must not move
};

/// The peer's turns, way by way; the best way is the peer.
class Ways {
 public:
  void turn(Peer& peer) {
    for (const auto& [name, way] : peer.turn())
      if (way.ms)
        turns_[name].push_back(*way.ms);
      else
        failures_[name] = way.failure;
  }
  void finish(Figures& figures) const {
    for (const auto& [name, failure] : failures_) figures.alternatives[name].failure = failure;
    for (const auto& [name, turns] : turns_) {
      if (failures_.contains(name)) continue;
      const double ms = median(turns);
      if (!name.empty()) figures.alternatives[name].ms = ms;
      if (figures.peer_ms && ms >= *figures.peer_ms) continue;
      figures.peer_ms = ms;
      if (!name.empty()) figures.peer = fmt::format("{}, the best of {} ways", name, turns_.size());
    }
  }

 private:
  std::map<std::string, std::vector<double>> turns_;
  std::map<std::string, std::string> failures_;
};

}  // namespace

nlohmann::json Figures::json() const {
  nlohmann::json json{{"name", name},
                      {"ours_ms", or_null(ours_ms)},
                      {"ours_launched_ms", or_null(ours_launched_ms)},
                      {"peer", peer.empty() ? nlohmann::json() : nlohmann::json(peer)},
                      {"peer_ms", or_null(peer_ms)},
                      {"peer_launched_ms", or_null(peer_launched_ms)},
                      {"ratio", or_null(ratio)},
                      {"ceiling_share", or_null(ceiling_share)},
                      {"error", or_null(error)}};
  if (ours_first_ms) json["ours_first_ms"] = *ours_first_ms;
  if (peer_first_ms) json["peer_first_ms"] = *peer_first_ms;
  if (ours_cpu_ms) json["ours_cpu_ms"] = *ours_cpu_ms;
  if (peer_cpu_ms) json["peer_cpu_ms"] = *peer_cpu_ms;
  for (const auto& [alternative, figure] : alternatives) {
    json["alternatives"][alternative] = {{"ms", or_null(figure.ms)}};
    if (!figure.failure.empty()) json["alternatives"][alternative]["failure"] = figure.failure;
    if (!figure.launch.empty()) json["alternatives"][alternative]["launch"] = figure.launch;
  }
  if (layer)
    json["layer"] = {{"layers", layer->layers},
                     {"bytes", layer->bytes},
                     {"ours_us", or_null(layer->ours_us)},
                     {"peer_us", or_null(layer->peer_us)}};
  if (!failure.empty()) json["failure"] = failure;
  if (!peer_failure.empty()) json["peer_failure"] = peer_failure;
  return json;
}

std::string Figures::heading() {
  return fmt::format("{:<38} {:>10} {:>10} {:>7} {:>7} {:>8}  peer\n", "row", "ours ms", "peer ms", "ratio", "ceiling",
                     "error");
}

std::string Figures::line() const {
  std::string line =
      fmt::format("{:<38} {:>10} {:>10} {:>7} {:>7} {:>8}", name, cell(ours_ms, 1, 4, ""), cell(peer_ms, 1, 4, ""),
                  cell(ratio, 1, 2, ""), cell(ceiling_share, 100, 1, "%"), error ? fmt::format("{:.1e}", *error) : "-");
  if (!peer.empty()) line += "  " + peer;
  if (ours_cpu_ms && peer_cpu_ms)
    line += fmt::format("; CPU time {:.4f} and {:.4f} ms, ratio {:.2f}", *ours_cpu_ms, *peer_cpu_ms,
                        *peer_cpu_ms / *ours_cpu_ms);
  if (layer)
    line += fmt::format("\n  a layer beyond its bytes: {}, the peer's {}", cell(layer->ours_us, 1, 1, " us"),
                        cell(layer->peer_us, 1, 1, " us"));
  if (!peer_failure.empty()) line += fmt::format("\n  no peer: {}", peer_failure);
  for (const auto& [alternative, figure] : alternatives)
    if (!figure.failure.empty()) line += fmt::format("\n  {} failed: {}", alternative, figure.failure);
  if (!failure.empty()) line += fmt::format("\n  failed: {}", failure);
  return line + "\n";
}

Figures measure(const Row& row, const Device& device, Peer* peer, const Pace& pace) {
  Figures figures{.name = row.name()};
  const Turns turns = turns_of(device, row);
  Side ours(figures.failure), theirs(figures.peer_failure);
  std::unique_ptr<Workload> workload, loop;
  ours.attempt([&] {
    if (row.beside_loop)
      std::tie(workload, loop) = row.beside_loop(device);
    else
      workload = row.make(device, turns);
  });
  if (loop) peer = nullptr, figures.peer = "a plain loop, g++ -O2";
  Ways ways;
  std::optional<Rivals> rivals;
  if (row.alternatives) rivals.emplace(row, device, turns), peer = nullptr;
  if (peer)
    theirs.attempt([&] {
      const Peer::Prepared prepared = peer->prepare(row, turns);
      figures.peer = prepared.way, figures.peer_first_ms = prepared.first_ms;
    });
  if (workload) figures.ours_first_ms = workload->first();
  for (int repetition = 0; repetition < pace.repetitions; ++repetition) {
    std::this_thread::sleep_for(std::chrono::milliseconds(pace.pause_ms));
    ours.attempt([&] { ours.turns.push_back(workload->turn()); });
    if (peer) theirs.attempt([&] { ways.turn(*peer); });
    if (rivals) rivals->turn();
    if (loop) theirs.attempt([&] { theirs.turns.push_back(loop->turn()); });
  }
  ours.attempt([&] {
    const std::optional<double> launched = workload->launched();
    figures.error = checked_error(*workload, row);
    figures.ours_launched_ms = launched;
  });
  if (peer) theirs.attempt([&] { figures.peer_launched_ms = peer->launched(); });

  if (loop) figures.ours_cpu_ms = workload->cpu(), figures.peer_cpu_ms = loop->cpu();
  figures.ours_ms = ours.median_ms();
  figures.peer_ms = theirs.median_ms();
  if (peer && theirs.alive()) ways.finish(figures);
  if (rivals) rivals->finish(figures);
  if (figures.ours_ms && figures.peer_ms) figures.ratio = *figures.peer_ms / *figures.ours_ms;
  if (const auto most = ceiling(device, row.resource); most && figures.ours_ms)
    figures.ceiling_share = row.work / (*figures.ours_ms * 1e-3) / *most;
  return figures;
}

Figures::ExposedLayer exposed_layer(const Row& row, const Figures& figures, double bytes_per_second) {
  const auto exposed = [&](const std::optional<double>& ms) {
    return ms ? std::optional((*ms * 1e3 - row.work / bytes_per_second * 1e6) / row.layers) : std::nullopt;
  };
  return {row.layers, row.work, exposed(figures.ours_ms), exposed(figures.peer_ms)};
}

}  // namespace tessera::internal::bench
