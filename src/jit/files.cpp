#include "jit/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <system_error>
#include <utility>

namespace tessera {

namespace fs = std::filesystem;

void throw_errno(std::string_view action, const fs::path& path) {
  throw std::system_error(errno, std::generic_category(), fmt::format("cannot {} {}", action, path.native()));
}

Descriptor::Descriptor(const fs::path& path, int flags, mode_t mode) {
  do {
    fd_ = ::open(path.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, mode);
  } while (fd_ < 0 && errno == EINTR);
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

void write_whole_file(const fs::path& workplace, const fs::path& target, std::string_view bytes) {
  // Process and random number: several hosts may share the folder.
  static thread_local std::mt19937_64 random{std::random_device{}()};
  const fs::path path = workplace / fmt::format(".{}-{:016x}", ::getpid(), random());
  for (const fs::path& parent : {workplace, target.parent_path()}) make_folder(parent);
  Descriptor file(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (!file) throw_errno("make", path);
  try {
    while (!bytes.empty()) {
      const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) throw_errno("write", path);
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    if (!file.close()) throw_errno("close", path);
    // Not flushed to the disk first: a file cut off by a power failure is made again.
    if (::rename(path.c_str(), target.c_str()) != 0) throw_errno("make", target);
  } catch (...) {
    ::unlink(path.c_str());
    throw;
  }
}

}  // namespace tessera
