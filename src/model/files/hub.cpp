#include "tessera/model/hub.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "model/files/input_file.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

namespace fs = std::filesystem;

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// The folder in an environment variable; empty if it is not set.
fs::path named_by(const char* variable) {
  const char* const text = std::getenv(variable);
  const fs::path named = text ? text : "";
  if (named.empty() || *named.begin() != "~") return named;
  const char* const home = std::getenv("HOME");
  return (home ? home : "") / named.lexically_relative("~");
}

/// Could the hub have a model of that name? One or two parts of letters, digits, '-', '_' and '.'.
bool is_hub_name(std::string_view name) {
  constexpr std::size_t longest = 96;
  const auto is_part = [](std::string_view part) {
    return !part.empty() &&
           part.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") == part.npos &&
           part.front() != '-' && part.front() != '.' && part.back() != '-' && part.back() != '.';
  };
  const std::size_t slash = name.find('/');
  return name.size() <= longest && name.find("--") == name.npos && name.find("..") == name.npos &&
         is_part(name.substr(0, slash)) && (slash == name.npos || is_part(name.substr(slash + 1)));
}

/// The folder of a model in the cache.
fs::path folder_of(std::string_view name) {
  std::string folder = "models--";
  for (const char c : name) folder += c == '/' ? "--" : std::string(1, c);
  return hub_cache() / folder;
}

/// The snapshot that refs/main names, in a folder of the cache.
fs::path snapshot_in(const fs::path& folder) {
  constexpr std::size_t longest = 255;
  const fs::path reference = folder / "refs/main", snapshots = folder / "snapshots";
  std::vector<std::string> there;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(snapshots, ignored))
    there.push_back(in_quotes(entry.path().native()));
  std::sort(there.begin(), there.end());
  const std::string instead = there.empty() ? "it holds no snapshot either; download the model again"
                                            : fmt::format("specify a snapshot: {}", fmt::join(there, " or "));
  if (!is_there(reference)) {
    throw Error(fmt::format("{}: no such file, which would name the snapshot of the model to use; {}",
                            in_quotes(reference.native()), instead));
  }
  std::string named = read_whole(reference, longest);
  named.resize(named.find_last_not_of(" \t\r\n") + 1);
  const bool is_plain = !named.empty() && std::all_of(named.begin(), named.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
  if (!is_plain)
    throw Error(fmt::format("{} holds {}, which names no snapshot; {}", in_quotes(reference.native()), in_quotes(named),
                            instead));
  if (!is_folder(snapshots / named)) {
    throw Error(fmt::format("{} names snapshot {}, which is not in {}; {}", in_quotes(reference.native()), named,
                            in_quotes(snapshots.native()), instead));
  }
  return snapshots / named;
}

}  // namespace

fs::path hub_cache() {
  if (const fs::path cache = named_by("HF_HUB_CACHE"); !cache.empty()) return cache;
  if (const fs::path cache = named_by("HUGGINGFACE_HUB_CACHE"); !cache.empty()) return cache;  // its older name
  if (const fs::path home = named_by("HF_HOME"); !home.empty()) return home / "hub";
  if (const fs::path caches = named_by("XDG_CACHE_HOME"); !caches.empty()) return caches / "huggingface/hub";
  return named_by("HOME") / ".cache/huggingface/hub";
}

fs::path find_model(const std::string& name) {
  const fs::path folder = name;
  if (is_folder(folder)) {
    const bool of_cache = is_folder(folder / "snapshots") && !is_there(folder / "config.json");
    return of_cache ? snapshot_in(folder) : folder;
  }
  if (is_there(folder) || !is_hub_name(name)) return folder;
  const fs::path cached = folder_of(name);
  if (is_folder(cached)) return snapshot_in(cached);
  throw Error(fmt::format(
      "{}: no such folder, and no model of that name in the hub's cache, where it would be {}; nothing is downloaded "
      "here; run 'hf download {}'",
      in_quotes(name), in_quotes(cached.native()), name));
}

}  // namespace tessera::internal
