#include "jit/compile/page_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <mutex>
#include <optional>
#include <vector>

#include "jit/inspect/page.hpp"
#include "jit/options/files.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

namespace fs = std::filesystem;

/// The beginning of a file, which has a page's title and description; empty if it cannot be read.
std::string head_of(const fs::path& file) {
  constexpr std::uint64_t most = 4096;
  try {
    if (!fs::is_regular_file(file)) return {};
    const Descriptor open = Descriptor::through_links(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return open ? read_some(open, most, file) : std::string();
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace

void write_page(const fs::path& file, std::string_view page) {
  OutputFile output(file);
  output.write(page);
  output.publish();
}

void write_index(const fs::path& folder) {
  // Threads that write pages at the same time: the last index has all of them.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const fs::path index = folder / "index.html";
  if (fs::exists(index) && !is_index(head_of(index)))
    throw Error(fmt::format("{} is not an index of the inspector, and stays as it is", index.native()));
  std::vector<IndexEntry> entries;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".html") continue;
    const std::string name = entry.path().filename();
    if (std::optional<IndexEntry> found = index_entry(name, head_of(entry.path())))
      entries.push_back(std::move(*found));
  }
  std::ranges::sort(entries, {}, &IndexEntry::file);
  write_page(index, index_page(entries));
}

std::string shell_word(std::string_view word) {
  const bool plain = !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
    return std::isalnum(c) || std::string_view("-_./=:,+@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return std::string(word);
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string command_line() {
  constexpr std::uint64_t most = 1 << 16;
  std::string text;
  try {
    const fs::path file = "/proc/self/cmdline";
    const Descriptor open(file, O_RDONLY | O_CLOEXEC);
    const std::string all = open ? read_some(open, most, file) : std::string();
    for (std::string_view words = all; !words.empty();) {
      const std::size_t end = std::min(words.find('\0'), words.size());
      text += (text.empty() ? "" : " ") + shell_word(words.substr(0, end));
      words.remove_prefix(std::min(end + 1, words.size()));
    }
  } catch (const std::exception&) {  // no command then
  }
  return text;
}

}  // namespace tessera::internal
