// Files that other processes read meanwhile: opened without following links, written whole or not at all.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <string_view>

namespace tessera {

/// Throws std::system_error for errno: "cannot `action` `path`: ...".
[[noreturn]] void throw_errno(std::string_view action, const std::filesystem::path& path);

/// An open file; false, with errno set, if it could not be opened.
class Descriptor {
 public:
  Descriptor(const std::filesystem::path& path, int flags, mode_t mode = 0);
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();
  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }
  bool close();

 private:
  int fd_;
};

/// Makes `folder` and what is missing above it, for this user alone. Throws std::system_error.
void make_folder(const std::filesystem::path& folder);

/// Writes a new file in `workplace` and renames it to `target`, which lies in the same file system; leaves nothing
/// behind if that fails. Makes missing folders. Throws std::system_error.
void write_whole_file(const std::filesystem::path& workplace, const std::filesystem::path& target,
                      std::string_view bytes);

}  // namespace tessera
