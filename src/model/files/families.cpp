#include "model/files/families.hpp"

#include <algorithm>
#include <cmath>

#include "model/files/family_settings.hpp"

namespace tessera::internal {
namespace {

using Config = TransformerConfig;

void read_gpt2(const Settings& file, Config& config) {
  read_activation(file, "activation_function", config);
  if (file.has("scale_attn_weights") && !file.boolean("scale_attn_weights")) config.attention_scale = 1;
  if (file.has("scale_attn_by_inverse_layer_idx"))
    config.scales_by_layer = file.boolean("scale_attn_by_inverse_layer_idx");
}

void read_opt(const Settings& file, Config& config) {
  config.activation = Activation::relu;
  read_activation(file, "activation_function", config);
  file.require_flag("do_layer_norm_before", true);
  file.require_flag("_remove_final_layer_norm", false);
  file.require_flag("layer_norm_elementwise_affine", true);
  if (file.sets("word_embed_proj_dim") && file.integer("word_embed_proj_dim", 1, max_token) != config.width)
    file.refuse("word_embed_proj_dim", "hidden_size: embeddings are not projected");
  if (file.has("enable_bias")) config.qkv_bias = config.projection_bias = config.mlp_bias = file.boolean("enable_bias");
  config.position_offset = 2;  // rows for padding
}

// The parts that Llama and its descendants share.
void read_llama_parts(const Settings& file, Config& config) {
  config.norm = Norm::rms;
  config.activation = Activation::silu, config.gated = true;
  config.qkv_bias = config.projection_bias = config.mlp_bias = config.tied = false;
  read_activation(file, "hidden_act", config);
}

void read_llama(const Settings& file, Config& config) {
  read_llama_parts(file, config);
  read_biases(file, config);
  read_rotary(file, config);
}

void read_mistral(const Settings& file, Config& config) {
  read_llama_parts(file, config);
  read_rotary(file, config);
  read_window(file, config, 4096);
}

// Layers from max_window_layers on have the window, if use_sliding_window is true.
void read_qwen_window(const Settings& file, Config& config) {
  if (!file.has("use_sliding_window") || !file.boolean("use_sliding_window")) return;
  read_window(file, config, 4096);
  const std::int32_t first = file.sets("max_window_layers") ? file.integer("max_window_layers", 0, max_token) : 28;
  read_local_layers(file, config, [&](std::int32_t layer) { return layer >= first; });
}

void read_qwen2(const Settings& file, Config& config) {
  read_llama_parts(file, config);
  config.qkv_bias = true;
  read_rotary(file, config);
  read_qwen_window(file, config);
}

void read_qwen3(const Settings& file, Config& config) {
  read_llama_parts(file, config);
  config.qk_norm = QkNorm::head;
  read_biases(file, config);
  read_rotary(file, config);
  read_qwen_window(file, config);
}

void read_olmo2(const Settings& file, Config& config) {
  read_llama_parts(file, config);
  config.norm_before = false, config.norm_after = true, config.qk_norm = QkNorm::width;
  read_biases(file, config);
  read_rotary(file, config);
}

// Norms have weights around 0, and the token's embedding has a factor.
void read_gemma_parts(const Settings& file, Config& config) {
  read_llama_parts(file, config);
  config.norm_offset = 1, config.tied = true;
  config.embedding_scale = std::sqrt(static_cast<float>(config.width));
  config.activation = Activation::gelu_tanh;
  read_biases(file, config);
}

void read_gemma(const Settings& file, Config& config) {
  read_gemma_parts(file, config);  // whose hidden_act is wrong in old files
  read_rotary(file, config);
}

// The activation is hidden_activation.
void read_gemma_attention(const Settings& file, Config& config) {
  read_activation(file, "hidden_activation", config);
  config.norm_after = true;
  const double scalar = file.sets("query_pre_attn_scalar") ? file.number_above("query_pre_attn_scalar", 0) : 256;
  config.attention_scale = static_cast<float>(1 / std::sqrt(scalar));
  read_window(file, config, 4096);
}

void read_gemma2(const Settings& file, Config& config) {
  read_gemma_parts(file, config);
  read_gemma_attention(file, config);
  read_local_layers(file, config, [](std::int32_t layer) { return layer % 2 == 0; });
  read_caps(file, config, 50, 30);
  read_rotary(file, config);
}

void read_gemma3(const Settings& file, Config& config) {
  read_gemma_parts(file, config);
  read_gemma_attention(file, config);
  const std::int32_t pattern =
      file.sets("sliding_window_pattern") ? file.integer("sliding_window_pattern", 1, max_token) : 6;
  read_local_layers(file, config, [&](std::int32_t layer) { return (layer + 1) % pattern != 0; });
  config.qk_norm = QkNorm::head;
  read_caps(file, config, 0, 0);
  read_rotary_by_layer(file, config, {.default_base = 1e6}, 10000);
}

void read_gpt_neox(const Settings& file, Config& config) {
  config.activation = Activation::gelu, config.tied = false;
  read_activation(file, "hidden_act", config);
  read_biases(file, config);
  config.mlp_bias = true;
  config.parallel = true;
  if (file.has("use_parallel_residual")) config.parallel = file.boolean("use_parallel_residual");
  read_rotary(file, config, {.base = "rotary_emb_base", .part = "rotary_pct", .default_part = 0.25});
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
                      .down_bias = {"mlp.c_proj.bias"}},
          .gguf = {"gpt2"}};
}

// Zhang et al., 2022.
FamilyNames opt() {
  return {.family = Family::opt,
          .model_type = "opt",
          .sizes = {{"vocab_size", &Config::vocab},
                    {"max_position_embeddings", &Config::positions},
                    {"hidden_size", &Config::width},
                    {"num_hidden_layers", &Config::layers},
                    {"num_attention_heads", &Config::heads},
                    {"ffn_dim", &Config::inner}},
          .read = read_opt,
          .bos = 2,
          .eos = {2},
          .prefix = "model.",
          .embedding = "decoder.embed_tokens.weight",
          .positions = "decoder.embed_positions.weight",
          .last_norm = "decoder.final_layer_norm.weight",
          .last_norm_bias = "decoder.final_layer_norm.bias",
          .layer = "decoder.layers.{}.",
          .is_out_in = true,
          .weights = {.attention_norm = {"self_attn_layer_norm.weight"},
                      .attention_norm_bias = {"self_attn_layer_norm.bias"},
                      .qkv = {"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"},
                      .qkv_bias = {"self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias"},
                      .projection = {"self_attn.out_proj.weight"},
                      .projection_bias = {"self_attn.out_proj.bias"},
                      .mlp_norm = {"final_layer_norm.weight"},
                      .mlp_norm_bias = {"final_layer_norm.bias"},
                      .up = {"fc1.weight"},
                      .up_bias = {"fc1.bias"},
                      .down = {"fc2.weight"},
                      .down_bias = {"fc2.bias"}}};
}

// Black et al., 2022; Pythia: Biderman et al., 2023.
FamilyNames gpt_neox() {
  return {.family = Family::gpt_neox,
          .model_type = "gpt_neox",
          .sizes = {{"vocab_size", &Config::vocab},
                    {"max_position_embeddings", &Config::positions},
                    {"hidden_size", &Config::width},
                    {"num_hidden_layers", &Config::layers},
                    {"num_attention_heads", &Config::heads},
                    {"intermediate_size", &Config::inner}},
          .epsilon = "layer_norm_eps",
          .read = read_gpt_neox,
          .bos = 0,
          .eos = {2},
          .prefix = "gpt_neox.",
          .embedding = "embed_in.weight",
          .last_norm = "final_layer_norm.weight",
          .last_norm_bias = "final_layer_norm.bias",
          .head = "embed_out.weight",
          .layer = "layers.{}.",
          .is_out_in = true,
          .ignored = {"attention.bias", "attention.masked_bias", "attention.rotary_emb.inv_freq"},
          .qkv_by_head = true,
          .weights = {.attention_norm = {"input_layernorm.weight"},
                      .attention_norm_bias = {"input_layernorm.bias"},
                      .qkv = {"attention.query_key_value.weight"},
                      .qkv_bias = {"attention.query_key_value.bias"},
                      .projection = {"attention.dense.weight"},
                      .projection_bias = {"attention.dense.bias"},
                      .mlp_norm = {"post_attention_layernorm.weight"},
                      .mlp_norm_bias = {"post_attention_layernorm.bias"},
                      .up = {"mlp.dense_h_to_4h.weight"},
                      .up_bias = {"mlp.dense_h_to_4h.bias"},
                      .down = {"mlp.dense_4h_to_h.weight"},
                      .down_bias = {"mlp.dense_4h_to_h.bias"}},
          .gguf = {"gptneox"}};
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
                    {"num_key_value_heads", &Config::key_value_heads, {}, 0},
                    {"head_dim", &Config::head_size, {}, 0},
                    {"intermediate_size", &Config::inner}},
          .epsilon = "rms_norm_eps",
          .default_epsilon = 1e-6f,
          .read = read_llama,
          .bos = 1,
          .eos = {2},
          .prefix = "model.",
          .embedding = "embed_tokens.weight",
          .last_norm = "norm.weight",
          .layer = "layers.{}.",
          .is_out_in = true,
          .ignored = {"self_attn.rotary_emb.inv_freq"},
          .weights = {.attention_norm = {"input_layernorm.weight"},
                      .qkv = {"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"},
                      .qkv_bias = {"self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias"},
                      .query_norm = {"self_attn.q_norm.weight"},
                      .key_norm = {"self_attn.k_norm.weight"},
                      .projection = {"self_attn.o_proj.weight"},
                      .projection_bias = {"self_attn.o_proj.bias"},
                      .mlp_norm = {"post_attention_layernorm.weight"},
                      .up = {"mlp.gate_proj.weight", "mlp.up_proj.weight"},
                      .up_bias = {"mlp.gate_proj.bias", "mlp.up_proj.bias"},
                      .down = {"mlp.down_proj.weight"},
                      .down_bias = {"mlp.down_proj.bias"}},
          .gguf = {"llama", true}};
}

// A family with Llama's keys and tensors.
FamilyNames like_llama(Family family, std::string_view model_type, decltype(FamilyNames::read) read) {
  FamilyNames names = llama();
  names.family = family, names.model_type = model_type, names.read = read;
  names.bos = {}, names.eos = {};
  names.gguf = {model_type};
  return names;
}

// Jiang et al., 2023.
FamilyNames mistral() {
  FamilyNames names = like_llama(Family::mistral, "mistral", read_mistral);
  names.size(&Config::key_value_heads).otherwise = 8;
  names.bos = 1, names.eos = {2};
  names.gguf = {"llama", true};
  return names;
}

// Yang et al., 2024.
FamilyNames qwen2() {
  FamilyNames names = like_llama(Family::qwen2, "qwen2", read_qwen2);
  names.size(&Config::key_value_heads).otherwise = 32;
  return names;
}

// Yang et al., 2025.
FamilyNames qwen3() {
  FamilyNames names = like_llama(Family::qwen3, "qwen3", read_qwen3);
  names.size(&Config::key_value_heads).otherwise = 32;
  names.size(&Config::head_size).otherwise = 128;
  return names;
}

// OLMo Team, 2024.
FamilyNames olmo2() {
  FamilyNames names = like_llama(Family::olmo2, "olmo2", read_olmo2);
  names.default_epsilon = 1e-5f;
  names.eos = {50279};
  names.weights.attention_norm = names.weights.mlp_norm = {};
  names.weights.attention_post_norm = {"post_attention_layernorm.weight"};
  names.weights.mlp_post_norm = {"post_feedforward_layernorm.weight"};
  return names;
}

// Gemma Team, 2024.
FamilyNames gemma() {
  FamilyNames names = like_llama(Family::gemma, "gemma", read_gemma);
  names.size(&Config::key_value_heads).otherwise = 16;
  names.size(&Config::head_size).otherwise = 256;
  names.bos = 2, names.eos = {1};
  return names;
}

// Gemma Team, 2024.
FamilyNames gemma2() {
  FamilyNames names = like_llama(Family::gemma2, "gemma2", read_gemma2);
  names.size(&Config::key_value_heads).otherwise = 4;
  names.size(&Config::head_size).otherwise = 256;
  names.bos = 2, names.eos = {1};
  names.weights.attention_post_norm = {"post_attention_layernorm.weight"};
  names.weights.mlp_norm = {"pre_feedforward_layernorm.weight"};
  names.weights.mlp_post_norm = {"post_feedforward_layernorm.weight"};
  return names;
}

// Gemma Team, 2025. Its files omit sizes that are defaults.
FamilyNames gemma3() {
  FamilyNames names = gemma2();
  names.family = Family::gemma3, names.model_type = "gemma3_text", names.read = read_gemma3;
  names.gguf = {"gemma3"};
  names.size(&Config::vocab).otherwise = 262208;
  names.size(&Config::positions).otherwise = 131072;
  names.size(&Config::width).otherwise = 2304;
  names.size(&Config::layers).otherwise = 26;
  names.size(&Config::heads).otherwise = 8;
  names.size(&Config::inner).otherwise = 9216;
  return names;
}

}  // namespace

const std::vector<FamilyNames>& families() {
  static const auto& all = *new std::vector<FamilyNames>{gpt2(),   llama(),  mistral(), qwen2(),    qwen3(), gemma(),
                                                         gemma2(), gemma3(), olmo2(),   gpt_neox(), opt()};
  return all;
}

std::string_view FamilyNames::key(std::int32_t TransformerConfig::*member) const {
  const auto found = std::ranges::find(sizes, member, &Size::member);
  return found == sizes.end() ? std::string_view() : found->key;
}

FamilyNames::Size& FamilyNames::size(std::int32_t TransformerConfig::*member) {
  return *std::ranges::find(sizes, member, &Size::member);
}

const FamilyNames& names_of(Family family) { return *std::ranges::find(families(), family, &FamilyNames::family); }

const FamilyNames& names_of(const Settings& file) {
  constexpr std::string_view key = "model_type";
  if (!file.has(key) && file.has("n_embd")) return names_of(Family::gpt2);
  std::vector<std::string_view> types;
  for (const FamilyNames& family : families()) types.push_back(family.model_type);
  file.require_one_of(key, types);
  return *std::ranges::find_if(families(), [&](const FamilyNames& family) { return file.is(key, family.model_type); });
}

}  // namespace tessera::internal
