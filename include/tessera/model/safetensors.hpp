// Files of named tensors in the safetensors format (github.com/huggingface/safetensors, README "Format"):
// u64 N | N bytes of JSON | tensors without gaps, little-endian, row-major.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/model/stored.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// The type of that name, which is case-sensitive; nothing if the format has no such type.
std::optional<StoredType> stored_type(std::string_view name);

/// An open safetensors file, or several that form one (shards).
class SafeTensors : public StoredFile {
 public:
  /// Reads and checks the header: every result is inside the file and follows the rules of the format, as strictly as
  /// the README and the reference implementation together. Three things are rejected beyond these rules: more than 64
  /// extents, keys of a tensor other than dtype, shape and data_offsets, and a duplicate in `__metadata__`. Error that
  /// names the file and the tensor otherwise; files that are commonly mistaken for weights (a Git-LFS pointer, a web
  /// page, a PyTorch archive) are recognized by name. Time and memory are linear in the header, which is at most 100
  /// MB, apart from sorting the tensors.
  static SafeTensors open(const std::filesystem::path& path);
  /// Opens the files that an index (shard_index.hpp) names, which are in the same folder, each as above. They must hold
  /// exactly the tensors that the index assigns to them, and total_size bytes in all if it is given; otherwise Error
  /// that names the mismatch.
  static SafeTensors open_shards(const std::filesystem::path& index);

 private:
  struct Reader;
  using StoredFile::StoredFile;
};

/// A tensor to be written: its type and shape in the file, and its bytes, little-endian and row-major.
struct TensorBytes {
  std::string name;
  StoredType type;
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> bytes;
};

/// Writes a file that holds `tensors`, widest elements first, so that each is aligned to its element size. It is
/// written through an OutputFile: it appears under `path` complete or not at all, unless that is a device or a pipe.
/// Error that names path and reason if the format forbids the input, or if the file system fails.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorBytes> tensors);

}  // namespace internal
}  // namespace tessera
