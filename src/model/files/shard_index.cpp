#include "model/files/shard_index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

#include "model/files/input_file.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 26;

/// Is it the name of a file in a folder, without any path?
bool is_plain_name(std::string_view name) {
  constexpr std::size_t longest = 255;
  return !name.empty() && name.size() <= longest && name != "." && name != ".." &&
         std::none_of(name.begin(), name.end(), [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return c == '/' || c == '\\' || byte < 0x20 || byte == 0x7f;
         });
}

/// Reads the index event by event: unknown parts are skipped, however deeply nested, and use no memory.
class IndexReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit IndexReader(const std::filesystem::path& path) : about_(in_quotes(path.native())) {}

  ShardIndex index;

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    throw Error(about_ + ' ' + fmt::format(format, std::forward<Args>(args)...));
  }

  bool null() override { return value("null"); }
  bool boolean(bool value) override { return this->value(value ? "true" : "false"); }
  bool number_integer(std::int64_t value) override { return this->value(value ? fmt::to_string(value) : "-0"); }
  bool number_unsigned(std::uint64_t value) override { return this->value(fmt::to_string(value)); }
  bool number_float(double, const std::string& text) override { return value(text); }
  bool binary(binary_t&) override { return value("binary"); }

  bool string(std::string& value) override {
    if (in_ != Object::weight_map) return this->value("the string " + in_quotes(value));
    if (!is_plain_name(value)) {
      refuse("assigns tensor {} to {}, which is not the plain name of a file beside it", in_quotes(key_),
             in_quotes(value));
    }
    const auto [found, is_new] = numbers_.try_emplace(value, static_cast<std::uint32_t>(index.files.size()));
    if (is_new) index.files.push_back(value);
    index.tensors.push_back({key_, found->second});
    return true;
  }

  bool start_object(std::size_t) override {
    if (in_ == Object::none) {
      in_ = Object::root;
    } else if (in_ == Object::root && (key_ == "weight_map" || key_ == "metadata")) {
      bool& seen = key_ == "weight_map" ? has_weight_map_ : has_metadata_;
      if (std::exchange(seen, true)) refuse("has two {}", key_);
      in_ = key_ == "weight_map" ? Object::weight_map : Object::metadata;
    } else {
      begin_other("an object");
    }
    return true;
  }
  bool end_object() override { return end(); }

  bool start_array(std::size_t) override {
    begin_other("an array");
    return true;
  }
  bool end_array() override { return end(); }

  bool key(std::string& key) override {
    if (in_ == Object::other) return true;
    key_ = key;
    if (at_total_size() && std::exchange(has_total_size_, true)) refuse("has two total_size");
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    refuse("is not JSON at byte {}", position);
  }

  /// To be called after the whole index has been read.
  void finish() {
    if (!has_weight_map_) refuse("has no weight_map, which says which file has which tensor");
    auto& tensors = index.tensors;
    std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.tensor < b.tensor; });
    const auto twice = std::adjacent_find(tensors.begin(), tensors.end(),
                                          [](const auto& a, const auto& b) { return a.tensor == b.tensor; });
    if (twice != tensors.end()) refuse("has tensor {} twice", in_quotes(twice->tensor));
  }

 private:
  enum class Object { none, root, metadata, weight_map, other };

  bool at_total_size() const { return in_ == Object::metadata && key_ == "total_size"; }

  /// A value where no value, or none of this kind, is expected.
  bool value(std::string_view what) {
    if (in_ == Object::weight_map) {
      refuse("assigns tensor {} to {}, where the name of a file is expected", in_quotes(key_), what);
    }
    if (at_total_size()) index.total_size = what;
    if (in_ == Object::root && (key_ == "weight_map" || key_ == "metadata")) {
      refuse("has {} {}, where an object is expected", key_, what);
    }
    return true;
  }

  void begin_other(std::string_view what) {
    if (depth_ == 0) {
      value(what);
      outside_ = in_;
      in_ = Object::other;
    }
    ++depth_;
  }

  bool end() {
    if (in_ != Object::other) {
      in_ = Object::root;
    } else if (--depth_ == 0) {
      in_ = outside_;
    }
    return true;
  }

  std::string about_;
  Object in_ = Object::none, outside_ = Object::none;
  std::size_t depth_ = 0;  // nesting of a skipped part
  std::string key_;
  std::unordered_map<std::string, std::uint32_t> numbers_;  // index of each file
  bool has_weight_map_ = false, has_metadata_ = false, has_total_size_ = false;
};

}  // namespace

ShardIndex read_shard_index(const std::filesystem::path& path) {
  const std::string text = read_whole(path, most_bytes);
  IndexReader reader(path);
  // The parser would skip a byte order mark, and take NUL for the end of the text: both are checked here.
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos || text[first] != '{') reader.refuse("is not a JSON object");
  if (const std::size_t at = text.find('\0'); at != text.npos) reader.refuse("is not JSON at byte {}", at + 1);
  nlohmann::json::sax_parse(text.begin(), text.end(), &reader);  // the reader throws, so this never returns false
  reader.finish();
  return std::move(reader.index);
}

}  // namespace tessera::internal
