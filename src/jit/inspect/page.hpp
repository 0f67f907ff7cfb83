// The inspector's page: one file that needs no network.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::internal {

/// The page of one kernel. Views, of view_json(), are versions of it, for other GPUs or of other texts. The description
/// is for an index.
std::string inspector_page(std::string_view title, std::string_view description, std::span<const std::string> views);

/// The views of a page that inspector_page() made, each labelled with the file's stem. Throws Error, which names
/// `file`, if it is none, or a part of one.
std::vector<std::string> views_of_page(std::string_view page, std::string_view file);

/// A page in a folder.
struct IndexEntry {
  std::string file, title, description;
};
/// The entry of a page that inspector_page() made, from its first 4,096 bytes or more. None of any other file.
std::optional<IndexEntry> index_entry(std::string_view file, std::string_view page);
/// Did index_page() make this?
bool is_index(std::string_view page);
std::string index_page(std::span<const IndexEntry> entries);

}  // namespace tessera::internal
