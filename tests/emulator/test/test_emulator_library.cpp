// TESSERA_DEVICE=emulated in a program that was not linked with the emulator (emulated_device/mistakes.cpp).
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "jit/device/emulated.hpp"
#include "support/catch.hpp"
#include "support/emulated_device.hpp"
#include "support/support.hpp"
#include "tessera/jit/version.hpp"

namespace test_emulator_library {

using namespace tessera::internal;

namespace {

/// The program's output on stdout and stderr.
std::string said(const std::string& environment, const std::string& arguments) {
  const std::string command = "env TESSERA_DEVICE=emulated " + environment + " " + arguments + " 2>&1";
  FILE* const pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe);
  std::string text;
  std::array<char, 4096> part;
  while (const std::size_t count = std::fread(part.data(), 1, part.size(), pipe)) text.append(part.data(), count);
  ::pclose(pipe);
  return text;
}

namespace fs = std::filesystem;
const std::string program = TESSERA_BIN_DIR "/mistakes", beside = TESSERA_BIN_DIR "/libtessera_emulator.so";

}  // namespace

TEST_CASE("a program uses the emulator beside it", "[emulator]") {
  CHECK(said("", program + " twice") == "emulated sm_90a: 6\n");
  CHECK(said("", program + " recorded") == "emulated sm_90a: 6\n");
  CHECK(said("TESSERA_DUMP_ARCH=sm_80", program + " twice") == "emulated sm_80: 6\n");
  const std::string dumped = said("TESSERA_DUMP=graph,cuda", program + " twice");
  CHECK(dumped.find("kernel twice(In<f32, 1>, Out<f32, 1>)") != dumped.npos);
  CHECK(dumped.find("extern \"C\" __global__") != dumped.npos);
}

TEST_CASE("the emulator runs a text that was edited by hand", "[emulator]") {
  const TempDir folder;
  const std::string to = "TESSERA_DUMP=cuda TESSERA_DUMP_DIR=" + folder.path().string();
  said(to, program + " twice");
  int edited = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    std::string text = read_text(entry.path());
    const std::size_t at = text.rfind("* 2.0f");
    if (at == text.npos) continue;
    write_text(entry.path(), text.replace(at, 6, "* 5.0f"));
    ++edited;
  }
  REQUIRE(edited == 1);
  CHECK(said("TESSERA_OVERRIDE_DIR=" + folder.path().string(), program + " twice").ends_with("emulated sm_90a: 15\n"));
}

TEST_CASE("errors in an edited text name the lines of its file", "[emulator]") {
  const TempDir folder;
  said("TESSERA_DUMP=cuda TESSERA_DUMP_DIR=" + folder.path().string(), program + " twice");
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    std::string text = read_text(entry.path());
    const std::size_t at = text.rfind("* 2.0f");
    if (at == text.npos) continue;
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    write_text(entry.path(), text.replace(at, 6, "* two"));
    const std::string report = said("TESSERA_OVERRIDE_DIR=" + folder.path().string(), program + " twice");
    CAPTURE(report);
    CHECK(report.find(entry.path().string() + ":" + std::to_string(line) + ":") != report.npos);
  }
}

TEST_CASE("the emulator reports faults of a program as errors with kernel and line", "[emulator]") {
  const std::string report = said("", program + " race");
  CAPTURE(report);
  CHECK(report.find("kernel 'race' in the emulator") != report.npos);
  CHECK(report.find("mistakes.cpp:16") != report.npos);
  CHECK(report.find("block") != report.npos);
}

TEST_CASE("the emulator is found beside the program, where it is installed, and on the loader path", "[emulator]") {
  const std::vector<std::string> places = emulator_places();
  REQUIRE(places.size() >= 3);
  CHECK(places.front() == beside);
  CHECK(places.back() == "libtessera_emulator.so");
  // A program finds the emulator in the same place relative to itself, wherever it is.
  const TempDir folder;
  const fs::path moved = folder / "prefix" / "bin" / "mistakes";
  const fs::path from_program = fs::path(places[1]).lexically_relative(TESSERA_BIN_DIR);
  REQUIRE(from_program.string().starts_with("../lib"));  // lib64, lib/x86_64-linux-gnu
  const fs::path library = (moved.parent_path() / from_program).lexically_normal();
  fs::create_directories(moved.parent_path());
  fs::create_directories(library.parent_path());
  fs::copy_file(program, moved);
  fs::create_symlink(beside, library);
  CHECK(said("", moved.string() + " twice") == "emulated sm_90a: 6\n");
  fs::create_symlink(moved, folder / "link");
  CHECK(said("PATH=" + folder.path().string() + ":$PATH", "link twice") == "emulated sm_90a: 6\n");
  fs::remove(library);
  CHECK(said("LD_LIBRARY_PATH=" TESSERA_BIN_DIR, moved.string() + " twice") == "emulated sm_90a: 6\n");
  CHECK(said("TESSERA_EMULATOR=" TESSERA_BIN_DIR, moved.string() + " twice") == "emulated sm_90a: 6\n");
}

TEST_CASE("if the emulator is missing, the error says how to get it", "[emulator]") {
  const TempDir folder;
  const fs::path bin = folder / "bin";
  fs::create_directory(bin);
  fs::copy_file(program, bin / "mistakes");
  const auto complaint = [&](const std::string& environment) {
    const std::string text = said(environment, (bin / "mistakes").string() + " twice");
    REQUIRE(text.ends_with('\n'));
    return text.substr(0, text.size() - 1);
  };
  const std::string installed = complaint("");
  CAPTURE(installed);
  CHECK(says(installed, {"TESSERA_DEVICE=emulated: device emulated: the emulator was not found",
                         bin.string() + ": no libtessera_emulator.so", "the loader path: no libtessera_emulator.so",
                         "set TESSERA_EMULATOR to its folder, such as PREFIX/lib"}));
  CHECK(installed.find("cmake") == installed.npos);
  // A project that uses an installed Tessera has a CMake cache that names it; its own build cannot make an emulator.
  write_text(folder / "CMakeCache.txt", "tessera_DIR:PATH=/usr/lib/cmake/tessera\n");
  CHECK(complaint("") == installed);
  write_text(folder / "CMakeCache.txt", "CMAKE_BUILD_TYPE:STRING=\ntessera_SOURCE_DIR:STATIC=/tessera\n");
  CHECK(says(complaint(""), {"cmake --build " + folder.path().string() + " --target tessera_emulated_device"}));
}

TEST_CASE("a library that is not the emulator, or of another version, is rejected", "[emulator]") {
  const TempDir folder;
  const auto with = [](const std::string& library) { return said("TESSERA_EMULATOR=" + library, program + " twice"); };
  CHECK(with(TESSERA_BIN_DIR "/libfake_cuda.so").find("it is not the expected library, or it is too old") != std::string::npos);
  const std::string source = (folder / "emulator.cpp").string(), library = (folder / "emulator.so").string();
  write_text(source, "extern \"C\" const char* tessera_emulator_version() { return \"0.0.7\"; }\n");
  REQUIRE(std::system(("g++ -shared -fPIC " + source + " -o " + library).c_str()) == 0);
  const std::string other = with(library);
  CAPTURE(other);
  CHECK(says(other.substr(0, other.size() - 1), {library, "Tessera 0.0.7", version(), "TESSERA_EMULATOR"}));
}

TEST_CASE("a program that is linked with the emulator opens no other", "[emulator]") {
  CHECK(Device::parse("emulated") == emulated_device());
  CHECK(Device::parse("emulated").name().starts_with("emulated sm_"));
}

TEST_CASE("the emulator leaves nothing in TMPDIR, whatever that is called", "[emulator]") {
  const TempDir folder;
  const auto among = folder / "o'neil $HOME `x` \\ b";
  std::filesystem::create_directory(among);
  const std::string quoted = "TMPDIR=" + folder.path().string() + "/o\\'neil\\ \\$HOME\\ \\`x\\`\\ \\\\\\ b";
  CHECK(said(quoted, program + " twice") == "emulated sm_90a: 6\n");
  CHECK(std::filesystem::is_empty(among));
  CHECK(said(quoted, TESSERA_BIN_DIR "/lifetime static") == "main: 150\nstatic: 150\n");  // it fills tensors
  CHECK(std::filesystem::is_empty(among));
  const std::string race = said(quoted, program + " race");
  CAPTURE(race);
  CHECK(race.find("mistakes.cpp:16") != race.npos);  // found although the library's file has been removed
  CHECK(std::filesystem::is_empty(among));
}

TEST_CASE("a TMPDIR that is not a folder causes an error that names it", "[emulator]") {
  CHECK(said("TMPDIR=/nonexistent/x", program + " twice").starts_with(
      "TMPDIR=/nonexistent/x: the emulator cannot create a folder there to compile kernels in: "));
  CHECK(said("PATH=/nonexistent", program + " twice")
            .starts_with("the emulator cannot compile kernels with g++: cannot run g++"));
}

TEST_CASE("folders of killed emulators are removed, those in use are kept", "[emulator]") {
  const TempDir folder;
  const auto killed = folder / "tessera-emulator-abcdef", used = folder / "tessera-emulator-ghijkl";
  for (const auto& each : {killed, used}) {
    std::filesystem::create_directory(each);
    write_text(each / "kernels.cpp", "");
  }
  const int lock = ::open(used.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  REQUIRE(::flock(lock, LOCK_EX | LOCK_NB) == 0);
  CHECK(said("TMPDIR=" + folder.path().string(), program + " twice") == "emulated sm_90a: 6\n");
  CHECK(!std::filesystem::exists(killed));
  CHECK(std::filesystem::exists(used / "kernels.cpp"));
  ::close(lock);
}

TEST_CASE("a text that the host compiler rejects is kept in a file of its own", "[emulator]") {
  const TempDir folder, temporary;
  const std::string to = "TESSERA_DUMP=cuda TESSERA_DUMP_DIR=" + folder.path().string();
  said(to, program + " twice");
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    write_text(entry.path(), read_text(entry.path()) + "\nnonsense\n");
  write_text(folder / "victim", "untouched");
  for (const char* const name : {"tessera-emulator-refused.cpp", "tessera-refused-.cpp"})
    std::filesystem::create_symlink(folder / "victim", temporary / name);
  const std::string text = said("TMPDIR=" + temporary.path().string() + " TESSERA_OVERRIDE_DIR=" + folder.path().string(),
                                program + " twice");
  CAPTURE(text);
  const std::string_view before = "rejects the emulated kernels, kept in ";
  REQUIRE(text.find(before) != text.npos);
  const std::string kept = text.substr(text.find(before) + before.size());
  CHECK(read_text(kept.substr(0, kept.find(":\n"))).find("nonsense") != text.npos);
  CHECK(text.find("nonsense") != text.npos);
  CHECK(read_text(folder / "victim") == "untouched");
}

}  // namespace test_emulator_library
