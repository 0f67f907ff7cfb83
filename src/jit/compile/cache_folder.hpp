// The folder of compiled kernels on disk: a folder of Tessera's own below the one that the user names, which may
// contain other files. Only entries, known by their names and their first bytes, and temporary files, known by their
// names, are changed or removed. Symbolic links are not followed.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "jit/options/files.hpp"

namespace tessera::internal {

/// The folder for `option` (TESSERA_CACHE_DIR): the option itself; empty (no cache on disk) for "off", "0" and "none";
/// by default $XDG_CACHE_HOME/tessera or ~/.cache/tessera. Never a folder in /tmp, which others could create first:
/// without HOME, or in a program that runs with another user's rights, there is no cache on disk. `environment`:
/// variable -> value, "" if unset.
std::filesystem::path cache_folder(std::string_view option,
                                   const std::function<std::string(std::string_view)>& environment);

/// The first bytes of every entry. 0x1a: `type` and `more` stop there, before the binary part.
inline constexpr std::string_view entry_magic = "tessera\x1a";

/// Entries by name, which is 64 hexadecimal digits. Several processes may use one folder. Functions throw
/// std::system_error or std::runtime_error that names the file, if the disk or the folder does not permit an operation.
class CacheFolder {
 public:
  /// The name of the folder, inside the one that the user names. The number changes with the layout.
  static constexpr const char* folder_name = "tessera-kernels-1";
  /// The file that marks the folder as Tessera's and, by its first line, as a cache for backup programs.
  static constexpr const char* mark_name = "CACHEDIR.TAG";

  /// Creates `parent`, which may be a symbolic link, and the folder in it, which may not. Throws for a folder that
  /// Tessera did not create, and if others may write to these folders or to one between `home` and them: whoever can
  /// write there decides what runs on the GPU.
  CacheFolder(const std::filesystem::path& parent, const std::filesystem::path& home);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path file(const std::string& name) const;

  /// Passes the bytes of an entry to `take`, which returns whether they are good; a good entry then counts as just
  /// used. Otherwise `why` says what is wrong, if anything is there, and a bad entry is removed.
  void read(const std::string& name, const std::function<bool(std::string_view)>& take, std::string& why) const;
  /// Writes an entry completely or not at all. It replaces nothing but an entry.
  void write(const std::string& name, std::string_view bytes) const;
  void remove(const std::string& name) const;
  /// Removes the least recently used entries beyond `most` bytes and, if `sweep`, the temporary files of killed
  /// processes. Does nothing while another process is trimming.
  void trim(std::uint64_t most, bool sweep) const;

 private:
  void claim() const;
  Descriptor open() const;
  Descriptor part(const Descriptor& folder, const std::string& name, bool make) const;

  std::filesystem::path path_;
};

}  // namespace tessera::internal
