// A trained model: its configuration and every weight by its position in the network.
#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "tessera/model/config.hpp"
#include "tessera/model/stored.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// Rows of a tensor in a file that follow one another; of a vector, elements.
struct StoredRun {
  std::int64_t first = 0, count = 0;
  bool operator==(const StoredRun&) const = default;
};

/// A tensor of a file, or some of its rows.
struct StoredPart {
  const StoredTensor* tensor = nullptr;
  std::vector<StoredRun> rows = {};  ///< in the order of memory; none: all of them, as they are
  const StoredTensor* operator->() const { return tensor; }
  bool operator==(const StoredPart&) const = default;
};
/// The parts of a file that are one weight of a model, side by side along its columns; none: the file has no such
/// weight. Only parts of [out, in] matrices and of vectors are in rows.
using StoredParts = std::vector<StoredPart>;

/// A model folder in the Hugging Face layout, or a GGUF file, opened and checked: all weights exist, with the shapes
/// below, each of type F32, F16 or BF16, or of blocks. C = width, Q = query_width(), K = key_width(), d = head_width(),
/// I = inner; matrices are [in, out]: y = x w + b, or [out, in] in files of a family that stores them so, and in GGUF.
/// Weights are read from `file`.
struct Checkpoint {
  /// One transformer layer.
  struct Layer {
    StoredParts attention_norm, attention_norm_bias;  ///< [C], [C]
    StoredParts qkv, qkv_bias;                        ///< [C, Q + 2 K], [Q + 2 K]: queries, keys, values
    StoredParts query_norm, key_norm;                 ///< [d] of a head, or [Q] and [K]
    StoredParts projection, projection_bias;          ///< [Q, C], [C]
    StoredParts attention_post_norm;                  ///< [C]
    StoredParts mlp_norm, mlp_norm_bias;              ///< [C], [C]
    StoredParts up, up_bias;                          ///< [C, I], [I], or gate and up, [C, 2 I], [2 I]
    StoredParts down, down_bias;                      ///< [I, C], [C]
    StoredParts mlp_post_norm;                        ///< [C]
  };

  TransformerConfig config;
  GenerationDefaults defaults;
  StoredFile file;
  const StoredTensor* embedding = nullptr;                             ///< [vocab, C]
  StoredPart positions = {};                                           ///< [positions, C]; none for rotary ones
  const StoredTensor *last_norm = nullptr, *last_norm_bias = nullptr;  ///< [C], [C]; no bias for Norm::rms
  const StoredTensor* head = nullptr;  ///< [vocab, C]: lm_head.weight, or the embedding if they are the same
  bool is_out_in = false;              ///< are matrices [out, in] in the file?
  std::vector<Layer> layers;

  /// Opens config.json, the weights and, if it exists, generation_config.json in `folder`. Weights are in
  /// model.safetensors or, if it does not exist, in the files that model.safetensors.index.json names (shards). Names
  /// may have the prefix of their family, such as "transformer.". As in transformers 5, a model whose config.json has
  /// tie_word_embeddings may store the token embedding only as lm_head.weight; if both exist and differ, both are used
  /// and a warning names the key. Tensors of old files that are no weights (causal masks, rotary_emb.inv_freq) are
  /// ignored. Error that names the file if anything is missing or wrong; one message lists all weights that are
  /// missing, unknown, of another shape or of an unsupported type.
  ///
  /// A `.gguf` file, one of its parts, or a folder that has one and no config.json, is a model, too: its metadata is
  /// the configuration (docs/gguf.md), and weights may have the types Q8_0, Q4_0, Q4_1, Q4_K and Q6_K.
  static Checkpoint open(const std::filesystem::path& path);
};

}  // namespace internal
}  // namespace tessera
