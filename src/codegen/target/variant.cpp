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

// If several axes have a stride of 1 (all but one have an extent of 1), takes the longest; among equals, the last.
std::int8_t contiguous_axis(const Parameter& parameter, const Argument& argument) {
  std::int8_t found = -1;
  for (int axis = 0; axis < parameter.rank; ++axis) {
    const auto i = static_cast<std::size_t>(axis), best = static_cast<std::size_t>(std::max<int>(found, 0));
    if (argument.stride[i] == 1 && (found < 0 || argument.extent[i] >= argument.extent[best]))
      found = static_cast<std::int8_t>(axis);
  }
  return found;
}

bool is_empty(const Parameter& parameter, const Argument& argument) {
  const auto end = argument.extent.begin() + parameter.rank;
  return std::find(argument.extent.begin(), end, 0) != end;
}

TensorClass classify(const Parameter& parameter, const Argument& argument, std::int8_t contiguous_axis) {
  TensorClass result;
  result.contiguous_axis = contiguous_axis;
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

}  // namespace

// Tensors of a list without elements are never accessed, so they may have any strides.
TensorClass classify(const Parameter& parameter, std::span<const Argument> tensors) {
  if (parameter.access == Access::scalar) return {};
  if (tensors.size() == 1) return classify(parameter, tensors[0], contiguous_axis(parameter, tensors[0]));
  const Argument* first = nullptr;
  for (const Argument& tensor : tensors)
    if (!first && !is_empty(parameter, tensor)) first = &tensor;
  if (!first) first = &tensors[0];
  const std::int8_t axis = contiguous_axis(parameter, *first);
  TensorClass common = classify(parameter, *first, axis);
  for (const Argument& tensor : tensors) {
    if (is_empty(parameter, tensor)) continue;
    const auto along = static_cast<std::size_t>(std::max<int>(axis, 0));
    const bool contiguous = axis >= 0 && tensor.stride[along] == 1;
    const TensorClass own = classify(parameter, tensor, contiguous ? axis : std::int8_t{-1});
    if (!contiguous) common.contiguous_axis = -1;
    common.alignment = std::min(common.alignment, own.alignment);
    common.row_alignment = std::min(common.row_alignment, own.row_alignment);
  }
  common.tma_addressable = common.has_elements = false;
  return common;
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
    if (parameter.list > 0 && (parameter.access == Access::scalar || tensors_of_list(graph.parameters, i) == 0)) {
      variant.tensors.emplace_back();  // the first tensor of the list stands for it
      continue;
    }
    const auto count = static_cast<std::size_t>(std::max(parameter.list - 1, 1));
    variant.tensors.push_back(classify(parameter, arguments.subspan(i, count)));
    if (parameter.access == Access::scalar) continue;
    for (const Argument& tensor : arguments.subspan(i, count)) {
      std::uint64_t in_tensor = 0, in_tile = 0;  // of the farthest element
      for (std::size_t axis = 0; axis < static_cast<std::size_t>(parameter.rank); ++axis) {
        in_tensor = beyond(in_tensor, tensor.extent[axis], tensor.stride[axis]);
        in_tile = beyond(in_tile, reaches[i][axis], tensor.stride[axis]);
      }
      variant.index64 |= beyond_narrow(in_tensor) || beyond_narrow(in_tile);
    }
  }
}

Variant dense_variant(const Graph& graph) {
  Variant variant;
  const std::vector<TileReach> reaches = tile_reaches(graph);
  for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
    const Parameter& parameter = graph.parameters[i];
    TensorClass tensor;
    if (parameter.access != Access::scalar && (parameter.list == 0 || tensors_of_list(graph.parameters, i) > 0)) {
      tensor.contiguous_axis = static_cast<std::int8_t>(parameter.rank - 1);
      variant.index64 |= beyond_narrow(beyond(0, reaches[i].at(static_cast<std::size_t>(tensor.contiguous_axis)), 1));
      tensor.alignment = 16;
      tensor.row_alignment = 16;
      tensor.tma_addressable = parameter.rank <= most_tma_axes && parameter.list == 0;
      tensor.has_elements = parameter.list == 0;
    }
    variant.tensors.push_back(tensor);
  }
  return variant;
}

}  // namespace tessera::internal
