#include "model/files/families.hpp"

#include <algorithm>
#include <utility>

namespace tessera::internal {
namespace {

using Config = TransformerConfig;

constexpr std::pair<std::string_view, Activation> activations[] = {
    {"gelu_new", Activation::gelu_tanh}, {"gelu_pytorch_tanh", Activation::gelu_tanh},
    {"gelu", Activation::gelu},          {"silu", Activation::silu},
    {"swish", Activation::silu},         {"relu", Activation::relu},
};

void read_activation(const Settings& file, std::string_view key, Config& config) {
  if (!file.has(key)) return;
  std::vector<std::string_view> names;
  for (const auto& [name, activation] : activations) names.push_back(name);
  file.require_one_of(key, names);
  for (const auto& [name, activation] : activations)
    if (file.is(key, name)) config.activation = activation;
}

void read_gpt2(const Settings& file, Config& config) {
  read_activation(file, "activation_function", config);
  file.require_flag("add_cross_attention", false);
  if (file.has("scale_attn_weights") && !file.boolean("scale_attn_weights")) config.attention_scale = 1;
  if (file.has("scale_attn_by_inverse_layer_idx"))
    config.scales_by_layer = file.boolean("scale_attn_by_inverse_layer_idx");
}

void read_rotary(const Settings& file, Config& config) {
  constexpr std::string_view defaults[] = {"default"};
  for (const std::string_view type : {"rope_type", "type"})
    if (file.sets(type)) file.require_one_of(type, defaults);
  if (!file.sets("rope_theta")) return;
  config.rotary_base = file.number("rope_theta");
  if (!(config.rotary_base > 1 && config.rotary_base < most_rotary_base))
    file.refuse("rope_theta", "above 1 and below 1e+12");
}

void read_llama(const Settings& file, Config& config) {
  config.norm = Norm::rms, config.epsilon = 1e-6f;
  config.position_encoding = PositionEncoding::rotary;
  config.activation = Activation::silu, config.gated = true;
  read_activation(file, "hidden_act", config);
  config.qkv_bias = config.projection_bias = file.has("attention_bias") && file.boolean("attention_bias");
  config.mlp_bias = file.has("mlp_bias") && file.boolean("mlp_bias");
  config.tied = false;
  read_rotary(file, config);
  // transformers 5 has an object for it, of which the older name counts.
  for (const std::string_view key : {"rope_scaling", "rope_parameters"})
    if (file.sets(key)) return read_rotary(file.at(key), config);
}

// Radford et al., 2019.
FamilyNames gpt2() {
  return {.family = Family::gpt2,
          .model_type = "gpt2",
          .sizes = {{"vocab_size", &Config::vocab},
                    {"n_positions", &Config::positions, "n_ctx"},
                    {"n_embd", &Config::width},
                    {"n_layer", &Config::layers},
                    {"n_head", &Config::heads},
                    {"n_inner", &Config::inner}},
          .inner_of_width = 4,
          .epsilon = "layer_norm_epsilon",
          .read = read_gpt2,
          .prefix = "transformer.",
          .embedding = "wte.weight",
          .positions = "wpe.weight",
          .last_norm = "ln_f.weight",
          .last_norm_bias = "ln_f.bias",
          .layer = "h.{}.",
          .is_out_in = false,
          .ignored = {"attn.bias", "attn.masked_bias"},  // the causal mask and its value, in old files
          .weights = {.attention_norm = {"ln_1.weight"},
                      .attention_norm_bias = {"ln_1.bias"},
                      .qkv = {"attn.c_attn.weight"},
                      .qkv_bias = {"attn.c_attn.bias"},
                      .projection = {"attn.c_proj.weight"},
                      .projection_bias = {"attn.c_proj.bias"},
                      .mlp_norm = {"ln_2.weight"},
                      .mlp_norm_bias = {"ln_2.bias"},
                      .up = {"mlp.c_fc.weight"},
                      .up_bias = {"mlp.c_fc.bias"},
                      .down = {"mlp.c_proj.weight"},
                      .down_bias = {"mlp.c_proj.bias"}}};
}

// Touvron et al., 2023.
FamilyNames llama() {
  return {.family = Family::llama,
          .model_type = "llama",
          .sizes = {{"vocab_size", &Config::vocab},
                    {"max_position_embeddings", &Config::positions},
                    {"hidden_size", &Config::width},
                    {"num_hidden_layers", &Config::layers},
                    {"num_attention_heads", &Config::heads},
                    {"num_key_value_heads", &Config::key_value_heads, {}, true},
                    {"head_dim", &Config::head_size, {}, true},
                    {"intermediate_size", &Config::inner}},
          .inner_of_width = 0,
          .epsilon = "rms_norm_eps",
          .read = read_llama,
          .prefix = "model.",
          .embedding = "embed_tokens.weight",
          .positions = {},
          .last_norm = "norm.weight",
          .last_norm_bias = {},
          .layer = "layers.{}.",
          .is_out_in = true,
          .ignored = {"self_attn.rotary_emb.inv_freq"},
          .weights = {.attention_norm = {"input_layernorm.weight"},
                      .qkv = {"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"},
                      .qkv_bias = {"self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias"},
                      .projection = {"self_attn.o_proj.weight"},
                      .projection_bias = {"self_attn.o_proj.bias"},
                      .mlp_norm = {"post_attention_layernorm.weight"},
                      .up = {"mlp.gate_proj.weight", "mlp.up_proj.weight"},
                      .up_bias = {"mlp.gate_proj.bias", "mlp.up_proj.bias"},
                      .down = {"mlp.down_proj.weight"},
                      .down_bias = {"mlp.down_proj.bias"}}};
}

const std::vector<FamilyNames>& families() {
  static const auto& all = *new std::vector<FamilyNames>{gpt2(), llama()};
  return all;
}

}  // namespace

std::string_view FamilyNames::key(std::int32_t TransformerConfig::*member) const {
  const auto found = std::ranges::find(sizes, member, &Size::member);
  return found == sizes.end() ? std::string_view() : found->key;
}

const FamilyNames& names_of(Family family) { return *std::ranges::find(families(), family, &FamilyNames::family); }

const FamilyNames& names_of(const Settings& file) {
  constexpr std::string_view key = "model_type";
  if (!file.has(key)) return names_of(Family::gpt2);
  std::vector<std::string_view> types;
  for (const FamilyNames& family : families()) types.push_back(family.model_type);
  file.require_one_of(key, types);
  return *std::ranges::find_if(families(), [&](const FamilyNames& family) { return file.is(key, family.model_type); });
}

}  // namespace tessera::internal
