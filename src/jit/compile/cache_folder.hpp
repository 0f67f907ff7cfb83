// Where compiled kernels lie on disk: a folder of our own below the one that a user names, in which anything else may
// be. Nothing is changed or removed but entries, by their names and how they begin, and temporary files, by their
// names; no link is followed.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "jit/options/files.hpp"

namespace tessera::internal {

/// The folder for `option` (TESSERA_CACHE_DIR): itself, empty (none) for "off", "0" and "none", and by default
/// $XDG_CACHE_HOME/tessera or ~/.cache/tessera. Never one in /tmp that others could make first: without HOME, or in a
/// program that runs with somebody else's rights, there is none. `environment`: variable -> value, "" if unset.
std::filesystem::path cache_folder(std::string_view option,
                                   const std::function<std::string(std::string_view)>& environment);

/// How every entry begins. 0x1a: `type` and `more` stop before the binary part.
inline constexpr std::string_view entry_magic = "tessera\x1a";

/// Entries by name, 64 hexadecimal digits. Several processes may use one folder. Functions throw std::system_error or
/// std::runtime_error, which name the file, where the disk or the folder does not allow what they do.
class CacheFolder {
 public:
  /// In the folder that the user names. The number changes with the layout.
  static constexpr const char* folder_name = "tessera-kernels-1";
  /// The file that says whose the folder is, to us and, by its first line, to programs that make backups.
  static constexpr const char* mark_name = "CACHEDIR.TAG";

  /// Makes `parent`, which may be a link, and the folder below it, which may not; refuses them if others may write
  /// there, or in a folder between `home` and them, as whoever does decides what runs on the GPU, and a folder that
  /// Tessera did not make.
  CacheFolder(const std::filesystem::path& parent, const std::filesystem::path& home);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path file(const std::string& name) const;

  /// Gives the bytes of an entry to `take`, which says whether they are good: it then counts as used now. Else `why`
  /// says what is wrong with what is there, if anything is, and a bad entry is removed.
  void read(const std::string& name, const std::function<bool(std::string_view)>& take, std::string& why) const;
  /// There whole or not at all, and not in the place of anything but an entry.
  void write(const std::string& name, std::string_view bytes) const;
  void remove(const std::string& name) const;
  /// Removes the entries used longest ago beyond `most` bytes, and, if `sweep`, what killed processes left. Does
  /// nothing while another process is at it.
  void trim(std::uint64_t most, bool sweep) const;

 private:
  void claim() const;
  Descriptor open() const;
  Descriptor part(const Descriptor& folder, const std::string& name, bool make) const;

  std::filesystem::path path_;
};

}  // namespace tessera::internal
