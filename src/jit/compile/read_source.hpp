// Reads the author's source, for dumps in the author's words.
#pragma once
#include <optional>
#include <string>

#include "tessera/graph/location.hpp"

namespace tessera::internal {

/// The text of a location's file, as it was compiled: none if it cannot be read, has more than 4 MiB, or is newer than
/// the program or library that the location is part of.
std::optional<std::string> read_source(const Location& location);

}  // namespace tessera::internal
