// The names that families of models have in files: keys of config.json, tensors of the weights. A family whose parts
// TransformerConfig has is one more description, and one name in Family.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/files/settings.hpp"
#include "tessera/model/config.hpp"

namespace tessera::internal {

struct FamilyNames {
  struct Size {
    std::string_view key;
    std::int32_t TransformerConfig::*member;
    std::string_view old_key = {};               ///< in older files
    std::optional<std::int32_t> otherwise = {};  ///< if no key says it; without one, a key must
  };
  /// The tensors of a layer's weights, behind the layer's prefix: several are side by side along the columns.
  struct Layer {
    using Parts = std::vector<std::string_view>;
#define LAYER_VECTOR(member, size, initial, is_stored) Parts member = {};
#define LAYER_MATRIX(member, rows, columns) Parts member = {};
#include "model/layer_weights.def"
  };

  /// The family in GGUF files: gguf_config.hpp has the names of keys and of tensors, which are those of all families.
  struct Gguf {
    std::string_view architecture = {};  ///< general.architecture; empty: there are no such files
    bool neighbors = false;              ///< are pairs that are rotated neighbors, by a permutation of the rows?
  };

  Family family;
  std::string_view model_type;
  std::vector<Size> sizes;
  std::int32_t inner_of_width = 0;  ///< so many times the model's is the MLP's width if no key says it; 0: one must
  std::string_view epsilon = {};    ///< key of the norms' epsilon; empty: it is the default
  float default_epsilon = 1e-5f;
  /// Reads the parts of the model, behind its sizes; Error for what no kernel computes.
  void (*read)(const Settings& file, TransformerConfig& config);
  std::optional<std::int32_t> bos = {};  ///< if no key says it
  std::vector<std::int32_t> eos = {};    ///< the same

  std::string_view prefix;  ///< which all tensors but the head may have
  std::string_view embedding, positions = {}, last_norm, last_norm_bias = {};
  std::string_view head = "lm_head.weight";    ///< if it is a matrix of its own
  std::string_view layer;                      ///< prefix of a layer's tensors, with its number for {}
  bool is_out_in;                              ///< are matrices stored as [out, in]?
  std::vector<std::string_view> ignored = {};  ///< endings of a layer's tensors that are not weights
  std::vector<std::string_view> ignored_beside_layers = {};  ///< tensors outside of layers that are not weights
  /// Is one tensor QKV, with the queries, keys and values of a head side by side, head after head?
  bool qkv_by_head = false;
  Layer weights;
  Gguf gguf = {};  ///< in files of that format

  Size& size(std::int32_t TransformerConfig::*member);
  /// The key of a size; empty if the family has none.
  std::string_view key(std::int32_t TransformerConfig::*member) const;
};

const FamilyNames& names_of(Family family);
/// All families.
const std::vector<FamilyNames>& families();
/// Those of a file's model_type. Without one they are GPT-2's if the file has its n_embd. Error if it is unknown.
const FamilyNames& names_of(const Settings& file);

/// The configuration that a config.json, or a file with the same keys, describes: see read_config().
TransformerConfig config_of(const Settings& file);

}  // namespace tessera::internal
