#include "support/patterns.hpp"

#include <algorithm>
#include <iterator>
#include <regex>

namespace {

using Iterator = std::regex_iterator<std::string_view::const_iterator>;

}  // namespace

bool finds(std::string_view text, const std::string& pattern) {
  return std::regex_search(text.begin(), text.end(), std::regex(pattern));
}

std::vector<Match> matches(std::string_view text, const std::string& pattern) {
  const std::regex compiled(pattern);
  std::vector<Match> all;
  for (Iterator each(text.begin(), text.end(), compiled), end; each != end; ++each) {
    Match& match = all.emplace_back();
    for (const auto& group : *each) match.push_back(group.str());
  }
  return all;
}

std::string replaced(std::string_view text, const std::string& pattern, const std::string& with,
                     const std::vector<int>& which) {
  const std::regex compiled(pattern);
  std::string result;
  auto rest = text.begin();
  int place = 0;
  for (Iterator each(text.begin(), text.end(), compiled), end; each != end; ++each, ++place) {
    result.append(rest, (*each)[0].first);
    result += which.empty() || std::ranges::count(which, place) ? each->format(with) : each->str();
    rest = (*each)[0].second;
  }
  return result.append(rest, text.end());
}
