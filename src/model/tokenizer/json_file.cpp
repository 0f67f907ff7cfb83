#include "model/tokenizer/json_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "model/files/input_file.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {

using nlohmann::json;

void fail_at(const std::filesystem::path& file, std::string_view what) {
  throw Error(fmt::format("{}: {}", in_quotes(file.native()), what));
}

std::string read_tokenizer_file(const std::filesystem::path& file) {
  constexpr std::size_t most = std::size_t{1} << 26;  // several times the size of the largest vocabulary
  if (std::error_code unknown; !std::filesystem::exists(file, unknown) && !unknown)
    fail_at(file, "no such file; text needs tokenizer.json, or vocab.json and merges.txt");
  std::string text = read_whole(file, most);
  if (text.starts_with("version https://git-lfs")) fail_at(file, "it is a Git-LFS pointer; run git lfs pull");
  return text;
}

json parse_json(const std::filesystem::path& file, const json::parser_callback_t& callback) {
  const std::string text = read_tokenizer_file(file);
  // The parser takes NUL for the end of the text, and would ignore everything after it.
  if (const std::size_t at = text.find('\0'); at != text.npos)
    fail_at(file, fmt::format("it is not JSON from byte {} on; download it again", at + 1));
  try {
    return json::parse(text, callback);
  } catch (const json::parse_error& error) {
    fail_at(file, fmt::format("it is not JSON from byte {} on; download it again", error.byte));
  } catch (const json::out_of_range&) {
    fail_at(file, "it has a number too large to read; download it again");
  }
}

JsonAt::JsonAt(const std::filesystem::path& file, const json& value) : file_(in_quotes(file.native())), value_(&value) {
  if (!value.is_object()) throw Error(fmt::format("{}: it must be one JSON object", file_));
}

JsonAt JsonAt::operator[](std::string_view key) const {
  if (!value_->is_object()) refuse("an object");
  const std::string place = place_.empty() ? std::string(key) : fmt::format("{}.{}", place_, key);
  const auto found = value_->find(key);
  if (found == value_->end()) throw Error(fmt::format("{}: {} is missing", file_, place));
  return {file_, place, *found};
}

std::vector<JsonAt> JsonAt::elements() const {
  if (!value_->is_array()) refuse("an array");
  std::vector<JsonAt> all;
  for (const json& one : *value_) all.push_back({file_, fmt::format("{}[{}]", place_, all.size()), one});
  return all;
}

std::vector<std::pair<std::string, JsonAt>> JsonAt::items() const {
  if (!value_->is_object()) refuse("an object");
  std::vector<std::pair<std::string, JsonAt>> all;
  for (const auto& [key, value] : value_->items()) all.emplace_back(key, (*this)[key]);
  return all;
}

const std::string& JsonAt::text() const {
  if (!value_->is_string()) refuse("a text");
  return value_->get_ref<const std::string&>();
}

const std::string& JsonAt::some_text() const {
  if (text().empty()) refuse("a text that is not empty");
  return text();
}

bool JsonAt::flag() const {
  if (!value_->is_boolean()) refuse("true or false");
  return value_->get<bool>();
}

std::int32_t JsonAt::integer() const {
  // A number beyond int64 becomes negative here.
  const std::int64_t value = value_->is_number_integer() ? value_->get<std::int64_t>() : -1;
  if (value < 0 || value > std::numeric_limits<std::int32_t>::max()) refuse("an integer from 0 on");
  return static_cast<std::int32_t>(value);
}

const std::string& JsonAt::one_of(std::initializer_list<std::string_view> allowed) const {
  if (!value_->is_string() || std::ranges::find(allowed, text()) == allowed.end())
    refuse(fmt::format("one of those that are supported: {}", fmt::join(allowed, ", ")));
  return text();
}

void JsonAt::refuse(std::string_view expected) const {
  const std::string shown = value_->is_string()       ? in_quotes(value_->get_ref<const std::string&>())
                            : value_->is_structured() ? fmt::format("an {}", value_->type_name())
                                                      : value_->dump();
  throw Error(fmt::format("{}: {} is {}, it must be {}", file_, place_, shown, expected));
}

}  // namespace tessera::internal
