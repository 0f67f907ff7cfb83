// What a GPT-2 model is, beside its weights: sizes and defaults, from a Hugging Face folder or by name.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// The activation of the MLP, GELU (Hendrycks and Gimpel, 2016): its approximation by tanh, as GPT-2 has it, or exact.
enum class Gelu : std::uint8_t { tanh, exact };

/// The sizes of a GPT-2 model. In comments and messages they go by the keys of config.json.
struct Gpt2Config {
  std::int32_t vocab = 0;           ///< vocab_size: tokens, up to 2^20
  std::int32_t positions = 0;       ///< n_positions: tokens of context, up to 2^20
  std::int32_t width = 0;           ///< n_embd: of the residual stream, up to 2^15
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

/// Error, naming key, value and what is allowed, unless every size lies in its range (so that a product of any three
/// fits 63 bits) and heads divide the width. bos and eos may lie outside of the vocabulary: no logit names such a
/// token.
void check(const Gpt2Config& config);

/// Reads `folder`/config.json and checks it. Required are vocab_size, n_positions (or n_ctx), n_embd, n_layer and
/// n_head; the others have the defaults of transformers (n_inner: 4 n_embd). Unknown keys are ignored; Error, naming
/// file, key and value, on what would need other arithmetic: another model_type, an activation_function that is no
/// GELU, scale_attn_weights false, scale_attn_by_inverse_layer_idx, add_cross_attention. (reorder_and_upcast_attn is no
/// more than a choice of precision.)
Gpt2Config read_config(const std::filesystem::path& folder);

/// How a model wishes to be sampled, as far as it says so.
struct GenerationDefaults {
  std::optional<double> temperature, top_p, min_p, repetition_penalty;
  std::optional<int> top_k;
  std::optional<bool> do_sample;
  std::optional<int> max_new_tokens;  ///< tokens of a text without its prompt, at most
  std::optional<int> max_length;      ///< with its prompt; max_new_tokens, where both are there, is what holds
  std::vector<std::int32_t> eos;      ///< tokens that end a text; not checked against a vocabulary
  std::vector<std::string> ignored;   ///< keys that change what transformers generates, and that Tessera does not obey
};

/// Reads `folder`/generation_config.json; all empty if there is none. Unknown keys and null are ignored; Error, naming
/// file, key and value, on a value of the wrong type.
GenerationDefaults read_generation_config(const std::filesystem::path& folder);

/// A model without weights.
struct Preset {
  std::string_view name;
  Gpt2Config config;
};

/// The four GPT-2 of OpenAI and small relatives of them, all with its vocabulary and context of 1024.
const std::vector<Preset>& presets();

/// The preset of that name; Error, listing the names, if there is none.
Gpt2Config preset(std::string_view name);

}  // namespace internal
}  // namespace tessera
