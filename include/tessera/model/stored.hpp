// Named tensors in files, whatever the format: safetensors.hpp and gguf.hpp open them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// All element types of safetensors, in the order of its reference implementation, then those of GGUF whose elements
/// are in blocks: 32 of Q8_0, Q4_0 and Q4_1, 256 of Q4_K and Q6_K (src/model/unpack_kernels.hpp has their layouts).
// clang-format off
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // GCC takes a scoped name to hide the type of that name
enum class StoredType : std::uint8_t {
  boolean, f4, f6_e2m3, f6_e3m2, u8, i8, f8_e5m2, f8_e4m3, f8_e8m0, f8_e4m3fnuz, f8_e5m2fnuz,
  i16, u16, f16, bf16, i32, u32, f32, c64, f64, i64, u64,
  q8_0, q4_0, q4_1, q4_k, q6_k,
};
#pragma GCC diagnostic pop
// clang-format on

/// The name in the file, such as "BF16" or "Q4_K".
std::string_view name(StoredType type);
/// Elements of a block, of which a row has a whole number: 1 for types without blocks.
int elements_of_block(StoredType type);
/// Bits of one element, 4 to 64, or of a block.
int bits(StoredType type);

/// One tensor of a file.
struct StoredTensor {
  std::string name;                  ///< UTF-8, any characters, may be empty
  StoredType type;                   ///< of the elements
  std::vector<std::uint64_t> shape;  ///< at most 64 extents; empty is a scalar; an extent may be zero
  std::uint64_t begin, size;         ///< its bytes in the file, little-endian, row-major
  std::uint32_t file = 0;            ///< index of the file, if there are several
};

/// Open files of named tensors. Copies are cheap and share them; names and shapes live as long as any copy.
class StoredFile {
 public:
  /// The path that was opened: the file, or the index of several.
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

  struct Content;

 protected:
  explicit StoredFile(std::shared_ptr<const Content> content) : content_(std::move(content)) {}

 private:
  std::shared_ptr<const Content> content_;
};

}  // namespace internal
}  // namespace tessera
