#include "tessera/jit/sequence.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "jit/backend/backend.hpp"
#include "jit/backend/overlap.hpp"
#include "jit/compile/compiler.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

bool conflict(const Sequence::Launch& a, const Sequence::Launch& b) {
  for (std::size_t i = 0; i < a.arguments.size(); ++i)
    for (std::size_t j = 0; j < b.arguments.size(); ++j) {
      const bool ordered = (a.writes(i) && (b.reads(j) || b.writes(j))) || (a.reads(i) && b.writes(j));
      if (ordered && overlap(a.parameter(i), a.arguments[i], b.parameter(j), b.arguments[j])) return true;
    }
  return false;
}

}  // namespace

bool Sequence::Launch::reads(std::size_t argument) const {
  const Access access = parameter(argument).access;
  return access == Access::in || access == Access::in_out;
}

bool Sequence::Launch::writes(std::size_t argument) const {
  const Access access = parameter(argument).access;
  return access == Access::out || access == Access::in_out;
}

void Sequence::append(std::shared_ptr<const Executable> executable, std::span<const Argument> arguments,
                      std::span<const std::shared_ptr<void>> memory) {
  const Grid grid = executable->prepare(arguments);
  memory_.insert(memory_.end(), memory.begin(), memory.end());
  launches_.push_back({std::move(executable), {arguments.begin(), arguments.end()}, grid});
}

void Sequence::append(const Sequence& other) {
  if (!(device_ == other.device_))
    throw Error(fmt::format("launches for {} are appended to those for {}", other.device_.name(), device_.name()));
  memory_.insert(memory_.end(), other.memory_.begin(), other.memory_.end());
  launches_.insert(launches_.end(), other.launches_.begin(), other.launches_.end());
}

std::vector<std::vector<std::size_t>> Sequence::dependencies() const {
  const std::size_t count = launches_.size();
  std::vector<std::vector<std::size_t>> found(count);
  std::vector<std::vector<bool>> before(count);  // the launches that come before a launch, and the launch itself
  for (std::size_t launch = 0; launch < count; ++launch) {
    before[launch].resize(launch + 1);
    // From the latest to the earliest: launches before one that was found are skipped.
    for (std::size_t earlier = launch; earlier-- > 0;) {
      if (before[launch][earlier] || !conflict(launches_[earlier], launches_[launch])) continue;
      found[launch].push_back(earlier);
      for (std::size_t i = 0; i <= earlier; ++i)
        if (before[earlier][i]) before[launch][i] = true;
    }
    before[launch][launch] = true;
    std::ranges::reverse(found[launch]);
  }
  return found;
}

void Sequence::run(const Stream& stream, std::size_t begin, std::size_t end) const {
  if (!device_.has(stream))
    throw Error(fmt::format("launches for {} cannot run on a stream of {}", device_.name(), stream.device_name()));
  for (const Launch& launch : std::span(launches_).subspan(begin, end - begin))
    launch.executable->launch(stream, launch.arguments, launch.grid);
}

CapturedGraph Sequence::record(const Stream& stream) const {
  return stream.capture([&] { run(stream); });
}

CapturedGraph Sequence::persistent(std::string_view name) const {
  expect_dump(std::string(name));
  DeviceBackend& device = device_.stream().backend().device();
  std::vector<DeviceLaunch> launches;
  for (const Launch& launch : launches_)
    if (!launch.grid.is_empty())
      launches.push_back(launch.executable->on_device(device, launch.arguments, launch.grid));
  return CapturedGraph(device.persistent(name, launches));
}

}  // namespace tessera::internal
