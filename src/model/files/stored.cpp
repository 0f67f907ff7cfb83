#include "tessera/model/stored.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "model/files/stored_content.hpp"

namespace tessera::internal {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are used in the byte order of the file");

struct TypeInfo {
  std::string_view name;
  int bits;
  int elements = 1;
};
constexpr std::array<TypeInfo, 27> types{{
    {"BOOL", 8},
    {"F4", 4},
    {"F6_E2M3", 6},
    {"F6_E3M2", 6},
    {"U8", 8},
    {"I8", 8},
    {"F8_E5M2", 8},
    {"F8_E4M3", 8},
    {"F8_E8M0", 8},
    {"F8_E4M3FNUZ", 8},
    {"F8_E5M2FNUZ", 8},
    {"I16", 16},
    {"U16", 16},
    {"F16", 16},
    {"BF16", 16},
    {"I32", 32},
    {"U32", 32},
    {"F32", 32},
    {"C64", 64},
    {"F64", 64},
    {"I64", 64},
    {"U64", 64},
    {"Q8_0", 34 * 8, 32},
    {"Q4_0", 18 * 8, 32},
    {"Q4_1", 20 * 8, 32},
    {"Q4_K", 144 * 8, 256},
    {"Q6_K", 210 * 8, 256},
}};
static_assert(types.size() == static_cast<std::size_t>(StoredType::q6_k) + 1);

}  // namespace

std::string_view name(StoredType type) { return types.at(static_cast<std::size_t>(type)).name; }

int elements_of_block(StoredType type) { return types.at(static_cast<std::size_t>(type)).elements; }

int bits(StoredType type) { return types.at(static_cast<std::size_t>(type)).bits; }

void refuse_other_formats(std::string_view start, const Refusal& refuse) {
  struct Other {
    std::string_view start, advice;
  };
  static constexpr Other others[] = {
      {"version https://git-lfs", "it is a Git-LFS pointer, not the weights themselves; run git lfs pull"},
      {"<!doctyp", "it is a web page, not weights; download the file itself"},
      {"<html", "it is a web page, not weights; download the file itself"},
      {"<?xml", "it is an XML document, probably a server's error, not weights; download the file again"},
      {"pk\x03\x04", "it is a zip archive, as PyTorch's .bin and .pt files are; convert it to safetensors"},
      {"gguf", "it is a GGUF file; give it a name that ends with .gguf, and pass that instead of a folder"},
  };
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  for (const auto& [other, advice] : others) {
    if (start.size() >= other.size() &&
        std::equal(other.begin(), other.end(), start.begin(), [&](char s, char c) { return s == lower(c); })) {
      refuse("{}", advice);
    }
  }
}

const std::filesystem::path& StoredFile::path() const { return content_->path; }

const std::vector<StoredTensor>& StoredFile::tensors() const& { return content_->tensors; }

const StoredTensor* StoredFile::find(std::string_view name) const& {
  const auto& tensors = content_->tensors;
  const auto& by_name = content_->by_name;
  const auto found = std::lower_bound(by_name.begin(), by_name.end(), name,
                                      [&](std::uint32_t i, std::string_view n) { return tensors[i].name < n; });
  return found != by_name.end() && tensors[*found].name == name ? &tensors[*found] : nullptr;
}

void StoredFile::read(const StoredTensor& tensor, std::span<std::byte> to, std::uint64_t begin) const {
  if (begin > tensor.size || to.size() > tensor.size - begin) throw InternalError("a read beyond the end of a tensor");
  content_->files[tensor.file].read(tensor.begin + begin, to);
}

std::vector<std::byte> StoredFile::read(const StoredTensor& tensor) const {
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.size));
  read(tensor, bytes);
  return bytes;
}

}  // namespace tessera::internal
