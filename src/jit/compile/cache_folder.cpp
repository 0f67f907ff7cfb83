#include "jit/compile/cache_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

namespace tessera::internal {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t largest_entry = 256 << 20;
constexpr std::chrono::hours stale_after{1};
constexpr const char* temporary = "tmp";
constexpr std::size_t name_size = 64, part_size = 2;  // an entry 1f2e... is the file 1f/2e...

// The first line is required by the Cache Directory Tagging Specification.
constexpr std::string_view mark =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# Kernels that Tessera compiled. The folder may be deleted at any time.\n";

bool is_hexadecimal(std::string_view name, std::size_t size) {
  return name.size() == size && name.find_first_not_of("0123456789abcdef") == name.npos;
}

bool others_write(const struct stat& status) { return (status.st_mode & (S_IWGRP | S_IWOTH)) != 0; }

/// Normalized, and without a trailing slash, which would give the folder two names.
fs::path plain(const fs::path& path) {
  const fs::path normal = path.lexically_normal();
  return normal.has_filename() || !normal.has_relative_path() ? normal : normal.parent_path();
}

void check_owner(const fs::path& path, const struct stat& status, bool may_be_sticky) {
  if (!S_ISDIR(status.st_mode)) throw std::runtime_error(path.native() + " is not a folder");
  if (status.st_uid != ::geteuid()) throw std::runtime_error(path.native() + " belongs to another user");
  if (others_write(status) && !(may_be_sticky && (status.st_mode & S_ISVTX)))
    throw std::runtime_error(path.native() + " can be written by others (chmod go-w fixes that)");
}

/// Checks a folder and every folder between it and `home`.
void check_folder(const fs::path& folder, const fs::path& home) {
  for (fs::path path = folder; path.has_relative_path(); path = path.parent_path()) {
    const bool below_home = !home.empty() && path != home && path.native().starts_with(home.native() + "/");
    if (path != folder && !below_home) break;
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) throw_errno("look at", path);
    check_owner(path, status, path != folder);
  }
}

/// The names in an open folder, as far as they can be read.
std::vector<std::string> names_in(const Descriptor& folder) {
  std::vector<std::string> names;
  const int fd = ::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fd >= 0 ? ::fdopendir(fd) : nullptr, ::closedir);
  if (!stream && fd >= 0) ::close(fd);
  while (const dirent* entry = stream ? ::readdir(stream.get()) : nullptr)
    if (const std::string name = entry->d_name; name != "." && name != "..") names.push_back(name);
  return names;
}

enum class FileKind { none, entry, other };

/// The kind of file at a name: an entry is a file that begins with the magic of entries, or with a part of it. Opened as `file`.
FileKind look_at(const Descriptor& folder, const std::string& name, const fs::path& path, Descriptor& file,
                 struct stat& status) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  file = Descriptor(folder, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file && errno == ENOENT) return FileKind::none;
  if (!file && (errno == ELOOP || errno == ENXIO)) return FileKind::other;  // a symbolic link, a socket
  if (!file) throw_errno("read", path);
  if (::fstat(file.get(), &status) != 0) throw_errno("look at", path);
  if (!S_ISREG(status.st_mode)) return FileKind::other;
  const std::string start = read_some(file, entry_magic.size(), path);
  if (::lseek(file.get(), 0, SEEK_SET) != 0) throw_errno("read", path);
  return entry_magic.starts_with(start) ? FileKind::entry : FileKind::other;
}

/// False also if it cannot be read.
bool is_entry(const Descriptor& folder, const std::string& name) {
  try {
    Descriptor file;
    struct stat status {};
    return look_at(folder, name, name, file, status) == FileKind::entry;
  } catch (const std::system_error&) {
    return false;
  }
}

}  // namespace

fs::path cache_folder(std::string_view option, const std::function<std::string(std::string_view)>& environment) {
  std::string lower(option);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (lower == "off" || lower == "0" || lower == "none") return {};
  if (::getauxval(AT_SECURE) != 0 || ::geteuid() != ::getuid()) return {};
  if (!option.empty()) return plain(fs::absolute(option));
  // The XDG rules: a relative path counts as unset.
  if (const fs::path base = environment("XDG_CACHE_HOME"); base.is_absolute()) return plain(base / "tessera");
  if (const fs::path home = environment("HOME"); home.is_absolute()) return plain(home / ".cache" / "tessera");
  return {};
}

CacheFolder::CacheFolder(const fs::path& parent, const fs::path& home) : path_(parent / folder_name) {
  make_folder(parent);
  check_folder(parent, plain(home));
  claim();
}

/// Creates the folder and marks it, or checks its mark.
void CacheFolder::claim() const {
  make_folder(path_);
  const Descriptor folder = open();
  struct stat status {};
  if (::fstat(folder.get(), &status) != 0) throw_errno("look at", path_);
  check_owner(path_, status, false);
  // Listed before the mark is read: another process that creates the folder at the same time writes its mark before
  // anything else.
  const std::vector<std::string> names = names_in(folder);
  std::string text;
  if (const Descriptor file(folder, mark_name, O_RDONLY | O_NONBLOCK | O_NOCTTY); file)
    text = read_some(file, mark.size(), path_ / mark_name);
  if (text == mark) return;
  const bool has_others = std::any_of(names.begin(), names.end(), [](const auto& name) { return name != mark_name; });
  if (has_others || !mark.starts_with(text))
    throw std::runtime_error(
        fmt::format("{} has no {} of Tessera's, so it does not belong to Tessera", path_.native(), mark_name));
  const Descriptor file(folder, mark_name, O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY, 0600);
  if (!file) throw_errno("make", path_ / mark_name);
  write_all(file, std::as_bytes(std::span(mark)), path_ / mark_name);
}

Descriptor CacheFolder::open() const {
  Descriptor folder(path_, O_RDONLY | O_DIRECTORY);
  if (!folder && (errno == ENOTDIR || errno == ELOOP))
    throw std::runtime_error(path_.native() + " is a link, or not a folder");
  if (!folder) throw_errno("open", path_);
  return folder;
}

/// A subfolder; false if it does not exist and `make` is false.
Descriptor CacheFolder::part(const Descriptor& folder, const std::string& name, bool make) const {
  if (make && ::mkdirat(folder.get(), name.c_str(), 0700) != 0 && errno != EEXIST) throw_errno("make", path_ / name);
  Descriptor part(folder, name, O_RDONLY | O_DIRECTORY);
  if (!part && (make || errno != ENOENT)) throw_errno("open", path_ / name);
  return part;
}

fs::path CacheFolder::file(const std::string& name) const {
  return path_ / name.substr(0, part_size) / name.substr(part_size);
}

void CacheFolder::read(const std::string& name, const std::function<bool(std::string_view)>& take,
                       std::string& why) const {
  const Descriptor folder(path_, O_RDONLY | O_DIRECTORY);
  if (!folder && errno == ENOENT) return;  // the cache was emptied
  if (!folder) throw_errno("open", path_);
  const Descriptor part = this->part(folder, name.substr(0, part_size), false);
  if (!part) return;
  const std::string rest = name.substr(part_size);
  Descriptor file;
  struct stat status {};
  switch (look_at(part, rest, this->file(name), file, status)) {
    case FileKind::none:
      return;
    case FileKind::other:
      why = "it is not a cache entry and is left in place (remove it)";
      return;
    case FileKind::entry:
      break;
  }
  if (status.st_uid != ::geteuid() || others_write(status)) {
    why = "others can write it";
  } else if (static_cast<std::uint64_t>(status.st_size) > largest_entry) {
    why = "it is too large";
  } else {
    const std::string bytes = read_some(file, static_cast<std::uint64_t>(status.st_size), this->file(name));
    if (take(bytes)) return void(::futimens(file.get(), nullptr));  // if that fails, its old time is harmless
    why = "its checksum is wrong";
  }
  // Another process may just have replaced the bad entry by a good one: remove only the file that was read.
  struct stat now {};
  if (::fstatat(part.get(), rest.c_str(), &now, AT_SYMLINK_NOFOLLOW) == 0 && now.st_ino == status.st_ino &&
      now.st_dev == status.st_dev && ::unlinkat(part.get(), rest.c_str(), 0) != 0)
    throw_errno("remove the bad entry", this->file(name));
}

void CacheFolder::write(const std::string& name, std::string_view bytes) const {
  if (bytes.size() > largest_entry) return;
  claim();  // again, since the cache may have been emptied
  const Descriptor folder = open();
  const Descriptor workplace = part(folder, temporary, true),
                   part = this->part(folder, name.substr(0, part_size), true);
  const std::string rest = name.substr(part_size);
  if (struct stat status{};
      ::fstatat(part.get(), rest.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && !is_entry(part, rest))
    return;
  const std::string unfinished = temporary_name();
  const fs::path path = path_ / temporary / unfinished;
  Descriptor made(workplace, unfinished, O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (!made) throw_errno("make", path);
  try {
    write_all(made, std::as_bytes(std::span(bytes)), path);
    if (!made.close()) throw_errno("close", path);
    // Not flushed to the disk first: after a power failure, a truncated file is compiled again.
    if (::renameat(workplace.get(), unfinished.c_str(), part.get(), rest.c_str()) != 0) throw_errno("make", file(name));
  } catch (...) {
    ::unlinkat(workplace.get(), unfinished.c_str(), 0);
    throw;
  }
}

void CacheFolder::remove(const std::string& name) const {
  const Descriptor folder(path_, O_RDONLY | O_DIRECTORY);
  if (!folder) return;
  const Descriptor part = this->part(folder, name.substr(0, part_size), false);
  const std::string rest = name.substr(part_size);
  if (part && is_entry(part, rest)) ::unlinkat(part.get(), rest.c_str(), 0);
}

void CacheFolder::trim(std::uint64_t most, bool sweep) const {
  const Descriptor folder = open();
  const Descriptor lock(folder, "lock", O_RDWR | O_CREAT | O_NONBLOCK | O_NOCTTY, 0600);
  if (!lock) throw_errno("open", path_ / "lock");
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return;  // another process is trimming

  const auto each_file = [&](const std::string& name, auto&& action) {
    const Descriptor part(folder, name, O_RDONLY | O_DIRECTORY);
    for (const std::string& file : part ? names_in(part) : std::vector<std::string>()) {
      struct stat status {};
      if (::fstatat(part.get(), file.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode))
        action(part, file, status);
    }
  };
  if (sweep) {
    const std::int64_t stale = std::time(nullptr) - std::chrono::seconds(stale_after).count();
    each_file(temporary, [&](const Descriptor& part, const std::string& file, const struct stat& status) {
      if (is_temporary_name(file) && status.st_mtim.tv_sec < stale) ::unlinkat(part.get(), file.c_str(), 0);
    });
  }

  struct Entry {
    std::int64_t seconds, nanoseconds;
    std::uint64_t bytes;
    std::string part, rest;
    bool operator<(const Entry& other) const {
      return std::pair(seconds, nanoseconds) < std::pair(other.seconds, other.nanoseconds);
    }
  };
  std::vector<Entry> entries;
  std::uint64_t total = 0;
  for (const std::string& name : names_in(folder)) {
    if (!is_hexadecimal(name, part_size)) continue;
    each_file(name, [&](const Descriptor&, const std::string& file, const struct stat& status) {
      const auto bytes = static_cast<std::uint64_t>(status.st_size);
      if (!is_hexadecimal(file, name_size - part_size) || bytes > largest_entry) return;
      total += bytes;
      entries.push_back({status.st_mtim.tv_sec, status.st_mtim.tv_nsec, bytes, name, file});
    });
  }
  std::sort(entries.begin(), entries.end());
  for (const Entry& entry : entries) {
    if (total <= most) break;
    const Descriptor part(folder, entry.part, O_RDONLY | O_DIRECTORY);
    if (!part || !is_entry(part, entry.rest) || ::unlinkat(part.get(), entry.rest.c_str(), 0) == 0)
      total -= entry.bytes;
  }
}

}  // namespace tessera::internal
