#include "codegen/schedule/machine_model.hpp"

namespace tessera::internal {

double MachineModel::rate(const MmaExtents& extents) const {
  const Tile* best = &tiles.back();
  for (const Tile& tile : tiles) {
    if (tile.extents == extents) return tile.rate;
    const auto size = [](const Tile& of) { return of.extents.m * of.extents.n; };
    if (tile.extents.m <= extents.m && tile.extents.n <= extents.n && size(tile) > size(*best)) best = &tile;
  }
  return best->rate;
}

const MachineModel& MachineModel::h200() {
  static const MachineModel machine;
  return machine;
}

const MachineModel& MachineModel::h100() {
  static const MachineModel machine = [] {
    MachineModel made;
#define CONSTANT(name, value, source, what) made.name = value;
#include "codegen/schedule/h100.def"
    return made;
  }();
  return machine;
}

const MachineModel& MachineModel::of(std::string_view device) {
  return device.find("H100") != std::string_view::npos ? h100() : h200();
}

}  // namespace tessera::internal
