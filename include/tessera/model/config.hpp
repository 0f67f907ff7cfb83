// The configuration of a GPT-2 model, apart from its weights: sizes and defaults, from a Hugging Face folder or by
// name.
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

/// The activation of the MLP, GELU (Hendrycks and Gimpel, 2016): exact, or its tanh approximation, which GPT-2 uses.
enum class Gelu : std::uint8_t { tanh, exact };

/// The sizes of a GPT-2 model. Comments and messages use the keys of config.json.
struct Gpt2Config {
  std::int32_t vocab = 0;           ///< vocab_size: tokens, up to 2^20
  std::int32_t positions = 0;       ///< n_positions: tokens of context, up to 2^20
  std::int32_t width = 0;           ///< n_embd: width of the residual stream, up to 2^15
  std::int32_t layers = 0;          ///< n_layer: up to 2^10
  std::int32_t heads = 0;           ///< n_head: divides width
  std::int32_t inner = 0;           ///< n_inner: width of the MLP, up to 2^17
  float epsilon = 1e-5f;            ///< layer_norm_epsilon: in (0, 1)
  Gelu gelu = Gelu::tanh;           ///< activation_function: gelu_new or gelu_pytorch_tanh, or gelu
  std::optional<std::int32_t> bos;  ///< bos_token_id
  std::vector<std::int32_t> eos;    ///< eos_token_id: one, or several
  bool tied = true;                 ///< tie_word_embeddings: head and token embedding are one matrix

  /// Width of one attention head.
  std::int32_t head_width() const { return width / heads; }
};

/// Error that names key, value and the allowed range, unless every size is in its range (so that a product of any three
/// fits 63 bits) and heads divides the width. bos and eos may be outside of the vocabulary: no logit belongs to such a
/// token.
void check(const Gpt2Config& config);
/// Error that names the first token that is not in the vocabulary.
void check_vocabulary(std::span<const std::int32_t> ids, const Gpt2Config& config);

/// Reads `folder`/config.json and checks it. Required keys are vocab_size, n_positions (or n_ctx), n_embd, n_layer and
/// n_head; the others have the defaults of transformers (n_inner: 4 n_embd). Unknown keys are ignored. Error that names
/// file, key and value for settings that need different arithmetic: another model_type, an activation_function that is
/// not a GELU, scale_attn_weights false, scale_attn_by_inverse_layer_idx, add_cross_attention. (reorder_and_upcast_attn
/// only changes precision, and is accepted.)
Gpt2Config read_config(const std::filesystem::path& folder);

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
  Gpt2Config config;
};

/// The four GPT-2 models of OpenAI and small relatives, all with its vocabulary and context of 1024.
const std::vector<Preset>& presets();

/// The preset of that name; Error that lists the names if it does not exist.
Gpt2Config preset(std::string_view name);

}  // namespace internal
}  // namespace tessera
