// A file's bytes, mapped: weights are read where they lie, and only the pages that are touched.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tessera {

/// A regular file mapped read-only, unmapped by the destructor; movable, not copyable.
/// The length is taken once: a file that somebody shortens while it is mapped ends the process with SIGBUS where the
/// missing part is read. Replacing a file (a new one renamed over it) is harmless: the mapping keeps the old one.
class MappedFile {
 public:
  /// Maps the whole of `path`. Error, naming path and reason, if it is missing, unreadable, empty, a folder or anything
  /// else that is not a regular file; never waits, not even for a FIFO.
  static MappedFile open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MappedFile();

  /// The content; never empty, valid as long as this object.
  std::span<const std::byte> bytes() const { return bytes_; }
  /// The same as characters.
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

/// `text`, of a path or out of a file, fit for a message: in single quotes, on one line (control characters as \xNN),
/// the middle of more than 500 bytes left out.
std::string in_quotes(std::string_view text);

}  // namespace tessera
