#include "jit/options/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <random>
#include <system_error>
#include <utility>

namespace tessera::internal {
namespace {

namespace fs = std::filesystem;

int open_again(int folder, const char* path, int flags, mode_t mode) {
  for (;;)
    if (const int fd = ::openat(folder, path, flags | O_CLOEXEC, mode); fd >= 0 || errno != EINTR) return fd;
}

/// Follows the symbolic links at the end of `path`; their target need not exist yet.
fs::path behind_links(fs::path path) {
  std::error_code none;
  for (int links = 0; links < 40; ++links) {
    const fs::path next = fs::read_symlink(path, none);
    if (none) return path;
    path = path.parent_path() / next;
  }
  errno = ELOOP;
  throw_errno("follow", path);
}

}  // namespace

void throw_errno(std::string_view action, const fs::path& path) {
  throw std::system_error(errno, std::generic_category(), fmt::format("cannot {} {}", action, path.native()));
}

Descriptor::Descriptor(const fs::path& path, int flags, mode_t mode)
    : fd_(open_again(AT_FDCWD, path.c_str(), flags | O_NOFOLLOW, mode)) {}

Descriptor::Descriptor(const Descriptor& folder, const std::string& name, int flags, mode_t mode)
    : fd_(open_again(folder.fd_, name.c_str(), flags | O_NOFOLLOW, mode)) {}

Descriptor Descriptor::through_links(const fs::path& path, int flags, mode_t mode) {
  Descriptor descriptor;
  descriptor.fd_ = open_again(AT_FDCWD, path.c_str(), flags, mode);
  return descriptor;
}

Descriptor::Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

bool Descriptor::close() { return ::close(std::exchange(fd_, -1)) == 0; }

void make_folder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return;
  if (errno != ENOENT || !folder.has_relative_path()) throw_errno("make", folder);
  make_folder(folder.parent_path());
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) throw_errno("make", folder);
}

namespace {

/// While this exists, a write beyond the process's file size limit fails instead of raising SIGXFSZ, which would end
/// the process.
class FileSizeLimit {
 public:
  FileSizeLimit() {
    sigemptyset(&signal_), sigaddset(&signal_, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    const int error = errno;
    const timespec now{};
    if (!sigismember(&before_, SIGXFSZ)) ::sigtimedwait(&signal_, nullptr, &now);  // takes the kernel's signal
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }

 private:
  sigset_t signal_, before_;
};

}  // namespace

void write_all(const Descriptor& file, std::span<const std::byte> bytes, const fs::path& path) {
  const FileSizeLimit limit;
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw_errno("write", path);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

std::string read_some(const Descriptor& file, std::uint64_t most, const fs::path& path) {
  std::string text(static_cast<std::size_t>(most), '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("read", path);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  return text;
}

std::optional<std::string> read_regular_file(const fs::path& path, std::uint64_t most) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  const Descriptor file = Descriptor::through_links(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file && errno == ENOENT) return std::nullopt;
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) throw_errno("read", path);
  const auto refuse = [&](std::string_view why) {
    throw std::runtime_error(fmt::format("cannot read {}: {}", path.native(), why));
  };
  if (S_ISDIR(status.st_mode)) refuse("it is a folder");
  if (!S_ISREG(status.st_mode)) refuse("it is not a regular file");
  if (static_cast<std::uint64_t>(status.st_size) > most)
    refuse(fmt::format("it has {} bytes, and {} are the most", status.st_size, most));
  return read_some(file, static_cast<std::uint64_t>(status.st_size), path);
}

std::string temporary_name() {
  // Process id and random number: several machines may share the folder.
  static thread_local std::mt19937_64 random{std::random_device{}()};
  return fmt::format(".tessera-{}-{:016x}", ::getpid(), random());
}

bool is_temporary_name(std::string_view name) {
  constexpr std::string_view start = ".tessera-";
  if (!name.starts_with(start)) return false;
  name.remove_prefix(start.size());
  const std::size_t dash = name.find('-');
  return dash != 0 && dash != name.npos && name.find_first_not_of("0123456789") == dash && name.size() == dash + 17 &&
         name.find_first_not_of("0123456789abcdef", dash + 1) == name.npos;
}

OutputFile::OutputFile(const fs::path& path) : path_(path) {
  // Open the file first, without changing it: its own permissions decide whether it may be written, not those of its
  // folder.
  Descriptor there = Descriptor::through_links(path, O_WRONLY | O_NOCTTY);
  if (!there && errno != ENOENT) throw_errno("write", path);
  struct stat old {};
  if (there && ::fstat(there.get(), &old) != 0) throw_errno("look at", path);
  if (!there || (S_ISREG(old.st_mode) && old.st_nlink == 1)) {
    target_ = behind_links(path);
    temporary_ = target_.parent_path() / temporary_name();
    file_ = Descriptor(temporary_, O_WRONLY | O_CREAT | O_EXCL, there ? 0600 : 0666);
    if (!file_ && !(there && errno == EACCES)) {
      temporary_.clear();
      throw_errno("write", path);
    }
    if (!there || (file_ && looks_like(old))) return;
    if (file_) ::unlink(temporary_.c_str());
    temporary_.clear();
  }
  file_ = std::move(there);
  if (S_ISREG(old.st_mode) && ::ftruncate(file_.get(), 0) != 0) throw_errno("write", path);
}

/// Gives the new file the owner and the permissions of the file it replaces; false if this process may not.
bool OutputFile::looks_like(const struct stat& old) const {
  return ::fchown(file_.get(), old.st_uid, old.st_gid) == 0 && ::fchmod(file_.get(), old.st_mode & 0777) == 0;
}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void OutputFile::write(std::span<const std::byte> bytes) { write_all(file_, bytes, path_); }

void OutputFile::publish() {
  if (!temporary_.empty() && ::fsync(file_.get()) != 0) throw_errno("write", path_);
  if (!file_.close()) throw_errno("write", path_);
  if (temporary_.empty()) return;
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) throw_errno("write", path_);
  temporary_.clear();
}

}  // namespace tessera::internal
