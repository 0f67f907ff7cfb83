#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <system_error>

#include "jit/options/files.hpp"
#include "model/files/gguf_types.hpp"
#include "model/files/stored_content.hpp"
#include "tessera/model/gguf.hpp"
#include "tessera/model/utf8.hpp"

namespace tessera::internal {
namespace {

class HeaderWriter {
 public:
  explicit HeaderWriter(const Refusal& refuse) : refuse_(refuse) {}

  const std::string& text() const { return text_; }
  void raw(std::string_view bytes) { text_ += bytes; }
  template <class T>
  void number(T value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void string(std::string_view text) {
    number<std::uint64_t>(text.size());
    text_ += text;
  }
  void entry(const GgufEntry& entry) {
    if (entry.key.empty() || entry.key.size() > gguf_longest_key || find_invalid_utf8(entry.key))
      refuse_("{} is not a key: it must be UTF-8 of 1 to {} bytes", in_quotes(entry.key), gguf_longest_key);
    string(entry.key);
    number(static_cast<std::uint32_t>(entry.type));
    const auto mismatch = [&] {
      refuse_("the value of key {} is not of its type, {}", in_quotes(entry.key), gguf_name_of(entry.type));
    };
    if (const auto* const array = std::get_if<GgufArray>(&entry.value)) {
      if (entry.type != GgufType::array) mismatch();
      this->array(*array, mismatch);
      return;
    }
    std::visit([&](const auto& value) { scalar(entry.type, value, mismatch); }, entry.value);
  }

 private:
  void array(const GgufArray& array, const auto& mismatch) {
    number(static_cast<std::uint32_t>(array.type));
    std::visit(
        [&](const auto& items) {
      number<std::uint64_t>(items.size());
      for (const auto& item : items) {
        if constexpr (std::is_same_v<std::decay_t<decltype(item)>, GgufArray>) {
          if (array.type != GgufType::array) mismatch();
          this->array(item, mismatch);
        } else {
          scalar(array.type, item, mismatch);
        }
      }
        },
        array.items);
  }
  template <class T>
  void scalar(GgufType type, const T& value, const auto& mismatch) {
    if constexpr (std::is_same_v<T, std::string>) {
      if (type != GgufType::string) mismatch();
      string(value);
    } else if constexpr (std::is_same_v<T, GgufArray>) {
      mismatch();
    } else {
      const auto as = [&]<class To>() {
        // A flag, a signed and an unsigned integer, and a floating-point number are kept apart in memory, too.
        constexpr bool fits = std::is_same_v<To, bool> == std::is_same_v<T, bool> &&
                              std::is_floating_point_v<To> == std::is_floating_point_v<T> &&
                              std::is_signed_v<To> == std::is_signed_v<T>;
        if constexpr (fits) {
          const auto narrow = static_cast<To>(value);
          if (std::is_integral_v<To> && static_cast<T>(narrow) != value) mismatch();
          number(narrow);
        } else {
          mismatch();
        }
      };
      switch (type) {
        case GgufType::u8:
          return as.template operator()<std::uint8_t>();
        case GgufType::i8:
          return as.template operator()<std::int8_t>();
        case GgufType::u16:
          return as.template operator()<std::uint16_t>();
        case GgufType::i16:
          return as.template operator()<std::int16_t>();
        case GgufType::u32:
          return as.template operator()<std::uint32_t>();
        case GgufType::i32:
          return as.template operator()<std::int32_t>();
        case GgufType::f32:
          return as.template operator()<float>();
        case GgufType::boolean:
          return as.template operator()<bool>();
        case GgufType::u64:
          return as.template operator()<std::uint64_t>();
        case GgufType::i64:
          return as.template operator()<std::int64_t>();
        case GgufType::f64:
          return as.template operator()<double>();
        default:
          mismatch();
      }
    }
  }

  const Refusal& refuse_;
  std::string text_;
};

std::uint64_t padded(std::uint64_t size, std::uint64_t alignment) {
  return (size + alignment - 1) / alignment * alignment;
}

std::uint32_t number_of(const TensorBytes& tensor, const Refusal& refuse) {
  const auto* const found = std::ranges::find(gguf_tensor_types, std::optional(tensor.type), &GgufTensorType::type);
  if (found == gguf_tensor_types.end())
    refuse("tensor {} is {}, which the format does not have", in_quotes(tensor.name), name(tensor.type));
  return found->number;
}

void check_tensor(const TensorBytes& tensor, const Refusal& refuse) {
  if (tensor.name.size() > gguf_longest_name || find_invalid_utf8(tensor.name))
    refuse("{} is not a name for a tensor: it must be UTF-8 of at most {} bytes", in_quotes(tensor.name),
           gguf_longest_name);
  if (tensor.shape.size() > gguf_most_extents)
    refuse("tensor {} has {} extents, more than {}", in_quotes(tensor.name), tensor.shape.size(), gguf_most_extents);
  const auto block = static_cast<std::uint64_t>(elements_of_block(tensor.type));
  std::uint64_t elements = 1;
  bool fits = block == 1 || (!tensor.shape.empty() && tensor.shape.back() % block == 0);
  for (const std::uint64_t extent : tensor.shape) fits &= !__builtin_mul_overflow(elements, extent, &elements);
  std::uint64_t bytes = 0;
  fits &= !__builtin_mul_overflow(elements / block, static_cast<std::uint64_t>(bits(tensor.type) / 8), &bytes);
  if (!fits || bytes != tensor.bytes.size())
    refuse("tensor {} has {} bytes, which do not fill its shape [{}] of {}", in_quotes(tensor.name),
           tensor.bytes.size(), fmt::join(tensor.shape, ", "), name(tensor.type));
}

}  // namespace

void write_gguf(const std::filesystem::path& path, std::span<const GgufEntry> metadata,
                std::span<const TensorBytes> tensors) {
  const Refusal refuse{fmt::format("cannot write {}", in_quotes(path.native()))};
  index_names(tensors, refuse);
  for (std::size_t i = 0; i < metadata.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (metadata[i].key == metadata[j].key) refuse("key {} occurs twice", in_quotes(metadata[i].key));
  const std::uint64_t alignment = gguf_alignment(metadata, refuse);
  HeaderWriter header(refuse);
  header.raw(gguf_magic);
  header.number(gguf_version);
  header.number<std::uint64_t>(tensors.size());
  header.number<std::uint64_t>(metadata.size());
  for (const GgufEntry& entry : metadata) header.entry(entry);
  std::uint64_t at = 0;
  for (const TensorBytes& tensor : tensors) {
    check_tensor(tensor, refuse);
    header.string(tensor.name);
    header.number(static_cast<std::uint32_t>(tensor.shape.size()));
    for (auto extent = tensor.shape.rbegin(); extent != tensor.shape.rend(); ++extent) header.number(*extent);
    header.number(number_of(tensor, refuse));
    header.number(at);
    at = padded(at + tensor.bytes.size(), alignment);
  }
  try {
    OutputFile file(path);
    const auto pad = [&](std::uint64_t size) {
      file.write(std::string(static_cast<std::size_t>(padded(size, alignment) - size), '\0'));
    };
    file.write(header.text());
    pad(header.text().size());
    for (const TensorBytes& tensor : tensors) {
      file.write(tensor.bytes);
      pad(tensor.bytes.size());
    }
    file.publish();
  } catch (const std::system_error& error) {
    refuse("{}", error.code().message());
  }
}

}  // namespace tessera::internal
