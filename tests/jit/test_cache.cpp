// The cache of compiled kernels against everything that happens to files: damage, foreign files, full disks, other
// processes, kills. No compiler is needed: compilations are simulated.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>

#include "jit/compile/cache.hpp"
#include "support/catch.hpp"
#include "support/share.hpp"
#include "support/support.hpp"

namespace test_cache {

using namespace tessera::internal;
namespace fs = std::filesystem;

namespace {

const std::vector<std::string> no_flags;

CacheKey key_of(std::string_view source) {
  return CacheKey({.compiler = "13.0 1", .architecture = "sm_90a", .flags = no_flags, .source = source});
}

/// The only valid entry under key_of(source).
CacheEntry entry_of(const std::string& source, std::size_t image_bytes = 40) {
  CacheEntry entry{.kernel = "kernel_" + source, .source = source, .code = {}};
  for (std::size_t i = 0; i < image_bytes; ++i) {
    entry.code.image.push_back(static_cast<std::byte>(i * 31 + source.size() + static_cast<unsigned char>(source[0])));
  }
  entry.code.log = "ptxas info";
  entry.code.report.registers = 32;
  entry.code.report.compile_ms = 1.5;
  entry.code.report.warnings = {"one", ""};
  return entry;
}

/// A cache in `folder`, with its warnings.
struct Cache {
  explicit Cache(const fs::path& folder, CompileCache::Limits limits = {})
      : cache(
            folder.native(), [this](std::string_view text) { warnings.emplace_back(text); }, limits) {}
  std::shared_ptr<const CacheEntry> get(const std::string& source, std::size_t image_bytes = 40) {
    return cache.get(key_of(source), [&] { return entry_of(source, image_bytes); });
  }
  bool right(const std::string& source, std::size_t image_bytes = 40) {
    return *get(source, image_bytes) == entry_of(source, image_bytes);
  }
  std::vector<std::string> warnings;
  CompileCache cache;
};

/// Tessera's own folder inside the one that a user names.
fs::path own(const fs::path& folder) { return folder / "tessera-kernels-1"; }

fs::path file_of(const fs::path& folder, const std::string& source) {
  const std::string hex = key_of(source).hex();
  return own(folder) / hex.substr(0, 2) / hex.substr(2);
}

std::size_t files_in(const fs::path& folder) {
  std::size_t count = 0;
  if (!fs::exists(folder)) return 0;
  for (const auto& file : fs::recursive_directory_iterator(folder)) count += file.is_regular_file();
  return count;
}

mode_t mode_of(const fs::path& path) {
  struct stat status {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

void age(const fs::path& path, std::chrono::hours hours) {
  fs::last_write_time(path, fs::file_time_type::clock::now() - hours);
}

/// Runs `body` in a child process and returns its exit code; -1 if a signal ended it.
template <class Body>
pid_t start_child(Body&& body) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  int code = 111;
  try {
    code = body();
  } catch (...) {}
  ::_exit(code);
}
int exit_code(pid_t child) {
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("Comments and line directives are stripped, literals are not", "[cache]") {
  const auto same = [](std::string_view a, std::string_view b) {
    INFO("a: " << a << "\nb: " << b);
    INFO("stripped a: " << strip_comments(a) << "\nstripped b: " << strip_comments(b));
    CHECK(strip_comments(a) == strip_comments(b));
  };
  const auto differ = [](std::string_view a, std::string_view b) {
    INFO("a: " << a << "\nb: " << b << "\nstripped: " << strip_comments(a));
    CHECK(strip_comments(a) != strip_comments(b));
  };
  CHECK(strip_comments("") == "");
  CHECK(strip_comments("// only\n/* and */\n\n") == "");
  CHECK(strip_comments("int a; // one\n#line 3 \"x.cpp\"\n  int  b; /* two\nthree */ int c;") ==
        "int a;\nint b; int c;\n");
  CHECK(strip_comments("a/**/b") == "a b\n");
  CHECK(strip_comments("a / b /= c") == "a / b /= c\n");
  same("int a;", "// one\nint a;\n// two");
  same("int a; // one", "int a; // two");
  same("int a; // one", "int a; //   one  \t");
  same("int a; /* one */ int b;", "int a; /*\n\n*/ int b;");
  same("int a;\n\n\nint b;", "int a;\r\nint b;\r\n");
  // Line directives in all their forms, and text that only resembles one.
  same("int a;", "#line 1 \"f\"\nint a;");
  same("int a;", "  #  line 1 \"f\" // x\nint a;");
  same("int a;", "# 12 \"f\" 2\nint a;");
  same("int a;", "/* x */ #line 1 /* y\n */ \"f\"\nint a;");
  same("int a;", "#li\\\nne 1\nint a;");
  same("#line 7 \"a.cpp\"\nint a;", "#line 8 \"b.cpp\"\nint a;");
  CHECK(strip_comments("#pragma unroll\n#lines\nx #line 1") == "#pragma unroll\n#lines\nx #line 1\n");
  differ("#define A 1\n", "#define A 2\n");
  differ("#define F (x)", "#define F(x)");
  same("#define F (x)", "#define F/**/(x)");
  // Continued lines.
  same("#define A 1 2", "#define A 1 \\\n2");
  same("int a;", "// one \\\nint b;\nint a;");
  same("int a;", "/\\\n/ one\nint a;");
  same("int ab;", "int a\\\r\nb;");
  differ("int a;", "int a\\ \n;x");
  // Strings and characters.
  differ("\"// a\"", "\"// b\"");
  differ("\"/* a */\"", "\"\"");
  differ("\"a  b\"", "\"a b\"");
  differ("\"\\\"// a\"", "\"\\\"// b\"");
  differ("'\"' x '\"' // a\ny", "'\"' z '\"' // a\ny");
  same("'\"' // a", "'\"' // b");
  same("'\\'' // a", "'\\'' // b");
  same("\"\\\\\" // a", "\"\\\\\" // b");
  same("L'\"' // a", "L'\"' // b");
  same("u8\"a\" // a", "u8\"a\"");
  // A ' between digits opens nothing.
  same("int a = 1'000; // a'", "int a = 1'000; // b'");
  same("int a = 0x1'a + 1'0.5'0e-3f; // a", "int a = 0x1'a + 1'0.5'0e-3f; // b");
  // Raw strings: nothing in them is a comment, a directive or a continuation.
  differ("R\"(// a)\"", "R\"(// b)\"");
  differ("R\"(\n#line 1\n)\"", "R\"(\n#line 2\n)\"");
  differ("R\"(a\\\nb)\"", "R\"(ab)\"");
  differ("R\"x()\" // a)x\"", "R\"x()\" // b)x\"");
  same("R\"x()\" // a)x\" // a", "R\"x()\" // a)x\" // b");
  same("u8R\"(\")\" // a", "u8R\"(\")\" // b");
  same("R\"(\\\n)\" /\\\n/ a\nx", "R\"(\\\n)\"\nx");
  differ("FOOR\"(// a)\"", "FOOR\"(// b)\"");
  // An unterminated literal or comment extends to the end of the text.
  for (const char* open :
       {"/*", "\"", "'", "R\"", "R\"(", "R\"x(a)\"", "\\", "\"\\", "/", "#", "#line", "1'", "\\\n"}) {
    CHECK_NOTHROW(strip_comments(open));
  }
}

TEST_CASE("Each field alone changes the key", "[cache]") {
  const std::vector<std::string> flags = {"-a", "-b"}, swapped = {"-b", "-a"}, joined = {"-a-b"},
                                 more = {"-a", "-b", ""};
  const KeyFields base{.compiler = "13.0 1 2", .architecture = "sm_90a", .flags = flags, .source = "int a; // x"};
  std::set<CacheKey> keys = {CacheKey(base)};
  std::size_t count = 1;
  const auto changes = [&](auto&& change) {
    KeyFields fields = base;
    change(fields);
    keys.insert(CacheKey(fields));
    CHECK(keys.size() == ++count);
  };
  changes([](KeyFields& f) { f.compiler = "13.0 1 3"; });  // another build of the same version
  changes([](KeyFields& f) { f.compiler = "12.9 1 2"; });
  changes([](KeyFields& f) { f.architecture = "sm_90"; });
  changes([](KeyFields& f) { f.architecture = "compute_90"; });
  changes([&](KeyFields& f) { f.flags = swapped; });
  changes([&](KeyFields& f) { f.flags = joined; });
  changes([&](KeyFields& f) { f.flags = more; });
  changes([](KeyFields& f) { f.flags = {}; });
  changes([](KeyFields& f) { f.source = "int b; // x"; });
  changes([](KeyFields& f) { f.line_info = true; });
  changes([](KeyFields& f) { f.line_info = true, f.source = "int a; // y"; });
  // Bytes that move from one field to the next.
  changes([](KeyFields& f) { f.compiler = "13.0 1 2s", f.architecture = "m_90a"; });

  KeyFields same = base;
  same.source = "#line 3 \"f\"\nint a; // another\n";
  CHECK(CacheKey(same) == CacheKey(base));
  CHECK(CacheKey(base).hex().size() == 64);
}

TEST_CASE("The folder follows option and environment", "[cache]") {
  const auto folder = [](std::string_view option, const std::string& xdg, const std::string& home) {
    return cache_folder(option, [&](std::string_view name) {
      return name == "XDG_CACHE_HOME" ? xdg : name == "HOME" ? home : "";
    });
  };
  CHECK(folder("", "", "/home/me") == "/home/me/.cache/tessera");
  CHECK(folder("", "/xdg", "/home/me") == "/xdg/tessera");
  CHECK(folder("", "relative", "/home/me/") == "/home/me/.cache/tessera");
  CHECK(folder("/my/./folder/", "/xdg", "/home/me") == "/my/folder");
  CHECK(folder("here", "", "") == fs::current_path() / "here");
  for (const char* off : {"off", "0", "none"}) CHECK(folder(off, "/xdg", "/home/me").empty());
  CHECK(folder("", "", "").empty());
  CHECK(folder("", "", "relative").empty());
}

TEST_CASE("An entry is compiled once, then found in memory, then on disk", "[cache]") {
  const TempDir temp;
  const fs::path folder = temp / "a" / "b";
  {
    Cache cache(folder);
    CHECK(cache.right("x"));
    CHECK(cache.right("x"));
    CHECK(cache.right("y", 200'000));
    const auto counters = cache.cache.counters();
    CHECK((counters.compiled == 2 && counters.memory_hits == 1 && counters.disk_hits == 0 && counters.rejected == 0));
    CHECK(cache.warnings.empty());
  }
  CHECK(mode_of(temp / "a") == 0700);
  CHECK(mode_of(folder) == 0700);
  CHECK(mode_of(own(folder)) == 0700);
  CHECK(mode_of(file_of(folder, "x")) == 0600);
  CHECK(files_in(own(folder) / "tmp") == 0);
  Cache cache(folder);
  CHECK(*cache.cache.get(key_of("x"), []() -> CacheEntry { throw std::logic_error("compiled"); }) == entry_of("x"));
  CHECK(cache.right("y", 200'000));
  CHECK(cache.cache.counters().disk_hits == 2);
  // Another NVRTC finds none of its entries.
  const CacheKey other({.compiler = "12.9 1", .architecture = "sm_90a", .flags = no_flags, .source = "x"});
  CHECK(*cache.cache.get(other, [] { return entry_of("z"); }) == entry_of("z"));
  CHECK(cache.cache.counters().compiled == 1);

  cache.cache.drop(key_of("x"));
  CHECK_FALSE(fs::exists(file_of(folder, "x")));
  CHECK(cache.right("x"));
  CHECK(cache.cache.counters().compiled == 2);
  // Somebody empties the folder while the program runs.
  fs::remove_all(folder);
  CHECK(cache.right("v"));
  CHECK(fs::exists(file_of(folder, "v")));
  CHECK(cache.warnings.empty());
}

TEST_CASE("A failed compilation is not cached", "[cache]") {
  const TempDir temp;
  Cache cache(temp.path());
  const auto fails = [&] { cache.cache.get(key_of("x"), []() -> CacheEntry { throw Error("does not compile"); }); };
  CHECK(error_of(fails) == "does not compile");
  CHECK(error_of(fails) == "does not compile");
  CHECK(cache.right("x"));
  CHECK(cache.cache.counters().compiled == 1);
}

TEST_CASE("Without a folder the cache works in memory", "[cache]") {
  CompileCache cache("off", nullptr);
  CHECK_FALSE(cache.folder());
  for (int i = 0; i < 3; ++i) CHECK(*cache.get(key_of("x"), [] { return entry_of("x"); }) == entry_of("x"));
  CHECK(cache.counters().compiled == 1);
  cache.drop(key_of("x"));
  cache.get(key_of("x"), [] { return entry_of("x"); });
  CHECK(cache.counters().compiled == 2);
}

TEST_CASE("Every flipped byte and every truncation is a miss", "[cache]") {
  const TempDir temp;
  REQUIRE(Cache(temp.path()).right("x"));
  const fs::path file = file_of(temp.path(), "x");
  const std::string good = read_text(file);
  REQUIRE(good.size() < 500);
  const auto missed = [&](const std::string& bad) {
    write_text(file, bad);
    Cache cache(temp.path());
    const bool right = cache.right("x") && cache.cache.counters().rejected == 1 && cache.cache.counters().compiled == 1;
    return right && cache.warnings.size() == 1 && read_text(file) == good && mode_of(file) == 0600;
  };
  const auto left = [&](const std::string& other) {
    write_text(file, other);
    Cache cache(temp.path());
    const bool right = cache.right("x") && cache.cache.counters().rejected == 1 && cache.cache.counters().compiled == 1;
    return right && cache.warnings.size() == 1 && read_text(file) == other;
  };
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (const char mask : {'\x01', '\xff'}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ mask);
      INFO("byte " << i);
      // A file that does not begin like an entry is a miss too, and stays.
      if (i < entry_magic.size() ? !left(bad) : !missed(bad)) FAIL_CHECK("a flipped byte is served");
    }
  }
  REQUIRE(fs::remove(file));
  for (std::size_t size = 0; size < good.size(); ++size) {
    INFO("size " << size);
    if (!missed(good.substr(0, size))) FAIL_CHECK("a truncated entry is served");
  }
  CHECK(missed(good + '\0'));
  CHECK(missed(good + good));
  CHECK(missed(good.substr(0, entry_magic.size()) + std::string(good.size(), '\0')));
  // Valid, but with another key.
  REQUIRE(Cache(temp.path()).right("other"));
  CHECK(missed(read_text(file_of(temp.path(), "other"))));
}

TEST_CASE("A damaged entry is replaced by a good one", "[cache]") {
  const TempDir temp;
  REQUIRE(Cache(temp.path()).right("x"));
  const fs::path file = file_of(temp.path(), "x");
  SECTION("an empty file") { CHECK_NOTHROW(write_text(file, "")); }
  SECTION("a huge file") { CHECK_NOTHROW(fs::resize_file(file, std::uintmax_t{1} << 40)); }  // sparse, takes no memory
  SECTION("a good entry that others may write") { REQUIRE(::chmod(file.c_str(), 0666) == 0); }
  SECTION("a good entry of another user") {
    if (::chown(file.c_str(), 1, 1) != 0) {
      WARN("skipped: only root can give files away");
      return;
    }
    CHECK(fs::exists(file));
  }
  Cache cache(temp.path());
  CHECK(cache.right("x"));
  CHECK(cache.cache.counters().rejected == 1);
  CHECK(cache.warnings.size() == 1);
  CHECK(says(cache.warnings.at(0), {file.native(), "compiled again"}));
  CHECK(fs::is_regular_file(fs::symlink_status(file)));
  CHECK(mode_of(file) == 0600);
  CHECK(Cache(temp.path()).right("x"));
}

TEST_CASE("A file that is no entry stays, even at an entry's path", "[cache]") {
  const TempDir temp;
  REQUIRE(Cache(temp.path()).right("x"));
  const fs::path file = file_of(temp.path(), "x"), elsewhere = temp / "elsewhere";
  fs::rename(file, elsewhere);  // valid, if it were at its path
  SECTION("a link to a good entry") { CHECK_NOTHROW(fs::create_symlink(elsewhere, file)); }
  SECTION("a link to nothing") { CHECK_NOTHROW(fs::create_symlink(temp / "nothing", file)); }
  SECTION("a folder") { CHECK(fs::create_directory(file)); }
  SECTION("a FIFO") { REQUIRE(::mkfifo(file.c_str(), 0600) == 0); }
  SECTION("another file") { CHECK_NOTHROW(write_text(file, "precious")); }
  struct stat before {
  }, after{};
  REQUIRE(::lstat(file.c_str(), &before) == 0);
  Cache cache(temp.path(), {.bytes = 0, .trim_interval = std::chrono::seconds(0)});
  CHECK(cache.right("x"));
  CHECK(cache.cache.counters().rejected == 1);
  CHECK(cache.warnings.size() == 1);
  CHECK(says(cache.warnings.at(0), {file.native(), "remove it", "compiled again"}));
  cache.cache.drop(key_of("x"));
  CHECK(cache.right("x"));
  CHECK(cache.warnings.size() == 1);
  REQUIRE(::lstat(file.c_str(), &after) == 0);
  CHECK((before.st_ino == after.st_ino && before.st_mode == after.st_mode && before.st_size == after.st_size));
  CHECK(fs::exists(elsewhere));
  CHECK_FALSE(fs::exists(temp / "nothing"));
}

namespace {

/// Everything below `folder` except Tessera's mark and lock: kind, permissions, time, and content or link target.
std::set<std::string> picture(const fs::path& folder) {
  std::set<std::string> lines;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const fs::path& path = entry.path();
    if (path == own(folder) / "CACHEDIR.TAG" || path == own(folder) / "lock") continue;
    struct stat status {};
    REQUIRE(::lstat(path.c_str(), &status) == 0);
    std::string line = path.native() + " " + std::to_string(status.st_mode);
    if (S_ISREG(status.st_mode)) line += " " + std::to_string(status.st_mtim.tv_sec) + " " + read_text(path);
    if (S_ISLNK(status.st_mode)) line += " " + fs::read_symlink(path).native();
    lines.insert(line);
  }
  return lines;
}

}  // namespace

TEST_CASE("A cache in a folder full of other files leaves them alone", "[cache]") {
  const TempDir temp, outside;
  const std::string name(62, 'b'), hex(64, 'a');
  const std::string entry = std::string(entry_magic) + std::string(50'000, 'x');
  const auto old = [&](const fs::path& path, std::string_view text) {
    fs::create_directories(path.parent_path());
    write_text(path, text);
    age(path, std::chrono::hours(24 * 700));
  };
  // Files that an earlier version would have taken for entries and leftovers, and clearly unrelated ones.
  for (const fs::path& file :
       {fs::path("model.safetensors"), fs::path(".git/objects/ab") / name.substr(0, 38), fs::path("ab") / name,
        fs::path("tmp/.tessera-12-0123456789abcdef"), fs::path("tmp/left"), fs::path("lock"), fs::path("CACHEDIR.TAG")})
    old(temp / file.native(), entry);
  old(outside / name, entry);
  fs::create_directory_symlink(outside.path(), temp / "ac");
  // In Tessera's own folder.
  REQUIRE(Cache(temp.path()).right("first"));
  REQUIRE(fs::remove(file_of(temp.path(), "first")));
  const fs::path ours = own(temp.path());
  old(ours / "notes", "precious");
  old(ours / "ab" / "notes", entry);
  old(ours / "ab" / name, "precious");       // a name like an entry's, but no entry
  old(ours / "ab" / name.substr(1), entry);  // an entry, except for its name
  old(ours / "abc" / name, entry);
  old(ours / "AB" / name, entry);
  old(ours / "tmp" / "notes", "precious");
  old(ours / "tmp" / ".tessera-12-0123456789abcde", "");  // a digit short
  old(ours / "tmp" / ".tessera-x-0123456789abcdef", "");
  old(ours / "tmp" / "deep" / ".tessera-12-0123456789abcdef", "");
  fs::create_directory_symlink(outside.path(), ours / "ac");
  fs::create_symlink(outside / name, ours / "ab" / std::string(62, 'c'));
  fs::create_directories(ours / "ab" / std::string(62, 'd') / "below");
  REQUIRE(::mkfifo((ours / "ab" / std::string(62, 'e')).c_str(), 0600) == 0);
  const auto before = picture(temp.path()), before_outside = picture(outside.path());

  // Ours to remove: an entry, and leftovers of a killed process.
  old(ours / "00" / name, entry);
  old(ours / "tmp" / ".tessera-12-0123456789abcdef", "");
  {
    Cache cache(temp.path(), {.bytes = 0, .trim_interval = std::chrono::seconds(0)});
    for (const char* source : {"x", "y", "z"}) {
      CHECK(cache.right(source));
      cache.cache.drop(key_of(source));
      CHECK_FALSE(fs::exists(file_of(temp.path(), source)));
    }
    CHECK(cache.warnings.empty());
  }
  for (const char* source : {"x", "y", "z"}) fs::remove(file_of(temp.path(), source).parent_path());
  CHECK_FALSE(fs::exists(ours / "00" / name));
  fs::remove(ours / "00");
  CHECK(picture(temp.path()) == before);
  CHECK(picture(outside.path()) == before_outside);
}

TEST_CASE("A folder with Tessera's name that Tessera did not make is not used", "[cache]") {
  const TempDir temp, outside;
  const fs::path folder = own(temp.path());
  std::string reason;
  SECTION("without a mark") {
    CHECK(fs::create_directory(folder));
    write_text(folder / "precious", "");
    reason = "does not belong to Tessera";
  }
  SECTION("with another's mark") {
    CHECK(fs::create_directory(folder));
    write_text(folder / "CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n# another program\n");
    reason = "does not belong to Tessera";
  }
  SECTION("a link") {
    fs::create_directory_symlink(outside.path(), folder);
    CHECK(fs::is_symlink(folder));
    reason = "is a link";
  }
  SECTION("a file") {
    write_text(folder, "precious");
    CHECK(fs::is_regular_file(folder));
    reason = "is a link, or not a folder";
  }
  SECTION("others may write it") {
    CHECK(fs::create_directory(folder));
    REQUIRE(::chmod(folder.c_str(), 0777) == 0);
    reason = "can be written by others";
  }
  const auto before = picture(temp.path());
  Cache cache(temp.path());
  CHECK_FALSE(cache.cache.folder());
  CHECK(cache.right("x"));
  REQUIRE(cache.warnings.size() == 1);
  CHECK(says(cache.warnings[0], {folder.native(), reason, "TESSERA_CACHE_DIR"}));
  CHECK(picture(temp.path()) == before);
  CHECK(files_in(outside.path()) == 0);
}

TEST_CASE("The named folder may be a link, and its mark is made once", "[cache]") {
  const TempDir temp;
  CHECK(fs::create_directory(temp / "real"));
  REQUIRE(::chmod((temp / "real").c_str(), 0700) == 0);
  fs::create_directory_symlink(temp / "real", temp / "link");
  CHECK(Cache(temp / "link").right("x"));
  CHECK(fs::exists(file_of(temp / "real", "x")));
  const fs::path mark = own(temp / "real") / "CACHEDIR.TAG";
  const std::string text = read_text(mark);
  CHECK(text.starts_with("Signature: 8a477f597d28d172789f06886806bc55\n"));
  // If a process is killed before its mark is complete, the folder can still be used.
  fs::remove_all(own(temp / "real"));
  for (const std::size_t size : {std::size_t{0}, std::size_t{10}, text.size()}) {
    fs::create_directories(own(temp / "real"));
    REQUIRE(::chmod(own(temp / "real").c_str(), 0700) == 0);
    write_text(mark, text.substr(0, size));
    Cache cache(temp / "link");
    CHECK((cache.cache.folder() && cache.warnings.empty()));
    CHECK(read_text(mark) == text);
    fs::remove_all(own(temp / "real"));
  }
}

TEST_CASE("Folders of the cache that are links are not followed", "[cache]") {
  const TempDir temp, outside;
  REQUIRE(Cache(temp.path()).right("first"));
  const std::string part = key_of("x").hex().substr(0, 2);
  const fs::path link = own(temp.path()) / (GENERATE(true, false) ? "tmp" : part);
  fs::remove_all(link);
  fs::create_directory_symlink(outside.path(), link);
  write_text(outside / ".tessera-12-0123456789abcdef", "");
  age(outside / ".tessera-12-0123456789abcdef", std::chrono::hours(2));
  Cache cache(temp.path(), {.bytes = 0, .trim_interval = std::chrono::seconds(0)});
  CHECK(cache.right("x"));
  cache.cache.drop(key_of("x"));
  CHECK(cache.right("x"));
  CHECK(files_in(outside.path()) == 1);
  REQUIRE(cache.warnings.size() == 1);
  CHECK(says(cache.warnings[0], {link.native()}));
}

TEST_CASE("An unreadable folder does not keep others from being trimmed", "[cache]") {
  const TempDir temp;
  const int code = exit_code(start_child([&] {
    if (::geteuid() == 0) {  // root can read everything
      if (::chown(temp.path().c_str(), 65534, 65534) != 0) return 77;
      if (::setgid(65534) != 0 || ::setuid(65534) != 0) return 77;
    }
    {
      Cache cache(temp.path());
      for (char c = 'a'; c < 'i'; ++c) cache.get(std::string(1, c));
    }
    std::vector<fs::path> closed;
    for (const char* part : {"00", "40", "80", "c0", "ff", "tmp"}) closed.push_back(own(temp.path()) / part);
    closed.push_back(file_of(temp.path(), "a"));
    for (const fs::path& path : closed) {
      if (!fs::exists(path)) fs::create_directories(path);
      ::chmod(path.c_str(), 0);
    }
    // Not by a cache: its own entry could not be written.
    CacheFolder(temp.path(), "").trim(0, true);
    for (const fs::path& path : closed) ::chmod(path.c_str(), 0700);
    for (char c = 'b'; c < 'i'; ++c)
      if (fs::exists(file_of(temp.path(), std::string(1, c)))) return 1;
    return fs::exists(file_of(temp.path(), "a")) ? 0 : 2;
  }));
  CHECK((code == 0 || code == 77));
}

TEST_CASE("An unusable folder costs one warning", "[cache]") {
  const TempDir temp;
  fs::path folder = temp / "cache";
  SECTION("a file is in its place") { CHECK_NOTHROW(write_text(folder, "")); }
  SECTION("a file is above it") {
    CHECK_NOTHROW(write_text(folder, ""));
    folder /= "below";
  }
  SECTION("others may write it") {
    CHECK(fs::create_directory(folder));
    REQUIRE(::chmod(folder.c_str(), 0777) == 0);
  }
  SECTION("it belongs to another user") {
    CHECK(fs::create_directory(folder));
    if (::chown(folder.c_str(), 1, 1) != 0) {
      WARN("skipped: only root can give folders away");
      return;
    }
  }
  SECTION("the link to it leads nowhere") { CHECK_NOTHROW(fs::create_symlink(temp / "nothing", folder)); }
  SECTION("its name is too long") { CHECK_NOTHROW(folder /= std::string(300, 'x')); }
  Cache cache(folder);
  CHECK_FALSE(cache.cache.folder());
  for (const char* source : {"x", "y", "x"}) CHECK(cache.right(source));
  REQUIRE(cache.warnings.size() == 1);
  CHECK(says(cache.warnings[0], {(temp / "cache").native(), "TESSERA_CACHE_DIR"}));
  CHECK(cache.cache.counters().compiled == 2);
}

TEST_CASE("Unusable parts of the folder cost one warning", "[cache]") {
  const TempDir temp;
  const std::string hex = key_of("x").hex();
  const fs::path folder = own(temp.path());
  CHECK(Cache(temp.path()).cache.folder());
  SECTION("no temporary files") { CHECK_NOTHROW(write_text(folder / "tmp", "")); }
  SECTION("no folder for the entry") { CHECK_NOTHROW(write_text(folder / hex.substr(0, 2), "")); }
  SECTION("no lock") { CHECK(fs::create_directory(folder / "lock")); }
  Cache cache(temp.path());
  CHECK(cache.right("x"));
  cache.cache.drop(key_of("x"));
  CHECK(cache.right("x"));
  CHECK(std::count_if(cache.warnings.begin(), cache.warnings.end(),
                      [](const std::string& text) { return text.starts_with("compiled kernels are not kept"); }) == 1);
  if (fs::is_directory(folder / "tmp")) CHECK(files_in(own(temp.path()) / "tmp") == 0);
}

TEST_CASE("Parents below HOME that others may write are rejected", "[cache]") {
  const TempDir home;
  fs::create_directories(home / "shared" / "cache");
  fs::permissions(home / "shared" / "cache", fs::perms::owner_all);
  REQUIRE(::chmod((home / "shared").c_str(), 0777) == 0);
  const int code = exit_code(start_child([&] {
    ::setenv("HOME", (home.path().native() + "/").c_str(), 1);
    Cache refused(home / "shared" / "cache");
    ::chmod((home / "shared").c_str(), 01777);
    Cache sticky(home / "shared" / "cache");
    ::setenv("HOME", "/nowhere", 1);
    ::chmod((home / "shared").c_str(), 0777);
    Cache outside(home / "shared" / "cache");
    return (!refused.cache.folder() && refused.warnings.size() == 1 ? 1 : 0) + (!sticky.cache.folder() ? 0 : 2) +
           (!outside.cache.folder() ? 0 : 4);
  }));
  CHECK(code == 7);
}

TEST_CASE("A full disk, a read-only file system, too few descriptors", "[cache]") {
  const TempDir temp;
  // In child processes, since limits and mounts persist. Codes: 0 passed, 77 not possible here, else the check that
  // failed.
  const auto works = [&](Cache& cache, const char* reason, bool kept_before) {
    for (const char* source : {"x", "y", "z"}) {
      if (!cache.right(source, 100'000)) return 1;
    }
    if (cache.warnings.size() != 1) return 2;
    if (!says(cache.warnings[0], {reason, temp.path().native()})) return 3;
    if (!kept_before && cache.cache.counters().compiled != 3) return 4;
    if (files_in(own(temp.path()) / "tmp") != 0) return 5;
    return 0;
  };
  const auto mounted = [&](unsigned long flags, const char* options) {
    return ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           ::mount("tmpfs", temp.path().c_str(), "tmpfs", flags, options) == 0;
  };
  const auto check = [](int code) {
    if (code == 77) WARN("skipped: only root can mount a full disk");
    CHECK((code == 0 || code == 77));
  };
  SECTION("ENOSPC") {
    check(exit_code(start_child([&] {
      if (!mounted(0, "size=64k,mode=0700")) return 77;
      Cache cache(temp.path());
      return works(cache, "No space left", false);
    })));
  }
  SECTION("EROFS") {
    check(exit_code(start_child([&] {
      if (!mounted(0, "size=4m,mode=0700")) return 77;
      Cache(temp.path()).get("x", 100'000);
      if (::mount("tmpfs", temp.path().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "") != 0) return 77;
      Cache cache(temp.path());
      if (const int code = works(cache, "Read-only", true)) return code;
      if (cache.cache.counters().disk_hits != 1) return 6;  // existing entries are still read
      cache.cache.drop(key_of("x"));                        // it stays on disk, and is not read again
      if (!cache.right("x", 100'000)) return 7;
      return cache.cache.counters().disk_hits == 1 && cache.cache.counters().compiled == 3 ? 0 : 8;
    })));
  }
  SECTION("EFBIG") {
    CHECK(exit_code(start_child([&] {
            ::signal(SIGXFSZ, SIG_IGN);
            const rlimit limit{50'000, 50'000};
            if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 77;
            Cache cache(temp.path());
            return works(cache, "File too large", false);
          })) == 0);
  }
  SECTION("EMFILE") {
#ifdef __SANITIZE_ADDRESS__
    // UBSan opens a pipe to test whether an object is readable, and calls the object invalid if it cannot open one.
    WARN("skipped: the sanitizer needs descriptors of its own");
    SUCCEED();
#else
    CHECK(exit_code(start_child([&] {
            Cache cache(temp.path());
            const rlimit limit{3, 3};
            if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return 77;
            for (const char* source : {"x", "y"}) {
              if (!cache.right(source)) return 1;
            }
            return cache.warnings.size() == 1 && says(cache.warnings[0], {"Too many open files"}) ? 0 : 2;
          })) == 0);
#endif
  }
}

TEST_CASE("Threads that request the same key compile it once", "[cache]") {
  const TempDir temp;
  Cache cache(temp.path());
  for (int round = 0; round < 20; ++round) {
    const std::string source = "round " + std::to_string(round);
    std::atomic<int> compiled = 0, right = 0;
    std::barrier start(16);
    {
      std::vector<std::jthread> threads;
      for (int t = 0; t < 16; ++t) {
        threads.emplace_back([&] {
          start.arrive_and_wait();
          const auto entry = cache.cache.get(key_of(source), [&] {
            ++compiled;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            return entry_of(source);
          });
          right += *entry == entry_of(source);
        });
      }
    }
    CHECK(compiled == 1);
    CHECK(right == 16);
  }
  const auto counters = cache.cache.counters();
  CHECK((counters.compiled == 20 && counters.memory_hits == 20 * 15));
  CHECK(cache.warnings.empty());

  // All waiting threads get the failure; the next request tries again.
  std::atomic<int> failed = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        try {
          cache.cache.get(key_of("broken"), []() -> CacheEntry {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            throw Error("broken");
          });
        } catch (const Error&) {
          ++failed;
        }
      });
    }
  }
  CHECK(failed == 8);
  CHECK(cache.right("broken"));
}

TEST_CASE("Several processes share a folder", "[cache]") {
  const TempDir temp;
  constexpr int rounds = 30;
  for (int round = 0; round < rounds; ++round) {
    fs::remove_all(temp / "cache");
    std::vector<pid_t> children;
    for (int process = 0; process < 4; ++process) {
      children.push_back(start_child([&] {
        Cache first(temp / "cache"), again(temp / "cache");
        for (int i = 0; i < 8; ++i) {
          if (!first.right(std::to_string(i), 20'000)) return 1;
          if (!again.right(std::to_string(i), 20'000)) return 2;
        }
        return first.warnings.empty() && again.warnings.empty() && first.cache.counters().rejected == 0 ? 0 : 3;
      }));
    }
    for (const pid_t child : children) CHECK(exit_code(child) == 0);
    CHECK(files_in(own(temp / "cache") / "tmp") == 0);
  }
  Cache after(temp / "cache");
  for (int i = 0; i < 8; ++i) CHECK(after.right(std::to_string(i), 20'000));
  CHECK(after.cache.counters().disk_hits == 8);
}

TEST_CASE("A process killed while it writes leaves no bad entries", "[cache]") {
  const TempDir temp;
  constexpr std::size_t bytes = 300'000;
  // Made once: a child should spend its short life on files.
  const CacheEntry entry = entry_of("x", bytes);
  const auto write_once = [&] {
    CompileCache cache(temp.path().native(), nullptr);
    cache.get(key_of("x"), [&] { return entry; });
    cache.drop(key_of("x"));
  };
  const auto begin = std::chrono::steady_clock::now();
  write_once();
  const auto round = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin);
  const auto unfinished_files = [&] { return files_in(own(temp.path()) / "tmp"); };
  std::size_t most_left = 0;
  for (int kill = 0; kill < (sanitized ? 20 : 120); ++kill) {
    const std::size_t before = unfinished_files();
    const pid_t child = start_child([&] {
      for (;;) write_once();
      return 0;
    });
    // After it was seen to write, kill it immediately or anywhere in the next two writes, however long they take here.
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (unfinished_files() <= before && std::chrono::steady_clock::now() < patience) continue;
    if (kill % 2) ::usleep(static_cast<useconds_t>(round.count() * (kill % 31) / 15));
    ::kill(child, SIGKILL);
    CHECK(exit_code(child) == -1);
    Cache cache(temp.path());
    CHECK(*cache.cache.get(key_of("x"), [&] { return entry; }) == entry);
    CHECK(cache.cache.counters().rejected == 0);
    CHECK(cache.warnings.empty());
    most_left = std::max(most_left, unfinished_files());
  }
  INFO("temporary files left: " << most_left);
  // Young ones may belong to a running process; old ones are removed.
  const fs::path unfinished = own(temp.path()) / "tmp", young = unfinished / ".tessera-1-00000000000000aa",
                 old = unfinished / ".tessera-1-00000000000000bb";
  write_text(young, "");
  const std::size_t left = unfinished_files();
  {
    Cache cache(temp.path());
    CHECK(cache.right("young"));
    CHECK(unfinished_files() == left);
  }
  for (const auto& file : fs::directory_iterator(unfinished)) {
    if (file.path() != young) age(file.path(), std::chrono::hours(2));
  }
  write_text(old, "");
  age(old, std::chrono::hours(2));
  Cache cache(temp.path());
  CHECK(cache.right("old"));
  CHECK(unfinished_files() == 1);
  CHECK(fs::exists(young));
  CHECK(most_left > 0);  // else no kill happened during a write, and the test shows nothing
}

TEST_CASE("The least recently used entries are removed first", "[cache]") {
  const TempDir temp;
  CompileCache::Limits limits{.bytes = 50'000, .trim_interval = std::chrono::seconds(0)};
  {
    Cache cache(temp.path());
    for (const char* source : {"a", "b", "c", "d"}) cache.get(source, 10'000);
  }
  int hours = 10;
  for (const char* source : {"a", "b", "c", "d"}) age(file_of(temp.path(), source), std::chrono::hours(hours--));
  Cache cache(temp.path(), limits);
  CHECK(cache.right("a", 10'000));  // used now, so b is the oldest
  CHECK(cache.cache.counters().disk_hits == 1);
  CHECK(cache.right("e", 10'000));
  const auto there = [&](const char* source) { return fs::exists(file_of(temp.path(), source)); };
  CHECK((there("a") && !there("b") && there("c") && there("d") && there("e")));
  CHECK(cache.right("f", 20'000));
  CHECK((there("a") && !there("c") && !there("d") && there("e") && there("f")));
  CHECK(cache.right("b", 10'000));  // removed, so made again
  CHECK(cache.warnings.empty());
  // Scanned no more often than configured.
  Cache lazy(temp.path(), {.bytes = 0, .trim_interval = std::chrono::hours(1)});
  lazy.get("g");
  CHECK_FALSE(there("g"));
  lazy.get("h");
  CHECK(there("h"));
  // While another process trims, nobody waits.
  const int lock = ::open((own(temp.path()) / "lock").c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(lock >= 0);
  const int code = exit_code(start_child([&] {
    const int mine = ::open((own(temp.path()) / "lock").c_str(), O_RDWR | O_CLOEXEC);
    if (::flock(mine, LOCK_EX | LOCK_NB) != 0) return 1;
    Cache blocked(temp.path(), {.bytes = 0, .trim_interval = std::chrono::seconds(0)});
    return blocked.right("i") && there("i") && blocked.warnings.empty() ? 0 : 2;
  }));
  CHECK(code == 0);
  ::close(lock);
}

}  // namespace test_cache
