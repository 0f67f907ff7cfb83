#include "model/files/families.hpp"

#include <algorithm>
#include <array>
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
  file.require_one_of(key, {"gelu_new", "gelu_pytorch_tanh", "gelu", "silu", "swish", "relu"});
  config.activation =
      std::ranges::find(activations, file.text(key), &std::pair<std::string_view, Activation>::first)->second;
}

// Radford et al., 2019.
const FamilyNames gpt2{
    .family = Family::gpt2,
    .model_type = "gpt2",
    .sizes = {{"vocab_size", &Config::vocab, 1 << 20},
              {"n_positions", &Config::positions, 1 << 20},
              {"n_embd", &Config::width, 1 << 15},
              {"n_layer", &Config::layers, 1 << 10},
              {"n_head", &Config::heads, 1 << 12},
              {"n_inner", &Config::inner, 1 << 17}},
    .old_names = {{"n_positions", "n_ctx"}},
    .inner_of_width = 4,
    .epsilon = "layer_norm_epsilon",
    .read =
        [](const Settings& file, Config& config) {
  read_activation(file, "activation_function", config);
  file.require_flag("add_cross_attention", false);
  if (file.has("scale_attn_weights") && !file.boolean("scale_attn_weights")) config.attention_scale = 1;
  if (file.has("scale_attn_by_inverse_layer_idx"))
    config.scales_by_layer = file.boolean("scale_attn_by_inverse_layer_idx");
    },
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
                .down_bias = {"mlp.c_proj.bias"}},
    };

// Touvron et al., 2023.
const FamilyNames llama{
    .family = Family::llama,
    .model_type = "llama",
    .sizes = {{"vocab_size", &Config::vocab, 1 << 20},
              {"max_position_embeddings", &Config::positions, 1 << 20},
              {"hidden_size", &Config::width, 1 << 15},
              {"num_hidden_layers", &Config::layers, 1 << 10},
              {"num_attention_heads", &Config::heads, 1 << 12},
              {"num_key_value_heads", &Config::key_value_heads, 1 << 12},
              {"head_dim", &Config::head_size, 1 << 12},
              {"intermediate_size", &Config::inner, 1 << 17}},
    .old_names = {},
    .inner_of_width = 0,
    .epsilon = "rms_norm_eps",
    .read =
        [](const Settings& file, Config& config) {
  config.norm = Norm::rms, config.epsilon = 1e-6f;
  config.position_encoding = Positions::rotary;
  config.activation = Activation::silu, config.gated = true;
  read_activation(file, "hidden_act", config);
  config.qkv_bias = config.projection_bias = file.has("attention_bias") && file.boolean("attention_bias");
  config.mlp_bias = file.has("mlp_bias") && file.boolean("mlp_bias");
  config.tied = false;
  const auto read_rotary = [&](const Settings& from) {
    for (const std::string_view type : {"rope_type", "type"})
      if (from.sets(type)) from.require_one_of(type, {"default"});
    if (!from.sets("rope_theta")) return;
    config.rotary_base = from.number("rope_theta");
    if (!(config.rotary_base > 1 && config.rotary_base < 1e12)) from.refuse("rope_theta", "above 1 and below 10^12");
  };
  read_rotary(file);  // transformers 5 has an object for it
  for (const std::string_view key : {"rope_scaling", "rope_parameters"})
    if (file.sets(key)) read_rotary(file.at(key));
    },
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
                .down_bias = {"mlp.down_proj.bias"}},
    };

}  // namespace

std::string_view FamilyNames::key(std::int32_t TransformerConfig::*member) const {
  const auto found = std::ranges::find(sizes, member, &Size::member);
  return found == sizes.end() ? std::string_view() : found->key;
}
std::string_view FamilyNames::old_name(std::string_view key) const {
  const auto found = std::ranges::find(old_names, key, &OldName::key);
  return found == old_names.end() ? std::string_view() : found->old;
}

const FamilyNames& names_of(Family family) { return family == Family::llama ? llama : gpt2; }

const FamilyNames& names_of(const Settings& file) {
  if (!file.has("model_type")) return gpt2;
  file.require_one_of("model_type", {gpt2.model_type, llama.model_type});
  return file.is("model_type", llama.model_type) ? llama : gpt2;
}

}  // namespace tessera::internal
