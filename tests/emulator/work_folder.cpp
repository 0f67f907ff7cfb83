#include "emulator/work_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <span>
#include <string>
#include <system_error>

#include "tessera/graph/error.hpp"

namespace tessera::internal::emulator {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view start = "tessera-emulator-";

[[noreturn]] void refuse(const fs::path& folder, std::string_view why) {
  const char* const variable = std::getenv("TMPDIR");
  throw Error(fmt::format("{}{}: the emulator cannot create a folder there to compile kernels in: {}; set TMPDIR to "
                          "another one",
                          variable ? "TMPDIR=" : "", variable ? variable : folder.native(), why));
}

fs::path temporary_folder() {
  std::error_code error;
  fs::path folder = fs::temp_directory_path(error);
  if (error) refuse(folder, error.message());
  return folder;
}

/// Returns false if another process holds the lock.
bool lock(const Descriptor& folder) { return folder && ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0; }

Descriptor open_folder(const fs::path& path) { return Descriptor(path, O_RDONLY | O_DIRECTORY); }

/// Removes folders of this user that no process has locked.
void remove_left_behind(const fs::path& among) {
  std::error_code error;
  for (fs::directory_iterator entry(among, fs::directory_options::skip_permission_denied, error), end;
       !error && entry != end; entry.increment(error)) {
    if (!entry->path().filename().native().starts_with(start)) continue;
    const Descriptor folder = open_folder(entry->path());
    struct stat status {};
    if (!folder || ::fstat(folder.get(), &status) != 0 || status.st_uid != ::geteuid() || !lock(folder)) continue;
    std::error_code ignored;
    fs::remove_all(entry->path(), ignored);
  }
}

}  // namespace

WorkFolder::WorkFolder() {
  const fs::path among = temporary_folder();
  static std::once_flag first;
  std::call_once(first, [&] { remove_left_behind(among); });
  do {  // until no other process removes it as left behind
    std::string name = (among / fmt::format("{}XXXXXX", start)).native();
    if (!::mkdtemp(name.data())) refuse(among, std::generic_category().message(errno));
    path_ = name;
    lock_ = open_folder(path_);
    if (!lock_ && errno != ENOENT) refuse(among, std::generic_category().message(errno));
  } while (!lock(lock_));
}

WorkFolder::~WorkFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

fs::path keep_for_users(std::string_view text) {
  static std::mutex mutex;
  static std::string& kept = *new std::string;
  const std::lock_guard guard(mutex);
  Descriptor file;
  if (!kept.empty()) file = Descriptor(kept, O_WRONLY | O_TRUNC);
  if (!file) {
    const fs::path among = temporary_folder();
    constexpr std::string_view suffix = ".cpp";
    std::string name = (among / fmt::format("tessera-refused-XXXXXX{}", suffix)).native();
    const int made = ::mkstemps(name.data(), static_cast<int>(suffix.size()));
    if (made < 0) refuse(among, std::generic_category().message(errno));
    ::close(made);
    file = Descriptor(kept = name, O_WRONLY | O_TRUNC);
  }
  if (!file) throw_errno("write", kept);
  write_all(file, std::as_bytes(std::span(text)), kept);
  return kept;
}

}  // namespace tessera::internal::emulator
