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
enum class Family : std::uint8_t { gpt2, llama, mistral, qwen2, qwen3, gemma, gemma2, gemma3, olmo2, gpt_neox, opt };

/// The norm of a row x: layer, (x - mean) / sqrt(variance + epsilon) weight + bias (Ba et al., 2016), rms,
/// x / sqrt(mean of x^2 + epsilon) weight (Zhang and Sennrich, 2019), or none, x.
enum class Norm : std::uint8_t { layer, rms, none };

/// The elements that have an rms norm of their own in queries and in keys, before their rotation: those of a head, or
/// of all heads (Dehghani et al., 2023).
enum class QkNorm : std::uint8_t { none, head, width };

/// How a model knows positions: by an embedding that is added to that of the token, or by rotating queries and keys
/// (RoPE, Su et al., 2021): pairs of the first r elements of a head, pair i at position p by the angle
/// p rotary_base^(-2 i / r).
enum class PositionEncoding : std::uint8_t { learned, rotary };

/// The elements of pair i among the r that are rotated, in the order of the file: i and i + r / 2, or 2 i and 2 i + 1.
/// In memory they are always i and i + d / 2 of a head, of width d.
enum class RotaryPairs : std::uint8_t { halves, neighbors };

/// How the frequencies of a model that was trained with shorter texts change, which were `positions` long. linear:
/// divided by `factor` (Chen et al., 2023). llama3: only those whose wavelength is above positions / low_frequency;
/// between that and positions / high_frequency partly (Llama 3.1). yarn: those that turn less often than beta_slow in
/// `positions`; between that and beta_fast partly, and cosines and sines have the factor attention_factor (Peng et al.,
/// 2023). `truncates`: bounds of that range are integers.
struct RotaryScaling {
  enum class Kind : std::uint8_t { none, linear, llama3, yarn };
  Kind kind = Kind::none;
  double factor = 1;                             ///< factor, at least 1
  double positions = 0;                          ///< original_max_position_embeddings
  double low_frequency = 1, high_frequency = 4;  ///< low_freq_factor, high_freq_factor
  double beta_fast = 32, beta_slow = 1;          ///< keys of these names
  double attention_factor = 1;                   ///< attention_factor
  bool truncates = true;                         ///< truncate
};

/// The activation of the MLP: GELU (Hendrycks and Gimpel, 2016), exact or by its tanh approximation, x sigmoid(x),
/// max(x, 0), or x itself.
enum class Activation : std::uint8_t { gelu_tanh, gelu, silu, relu, none };

/// A decoder-only transformer. Sizes and flags are data: models of every family have the same kernels. Comments name
/// the keys of config.json, GPT-2's and Llama's if they differ; docs/models.md has those of each family.
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
  float epsilon = 1e-5f;    ///< layer_norm_epsilon, rms_norm_eps: in (0, 1)
  float norm_offset = 0;    ///< that is added to the norms' weights in the file: 1 for Gemma
  bool norm_before = true;  ///< are the inputs of attention and of the MLP normalized?
  bool norm_after = false;  ///< are their outputs, before they are added to the residual stream?
  bool parallel = false;    ///< use_parallel_residual: attention and the MLP have the same input, before its norms

  PositionEncoding position_encoding = PositionEncoding::learned;
  std::int32_t position_offset = 0;  ///< rows of the positions' embedding before that of the first
  double rotary_base = 10000;        ///< rope_theta
  std::int32_t rotary_width = 0;     ///< partial_rotary_factor: of a head; 0: all of it
  RotaryPairs rotary_pairs = RotaryPairs::halves;
  RotaryScaling rotary_scaling = {};             ///< rope_scaling
  std::optional<double> local_rotary_base = {};  ///< rope_local_base_freq: of layers with a window, unscaled

  /// A query sees so many keys, its own included, in the layers for which is_local(); 0: all (sliding_window).
  std::int32_t window = 0;
  std::vector<bool> local_layers = {};  ///< layer_types: which have the window; empty: all
  QkNorm qk_norm = QkNorm::none;
  float score_cap = 0;  ///< attn_logit_softcapping: scores s become cap tanh(s / cap); 0: they stay
  float logit_cap = 0;  ///< final_logit_softcapping: logits, too

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
  /// Elements of a head that are rotated.
  std::int32_t rotated_width() const { return rotary_width > 0 ? rotary_width : head_width(); }
  bool is_rotary() const { return position_encoding == PositionEncoding::rotary; }
  /// Do queries of this layer, from 0, see only a window of keys?
  bool is_local(std::int32_t layer) const {
    return window > 0 && (local_layers.empty() || local_layers[static_cast<std::size_t>(layer)]);
  }
  /// Is there an rms norm of queries, or keys, of `columns` in all, and how many weights has it?
  std::int32_t norm_width(std::int32_t columns) const {
    return qk_norm == QkNorm::none ? 0 : qk_norm == QkNorm::head ? head_width() : columns;
  }
  Norm norm_of_inputs() const { return norm_before ? norm : Norm::none; }
};

/// The number of weights, with those of the head if it is a matrix of its own. Error as check().
std::int64_t parameter_count(const TransformerConfig& config);

/// Error that names key, value and the allowed range, unless every size is in its range (so that a product of any three
/// fits 63 bits), heads divides the width or there is a head_size, the heads of keys divide those of queries, and a
/// head that is rotated, and the part of it that is, have an even width; epsilon is in (0, 1), the rotary bases in
/// (1, 10^12), attention_scale and the caps at least 0, other factors finite, and local_layers has one flag a layer.
/// Norms of queries and keys need a rotation, norms of outputs Norm::rms. bos and eos may be outside of the vocabulary:
/// no logit belongs to such a token.
void check(const TransformerConfig& config);
/// Error that names the first token that is not in the vocabulary.
void check_vocabulary(std::span<const std::int32_t> ids, const TransformerConfig& config);

/// Reads `folder`/config.json and checks it, by the names of its model_type: gpt2, llama, mistral, qwen2, qwen3, gemma,
/// gemma2, gemma3_text, olmo2, gpt_neox or opt. Without one, a file with GPT-2's n_embd is a GPT-2. Other keys have the
/// defaults of transformers, but most sizes are required. Unknown keys are ignored. Error that names file, key and
/// value for what no kernel computes: another model_type, activation or rope_type, mixtures of experts, bidirectional
/// or cross attention, images, quantized weights. (reorder_and_upcast_attn only changes precision, and is accepted.)
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
