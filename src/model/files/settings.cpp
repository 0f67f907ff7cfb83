#include "model/files/settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/files/input_file.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {

std::string integers(std::int32_t least, std::int32_t most) {
  return fmt::format("an integer from {} to {}", least, most);
}

Settings::Settings(const std::filesystem::path& path) : file_(in_quotes(path.native())) {
  const std::string text = read_whole(path, std::size_t{1} << 20);
  // The parser takes NUL for the end of the text, and would ignore everything after it.
  if (const std::size_t at = text.find('\0'); at != text.npos)
    throw Error(fmt::format("{} is not JSON at byte {}", file_, at + 1));
  try {
    values_ = nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& e) {
    throw Error(fmt::format("{} is not JSON at byte {}", file_, e.byte));
  } catch (const nlohmann::json::exception&) {  // a number beyond the range of double
    throw Error(fmt::format("{} is not JSON that can be represented", file_));
  }
  if (!values_.is_object()) throw Error(fmt::format("{} is not a JSON object", file_));
}

Settings Settings::at(std::string_view key) const {
  const auto& found = value(key, "an object");
  if (!found.is_object()) refuse(key, found, "an object");
  return {names_.empty() ? fmt::format("{}: {}", file_, key) : file_, found, names_};
}

std::int32_t Settings::integer(std::string_view key, std::int32_t least, std::int32_t most) const {
  return integer(key, value(key, integers(least, most)), least, most);
}

std::vector<std::int32_t> Settings::integers_at(std::string_view key, std::int32_t least, std::int32_t most) const {
  const auto& found = value(key, integers(least, most));
  if (!found.is_array()) return {integer(key, found, least, most)};
  std::vector<std::int32_t> all;
  for (const auto& one : found) all.push_back(integer(key, one, least, most));
  return all;
}

double Settings::number(std::string_view key) const {
  const auto& found = value(key, "a number");
  if (!found.is_number()) refuse(key, found, "a number");
  return found.get<double>();
}

double Settings::number_from(std::string_view key, double least) const {
  const double found = number(key);
  if (!(std::isfinite(found) && found >= least)) refuse(key, fmt::format("at least {}", least));
  return found;
}
double Settings::number_above(std::string_view key, double least) const {
  const double found = number(key);
  if (!(std::isfinite(found) && found > least)) refuse(key, fmt::format("above {}", least));
  return found;
}

std::vector<std::string> Settings::strings_at(std::string_view key, std::span<const std::string_view> allowed) const {
  const std::string expected = fmt::format("an array of {}", fmt::join(allowed, " or "));
  const auto& found = value(key, expected);
  if (!found.is_array()) refuse(key, found, expected);
  std::vector<std::string> all;
  for (const auto& one : found) {
    if (!one.is_string() || std::find(allowed.begin(), allowed.end(), one.get<std::string>()) == allowed.end())
      refuse(fmt::format("{}[{}]", key, all.size()), one, fmt::format("{}", fmt::join(allowed, " or ")));
    all.push_back(one.get<std::string>());
  }
  return all;
}

bool Settings::boolean(std::string_view key) const {
  const auto& found = value(key, "true or false");
  if (!found.is_boolean()) refuse(key, found, "true or false");
  return found.get<bool>();
}

void Settings::require_one_of(std::string_view key, std::span<const std::string_view> allowed) const {
  const std::string expected = fmt::format("{}", fmt::join(allowed, " or "));
  const auto& found = value(key, expected);
  if (!found.is_string() || std::find(allowed.begin(), allowed.end(), found.get<std::string>()) == allowed.end())
    refuse(key, found, expected);
}

void Settings::require_flag(std::string_view key, bool required) const {
  if (has(key) && boolean(key) != required) refuse(key, required ? "true" : "false");
}

void Settings::require_off(std::string_view key, std::string_view expected, double off) const {
  if (turns_on(key, off)) refuse(key, expected);
}

bool Settings::turns_on(std::string_view key, double off) const {
  if (!sets(key)) return false;
  const auto& found = values_[key];
  if (found.is_boolean()) return found.get<bool>();
  if (found.is_number()) return found.get<double>() != off;
  return found.is_string() || !found.empty();
}

void Settings::refuse(std::string_view key, std::string_view expected) const {
  refuse(key, value(key, expected), expected);
}

std::string_view Settings::shown(std::string_view key) const {
  const auto found = names_.find(key);
  return found == names_.end() ? key : std::string_view(found->second);
}

const nlohmann::json& Settings::value(std::string_view key, std::string_view expected) const {
  const auto found = values_.find(key);
  if (found == values_.end()) throw Error(fmt::format("{}: {} is missing, it must be {}", file_, shown(key), expected));
  return *found;
}

std::int32_t Settings::integer(std::string_view key, const nlohmann::json& found, std::int32_t least,
                               std::int32_t most) const {
  // Non-negative integers are read as unsigned, so that no large value wraps around.
  const bool fits = found.is_number_unsigned() ? std::cmp_greater_equal(found.get<std::uint64_t>(), least) &&
                                                     std::cmp_less_equal(found.get<std::uint64_t>(), most)
                                               : found.is_number_integer() && found.get<std::int64_t>() >= least;
  if (!fits) refuse(key, found, integers(least, most));
  return found.get<std::int32_t>();
}

void Settings::refuse(std::string_view key, const nlohmann::json& found, std::string_view expected) const {
  const std::string text = found.is_string()       ? in_quotes(found.get<std::string>())
                           : found.is_structured() ? fmt::format("an {}", found.type_name())
                                                   : found.dump();
  throw Error(fmt::format("{}: {} is {}, it must be {}", file_, shown(key), text, expected));
}

}  // namespace tessera::internal
