// Files that users name: outputs are complete or absent, and nothing else about them changes; inputs are regular files.
#include "jit/options/files.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "support/catch.hpp"
#include "support/support.hpp"

namespace test_files {

using namespace tessera::internal;
namespace fs = std::filesystem;

namespace {

void write_output(const fs::path& path, std::string_view text) {
  OutputFile file(path);
  file.write(text.substr(0, text.size() / 2));
  file.write(text.substr(text.size() / 2));
  file.publish();
}

struct stat status_of(const fs::path& path) {
  struct stat status {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status;
}

std::ptrdiff_t count_in(const fs::path& folder) { return std::distance(fs::directory_iterator(folder), {}); }

/// The message of the exception.
template <class Action>
std::string failure_of(Action&& action) {
  try {
    action();
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "(no error)";
}

}  // namespace

TEST_CASE("An output file is complete or absent", "[jit]") {
  const TempDir folder;
  const fs::path path = folder / "out";
  const mode_t mask = ::umask(027);
  write_output(path, "first");
  ::umask(mask);
  CHECK(read_text(path) == "first");
  CHECK((status_of(path).st_mode & 07777) == 0640);  // as for any new file
  {
    OutputFile file(path);
    file.write("second");
    CHECK(read_text(path) == "first");
  }
  CHECK(read_text(path) == "first");
  CHECK(count_in(folder.path()) == 1);
  CHECK(says(failure_of([&] { write_output(folder / "missing" / "out", ""); }), {"missing/out", "No such file"}));
  CHECK(says(failure_of([&] { write_output(folder.path(), ""); }), {folder.path().native(), "Is a directory"}));

  rlimit old{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &old) == 0);
  const rlimit small{1 << 16, old.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string message = failure_of([&] { write_output(path, std::string(1 << 20, 'x')); });
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &old) == 0);
  CHECK(says(message, {path.native(), "File too large"}));
  CHECK(read_text(path) == "first");
  CHECK(count_in(folder.path()) == 1);
}

TEST_CASE("An output file keeps permissions and owner, and links stay", "[jit]") {
  const TempDir folder;
  fs::create_directory(folder / "below");
  const fs::path file = folder / "below" / "file", link = folder / "link", dangling = folder / "dangling";
  write_text(file, "before");
  REQUIRE(::chmod(file.c_str(), 0600) == 0);
  const bool is_root = ::chown(file.c_str(), 12, 34) == 0;
  fs::create_symlink("below/file", folder / "near");
  fs::create_symlink("near", link);
  write_output(link, "after");
  CHECK(fs::read_symlink(link) == "near");
  CHECK(read_text(file) == "after");
  CHECK((status_of(file).st_mode & 07777) == 0600);
  if (is_root) CHECK((status_of(file).st_uid == 12 && status_of(file).st_gid == 34));
  CHECK(count_in(folder / "below") == 1);

  fs::create_symlink("below/new", dangling);
  write_output(dangling, "new");
  CHECK(read_text(folder / "below" / "new") == "new");
  CHECK(fs::is_symlink(dangling));

  fs::create_symlink("loop", folder / "loop");
  CHECK(says(failure_of([&] { write_output(folder / "loop", ""); }), {"loop", "Too many levels"}));

  // A file with two names still has both.
  fs::create_hard_link(file, folder / "other name");
  write_output(file, "short");
  CHECK(read_text(folder / "other name") == "short");
  CHECK((status_of(file).st_mode & 07777) == 0600);
}

TEST_CASE("Files that are not regular are written in place", "[jit]") {
  const TempDir folder;
  const fs::path fifo = folder / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  std::string got;
  std::jthread reader([&] { got = read_text(fifo); });
  write_output(fifo, "through the pipe");
  reader.join();
  CHECK(got == "through the pipe");
  CHECK(S_ISFIFO(status_of(fifo).st_mode));

  // Our own devices: as root, a fault that this test should find would replace those of the machine.
  const fs::path null = folder / "null", full = folder / "full";
  if (::mknod(null.c_str(), S_IFCHR | 0600, ::makedev(1, 3)) != 0 ||
      ::mknod(full.c_str(), S_IFCHR | 0600, ::makedev(1, 7)) != 0) {
    WARN("skipped: only root can make devices");
    return;
  }
  fs::create_symlink(null, folder / "link");
  write_output(folder / "link", "nowhere");
  write_output(null, "nowhere");
  CHECK(S_ISCHR(status_of(null).st_mode));
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(says(failure_of([&] { write_output(full, "x"); }), {full.native(), "No space left"}));
  CHECK(S_ISCHR(status_of(full).st_mode));
}

TEST_CASE("A write-protected file is not replaced, one in a write-protected folder is written", "[jit]") {
  const TempDir folder;
  const fs::path path = folder / "file";
  write_text(path, "before");
  const pid_t child = ::fork();
  if (child == 0) {  // as a user to whom permissions apply
    if (::geteuid() == 0)
      for (const fs::path& mine : {folder.path(), path})
        if (::chown(mine.c_str(), 65534, 65534) != 0) ::_exit(77);
    if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(77);
    ::chmod(path.c_str(), 0400);
    if (!says(failure_of([&] { write_output(path, "after"); }), {path.native(), "Permission denied"})) ::_exit(1);
    if (read_text(path) != "before") ::_exit(2);
    ::chmod(path.c_str(), 0600);
    ::chmod(folder.path().c_str(), 0500);
    const std::string failure = failure_of([&] { write_output(path, "now"); });
    ::chmod(folder.path().c_str(), 0700);
    ::_exit(failure == "(no error)" && read_text(path) == "now" ? 0 : 3);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

TEST_CASE("Only regular files of limited size are read", "[jit]") {
  const TempDir folder;
  write_text(folder / "file", "text");
  fs::create_symlink("file", folder / "link");
  CHECK(read_regular_file(folder / "file", 4) == "text");
  CHECK(read_regular_file(folder / "link", 100) == "text");
  CHECK(read_regular_file(folder / "none", 100) == std::nullopt);
  const auto refused = [&](const fs::path& path, std::string_view why) {
    CHECK(says(failure_of([&] { read_regular_file(path, 3); }), {path.native(), why}));
  };
  refused(folder / "file", "4 bytes");
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  refused(folder / "fifo", "not a regular file");
  refused("/dev/zero", "not a regular file");
  fs::create_symlink("/dev/zero", folder / "endless");
  refused(folder / "endless", "not a regular file");
  refused(folder.path(), "is a folder");
  fs::create_symlink("loop", folder / "loop");
  refused(folder / "loop", "Too many levels");
}

TEST_CASE("Temporary files are recognized by their names", "[jit]") {
  for (int i = 0; i < 100; ++i) CHECK(is_temporary_name(temporary_name()));
  CHECK(temporary_name() != temporary_name());
  CHECK(is_temporary_name(".tessera-1-0123456789abcdef"));
  for (const char* other : {"", ".tessera-", ".tessera--0123456789abcdef", ".tessera-1-0123456789abcde",
                            ".tessera-1-0123456789abcdef0", ".tessera-1-0123456789abcdeF", "tessera-1-0123456789abcdef",
                            ".tessera-1x-0123456789abcdef", ".tessera-1-0123456789abcdef~"}) {
    INFO(other);
    CHECK_FALSE(is_temporary_name(other));
  }
}

}  // namespace test_files
