#include "codegen/lower/sm90/tma_boxes.hpp"

namespace tessera::internal::lowering {
namespace {

// The start of the slice that the box is in.
int first_of(const GraphAnalysis& analysis, const GraphAccess::Axis& axis) {
  return axis.slices.empty() ? 0 : analysis[axis.slices[0].start].number().i32;
}

// Do 32 bits hold the start of a tile? A grid tile or an iteration is one of cdiv(n, length) tiles, for an n of 32 bits
// and at least this tile's length. If the last one's end wraps, it wraps to before the tensor, which is outside, too.
bool is_near(const GraphAnalysis& analysis, Id loop, const GraphAccess::Axis& axis) {
  if (first_of(analysis, axis) > 0) return false;
  const Node& index = analysis[axis.index];
  const auto hold = [&](std::int64_t tiles) { return tiles * axis.extent <= std::int64_t{1} << 31; };
  if (axis.extent == 1) return true;
  if (index.op == Op::constant) return hold(std::abs(std::int64_t{index.number().i32}) + 1);
  if (index.op != Op::block && !analysis.is_counter(axis.index)) return false;
  const Node& count = analysis[index.op == Op::block ? analysis.graph.grid[index.grid_axis()] : analysis[loop].in[0]];
  if (count.op == Op::constant) return hold(count.number().i32);
  return count.op == Op::cdiv && analysis[count.in[1]].op == Op::constant &&
         analysis[count.in[1]].number().i32 >= axis.extent;
}

// The tile's axes, from the tensor's innermost axis to its outermost, but for those of rows: TMA moves a box's elements
// in the order of the tensor map's axes, so these are from the innermost to the outermost of the buffer's rows.
std::vector<int> tile_axes(const GraphAccess& access, const Axes& rows) {
  std::vector<int> axes{access.fast};
  auto of_rows = rows.rbegin();
  for (int tensor_axis = static_cast<int>(access.axes.size()); tensor_axis-- > 0;)
    for (int i = 0; i < static_cast<int>(access.axes.size()); ++i)
      if (access.axes[static_cast<std::size_t>(i)].tensor_axis == tensor_axis && i != access.fast)
        axes.push_back(std::ranges::count(rows, i) ? *of_rows++ : i);
  return axes;
}

// Rows of a tile for each position along the outermost of their axes.
int rows_inside(const GraphAnalysis& analysis, Id id, const Axes& rows) {
  return merged_extent(analysis[id].shape, rows) / analysis[id].shape[rows[0]];
}

}  // namespace

TensorMapId tma_tensors_of(const GraphAnalysis& analysis, Plan& plan, Id id, const Axes& rows, const Buffer& buffer,
                           TmaUse use) {
  const GraphAccess access = analysis.access(id);
  TmaTensor tensor{
      .argument = access.parameter, .clipped = use == TmaUse::clipped, .to_tf32 = buffer.type == ElementType::tf32};
  const std::vector<int> axes = tile_axes(access, rows);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const GraphAccess::Axis& axis = access.axes[static_cast<std::size_t>(axes[i])];
    tensor.axes[i] = static_cast<std::int8_t>(axis.tensor_axis);
    tensor.box[i] = i == 0               ? buffer.panel_columns()
                    : axes[i] == rows[0] ? buffer.rows / rows_inside(analysis, id, rows)
                                         : axis.extent;
  }
  const bool store = use == TmaUse::store;
  // A load may fill several buffers.
  const std::string suffix = store ? "" : buffer.label.suffix;
  return plan.tensor_maps.add(
      {.label = {.stem = store ? "to" : "from", .number = analysis.number[id], .suffix = suffix},
       .tensor = tensor,
       .store = store});
}

int box_axis(const GraphAnalysis& analysis, Id id, const Axes& rows) {
  const std::vector<int> axes = tile_axes(analysis.access(id), rows);
  return static_cast<int>(std::ranges::find(axes, rows[0]) - axes.begin());
}

std::vector<TileCoordinate> place_of_panel(Steps& steps, Id loop, Id id, const Axes& rows, int panel,
                                           const Buffer& buffer, int first_row) {
  const GraphAccess access = steps.analysis.access(id);
  const int first = first_row / rows_inside(steps.analysis, id, rows);
  std::vector<TileCoordinate> at;
  for (int i : tile_axes(access, rows)) {
    const GraphAccess::Axis& axis = access.axes[static_cast<std::size_t>(i)];
    at.push_back({.index = steps.scalar(axis.index),
                  .scale = axis.extent,
                  .offset = at.empty() ? panel * buffer.panel_columns()
                                       : first_of(steps.analysis, axis) + (i == rows[0] ? first : 0),
                  .far = !is_near(steps.analysis, loop, axis)});
  }
  return at;
}

}  // namespace tessera::internal::lowering
