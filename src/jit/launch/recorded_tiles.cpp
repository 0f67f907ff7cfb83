#include "jit/launch/recorded_tiles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <vector>

#include "jit/compile/sha256.hpp"
#include "jit/tune/circumstances.hpp"
#include "jit/tune/records.hpp"
#include "tessera/jit/tune.hpp"

namespace tessera::internal {
namespace {

std::string_view name(MatmulFamily family) {
  return family == MatmulFamily::plain ? "plain" : family == MatmulFamily::activated ? "activated" : "residual";
}

std::string key_of(MatmulFamily family, const MatmulShape& shape, ElementType operands, const MatmulTarget& target) {
  return hex(sha256(fmt::format(
      "choose 1\n{} {} {} {} {} {} {} {}\n{} {} {}\n{}", name(family), internal::name(operands), tune_class_of(shape.m),
      tune_class_of(shape.n), tune_class_of(shape.k), shape.nk, shape.computes_x, shape.computes_w,
      suits_wgmma(shape, operands, target), static_cast<int>(target.split_k), static_cast<int>(target.multicast),
      tune_circumstances(target.machine_text, target.gpu.has_value()))));
}

}  // namespace

std::optional<MatmulTiles> recorded_tiles(MatmulFamily family, const MatmulShape& shape, ElementType operands,
                                          const MatmulTarget& target) {
  TuneRecords& records = TuneRecords::instance();
  if (!records.knows_any()) return std::nullopt;
  const auto record = records.find_known(key_of(family, shape, operands, target));
  if (!record || record->config.size() != 3) return std::nullopt;
  const MatmulTiles tiles{record->config[0], record->config[1], record->config[2]};
  const std::vector<MatmulTiles> all =
      matmul_candidates(family, shape, operands, target);  // the record may be anybody's
  return std::ranges::find(all, tiles) == all.end() ? std::nullopt : std::optional(tiles);
}

void record_tiles(MatmulFamily family, const MatmulShape& shape, ElementType operands, const Device& device,
                  const TuneReport& report) {
  const std::string key = key_of(family, shape, operands, matmul_target(device));
  TuneRecords& records = TuneRecords::instance();
  if (const auto known = records.find(key); known && report.from_record && known->config == report.best) return;
  records.add({.key = key,
               .kernel = fmt::format("choose {}{}", name(family), shape.nk ? " nk" : ""),
               .shapes = fmt::format("{}[{},{},{}]", internal::name(operands), tune_class_of(shape.m),
                                     tune_class_of(shape.n), tune_class_of(shape.k)),
               .device = report.device,
               .config = report.best,
               .milliseconds = report.milliseconds,
               .time = std::time(nullptr)});
}

}  // namespace tessera::internal
