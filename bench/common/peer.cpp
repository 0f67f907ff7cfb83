#include "common/peer.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tessera/graph/error.hpp"

namespace tessera::internal::bench {
namespace {

using nlohmann::json;

json answer(Child& child) {
  const std::string line = child.read_line();
  const json answer = json::parse(line, nullptr, false);
  if (!answer.is_object()) throw Error(fmt::format("the peer answers '{}', which is no JSON object", line));
  if (answer.contains("error")) throw Error(answer["error"].get<std::string>());
  return answer;
}

json ask(Child& child, const json& request) {
  child.write_line(request.dump());
  return answer(child);
}

/// "cuda:0 (NVIDIA H200, sm_90)" -> "cuda:0"
std::string place(const Device& device) { return device.name().substr(0, device.name().find(' ')); }

}  // namespace

Peer::Peer(const std::string& program, const Device& device) : child_({"python3", program, place(device)}) {
  name_ = answer(child_).at("name").get<std::string>();
}

Peer::Prepared Peer::prepare(const Row& row, const Turns& turns) {
  std::vector<std::int64_t> shape = row.shape;
  shape.insert(shape.end(), row.details.begin(), row.details.end());
  const json prepared = ask(child_, {{"do", "prepare"},
                                     {"op", row.form.empty() ? row.op : row.op + "_" + row.form},
                                     {"type", row.type},
                                     {"shape", shape},
                                     {"sets", turns.sets},
                                     {"calls", turns.calls}});
  return {prepared.at("peer").get<std::string>(),
          prepared.contains("first_ms") ? std::optional(prepared["first_ms"].get<double>()) : std::nullopt};
}

std::map<std::string, Peer::Way> Peer::turn() {
  const json turn = ask(child_, {{"do", "turn"}});
  if (!turn.contains("ways")) return {{"", {.ms = turn.at("ms").get<double>()}}};
  std::map<std::string, Way> ways;
  for (const auto& [name, way] : turn["ways"].items())
    ways[name] =
        way.contains("ms") ? Way{.ms = way["ms"].get<double>()} : Way{.failure = way.at("failure").get<std::string>()};
  return ways;
}

std::optional<double> Peer::launched() {
  const json ms = ask(child_, {{"do", "launched"}}).at("ms");
  return ms.is_null() ? std::nullopt : std::optional(ms.get<double>());
}

}  // namespace tessera::internal::bench
