// Texts searched by regular expressions of ECMAScript. Only patterns.cpp sees std::regex, which compiles for seconds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Does the pattern match anywhere in the text?
bool finds(std::string_view text, const std::string& pattern);

/// What the whole pattern matched, then each of its groups.
using Match = std::vector<std::string>;
/// In the order of the text.
std::vector<Match> matches(std::string_view text, const std::string& pattern);

/// The text with `with` for each match, in which $1 is a group and $& all. Of the matches only those numbered `which`,
/// if any are.
std::string replaced(std::string_view text, const std::string& pattern, const std::string& with,
                     const std::vector<int>& which = {});
