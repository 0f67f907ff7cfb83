// Files of metadata and named tensors in the GGUF format of llama.cpp (github.com/ggml-org/ggml, docs/gguf.md):
// "GGUF" | u32 version | u64 tensors | u64 entries | metadata | descriptions of tensors | aligned tensors.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tessera/model/safetensors.hpp"
#include "tessera/model/stored.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// The types of metadata, by their numbers in files.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // GCC takes a scoped name to hide the type of that name
enum class GgufType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };
#pragma GCC diagnostic pop

/// Items of one type. Unsigned integers of any width are u64 here, signed ones i64, and floating-point ones double.
struct GgufArray {
  GgufType type = GgufType::u8;  ///< of the items in the file
  std::variant<std::vector<bool>, std::vector<std::int64_t>, std::vector<std::uint64_t>, std::vector<double>,
               std::vector<std::string>, std::vector<GgufArray>>
      items;
  bool operator==(const GgufArray&) const = default;
};
using GgufValue = std::variant<bool, std::int64_t, std::uint64_t, double, std::string, GgufArray>;

/// One entry of the metadata.
struct GgufEntry {
  std::string key;  ///< such as "llama.context_length"
  GgufType type;    ///< in the file
  GgufValue value;
  bool operator==(const GgufEntry&) const = default;
};

/// An open GGUF file, or the parts of one (name-00001-of-00003.gguf). Shapes are row-major, as everywhere here: in the
/// file, extents are in the opposite order.
class Gguf : public StoredFile {
 public:
  /// Reads and checks the header of a file of version 2 or 3, little-endian. Every result is inside the file: counts
  /// and lengths are compared with its size before memory is allocated for them. The types of tensors are F32, F16,
  /// BF16, Q8_0, Q4_0, Q4_1, Q4_K and Q6_K, and the integers and F64 of the format. If its split.count is above 1, it
  /// opens all parts, which are beside it. Error that names file and key or tensor for anything else: other versions
  /// and byte orders, a file or a value that is cut, keys and tensors that occur twice, names that are not UTF-8,
  /// tensors that overlap, are not aligned or end outside of the file, shapes that overflow or whose rows have no whole
  /// number of blocks, parts that are missing or do not belong together. A header has at most 256 MiB, arrays at most 8
  /// levels.
  static Gguf open(const std::filesystem::path& path);

  /// The metadata, in the order of the file; of the first part, if there are several.
  const std::vector<GgufEntry>& metadata() const&;
  void metadata() const&& = delete;

  /// Values by key: null, or nothing, if there is no such key. Error that names file and key if it has another type.
  const std::string* text(std::string_view key) const;
  std::optional<bool> flag(std::string_view key) const;
  /// A number of any integer type.
  std::optional<std::int64_t> integer(std::string_view key) const;
  const std::vector<std::string>* texts(std::string_view key) const;
  /// An array of any integer, or of any floating-point type.
  std::optional<std::vector<std::int64_t>> integers(std::string_view key) const;
  const std::vector<double>* numbers(std::string_view key) const;
  /// The value of any type, or null.
  const GgufEntry* entry(std::string_view key) const;
  /// Throws Error that names file and key.
  [[noreturn]] void refuse(std::string_view key, std::string_view reason) const;

 private:
  struct Reader;
  using Metadata = std::vector<GgufEntry>;
  Gguf(std::shared_ptr<const Content> content, std::shared_ptr<const Metadata> metadata)
      : StoredFile(std::move(content)), metadata_(std::move(metadata)) {}
  std::shared_ptr<const Metadata> metadata_;
};

/// Is it a file whose name ends with .gguf, or one that begins as GGUF files do?
bool is_gguf(const std::filesystem::path& path);

/// Writes a file of version 3 that holds `metadata` and `tensors`, in this order, through an OutputFile: it appears
/// under `path` complete or not at all. general.alignment, 32 without it, is respected. Error that names path and
/// reason if the format forbids the input, or if the file system fails.
void write_gguf(const std::filesystem::path& path, std::span<const GgufEntry> metadata,
                std::span<const TensorBytes> tensors);

}  // namespace gnu::visibility("default")]]internal
}  // namespace tessera
