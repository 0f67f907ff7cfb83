// A JSON object in a file, read key by key.
#pragma once
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::internal {

constexpr std::int32_t min_token = std::numeric_limits<std::int32_t>::min();
constexpr std::int32_t max_token = std::numeric_limits<std::int32_t>::max();

/// "an integer from 1 to 7".
std::string integers(std::int32_t least, std::int32_t most);

/// Each error names file, key, value and what is expected.
class Settings {
 public:
  explicit Settings(const std::filesystem::path& path);
  /// The names of keys in a file that has others than config.json, for messages.
  using KeyNames = std::map<std::string, std::string, std::less<>>;
  /// Values of such a file, which is named `file` in messages.
  Settings(std::string file, nlohmann::json values, KeyNames names)
      : file_(std::move(file)), values_(std::move(values)), names_(std::move(names)) {}

  const std::string& file() const { return file_; }
  bool has(std::string_view key) const { return values_.contains(key); }
  bool is(std::string_view key, std::string_view text) const { return has(key) && values_[key] == text; }
  /// Present, and not null.
  bool sets(std::string_view key) const { return has(key) && !values_[key].is_null(); }
  /// The object at a key; its errors name the key, too.
  Settings at(std::string_view key) const;

  std::int32_t integer(std::string_view key, std::int32_t least, std::int32_t most) const;
  /// One integer or an array of them.
  std::vector<std::int32_t> integers_at(std::string_view key, std::int32_t least, std::int32_t most) const;
  double number(std::string_view key) const;
  /// A number of at least `least`, or above it.
  double number_from(std::string_view key, double least) const;
  double number_above(std::string_view key, double least) const;
  /// An array of strings, each one of `allowed`.
  std::vector<std::string> strings_at(std::string_view key, std::span<const std::string_view> allowed) const;
  bool boolean(std::string_view key) const;
  /// Requires a string that is one of `allowed`.
  void require_one_of(std::string_view key, std::span<const std::string_view> allowed) const;
  void require_flag(std::string_view key, bool required) const;
  /// Refuses all that turns a key on: see turns_on().
  void require_off(std::string_view key, std::string_view expected, double off = 0) const;
  /// True unless it is null, false, the number `off`, or empty.
  bool turns_on(std::string_view key, double off = 0) const;
  [[noreturn]] void refuse(std::string_view key, std::string_view expected) const;

 private:
  /// The key as the file has it.
  std::string_view shown(std::string_view key) const;
  const nlohmann::json& value(std::string_view key, std::string_view expected) const;
  std::int32_t integer(std::string_view key, const nlohmann::json& found, std::int32_t least, std::int32_t most) const;
  [[noreturn]] void refuse(std::string_view key, const nlohmann::json& found, std::string_view expected) const;

  std::string file_;
  nlohmann::json values_;
  KeyNames names_;
};

}  // namespace tessera::internal
