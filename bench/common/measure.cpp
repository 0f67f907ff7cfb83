#include "common/measure.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

#include "common/machine.hpp"
#include "common/median.hpp"

namespace tessera::bench {
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
  if (!failure.empty()) json["failure"] = failure;
  if (!peer_failure.empty()) json["peer_failure"] = peer_failure;
  return json;
}

std::string Figures::heading() {
  return fmt::format("{:<30} {:>10} {:>10} {:>7} {:>7} {:>8}  peer\n", "row", "ours ms", "peer ms", "ratio", "ceiling",
                     "error");
}

std::string Figures::line() const {
  std::string line =
      fmt::format("{:<30} {:>10} {:>10} {:>7} {:>7} {:>8}", name, cell(ours_ms, 1, 4, ""), cell(peer_ms, 1, 4, ""),
                  cell(ratio, 1, 2, ""), cell(ceiling_share, 100, 1, "%"), error ? fmt::format("{:.1e}", *error) : "-");
  if (!peer.empty()) line += "  " + peer;
  if (!peer_failure.empty()) line += fmt::format("\n  no peer: {}", peer_failure);
  if (!failure.empty()) line += fmt::format("\n  failed: {}", failure);
  return line + "\n";
}

Figures measure(const Row& row, const Device& device, Peer* peer, const Pace& pace) {
  Figures figures{.name = row.name()};
  const Turns turns = turns_of(device, row);
  Side ours(figures.failure), theirs(figures.peer_failure);
  std::unique_ptr<Workload> workload;
  ours.attempt([&] { workload = row.make(device, turns); });
  if (peer) theirs.attempt([&] { figures.peer = peer->prepare(row, turns); });
  for (int repetition = 0; repetition < pace.repetitions; ++repetition) {
    std::this_thread::sleep_for(std::chrono::milliseconds(pace.pause_ms));
    ours.attempt([&] { ours.turns.push_back(workload->turn()); });
    if (peer) theirs.attempt([&] { theirs.turns.push_back(peer->turn()); });
  }
  ours.attempt([&] {
    const std::optional<double> launched = workload->launched();
    figures.error = workload->error();
    if (figures.error && std::isinf(*figures.error))
      throw Error("elements of the result are not written, or not finite");
    if (figures.error && !(*figures.error <= row.allowed))
      throw Error(fmt::format("the result is wrong by {:.1e}, allowed are {:.1e}", *figures.error, row.allowed));
    figures.ours_launched_ms = launched;
  });
  if (peer) theirs.attempt([&] { figures.peer_launched_ms = peer->launched(); });

  figures.ours_ms = ours.median_ms();
  figures.peer_ms = theirs.median_ms();
  if (figures.ours_ms && figures.peer_ms) figures.ratio = *figures.peer_ms / *figures.ours_ms;
  if (const auto most = ceiling(device, row.resource); most && figures.ours_ms)
    figures.ceiling_share = row.work / (*figures.ours_ms * 1e-3) / *most;
  return figures;
}

}  // namespace tessera::bench
