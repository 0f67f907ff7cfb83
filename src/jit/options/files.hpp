// File access that is safe with concurrent readers and with paths from users: files are opened with care, and written
// completely or not at all.
#pragma once
#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tessera::internal {

/// Throws std::system_error for errno: "cannot `action` `path`: ...".
[[noreturn]] void throw_errno(std::string_view action, const std::filesystem::path& path);

/// An open file; false, with errno set, if it could not be opened.
class Descriptor {
 public:
  Descriptor() = default;
  /// Does not follow a symbolic link at the end of `path`.
  Descriptor(const std::filesystem::path& path, int flags, mode_t mode = 0);
  /// Opens `name` in an open folder. It must not be a symbolic link.
  Descriptor(const Descriptor& folder, const std::string& name, int flags, mode_t mode = 0);
  /// Follows symbolic links.
  static Descriptor through_links(const std::filesystem::path& path, int flags, mode_t mode = 0);
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }
  bool close();

 private:
  int fd_ = -1;
};

/// Creates `folder` and its missing parents, accessible to this user only. Throws std::system_error.
void make_folder(const std::filesystem::path& folder);

/// Writes all of `bytes`. Throws std::system_error that names `path`.
void write_all(const Descriptor& file, std::span<const std::byte> bytes, const std::filesystem::path& path);
/// Reads up to `most` bytes from the current position. Throws std::system_error that names `path`.
std::string read_some(const Descriptor& file, std::uint64_t most, const std::filesystem::path& path);

/// The content of a regular file; nullopt if there is none. Throws std::runtime_error if `path` is anything else (a
/// folder, a FIFO, a device) or a file of more than `most` bytes, so that reading never blocks and always ends,
/// wherever a link leads.
std::optional<std::string> read_regular_file(const std::filesystem::path& path, std::uint64_t most);

/// A name for a file that will be renamed: ".tessera-1234-0123456789abcdef", made of the process id and a random
/// number.
std::string temporary_name();
bool is_temporary_name(std::string_view name);

/// An output file that a user named. An existing file stays as it is until publish() replaces it, and for good if
/// publish() is not reached. Symbolic links are kept, and their target is written. Permissions and owner are kept. A
/// file is written in place only where a new file cannot replace it: a FIFO, a device, a file with several hard links,
/// a file whose owner this process may not set, or one in a folder that takes no new file. Throws std::system_error.
class [[gnu::visibility("default")]] OutputFile {  // also used by tessera::model, a separate library
 public:
  explicit OutputFile(const std::filesystem::path& path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  void publish();

 private:
  bool looks_like(const struct stat& old) const;

  std::filesystem::path path_, target_, temporary_;  // target_: links followed; temporary_: empty if there is none
  Descriptor file_;
};

}  // namespace tessera::internal
