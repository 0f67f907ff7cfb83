#include "jit/launch/recorded_tiles.hpp"

#include <fmt/format.h>

#include <ctime>

#include "jit/compile/sha256.hpp"
#include "jit/tune/circumstances.hpp"
#include "jit/tune/records.hpp"
#include "tessera/jit/tune.hpp"

namespace tessera::internal {
namespace {

std::string_view name(MatmulFamily family) {
  return family == MatmulFamily::plain ? "plain" : family == MatmulFamily::activated ? "activated" : "residual";
}

std::string key_of(MatmulFamily family, const MatmulShape& shape, ElementType operands, const std::string& machine) {
  return hex(sha256(fmt::format("choose 1\n{} {} {} {} {} {} {} {}\n{}", name(family), internal::name(operands),
                                tune_class_of(shape.m), tune_class_of(shape.n), tune_class_of(shape.k), shape.nk,
                                shape.computes_x, shape.computes_w, tune_circumstances(machine))));
}

}  // namespace

std::optional<MatmulTiles> recorded_tiles(MatmulFamily family, const MatmulShape& shape, ElementType operands,
                                          const MatmulTarget& target) {
  TuneRecords& records = TuneRecords::instance();
  if (records.is_empty()) return std::nullopt;
  const auto record = records.find(key_of(family, shape, operands, target.machine_text));
  if (!record || record->config.size() != 3) return std::nullopt;
  return MatmulTiles{record->config[0], record->config[1], record->config[2]};
}

void record_tiles(MatmulFamily family, const MatmulShape& shape, ElementType operands, const Device& device,
                  const TuneReport& report) {
  TuneRecords::instance().add({.key = key_of(family, shape, operands, tune_machine(device)),
                               .kernel = fmt::format("choose {}{}", name(family), shape.nk ? " nk" : ""),
                               .shapes = fmt::format("{}[{},{},{}]", internal::name(operands), tune_class_of(shape.m),
                                                     tune_class_of(shape.n), tune_class_of(shape.k)),
                               .device = report.device,
                               .config = report.best,
                               .milliseconds = report.milliseconds,
                               .time = std::time(nullptr)});
}

}  // namespace tessera::internal
