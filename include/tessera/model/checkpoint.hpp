// A trained model: its configuration and every weight by its position in the network.
#pragma once
#include <filesystem>
#include <vector>

#include "tessera/model/config.hpp"
#include "tessera/model/safetensors.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// A model folder in the Hugging Face layout, opened and checked: all weights exist, with the shapes below, each of
/// type F32, F16 or BF16. C = width, I = inner; matrices are [in, out]: y = x w + b. Weights are read from `file`.
struct Checkpoint {
  /// One transformer layer.
  struct Layer {
    const StoredTensor *ln_1_weight, *ln_1_bias;  ///< [C], [C]
    const StoredTensor *attn_weight, *attn_bias;  ///< [C, 3 C], [3 C]: query, key, value side by side
    const StoredTensor *proj_weight, *proj_bias;  ///< [C, C], [C]
    const StoredTensor *ln_2_weight, *ln_2_bias;  ///< [C], [C]
    const StoredTensor *fc_weight, *fc_bias;      ///< [C, I], [I]
    const StoredTensor *out_weight, *out_bias;    ///< [I, C], [C]
  };

  Gpt2Config config;
  GenerationDefaults defaults;
  SafeTensors file;
  const StoredTensor* wte = nullptr;                                ///< [vocab, C]
  const StoredTensor* wpe = nullptr;                                ///< [positions, C]
  const StoredTensor *ln_f_weight = nullptr, *ln_f_bias = nullptr;  ///< [C], [C]
  const StoredTensor* head = nullptr;  ///< [vocab, C]: lm_head.weight, or wte if they are the same
  std::vector<Layer> layers;

  /// Opens config.json, the weights and, if it exists, generation_config.json in `folder`. Weights are in
  /// model.safetensors or, if it does not exist, in the files that model.safetensors.index.json names (shards). Names
  /// may have the prefix "transformer.". As in transformers 5, a model whose config.json has tie_word_embeddings may
  /// store the token embedding only as lm_head.weight; if both exist and differ, both are used and a warning names the
  /// key. The causal masks in old files (attn.bias, attn.masked_bias) are ignored.
  /// Error that names the file if anything is missing or wrong; one message lists all weights that are missing,
  /// unknown, of another shape or of an unsupported type.
  static Checkpoint open(const std::filesystem::path& folder);
};

}  // namespace internal
}  // namespace tessera
