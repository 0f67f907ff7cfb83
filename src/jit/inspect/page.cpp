#include "jit/inspect/page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include "graph/in_json.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

struct File {
  std::string_view path, content;
};
constexpr File files[] = {
#include "inspector_files.inc"
};

std::string_view content(std::string_view path) {
  const auto* const found = std::ranges::find(files, path, &File::path);
  if (found == std::end(files)) throw InternalError(fmt::format("the page has no file {}", path));
  return found->content;
}

/// In a script element only "<" could end the data or begin a comment; JSON has it only in strings.
std::string in_script(std::string_view json) {
  std::string text;
  for (const char c : json)
    if (c == '<')
      text += "\\u003c";
    else
      text += c;
  return text;
}

std::string in_html(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '&')
      result += "&amp;";
    else if (c == '"')
      result += "&quot;";
    else
      result += c;
  }
  return result;
}

/// A frame with "{name}" replaced by the part of that name.
std::string filled(std::string_view frame, const std::map<std::string_view, std::string>& parts) {
  std::string page;
  for (std::size_t at; (at = frame.find('{')) != frame.npos;) {
    const std::size_t end = frame.find('}', at);
    page.append(frame.substr(0, at)).append(parts.at(frame.substr(at + 1, end - at - 1)));
    frame.remove_prefix(end + 1);
  }
  return page.append(frame);
}

// The frames name their maker.
constexpr std::string_view page_mark = R"(<meta name="generator" content="Tessera inspector">)",
                           index_mark = R"(<meta name="generator" content="Tessera inspector index">)";
// Each view is a line of its own.
constexpr std::string_view begin_views = "{\"views\":[\n", end_views = "\n]}", between_views = ",\n";

}  // namespace

std::string inspector_page(std::string_view title, std::string_view description, std::span<const std::string> views) {
  const std::string data = in_script(fmt::format("{}{}{}", begin_views, fmt::join(views, between_views), end_views));
  const std::map<std::string_view, std::string> parts = {{"title", in_html(title)},
                                                         {"description", in_html(description)},
                                                         {"style", std::string(content("page.css"))},
                                                         {"script", std::string(content("page.js"))},
                                                         {"data", data}};
  return filled(content("page.html"), parts);
}

std::optional<IndexEntry> index_entry(std::string_view file, std::string_view page) {
  const auto between = [&](std::string_view begin, std::string_view end) -> std::optional<std::string> {
    const std::size_t at = page.find(begin);
    const std::size_t last = at == page.npos ? page.npos : page.find(end, at + begin.size());
    if (last == page.npos) return {};
    return std::string(page.substr(at + begin.size(), last - at - begin.size()));
  };
  const auto title = between("<title>", "</title>"),
             description = between("<meta name=\"description\" content=\"", "\">");
  if (!title || !description || page.find(page_mark) == page.npos) return {};
  return IndexEntry{std::string(file), *title, *description};
}

bool is_index(std::string_view page) { return page.find(index_mark) != page.npos; }

std::string index_page(std::span<const IndexEntry> entries) {
  std::string rows;
  for (const IndexEntry& entry : entries)  // titles and descriptions are HTML
    fmt::format_to(std::back_inserter(rows), "<tr><td><a href=\"{}\">{}</a></td><td>{}</td></tr>\n",
                   in_html(entry.file), entry.title, entry.description);
  return filled(content("index.html"), {{"style", std::string(content("page.css"))}, {"rows", rows}});
}

std::vector<std::string> views_of_page(std::string_view page, std::string_view file) {
  const std::size_t begin = page.find(begin_views), end = page.find(end_views, begin == page.npos ? 0 : begin);
  if (page.find(page_mark) == page.npos || begin == page.npos || end == page.npos)
    throw Error(fmt::format("{} is not a page of the inspector, or only a part of one", file));
  std::vector<std::string> views;
  std::string_view data = page.substr(begin + begin_views.size(), end - begin - begin_views.size());
  const std::string_view stem = file.substr(file.rfind('/') + 1, file.rfind('.') - file.rfind('/') - 1);
  const std::string prefix = in_script(in_json(fmt::format("{}: ", stem)));
  while (!data.empty()) {
    const std::size_t line = std::min(data.find(between_views), data.size());
    std::string& view = views.emplace_back(data.substr(0, line));
    constexpr std::string_view label = R"("label":")";
    if (const std::size_t at = view.find(label); at != view.npos)
      view.insert(at + label.size(), prefix.substr(1, prefix.size() - 2));
    data.remove_prefix(std::min(line + between_views.size(), data.size()));
  }
  return views;
}

}  // namespace tessera::internal
