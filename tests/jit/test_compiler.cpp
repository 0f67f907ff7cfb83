// From CUDA C++ to machine code with all its stages: dumps, overrides, a warm cache. The texts are written by hand; no
// GPU is needed. Without NVRTC the tests that compile report that and pass.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <thread>

#include "codegen/prelude/prelude.hpp"
#include "jit/compile/compiler.hpp"
#include "jit/compile/disassemble.hpp"
#include "jit/compile/dump.hpp"
#include "support/catch.hpp"
#include "support/compiling.hpp"
#include "support/patterns.hpp"
#include "support/stderr.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"

namespace test_compiler {

using namespace tessera::internal;
namespace fs = std::filesystem;

namespace {

const Arch gpu = Arch::parse("sm_90a");

KernelSource scale(const std::string& factor = "2.0f") {
  KernelSource source{.author = "scale",
                      .name = "scale",
                      .text =
                          "// doubles, or so\nextern \"C\" __global__ void scale(float* x, int n) {\n"
                          "  if (threadIdx.x < n) x[threadIdx.x] *= " +
                          factor + ";\n}\n",
                      .plan = "plan of scale: one block\n",
                      .parameters = {},
                      .tma_tensors = {}};
  source.threads = 128;
  return source;
}

/// The default options except for the given ones, without a disk cache unless one is given.
Options with(std::map<std::string, std::string> values) {
  values.emplace("TESSERA_CACHE_DIR", "off");
  return read_options([&](std::string_view variable) { return values[std::string(variable)]; });
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

/// "scale-1f2e3d4c"
std::string stem_of(const KernelSource& source) { return dump_stem(source.author, gpu.name(), source.text); }

std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& file : fs::directory_iterator(folder)) names.push_back(file.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

/// Sets an environment variable during its lifetime.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

const Nvrtc& no_nvrtc() { throw Error("NVRTC was not found anywhere"); }

}  // namespace

TEST_CASE("Dump files are named after the kernel and its hash", "[jit]") {
  const std::string stem = stem_of(scale());
  CHECK(stem.size() == std::string_view("scale-").size() + 8);
  CHECK(stem.starts_with("scale-"));
  CHECK(stem == stem_of(scale()));
  CHECK(stem != stem_of(scale("3.0f")));
  CHECK(stem != dump_stem("scale", "sm_80", scale().text));
  CHECK(stem == dump_stem("scale", gpu.name(), "#line 9 \"another.cpp\"\n" + scale().text));
  CHECK(dump_file(stem, "cuda") == stem + ".cu");
  CHECK(dump_file(stem, "ptx") == stem + ".ptx");
  CHECK(dump_stem("../a b", "", "").starts_with("___a_b-"));
}

TEST_CASE("A filter selects the kernels to dump", "[jit]") {
  const auto dumps = [](std::string stages, std::string filter, std::string_view kernel, std::string_view stage) {
    return wants_dump(with({{"TESSERA_DUMP", stages}, {"TESSERA_DUMP_FILTER", filter}}), kernel, stage);
  };
  CHECK(dumps("cuda,log", "", "scale", "cuda"));
  CHECK(dumps("cuda,log", "", "scale", "log"));
  CHECK_FALSE(dumps("cuda,log", "", "scale", "ptx"));
  CHECK_FALSE(dumps("", "", "scale", "cuda"));
  CHECK(dumps("cuda", "*cal?", "scale", "cuda"));
  CHECK(dumps("cuda", "[st]cale", "scale", "cuda"));
  CHECK_FALSE(dumps("cuda", "scal", "scale", "cuda"));
}

TEST_CASE("The author's name selects and titles every stage", "[jit]") {
  const Graph graph = trace_kernel("div", [](In<f32, 1> x, Out<f32, 1> y) {
    Index i = blocks(cdiv(y.extent(0), 256));
    store(y, {i}, load(x, {i}, {256}) / 3.0f);
  });
  const KernelSource source = generate(graph, dense_variant(graph), gpu);
  CHECK(source.name == "k_div");
  Compiler compiler(with({{"TESSERA_DUMP", "plan,cuda,log,stats"}, {"TESSERA_DUMP_FILTER", "div"}}),
                    std::chrono::seconds(10), no_nvrtc);
  const std::string text = stderr_of([&] { compiler.dump(source, gpu); });
  INFO(text);
  for (const char* ending : {".plan", ".cu", ".log", ".stats"})
    CHECK(has(text, "==== " + dump_stem("div", gpu.name(), source.text) + ending + " ====\n"));

  if (!nvrtc_here()) return;
  const TempDir temp;
  const Variable place("TMPDIR", temp.path().native());
  KernelSource wrong = source;
  wrong.text += "oops";
  CHECK(says(error_of([&] { Compiler(with({})).compile(wrong, gpu); }),
             {"kernel 'div' does not compile", temp.path().native() + "/tessera-div-"}));
}

TEST_CASE("Without a compiler a kernel is dumped as far as possible", "[jit]") {
  Compiler compiler(with({{"TESSERA_DUMP", "plan,cuda,ptx,stats"}}), std::chrono::seconds(10), no_nvrtc);
  const std::string text = stderr_of([&] { compiler.dump(scale(), gpu); });
  const std::string title = "==== " + stem_of(scale());
  INFO(text);
  CHECK(has(text, title + ".plan ====\nplan of scale: one block\n"));
  CHECK(has(text, title + ".cu ====\n" + scale().text));
  CHECK(has(text, title + ".ptx ====\nno ptx: NVRTC was not found anywhere\n"));
  CHECK(has(text, title + ".stats ====\nno stats: NVRTC was not found anywhere\n"));
  // A launch cannot continue without one.
  CHECK(stderr_of([&] {
          CHECK(error_of([&] { compiler.compile(scale(), gpu); }) == "NVRTC was not found anywhere");
        }).size() > 0);
  // NVRTC is not opened for stages that are text.
  const auto opened = []() -> const Nvrtc& { throw std::logic_error("opened"); };
  Compiler quiet(with({{"TESSERA_DUMP", "plan,cuda"}}), std::chrono::seconds(10), opened);
  CHECK(has(stderr_of([&] { quiet.dump(scale(), gpu); }), scale().text));
  CHECK(stderr_of([&] {  // stages that are requested as text are not dumped in addition
          CHECK(quiet.texts(scale(), gpu, {"cuda", "plan"}) == std::vector{scale().text, scale().plan});
        })
            .empty());
}

TEST_CASE("Missing dump stages are reported on stderr, once", "[jit]") {
  const TempDir temp;
  const auto compiler = [&](const Nvrtc& (*nvrtc)()) {
    return Compiler(with({{"TESSERA_DUMP", "cuda,log,stats"}, {"TESSERA_DUMP_DIR", temp.path().native()}}),
                    std::chrono::seconds(10), nvrtc);
  };
  const auto count = [](const std::string& all, const std::string& part) { return matches(all, part).size(); };
  Compiler without = compiler(no_nvrtc);
  const std::string text = stderr_of([&] {
    without.dump(scale(), gpu);
    without.dump(scale("3.0f"), gpu);
  });
  INFO(text);
  CHECK(count(text, "kernel 'scale' is dumped without its log: NVRTC was not found anywhere") == 1);
  CHECK(count(text, "\n") == 1);
  CHECK(read_text(temp / (stem_of(scale()) + ".stats")) == "no stats: NVRTC was not found anywhere\n");
  if (!nvrtc_here()) return;
  const Variable place("TMPDIR", temp.path().native());
  Compiler with_nvrtc = compiler(&Nvrtc::instance);
  const std::string wrong = stderr_of([&] { with_nvrtc.dump(scale("nothing"), gpu); });
  INFO(wrong);
  CHECK(count(wrong, "kernel 'scale' is dumped without its log: kernel 'scale' does not compile") == 1);
  CHECK(count(wrong, "\n") == 1);
}

TEST_CASE("A kernel that must be compiled is checked first, and a cached one is not", "[jit]") {
  if (!nvrtc_here()) return;
  const TempDir temp;
  const auto fresh = [&] { return Compiler(with({{"TESSERA_CACHE_DIR", (temp / "cache").native()}})); };
  int checks = 0;
  const auto passes = [&] { ++checks; };
  const auto fails = [&] {
    ++checks;
    throw Error("a plan that does not hold");
  };
  CHECK(error_of([&] { fresh().compile(scale(), gpu, fails); }) == "a plan that does not hold");
  CHECK(checks == 1);
  fresh().compile(scale(), gpu, passes);  // nothing was cached
  CHECK(checks == 2);
  Compiler compiler = fresh();
  compiler.compile(scale(), gpu, fails);
  CHECK(checks == 2);
  compiler.recompile(scale(), gpu, passes);
  CHECK(checks == 3);
}

TEST_CASE("Every stage is dumped, also from a warm cache", "[jit]") {
  if (!nvrtc_here()) return;
  const TempDir temp;
  const std::string stem = stem_of(scale());
  for (const bool warm : {false, true}) {
    const fs::path folder = temp / (warm ? "warm" : "cold");
    Compiler compiler(with({{"TESSERA_DUMP", "plan,cuda,ptx,sass,log,stats"},
                            {"TESSERA_DUMP_DIR", folder.native()},
                            {"TESSERA_CACHE_DIR", (temp / "cache").native()}}));
    CompiledKernel kernel;
    const std::string told = stderr_of([&] { kernel = compiler.compile(scale(), gpu); });
    INFO(told);
    CHECK((told.empty() || has(told, "without its sass: machine code needs nvdisasm")));
    CHECK(kernel.source.text == scale().text);
    CHECK_FALSE(kernel.entry->code.image.empty());
    CHECK(compiler.counters().disk_hits == (warm ? 1 : 0));

    CHECK(files_in(folder) == std::vector<std::string>{stem + ".cu", stem + ".log", stem + ".plan", stem + ".ptx",
                                                       stem + ".sass", stem + ".stats"});
    CHECK(read_text(folder / (stem + ".cu")) == scale().text);
    CHECK(read_text(folder / (stem + ".plan")) == scale().plan);
    CHECK(has(read_text(folder / (stem + ".ptx")), ".target sm_90a"));
    CHECK(read_text(folder / (stem + ".log")) == kernel.entry->code.log);
    CHECK(has(kernel.entry->code.log, "ptxas info"));
    const std::string stats = read_text(folder / (stem + ".stats"));
    INFO(stats);
    CHECK(says(stats.substr(0, stats.size() - 1), {"scale for sm_90a: 128 threads", " registers", " bytes of cubin"}));
    CHECK(has(stats, std::to_string(kernel.entry->code.report.registers) + " registers"));
    CHECK(has(stats, warm ? "cache hit\n" : "cache miss\n"));
  }
}

TEST_CASE("Stages that are requested together are compiled once", "[jit]") {
  if (!nvrtc_here()) return;
  Compiler compiler(with({}));
  const std::vector<std::string> stages{"log", "plan", "stats"};
  const std::vector<std::string> cold = compiler.texts(scale(), gpu, stages),
                                 warm = compiler.texts(scale(), gpu, stages);
  CHECK(has(cold[0], "ptxas info"));
  CHECK(cold[1] == scale().plan);
  CHECK(has(cold[2], "cache miss"));
  CHECK(has(warm[2], "cache hit\n"));
  KernelSource warned = scale();
  warned.text.insert(warned.text.rfind('}'), "  int unused;\n");
  CHECK(has(compiler.texts(warned, gpu, {"stats"})[0], ", 1 warning\n"));
}

TEST_CASE("A dump that cannot be written reports its path", "[jit]") {
  const TempDir temp;
  write_text(temp / "file", "");
  Compiler compiler(with({{"TESSERA_DUMP", "cuda"}, {"TESSERA_DUMP_DIR", (temp / "file").native()}}));
  CHECK(says(error_of([&] { compiler.dump(scale(), gpu); }), {"TESSERA_DUMP_DIR", (temp / "file").native()}));
  // Whole or not at all: a folder at the file's path, and nothing left beside it.
  fs::create_directories(temp / "dumps" / (stem_of(scale()) + ".cu"));
  Compiler other(with({{"TESSERA_DUMP", "cuda"}, {"TESSERA_DUMP_DIR", (temp / "dumps").native()}}));
  CHECK(says(error_of([&] { other.dump(scale(), gpu); }), {"TESSERA_DUMP_DIR", stem_of(scale()) + ".cu"}));
  CHECK(files_in(temp / "dumps").size() == 1);
}

TEST_CASE("An edited kernel waits for the previous launch if its text still does", "[jit]") {
  if (!nvrtc_here()) return;
  const TempDir temp;
  const auto source = [](const std::string& factor, std::string_view wait) {
    KernelSource source = scale(factor);
    source.text.insert(source.text.find("  if"), fmt::format("  {}\n", wait));
    source.text.insert(0, prelude_for(grid_dependency_wait));
    source.waits_for_previous = true;
    return source;
  };
  const KernelSource generated = source("2.0f", grid_dependency_wait);
  Compiler compiler(with({{"TESSERA_OVERRIDE_DIR", temp.path().native()}}));
  for (const bool waits : {true, false}) {
    write_text(temp / (stem_of(generated) + ".cu"), source("5.0f", waits ? grid_dependency_wait : "").text);
    stderr_of([&] { CHECK(compiler.compile(generated, Arch::sm_90a).source.waits_for_previous == waits); });
  }
}

TEST_CASE("An edited dump is compiled in place of the generated text", "[jit]") {
  if (!nvrtc_here()) return;
  const TempDir temp;
  const std::string folder = (temp / "edited").native(), file = folder + "/" + stem_of(scale()) + ".cu";
  const auto compiler = [&] {
    return Compiler(with({{"TESSERA_OVERRIDE_DIR", folder},
                          {"TESSERA_CACHE_DIR", (temp / "cache").native()},
                          {"TESSERA_DUMP", "cuda"},
                          {"TESSERA_DUMP_DIR", folder}}));
  };
  CHECK(says(error_of([&] { compiler().compile(scale(), gpu); }), {"TESSERA_OVERRIDE_DIR", folder, "no such folder"}));
  fs::create_directory(folder);
  std::shared_ptr<const CacheEntry> generated;
  CHECK(stderr_of([&] { generated = compiler().compile(scale(), gpu).entry; }).empty());
  // Dumped and not edited: no message.
  CHECK(read_text(file) == scale().text);
  CHECK(stderr_of([&] { compiler().compile(scale(), gpu); }).empty());
  // Dumped in the author's words: these are shown, and what is compiled is the text.
  KernelSource named = scale();
  named.shown = "// doubles\nextern \"C\" __global__ void scale(float* values, int n) {}\n";
  fs::remove(file);
  for (int i = 0; i < 2; ++i)  // the file is there the second time
    CHECK(stderr_of([&] { CHECK(compiler().compile(named, gpu).entry->code.image == generated->code.image); }).empty());
  CHECK(read_text(file) == named.shown);

  const std::string edited = scale("5.0f").text;
  write_text(file, edited);
  for (const bool warm : {false, true}) {
    Compiler again = compiler();
    CompiledKernel kernel;
    const std::string text = stderr_of([&] { kernel = again.compile(scale(), gpu); });
    CHECK(says(text.substr(0, text.size() - 1), {"warning", "'scale'", file, "TESSERA_OVERRIDE_DIR"}));
    CHECK(kernel.source.text == edited);
    CHECK(kernel.entry->source == edited);
    CHECK(kernel.entry->code.image != generated->code.image);
    CHECK(again.counters().compiled == (warm ? 0 : 1));
    CHECK(read_text(file) == edited);
  }
  // One that lacks the kernel is rejected before the launch.
  for (const std::string lost :
       {"__global__ void scale(float* x) {}", "// scale(\nextern \"C\" __global__ void scal() {}"}) {
    write_text(file, lost);
    stderr_of([&] {
      CHECK(says(error_of([&] { compiler().compile(scale(), gpu); }),
                 {"'scale'", file, "extern \"C\" __global__ void scale", "TESSERA_OVERRIDE_DIR"}));
    });
  }
  // An edit that does not compile is the user's to fix, with the file's line numbers.
  write_text(file, "#line 7 \"scale.cpp\"\n\nextern \"C\" __global__ void scale() { oops }");
  const Variable place("TMPDIR", temp.path().native());
  stderr_of([&] {
    const std::string error = error_of([&] { compiler().compile(scale(), gpu); });
    CHECK(says(error, {"'scale'", file + ":3: ", "\"oops\" is undefined", temp.path().native() + "/tessera-scale-"}));
  });
  fs::remove(file);
  fs::create_directory(file);
  CHECK(says(error_of([&] { compiler().compile(scale(), gpu); }), {"TESSERA_OVERRIDE_DIR", file, "is a folder"}));
}

TEST_CASE("An edited text is also checked if the GPU's driver compiles it", "[jit]") {
  if (!nvrtc_here()) return;
  const TempDir folder;
  const Arch newer{99, 0, 0};
  const fs::path file = folder / (dump_stem("scale", newer.name(), scale().text) + ".cu");
  Compiler compiler(with({{"TESSERA_OVERRIDE_DIR", folder.path().native()}}));
  stderr_of([&] {
    write_text(file, scale("5.0f").text);
    CHECK(compiler.compile(scale(), newer).entry->code.is_ptx);
    write_text(file, "__global__ void scale(float* x) {}");
    CHECK(says(error_of([&] { compiler.compile(scale(), newer); }), {"'scale'", file.native()}));
  });
}

TEST_CASE("An edited dump that is not a readable file is rejected", "[jit]") {
  const TempDir temp;
  const fs::path folder = temp / "edited", file = folder / (stem_of(scale()) + ".cu");
  fs::create_directory(folder);
  const auto error = [&](const fs::path& named) {
    return error_of([&] {
      Compiler(with({{"TESSERA_OVERRIDE_DIR", named.native()}}), std::chrono::seconds(5), no_nvrtc)
          .texts(scale(), gpu, {"cuda"});
    });
  };
  SECTION("a FIFO") {
    REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
    CHECK(says(error(folder), {"TESSERA_OVERRIDE_DIR", file.native(), "not a regular file"}));
  }
  SECTION("a device without an end") {
    fs::create_symlink("/dev/zero", file);
    CHECK(says(error(folder), {"TESSERA_OVERRIDE_DIR", file.native(), "not a regular file"}));
  }
  SECTION("a file too large to be a text") {
    write_text(file, "");
    fs::resize_file(file, std::uintmax_t{1} << 40);
    CHECK(says(error(folder), {"TESSERA_OVERRIDE_DIR", file.native(), "1099511627776 bytes"}));
  }
  SECTION("a folder that cannot be accessed") {
    fs::create_directory_symlink("loop", temp / "loop");
    CHECK(says(error(temp / "loop"), {"TESSERA_OVERRIDE_DIR", (temp / "loop").native(), "Too many levels"}));
  }
}

TEST_CASE("A folder of edited dumps that cannot be listed costs only the warning", "[jit]") {
  const TempDir temp;
  const fs::path folder = temp / "edited";
  fs::create_directory(folder);
  write_text(folder / (stem_of(scale("3.0f")) + ".cu"), "");
  const pid_t child = ::fork();
  if (child == 0) {
    ::chmod(folder.c_str(), 0111);
    if (::geteuid() == 0 && (::chmod(temp.path().c_str(), 0755) != 0 || ::setuid(65534) != 0)) ::_exit(77);
    int code = 1;
    try {
      Compiler compiler(with({{"TESSERA_OVERRIDE_DIR", folder.native()}}), std::chrono::seconds(5), no_nvrtc);
      code = compiler.texts(scale(), gpu, {"cuda"})[0] == scale().text ? 0 : 2;
    } catch (...) {}
    ::_exit(code);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

TEST_CASE("Edited dumps that match no kernel are reported", "[jit]") {
  const TempDir folder;
  const std::string edited = stem_of(scale("3.0f")) + ".cu", last = stem_of(scale("4.0f")) + ".cu";
  for (const std::string& file : {edited, last, std::string("scale-12345678.plan"), std::string("scaled-12345678.cu")})
    write_text(folder / file, "");
  Compiler compiler(with({{"TESSERA_OVERRIDE_DIR", folder.path().native()}}));
  const auto warning = [&](const KernelSource& source) {
    return stderr_of([&] { CHECK(compiler.texts(source, gpu, {"cuda"})[0] == source.text); });
  };
  const std::string text = warning(scale());
  CHECK(says(text.substr(0, text.size() - 1),
             {"warning", "'scale'", folder.path().native(), edited, last, stem_of(scale()) + ".cu", "dump it again"}));
  CHECK_FALSE(has(text, "12345678"));
  CHECK(warning(scale("2.5f")).empty());  // once per kernel
  KernelSource other = scale();
  other.author = "other";
  CHECK(warning(other).empty());
}

TEST_CASE("The cache is used, or not, as options say", "[jit]") {
  if (!nvrtc_here()) return;
  const TempDir temp;
  const std::string folder = (temp / "cache").native();
  const auto compiled = [](std::map<std::string, std::string> values, int times = 1) {
    Compiler compiler(with(std::move(values)));
    for (int i = 0; i < times; ++i) compiler.compile(scale(), gpu);
    return compiler.counters().compiled;
  };
  CHECK(compiled({}, 2) == 1);  // in memory
  CHECK(compiled({}) == 1);
  CHECK(compiled({{"TESSERA_CACHE_DIR", folder}}) == 1);
  CHECK(compiled({{"TESSERA_CACHE_DIR", folder}}) == 0);
  CHECK(compiled({{"TESSERA_CACHE_DIR", folder}, {"TESSERA_ALWAYS_COMPILE", "1"}}, 2) == 2);
  CHECK(compiled({{"TESSERA_CACHE_DIR", folder}}) == 0);
  CHECK(compiled({{"TESSERA_CACHE_DIR", folder}, {"TESSERA_DEBUG", "1"}}) == 1);  // other code: with line info
  Compiler compiler(with({{"TESSERA_CACHE_DIR", folder}}));
  const auto first = compiler.compile(scale(), gpu).entry;
  CHECK(compiler.compile(scale(), gpu).entry == first);
  CHECK(compiler.recompile(scale(), gpu).entry != first);
  CHECK(compiler.counters().compiled == 1);
  CHECK(compiler.compile(scale(), Arch::parse("sm_80")).entry->code.image != first->code.image);
}

TEST_CASE("A long compilation is reported", "[jit]") {
  if (!nvrtc_here()) return;
  const auto spoken = [](std::chrono::milliseconds patience) {
    Compiler compiler(with({}), patience);
    return stderr_of([&] { compiler.compile(scale(), gpu); });
  };
  const std::string text = spoken(std::chrono::milliseconds(0));
  INFO(text);
  const std::size_t end = text.find('\n');
  CHECK(says(text.substr(0, end), {"warning", "'scale' is still compiling after 0 s", "4 lines (1 kB)", "range()",
                                   "smaller tiles", "docs/language.md"}));
  CHECK(says(text.substr(end + 1, text.size() - end - 2), {"warning", "'scale' took 0.", " s to compile"}));
  CHECK(spoken(std::chrono::minutes(1)).empty());
}

TEST_CASE("Tiles that registers cannot hold are reported, once per kernel", "[jit]") {
  const auto graph_of = [](int columns) {
    return kernel(
               "row",
               [=](In<f32, 2> x, Out<f32, 2> y) {
      Index row = blocks(x.extent(0));
      Tile xs = load(x, {row, 0}, {1, columns});
      store(y, {row, 0}, xs - sum(xs, 1) + cumsum(xs, 1));
               })
        .executable()
        .graph();
  };
  const unsigned line = __LINE__ - 5;
  const Graph large = graph_of(200000), small = graph_of(2000);
  Compiler compiler(with({}), std::chrono::minutes(1), no_nvrtc);
  const auto spoken = [&](const Graph& graph) {
    return stderr_of([&] { error_of([&] { compiler.compile(generate(graph, dense_variant(graph), gpu), gpu); }); });
  };
  const std::string text = spoken(large);
  INFO(text);
  CHECK(says(text.substr(0, text.size() - 1),
             {"warning", "kernel 'row', ", "test_compiler.cpp:", "too large for registers", "bytes of workspace",
              "smaller tiles are faster"}));
  CHECK(has(text, "test_compiler.cpp:" + std::to_string(line)));
  CHECK(spoken(large).empty());
  CHECK(spoken(small).empty());
  // Also when it is dumped for the CPU or emulated.
  Compiler dumping(with({}), std::chrono::minutes(1), no_nvrtc);
  CHECK(stderr_of([&] { dumping.dump(generate(large, dense_variant(large), gpu), gpu); }) == text);
  CHECK(stderr_of([&] { dumping.dump(generate(small, dense_variant(small), gpu), gpu); }).empty());
}

TEST_CASE("For a GPU newer than NVRTC the PTX can be dumped", "[jit]") {
  if (!nvrtc_here()) return;
  const Arch newer{99, 0, 0};
  Compiler compiler(with({{"TESSERA_DUMP", "ptx,sass,stats"}}));
  const std::string text = stderr_of([&] { compiler.compile(scale(), newer); });
  INFO(text);
  CHECK(has(text, ".entry scale"));
  CHECK(has(text, "no sass: the driver makes machine code for this GPU"));
  CHECK(has(text, " bytes of PTX"));
  CHECK_FALSE(has(text, " registers, "));
}

TEST_CASE("Machine code is disassembled by nvdisasm", "[jit]") {
  const TempDir temp;
  const fs::path program = temp / "nvdisasm";
  const Variable path("PATH", temp.path().native() + ":" + std::getenv("PATH"));
  const auto disassembled = [&](const std::string& script) {
    write_text(program, "#!/bin/sh\n" + script);
    REQUIRE(::chmod(program.c_str(), 0755) == 0);
    const std::string cubin = "some bytes";
    return disassemble({reinterpret_cast<const std::byte*>(cubin.data()), cubin.size()});
  };
  CHECK(disassembled("echo \"$1 $#\"; cat \"$2\"") == "--print-code 2\nsome bytes");
  CHECK(disassembled("head -c 300000 /dev/zero").size() == 300000);
  CHECK(error_of([&] { disassembled("echo 'nvdisasm fatal' >&2; exit 3"); }) == program.native() + " failed: nvdisasm fatal");
  CHECK(has(error_of([&] { disassembled("kill -9 $$"); }), "failed"));
  write_text(program, "#!/nowhere/sh\n");
  CHECK(has(error_of([] { disassemble({}); }), "cannot run " + program.native()));
}

TEST_CASE("Without nvdisasm there is an error, and in a dump a line", "[jit]") {
  for (const fs::path& toolkit : installed_toolkits())
    if (fs::exists(toolkit / "bin/nvdisasm")) {
      WARN("skipped: nvdisasm is installed");
      SUCCEED();
      return;
    }
  const Variable path("PATH", "/nowhere"), home("CUDA_HOME", ""), other("CUDA_PATH", "");
  CHECK(has(error_of([] { disassemble({}); }), "nvdisasm, which is neither in PATH"));
  if (!nvrtc_here()) return;
  Compiler compiler(with({{"TESSERA_DUMP", "sass"}}));
  CHECK(has(stderr_of([&] { compiler.compile(scale(), gpu); }), "no sass: machine code needs nvdisasm"));
  CHECK(has(error_of([&] { compiler.texts(scale(), gpu, {"cuda", "sass"}); }), "machine code needs nvdisasm"));
}

TEST_CASE("Threads compile and dump at the same time", "[jit]") {
  if (!nvrtc_here()) return;
  const TempDir temp;
  Compiler compiler(with({{"TESSERA_DUMP", "cuda,log"}, {"TESSERA_DUMP_DIR", temp.path().native()}}));
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&, i] { compiler.compile(scale(std::to_string(i % 2) + ".0f"), gpu); });
  }
  CHECK(compiler.counters().compiled == 2);
  CHECK(files_in(temp.path()).size() == 4);
  CHECK(read_text(temp / (stem_of(scale("1.0f")) + ".cu")) == scale("1.0f").text);
}

TEST_CASE("A graph provides its stages as text", "[jit]") {
  const auto add_one = kernel("add_one", [](InOut<f32, 1> x) {
    Index i = blocks(cdiv(x.extent(0), 256));
    Tile before = load(x, {i}, {256});
    store(x, {i}, before + 1.0f);
  });
  const Graph& graph = add_one.executable().graph();
  CHECK(kernel_texts(graph, gpu, {"cuda", "graph", "plan"}) ==
        std::vector{cuda_source(graph, gpu), to_string(graph, true), plan_text(graph, gpu)});
  CHECK(has(cuda_source(graph, gpu), "extern \"C\" __global__"));
  CHECK(cuda_source(graph, gpu) != cuda_source(graph, Arch::parse("sm_80")));
  CHECK(has(plan_text(graph, gpu), "add_one for sm_90a"));
  // It begins with the file of the graph's dump, whatever it was lowered for.
  const std::string file = dump_stem("add_one", "", to_string(graph)) + ".graph\n";
  CHECK(plan_text(graph, gpu).starts_with("from " + file));
  for (const Arch arch : {gpu, Arch::sm_80}) CHECK(cuda_source(graph, arch).starts_with("// from " + file));
}

TEST_CASE("A kernel has the stages that TESSERA_DUMP lists", "[jit]") {
  const Graph graph;
  const std::string error = error_of([&] { kernel_texts(graph, gpu, {"plan", "assembly"}); });
  CHECK(has(error, "'assembly'"));
  for (const OptionInfo& option : option_table()) {
    if (option.variable != "TESSERA_DUMP") continue;
    std::string list(option.values);
    for (std::size_t at = 0; (at = list.find(',', at)) != list.npos; at += 2) list.replace(at, 1, ", ");
    INFO(error);
    CHECK(has(error, "choose from " + list));
  }
}

}  // namespace test_compiler
