// Files of named tensors in the safetensors format (github.com/huggingface/safetensors, README "Format"):
// u64 N | N bytes of JSON | tensors without gaps, little-endian, row-major.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// All element types of the format, in the order of the reference implementation.
// clang-format off
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // GCC takes a scoped name to hide the type of that name
enum class StoredType : std::uint8_t {
  boolean, f4, f6_e2m3, f6_e3m2, u8, i8, f8_e5m2, f8_e4m3, f8_e8m0, f8_e4m3fnuz, f8_e5m2fnuz,
  i16, u16, f16, bf16, i32, u32, f32, c64, f64, i64, u64,
};
#pragma GCC diagnostic pop
// clang-format on

/// The name in the file, such as "BF16".
std::string_view name(StoredType type);
/// Bits of one element, 4 to 64.
int bits(StoredType type);
/// The type of that name, which is case-sensitive; nothing if the format has no such type.
std::optional<StoredType> stored_type(std::string_view name);

/// One tensor of a file.
struct StoredTensor {
  std::string name;                  ///< UTF-8, any characters, may be empty
  StoredType type;                   ///< of the elements
  std::vector<std::uint64_t> shape;  ///< at most 64 extents; empty is a scalar; an extent may be zero
  std::uint64_t begin, size;         ///< its bytes in the file, little-endian, row-major
  std::uint32_t file = 0;            ///< index of the file, if there are several
};

/// An open safetensors file, or several that form one (shards). Copies are cheap and share it; names and shapes live as
/// long as any copy.
class SafeTensors {
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

  /// The path that was opened: the file, or the index.
  const std::filesystem::path& path() const;
  /// All tensors, file by file, in the order of their bytes.
  const std::vector<StoredTensor>& tensors() const&;
  /// The tensor of that name, or null.
  const StoredTensor* find(std::string_view name) const&;
  // On a temporary they would dangle: for (... : SafeTensors::open(path).tensors())
  void tensors() const&& = delete;
  void find(std::string_view name) const&& = delete;

  /// Reads bytes of one of its tensors from `begin` on, as many as `to` holds. Error if the file no longer has them.
  void read(const StoredTensor& tensor, std::span<std::byte> to, std::uint64_t begin = 0) const;
  /// All bytes of the tensor.
  std::vector<std::byte> read(const StoredTensor& tensor) const;

 private:
  struct Content;
  explicit SafeTensors(std::shared_ptr<const Content> content) : content_(std::move(content)) {}
  std::shared_ptr<const Content> content_;
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
