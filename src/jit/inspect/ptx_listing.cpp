#include "jit/inspect/ptx_listing.hpp"

#include <charconv>
#include <compare>
#include <map>
#include <utility>

#include "graph/text_lines.hpp"

namespace tessera::internal {
namespace {

constexpr std::string_view loc = ".loc";

/// ".loc file line column[, function_name ..., inlined_at file line column]": where a line of PTX comes from.
class PtxPlaces {
 public:
  /// Reads a directive. Returns the line of the innermost function, that of its call, and so on.
  std::vector<unsigned> read(std::string_view directive) {
    constexpr std::string_view inlined = "inlined_at";
    const Place at = place(directive.substr(loc.size()));
    if (const std::size_t call = directive.find(inlined); call != directive.npos)
      called_from_[at] = place(directive.substr(call + inlined.size()));
    else
      called_from_.erase(at);
    std::vector<unsigned> lines = {at.line};
    constexpr std::size_t deepest = 32;
    for (auto call = called_from_.find(at); call != called_from_.end() && lines.size() < deepest;
         call = called_from_.find(call->second))
      lines.push_back(call->second.line);
    return lines;
  }

 private:
  struct Place {
    unsigned line = 0, column = 0;
    auto operator<=>(const Place&) const = default;
  };
  static Place place(std::string_view text) {
    Place place;
    unsigned file = 0;
    const char *at = text.data(), *const end = at + text.size();
    for (unsigned* const number : {&file, &place.line, &place.column}) {
      while (at < end && (*at == ' ' || *at == '\t')) ++at;
      at = std::from_chars(at, end, *number).ptr;
    }
    return place;
  }
  std::map<Place, Place> called_from_;  // as the last directive said; calls come before what is inlined there
};

}  // namespace

std::vector<PtxLine> ptx_listing(std::string_view text) {
  std::vector<PtxLine> listing;
  PtxPlaces places;
  std::vector<unsigned> from;
  for (const std::string_view line : text_lines(text)) {
    const std::string_view inside = trimmed(line);
    if (inside.starts_with(".section") && inside.find(".debug") != inside.npos) break;
    if (inside.starts_with(".file")) continue;
    if (inside.starts_with(loc)) {
      from = places.read(inside);
      continue;
    }
    const bool is_code = inside.ends_with(';') && !inside.starts_with('.');
    listing.push_back({std::string(line), is_code ? from : std::vector<unsigned>()});
  }
  return listing;
}

}  // namespace tessera::internal
