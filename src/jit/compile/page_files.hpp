// Files of the inspector's pages, and how they are made again.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace tessera::internal {

/// Writes a page. Throws std::system_error that names the file.
void write_page(const std::filesystem::path& file, std::string_view page);

/// Writes index.html, with a line for each page in a folder. Files that are not pages, or cannot be read, are left out.
/// Throws Error if index.html is somebody else's, and std::system_error that names the file.
void write_index(const std::filesystem::path& folder);

/// A word for a shell: in quotes if it needs them.
std::string shell_word(std::string_view word);
/// The command line of this process, for a shell; empty if it cannot be read.
std::string command_line();

}  // namespace tessera::internal
