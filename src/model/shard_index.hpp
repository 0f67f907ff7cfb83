// The index of weights in several safetensors files, as transformers writes it:
// {"metadata": {"total_size": bytes}, "weight_map": {tensor: file, ...}}.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tessera::internal {

/// Which tensor lies in which file.
struct ShardIndex {
  struct Entry {
    std::string tensor;
    std::uint32_t file;  ///< of `files`
  };
  std::vector<std::string> files;         ///< plain names, of files beside the index, each once
  std::vector<Entry> tensors;             ///< sorted by name, each once
  std::optional<std::string> total_size;  ///< metadata.total_size, which should be the bytes of all tensors, as it is
};

/// Reads an index of at most 64 MiB, in time and memory linear in it but for sorting the names. Keys that are not
/// named above are ignored. Error, naming the file, if it is no such JSON, has a tensor or one of its own keys twice,
/// or names a file by anything but a plain name.
ShardIndex read_shard_index(const std::filesystem::path& path);

}  // namespace tessera::internal
