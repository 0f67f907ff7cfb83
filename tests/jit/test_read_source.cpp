// The author's source is read only if it is what was compiled.
#include <sys/stat.h>

#include <filesystem>

#include "jit/compile/read_source.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"

namespace test_read_source {

using namespace tessera::internal;
namespace fs = std::filesystem;

namespace {

// Locations name files by literals, which tell the program that has them. These are paths from the temporary folder.
constexpr const char* text_file = "tessera-read-source/text.cpp";
constexpr const char* large_file = "tessera-read-source/large.cpp";
constexpr const char* no_file = "tessera-read-source/none.cpp";
constexpr const char* pipe_file = "tessera-read-source/pipe.cpp";
constexpr const char* folder = "tessera-read-source";

/// Works in a new folder during its lifetime.
class In {
 public:
  In() : before_(fs::current_path()) {
    fs::create_directory(temp_ / folder);
    fs::current_path(temp_.path());
  }
  ~In() { fs::current_path(before_); }

 private:
  TempDir temp_;
  fs::path before_;
};

void set_time(const char* file, std::chrono::seconds from_program) {
  fs::last_write_time(file, fs::last_write_time("/proc/self/exe") + from_program);
}

}  // namespace

TEST_CASE("The source of a kernel is read if it is what was compiled", "[author]") {
  const In temp;
  using namespace std::chrono_literals;
  const auto read = [](const char* file) { return read_source({file, 1}); };
  write_text(text_file, "Tile x = y;\n");
  set_time(text_file, -1h);
  CHECK(read(text_file) == "Tile x = y;\n");
  set_time(text_file, 1h);  // it was edited after the program was built
  CHECK_FALSE(read(text_file));
  write_text(large_file, std::string((4 << 20) + 1, ' '));
  set_time(large_file, -1h);
  CHECK_FALSE(read(large_file));
  CHECK_FALSE(read(no_file));
  CHECK_FALSE(read(""));
  set_time(folder, -1h);
  CHECK_FALSE(read(folder));
  REQUIRE(::mkfifo(pipe_file, 0600) == 0);
  set_time(pipe_file, -1h);
  CHECK_FALSE(read(pipe_file));
  // No program has this text.
  set_time(text_file, -1h);
  const std::string elsewhere = text_file;
  CHECK_FALSE(read(elsewhere.c_str()));
}

}  // namespace test_read_source
