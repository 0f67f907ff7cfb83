// Files that a model is read from: read, never mapped, so that one which is changed meanwhile costs an error at most.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tessera::internal {

/// A regular file, open for reading; movable, not copyable. Replacing it (a new one renamed over it) is harmless: the
/// old one is read on.
class InputFile {
 public:
  /// Error, naming path and reason, if it is missing, unreadable, empty, a folder or anything else that is not a
  /// regular file; never waits, not even for a FIFO.
  static InputFile open(const std::filesystem::path& path);

  InputFile(InputFile&& other) noexcept
      : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  /// When it was opened; more than 0.
  std::uint64_t size() const { return size_; }
  /// Fills `to` with what begins at `offset`, in memory of any kind. Error, naming path and reason, if that cannot be
  /// read, as of a file that somebody has shortened.
  void read(std::uint64_t offset, std::span<std::byte> to) const;
  /// The same as text.
  std::string text(std::uint64_t offset, std::size_t size) const;

 private:
  InputFile(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::filesystem::path path_;
  int fd_;
  std::uint64_t size_ = 0;
};

/// The whole of a file that has at most `most` bytes. Error, before anything is read, if it has more.
std::string read_whole(const std::filesystem::path& path, std::size_t most);

/// `text`, of a path or out of a file, fit for a message: in single quotes, on one line (control characters as \xNN),
/// the middle of more than 500 bytes left out.
std::string in_quotes(std::string_view text);

}  // namespace tessera::internal
