// build/docs/op-coverage.md: ops, element types, and where they are checked.
#pragma once
#include <filesystem>
#include <string>

namespace tessera::internal::opcheck {

/// The page. `results` is a folder with the output of `opcheck test --device cuda --format json`, one file per GPU; it
/// need not exist. Throws Error, naming the file, if one has another content.
std::string coverage(const std::filesystem::path& results);

}  // namespace tessera::internal::opcheck
