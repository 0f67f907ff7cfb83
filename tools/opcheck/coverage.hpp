// build/docs/op-coverage.md: ops, element types, and where they are checked.
#pragma once
#include <filesystem>
#include <string>

namespace tessera::internal::opcheck {

/// The page. `results` is a folder of what `opcheck test --device cuda --format json` printed, a file for each GPU; it
/// need not be there. Throws Error, naming the file, if one is not of that kind.
std::string coverage(const std::filesystem::path& results);

}  // namespace tessera::internal::opcheck
