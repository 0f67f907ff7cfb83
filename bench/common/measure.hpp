// A row's figures, ours and the peer's.
#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>

#include "common/peer.hpp"

namespace tessera::internal::bench {

struct Pace {
  int repetitions = 30;  ///< turns of each side; the median counts
  int pause_ms = 50;     ///< before each pair of turns: keeps the chip cool and its clock stable
};

struct Figures {
  std::string name;
  std::optional<double> ours_ms = {}, ours_launched_ms = {};
  std::string peer = {};  ///< how it computes
  std::optional<double> peer_ms = {}, peer_launched_ms = {};
  std::optional<double> ratio = {};          ///< of the peer's time to ours: above 1, ours is faster
  std::optional<double> ceiling_share = {};  ///< share of the device's peak rate that our time achieves
  std::optional<double> error = {};          ///< Workload::error()
  std::optional<double> ours_first_ms = {}, peer_first_ms = {};  ///< Workload::first()
  std::optional<double> ours_cpu_ms = {}, peer_cpu_ms = {};      ///< Workload::cpu()
  struct Alternative {
    std::optional<double> ms;
    std::string failure;  ///< why it has none
    std::string launch;   ///< Alternative::launch
  };
  std::map<std::string, Alternative> alternatives = {};  ///< Row::alternatives, or the peer's ways, by name
  /// Row::layers: what a layer takes beyond the time in which its bytes are copied.
  struct ExposedLayer {
    int layers;
    double bytes;  ///< that a step reads
    std::optional<double> ours_us, peer_us;
  };
  std::optional<ExposedLayer> layer = {};
  std::string failure = {};       ///< why ours has no figures; empty if it has
  std::string peer_failure = {};  ///< the same for the peer

  nlohmann::json json() const;
  /// A line of the table, and its header.
  std::string line() const;
  static std::string heading();
};

/// Measures a row, ours and the peer's in alternation. Errors on either side are stored in the figures; a wrong result
/// is a failure.
Figures measure(const Row& row, const Device& device, Peer* peer, const Pace& pace);

/// The exposed time of a layer of a measured row.
Figures::ExposedLayer exposed_layer(const Row& row, const Figures& figures, double bytes_per_second);

}  // namespace tessera::internal::bench
