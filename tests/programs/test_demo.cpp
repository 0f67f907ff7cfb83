// The demo: each of its parts, in color on a terminal that supports it, and only there.
#include "support/catch.hpp"
#include "support/running.hpp"
#include "support/support.hpp"

namespace test_demo {

namespace {

std::string shown(const Arguments& environment) {
  Talk demo(Talk::Through::terminal, "demo", {"kernel"}, environment);
  const std::string text = demo.rest();
  CHECK(demo.status() == 0);
  CHECK(text.find("A kernel") != text.npos);
  return text;
}

}  // namespace

TEST_CASE("The demo shows the requested parts", "[programs]") {
  const std::string kernel = output("demo", {"kernel"});
  CHECK(kernel.find("auto softmax(int width) {") != kernel.npos);
  CHECK(kernel.find("__global__") == kernel.npos);
  const std::string code = output("demo", {"code"});
  for (const char* part :
       {"kernel softmax(In<f32, 2>, Out<f32, 2>)", "= max %", "extern \"C\" __global__", "more lines"})
    CHECK(code.find(part) != code.npos);
  CHECK(code.find("#line") == code.npos);
  const std::string text = output("demo", {"devices,text"});
  for (const char* part : {"largest error", "Once upon a time", "tokens per second"})
    CHECK(text.find(part) != text.npos);
  check_refused("demo", {"kernels"}, {"there is no part 'kernels'; choose from kernel, code, devices"});
  check_refused("demo", {"kernel"}, {"stdout", "No space left"}, {.output = "/dev/full"});
}

TEST_CASE("--doctor reports what was found, where, and how to get the rest, one line each", "[programs]") {
  const auto told = [](const Arguments& environment) {
    Arguments arguments = environment;
    arguments.insert(arguments.end(), {TESSERA_BIN_DIR "/demo", "--doctor"});
    return run("/usr/bin/env", arguments);
  };
  const auto line_of = [](const Run& run, const std::string& part) {
    const std::size_t at = run.out.find(' ' + part + ' ');
    REQUIRE(at != run.out.npos);
    const std::size_t begin = run.out.rfind('\n', at) + 1;
    return run.out.substr(begin, run.out.find('\n', at) - begin);
  };
  const TempDir folder;
  const std::string cache = folder / "kernels";
  const Run all = told({"TESSERA_THREADS=1", "TESSERA_CACHE_DIR=" + cache});
  INFO(all.out << all.err);
  CHECK(all.status == 0);
  for (const char* part : {"Tessera", "driver", "GPU", "NVRTC", "nvdisasm", "emulator", "cache", "threads", "settings", "kernel"})
    CHECK((line_of(all, part).starts_with("found   ") || line_of(all, part).starts_with("missing ")));
  CHECK(line_of(all, "threads").find(" 1 of ") != std::string::npos);
  CHECK(line_of(all, "cache").find(cache) != std::string::npos);
  CHECK(line_of(all, "settings").find("TESSERA_THREADS=1") != std::string::npos);
  CHECK(all.out.find("found   kernel    runs on ") != all.out.npos);
  std::size_t lines = 0;
  for (const char c : all.out) lines += c == '\n';
  CHECK(lines >= 10);
  CHECK(all.out.find('\x1b') == all.out.npos);

  const Run without = told({"TESSERA_DEVICE=cpu", "TESSERA_NVRTC=/nonexistent/nvrtc", "TESSERA_EMULATOR=/nonexistent/emulator",
                            "TESSERA_CACHE_DIR=off"});
  INFO(without.out);
  CHECK(without.status == 0);
  CHECK(line_of(without, "NVRTC").starts_with("missing NVRTC"));
  CHECK(line_of(without, "NVRTC").find("nvidia-cuda-nvrtc-cu12") != std::string::npos);
  CHECK(line_of(without, "emulator").starts_with("missing emulator"));
  for (const char* part : {"NVRTC", "emulator"}) CHECK(line_of(without, part).find("/nonexistent") != std::string::npos);
  CHECK(line_of(without, "cache").find("none on disk") != std::string::npos);
  CHECK(line_of(without, "kernel").find("runs on cpu") != std::string::npos);

  const Run none = told({"TESSERA_DEVICE=cuda:99"});
  INFO(none.out);
  CHECK(none.status == 1);
  CHECK(none.out.find("missing kernel    TESSERA_DEVICE=cuda:99: ") != none.out.npos);
}

TEST_CASE("The demo uses colors on a terminal, unless NO_COLOR is set or it cannot show them", "[programs]") {
  CHECK(shown({}).find("\x1b[1;36m") != std::string::npos);
  CHECK(shown({"NO_COLOR=1"}).find('\x1b') == std::string::npos);
  CHECK(shown({"TERM=dumb"}).find('\x1b') == std::string::npos);
  CHECK(output("demo", {"kernel"}).find('\x1b') == std::string::npos);
}

}  // namespace test_demo
