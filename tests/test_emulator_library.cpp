// TESSERA_DEVICE=emulated of a program that was not linked with the emulator (emulated_device/mistakes.cpp).
#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include "catch.hpp"
#include "emulated_device.hpp"
#include "support.hpp"

using namespace tessera::internal;

namespace {

/// What it says, on both streams.
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

const std::string program = TESSERA_BIN_DIR "/mistakes";

}  // namespace

TEST_CASE("a program runs in the emulator that lies beside it", "[emulator]") {
  CHECK(said("", program + " twice") == "emulated sm_90a: 6\n");
  CHECK(said("", program + " recorded") == "emulated sm_90a: 6\n");
  CHECK(said("TESSERA_DUMP_ARCH=sm_80", program + " twice") == "emulated sm_80: 6\n");
  const std::string dumped = said("TESSERA_DUMP=graph,cuda", program + " twice");
  CHECK(dumped.find("kernel twice(In<f32, 1>, Out<f32, 1>)") != dumped.npos);
  CHECK(dumped.find("extern \"C\" __global__") != dumped.npos);
}

TEST_CASE("a text that was edited by hand is what the emulator runs", "[emulator]") {
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

TEST_CASE("the emulator reports what a program does wrong as an error with kernel and place", "[emulator]") {
  const std::string report = said("", program + " race");
  CAPTURE(report);
  CHECK(report.find("kernel 'race' in the emulator") != report.npos);
  CHECK(report.find("mistakes.cpp:15") != report.npos);
  CHECK(report.find("block") != report.npos);
}

TEST_CASE("where the emulator is missing the error says what to build", "[emulator]") {
  const TempDir folder;
  std::filesystem::copy_file(program, folder / "mistakes");
  const std::string text = said("", (folder / "mistakes").string() + " twice");
  CAPTURE(text);
  CHECK(says(text.substr(0, text.size() - 1),
             {"TESSERA_DEVICE=emulated: device emulated: the emulator was not found", "no libtessera_emulator.so",
              "tessera_emulated_device", "TESSERA_EMULATOR"}));
  CHECK(said("TESSERA_EMULATOR=" TESSERA_BIN_DIR, (folder / "mistakes").string() + " twice") == "emulated sm_90a: 6\n");
}

TEST_CASE("a program that has the emulator in it opens no other", "[emulator]") {
  CHECK(Device::parse("emulated") == emulated_device());
  CHECK(Device::parse("emulated").name().starts_with("emulated sm_"));
}
