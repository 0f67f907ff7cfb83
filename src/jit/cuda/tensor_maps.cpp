#include "jit/cuda/tensor_maps.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "tessera/graph/error.hpp"

namespace tessera::internal {

using namespace cuda;

namespace {

int type_of(ElementType type) {
  switch (type) {
    case ElementType::f64:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
    case ElementType::f32:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case ElementType::tf32:  // TMA converts f32 to tf32
      return CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
    case ElementType::f16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case ElementType::bf16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case ElementType::i32:
      return CU_TENSOR_MAP_DATA_TYPE_INT32;
    case ElementType::i64:
      return CU_TENSOR_MAP_DATA_TYPE_INT64;
    default:
      break;
  }
  switch (info(type).bytes) {
    case 1:
      return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    case 2:
      return CU_TENSOR_MAP_DATA_TYPE_UINT16;
    case 4:
      return CU_TENSOR_MAP_DATA_TYPE_UINT32;
    default:
      return CU_TENSOR_MAP_DATA_TYPE_UINT64;
  }
}

unsigned rank_of(const TmaTensor& tensor) {
  return static_cast<unsigned>(std::ranges::find(tensor.axes, std::int8_t{-1}) - tensor.axes.begin());
}

}  // namespace

TensorMaps::TensorMaps(CudaBackend& device, const Graph& graph, std::vector<Place> places)
    : device_(device), graph_(graph), places_(std::move(places)) {}

void TensorMaps::write(std::span<const Argument> arguments, std::byte* block) {
  const std::lock_guard lock(mutex_);
  for (std::size_t place = 0; place < places_.size(); ++place) {
    const Argument& argument = arguments[static_cast<std::size_t>(places_[place].tensor.argument)];
    const Key key = key_of(place, argument);
    auto found = kept_.find(key);
    if (found == kept_.end()) {
      const CUtensorMap map = encode(key, argument);
      if (kept_.size() == most_kept) kept_.clear();
      found = kept_.emplace(key, map).first;
    }
    std::memcpy(block + places_[place].offset, &found->second, sizeof(CUtensorMap));
  }
}

std::size_t TensorMaps::Hash::operator()(const Key& key) const {
  std::uint64_t hash = 0, factor = 1;
  for (const std::uint64_t word : std::bit_cast<std::array<std::uint64_t, sizeof(Key) / 8>>(key))
    hash += word * (factor *= 0x9e3779b97f4a7c15);
  return hash ^ hash >> 32;
}

const Parameter& TensorMaps::parameter_of(std::size_t place) const {
  return graph_.parameters[static_cast<std::size_t>(places_[place].tensor.argument)];
}

TensorMaps::Key TensorMaps::key_of(std::size_t place, const Argument& argument) const {
  const TmaTensor& tensor = places_[place].tensor;
  const auto bytes = static_cast<std::uint64_t>(info(parameter_of(place).type).bytes);
  Key key{place, argument.data, {}, {}};
  for (std::size_t i = 0; i < rank_of(tensor); ++i) {
    const auto axis = static_cast<std::size_t>(tensor.axes[i]);
    key.extents[i] = static_cast<std::uint64_t>(argument.extent[axis]);
    if (i == 0) continue;
    // The stride of an axis of one element has no effect, so use one that the driver accepts.
    key.strides[i - 1] = argument.extent[axis] == 1 ? 16 : static_cast<std::uint64_t>(argument.stride[axis]) * bytes;
  }
  return key;
}

CUtensorMap TensorMaps::encode(const Key& key, const Argument& argument) const {
  const TmaTensor& tensor = places_[key.place].tensor;
  const Parameter& parameter = parameter_of(key.place);
  const Driver& driver = device_.driver();
  std::array<unsigned, 5> box{}, steps{};
  for (std::size_t i = 0; i < rank_of(tensor); ++i)
    box[i] = static_cast<unsigned>(tensor.length(i, static_cast<std::int64_t>(key.extents[i])));
  steps.fill(1);
  CUtensorMap map{};
  // With promotion to 256 bytes, boxes that reach over an edge took up to 1.5 times as long on an H200, and no others
  // took less.
  const CUresult result = driver.cuTensorMapEncodeTiled(
      &map, type_of(tensor.type(parameter.type)), rank_of(tensor), const_cast<void*>(key.data), key.extents.data(),
      key.strides.data(), box.data(), steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
      CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    const auto numbers = [&](const auto& of) { return fmt::join(of.begin(), of.begin() + parameter.rank, ","); };
    device_.check(result, driver.cuTensorMapEncodeTiled.name,
                  fmt::format("kernel '{}', TMA boxes of [{}] of argument {}, {} [{}] with strides [{}] at {} (a dense "
                              "copy may work)",
                              graph_.name, numbers(tensor.box), tensor.argument + 1, name(parameter.type),
                              numbers(argument.extent), numbers(argument.stride), fmt::ptr(argument.data)));
  }
  return map;
}

}  // namespace tessera::internal
