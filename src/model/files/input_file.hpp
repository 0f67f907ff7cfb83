// The input files of a model. They are read and never mapped, so that a file that changes meanwhile causes an error at
// most.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tessera::internal {

/// A regular file, open for reading; movable, not copyable. Replacing it (renaming a new file over it) is harmless: the
/// old file is read to the end.
class InputFile {
 public:
  /// Throws Error that names path and reason if it is missing, unreadable, empty, a folder or otherwise not a regular
  /// file. Never blocks, not even on a FIFO.
  static InputFile open(const std::filesystem::path& path);

  InputFile(InputFile&& other) noexcept
      : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  /// In bytes, when it was opened; more than 0.
  std::uint64_t size() const { return size_; }
  /// Fills `to`, in memory of any kind, with the bytes from `offset` on. Throws Error that names path and reason if
  /// they cannot be read, for example because the file was truncated.
  void read(std::uint64_t offset, std::span<std::byte> to) const;
  /// The same, as text.
  std::string text(std::uint64_t offset, std::size_t size) const;

 private:
  InputFile(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::filesystem::path path_;
  int fd_;
  std::uint64_t size_ = 0;
};

/// The content of a file of at most `most` bytes. Throws Error, before reading anything, if it is larger.
std::string read_whole(const std::filesystem::path& path, std::size_t most);

/// `text`, a path or text from a file, formatted for a message: in single quotes, on one line (control characters as
/// \xNN), and if it is longer than 500 bytes, without its middle.
std::string in_quotes(std::string_view text);

}  // namespace tessera::internal
