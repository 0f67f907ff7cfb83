// Searches texts by ECMAScript regular expressions. Only patterns.cpp includes std::regex, which compiles for seconds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Does the pattern match anywhere in the text?
bool finds(std::string_view text, const std::string& pattern);

/// The whole match, then each of its groups.
using Match = std::vector<std::string>;
/// In the order of the text.
std::vector<Match> matches(std::string_view text, const std::string& pattern);

/// The text with each match replaced by `with`, in which $1 is a group and $& the match. Only the matches numbered in
/// `which` are replaced, if it is not empty.
std::string replaced(std::string_view text, const std::string& pattern, const std::string& with,
                     const std::vector<int>& which = {});
