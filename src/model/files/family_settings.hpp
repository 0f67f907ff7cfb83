// The parts of models as families write them in config.json: each function reads one kind of keys.
#pragma once
#include <cstdint>
#include <functional>
#include <string_view>

#include "model/files/settings.hpp"
#include "tessera/model/config.hpp"

namespace tessera::internal {

constexpr double most_rotary_base = 1e12;

/// Error for what no family here computes, by its key.
void refuse_unknown_parts(const Settings& file);

void read_activation(const Settings& file, std::string_view key, TransformerConfig& config);
/// attention_bias, for QKV and the projection, and mlp_bias, each of which may be missing.
void read_biases(const Settings& file, TransformerConfig& config);

/// Names of the keys of a rotation beside rope_scaling, and their defaults.
struct RotaryKeys {
  std::string_view base = "rope_theta", part = "partial_rotary_factor";
  double default_base = 10000, default_part = 1;
};
/// Rotary positions. The object rope_scaling, or rope_parameters of transformers 5, counts more than the keys beside
/// it. A context that its scaling makes longer than config.positions becomes that long.
void read_rotary(const Settings& file, TransformerConfig& config, const RotaryKeys& keys = {});
/// The same where layers with a window have another base, rope_local_base_freq, and no scaling: in rope_parameters,
/// each kind of layer has an object of its own.
void read_rotary_by_layer(const Settings& file, TransformerConfig& config, const RotaryKeys& keys,
                          double default_local_base);

/// sliding_window, which may be null, or missing if `otherwise` is its default; 0: none.
void read_window(const Settings& file, TransformerConfig& config, std::int32_t otherwise);
/// The layers that have it: layer_types, or else those, from 0, for which `is_local` holds.
void read_local_layers(const Settings& file, TransformerConfig& config,
                       const std::function<bool(std::int32_t)>& is_local);

/// attn_logit_softcapping and final_logit_softcapping; null: none.
void read_caps(const Settings& file, TransformerConfig& config, float of_scores, float of_logits);

}  // namespace tessera::internal
