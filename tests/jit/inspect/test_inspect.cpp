// The inspector: control codes and listings of machine code, the record of a lowering, the links between texts, pages.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "codegen/kernel_source.hpp"
#include "codegen/lowering_record.hpp"
#include "codegen/passes.hpp"
#include "common/kernels.hpp"
#include "graph/in_json.hpp"
#include "jit/compile/compiler.hpp"
#include "jit/compile/disassemble.hpp"
#include "jit/compile/inspect_kernel.hpp"
#include "jit/compile/page_files.hpp"
#include "jit/inspect/graph_drawing.hpp"
#include "jit/inspect/page.hpp"
#include "support/catch.hpp"
#include "support/compiling.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"

namespace test_inspect {

using namespace tessera::internal;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

std::optional<std::string> read_here(const Location& location) {
  return read_text(std::filesystem::path(TESSERA_SOURCE_DIR) / location.file);
}

KernelSource recorded(const Graph& graph, const Variant& variant, Arch gpu, bool with_source = true) {
  GenerateOptions options{.record = true};
  if (with_source) options.read_source = read_here;
  return generate(graph, variant, gpu, options);
}
KernelSource recorded(const NamedKernel& kernel, Arch gpu, bool with_source = true) {
  const Graph graph = kernel.graph();
  return recorded(graph, kernel.variant(graph), gpu, with_source);
}
NamedKernel named(const std::string& name, Arch gpu = Arch::sm_90a) { return find_kernels(name, gpu).front(); }

json view_of(const KernelSource& source, Arch gpu, bool with_source = true) {
  return json::parse(
      view_json({.source = source, .arch = gpu, .label = gpu.name(), .command = "again", .with_source = with_source}));
}

const std::vector<std::string> kernels = {"layer_norm-f32",      "attention-bf16",
                                          "linear_gelu-64-bf16", "flash_attention-causal-f32",
                                          "greedy_token",        "linear-clusters-64x64x64-bf16"};

/// The kernels above that there are.
std::vector<NamedKernel> some_kernels(Arch gpu) {
  std::vector<NamedKernel> found;
  for (const std::string& name : kernels)
    for (const NamedKernel& kernel : named_kernels())
      if (kernel.name == name && kernel.is_of(gpu)) found.push_back(kernel);
  for (const std::string& name : kernels)  // each is made for sm_90a
    if (gpu == Arch::sm_90a) REQUIRE(std::ranges::find(found, name, &NamedKernel::name) != found.end());
  return found;
}

// Machine code of a kernel for sm_90a, as nvdisasm 13.5 prints it.
constexpr std::string_view listing = R"(	.target	sm_90a
//--------------------- .text.k                   --------------------------
	.section	.text.k,"ax",@progbits
        .type           k,@function
k:
.text.k:
	//## File "/tmp/t/a.cu", line 4
        /*0000*/                   LDC R1, c[0x0][0x28] ;                                          /* 0x00000a00ff017b82 */
                                                                                                   /* 0x000fe20000000800 */
	//## File "/tmp/t/a.cu", line 2 inlined at "/tmp/t/a.cu", line 7
	//## File "/tmp/t/a.cu", line 7 inlined at "/tmp/t/a.cu", line 14
	//## File "/tmp/t/a.cu", line 14
        /*0010*/                   S2R R5, SR_CTAID.X ;                                            /* 0x0000000000057919 */
                                                                                                   /* 0x000e2e0000002500 */
.L_x_1:
        /*0020*/               @P0 FADD R7, R4.reuse, -12583039 ;                                  /* 0xcb40007f04070421 */
                                                                                                   /* 0x001fe20000000000 */
        .type           $k$helper,@function
$k$helper:
        /*0030*/                   EXIT ;                                                          /* 0x000000000000794d */
                                                                                                   /* 0x000fea0003800000 */
)";

}  // namespace

TEST_CASE("Control codes are decoded, and encoded to the same bits", "[inspect]") {
  const auto text = [](std::uint64_t high) { return to_string(ControlCode::decode({0, high})); };
  CHECK(text(0x000fe20000000800) == "B------:R-:W-:-:S01");  // LDC
  CHECK(text(0x000e2e0000002500) == "B------:R-:W0:-:S07");  // S2R: its result arrives later
  CHECK(text(0x001fc8000f8e0204) == "B0-----:R-:W-:Y:S04");  // IMAD, which reads it
  CHECK(text(0x0041e20000000800) == "B--2---:R0:W-:-:S01");  // STS waits for a load, and its operands are read later
  CHECK(ControlCode::decode({0, 0x040fe200000000ff}).reuse == 1);
  const ControlCode all{.stall = 15, .yield = false, .write_barrier = 5, .read_barrier = 4, .wait = 33, .reuse = 8};
  CHECK(all.encode({}) == Encoding{0, 0x22197e0000000000});
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const Encoding encoding{i * 0x9e3779b97f4a7c15, (i + 1) * 0xbf58476d1ce4e5b9};
    const ControlCode code = ControlCode::decode(encoding);
    CHECK(code.encode(encoding) == encoding);
    CHECK(ControlCode::decode(code.encode({})) == code);
    CHECK(code.encode({encoding.low, 0}).low == encoding.low);
  }
}

TEST_CASE("A listing of machine code has instructions with lines", "[inspect]") {
  std::vector<SassInstruction> code = sass_listing(listing);
  REQUIRE(code.size() == 4);
  CHECK(code[0].label == "k");
  CHECK(code[0].text == "LDC R1, c[0x0][0x28]");
  CHECK(code[0].encoding == Encoding{0x00000a00ff017b82, 0x000fe20000000800});
  CHECK(code[0].lines == std::vector<unsigned>{4});
  CHECK(code[1].address == 0x10);
  CHECK(code[1].lines == std::vector<unsigned>{2, 7, 14});
  CHECK(code[2].label == ".L_x_1");
  CHECK(code[2].text == "@P0 FADD R7, R4.reuse, -12583039");
  CHECK(code[2].lines == code[1].lines);  // until other lines are named
  CHECK(code[3].label == "$k$helper");
  CHECK(code[3].lines.empty());  // not those of the function before it
  add_live_registers(
      code,
      "  /*0000*/ LDC R1, c[0x0][0x28] ;  // |  1  |\n /*0010*/ S2R R5 ; // |   12 |  1 |\n /*0030*/ EXIT ; // | 3 |");
  CHECK(code[0].live_registers == 1);
  CHECK(code[1].live_registers == 12);
  CHECK(code[2].live_registers == 0);
  CHECK(code[3].live_registers == 3);
  // A text that is cut anywhere is read to its end.
  for (std::size_t length = 0; length < listing.size(); length += 7) sass_listing(listing.substr(0, length));
  CHECK(sass_listing("").empty());
}

TEST_CASE("A record links the lines of texts to steps, nodes and the author's lines", "[inspect]") {
  for (const Arch gpu : {Arch::sm_90a, Arch::sm_80})
    for (const NamedKernel& kernel : some_kernels(gpu)) {
      INFO(kernel.name << " for " << gpu.name());
      const Graph graph = kernel.graph();
      const KernelSource source = recorded(kernel, gpu),
                         plain = generate(graph, kernel.variant(graph), gpu, {.read_source = read_here});
      // The record changes nothing.
      CHECK(source.text == plain.text);
      CHECK(source.shown == plain.shown);
      CHECK(source.plan == plain.plan);
      CHECK(plain.record == nullptr);
      CHECK_FALSE(has(source.text, "\x1f"));
      REQUIRE(source.record);
      const LoweringRecord& record = *source.record;
      const auto in_kernel = std::ranges::count(
          std::string_view(source.text).substr(source.text.find(kernel_mark) + kernel_mark.size()), '\n');
      CHECK(record.kernel_steps.size() == static_cast<std::size_t>(in_kernel));
      CHECK(record.shown_lines.size() == record.kernel_steps.size());
      CHECK(std::ranges::is_sorted(record.shown_lines));
      CHECK(record.plan_steps.size() == static_cast<std::size_t>(std::ranges::count(source.plan, '\n')));
      CHECK(record.graph_nodes.size() == static_cast<std::size_t>(std::ranges::count(record.graph, '\n')));
      std::set<int> spelled(record.kernel_steps.begin(), record.kernel_steps.end());
      std::size_t spelled_steps = 0, placed = 0;
      for (std::size_t step = 1; step < record.steps.size(); ++step) {
        spelled_steps += spelled.contains(static_cast<int>(step));
        placed += !record.steps[step].at.file.empty();
        for (const int node : record.steps[step].nodes) CHECK(static_cast<std::size_t>(node) < record.nodes.size());
      }
      // Each op on elements of a tile is part of a step.
      std::set<int> computed;
      for (const LoweringRecord::Step& step : record.steps) computed.insert(step.nodes.begin(), step.nodes.end());
      for (std::size_t node = 0; node < record.nodes.size(); ++node) {
        INFO("%" << node << " = " << record.nodes[node].op);
        if (record.nodes[node].flops > 0) CHECK(computed.contains(static_cast<int>(node)));
      }
      // A step may be an expression of the next one, and then no line is its own.
      CHECK(spelled_steps * 10 > record.steps.size() * 6);
      CHECK(placed >= spelled_steps);
      CHECK_FALSE(record.passes.empty());
      CHECK(record.passes.front().name == "schedule");
      CHECK(std::ranges::count(record.passes, "schedule", &LoweringRecord::Pass::name) == 1);  // not the rejected ones
      CHECK(record.passes.back().name == "parameters");
      for (std::size_t i = 1; i < record.plan_steps.size(); ++i)
        if (record.plan_steps[i] >= 0) CHECK(record.plan_steps[i] < static_cast<int>(record.steps.size()));
      const GraphDrawing drawing = draw_graph(record);
      CHECK_FALSE(drawing.boxes.empty());
      for (const GraphDrawing::Wire& wire : drawing.wires) CHECK(drawing.boxes[wire.from].y < drawing.boxes[wire.to].y);
    }
}

TEST_CASE("The author's line leads to the text that it became", "[inspect]") {
  const KernelSource source = recorded(named("layer_norm-f32"), Arch::sm_90a);
  const json view = view_of(source, Arch::sm_90a);
  // The statement with rsqrt -> its nodes -> their steps -> lines of CUDA.
  std::set<int> lines;
  for (std::size_t i = 0; i < view["cpp"]["lines"].size(); ++i)
    if (has(view["cpp"]["lines"][i].get<std::string>(), "rsqrt(")) lines.insert(static_cast<int>(i));
  REQUIRE_FALSE(lines.empty());
  std::set<int> nodes;
  for (std::size_t node = 0; node < view["nodes"].size(); ++node)
    if (lines.contains(view["nodes"][node]["at"].get<int>())) nodes.insert(static_cast<int>(node));
  std::string text;
  for (std::size_t i = 0; i < view["cuda"]["lines"].size(); ++i) {
    const int step = view["cuda"]["of"][i].get<int>();
    if (step <= 0) continue;
    const json& of = view["steps"][static_cast<std::size_t>(step)]["nodes"];
    if (std::ranges::any_of(of, [&](const json& node) { return nodes.contains(node.get<int>()); }))
      text += view["cuda"]["lines"][i].get<std::string>() + '\n';
  }
  INFO(text);
  CHECK(has(text, "rsqrt"));
  CHECK_FALSE(has(text, "store_"));
  CHECK_FALSE(has(text, "#line"));
  // A body's last bracket belongs to what opened it.
  const KernelSource attention = recorded(named("attention-bf16"), Arch::sm_90a);
  const json loops = view_of(attention, Arch::sm_90a);
  std::vector<std::pair<std::size_t, int>> open;  // indentation and step
  std::size_t closed = 0;
  for (std::size_t i = 0; i < loops["cuda"]["lines"].size(); ++i) {
    const std::string line = loops["cuda"]["lines"][i];
    const std::size_t indent = line.find_first_not_of(' ');
    const int step = loops["cuda"]["of"][i].get<int>();
    if (step > 0 && line.ends_with('{')) open.emplace_back(indent, step);
    if (open.empty() || indent == line.npos || line.substr(indent) != "}" || open.back().first != indent) continue;
    CHECK(open.back().second == step);
    open.pop_back();
    ++closed;
  }
  CHECK(closed > 3);
  // The plan's text has the passes that changed it, in order.
  std::vector<std::string> changed;
  for (const json& pass : view["plan"]["passes"])
    if (pass.contains("lines")) changed.push_back(pass["name"].get<std::string>());
  CHECK(std::ranges::find(changed, "lower") != changed.end());
  CHECK(std::ranges::find(changed, "memory") != changed.end());
}

TEST_CASE("A page without source has no text and no file name of the author", "[inspect]") {
  for (const NamedKernel& kernel : some_kernels(Arch::sm_90a)) {
    INFO(kernel.name);
    const KernelSource source = recorded(kernel, Arch::sm_90a, false);
    const std::string text =
        view_json({.source = source, .arch = Arch::sm_90a, .label = "", .command = "", .with_source = false});
    CHECK_NOTHROW(json::parse(text));
    CHECK_FALSE(has(text, "kernels.hpp"));
    CHECK_FALSE(has(text, "samples/"));
    CHECK_FALSE(has(text, "src/model"));
    CHECK(has(text, "--no-source"));
  }
  // Names that can be read from the source do not appear either.
  const std::string named_values = view_of(recorded(named("layer_norm-f32"), Arch::sm_90a), Arch::sm_90a).dump();
  const std::string without =
      view_of(recorded(named("layer_norm-f32"), Arch::sm_90a, false), Arch::sm_90a, false).dump();
  CHECK(has(named_values, "rstd"));
  CHECK_FALSE(has(without, "rstd"));
}

TEST_CASE("A page says when the author's source cannot be read", "[inspect]") {
  const NamedKernel kernel = named("layer_norm-f32");
  const Graph graph = kernel.graph();
  const KernelSource source = generate(graph, kernel.variant(graph), Arch::sm_90a,
                                       {.record = true, .read_source = [](const Location&) { return std::nullopt; }});
  const json view = view_of(source, Arch::sm_90a);
  CHECK(has(view["cpp"]["note"].get<std::string>(), "cannot be read"));
  CHECK(std::ranges::any_of(view["cpp"]["lines"],
                            [](const json& line) { return has(line.get<std::string>(), "line "); }));
  CHECK(std::ranges::all_of(view["nodes"],
                            [](const json& node) { return node["op"] == "" || node["at"].get<int>() >= 0; }));
}

TEST_CASE("Handwritten CUDA has a page, too", "[inspect]") {
  const KernelSource source{.author = "by_hand",
                            .name = "by_hand",
                            .text = "#line 3 \"f.cpp\"\nextern \"C\" __global__ void by_hand() {}\n",
                            .plan = "",
                            .by_hand = true,
                            .parameters = {},
                            .tma_tensors = {}};
  const json view = view_of(source, Arch::sm_90a);
  CHECK(view["cuda"]["lines"].size() == 2);
  CHECK(has(view["plan"]["note"].get<std::string>(), "handwritten"));
}

TEST_CASE("A page is HTML that its data cannot end", "[inspect]") {
  const std::string bad = "</script><script>alert(1)</script><!-- \"quoted\" \\ & \n";
  const std::string view = json{{"kernel", bad}, {"label", "one"}}.dump(),
                    page = inspector_page(bad, bad, {{view, view}});
  const std::string_view head = std::string_view(page).substr(0, page.find("<style>"));
  CHECK_FALSE(has(head, "<script>"));
  CHECK_FALSE(has(head, "content=\"</"));
  const std::size_t data = page.find("id=\"data\">");
  REQUIRE(data != page.npos);
  const std::string_view rest = std::string_view(page).substr(data + 10);
  const json parsed = json::parse(rest.substr(0, rest.find("</script>")));
  REQUIRE(parsed["views"].size() == 2);
  CHECK(parsed["views"][1]["kernel"] == bad);
  // Nothing is loaded from elsewhere.
  for (const char* remote : {"src=\"http", "href=\"http", "url(", "import ", "fetch("}) CHECK_FALSE(has(page, remote));
  const std::vector<std::string> views = views_of_page(page, "a.html");
  REQUIRE(views.size() == 2);
  CHECK(json::parse(views[0])["kernel"] == bad);
  CHECK(json::parse(views[0])["label"] == "a: one");
  CHECK(has(error_of([] { views_of_page("<html>", "b.html"); }), "b.html is not a page of the inspector"));
}

TEST_CASE("A folder of pages has an index", "[inspect]") {
  const TempDir temp;
  write_page(temp / "b.html", inspector_page("b <1>", "64 threads", {{std::string("{}")}}));
  write_page(temp / "a.html", inspector_page("a", "32 threads", {{std::string("{}")}}));
  write_text(temp / "other.html", "<html><title>not ours</title></html>");
  write_text(temp / "a.cu", "text");
  fs::create_directory(temp / "folder.html");
  write_index(temp.path());
  write_index(temp.path());  // does not list itself
  const std::string index = read_text(temp / "index.html");
  CHECK(has(index, "<a href=\"a.html\">a</a></td><td>32 threads"));
  CHECK(has(index, "<a href=\"b.html\">b &lt;1></a></td><td>64 threads"));
  CHECK(index.find("a.html") < index.find("b.html"));
  CHECK_FALSE(has(index, "other.html"));
  CHECK_FALSE(has(index, "index.html"));
}

TEST_CASE("An index that is somebody else's stays", "[inspect]") {
  const TempDir temp;
  write_text(temp / "index.html", "<html>mine</html>");
  CHECK(has(error_of([&] { write_index(temp.path()); }), "index.html is not an index of the inspector"));
  CHECK(read_text(temp / "index.html") == "<html>mine</html>");
}

TEST_CASE("Any bytes become valid JSON", "[inspect]") {
  CHECK(in_json("a\xff\"\n\\") == R"("a\ufffd\"\u000a\\")");
  for (const std::string text : {"\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80"})
    CHECK(in_json(text) == '"' + text + '"');
  for (const std::string text : {"\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\x80"})
    CHECK(json::accept(in_json(text + "x")));
}

TEST_CASE("Waits and copies of a pipeline belong to the load", "[inspect]") {
  const KernelSource source = recorded(named("attention-bf16"), Arch::sm_90a);
  const json view = view_of(source, Arch::sm_90a);
  const auto author_line = [&](std::string_view cuda) {
    for (std::size_t i = 0; i < view["cuda"]["lines"].size(); ++i)
      if (has(view["cuda"]["lines"][i].get<std::string>(), cuda))
        return view["cpp"]["lines"][view["steps"][view["cuda"]["of"][i].get<std::size_t>()]["at"].get<std::size_t>()]
            .get<std::string>();
    return std::string();
  };
  CHECK(has(author_line("barrier_wait(pipeline_v"), "load(filled_values"));
  CHECK(has(author_line("barrier_wait(pipeline_k"), "load(filled_keys"));
  CHECK(has(author_line("tma_load(&from_v"), "load(filled_values"));
  CHECK(has(author_line("const GridPlace place"), "blocks("));
}

TEST_CASE("Words of a command are quoted for a shell", "[inspect]") {
  CHECK(shell_word("a/b-1.c") == "a/b-1.c");
  CHECK(shell_word("") == "''");
  CHECK(shell_word("a b") == "'a b'");
  CHECK(shell_word("it's") == "'it'\\''s'");
  CHECK(has(command_line(), "_tests"));  // tessera_tests, input_tests
}

TEST_CASE("TESSERA_DUMP=html writes a page before compilation and after it, and never stops a kernel", "[inspect]") {
  const TempDir temp;
  const auto options = [](std::map<std::string, std::string> values) {
    values.emplace("TESSERA_CACHE_DIR", "off");
    return read_options([&](std::string_view variable) { return values[std::string(variable)]; });
  };
  CHECK(has(error_of([&] { options({{"TESSERA_DUMP", "html"}}); }), "TESSERA_DUMP_DIR"));
  const auto pages = [&] {
    std::vector<std::string> texts;
    for (const auto& entry : fs::directory_iterator(temp.path()))
      if (const std::string name = entry.path().filename();
          name.ends_with(".html") && name != "index.html" && !fs::is_directory(entry))
        texts.push_back(read_text(entry.path()));
    return texts;
  };
  const KernelSource source = recorded(named("layer_norm-f32"), Arch::sm_90a);
  const auto dumped = options({{"TESSERA_DUMP", "html"}, {"TESSERA_DUMP_DIR", temp.path().native()}});
  // Without a compiler the page has the rest, and the reason.
  Compiler without(dumped, std::chrono::seconds(5), []() -> const Nvrtc& { throw Error("no compiler today"); });
  CHECK(has(error_of([&] { without.compile(source, Arch::sm_90a); }), "no compiler today"));
  REQUIRE(pages().size() == 1);
  CHECK(has(pages()[0], "no compiler today"));
  CHECK(has(pages()[0], "rsqrt"));
  CHECK(has(pages()[0], "TESSERA_DUMP_FILTER=layer_norm"));
  CHECK(has(read_text(temp / "index.html"), "layer_norm for sm_90a"));
  if (!nvrtc_here()) return;
  fs::create_directory(temp / "folder.html");
  write_text(temp / "index.html", "mine");
  Compiler compiler(dumped);
  CHECK_NOTHROW(compiler.compile(source, Arch::sm_90a));
  CHECK_FALSE(has(pages()[0], "no compiler today"));
  CHECK(has(pages()[0], "registers of a thread"));
  CHECK(read_text(temp / "index.html") == "mine");
  // An executor reports what it found: remarks of the page.
  compiler.dump_findings(source, Arch::sm_90a,
                         {{.file = "src/model/kernels.hpp",
                           .line = 1,
                           .status = Remark::Status::missed,
                           .kind = "emulator",
                           .message = "a race, say"}});
  CHECK(has(pages()[0], "a race, say"));
}

TEST_CASE("A page's CUDA text, PTX and machine code are those of the kernel", "[inspect]") {
  const Nvrtc* const nvrtc = nvrtc_here();
  if (!nvrtc) return;
  const KernelSource source = recorded(named("layer_norm-f32"), Arch::sm_90a);
  CompileRequest request{
      .source = repeat_lines(source.text), .kernel = source.name, .author = source.author, .arch = Arch::sm_90a};
  InspectedKernel kernel{.source = source, .arch = Arch::sm_90a, .label = "", .command = ""};
  add_facts(kernel);
  add_code(kernel, nvrtc->compile(request), request, *nvrtc);
  const json view = json::parse(view_json(kernel));
  // Each line of PTX that is an instruction leads to a line of CUDA.
  std::size_t instructions = 0, linked = 0;
  for (std::size_t i = 0; i < view["ptx"]["lines"].size(); ++i) {
    const std::string line = view["ptx"]["lines"][i];
    if (!line.ends_with(';') || has(line, ".reg") || has(line, ".param") || has(line, ".shared")) continue;
    ++instructions;
    bool in_kernel = false;
    for (const json& row : view["ptx"]["of"][i]) {
      REQUIRE(row.get<std::size_t>() < view["cuda"]["lines"].size());
      in_kernel |= view["cuda"]["of"][row.get<std::size_t>()].get<int>() >= 0;
    }
    linked += in_kernel;
  }
  CHECK(instructions > 50);
  CHECK(linked * 100 >= instructions * 97);
  CHECK(std::ranges::any_of(view["facts"], [](const json& fact) {
    return fact[0] == "occupancy" && has(fact[1].get<std::string>(), "CTA");
  }));
}

TEST_CASE("Each machine instruction of some kernels leads to a line of CUDA and of the author", "[inspect]") {
  const Nvrtc* const nvrtc = nvrtc_here();
  if (!nvrtc) return;
  if (const std::string reason = error_of([] { nvdisasm_path(); }); reason != "(no error)") {
    WARN("skipped: " << reason);
    SUCCEED();
    return;
  }
  std::size_t reuses = 0, all = 0;
  for (const NamedKernel& named : some_kernels(Arch::sm_90a)) {
    INFO(named.name);
    const KernelSource source = recorded(named, Arch::sm_90a);
    const CompileRequest request{
        .source = repeat_lines(source.text), .kernel = source.name, .author = source.author, .arch = Arch::sm_90a};
    InspectedKernel kernel{.source = source, .arch = Arch::sm_90a, .label = "", .command = ""};
    add_code(kernel, nvrtc->compile(request), request, *nvrtc);
    REQUIRE_FALSE(kernel.code.sass.empty());
    CHECK(std::ranges::any_of(kernel.notes, [](const std::string& note) { return has(note, "the same bytes"); }));
    const json view = json::parse(view_json(kernel));
    unsigned set = 0;
    bool in_kernel = true;
    std::size_t beyond = 0;
    for (std::size_t i = 0; i < view["sass"]["rows"].size(); ++i) {
      const json& row = view["sass"]["rows"][i];
      const std::string text = row["t"];
      INFO(row.dump());
      ++all;
      // Functions that the compiler adds are not in the text. Behind the last EXIT, an endless branch and padding.
      if (row.contains("l") && row["l"].get<std::string>().starts_with("$__internal")) in_kernel = false;
      const bool padding = text == "NOP" || (text.starts_with("BRA") && i + 1 < view["sass"]["rows"].size() &&
                                             view["sass"]["rows"][i + 1]["t"] == "NOP");
      if (in_kernel && !padding) {
        bool author = false;
        for (const json& line : row["k"]) {
          const int step = view["cuda"]["of"][line.get<std::size_t>()];
          author |= step >= 0 && view["steps"][static_cast<std::size_t>(step)]["at"].get<int>() >= 0;
        }
        beyond += row["k"].empty() || !author;
      }
      // nvdisasm prints .reuse; it must agree with the decoded bits.
      const Encoding encoding = kernel.code.sass[i].encoding;
      const ControlCode code = ControlCode::decode(encoding);
      CHECK(has(text, ".reuse") == (code.reuse != 0));
      reuses += code.reuse != 0;
      CHECK(code.encode(encoding) == encoding);
      // A barrier that is waited for was set before, in the text's order; loops only add more.
      CHECK((code.wait & ~set) == 0);
      if (code.write_barrier != ControlCode::no_barrier) set |= 1u << code.write_barrier;
      if (code.read_barrier != ControlCode::no_barrier) set |= 1u << code.read_barrier;
    }
    CHECK(beyond == 0);
  }
  CHECK(all > 1000);
  CHECK(reuses > 100);
}

}  // namespace test_inspect
