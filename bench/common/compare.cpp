#include "common/compare.hpp"

#include <fmt/format.h>

#include <map>

#include "jit/options/files.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal::bench {
namespace {

using nlohmann::json;

constexpr double noise = 0.03;

/// "cuda:0 (NVIDIA H200, sm_90)" -> "(NVIDIA H200, sm_90)"
std::string matmul(const json& results) {
  const std::string device = results.at("device").get<std::string>();
  return device.substr(std::min(device.find('('), device.size()));
}

/// Milliseconds of the rows that have figures.
std::map<std::string, double> times(const json& results) {
  std::map<std::string, double> times;
  for (const json& row : results.at("rows")) {
    const json& ms = row.at("ours_ms");
    if (!ms.is_null()) times[row.at("name").get<std::string>()] = ms.get<double>();
  }
  return times;
}

}  // namespace

Earlier::Earlier(const std::filesystem::path& file) : file_(file.native()) {
  constexpr std::uint64_t most = 64 << 20;
  const std::optional<std::string> text = read_regular_file(file, most);
  if (!text) throw Error(fmt::format("--compare: there is no file {}", file_));
  try {
    results_ = json::parse(*text);
    matmul(results_), times(results_);
  } catch (const json::exception& error) {
    throw Error(fmt::format("--compare: {} is not a file of bench's figures: {}", file_, error.what()));
  }
}

std::string Earlier::compare(const json& results) const {
  if (matmul(results_) != matmul(results))
    return fmt::format("no row is compared with {}: it is of {}, this is {}\n", file_,
                       results_["device"].get<std::string>(), results["device"].get<std::string>());
  std::string text;
  int compared = 0, slower = 0;
  const std::map<std::string, double> before = times(results_);
  for (const auto& [name, ms] : times(results)) {
    const auto found = before.find(name);
    if (found == before.end()) continue;
    ++compared;
    if (ms <= found->second * (1 + noise)) continue;
    ++slower;
    text += fmt::format("slower: {} takes {:.4f} ms, {:.1f} % more than the {:.4f} ms of {}\n", name, ms,
                        (ms / found->second - 1) * 100, found->second, file_);
  }
  return text + fmt::format("{} rows are compared with {}; {} are slower by more than {:.0f} %\n", compared, file_,
                            slower, noise * 100);
}

}  // namespace tessera::internal::bench
