// Models in GGUF files: which file is meant, its configuration, and the names of its tensors, which all families share.
#pragma once
#include <filesystem>
#include <optional>
#include <string_view>

#include "model/files/families.hpp"
#include "tessera/model/config.hpp"
#include "tessera/model/gguf.hpp"

namespace tessera::internal {

/// The GGUF file that a path means: itself, or the only one, maybe in parts, of a folder without config.json. Nothing if
/// it means a folder in another layout. Error that lists them if a folder has several.
std::optional<std::filesystem::path> gguf_at(const std::filesystem::path& path);

/// The configuration of a file and the names of its tensors.
struct GgufModel {
  TransformerConfig config;
  FamilyNames names;
};
/// Reads the metadata as the keys of config.json to which its keys correspond, by the family with its
/// general.architecture. Error that names file and key for what is missing or what no kernel computes.
GgufModel read_gguf_config(const Gguf& file);

/// The names of a family's tensors in GGUF files.
FamilyNames gguf_names(const FamilyNames& family);

/// The keys of the sizes of a model, behind the architecture's name and a dot.
struct GgufSize {
  std::string_view key;
  std::int32_t TransformerConfig::*member;
};
inline constexpr GgufSize gguf_sizes[] = {
    {"context_length", &TransformerConfig::positions},
    {"embedding_length", &TransformerConfig::width},
    {"block_count", &TransformerConfig::layers},
    {"attention.head_count", &TransformerConfig::heads},
    {"attention.head_count_kv", &TransformerConfig::key_value_heads},
    {"attention.key_length", &TransformerConfig::head_size},
    {"feed_forward_length", &TransformerConfig::inner},
};

}  // namespace tessera::internal
