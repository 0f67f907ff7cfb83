#include "tessera/model/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "model/typed_session.hpp"

namespace tessera::internal {

void require_memory(const Device& device, std::int64_t bytes, std::string_view what, std::string_view remedy) {
  const auto needed = static_cast<std::size_t>(bytes);
  const std::optional<std::size_t> free = device.free_bytes(needed);
  if (free && *free < needed)
    throw OutOfMemory(fmt::format("{} take {:.1f} MB, and {} has {:.1f} MB free; {}", what,
                                  static_cast<double>(needed) * 1e-6, device.name(), static_cast<double>(*free) * 1e-6,
                                  remedy));
}

std::int64_t parameter_count(const TransformerConfig& config) {
  check(config);
  const WeightCounts counts(config, !config.tied);
  return counts.matrices + counts.vectors;
}

Compute parse_compute(std::string_view text) {
  if (text == "f32") return Compute::f32;
  if (text == "tf32") return Compute::tf32;
  if (text == "bf16") return Compute::bf16;
  throw Error(fmt::format("'{}' is not a type to compute in; choose f32, tf32 or bf16", text));
}

namespace {

// The common element type of all matrices; f32, to which they are converted, if they differ.
StoredType common_type(const Checkpoint& checkpoint) {
  const StoredType type = checkpoint.embedding->type;
  std::vector<const StoredTensor*> matrices{checkpoint.head};
  if (checkpoint.positions.tensor) matrices.push_back(checkpoint.positions.tensor);
  for (const Checkpoint::Layer& layer : checkpoint.layers)
    for (const StoredParts* const weight : {&layer.qkv, &layer.projection, &layer.up, &layer.down})
      for (const StoredPart& part : *weight) matrices.push_back(part.tensor);
  const bool is_one = std::ranges::all_of(matrices, [&](const StoredTensor* stored) { return stored->type == type; });
  return is_one ? type : StoredType::f32;
}

}  // namespace

Model::Model(const Device& device, const Checkpoint& checkpoint, Computation computation, const Progress& progress,
             const FirstUse& first) {
  check(checkpoint.config);
  if ((checkpoint.positions.tensor == nullptr) != checkpoint.config.is_rotary() ||
      std::cmp_not_equal(checkpoint.layers.size(), checkpoint.config.layers))
    throw Error("a checkpoint has other weights than its configuration, which was changed, describes");
  const auto make = [&]<Element P>() -> std::shared_ptr<const Network> {
    switch (common_type(checkpoint)) {
      case StoredType::f16:
        return std::make_shared<TypedNetwork<P, f16>>(device, checkpoint, computation, progress, first);
      case StoredType::bf16:
        return std::make_shared<TypedNetwork<P, bf16>>(device, checkpoint, computation, progress, first);
      default:
        return std::make_shared<TypedNetwork<P, f32>>(device, checkpoint, computation, progress, first);
    }
  };
  switch (computation.type) {
    case Compute::f32:
      network_ = make.template operator()<f32>();
      break;
    case Compute::tf32:
      network_ = make.template operator()<tf32>();
      break;
    case Compute::bf16:
      network_ = std::make_shared<TypedNetwork<bf16, bf16>>(device, checkpoint, computation, progress, first);
      break;
  }
}

Model::Model(const Device& device, const TransformerConfig& config, std::uint64_t seed, Computation computation,
             const FirstUse& first) {
  check(config);
  switch (computation.type) {
    case Compute::f32:
      network_ = std::make_shared<TypedNetwork<f32, f32>>(device, config, computation, seed, first);
      break;
    case Compute::tf32:
      network_ = std::make_shared<TypedNetwork<tf32, f32>>(device, config, computation, seed, first);
      break;
    case Compute::bf16:
      network_ = std::make_shared<TypedNetwork<bf16, bf16>>(device, config, computation, seed, first);
      break;
  }
}

namespace {

constexpr std::array<std::string_view, 4> decode_forms{"auto", "plain", "graph", "persistent"};

}  // namespace

DecodeForm parse_decode_form(std::string_view text) {
  const auto found = std::ranges::find(decode_forms, text);
  if (found == decode_forms.end())
    throw Error(fmt::format("there is no form of decode steps '{}'; choose auto, plain, graph or persistent", text));
  return static_cast<DecodeForm>(found - decode_forms.begin());
}
std::string_view name(DecodeForm form) { return decode_forms[static_cast<std::size_t>(form)]; }

const TransformerConfig& Model::config() const { return network_->config(); }
const Device& Model::device() const { return network_->device(); }

}  // namespace tessera::internal
