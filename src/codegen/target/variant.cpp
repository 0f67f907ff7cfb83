#include "codegen/target/variant.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "codegen/target/kernel_parameter.hpp"
#include "graph/views.hpp"

namespace tessera::internal {
namespace {

// Limits of a tensor map (CUDA Driver API, "cuTensorMapEncodeTiled").
constexpr int most_tma_axes = std::tuple_size_v<decltype(TmaTensor::axes)>;
constexpr std::int64_t most_tma_extent = std::int64_t{1} << 32, most_tma_stride = (std::int64_t{1} << 40) - 1;

// The largest power of two that divides all numbers whose bits are set in `bits`.
std::int8_t divisor(std::uint64_t bits) { return static_cast<std::int8_t>(bits & (~bits + 1)); }

// `sum` plus the distance, in either direction, over `positions` elements that are `stride` apart; saturates.
std::uint64_t beyond(std::uint64_t sum, std::int64_t positions, std::int64_t stride) {
  const auto size = [](std::int64_t n) {
    return n < 0 ? -static_cast<std::uint64_t>(n) : static_cast<std::uint64_t>(n);
  };
  std::uint64_t distance = 0;
  const bool far = __builtin_mul_overflow(size(positions), size(stride), &distance) ||
                   __builtin_add_overflow(sum, distance, &distance);
  return far ? std::numeric_limits<std::uint64_t>::max() : distance;
}

}  // namespace

TensorClass classify(const Parameter& parameter, const Argument& argument) {
  TensorClass result;
  if (parameter.access == Access::scalar) return result;
  // If several axes have a stride of 1 (all but one have an extent of 1), takes the longest; among equals, the last.
  for (int axis = 0; axis < parameter.rank; ++axis) {
    const auto i = static_cast<std::size_t>(axis),
               best = static_cast<std::size_t>(std::max<int>(result.contiguous_axis, 0));
    if (argument.stride[i] == 1 && (result.contiguous_axis < 0 || argument.extent[i] >= argument.extent[best]))
      result.contiguous_axis = static_cast<std::int8_t>(axis);
  }
  const std::int64_t bytes = info(parameter.type).bytes;
  result.tma_addressable = result.contiguous_axis >= 0 && parameter.rank <= most_tma_axes;
  result.has_elements = true;
  std::uint64_t all = reinterpret_cast<std::uintptr_t>(argument.data) | 16;
  for (int axis = 0; axis < parameter.rank; ++axis) {
    const std::int64_t extent = argument.extent[static_cast<std::size_t>(axis)];
    const std::int64_t stride = argument.stride[static_cast<std::size_t>(axis)];
    result.has_elements &= extent >= 1;
    result.tma_addressable &= extent >= 1 && extent <= most_tma_extent;
    if (axis == result.contiguous_axis || extent <= 1) continue;
    result.tma_addressable &= stride > 0 && stride <= most_tma_stride / bytes;
    all |= static_cast<std::uint64_t>(stride) * static_cast<std::uint64_t>(bytes);
  }
  result.alignment = divisor(all);
  result.tma_addressable &= result.alignment == 16;
  if (result.contiguous_axis >= 0) {
    const std::int64_t row = argument.extent[static_cast<std::size_t>(result.contiguous_axis)] * bytes;
    result.row_alignment = divisor(static_cast<std::uint64_t>(row) | 16);
  }
  return result;
}

std::vector<TileReach> tile_reaches(const Graph& graph) {
  std::vector<TileReach> reaches(graph.parameters.size());
  for (const Node& node : graph.nodes) {
    if ((!is_read(node.op) && !is_write(node.op)) || by_elements(node.op)) continue;
    const Id view = node.in[static_cast<std::size_t>(view_operand(node.op))];
    TileReach& reach = reaches[static_cast<std::size_t>(view_parameter(graph, view))];
    const std::vector<ViewAxis> axes = view_axes(graph, view);
    TileReach of_tile{};
    // Gathered rows are addressed one by one.
    for (std::size_t i = operand_of(node.op, OperandKind::further_indices) >= 0 ? 1 : 0; i < axes.size(); ++i) {
      // The index of a window and the position in it are two axes of the tile along one axis of the tensor.
      of_tile[static_cast<std::size_t>(axes[i].axes.back())] +=
          (node.shape[static_cast<int>(i)] - 1) * std::abs(axes[i].step());
    }
    for (std::size_t axis = 0; axis < reach.size(); ++axis) reach[axis] = std::max(reach[axis], of_tile[axis]);
  }
  return reaches;
}

Variant classify(const Graph& graph, std::span<const Argument> arguments) {
  Variant variant;
  classify(graph, tile_reaches(graph), arguments, variant);
  return variant;
}

void classify(const Graph& graph, std::span<const TileReach> reaches, std::span<const Argument> arguments,
              Variant& variant) {
  variant.tensors.clear();
  variant.index64 = false;
  for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
    const Parameter& parameter = graph.parameters[i];
    variant.tensors.push_back(classify(parameter, arguments[i]));
    if (parameter.access == Access::scalar) continue;
    std::uint64_t in_tensor = 0, in_tile = 0;  // of the farthest element
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(parameter.rank); ++axis) {
      const std::int64_t stride = arguments[i].stride[axis];
      in_tensor = beyond(in_tensor, arguments[i].extent[axis], stride);
      in_tile = beyond(in_tile, reaches[i][axis], stride);
    }
    variant.index64 |= beyond_narrow(in_tensor) || beyond_narrow(in_tile);
  }
}

Variant dense_variant(const Graph& graph) {
  Variant variant;
  const std::vector<TileReach> reaches = tile_reaches(graph);
  for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
    const Parameter& parameter = graph.parameters[i];
    TensorClass tensor;
    if (parameter.access != Access::scalar) {
      tensor.contiguous_axis = static_cast<std::int8_t>(parameter.rank - 1);
      variant.index64 |= beyond_narrow(beyond(0, reaches[i].at(static_cast<std::size_t>(tensor.contiguous_axis)), 1));
      tensor.alignment = 16;
      tensor.row_alignment = 16;
      tensor.tma_addressable = parameter.rank <= most_tma_axes;
      tensor.has_elements = true;
    }
    variant.tensors.push_back(tensor);
  }
  return variant;
}

}  // namespace tessera::internal
