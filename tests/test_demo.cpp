// The demo: each of its parts, in colour on a terminal that has some, and only there.
#include "catch.hpp"
#include "running.hpp"

namespace {

std::string shown(const Arguments& environment) {
  Talk demo(Talk::Through::terminal, "demo", {"kernel"}, environment);
  const std::string text = demo.rest();
  CHECK(demo.status() == 0);
  CHECK(text.find("A kernel") != text.npos);
  return text;
}

}  // namespace

TEST_CASE("The demo shows what it is asked for", "[programs]") {
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

TEST_CASE("The demo has colours on a terminal, unless nobody wants or sees them", "[programs]") {
  CHECK(shown({}).find("\x1b[1;36m") != std::string::npos);
  CHECK(shown({"NO_COLOR=1"}).find('\x1b') == std::string::npos);
  CHECK(shown({"TERM=dumb"}).find('\x1b') == std::string::npos);
  CHECK(output("demo", {"kernel"}).find('\x1b') == std::string::npos);
}
