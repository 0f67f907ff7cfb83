// The program that tunes: one process measures, and the next one finds the records.
#include "support/catch.hpp"
#include "support/running.hpp"
#include "support/support.hpp"

namespace test_tune_program {

namespace {

Run tune(const TempDir& cache, const Arguments& arguments, const char* mode = "use") {
  Arguments all{"TESSERA_CACHE_DIR=" + cache.path().string(), std::string("TESSERA_TUNE=") + mode, "TESSERA_DEVICE=cpu",
                TESSERA_BIN_DIR "/tune"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run("/usr/bin/env", all);
}

}  // namespace

TEST_CASE("A process finds what another one tuned, and a third by a file", "[programs]") {
  const TempDir cache, other;
  const Run first = tune(cache, {"32x64x64,48x32x16", "--type", "f32", "--family", "activated"});
  INFO(first.err);
  REQUIRE(first.status == 0);
  CHECK(first.out.find("configurations in") != std::string::npos);
  CHECK(first.out.find("f32[32,64] f32[64,64]") != std::string::npos);
  const Run second = tune(cache, {"32x64x64", "--type", "f32", "--family", "activated"});
  CHECK(second.out.find("from a record") != std::string::npos);
  CHECK(tune(cache, {"32x64x64", "--type", "f32", "--family", "activated", "--again"}).out.find("from a record") ==
        std::string::npos);
  const Run listed = tune(cache, {"--list"});
  CHECK(listed.out.find("choose activated") != std::string::npos);

  const std::string file = (other / "tunings.tsv").string();
  CHECK(tune(cache, {"--export", file}).status == 0);
  CHECK(tune(other, {"--list"}).out == "nothing has been tuned\n");
  CHECK(tune(other, {"--import", file}).out == "4 new records\n");
  CHECK(tune(other, {"--import", file}).out == "0 new records\n");
  CHECK(tune(other, {"--list"}).out == listed.out);
  CHECK(tune(other, {"32x64x64", "--type", "f32", "--family", "activated"}).out.find("from a record") !=
        std::string::npos);

  // A damaged file adds nothing.
  const TempDir empty;
  write_text(file, read_text(file) + "damaged\n");
  const Run refused = tune(empty, {"--import", file});
  CHECK(refused.status == 2);
  CHECK(says(refused.err.substr(0, refused.err.size() - 1), {"tunings.tsv:6 is no tuning"}));
  CHECK(tune(empty, {"--list"}).out == "nothing has been tuned\n");
}

TEST_CASE("The program that tunes refuses what it cannot do", "[programs]") {
  const TempDir cache;
  const auto refused = [&](const Arguments& arguments, std::initializer_list<std::string_view> parts) {
    const Run result = tune(cache, arguments);
    INFO(result.err);
    CHECK(result.status == 2);
    CHECK(result.out.empty());
    CHECK(says(result.err.substr(0, result.err.size() - 1), parts));
  };
  refused({}, {"nothing to do"});
  for (const char* shape :
       {"32", "32x64", "32x64x", "0x1x1", "-1x2x3", "1x2x3x4", "99999999x1x1", "x", "1x2x3,", ",1x2x3", "1x2x3,,4x5x6"})
    refused({"--shape", shape}, {"--shape", "MxNxK"});
  refused({"8x8x8", "--type", "f64"}, {"--type", "bf16"});
  refused({"8x8x8", "--family", "other"}, {"--family", "residual"});
  refused({"8x8x8", "--budget", "0"}, {"--budget"});
  refused({"--list", "--import", "x"}, {"--list", "--import"});
  refused({"--import", "/nonexistent/file"}, {"not imported"});
  refused({"--export", "/nonexistent/file"}, {"not exported"});
  const Run lost = run("/usr/bin/env", {"TESSERA_TUNE_WORKER=/nonexistent", "TESSERA_CACHE_DIR=off",
                                        TESSERA_BIN_DIR "/tune", "8x8x8", "--device", "cpu"});
  CHECK(lost.status == 2);
  CHECK(lost.err.find("tune-worker, which was not found; tried: /nonexistent") != std::string::npos);
  // A program that is no worker.
  const Run wrong = run("/usr/bin/env", {"TESSERA_TUNE_WORKER=/bin/true", "TESSERA_CACHE_DIR=off",
                                         TESSERA_BIN_DIR "/tune", "8x8x8", "--device", "cpu"});
  CHECK(wrong.status == 2);
  CHECK(wrong.err.find("the tuning worker exited with status 0") != std::string::npos);
}

TEST_CASE("TESSERA_TUNE says what launches do with records", "[programs]") {
  const TempDir cache;
  const auto lesson = [&](const char* mode) {
    const Run result =
        run("/usr/bin/env", {"TESSERA_CACHE_DIR=" + cache.path().string(), std::string("TESSERA_TUNE=") + mode,
                             "TESSERA_DEVICE=cpu", TESSERA_BIN_DIR "/08_tuning"});
    INFO(result.err);
    CHECK(result.status == 0);
    CHECK(result.out.find("y is the transpose of x") != std::string::npos);
    return result.out;
  };
  CHECK(lesson("use").find("9 configurations") != std::string::npos);
  CHECK(lesson("search").find("from a record") != std::string::npos);
  CHECK(lesson("off").find("from a record") != std::string::npos);  // tune() itself is not off
  const Run wrong = run("/usr/bin/env", {"TESSERA_TUNE=always", TESSERA_BIN_DIR "/08_tuning"});
  CHECK(wrong.status == 2);
  CHECK(wrong.err.find("TESSERA_TUNE") != std::string::npos);
}

}  // namespace test_tune_program
