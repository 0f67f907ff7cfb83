#include "codegen/lower/sm90/tma_boxes.hpp"

namespace tessera::internal::lowering {
namespace {

// The start of the slice that the box is in.
int first_of(const GraphAnalysis& analysis, const GraphAccess::Axis& axis) {
  return axis.slices.empty() ? 0 : analysis[axis.slices[0].start].number().i32;
}

// Do 32 bits hold the start of a tile? A grid tile or an iteration is one of cdiv(extent, length) tiles, of at least
// this tile's length. If the last one's end wraps, it wraps to before the tensor, which is outside, too.
bool is_near(const GraphAnalysis& analysis, Id loop, const GraphAccess::Axis& axis) {
  if (first_of(analysis, axis) > 0) return false;
  const Node& index = analysis[axis.index];
  const auto hold = [&](std::int64_t tiles) { return tiles * axis.extent <= std::int64_t{1} << 31; };
  if (axis.extent == 1) return true;
  if (index.op == Op::constant) return hold(std::abs(std::int64_t{index.number().i32}) + 1);
  if (index.op != Op::block && !analysis.is_counter(axis.index)) return false;
  const Node& count = analysis[index.op == Op::block ? analysis.graph.grid[index.grid_axis()] : analysis[loop].in[0]];
  if (count.op == Op::constant) return hold(count.number().i32);
  return count.op == Op::cdiv && analysis[count.in[0]].op == Op::extent && analysis[count.in[1]].op == Op::constant &&
         analysis[count.in[1]].number().i32 >= axis.extent;
}

// The tile's axes, from the tensor's innermost axis to its outermost.
std::vector<int> tile_axes(const GraphAccess& access) {
  std::vector<int> axes{access.fast};
  for (int tensor_axis = static_cast<int>(access.axes.size()); tensor_axis-- > 0;)
    for (int i = 0; i < static_cast<int>(access.axes.size()); ++i)
      if (access.axes[static_cast<std::size_t>(i)].tensor_axis == tensor_axis && i != access.fast) axes.push_back(i);
  return axes;
}

}  // namespace

TensorMapId tma_tensors_of(const GraphAnalysis& analysis, Plan& plan, Id id, int rows, const Buffer& buffer,
                           TmaUse use) {
  const GraphAccess access = analysis.access(id);
  TmaTensor tensor{
      .argument = access.parameter, .clipped = use == TmaUse::clipped, .to_tf32 = buffer.type == ElementType::tf32};
  const std::vector<int> axes = tile_axes(access);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    tensor.axes[i] = static_cast<std::int8_t>(access.axes[static_cast<std::size_t>(axes[i])].tensor_axis);
    tensor.box[i] = axes[i] == rows ? buffer.rows : i == 0 ? buffer.panel_columns() : 1;
  }
  const bool store = use == TmaUse::store;
  // A load may fill several buffers.
  const std::string suffix = store ? "" : buffer.label.suffix;
  return plan.tensor_maps.add(
      {.label = {.stem = store ? "to" : "from", .number = analysis.number[id], .suffix = suffix},
       .tensor = tensor,
       .store = store});
}

int box_axis(const GraphAnalysis& analysis, Id id, int axis) {
  const std::vector<int> axes = tile_axes(analysis.access(id));
  return static_cast<int>(std::ranges::find(axes, axis) - axes.begin());
}

std::vector<TileCoordinate> place_of_panel(Steps& steps, Id loop, Id id, int panel, const Buffer& buffer,
                                           int first_row) {
  const GraphAccess access = steps.analysis.access(id);
  std::vector<TileCoordinate> at;
  for (int i : tile_axes(access)) {
    const GraphAccess::Axis& axis = access.axes[static_cast<std::size_t>(i)];
    at.push_back({.index = steps.scalar(axis.index),
                  .scale = axis.extent,
                  .offset = at.empty() ? panel * buffer.panel_columns()
                                       : first_of(steps.analysis, axis) + (i == 0 ? first_row : 0),
                  .far = !is_near(steps.analysis, loop, axis)});
  }
  return at;
}

}  // namespace tessera::internal::lowering
