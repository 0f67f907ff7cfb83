#include "codegen/variant.hpp"

#include <algorithm>

#include "codegen/kernel_parameter.hpp"

namespace tessera::internal {
namespace {

// What an encoded tensor may have (CUDA Driver API, "cuTensorMapEncodeTiled").
constexpr int most_boxed_axes = std::tuple_size_v<decltype(BoxedTensor::axes)>;
constexpr std::int64_t most_boxed_extent = std::int64_t{1} << 32, most_boxed_stride = (std::int64_t{1} << 40) - 1;

// The largest power of two that divides all of which the bits are in `bits`.
std::int8_t divisor(std::uint64_t bits) { return static_cast<std::int8_t>(bits & (~bits + 1)); }

}  // namespace

TensorClass classify(const Parameter& parameter, const Argument& argument) {
  TensorClass result;
  if (parameter.access == Access::scalar) return result;
  // Of several axes with a stride of 1 (all but one have the extent 1) the longest is the one to read along; the last,
  // if all are as short.
  for (int axis = 0; axis < parameter.rank; ++axis) {
    const auto i = static_cast<std::size_t>(axis), best = static_cast<std::size_t>(std::max<int>(result.unit_axis, 0));
    if (argument.stride[i] == 1 && (result.unit_axis < 0 || argument.extent[i] >= argument.extent[best]))
      result.unit_axis = static_cast<std::int8_t>(axis);
  }
  const std::int64_t bytes = info(parameter.type).bytes;
  result.boxable = result.unit_axis >= 0 && parameter.rank <= most_boxed_axes;
  result.has_elements = true;
  std::uint64_t all = reinterpret_cast<std::uintptr_t>(argument.data) | 16;
  for (int axis = 0; axis < parameter.rank; ++axis) {
    const std::int64_t extent = argument.extent[static_cast<std::size_t>(axis)];
    const std::int64_t stride = argument.stride[static_cast<std::size_t>(axis)];
    result.has_elements &= extent >= 1;
    result.boxable &= extent >= 1 && extent <= most_boxed_extent;
    if (axis == result.unit_axis || extent <= 1) continue;
    result.boxable &= stride > 0 && stride <= most_boxed_stride / bytes;
    all |= static_cast<std::uint64_t>(stride) * static_cast<std::uint64_t>(bytes);
  }
  result.alignment = divisor(all);
  result.boxable &= result.alignment == 16;
  if (result.unit_axis >= 0) {
    const std::int64_t row = argument.extent[static_cast<std::size_t>(result.unit_axis)] * bytes;
    result.granule = divisor(static_cast<std::uint64_t>(row) | 16);
  }
  return result;
}

Variant classify(const Graph& graph, std::span<const Argument> arguments) {
  Variant variant;
  classify(graph, arguments, variant);
  return variant;
}

void classify(const Graph& graph, std::span<const Argument> arguments, Variant& variant) {
  variant.tensors.clear();
  variant.wide = false;
  for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
    const Parameter& parameter = graph.parameters[i];
    variant.tensors.push_back(classify(parameter, arguments[i]));
    if (parameter.access == Access::scalar) continue;
    std::uint64_t reach = 0;  // of the farthest element; tiles may hang over the edge, which is why half is left
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(parameter.rank); ++axis) {
      const std::int64_t stride = arguments[i].stride[axis];
      const std::uint64_t step =
          stride < 0 ? 0 - static_cast<std::uint64_t>(stride) : static_cast<std::uint64_t>(stride);
      std::uint64_t length = 0;
      if (__builtin_mul_overflow(step, static_cast<std::uint64_t>(arguments[i].extent[axis]), &length) ||
          __builtin_add_overflow(reach, length, &reach))
        reach = ~std::uint64_t(0);
    }
    variant.wide |= reach >= std::uint64_t(1) << 30;
  }
}

Variant dense_variant(const Graph& graph) {
  Variant variant;
  for (const Parameter& parameter : graph.parameters) {
    TensorClass tensor;
    if (parameter.access != Access::scalar) {
      tensor.unit_axis = static_cast<std::int8_t>(parameter.rank - 1);
      tensor.alignment = 16;
      tensor.granule = 16;
      tensor.boxable = parameter.rank <= most_boxed_axes;
      tensor.has_elements = true;
    }
    variant.tensors.push_back(tensor);
  }
  return variant;
}

}  // namespace tessera::internal
