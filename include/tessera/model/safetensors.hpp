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

/// The element types of the format, all of them, in the order of the reference implementation.
// clang-format off
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // GCC takes a scoped name to hide the type of that name
enum class StoredType : std::uint8_t {
  boolean, f4, f6_e2m3, f6_e3m2, u8, i8, f8_e5m2, f8_e4m3, f8_e8m0, f8_e4m3fnuz, f8_e5m2fnuz,
  i16, u16, f16, bf16, i32, u32, f32, c64, f64, i64, u64,
};
#pragma GCC diagnostic pop
// clang-format on

/// The name in the file, as "BF16".
std::string_view name(StoredType type);
/// Bits of one element, 4 to 64.
int bits(StoredType type);
/// The type of that name, which is case-sensitive; nothing if the format has none such.
std::optional<StoredType> stored_type(std::string_view name);

/// One tensor of a file.
struct StoredTensor {
  std::string name;                  ///< UTF-8, any characters, may be empty
  StoredType type;                   ///< of the elements
  std::vector<std::uint64_t> shape;  ///< at most 64 extents; empty is a scalar; an extent may be zero
  std::uint64_t begin, size;         ///< its bytes in the file, little-endian, row-major
  std::uint32_t file = 0;            ///< in which, where there are several
};

/// A safetensors file, or several that are one (shards), open. Copies are cheap and share it; names and shapes live as
/// long as any copy.
class SafeTensors {
 public:
  /// Reads the header and checks it: whatever is returned lies inside the file and follows every rule of the format, of
  /// which this reader is as strict as the README and the reference implementation together. Three narrowings: more
  /// than 64 extents, keys of a tensor beside dtype, shape and data_offsets, and a duplicate in __metadata__ are
  /// refused. Error, naming the file and the tensor, otherwise; what is commonly mistaken for weights (a Git-LFS
  /// pointer, a web page, a PyTorch archive) is called by its name. Time and memory are linear in the header, of at
  /// most 100 MB, but for sorting the tensors.
  static SafeTensors open(const std::filesystem::path& path);
  /// Opens the files that an index (shard_index.hpp) names, which lie beside it, each as above. They must hold the
  /// tensors that the index gives to them and no others, total_size bytes in all if it says so; Error, naming what
  /// does not agree, otherwise.
  static SafeTensors open_shards(const std::filesystem::path& index);

  /// What was opened: the file, or the index.
  const std::filesystem::path& path() const;
  /// All tensors, file after file, in the order of their bytes.
  const std::vector<StoredTensor>& tensors() const&;
  /// The tensor of that name, or null.
  const StoredTensor* find(std::string_view name) const&;
  // Of a temporary they would dangle: for (... : SafeTensors::open(path).tensors())
  void tensors() const&& = delete;
  void find(std::string_view name) const&& = delete;

  /// Reads bytes of one of its tensors, those from `begin` on, as many as `to` takes. Error if they are no longer
  /// there.
  void read(const StoredTensor& tensor, std::span<std::byte> to, std::uint64_t begin = 0) const;
  /// All of them.
  std::vector<std::byte> read(const StoredTensor& tensor) const;

 private:
  struct Content;
  explicit SafeTensors(std::shared_ptr<const Content> content) : content_(std::move(content)) {}
  std::shared_ptr<const Content> content_;
};

/// A tensor to be written: as it will be stored, and its bytes, little-endian and row-major.
struct TensorBytes {
  std::string name;
  StoredType type;
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> bytes;
};

/// Writes a file that holds `tensors`, widest elements first, so that each is aligned to its own size, as an
/// OutputFile: it appears under `path` complete or not at all, unless that is a device or a pipe. Error, naming path
/// and reason, on an input that the format forbids or a failure of the file system.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorBytes> tensors);

}  // namespace internal
}  // namespace tessera
