// The description of a transformer, apart from its weights: its parts, sizes and defaults, from a Hugging Face folder
// or by name.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// The names that keys of config.json and tensors of weights have: see src/model/files/families.cpp.
enum class Family : std::uint8_t { gpt2, llama };

/// The norm of a row x: layer, (x - mean) / sqrt(variance + epsilon) weight + bias (Ba et al., 2016), or rms,
/// x / sqrt(mean of x^2 + epsilon) weight (Zhang and Sennrich, 2019).
enum class Norm : std::uint8_t { layer, rms };

/// How a model knows positions: by an embedding that is added to that of the token, or by rotating queries and keys
/// (RoPE, Su et al., 2021): elements i and i + d / 2 of a head, of width d, at position p by the angle
/// p rotary_base^(-2 i / d).
enum class PositionEncoding : std::uint8_t { learned, rotary };

/// The activation of the MLP: GELU (Hendrycks and Gimpel, 2016), exact or by its tanh approximation, x sigmoid(x), or
/// max(x, 0).
enum class Activation : std::uint8_t { gelu_tanh, gelu, silu, relu };

/// A decoder-only transformer with norms in front of attention and of the MLP. Sizes and flags are data: models of
/// every family have the same kernels. Comments name the keys of config.json, GPT-2's and Llama's if they differ.
struct TransformerConfig {
  Family family = Family::gpt2;      ///< model_type
  std::int32_t vocab = 0;            ///< vocab_size: tokens, up to 2^20
  std::int32_t positions = 0;        ///< n_positions, max_position_embeddings: tokens of context, up to 2^20
  std::int32_t width = 0;            ///< n_embd, hidden_size: width of the residual stream, up to 2^15
  std::int32_t layers = 0;           ///< n_layer, num_hidden_layers: up to 2^10
  std::int32_t heads = 0;            ///< n_head, num_attention_heads: of queries, up to 2^12
  std::int32_t inner = 0;            ///< n_inner, intermediate_size: width of the MLP, up to 2^17
  std::int32_t key_value_heads = 0;  ///< num_key_value_heads: divides heads, each for as many queries; 0: heads
  std::int32_t head_size = 0;        ///< head_dim: width of a head; 0: width / heads

  Norm norm = Norm::layer;
  float epsilon = 1e-5f;  ///< layer_norm_epsilon, rms_norm_eps: in (0, 1)
  PositionEncoding position_encoding = PositionEncoding::learned;
  double rotary_base = 10000;                     ///< rope_theta
  Activation activation = Activation::gelu_tanh;  ///< activation_function, hidden_act
  /// Is the MLP down(activation(gate(x)) up(x)) (GLU, Shazeer, 2020), not down(activation(up(x)))?
  bool gated = false;
  bool qkv_bias = true, projection_bias = true, mlp_bias = true;  ///< attention_bias (the first two), mlp_bias

  float attention_scale = 0;     ///< factor of the scores; 0: 1 / sqrt(head_width())
  bool scales_by_layer = false;  ///< scale_attn_by_inverse_layer_idx: divided by the number of the layer, from 1
  float embedding_scale = 1;     ///< factor of the token's embedding
  bool tied = true;              ///< tie_word_embeddings: head and token embedding are one matrix

  std::optional<std::int32_t> bos;  ///< bos_token_id
  std::vector<std::int32_t> eos;    ///< eos_token_id: one, or several

  /// Width of one attention head.
  std::int32_t head_width() const { return head_size > 0 ? head_size : width / heads; }
  /// Heads of keys, and of values.
  std::int32_t key_heads() const { return key_value_heads > 0 ? key_value_heads : heads; }
  std::int32_t query_width() const { return heads * head_width(); }
  std::int32_t key_width() const { return key_heads() * head_width(); }  ///< of keys, and of values
  std::int32_t qkv_width() const { return query_width() + 2 * key_width(); }
  std::int32_t up_width() const { return gated ? 2 * inner : inner; }  ///< of the MLP's first matmul
};

/// The number of weights, with those of the head if it is a matrix of its own. Error as check().
std::int64_t parameter_count(const TransformerConfig& config);

/// Error that names key, value and the allowed range, unless every size is in its range (so that a product of any three
/// fits 63 bits), heads divides the width or there is a head_size, the heads of keys divide those of queries, and a
/// head that is rotated has an even width; epsilon is in (0, 1), rotary_base in (1, 10^12), attention_scale at least 0,
/// and embedding_scale finite. bos and eos may be outside of the vocabulary: no logit belongs to such a token.
void check(const TransformerConfig& config);
/// Error that names the first token that is not in the vocabulary.
void check_vocabulary(std::span<const std::int32_t> ids, const TransformerConfig& config);

/// Reads `folder`/config.json and checks it, by the names of its model_type, gpt2 (the default) or llama. Required are
/// the sizes; the others have the defaults of transformers (n_inner: 4 n_embd). Unknown keys are ignored. Error that
/// names file, key and value for what no kernel computes: another model_type or activation, add_cross_attention, a
/// rope_type other than default, is_causal false, a quantization_config. (reorder_and_upcast_attn only changes
/// precision, and is accepted.)
TransformerConfig read_config(const std::filesystem::path& folder);

/// Sampling defaults of a model, as far as they are given.
struct GenerationDefaults {
  std::optional<double> temperature, top_p, min_p, repetition_penalty;
  std::optional<int> top_k;
  std::optional<bool> do_sample;
  std::optional<int> max_new_tokens;  ///< maximum number of tokens without the prompt
  std::optional<int> max_length;      ///< the same with the prompt; if both are given, max_new_tokens counts
  std::vector<std::int32_t> eos;      ///< tokens that end a text; not checked against the vocabulary
  std::vector<std::string> ignored;   ///< keys that change the output of transformers, and that Tessera ignores
};

/// Reads `folder`/generation_config.json; all empty if the file does not exist. Unknown keys and null are ignored;
/// Error that names file, key and value if a value has the wrong type.
GenerationDefaults read_generation_config(const std::filesystem::path& folder);

/// A model without weights.
struct Preset {
  std::string_view name;
  TransformerConfig config;
};

/// The four GPT-2 models of OpenAI and small relatives, all with its vocabulary and context of 1024, and two Llamas,
/// SmolLM2 (Ben Allal et al., 2025).
const std::vector<Preset>& presets();

/// The preset of that name; Error that lists the names if it does not exist.
TransformerConfig preset(std::string_view name);

}  // namespace internal
}  // namespace tessera
