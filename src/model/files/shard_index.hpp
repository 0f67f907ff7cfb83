// The index of weights in several safetensors files, as transformers writes it:
// {"metadata": {"total_size": bytes}, "weight_map": {tensor: file, ...}}.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tessera::internal {

/// Which file contains which tensor.
struct ShardIndex {
  struct Entry {
    std::string tensor;
    std::uint32_t file;  ///< index into `files`
  };
  std::vector<std::string> files;         ///< plain names of files beside the index, each once
  std::vector<Entry> tensors;             ///< sorted by name, each once
  std::optional<std::string> total_size;  ///< metadata.total_size, unchanged; it should be the bytes of all tensors
};

/// Reads an index of at most 64 MiB. Time and memory are linear in its size, except for sorting the names. Keys other
/// than those above are ignored. Throws Error that names the file if it is not such JSON, has a tensor or one of its
/// own keys twice, or gives a file by anything but a plain name.
ShardIndex read_shard_index(const std::filesystem::path& path);

}  // namespace tessera::internal
