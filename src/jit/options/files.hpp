// Files that other processes read meanwhile, and that users name: opened with care, written whole or not at all.
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
  /// Follows no link at the end of `path`.
  Descriptor(const std::filesystem::path& path, int flags, mode_t mode = 0);
  /// `name` in an open folder, and no link.
  Descriptor(const Descriptor& folder, const std::string& name, int flags, mode_t mode = 0);
  /// Follows links.
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

/// Makes `folder` and what is missing above it, for this user alone. Throws std::system_error.
void make_folder(const std::filesystem::path& folder);

/// Writes all of `bytes`. Throws std::system_error that names `path`.
void write_all(const Descriptor& file, std::span<const std::byte> bytes, const std::filesystem::path& path);
/// Reads up to `most` bytes from where the file stands. Throws std::system_error that names `path`.
std::string read_some(const Descriptor& file, std::uint64_t most, const std::filesystem::path& path);

/// The content of a regular file; none if there is no file. Throws std::runtime_error for anything else that stands
/// there, and for a file of more than `most` bytes: whatever a link leads to, reading it neither waits nor has no end.
std::optional<std::string> read_regular_file(const std::filesystem::path& path, std::uint64_t most);

/// A name for a file that will soon have another: ".tessera-1234-0123456789abcdef", with the process's number.
std::string temporary_name();
bool is_temporary_name(std::string_view name);

/// A file that a user named to be written. What there is stays until publish(), and for good if that is not reached; a
/// link stays, and where it leads is written; permissions and owner stay. Only what a new file cannot stand in for is
/// written as it is: a FIFO, a device, a file of several names, of an owner that is not ours to give, or in a
/// folder that takes no other. Throws std::system_error.
class [[gnu::visibility("default")]] OutputFile {  // tessera::model, a library of its own, writes by it
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

  std::filesystem::path path_, target_, temporary_;  // target_: behind links; temporary_: empty if there is none
  Descriptor file_;
};

}  // namespace tessera::internal
