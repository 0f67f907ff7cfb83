#include "common/declared.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tessera::internal {

namespace {

/// The number of letters to insert, delete, replace or swap with a neighbor (optimal string alignment).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last, last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = last;
    last = row;
  }
  return last[b.size()];
}

std::string_view without_dashes(std::string_view name) {
  return name.substr(std::min(name.find_first_not_of('-'), name.size()));
}

}  // namespace

const DeclaredOption* DeclaredProgram::find(std::string_view option) const {
  for (const DeclaredOption& declared : options)
    if (std::ranges::find(declared.names, option) != declared.names.end()) return &declared;
  return nullptr;
}

std::vector<const DeclaredOption*> DeclaredProgram::arguments() const {
  std::vector<const DeclaredOption*> found;
  for (const DeclaredOption& option : options)
    if (option.is_argument) found.push_back(&option);
  return found;
}

std::vector<std::string> closest(std::string_view word, std::span<const std::string> names) {
  constexpr std::size_t longest = 64;  // longer names are not misspelled, and the distance takes quadratic time
  if (word.size() < 2 || word.size() > longest) return {};
  std::vector<std::pair<std::size_t, std::string>> like;
  for (const std::string& name : names) {
    // Up to a third of the letters may be wrong. A shorter word must be a prefix or suffix of the name.
    std::size_t wrong = distance(word, name);
    if (wrong > std::max(word.size(), name.size()) / 3) {
      if (word.size() < 3 || !(name.starts_with(word) || name.ends_with(word))) continue;
      wrong += longest / 2;
    }
    if (wrong < longest) like.emplace_back(wrong, name);
  }
  std::ranges::stable_sort(like, {}, &std::pair<std::size_t, std::string>::first);
  std::vector<std::string> best;
  for (const auto& [wrong, name] : like)
    if (best.size() < 3 && wrong <= like[0].first + 1) best.push_back(name);
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> names) {
  const std::vector<std::string> like = closest(word, names);
  std::string text;
  for (std::size_t i = 0; i < like.size(); ++i)
    text += (i == 0 ? "; did you mean " : i + 1 == like.size() ? " or " : ", ") + like[i];
  return text.empty() ? text : text + "?";
}

std::string DeclaredProgram::closest(std::string_view option) const {
  std::vector<std::string> names;
  for (const DeclaredOption& declared : options)
    for (const std::string& name : declared.names)
      if (name.starts_with("--")) names.emplace_back(without_dashes(name));
  const std::vector<std::string> like = internal::closest(without_dashes(option), names);
  return like.empty() ? "" : "--" + like[0];
}

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

}  // namespace tessera::internal
