// Compilation in process: which NVRTC, for which GPU, its log, and the files that a failure leaves. No GPU is needed;
// without NVRTC the tests that compile report that and pass.
#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <thread>

#include "jit/compile/nvrtc.hpp"
#include "support/catch.hpp"
#include "support/compiling.hpp"
#include "support/support.hpp"

namespace test_nvrtc {

using namespace tessera::internal;
namespace fs = std::filesystem;

namespace {

CompileRequest tiny(Arch arch) {
  return {.source = R"(extern "C" __global__ void add_one(float* x, int n) {
  __shared__ float s[32];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < n) x[threadIdx.x] = s[31 - threadIdx.x] + 1;
}
)",
          .kernel = "add_one",
          .arch = arch};
}

Arch newest(const Nvrtc& nvrtc) {
  const int number = nvrtc.architectures().back();
  return {number / 10, number % 10, 0};
}

std::string file_names(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& file : fs::directory_iterator(folder)) names.push_back(file.path().filename().string());
  std::sort(names.begin(), names.end());
  std::string all;
  for (const std::string& name : names) all += name + " ";
  return all;
}

}  // namespace

TEST_CASE("Architectures have one spelling", "[nvrtc]") {
  CHECK(Arch::parse("sm_80") == Arch{8, 0, 0});
  CHECK(Arch::parse("sm_90a") == Arch{9, 0, 'a'});
  CHECK(Arch::parse("sm_120") == Arch{12, 0, 0});
  for (const char* name : {"sm_80", "sm_86", "sm_90a", "sm_103", "sm_121a"}) CHECK(Arch::parse(name).name() == name);
  for (const char* wrong : {"", "sm_", "80", "sm_a", "sm_9", "sm_-90", "sm_90b", "SM_90", "sm_90 ", "sm_9000", "a",
                            "sm_75", "sm_80a", "sm_89a", "sm_90f", "sm_100f", "sm_81", "sm_130"}) {
    INFO(wrong);
    CHECK(says(error_of([&] { Arch::parse(wrong); }),
               {"'" + std::string(wrong) + "'", "choose from sm_80, sm_86", "sm_90, sm_90a, sm_100"}));
  }
}

TEST_CASE("NVRTC is searched in known places", "[nvrtc]") {
  const auto with = [](std::string_view variable, std::string value) {
    return Nvrtc::places("", [=](std::string_view name) { return name == variable ? value : ""; });
  };
  const auto has = [](const std::vector<std::string>& places, const std::string& place) {
    return std::find(places.begin(), places.end(), place) != places.end();
  };
  const auto anywhere = with("", "");
  REQUIRE(anywhere.size() >= 3);
  CHECK(anywhere[0] == "libnvrtc.so.13");
  CHECK(anywhere[1] == "libnvrtc.so.12");
  CHECK(anywhere[2] == "libnvrtc.so");
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const auto places = with(variable, "/opt/toolkit");
    CHECK(has(places, "/opt/toolkit/lib64/libnvrtc.so.12"));
    CHECK(has(places, "/opt/toolkit/lib/libnvrtc.so.13"));
    CHECK(has(places, "/opt/toolkit/targets/x86_64-linux/lib/libnvrtc.so"));
  }
  const auto exactly = [](std::string_view option) {
    return Nvrtc::places(option, [](auto) { return "/opt/toolkit"; });
  };
  CHECK(exactly("/x/libnvrtc.so.12") == std::vector<std::string>{"/x/libnvrtc.so.12"});
  const TempDir folder;
  CHECK(exactly(folder.path().native()) ==
        std::vector<std::string>{folder / "libnvrtc.so.13", folder / "libnvrtc.so.12", folder / "libnvrtc.so"});
}

TEST_CASE("A missing NVRTC names every place", "[nvrtc]") {
  const TempDir folder;
  write_text(folder / "text.so", "no library");
  REQUIRE(::mkfifo((folder / "fifo.so").c_str(), 0600) == 0);
  fs::create_symlink("/dev/zero", folder / "endless.so");
  const std::string message = error_of([&] {
    Nvrtc::open({"libnot-there.so.13", folder / "a.so", folder / "b.so", folder / "text.so", folder / "fifo.so",
                 folder / "endless.so", "/not/there/libnvrtc.so"});
  });
  INFO(message);
  CHECK(message.find("TESSERA_NVRTC") != message.npos);
  CHECK(message.find("tried: the loader path: no libnot-there.so.13; ") != message.npos);
  CHECK(message.find(" " + folder.path().string() + ": no a.so, b.so;") != message.npos);
  CHECK(message.find(" " + (folder / "text.so").string() + ": ") != message.npos);
  for (const char* name : {"fifo.so", "endless.so"})
    CHECK(message.find((folder / name).string() + ": it is not a regular file") != message.npos);
  CHECK(message.find(" /not/there: no libnvrtc.so") != message.npos);
  CHECK(error_of([] { Nvrtc::open({}); }).find("nowhere") != std::string::npos);
  // A library, but another one.
  CHECK(says(error_of([] { Nvrtc::open({"libc.so.6"}); }), {"libc.so.6", "nvrtcVersion"}));
}

TEST_CASE("The log of ptxas is read per kernel", "[nvrtc]") {
  const std::string log =
      "k.cu(1): warning #177-D: variable \"a warning : b\" was declared but never referenced\n"
      "  int warning ; // a warning :\n"
      "Remark: The warnings can be suppressed\n\n"
      "ptxas info    : (C7519) warpgroup.arrive is injected in around line 42 in function 'k'\n"
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'k2' for 'sm_90a'\n"
      "ptxas info    : Function properties for k2\n"
      "ptxas         .     16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads\n"
      "ptxas info    : Used 10 registers, used 1 barriers, 132 bytes smem\n"
      "ptxas info    : Compile time = 2.277 ms\n"
      "ptxas info    : Compiling entry function 'k' for 'sm_80'\n"
      "ptxas info    : Function properties for k\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 38 registers, used 2 barriers, 1028 bytes smem, 360 bytes cmem[0], 8 bytes cmem[2]\n";
  const CompileReport k = parse_compile_log(log, "k");
  CHECK(k.registers == 38);
  CHECK(k.barriers == 2);
  CHECK(k.shared_bytes == 1028);
  CHECK(k.constant_bytes == 368);
  CHECK((k.stack_bytes == 0 && k.spill_store_bytes == 0 && k.spill_load_bytes == 0));
  REQUIRE(k.warnings.size() == 2);
  CHECK(k.warnings[0].find("#177-D") != std::string::npos);
  CHECK(k.warnings[1].find("(C7519)") != std::string::npos);
  CHECK_FALSE(k.clean());  // the C75xx remark

  const CompileReport k2 = parse_compile_log(log, "k2");
  CHECK(k2.registers == 10);
  CHECK((k2.stack_bytes == 16 && k2.spill_store_bytes == 8 && k2.spill_load_bytes == 4));

  CompileReport clean;
  clean.warnings = {"k.cu(1): warning #177-D: unused"};
  CHECK(clean.clean());
  for (int CompileReport::*bytes :
       {&CompileReport::stack_bytes, &CompileReport::spill_store_bytes, &CompileReport::spill_load_bytes}) {
    CompileReport dirty;
    dirty.*bytes = 4;
    CHECK_FALSE(dirty.clean());
  }
  CHECK(parse_compile_log("", "k") == CompileReport());
}

TEST_CASE("Every architecture that NVRTC reports compiles", "[nvrtc]") {
  const Nvrtc* nvrtc = nvrtc_here();
  if (!nvrtc) return;
  REQUIRE(nvrtc->architectures().size() > 3);
  CHECK(nvrtc->version() >= std::pair{12, 0});
  CHECK(fs::is_regular_file(nvrtc->path()));
  CHECK(nvrtc->build().find(' ') != std::string::npos);
  std::vector<Arch> archs;
  for (const int number : nvrtc->architectures()) {
    if (number < 75) continue;  // 12.x warns that they are deprecated
    archs.push_back({number / 10, number % 10, 0});
    if (number >= 90) archs.push_back({number / 10, number % 10, 'a'});
  }
  for (const Arch arch : archs) {
    INFO(arch.name());
    const CompiledCode code = nvrtc->compile(tiny(arch));
    INFO(code.log);
    CHECK_FALSE(code.is_ptx);
    CHECK(code.note.empty());
    REQUIRE(code.image.size() > 64);
    CHECK(std::equal(code.image.begin(), code.image.begin() + 4,
                     reinterpret_cast<const std::byte*>("\x7f"
                                                        "ELF")));
    CHECK((code.report.registers >= 4 && code.report.registers <= 40));
    CHECK(code.report.shared_bytes >= 128);  // sm_90 and newer reserve some
    CHECK(code.report.barriers == (code.log.find(" barriers") == code.log.npos ? 0 : 1));  // 12.0 does not report them
    CHECK(code.report.warnings.empty());
    CHECK(code.report.clean());
    CHECK(code.report.compile_ms > 0);
    if (std::getenv("TESSERA_TEST_TIMES")) std::cout << arch.name() << " " << code.report.compile_ms << " ms\n";
  }
}

TEST_CASE("Local memory and spills are detected", "[nvrtc]") {
  const Nvrtc* nvrtc = nvrtc_here();
  if (!nvrtc) return;
  for (const char* arch : {"sm_80", "sm_90a"}) {
    CompileRequest request{.source = R"(extern "C" __global__ void indexed(float* x, int n) {
  float a[64];
  for (int i = 0; i < 64; i++) a[i] = x[i];
  for (int i = 0; i < n; i++) x[i] = a[(i * 7) & 63];
})",
                           .kernel = "indexed",
                           .arch = Arch::parse(arch)};
    const CompileReport stack = nvrtc->compile(request).report;
    CHECK(stack.stack_bytes >= 256);
    CHECK(stack.spill_store_bytes == 0);
    CHECK_FALSE(stack.clean());

    request.kernel = "spills";  // 48 values that are live across a barrier, in 16 registers
    request.source = R"(extern "C" __global__ void spills(float* x) {
  float a[48];
#pragma unroll
  for (int i = 0; i < 48; i++) a[i] = x[i * 1024 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 48; i++) x[i * 1024 + threadIdx.x] = a[i] * a[(i * 5 + 1) % 48];
})";
    request.flags = {"--maxrregcount=16"};
    const CompiledCode code = nvrtc->compile(request);
    INFO(code.log);
    CHECK(code.report.spill_store_bytes > 0);
    CHECK(code.report.spill_load_bytes > 0);
    CHECK_FALSE(code.report.clean());
  }
}

TEST_CASE("Functions that are not inlined count", "[nvrtc]") {
  const Nvrtc* nvrtc = nvrtc_here();
  if (!nvrtc) return;
  const CompiledCode code = nvrtc->compile(
      {.source = "__device__ __noinline__ float sum(float* p, int n) { return n <= 1 ? 1.f : sum(p, n - 1) + p[n]; }\n"
                 "extern \"C\" __global__ void k(float* p) { p[0] = sum(p, p[1]); }",
       .kernel = "k",
       .arch = Arch::parse("sm_90a")});
  INFO(code.log);
  CHECK(code.report.stack_bytes > 0);
}

TEST_CASE("Serialized wgmma is a remark that is not clean", "[nvrtc]") {
  const Nvrtc* nvrtc = nvrtc_here();
  if (!nvrtc) return;
  const std::string product =
      "asm volatile(\"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;\" : "
      "\"+f\"(d[0]), \"+f\"(d[1]), \"+f\"(d[2]), \"+f\"(d[3]) : \"l\"(a), \"l\"(a));\n";
  const CompileReport report =
      nvrtc
          ->compile(
              {.source = "extern \"C\" __global__ void k(float* p, unsigned long long a) {\n  float d[4] = {};\n" +
                         product + "d[0] += 1;\n" + product +
                         "  for (int i = 0; i < 4; i++) p[threadIdx.x * 4 + i] = d[i];\n}",
               .kernel = "k",
               .arch = Arch::parse("sm_90a")})
          .report;
  REQUIRE_FALSE(report.warnings.empty());
  CHECK(report.warnings[0].find("(C75") != std::string::npos);
  CHECK_FALSE(report.clean());
}

TEST_CASE("PTX can be compiled for any GPU", "[nvrtc]") {
  const Nvrtc* nvrtc = nvrtc_here();
  if (!nvrtc) return;
  CompileRequest request = tiny(Arch::parse("sm_90a"));
  request.to_ptx = true;
  const CompiledCode code = nvrtc->compile(request);
  CHECK((code.is_ptx && code.note.empty()));
  const std::string_view ptx(reinterpret_cast<const char*>(code.image.data()), code.image.size());
  CHECK(ptx.find(".target sm_90a") != ptx.npos);
  CHECK(ptx.find(".entry add_one") != ptx.npos);
  CHECK(nvrtc->options(request)[0] == "--gpu-architecture=compute_90a");
}

TEST_CASE("A GPU newer than NVRTC gets PTX and a line that reports it", "[nvrtc]") {
  const Nvrtc* nvrtc = nvrtc_here();
  if (!nvrtc) return;
  const std::string best = "compute_" + std::to_string(nvrtc->architectures().back());
  const CompiledCode code = nvrtc->compile(tiny({99, 0, 'a'}));
  CHECK(code.is_ptx);
  CHECK(says(code.note, {"sm_990a", best}));
  const std::string_view ptx(reinterpret_cast<const char*>(code.image.data()), code.image.size());
  CHECK(ptx.find(".entry add_one") != ptx.npos);
  CHECK(ptx.back() == '\0');
  CHECK(nvrtc->target({99, 0, 0}).name() == best);
  CHECK(nvrtc->target(newest(*nvrtc)).note.empty());
  // Between two that it knows: the lower one.
  CHECK(nvrtc->target({9, 9, 0}).name() == "compute_90");
  // Older than all that it knows, and one that never existed.
  CHECK(says(error_of([&] { nvrtc->compile(tiny({2, 0, 0})); }), {"sm_20", best.substr(8), "toolkit"}));
  const TempDir folder;
  CompileRequest request = tiny({8, 0, 'a'});
  request.failure_folder = folder.path();
  CHECK(says(error_of([&] { nvrtc->compile(request); }), {"add_one", "there is no sm_80a", "sm_80, sm_86"}));
}

TEST_CASE("A failed compilation leaves everything needed to repeat it", "[nvrtc]") {
  const Nvrtc* nvrtc = nvrtc_here();
  if (!nvrtc) return;
  const TempDir folder;
  CompileRequest request{
      .source = "#line 7 \"my kernels.cpp\"\nextern \"C\" __global__ void broken(float* p) { p[0] = 1 }\n",
      .kernel = "broken",
      .arch = Arch::parse("sm_80"),
      .failure_folder = folder.path()};
  const std::string message = error_of([&] { nvrtc->compile(request); });
  INFO(message);
  CHECK(says(message, {"'broken'", "sm_80", "my kernels.cpp:7: error: expected a \";\"", folder.path().native()}));

  const fs::path kept = fs::directory_iterator(folder.path())->path();
  CHECK(message.ends_with(kept.native()));
  CHECK(file_names(kept) == "broken.cu log.txt options.txt versions.txt ");
  CHECK((fs::status(kept).permissions() & fs::perms::all) == fs::perms::owner_all);
  CHECK(read_text(kept / "broken.cu") == request.source);
  CHECK(read_text(kept / "options.txt").starts_with("--gpu-architecture=sm_80\n"));
  CHECK(read_text(kept / "versions.txt").find(nvrtc->path().native()) != std::string::npos);
  CHECK(read_text(kept / "log.txt").find("1 error detected") != std::string::npos);

  SECTION("ptxas reports lines of the PTX, which is also left then") {
    const TempDir other;
    request.source = "extern \"C\" __global__ void broken(float* p) { asm(\"blah %r1;\"); }";
    request.failure_folder = other.path();
    CHECK(says(error_of([&] { nvrtc->compile(request); }), {"'broken'", "instruction: 'blah'"}));
    CHECK(file_names(fs::directory_iterator(other.path())->path()).find("broken.ptx") != std::string::npos);
  }
  SECTION("ptxas fails without a message") {
    request.source =
        "extern \"C\" __global__ void broken(float* p) { __shared__ float t[60000]; t[threadIdx.x] = 1;"
        " __syncthreads(); p[0] = t[5]; }";
    CHECK(says(error_of([&] { nvrtc->compile(request); }), {"'broken'", "240000 bytes", "shared memory"}));
  }
  SECTION("an option that NVRTC does not know") {
    request.flags = {"--no-such-option"};
    CHECK(says(error_of([&] { nvrtc->compile(request); }), {"'broken'", "--no-such-option"}));
  }
  SECTION("the folder cannot be made") {
    request.failure_folder = folder / "missing";
    CHECK(says(error_of([&] { nvrtc->compile(request); }), {"expected a \";\"", "could not be kept"}));
  }
  SECTION("a name that is no file name") {
    request.kernel = "../../evil name";
    CHECK(says(error_of([&] { nvrtc->compile(request); }), {folder.path().native() + "/tessera-______evil_name-"}));
  }
}

TEST_CASE("Code depends on its text alone", "[nvrtc]") {
  const Nvrtc* nvrtc = nvrtc_here();
  if (!nvrtc) return;
  for (const char* flag : {"-I/usr/include", "--include-path=/x", "-include=x.h", "--pre-include=x.h", "--pch",
                           "--create-pch=x", "--use-pch=x", "--device-time-trace=x"}) {
    CompileRequest request = tiny(Arch::parse("sm_80"));
    request.flags = {flag};
    CHECK(says(error_of([&] { nvrtc->options(request); }), {"'add_one'", flag, "rejected"}));
  }
  // Nothing is included, not even from the current folder.
  const TempDir folder;
  write_text(folder / "here.h", "");
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  CompileRequest request = tiny(Arch::parse("sm_80"));
  request.source = "#include \"here.h\"\n" + request.source;
  request.failure_folder = folder.path();
  const std::string message = error_of([&] { nvrtc->compile(request); });
  fs::current_path(before);
  CHECK(says(message, {"here.h", "add_one.cu:1: "}));
}

TEST_CASE("Equal requests give equal bytes, in any thread", "[nvrtc]") {
  const Nvrtc* nvrtc = nvrtc_here();
  if (!nvrtc) return;
  const CompileRequest request = tiny(Arch::parse("sm_90a"));
  const CompiledCode first = nvrtc->compile(request);
  std::vector<CompiledCode> all(8);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 2; ++i) all[static_cast<std::size_t>(2 * t + i)] = nvrtc->compile(request);
      });
    }
  }
  for (const CompiledCode& code : all) {
    CHECK(code.image == first.image);
    CHECK(code.report.registers == first.report.registers);
  }
  CompileRequest with_lines = request;
  with_lines.line_info = true;
  CHECK(nvrtc->compile(with_lines).image.size() > first.image.size());
}

}  // namespace test_nvrtc
