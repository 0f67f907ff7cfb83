#include "opcheck/perf.hpp"

#include "common/captured.hpp"
#include "common/measure.hpp"
#include "opcheck/memory.hpp"
#include "tessera/jit/executable.hpp"

namespace tessera::internal::opcheck {

Cost cost_of(const Case& each, const Device& device) {
  bench::Row row;
  row.bytes = each.bytes();
  row.make = [&](const Device& device, const bench::Turns& turns) {
    const auto executable = std::make_shared<const Executable>(each.graph);
    const auto sets = std::make_shared<std::vector<DeviceTensors>>();
    const HostTensors host(each);
    while (std::ssize(*sets) < turns.sets) sets->emplace_back(device, host);
    return std::make_unique<bench::Captured>(
        device, turns,
        [=](const Stream& stream, int set) {
      executable->launch(stream, (*sets)[static_cast<std::size_t>(set)].arguments());
        },
        [] { return 0; });  // `test` checks the results
  };
  const bench::Pace pace{.repetitions = device.info().arch ? 10 : 5, .pause_ms = device.info().arch ? 10 : 0};
  const bench::Figures figures = bench::measure(row, device, nullptr, pace);
  return {figures.ours_ms, figures.failure};
}

Rate rate_of(const Case& each, double ms) {
  if (each.operations > 0) return {each.operations / ms * 1e-6, "GFLOP/s"};
  return {each.bytes() / ms * 1e-6, "GB/s"};
}

}  // namespace tessera::internal::opcheck
