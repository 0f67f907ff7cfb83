#include "codegen/author/reword.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <vector>

#include "codegen/prelude/tokens.hpp"
#include "graph/in_literal.hpp"

namespace tessera::internal::author {
namespace {

/// Calls each(word) for the words of a text, and between(text) for what is between them.
void each_word(std::string_view text, const auto& each, const auto& between) {
  const auto is_word = [](char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_word(text[end]) == is_word(text[at])) ++end;
    if (is_word(text[at]))
      each(text.substr(at, end - at));
    else
      between(text.substr(at, end - at));
    at = end;
  }
}

// A loop that fetches ahead counts what it fetches.
constexpr std::string_view fetching = "fetching_";

struct Line {
  std::string_view text;     // with the newline
  std::string_view content;  // without indentation and newline
};

std::vector<Line> text_lines(std::string_view text) {
  std::vector<Line> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    Line line{text.substr(0, end), text.substr(0, end)};
    text.remove_prefix(end);
    if (line.content.ends_with('\n')) line.content.remove_suffix(1);
    line.content.remove_prefix(std::min(line.content.find_first_not_of(' '), line.content.size()));
    lines.push_back(line);
  }
  return lines;
}

/// A line of source as the end of a comment: on one line, and it does not continue on the next one.
std::string in_comment(std::string_view line) {
  std::string text;
  for (const char c : line) text += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  const std::size_t first = text.find_first_not_of(' '), last = text.find_last_not_of(" \\");
  return first == text.npos || last == text.npos || last < first ? "" : text.substr(first, last + 1 - first);
}

}  // namespace

Reworder::Reworder(std::string_view kernel, std::string_view about, const AuthorWords& words) : words_(words) {
  // The helpers' names do not count: the kernel's own hide those that it does not use.
  std::set<std::string_view> taken, known;
  Tokens tokens(kernel);
  while (const std::optional<Token> token = tokens.next())
    if (token->kind == Token::Kind::word) taken.insert(token->text);
  known = taken;
  each_word(
      about, [&](std::string_view word) { known.insert(word); }, [](std::string_view) {});
  // The names that belong to each canonical one: the longest that begins a name counts.
  std::map<std::string_view, std::vector<std::string_view>> owned;
  std::set<std::string_view> canonical;
  for (const AuthorWords::Name& name : words.names) canonical.insert(name.canonical);
  for (const std::string_view word : known) {
    const std::string_view name = word.starts_with(fetching) ? word.substr(fetching.size()) : word;
    std::string_view owner;
    for (std::size_t end = name.size(); end != name.npos && end > 0 && owner.empty(); end = name.rfind('_', end - 1))
      if (const auto found = canonical.find(name.substr(0, end)); found != canonical.end()) owner = *found;
    if (!owner.empty()) owned[owner].push_back(word);
  }
  std::set<std::string, std::less<>> given;
  for (const AuthorWords::Name& name : words.names) {
    const auto own = owned.find(name.canonical);
    if (own == owned.end()) continue;
    const auto renamed = [&](std::string_view word, const std::string& to) {
      const bool fetches = word.starts_with(fetching);
      const std::string_view of = fetches ? word.substr(fetching.size()) : word;
      return std::string(fetches ? fetching : "").append(to).append(of.substr(name.canonical.size()));
    };
    const auto is_free = [&](const std::string& to) {
      return std::ranges::none_of(own->second, [&](std::string_view word) {
        const std::string one = renamed(word, to);
        return taken.contains(one) || given.contains(one);
      });
    };
    std::string to = name.author;
    for (int number = 2; !is_free(to); ++number) to = name.author + "_" + std::to_string(number);
    for (const std::string_view word : own->second) {
      std::string one = renamed(word, to);
      given.insert(one);
      names_.emplace(word, std::move(one));
    }
    owned.erase(own);
  }
}

std::string Reworder::prose(std::string_view text) const {
  std::string result;
  const auto put = [&](std::string_view word) {
    const auto found = names_.find(word);
    result += found == names_.end() ? word : std::string_view(found->second);
  };
  each_word(text, put, [&](std::string_view between) { result += between; });
  return result;
}

std::string Reworder::author_line(std::string_view file, unsigned number) const {
  for (const auto& [name, lines] : words_.lines)
    if (in_literal(name) == file && number > 0 && number <= lines.size()) return in_comment(lines[number - 1]);
  return "";
}

RewordedText Reworder::text(std::string_view text) const {
  RewordedText reworded;
  std::string& result = reworded.text;
  int made = 0;           // lines of the result
  std::string_view file;  // of the directive that holds
  unsigned number = 0, told = 0;
  const std::vector<Line> lines = text_lines(text);
  const auto directive = [&](std::string_view content) {
    constexpr std::string_view begin = "#line ";
    if (!content.starts_with(begin)) return false;
    content.remove_prefix(begin.size());
    unsigned at = 0;
    const auto end = std::from_chars(content.data(), content.data() + content.size(), at).ptr;
    const std::string_view rest = content.substr(static_cast<std::size_t>(end - content.data()));
    if (rest.size() < 4 || !rest.starts_with(" \"")) return false;
    const std::string_view name = rest.substr(2, rest.size() - 3);
    if (name != file || at != number) told = 0;
    file = name, number = at;
    return true;
  };
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Line& line = lines[i];
    reworded.lines.push_back(made);
    if (directive(line.content)) {
      result += line.text;
      ++made;
      continue;
    }
    if (line.content.starts_with("// ")) {
      if (i + 1 < lines.size()) directive(lines[i + 1].content);
      const std::string_view base = file.substr(file.rfind('/') + 1);
      const std::string_view rest = line.content.substr(3);
      const bool names_ops = rest.starts_with(base) && rest.substr(base.size()).starts_with(": ");
      if (const std::string source = author_line(file, number); names_ops && !source.empty()) {
        if (told != number) {
          result.append(line.text.substr(0, line.text.find("//"))).append("// " + source + '\n');
          ++made;
        }
        told = number;
        continue;
      }
    }
    result += prose(line.text);
    ++made;
  }
  return reworded;
}

}  // namespace tessera::internal::author
