// Dumps in the author's words.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "codegen/author/reword.hpp"
#include "codegen/generate.hpp"
#include "codegen/passes.hpp"
#include "codegen/prelude/tokens.hpp"
#include "common/kernels.hpp"
#include "jit/compile/cache_key.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"
#ifdef TESSERA_HAS_EMULATOR
#include "emulator/emulator.hpp"
#endif

namespace test_author_words {

using namespace tessera::internal;

namespace {

/// The sources of this repository, whatever the current folder.
std::optional<std::string> read_here(const Location& location) {
  return read_text(std::filesystem::path(TESSERA_SOURCE_DIR) / location.file);
}

/// The shown text is valid; a build without the emulator cannot tell.
void check_compiles([[maybe_unused]] const KernelSource& source) {
#ifdef TESSERA_HAS_EMULATOR
  KernelSource shown = source;
  shown.text = source.shown;
  CHECK_NOTHROW(Emulator::compile(std::span(&shown, 1)));
#endif
}

KernelSource source_of(const Graph& graph, const ReadSource& read = read_here) {
  return generate(graph, dense_variant(graph), Arch::sm_90a, {.read_source = read});
}
template <class... P>
KernelSource source_of(const Kernel<P...>& kernel) {
  return source_of(run_passes(kernel.graph()));
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

/// The words of code, in order.
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  Tokens tokens(text);
  while (const std::optional<Token> token = tokens.next())
    if (token->kind == Token::Kind::word) words.push_back(token->text);
  return words;
}

/// Are the texts equal but for names, each of which stands for one name of the other?
bool differ_by_names(std::string_view a, std::string_view b) {
  const std::string of_a = strip_comments(a), of_b = strip_comments(b);
  const auto words = words_of(of_a), others = words_of(of_b);
  std::map<std::string_view, std::string_view> to, from;
  if (words.size() != others.size()) return false;
  for (std::size_t i = 0; i < words.size(); ++i)
    if (to.try_emplace(words[i], others[i]).first->second != others[i] ||
        from.try_emplace(others[i], words[i]).first->second != words[i])
      return false;
  return true;
}

std::string kernel_of(const std::string& text) { return text.substr(text.find("extern \"C\"")); }

std::string shown_kernel(const auto& kernel) { return kernel_of(source_of(kernel).shown); }

struct Lesson {
  std::string name;
  Graph graph;
  std::vector<std::string> names;  // what its author declared that is in the text
};

Graph graph_of(std::string_view kernel) {
  for (const NamedKernel& one : named_kernels())
    if (one.name == kernel) return one.graph();
  FAIL("there is no kernel " << kernel);
  return {};
}

std::vector<Lesson> lessons() {
  std::vector<Lesson> all{
      {"vector_add", {}, {"a", "b", "c", "i"}},
      {"softmax", {}, {"x", "y", "row", "xs", "e"}},
      {"lesson_layer_norm", {}, {"x", "weight", "bias", "y", "eps", "row", "xs", "xc", "rstd"}},
      {"lesson_linear_gelu-bf16", {}, {"x", "w", "bias", "y", "m", "n", "acc", "x_2", "minimum_x"}},
      {"flash_attention-causal-bf16",
       {},
       {"q", "v", "o", "scale", "m", "head", "rows", "top", "norm", "acc", "length", "cols", "s", "hi", "p", "shrink",
        "inverse"}},
  };
  for (Lesson& lesson : all) lesson.graph = graph_of(lesson.name);
  return all;
}

/// The name of a node's value as generated: "rsqrt_18".
bool is_numbered(std::string_view name) {
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  return digits < name.size() && digits > 1 && name[digits - 1] == '_';
}

/// The variables that a kernel's text declares for values: the types of elements, and no pointers.
std::set<std::string> values_in(const std::string& kernel) {
  std::set<std::string> values;
  std::istringstream lines(kernel.substr(kernel.find('{')));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string type, name;
    words >> type;
    if (type == "const") words >> type;
    if (type != "float" && type != "int" && type != "bool") continue;
    words >> name;
    name = name.substr(0, name.find_first_of("[;"));
    if (name.find_first_of("*(") != name.npos) continue;
    values.insert(name);
  }
  return values;
}

}  // namespace

TEST_CASE("Most values of the lessons carry their author's names in dumps", "[author]") {
  for (const Lesson& lesson : lessons()) {
    INFO(lesson.name);
    const KernelSource source = source_of(lesson.graph);
    const std::string shown = kernel_of(source.shown), text = kernel_of(source.text);
    for (const std::string& name : lesson.names) {
      INFO(name << "\n" << shown);
      CHECK(std::ranges::count(words_of(shown), name) > 0);
    }
    // Few of the values that have numbers in the compiled text keep them.
    const std::set<std::string> values = values_in(text), renamed = values_in(shown);
    const auto numbered = std::ranges::count_if(values, is_numbered);
    const auto kept =
        std::ranges::count_if(values, [&](auto& name) { return is_numbered(name) && renamed.contains(name); });
    INFO(numbered << " values, " << kept << " without a name\n" << shown);
    CHECK(numbered > 0);
    CHECK(kept * 5 <= numbered);
  }
}

TEST_CASE("A dump shows what is compiled, with other names", "[author]") {
  for (const Lesson& lesson : lessons()) {
    INFO(lesson.name);
    const KernelSource source = source_of(lesson.graph);
    CHECK(source.shown != source.text);
    CHECK(differ_by_names(kernel_of(source.text), kernel_of(source.shown)));
    check_compiles(source);
  }
}

TEST_CASE("The compiled text and its key do not depend on whether the source is readable", "[author]") {
  const auto key = [](const KernelSource& source) {
    return CacheKey({.compiler = {}, .architecture = "sm_90a", .flags = {}, .source = source.text}).hex();
  };
  const auto none = [](const Location&) { return std::optional<std::string>(); };
  const auto other = [](const Location&) { return std::optional<std::string>("Tile x = y;\n"); };
  for (const Lesson& lesson : lessons()) {
    const KernelSource named = source_of(lesson.graph), unread = source_of(lesson.graph, none),
                       unasked = source_of(lesson.graph, {}), changed = source_of(lesson.graph, other);
    for (const KernelSource* source : {&unread, &unasked, &changed}) {
      CHECK(source->text == named.text);
      CHECK(key(*source) == key(named));
    }
    CHECK(unread.shown.empty());
    CHECK(unasked.shown.empty());
    CHECK(kernel_of(changed.shown) == kernel_of(changed.text));
    CHECK(unread.plan == unasked.plan);
    CHECK(changed.plan == unasked.plan);
  }
}

TEST_CASE("The author's line stands above a statement", "[author]") {
  const KernelSource source = source_of(graph_of("lesson_layer_norm"));
  CHECK(has(source.shown,
            "  // Tile rstd = rsqrt(sum(xc * xc, 1) / cols + eps);\n#line 27 \"samples/03_layer_norm.cpp\"\n"));
  CHECK_FALSE(has(source.shown, "// 03_layer_norm.cpp: "));
  CHECK(has(source.text, "// 03_layer_norm.cpp: "));
  CHECK_FALSE(has(source.text, "// Tile rstd"));
  // It ends with its line, and stays a comment.
  const AuthorWords words{.names = {}, .lines = {{"f.cpp", {"  Tile x = a + \\", "y\t= b;\r", "   "}}}};
  const author::Reworder author("", "", words);
  CHECK(author.text("  // f.cpp: add\n#line 1 \"f.cpp\"\n").text == "  // Tile x = a +\n#line 1 \"f.cpp\"\n");
  CHECK(author.text("// f.cpp: add\n#line 2 \"f.cpp\"\n").text == "// y = b;\n#line 2 \"f.cpp\"\n");
  for (const char* kept :
       {"// f.cpp: add\n#line 3 \"f.cpp\"\n", "// f.cpp: add\n#line 4 \"f.cpp\"\n",
        "// f.cpp: add\n#line 0 \"f.cpp\"\n", "// g.cpp: add\n#line 1 \"g.cpp\"\n", "// f.cpp: add\n"})
    CHECK(author.text(kept).text == kept);
  // Once for all steps of a line.
  CHECK(author.text("// f.cpp: add\n#line 2 \"f.cpp\"\na;\n// f.cpp: mul\nb;\n// f.cpp: add\n#line 1 \"f.cpp\"\n").text ==
        "// y = b;\n#line 2 \"f.cpp\"\na;\nb;\n// Tile x = a +\n#line 1 \"f.cpp\"\n");
}

TEST_CASE("An author's name never equals another name of the text", "[author]") {
  const KernelSource source =
      source_of(kernel("small", [](In<f32, 2> lane, In<f32, 2> in0, Out<f32, 2> shared, Scalar<f32> float_of) {
        Index block = blocks(lane.extent(0));
        Tile warp = load(lane, {block, 0}, {1, 256});
        Tile t0 = load(in0, {block, 0}, {1, 256});
        Tile g = warp / sum(warp, 1);
        Tile warp_base = g * float_of + t0;
        store(shared, {block, 0}, warp_base / max(g, 1));
      }));
  INFO(source.shown);
  CHECK(source.shown != source.text);
  CHECK(differ_by_names(kernel_of(source.text), kernel_of(source.shown)));
  for (const char* name : {"lane_2", "block_2", "t0_2", "g_2", "float_of"})
    CHECK(std::ranges::count(words_of(source.shown), std::string_view(name)) > 0);
  check_compiles(source);
  // A name that belongs to a value counts, too: x_at0 is taken for x.
  const AuthorWords words{.names = {{"load_1", "x"}, {"load_2", "x_at0"}, {"load_2_first", "y"}, {"i_3", "k"}},
                          .lines = {}};
  const std::string_view text = "load_1 load_1_at0 load_2 load_2_first load_2_first_base load_21 fetching_i_3 i_3";
  CHECK(author::Reworder(text, "", words).text(text).text == "x x_at0 x_at0_2 y y_base load_21 fetching_k k");
  CHECK(author::Reworder("load_1 x", "", words).text("load_1 x").text == "x_2 x");
  CHECK(author::Reworder("", "load_1 x", words).prose("load_1 x") == "x x");  // prose takes no names
}

TEST_CASE("Names follow values, not lines", "[author]") {
  // The value of a statement has the name; operands are named after what they compute.
  const std::string several = shown_kernel(kernel("small", [](In<f32, 2> x, Out<f32, 2> y) {
    Tile xs = load(x, {0, 0}, {1, 256});
    Tile low = min(xs, 1), high = max(xs, 1);
    Tile other = high - low + xs;  // a graph pass visits the second one first
    // clang-format off
    Tile one = other * other; Tile two = one + xs;
    // clang-format on
    store(y, {0, 0}, other / sum(other, 1) + two / sum(two, 1));
  }));
  for (const char* name : {"low", "high", "sum_other"}) {
    INFO(name << '\n' << several);
    CHECK(std::ranges::count(words_of(several), std::string_view(name)) > 0);
  }
  CHECK(has(several, "low = minimum(low"));
  CHECK(has(several, "high = fmax(high"));
  // Where one value of a line is computed from another, the line does not tell which is which.
  for (const char* name : {"one", "two"}) CHECK(std::ranges::count(words_of(several), std::string_view(name)) == 0);
  // Vars: in the order of the line, also if a loop does not carry all of them.
  const std::string vars = shown_kernel(kernel("small", [](In<f32, 2> x, Out<f32, 2> y) {
    Var unused = zeros<f32>({1, 256}), total = zeros<f32>({1, 256}), peak = full<f32>({1, 256}, -1);
    for (Index j : range(x.extent(0))) {
      Tile xs = load(x, {j, 0}, {1, 256});
      total = total + xs;
      peak = maximum(peak, xs);
    }
    store(y, {0, 0}, total + peak + unused);
  }));
  INFO(vars);
  CHECK(has(vars, "fill(total, 0.0f)"));
  CHECK(has(vars, "fill(peak, -1.0f)"));
  CHECK(has(vars, "for (int j = 0; "));
  // The counter of range(begin, end) is not that of the loop.
  const std::string from = shown_kernel(kernel("small", [](In<f32, 2> x, Out<f32, 2> y) {
    Var total = zeros<f32>({1, 256});
    for (Index j : range(2, x.extent(0), 3)) {
      total = total + load(x, {j, 0}, {1, 256});
    }
    store(y, {0, 0}, total);
  }));
  INFO(from);
  CHECK_FALSE(has(from, "for (int j = 0; "));
  CHECK(has(from, "const int j = "));
}

}  // namespace test_author_words
