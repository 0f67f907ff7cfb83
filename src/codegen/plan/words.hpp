// Names and lines of an author's source, as data.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tessera/graph/location.hpp"

namespace tessera::internal {

struct AuthorWords {
  struct Name {
    std::string canonical;  ///< in the compiled text, where it also begins names of what belongs to it
    std::string author;
  };
  std::vector<Name> names;                                ///< those that matter most come first
  std::map<std::string, std::vector<std::string>> lines;  ///< of files, by their names in locations
};

/// The text of a location's file; none if it cannot be read, or is not what was compiled.
using ReadSource = std::function<std::optional<std::string>(const Location&)>;

}  // namespace tessera::internal
