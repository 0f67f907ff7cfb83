// The order of a dump: the kernel first, the helpers at the end.
#include "jit/compile/kernel_first.hpp"

#include <algorithm>
#include <string>

#include "codegen/kernel_source.hpp"
#include "jit/compile/cache_key.hpp"
#include "jit/compile/compiler.hpp"
#include "jit/compile/dump.hpp"
#include "jit/options/process.hpp"
#include "support/catch.hpp"
#include "support/compiling.hpp"
#include "support/patterns.hpp"
#include "support/stderr.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"

namespace test_kernel_first {

using namespace tessera;
using namespace tessera::internal;
namespace fs = std::filesystem;

namespace {

const Arch gpu = Arch::sm_80;

KernelSource row_sums() {
  const auto sums = kernel("row_sums", [](In<f32, 2> x, Out<f32, 2> y) {
    Index row = blocks(x.extent(0));
    store(y, {row, 0}, sum(load(x, {row, 0}, {1, 512}), 1));
  });
  const Graph& graph = sums.executable().graph();
  return generate(graph, dense_variant(graph), gpu, {});
}

std::size_t lines_before(std::string_view text, std::string_view part) {
  const std::size_t at = text.find(part);
  REQUIRE(at != text.npos);
  return static_cast<std::size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

std::string with(std::string text, std::string_view part, std::string_view in_its_place) {
  const std::size_t at = text.find(part);
  REQUIRE(at != text.npos);
  return text.replace(at, part.size(), in_its_place);
}

/// The file as a compiler sees it that runs in the folder `from`.
std::string preprocessed(const fs::path& from, const std::string& file) {
  Process compiler({"g++", "-x", "c++", "-E", "-P", file}, {.folder = from.string()});
  std::string text;
  CHECK(compiler.read(text));
  INFO(text);
  CHECK(compiler.succeeded());
  return strip_comments(text);
}

}  // namespace

TEST_CASE("A dump has the kernel before the helpers", "[jit]") {
  const std::string text = row_sums().text, dump = kernel_first(text, "__FILE__");
  const std::size_t kernel = dump.find("extern \"C\" __global__"), helper = dump.find("block_index() {");
  CHECK(kernel < helper);
  CHECK(helper < dump.size());
  CHECK(lines_before(dump, "extern \"C\"") < 12);
  CHECK(helpers_first(dump) == text);
  CHECK(kernel_first(dump, "\"other.cu\"") == dump);
  CHECK(helpers_first(text) == text);
}

TEST_CASE("A text that was not generated has no other order", "[jit]") {
  for (const std::string text :
       {"", "extern \"C\" __global__ void k() {}\n", "// kernel k in CUDA C++, by hand\n\nint x;\n",
        "// ---- kernel ----\nextern \"C\" __global__ void k() {}\n"}) {
    CHECK(kernel_first(text, "__FILE__") == text);
    CHECK(helpers_first(text) == text);
  }
}

TEST_CASE("A dump includes itself where compilers need the helpers", "[jit]") {
  const TempDir temp;
  const std::string text = row_sums().text;
  fs::create_directory(temp / "dumps");
  write_text(temp / "dumps/plain.cu", text);
  const std::string plain = preprocessed(temp.path(), "dumps/plain.cu");
  CHECK(plain.find("block_index() {") < plain.find("extern \"C\""));
  write_text(temp / "dumps/named.cu", kernel_first(text, "\"named.cu\""));
  CHECK(preprocessed(temp.path(), "dumps/named.cu") == plain);
  write_text(temp / "dumps/piped.cu", kernel_first(text, "__FILE__"));
  CHECK(preprocessed(temp / "dumps", "piped.cu") == plain);
}

TEST_CASE("A dump is edited in its own order", "[jit]") {
  if (!nvrtc_here()) return;
  const TempDir temp;
  const KernelSource source = row_sums();
  const fs::path file = temp / dump_file(dump_stem(source.author, gpu.name(), source.text), "cuda");
  const auto options = [&](std::string_view variable) -> std::string {
    if (variable == "TESSERA_CACHE_DIR") return (temp / "cache").native();
    if (variable == "TESSERA_DUMP") return "cuda";
    return variable == "TESSERA_DUMP_DIR" || variable == "TESSERA_OVERRIDE_DIR" ? temp.path().native() : "";
  };
  CompiledKernel kernel;
  std::string error;
  const auto compile = [&] {
    Compiler compiler(read_options(options));
    const std::string said = stderr_of([&] { error = error_of([&] { kernel = compiler.compile(source, gpu); }); });
    return said.substr(0, said.rfind('\n'));
  };
  // As dumped, it is the generated text.
  CHECK(compile().empty());
  const auto image = kernel.entry->code.image;
  CHECK(compile().empty());
  CHECK(kernel.source.text == source.text);
  const std::string dump = read_text(file);
  CHECK(dump == kernel_first(source.text, "\"" + file.filename().native() + "\""));
  // An edit that changes nothing, one of the kernel, and one of a helper.
  constexpr std::string_view helper = "__device__ inline u32 block_index() { return blockIdx.x; }";
  write_text(file, with(dump, "// ---- kernel ----\n", "// ---- kernel ----\n// mine\n"));
  CHECK(says(compile(), {"'row_sums'", file.native()}));
  CHECK(kernel.entry->code.image == image);
  write_text(file, with(dump, helper, "__device__ inline u32 block_index() { return blockIdx.x + 1; }"));
  CHECK(says(compile(), {"'row_sums'", file.native()}));
  CHECK(error == "(no error)");
  CHECK(kernel.entry->code.image != image);
  // Errors name the lines of the file.
  write_text(file, with(dump, helper, "oops"));
  compile();
  CHECK(says(error, {file.native() + ":" + std::to_string(lines_before(dump, helper) + 1) + ": "}));
  write_text(file, with(dump, "extern \"C\"", "oops();\nextern \"C\""));
  compile();
  CHECK(says(error, {file.native() + ":" + std::to_string(lines_before(dump, "extern \"C\"") + 1) + ": "}));
}

}  // namespace test_kernel_first
