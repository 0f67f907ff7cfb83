#include "opcheck/check.hpp"

#include "opcheck/trial.hpp"
#include "tessera/jit/executable.hpp"

namespace tessera::internal::opcheck {
namespace {

Verdict check(const Device& device, const Case& each) try {
  const Trial trial(each);
  const Executable executable(each.graph);
  const DeviceTensors tensors(device, trial.tensors());
  executable.launch(device.stream(), tensors.arguments());
  tensors.copy_back(trial.tensors());
  return trial.difference();
} catch (const std::exception& error) {
  return error.what();
}

}  // namespace

std::vector<Verdict> check_on(const Device& device, std::span<const Case> cases) {
  std::vector<Verdict> verdicts;
  for (const Case& each : cases) verdicts.push_back(check(device, each));
  return verdicts;
}

}  // namespace tessera::internal::opcheck
