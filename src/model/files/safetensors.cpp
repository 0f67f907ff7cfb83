#include "tessera/model/safetensors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>
#include <tuple>

#include "jit/options/files.hpp"
#include "jit/options/log.hpp"
#include "model/files/input_file.hpp"
#include "model/files/shard_index.hpp"
#include "model/files/stored_content.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are used in the byte order of the file");

constexpr std::uint64_t prefix_bytes = 8;
constexpr std::uint64_t max_header_bytes = 100'000'000;
constexpr std::size_t most_extents = 64;
constexpr std::string_view metadata_name = "__metadata__";

constexpr std::size_t types_of_format = static_cast<std::size_t>(StoredType::u64) + 1;

/// The size in bytes of a StoredTensor or TensorBytes, from its type and shape.
template <class Tensor>
std::uint64_t byte_count(const Tensor& tensor, const Refusal& refuse) {
  std::uint64_t total = 1;
  const auto multiply = [&](std::uint64_t factor) {
    if (__builtin_mul_overflow(total, factor, &total)) {
      refuse("tensor {}: the shape [{}] has too many elements", in_quotes(tensor.name), fmt::join(tensor.shape, ", "));
    }
  };
  // In this order, like the reference implementation: a later zero does not excuse an overflow.
  for (const std::uint64_t extent : tensor.shape) multiply(extent);
  multiply(static_cast<std::uint64_t>(bits(tensor.type)));
  if (total % 8 != 0) {
    refuse("tensor {}: the shape [{}] of {} does not fill whole bytes", in_quotes(tensor.name),
           fmt::join(tensor.shape, ", "), name(tensor.type));
  }
  return total / 8;
}

/// A tensor whose offsets, relative to the end of the header, have not been checked yet.
struct Entry : StoredTensor {
  std::uint64_t end;
};

/// Reads the header event by event, so that only the tensors are kept in memory, and nesting that the format does not
/// have is rejected where it begins.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(const Refusal& refuse) : refuse_(refuse) {}

  std::vector<Entry> entries;

  bool null() override {
    if (in_ != Object::root || name_ != metadata_name) unexpected("null");
    return true;  // no metadata, as in the reference implementation
  }
  bool boolean(bool value) override { unexpected(value ? "true" : "false"); }
  bool number_integer(std::int64_t value) override { unexpected(value ? fmt::to_string(value) : "-0"); }
  bool number_float(double, const std::string& text) override { unexpected(in_quotes(text)); }
  bool binary(binary_t&) override { unexpected("binary"); }

  bool number_unsigned(std::uint64_t value) override {
    if (!numbers_) unexpected(fmt::to_string(value));
    if (numbers_->size() == most_extents) refuse_("{} has more than {} entries", where(), most_extents);
    numbers_->push_back(value);
    return true;
  }

  bool string(std::string& value) override {
    if (in_ == Object::metadata) return true;
    if (in_ != Object::tensor || numbers_ || field_ != "dtype") unexpected("the string " + in_quotes(value));
    type_ = stored_type(value);
    if (!type_) refuse_("{} is {}, which is not a type of the format", where(), in_quotes(value));
    return true;
  }

  bool start_object(std::size_t) override {
    switch (in_) {
      case Object::none:
        in_ = Object::root;
        break;
      case Object::root:
        in_ = name_ == metadata_name ? Object::metadata : Object::tensor;
        type_.reset();
        shape_.reset();
        offsets_.reset();
        break;
      default:
        unexpected("an object");
    }
    return true;
  }

  bool key(std::string& key) override {
    switch (in_) {
      case Object::root:
        if (key == metadata_name && std::exchange(has_metadata_, true)) refuse_("two {}", metadata_name);
        name_ = key;
        break;
      case Object::metadata:
        field_ = key;
        metadata_keys_.push_back(key);
        break;
      default:
        field_ = key;
        if (key != "dtype" && key != "shape" && key != "data_offsets") refuse_("{} is not part of the format", where());
        if (key == "dtype" ? type_.has_value() : key == "shape" ? shape_.has_value() : offsets_.has_value()) {
          refuse_("{} occurs twice", where());
        }
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (in_ != Object::tensor || numbers_ || field_ == "dtype") unexpected("an array");
    numbers_ = &(field_ == "shape" ? shape_ : offsets_).emplace();
    return true;
  }

  bool end_array() override {
    numbers_ = nullptr;
    return true;
  }

  bool end_object() override {
    switch (in_) {
      case Object::tensor:
        add_tensor();
        break;
      case Object::metadata:
        check_metadata();
        break;
      default:
        break;
    }
    in_ = Object::root;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    refuse_("its header is not JSON at byte {}", prefix_bytes + position - 1);
  }

 private:
  enum class Object { none, root, metadata, tensor };

  std::string where() const {
    switch (in_) {
      case Object::none:
        return "the header";
      case Object::root:
        return in_quotes(name_);
      case Object::metadata:
        return fmt::format("{} of {}", in_quotes(field_), metadata_name);
      case Object::tensor:
        break;
    }
    return fmt::format("tensor {}: {}", in_quotes(name_), in_quotes(field_));
  }

  [[noreturn]] void unexpected(std::string_view what) const {
    const bool text = in_ == Object::metadata || (in_ == Object::tensor && field_ == "dtype");
    refuse_("{} {} {}, where {} is expected", where(), numbers_ ? "holds" : "is", what,
            text                    ? "a string"
            : numbers_              ? "an unsigned integer"
            : in_ == Object::tensor ? "an array of unsigned integers"
                                    : "an object");
  }

  void add_tensor() {
    const char* missing = !type_ ? "dtype" : !shape_ ? "shape" : !offsets_ ? "data_offsets" : nullptr;
    if (missing) refuse_("tensor {} has no {}", in_quotes(name_), missing);
    if (offsets_->size() != 2) {
      refuse_("tensor {} has {} data_offsets, not a begin and an end", in_quotes(name_), offsets_->size());
    }
    entries.push_back({{name_, *type_, std::move(*shape_), offsets_->at(0), 0}, offsets_->at(1)});
  }

  void check_metadata() {
    std::sort(metadata_keys_.begin(), metadata_keys_.end());
    const auto twice = std::adjacent_find(metadata_keys_.begin(), metadata_keys_.end());
    if (twice != metadata_keys_.end()) refuse_("{} of {} occurs twice", in_quotes(*twice), metadata_name);
    metadata_keys_ = {};
  }

  const Refusal& refuse_;
  Object in_ = Object::none;
  std::string name_, field_;
  std::optional<StoredType> type_;
  std::optional<std::vector<std::uint64_t>> shape_, offsets_;
  std::vector<std::uint64_t>* numbers_ = nullptr;  // the array being read
  bool has_metadata_ = false;
  std::vector<std::string> metadata_keys_;
};

/// The JSON header of a file. Only its size and the outer braces are checked here.
std::string header_of(const InputFile& file, const Refusal& refuse) {
  constexpr std::uint64_t enough = 64;  // to recognize other formats
  const std::string start = file.text(0, std::min(file.size(), enough));
  std::uint64_t size = 0;
  std::memcpy(&size, start.data(), std::min<std::size_t>(start.size(), prefix_bytes));
  const std::uint64_t rest = file.size() - std::min(file.size(), prefix_bytes);
  const bool fits = size <= max_header_bytes && size <= rest;
  std::string header = fits ? file.text(prefix_bytes, size) : start.substr(std::min(start.size(), prefix_bytes));
  // The parser would skip a byte order mark, so the object is searched for here.
  const std::size_t first = header.find_first_not_of(" \t\r\n");
  const bool is_object = first != header.npos && header[first] == '{';
  if (!is_object) refuse_other_formats(start, refuse);
  if (file.size() < prefix_bytes) refuse("it has {} bytes, and at least {} are needed", file.size(), prefix_bytes);
  if (size > max_header_bytes) {
    refuse("its header would have {} bytes, more than the limit of {}", size, max_header_bytes);
  }
  if (size > rest) refuse("it ends inside its header, {} bytes are missing; download it again", size - rest);
  if (!is_object) refuse("its header is not a JSON object");
  // The parser takes NUL for the end of the text, and would ignore everything after it.
  if (const std::size_t at = header.find('\0'); at != header.npos) {
    refuse("its header is not JSON at byte {}", prefix_bytes + at);
  }
  return header;
}

/// Sorts `entries` by offset and locates each in the file. The bytes from `data` to `end` must all be used, each
/// exactly once.
void place(std::vector<Entry>& entries, std::uint64_t data, std::uint64_t end, const Refusal& refuse) {
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
  std::uint64_t at = 0;
  for (const Entry& e : entries) {
    if (e.end < e.begin) refuse("tensor {} ends at {}, before its begin at {}", in_quotes(e.name), e.end, e.begin);
    if (e.begin < at)
      refuse("tensor {} begins at {}, inside the previous one, which ends at {}", in_quotes(e.name), e.begin, at);
    if (e.begin > at) refuse("tensor {} begins at {}, which leaves a hole after {}", in_quotes(e.name), e.begin, at);
    const std::uint64_t size = byte_count(e, refuse);
    if (e.end - e.begin != size) {
      refuse("tensor {} has {} bytes, but its shape [{}] of {} takes {}", in_quotes(e.name), e.end - e.begin,
             fmt::join(e.shape, ", "), name(e.type), size);
    }
    at = e.end;
  }
  if (end - data < at) refuse("{} bytes are missing at its end; download it again", at - (end - data));
  if (end - data > at) refuse("{} bytes at its end belong to no tensor", end - data - at);
  for (Entry& e : entries) e.size = e.end - e.begin, e.begin += data;
}

}  // namespace

std::optional<StoredType> stored_type(std::string_view name) {
  for (std::size_t i = 0; i < types_of_format; ++i)
    if (const auto type = static_cast<StoredType>(i); tessera::internal::name(type) == name) return type;
  return std::nullopt;
}

struct SafeTensors::Reader {
  Content content;

  /// Adds a file, and appends its tensors.
  void add(const std::filesystem::path& file_path) {
    const Refusal refuse = not_valid(file_path, "safetensors");
    const InputFile& file = content.files.emplace_back(InputFile::open(file_path));
    const std::string header = header_of(file, refuse);
    HeaderReader reader(refuse);
    nlohmann::json::sax_parse(header.begin(), header.end(), &reader);  // the reader throws, so this never returns false
    place(reader.entries, prefix_bytes + header.size(), file.size(), refuse);
    for (Entry& entry : reader.entries) {
      entry.file = static_cast<std::uint32_t>(content.files.size() - 1);
      content.tensors.push_back(std::move(entry));
    }
  }

  /// To be called when all files have been added.
  SafeTensors finish() && {
    content.by_name = index_names(content.tensors, not_valid(content.path, "safetensors"));
    return SafeTensors(std::make_shared<Content>(std::move(content)));
  }
};

SafeTensors SafeTensors::open(const std::filesystem::path& path) {
  Reader reader{Content(path)};
  reader.add(path);
  return std::move(reader).finish();
}

SafeTensors SafeTensors::open_shards(const std::filesystem::path& path) {
  const ShardIndex index = read_shard_index(path);
  const std::string named = in_quotes(path.native());
  Reader reader{Content(path)};
  for (const std::string& file : index.files) {
    const std::filesystem::path shard = path.parent_path() / file;
    if (std::error_code ignored;
        std::filesystem::status(shard, ignored).type() == std::filesystem::file_type::not_found)
      throw Error(fmt::format("{}: no such file, which {} lists as a file of weights; download it, too",
                              in_quotes(shard.native()), named));
    reader.add(shard);
  }

  const Refusal refuse{named + " and its files do not agree"};
  std::vector<bool> found(index.tensors.size());
  std::uint64_t bytes = 0;
  for (const StoredTensor& tensor : reader.content.tensors) {
    const auto entry = std::lower_bound(index.tensors.begin(), index.tensors.end(), tensor.name,
                                        [](const auto& e, const std::string& name) { return e.tensor < name; });
    const std::string& file = index.files[tensor.file];
    if (entry == index.tensors.end() || entry->tensor != tensor.name)
      refuse("{} holds tensor {}, which the index does not name", in_quotes(file), in_quotes(tensor.name));
    if (entry->file != tensor.file)
      refuse("{} holds tensor {}, which the index assigns to {}", in_quotes(file), in_quotes(tensor.name),
             in_quotes(index.files[entry->file]));
    const auto at = static_cast<std::size_t>(entry - index.tensors.begin());
    if (found[at]) refuse("{} holds tensor {} twice", in_quotes(file), in_quotes(tensor.name));
    found[at] = true;
    bytes += tensor.size;
  }
  if (const auto missing = std::find(found.begin(), found.end(), false); missing != found.end()) {
    const ShardIndex::Entry& entry = index.tensors[static_cast<std::size_t>(missing - found.begin())];
    refuse("{} does not hold tensor {}, which the index assigns to it", in_quotes(index.files[entry.file]),
           in_quotes(entry.tensor));
  }
  // The total is informative only: some versions of transformers count the bits of masks, others the sizes of files.
  if (index.total_size && *index.total_size != fmt::to_string(bytes)) {
    log_warn(fmt::format("{} has total_size {}, and the tensors have {} bytes; the sizes in the files are used", named,
                         *index.total_size, bytes));
  }
  return std::move(reader).finish();
}

void write_safetensors(const std::filesystem::path& path, std::span<const TensorBytes> tensors) {
  const Refusal refuse{fmt::format("cannot write {}", in_quotes(path.native()))};
  index_names(tensors, refuse);
  std::vector<const TensorBytes*> order;
  for (const TensorBytes& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return bits(a->type) > bits(b->type); });

  std::string header = "{";
  std::uint64_t at = 0;
  for (const TensorBytes* tensor : order) {
    if (tensor->name == metadata_name) refuse("{} is not a name for a tensor", in_quotes(tensor->name));
    if (tensor->shape.size() > most_extents)
      refuse("tensor {} has more than {} extents", in_quotes(tensor->name), most_extents);
    if (elements_of_block(tensor->type) > 1)
      refuse("tensor {} is {}, which the format does not have", in_quotes(tensor->name), name(tensor->type));
    const std::uint64_t size = byte_count(*tensor, refuse);
    if (tensor->bytes.size() != size) {
      refuse("tensor {} has {} bytes, but its shape [{}] of {} takes {}", in_quotes(tensor->name), tensor->bytes.size(),
             fmt::join(tensor->shape, ", "), name(tensor->type), size);
    }
    std::string key;
    try {
      key = nlohmann::json(tensor->name).dump();
    } catch (const nlohmann::json::exception&) {
      refuse("the name of tensor {} is not UTF-8", in_quotes(tensor->name));
    }
    fmt::format_to(std::back_inserter(header), R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                   header.size() > 1 ? "," : "", key, name(tensor->type), fmt::join(tensor->shape, ","), at, at + size);
    at += size;
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  if (header.size() > max_header_bytes)
    refuse("its header would have {} bytes, more than the limit of {}", header.size(), max_header_bytes);

  const std::uint64_t size = header.size();
  try {
    OutputFile file(path);
    file.write(std::as_bytes(std::span(&size, 1)));
    file.write(header);
    for (const TensorBytes* tensor : order) file.write(tensor->bytes);
    file.publish();
  } catch (const std::system_error& error) {
    refuse("{}", error.code().message());
  }
}

}  // namespace tessera::internal
