#include "model/files/family_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace tessera::internal {
namespace {

using Config = TransformerConfig;
using Kind = RotaryScaling::Kind;

constexpr std::pair<std::string_view, Activation> activations[] = {
    {"gelu_new", Activation::gelu_tanh}, {"gelu_pytorch_tanh", Activation::gelu_tanh},
    {"gelu", Activation::gelu},          {"silu", Activation::silu},
    {"swish", Activation::silu},         {"relu", Activation::relu},
};

constexpr std::pair<std::string_view, Kind> rope_types[] = {
    {"default", Kind::none}, {"linear", Kind::linear}, {"llama3", Kind::llama3}, {"yarn", Kind::yarn}};

constexpr std::array<std::string_view, 2> layer_types{"full_attention", "sliding_attention"};

template <class T, std::size_t N>
T one_of(const Settings& file, std::string_view key, const std::pair<std::string_view, T> (&all)[N]) {
  std::vector<std::string_view> names;
  for (const auto& [name, value] : all) names.push_back(name);
  file.require_one_of(key, names);
  return std::ranges::find_if(all, [&](const auto& one) { return file.is(key, one.first); })->second;
}

double base_at(const Settings& file, std::string_view key, double otherwise) {
  if (!file.sets(key)) return otherwise;
  const double base = file.number(key);
  if (!(base > 1 && base < most_rotary_base)) file.refuse(key, "above 1 and below 1e+12");
  return base;
}

// The width that is rotated, of each head. transformers rounds it down.
void read_part(const Settings& file, std::string_view key, double otherwise, Config& config) {
  const double part = file.sets(key) ? file.number(key) : otherwise;
  if (!(part > 0 && part <= 1)) file.refuse(key, "above 0 and at most 1");
  if (part == 1) return;
  config.rotary_width = static_cast<std::int32_t>(config.head_width() * part);
  if (config.rotary_width < 2 || config.rotary_width % 2 != 0)
    file.refuse(key, fmt::format("a part of heads of width {} that has an even width", config.head_width()));
}

// yarn: the factor that keeps the entropy of the weights of attention.
double attention_factor(const Settings& file, double factor) {
  if (file.sets("attention_factor")) return file.number_above("attention_factor", 0);
  const auto of = [&](double scale) { return factor <= 1 ? 1 : 0.1 * scale * std::log(factor) + 1; };
  if (file.turns_on("mscale") && file.turns_on("mscale_all_dim"))
    return of(file.number_above("mscale", 0)) / of(file.number_above("mscale_all_dim", 0));
  return of(1);
}

RotaryScaling scaling_of(const Settings& file, const Config& config) {
  RotaryScaling scaling;
  for (const std::string_view key : {"type", "rope_type"})
    if (file.sets(key)) scaling.kind = one_of(file, key, rope_types);
  if (scaling.kind == Kind::none) return scaling;
  scaling.positions = config.positions;
  if (scaling.kind != Kind::linear && file.sets("original_max_position_embeddings"))
    scaling.positions = file.integer("original_max_position_embeddings", 1, 1 << 20);
  if (scaling.kind == Kind::yarn && !file.sets("factor"))
    scaling.factor = std::max(1.0, config.positions / scaling.positions);
  else
    scaling.factor = file.number_from("factor", 1);
  if (scaling.kind == Kind::llama3) {
    scaling.low_frequency = file.number_above("low_freq_factor", 0);
    scaling.high_frequency = file.number_above("high_freq_factor", scaling.low_frequency);
  }
  if (scaling.kind == Kind::yarn) {
    if (file.turns_on("beta_fast")) scaling.beta_fast = file.number_above("beta_fast", 0);
    if (file.turns_on("beta_slow")) scaling.beta_slow = file.number_above("beta_slow", 0);
    if (file.sets("truncate")) scaling.truncates = file.boolean("truncate");
    scaling.attention_factor = attention_factor(file, scaling.factor);
  }
  return scaling;
}

// The object of the scaling. Of its two names the older counts, unless it is empty.
std::optional<Settings> scaling_in(const Settings& file) {
  for (const std::string_view key : {"rope_scaling", "rope_parameters"})
    if (file.turns_on(key)) return file.at(key);
  return std::nullopt;
}

void read_scaled(const Settings& file, Config& config) {
  config.rotary_base = base_at(file, "rope_theta", config.rotary_base);
  if (file.sets("partial_rotary_factor")) read_part(file, "partial_rotary_factor", 1, config);
  config.rotary_scaling = scaling_of(file, config);
  if (config.rotary_scaling.kind != Kind::yarn) return;
  const double longest = config.rotary_scaling.positions * config.rotary_scaling.factor;
  if (!(longest <= 1 << 20)) file.refuse("factor", "at most 2^20 positions / original_max_position_embeddings");
  config.positions = std::max(config.positions, static_cast<std::int32_t>(longest));
}

}  // namespace

void refuse_unknown_parts(const Settings& file) {
  file.require_flag("is_causal", true);
  file.require_off("quantization_config", "null: no quantized weights are read");
  for (const std::string_view key : {"num_local_experts", "num_experts", "n_routed_experts"})
    file.require_off(key, "absent: mixtures of experts are not computed");
  for (const std::string_view key : {"is_encoder_decoder", "add_cross_attention"})
    file.require_off(key, "false: only decoders are computed");
  file.require_off("use_bidirectional_attention", "false: attention is causal");
  for (const std::string_view key : {"vision_config", "audio_config", "text_config"})
    file.require_off(key, "absent: only models of text are computed, described by one object");
}

void read_activation(const Settings& file, std::string_view key, Config& config) {
  if (file.has(key)) config.activation = one_of(file, key, activations);
}

void read_biases(const Settings& file, Config& config) {
  if (file.has("attention_bias")) config.qkv_bias = config.projection_bias = file.boolean("attention_bias");
  if (file.has("mlp_bias")) config.mlp_bias = file.boolean("mlp_bias");
}

void read_rotary(const Settings& file, Config& config, const RotaryKeys& keys) {
  config.position_encoding = PositionEncoding::rotary;
  config.rotary_base = base_at(file, keys.base, keys.default_base);
  const auto scaling = scaling_in(file);
  if (!scaling || !scaling->sets("partial_rotary_factor")) read_part(file, keys.part, keys.default_part, config);
  if (!scaling) {
    static_cast<void>(scaling_of(file, config));  // old files have the type here
    return;
  }
  for (const std::string_view type : layer_types) scaling->require_off(type, "absent: all layers have one rotation");
  read_scaled(*scaling, config);
}

void read_rotary_by_layer(const Settings& file, Config& config, const RotaryKeys& keys, double default_local_base) {
  config.position_encoding = PositionEncoding::rotary;
  config.rotary_base = base_at(file, keys.base, keys.default_base);
  config.local_rotary_base = base_at(file, "rope_local_base_freq", default_local_base);
  if (file.turns_on("rope_parameters")) {
    const Settings by_layer = file.at("rope_parameters");
    if (by_layer.turns_on("full_attention")) read_scaled(by_layer.at("full_attention"), config);
    if (by_layer.turns_on("sliding_attention")) {
      const Settings local = by_layer.at("sliding_attention");
      constexpr std::string_view unscaled[] = {"default"};
      for (const std::string_view key : {"type", "rope_type"})
        if (local.sets(key)) local.require_one_of(key, unscaled);
      local.require_off("partial_rotary_factor", "1: all of a head is rotated", 1);
      config.local_rotary_base = base_at(local, "rope_theta", *config.local_rotary_base);
    }
  }
  if (file.turns_on("rope_scaling")) read_scaled(file.at("rope_scaling"), config);
}

void read_window(const Settings& file, Config& config, std::int32_t otherwise) {
  config.window = file.has("sliding_window") ? 0 : otherwise;
  if (file.sets("sliding_window")) config.window = file.integer("sliding_window", 1, max_token);
}

void read_local_layers(const Settings& file, Config& config, const std::function<bool(std::int32_t)>& is_local) {
  config.local_layers.clear();
  if (!file.sets("layer_types")) {
    for (std::int32_t i = 0; i < config.layers; ++i) config.local_layers.push_back(is_local(i));
    return;
  }
  const std::vector<std::string> types = file.strings_at("layer_types", layer_types);
  if (std::cmp_not_equal(types.size(), config.layers))
    file.refuse("layer_types", fmt::format("{} strings, one a layer", config.layers));
  for (const std::string& type : types) config.local_layers.push_back(type == layer_types[1]);
}

void read_caps(const Settings& file, Config& config, float of_scores, float of_logits) {
  const auto read = [&](std::string_view key, float otherwise) {
    if (file.sets(key)) return static_cast<float>(file.number_above(key, 0));
    return file.has(key) ? 0.0f : otherwise;
  };
  config.score_cap = read("attn_logit_softcapping", of_scores);
  config.logit_cap = read("final_logit_softcapping", of_logits);
}

}  // namespace tessera::internal
