#include "tessera/model/gguf.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>

#include "model/files/gguf_types.hpp"
#include "model/files/input_file.hpp"
#include "model/files/stored_content.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/model/utf8.hpp"

namespace tessera::internal {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t most_header_bytes = std::uint64_t{1} << 28;
constexpr int most_levels = 8;

/// The header of a file, read in order. `what` says for messages what is being read.
class Cursor {
 public:
  Cursor(const InputFile& file, const Refusal& refuse) : file_(file), refuse_(refuse) {}

  std::uint64_t at() const { return at_; }

  template <class T>
  T number(std::string_view what) {
    T value;
    std::memcpy(&value, take(sizeof value, what), sizeof value);
    return value;
  }
  std::string string(std::string_view what, std::uint64_t longest = most_header_bytes) {
    const auto size = number<std::uint64_t>(what);
    if (size > longest) refuse_("{} would have {} bytes, more than the limit of {}", what, size, longest);
    return {take(size, what), static_cast<std::size_t>(size)};
  }
  /// Refuses a count of items, of `size` bytes or more each, that do not fit the rest of the file.
  void require(std::uint64_t count, std::uint64_t size, std::string_view what) const {
    const std::uint64_t rest = std::min(file_.size(), most_header_bytes) - at_;
    if (count > rest / size)
      refuse_(
          "{} would have {} items of at least {} bytes, more than its remaining {} bytes hold; it is damaged, or not "
          "complete: download it again",
          what, count, size, rest);
  }

 private:
  /// The next bytes, which are valid until the next call.
  const char* take(std::uint64_t size, std::string_view what) {
    if (size > most_header_bytes - at_)
      refuse_("its header has more than the limit of {} bytes, at {}", most_header_bytes, what);
    if (size > file_.size() - at_)
      refuse_("it ends inside {}, {} bytes are missing; download it again", what, size - (file_.size() - at_));
    if (at_ + size > first_ + buffer_.size()) {
      constexpr std::uint64_t least = std::uint64_t{1} << 16;
      first_ = at_;
      buffer_ = file_.text(at_, static_cast<std::size_t>(std::min(std::max(size, least), file_.size() - at_)));
    }
    const char* const bytes = buffer_.data() + (at_ - first_);
    at_ += size;
    return bytes;
  }

  const InputFile& file_;
  const Refusal& refuse_;
  std::string buffer_;
  std::uint64_t first_ = 0, at_ = 0;
};

GgufType type_of(std::uint32_t number, std::string_view what, const Refusal& refuse) {
  if (number > static_cast<std::uint32_t>(GgufType::f64))
    refuse("{} is of type {}, and types are numbers from 0 to 12", what, number);
  return static_cast<GgufType>(number);
}

/// Calls with_type<T>() for a type of fixed size other than bool.
decltype(auto) with_number(GgufType type, const auto& with_type) {
  switch (type) {
    case GgufType::u8:
      return with_type.template operator()<std::uint8_t>();
    case GgufType::i8:
      return with_type.template operator()<std::int8_t>();
    case GgufType::u16:
      return with_type.template operator()<std::uint16_t>();
    case GgufType::i16:
      return with_type.template operator()<std::int16_t>();
    case GgufType::u32:
      return with_type.template operator()<std::uint32_t>();
    case GgufType::i32:
      return with_type.template operator()<std::int32_t>();
    case GgufType::f32:
      return with_type.template operator()<float>();
    case GgufType::u64:
      return with_type.template operator()<std::uint64_t>();
    case GgufType::i64:
      return with_type.template operator()<std::int64_t>();
    default:
      return with_type.template operator()<double>();
  }
}
/// The type in memory, which is the widest of its kind.
template <class T>
using Wide = std::conditional_t<std::is_floating_point_v<T>, double,
                                std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;

bool read_flag(Cursor& cursor, const std::string& what, const Refusal& refuse) {
  const auto byte = cursor.number<std::uint8_t>(what);
  if (byte > 1) refuse("{} is the byte {}, and a bool is 0 or 1", what, byte);
  return byte == 1;
}

GgufArray read_array(Cursor& cursor, const std::string& what, int level, const Refusal& refuse) {
  if (level > most_levels) refuse("{} has more than {} levels of arrays", what, most_levels);
  GgufArray array;
  array.type = type_of(cursor.number<std::uint32_t>(what), what, refuse);
  const auto count = cursor.number<std::uint64_t>(what);
  constexpr std::uint64_t least_string = 8, least_array = 12;
  const std::uint64_t size = array.type == GgufType::string  ? least_string
                             : array.type == GgufType::array ? least_array
                                                             : gguf_size_of(array.type);
  cursor.require(count, size, what);
  const auto fill = [&](auto& items, const auto& read) {
    items.reserve(static_cast<std::size_t>(count));
    for (std::uint64_t i = 0; i < count; ++i) items.push_back(read());
  };
  if (array.type == GgufType::string) {
    fill(array.items.emplace<std::vector<std::string>>(), [&] { return cursor.string(what); });
  } else if (array.type == GgufType::array) {
    fill(array.items.emplace<std::vector<GgufArray>>(), [&] { return read_array(cursor, what, level + 1, refuse); });
  } else if (array.type == GgufType::boolean) {
    fill(array.items.emplace<std::vector<bool>>(), [&] { return read_flag(cursor, what, refuse); });
  } else {
    with_number(array.type, [&]<class T>() {
      fill(array.items.emplace<std::vector<Wide<T>>>(), [&] { return static_cast<Wide<T>>(cursor.number<T>(what)); });
    });
  }
  return array;
}

GgufValue read_value(Cursor& cursor, GgufType type, const std::string& what, const Refusal& refuse) {
  if (type == GgufType::string) return cursor.string(what);
  if (type == GgufType::array) return read_array(cursor, what, 1, refuse);
  if (type == GgufType::boolean) return read_flag(cursor, what, refuse);
  return with_number(type, [&]<class T>() -> GgufValue { return static_cast<Wide<T>>(cursor.number<T>(what)); });
}

std::string key_text(std::string_view key) { return "key " + in_quotes(key); }
std::string tensor_text(std::string_view name) { return "tensor " + in_quotes(name); }

std::string supported_types() {
  std::string names;
  for (const GgufTensorType& each : gguf_tensor_types)
    if (each.type) names += (names.empty() ? "" : ", ") + std::string(each.name);
  return names;
}

StoredType stored_type_of(std::uint32_t number, const std::string& what, const Refusal& refuse) {
  const auto* const found = std::ranges::find(gguf_tensor_types, number, &GgufTensorType::number);
  if (found == gguf_tensor_types.end())
    refuse("{} is of type {}, which is no number of a type; supported are {}", what, number, supported_types());
  if (!found->type) refuse("{} is {}; supported are {}", what, found->name, supported_types());
  return *found->type;
}

/// The bytes that a tensor takes.
std::uint64_t bytes_of_tensor(const StoredTensor& tensor, const std::string& what, const Refusal& refuse) {
  const auto block = static_cast<std::uint64_t>(elements_of_block(tensor.type));
  if (block > 1 && (tensor.shape.empty() || tensor.shape.back() % block != 0))
    refuse("{}: its shape is [{}], and a row of {} has a multiple of {} elements", what, fmt::join(tensor.shape, ", "),
           name(tensor.type), block);
  std::uint64_t elements = 1, bytes = 0;
  bool overflows = false;
  for (const std::uint64_t extent : tensor.shape) overflows |= __builtin_mul_overflow(elements, extent, &elements);
  overflows |= elements > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  overflows |= __builtin_mul_overflow(elements / block, static_cast<std::uint64_t>(bits(tensor.type) / 8), &bytes);
  if (overflows) refuse("{}: its shape [{}] has too many elements", what, fmt::join(tensor.shape, ", "));
  return bytes;
}

void check_utf8(std::string_view text, std::string_view what, const Refusal& refuse) {
  if (find_invalid_utf8(text)) refuse("{} is not UTF-8", what);
}

struct GgufHeader {
  std::vector<GgufEntry> metadata;
  std::vector<StoredTensor> tensors;  // in the order of their bytes
};

std::vector<GgufEntry> read_metadata(Cursor& cursor, std::uint64_t count, const Refusal& refuse) {
  constexpr std::uint64_t least_entry = 8 + 4 + 1;
  cursor.require(count, least_entry, "its metadata");
  std::vector<GgufEntry> metadata;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string number = fmt::format("the key of entry {} of its metadata", i);
    std::string key = cursor.string(number, gguf_longest_key);
    if (key.empty()) refuse("{} is empty", number);
    const std::string what = key_text(key);
    check_utf8(key, what, refuse);
    const GgufType type = type_of(cursor.number<std::uint32_t>(what), what, refuse);
    GgufValue value = read_value(cursor, type, what, refuse);
    metadata.push_back({std::move(key), type, std::move(value)});
  }
  std::vector<std::string_view> keys;
  for (const GgufEntry& entry : metadata) keys.push_back(entry.key);
  std::ranges::sort(keys);
  if (const auto twice = std::ranges::adjacent_find(keys); twice != keys.end())
    refuse("{} occurs twice", key_text(*twice));
  return metadata;
}

/// Descriptions of tensors. Their `begin` is relative to the end of the header yet.
std::vector<StoredTensor> read_tensors(Cursor& cursor, std::uint64_t count, std::uint32_t file, const Refusal& refuse) {
  constexpr std::uint64_t least_tensor = 8 + 4 + 4 + 8;
  cursor.require(count, least_tensor, "its list of tensors");
  std::vector<StoredTensor> tensors;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string number = fmt::format("the name of tensor {}", i);
    StoredTensor tensor{cursor.string(number, gguf_longest_name), StoredType::f32, {}, 0, 0, file};
    const std::string what = tensor_text(tensor.name);
    check_utf8(tensor.name, what, refuse);
    const auto extents = cursor.number<std::uint32_t>(what);
    if (extents > gguf_most_extents) refuse("{} has {} extents, more than {}", what, extents, gguf_most_extents);
    for (std::uint32_t axis = 0; axis < extents; ++axis) tensor.shape.push_back(cursor.number<std::uint64_t>(what));
    std::ranges::reverse(tensor.shape);  // in the file, the axis whose elements are neighbors is the first
    tensor.type = stored_type_of(cursor.number<std::uint32_t>(what), what, refuse);
    tensor.begin = cursor.number<std::uint64_t>(what);
    tensor.size = bytes_of_tensor(tensor, what, refuse);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

/// Moves the tensors behind `data`, where their bytes begin, and sorts them. None may reach into another, or out of the
/// file, and only padding may be between two: otherwise a type or a shape is wrong.
void place_aligned(std::vector<StoredTensor>& tensors, std::uint64_t data, std::uint64_t end, std::uint64_t alignment,
                   const Refusal& refuse) {
  std::ranges::sort(tensors, [](const StoredTensor& a, const StoredTensor& b) {
    return std::tie(a.begin, a.size) < std::tie(b.begin, b.size);
  });
  std::uint64_t used = 0;
  for (StoredTensor& tensor : tensors) {
    const std::string what = tensor_text(tensor.name);
    if (tensor.begin % alignment != 0)
      refuse("{} begins at {}, which is not a multiple of the alignment, {}", what, tensor.begin, alignment);
    if (tensor.begin < used)
      refuse("{} begins at {}, inside the previous one, which ends at {}", what, tensor.begin, used);
    const std::uint64_t rest = end > data ? end - data : 0;
    if (tensor.begin > rest || tensor.size > rest - tensor.begin)
      refuse("{} has {} bytes from {} on, and the file has {} bytes for tensors; it is not complete: download it again",
             what, tensor.size, tensor.begin, rest);
    if (tensor.begin - used >= alignment)
      refuse("{} begins at {}, and the previous one ends at {}: a type or a shape is wrong", what, tensor.begin, used);
    used = tensor.begin + tensor.size;
    tensor.begin += data;
  }
}

GgufHeader read_header(const InputFile& file, std::uint32_t number, const Refusal& refuse) {
  constexpr std::uint64_t enough = 64;  // to recognize other formats
  const std::string start = file.text(0, static_cast<std::size_t>(std::min(file.size(), enough)));
  if (!start.starts_with(gguf_magic)) {
    if (!gguf_magic.starts_with(start)) {
      if (!start.starts_with("gguf") && !start.starts_with("FUGG")) refuse_other_formats(start, refuse);
      refuse("it does not begin with 'GGUF'");
    }
    refuse("it has {} bytes; download it again", file.size());
  }
  Cursor cursor(file, refuse);
  cursor.number<std::uint32_t>("the format's name");
  const auto version = cursor.number<std::uint32_t>("its version");
  if (version != 2 && version != 3) {
    if (version != 0 && (version & 0xffff) == 0)
      refuse("its version is {:#010x}: it has the byte order of other machines (big-endian); convert it on one of them",
             version);
    refuse("its version is {}; versions 2 and 3 are read", version);
  }
  const auto tensors = cursor.number<std::uint64_t>("the number of tensors");
  const auto entries = cursor.number<std::uint64_t>("the number of entries");
  GgufHeader header;
  header.metadata = read_metadata(cursor, entries, refuse);
  header.tensors = read_tensors(cursor, tensors, number, refuse);
  const std::uint64_t alignment = gguf_alignment(header.metadata, refuse);
  place_aligned(header.tensors, (cursor.at() + alignment - 1) / alignment * alignment, file.size(), alignment, refuse);
  return header;
}

/// The integer at a key of a part, if it has the key.
std::optional<std::uint64_t> count_at(const std::vector<GgufEntry>& metadata, std::string_view key,
                                      const Refusal& refuse) {
  const auto found = std::ranges::find(metadata, key, &GgufEntry::key);
  if (found == metadata.end()) return std::nullopt;
  if (const auto* const value = std::get_if<std::uint64_t>(&found->value)) return *value;
  if (const auto* const value = std::get_if<std::int64_t>(&found->value); value && *value >= 0)
    return static_cast<std::uint64_t>(*value);
  refuse("{} must be an integer of at least 0", key_text(key));
}

constexpr std::string_view split_count = "split.count", split_number = "split.no",
                           split_tensors = "split.tensors.count";

/// The name of a part, from 0: "model-00001-of-00003.gguf".
std::string part_name(std::string_view model, std::uint64_t part, std::uint64_t parts) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", model, part + 1, parts);
}

}  // namespace

std::uint64_t gguf_alignment(std::span<const GgufEntry> metadata, const Refusal& refuse) {
  constexpr std::uint64_t most = std::uint64_t{1} << 20;
  const auto found = std::ranges::find(metadata, gguf_alignment_key, &GgufEntry::key);
  if (found == metadata.end()) return gguf_default_alignment;
  const auto* const value = std::get_if<std::uint64_t>(&found->value);
  if (!value || *value == 0 || *value % 8 != 0 || *value > most)
    refuse("{} must be an unsigned multiple of 8, up to {}", key_text(gguf_alignment_key), most);
  return *value;
}

struct Gguf::Reader {
  Content content;
  Metadata metadata;

  GgufHeader add(const fs::path& path) {
    const InputFile& file = content.files.emplace_back(InputFile::open(path));
    return read_header(file, static_cast<std::uint32_t>(content.files.size() - 1), not_valid(path, "GGUF"));
  }
  void keep(std::vector<StoredTensor>&& tensors) { std::ranges::move(tensors, std::back_inserter(content.tensors)); }

  /// Opens all parts; `any` is the header of the one that was named.
  void add_parts(const GgufHeader& any, std::uint64_t parts) {
    const Refusal refuse = not_valid(content.path, "GGUF");
    constexpr std::uint64_t most_parts = 65535;
    if (parts > most_parts) refuse("{} is {}, it must be at most {}", key_text(split_count), parts, most_parts);
    const std::string file = content.path.filename().native();
    const auto number = count_at(any.metadata, split_number, refuse);
    if (!number || *number >= parts)
      refuse("it is one of {} parts, so {} must be from 0 to {}", parts, key_text(split_number), parts - 1);
    const std::string ending = part_name("", *number, parts);
    if (!file.ends_with(ending))
      refuse("it is part {} of {}, so that its name must end with {}, to find the others", *number + 1, parts,
             in_quotes(ending));
    const std::string model = file.substr(0, file.size() - ending.size());
    content.files.clear();
    std::optional<std::uint64_t> tensors;
    for (std::uint64_t i = 0; i < parts; ++i) {
      const fs::path path = content.path.parent_path() / part_name(model, i, parts);
      if (std::error_code ignored; fs::status(path, ignored).type() == fs::file_type::not_found)
        throw Error(fmt::format("{}: no such file, which is part {} of {} of the model; download it, too",
                                in_quotes(path.native()), i + 1, parts));
      GgufHeader part = add(path);
      const Refusal refuse_part = not_valid(path, "GGUF");
      if (count_at(part.metadata, split_count, refuse_part) != parts ||
          count_at(part.metadata, split_number, refuse_part) != i)
        refuse_part("its keys {} and {} do not say that it is part {} of {}", split_number, split_count, i + 1, parts);
      if (i == 0) {
        tensors = count_at(part.metadata, split_tensors, refuse_part);
        metadata = std::move(part.metadata);
      }
      keep(std::move(part.tensors));
    }
    if (tensors && *tensors != content.tensors.size())
      refuse("its {} parts have {} tensors, and {} is {}", parts, content.tensors.size(), key_text(split_tensors),
             *tensors);
  }

  Gguf finish() && {
    content.by_name = index_names(content.tensors, not_valid(content.path, "GGUF"));
    return Gguf(std::make_shared<Content>(std::move(content)), std::make_shared<Metadata>(std::move(metadata)));
  }
};

Gguf Gguf::open(const fs::path& path) {
  Reader reader{Content(path), {}};
  GgufHeader header = reader.add(path);
  const std::uint64_t parts = count_at(header.metadata, split_count, not_valid(path, "GGUF")).value_or(1);
  if (parts > 1) {
    reader.add_parts(header, parts);
  } else {
    reader.metadata = std::move(header.metadata);
    reader.keep(std::move(header.tensors));
  }
  return std::move(reader).finish();
}

const std::vector<GgufEntry>& Gguf::metadata() const& { return *metadata_; }

const GgufEntry* Gguf::entry(std::string_view key) const {
  const auto found = std::ranges::find(*metadata_, key, &GgufEntry::key);
  return found == metadata_->end() ? nullptr : &*found;
}

void Gguf::refuse(std::string_view key, std::string_view reason) const {
  throw Error(fmt::format("{}: {} {}", in_quotes(path().native()), key, reason));
}

const std::string* Gguf::text(std::string_view key) const {
  const GgufEntry* const found = entry(key);
  if (!found) return nullptr;
  const auto* const value = std::get_if<std::string>(&found->value);
  if (!value) refuse(key, fmt::format("is of type {}, it must be a string", gguf_name_of(found->type)));
  return value;
}

std::optional<bool> Gguf::flag(std::string_view key) const {
  const GgufEntry* const found = entry(key);
  if (!found) return std::nullopt;
  const auto* const value = std::get_if<bool>(&found->value);
  if (!value) refuse(key, fmt::format("is of type {}, it must be a bool", gguf_name_of(found->type)));
  return *value;
}

std::optional<std::int64_t> Gguf::integer(std::string_view key) const {
  const GgufEntry* const found = entry(key);
  if (!found) return std::nullopt;
  if (const auto* const value = std::get_if<std::int64_t>(&found->value)) return *value;
  const auto* const value = std::get_if<std::uint64_t>(&found->value);
  if (!value) refuse(key, fmt::format("is of type {}, it must be an integer", gguf_name_of(found->type)));
  if (*value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    refuse(key, fmt::format("is {}, which is too large", *value));
  return static_cast<std::int64_t>(*value);
}

namespace {

template <class Items>
const Items* items_of(const Gguf& file, std::string_view key, std::string_view expected) {
  const GgufEntry* const found = file.entry(key);
  if (!found) return nullptr;
  const auto* const array = std::get_if<GgufArray>(&found->value);
  if (!array) file.refuse(key, fmt::format("is of type {}, it must be {}", gguf_name_of(found->type), expected));
  const auto* const items = std::get_if<Items>(&array->items);
  if (!items) file.refuse(key, fmt::format("is an array of {}, it must be {}", gguf_name_of(array->type), expected));
  return items;
}

}  // namespace

const std::vector<std::string>* Gguf::texts(std::string_view key) const {
  return items_of<std::vector<std::string>>(*this, key, "an array of strings");
}

const std::vector<double>* Gguf::numbers(std::string_view key) const {
  return items_of<std::vector<double>>(*this, key, "an array of numbers");
}

std::optional<std::vector<std::int64_t>> Gguf::integers(std::string_view key) const {
  const GgufEntry* const found = entry(key);
  if (!found) return std::nullopt;
  const auto* const array = std::get_if<GgufArray>(&found->value);
  const auto* const unsigned_items = array ? std::get_if<std::vector<std::uint64_t>>(&array->items) : nullptr;
  if (!unsigned_items) return *items_of<std::vector<std::int64_t>>(*this, key, "an array of integers");
  std::vector<std::int64_t> items;
  for (const std::uint64_t item : *unsigned_items) {
    if (item > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      refuse(key, fmt::format("has {}, which is too large", item));
    items.push_back(static_cast<std::int64_t>(item));
  }
  return items;
}

bool is_gguf(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return false;
  std::string extension = path.extension().native();
  std::ranges::transform(extension, extension.begin(), [](unsigned char c) { return std::tolower(c); });
  if (extension == ".gguf") return true;
  try {
    const InputFile file = InputFile::open(path);
    return file.size() >= gguf_magic.size() && file.text(0, gguf_magic.size()) == gguf_magic;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace tessera::internal
