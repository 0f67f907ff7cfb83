// JSON files of a tokenizer: parsed with checks, and read value by value with errors that name the key.
#pragma once
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::internal {

/// Throws Error: the file in quotes, and `what`.
[[noreturn]] void fail_at(const std::filesystem::path& file, std::string_view what);

/// The text of a file. Throws Error if it is missing, too large for a tokenizer's, or a Git-LFS pointer.
std::string read_tokenizer_file(const std::filesystem::path& file);

/// The document in a file. Throws Error if it is not JSON; `callback` is that of nlohmann's parser.
nlohmann::json parse_json(const std::filesystem::path& file,
                          const nlohmann::json::parser_callback_t& callback = nullptr);

/// A value in a document and its place there. Each error names file, place, value and what is expected.
class JsonAt {
 public:
  JsonAt(const std::filesystem::path& file, const nlohmann::json& value);

  /// Present, and not null.
  bool has(std::string_view key) const { return value_->contains(key) && !(*value_)[key].is_null(); }
  /// The value at a key of this object.
  JsonAt operator[](std::string_view key) const;
  /// The elements of this array.
  std::vector<JsonAt> elements() const;
  /// The keys of this object, and the values.
  std::vector<std::pair<std::string, JsonAt>> items() const;

  const std::string& text() const;
  /// A text that is not empty.
  const std::string& some_text() const;
  bool flag() const;
  /// The flag at a key, or `otherwise` if there is none.
  bool flag(std::string_view key, bool otherwise) const { return has(key) ? (*this)[key].flag() : otherwise; }
  std::int32_t integer() const;  ///< from 0 on
  bool is_text() const { return value_->is_string(); }
  bool is_array() const { return value_->is_array(); }

  /// A text that is one of `allowed`.
  const std::string& one_of(std::initializer_list<std::string_view> allowed) const;
  [[noreturn]] void refuse(std::string_view expected) const;

 private:
  JsonAt(std::string file, std::string place, const nlohmann::json& value)
      : file_(std::move(file)), place_(std::move(place)), value_(&value) {}

  std::string file_, place_;  // the file in quotes; "model.type"
  const nlohmann::json* value_;
};

}  // namespace tessera::internal
