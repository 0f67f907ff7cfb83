// The text of small kernels: known values are folded, and computed once.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <regex>
#include <set>
#include <sstream>

#include "codegen/generate.hpp"
#include "codegen/kernel_source.hpp"
#include "codegen/make_plan.hpp"
#include "codegen/passes.hpp"
#include "codegen/passes/plan/fold_scalars.hpp"
#include "codegen/plan/names.hpp"
#include "codegen/prelude/tokens.hpp"
#include "common/kernels.hpp"
#include "fuzz/program.hpp"
#include "support/catch.hpp"
#include "support/patterns.hpp"
#include "support/plan_steps.hpp"
#include "tessera/tessera.hpp"

namespace test_text {

using namespace tessera::internal;
using namespace tessera::internal::codegen;
using Operand = tessera::internal::codegen::Operand;  // not the language's

namespace {

/// A kernel's body, without the author's lines.
template <class F>
std::string body_of(const F& function) {
  const Graph graph = run_passes(trace_kernel("small", function));
  const std::string text = generate(graph, dense_variant(graph), Arch::sm_90a).text;
  std::istringstream lines(text.substr(text.find("extern \"C\"")));
  std::string body;
  for (std::string line; std::getline(lines, line);)
    if (line.find("// ") == line.npos && !line.starts_with("#line")) body += line + '\n';
  return body;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

/// The names in code.
std::set<std::string> words_of(const std::string& code) {
  std::set<std::string> words;
  Tokens tokens(code);
  while (const std::optional<Token> token = tokens.next())
    if (token->kind == Token::Kind::word) words.emplace(token->text);
  return words;
}

Graph attention_graph() {
  for (const NamedKernel& kernel : named_kernels())
    if (kernel.name == "attention-128x128x128-bf16") return kernel.graph();
  return {};
}

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("a tile's known bounds are not checked", "[generate]") {
  // One row exists or not; columns after the first end where the tensor does.
  const std::string rows = body_of([](In<f32, 2> x, Out<f32, 2> y) {
    Index b = blocks(x.extent(0));
    store(y, {b, 0}, load(x, {b, 0}, {1, 64}) + 1);
  });
  CHECK_FALSE(has(rows, "Window"));
  CHECK(has(rows, "_in0 = block0 < in0_extent0;"));
  CHECK(has(rows, " < in0_extent1, in0_priority)"));
  CHECK(has(rows, "_in0 = block0 < out1_extent0;"));
  // Positions of a layout beyond the tile are masked.
  const std::string odd = body_of([](In<f32, 1> x, Out<f32, 1> y) { store(y, {0}, exp(load(x, {0}, {1000}))); });
  CHECK(has(odd, " < minimum(in0_extent0, 1000)"));
  // An index that may be negative is checked at both ends.
  const std::string any = body_of([](In<f32, 1> x, Out<f32, 1> y, Scalar<i32> n) { store(y, {0}, load(x, {n}, {1})); });
  CHECK(has(any, "scalar2 >= 0 && scalar2 < in0_extent0)"));
  // For a view of known extent a tile is inside, partially inside, or outside.
  const auto of_view = [](int index, int tile) {
    return body_of([=](In<f32, 2> x, Out<f32, 2> y) {
      Index b = blocks(x.extent(0));
      store(y, {b, 0}, load(x.slice(1, 0, 96), {b, index}, {1, tile}));
    });
  };
  for (const int tile : {64, 96}) {
    const std::string text = of_view(0, tile);
    CHECK_FALSE(has(text, "Window"));
    CHECK_FALSE(has(text, "96 "));
    CHECK(has(text, " < in0_extent1)"));
  }
  // Bounds between constants are known: only the rest is checked.
  CHECK_FALSE(has(of_view(0, 128), "Window"));
  CHECK(has(of_view(0, 128), " < minimum(in0_extent1, 96)"));
  CHECK(has(of_view(1, 64), " = window(64ll, 32, in0_extent1);"));
  CHECK_FALSE(has(of_view(3, 32), "indow"));
  CHECK(has(of_view(3, 32), ", false)"));
  CHECK_FALSE(has(of_view(-1, 64), "indow"));
  // A view that begins before the one that it is a slice of.
  const auto of_views = [](int first, int second) {
    return body_of([=](In<f32, 1> x, Out<f32, 1> y) {
      store(y, {0}, load(x.slice(0, first, 96).slice(0, second, 40), {0}, {64}));
    });
  };
  CHECK(has(of_views(0, -20), " = window(-20ll, 40, in0_extent0);"));
  CHECK(has(of_views(30, -20), " = both(window(10ll, 40, in0_extent0), Window{20, 40});"));
  CHECK(has(of_views(30, 80), " = window(110ll, 16, in0_extent0);"));
  CHECK(has(of_views(30, -40), ", false)"));
}

TEST_CASE("a tile's start is computed once", "[generate]") {
  const std::string text = body_of([](In<f32, 2> x, Out<f32, 2> y) {
    auto [i, j] = blocks(cdiv(x.extent(0), 32), cdiv(x.extent(1), 64));
    store(y, {i, j}, exp(load(x, {i, j}, {32, 64})));
  });
  CHECK(count(text, "static_cast<i64>(block0) * 32") == 2);  // for the loaded tile, and for the stored one
  CHECK(count(text, "static_cast<i64>(block1) * 64") == 2);
  CHECK(has(text, "_in0 = window("));
  CHECK(has(text, "_at0, 32, in0_extent0);"));
}

TEST_CASE("there are no redundant parentheses", "[generate]") {
  const std::string one = body_of([](In<f32, 1> x, Out<f32, 1> y, Scalar<f32> s) {
    Index b = blocks(cdiv(x.extent(0), 256));
    const Tile<f32, 1> v = load(x, {b}, {256});
    store(y, {b}, 0.5f * v * v + s - (v - 2.0f * s) / (v * s));
  });
  CHECK_FALSE(finds(one, R"(\+ \(\w+\))"));
  CHECK(finds(one, R"(0\.5f \* (\S+) \* \1 \+ scalar2)"));
  CHECK(finds(one, R"(- \((\S+) - mul_\d+\) / \(\1 \* scalar2\))"));
  const std::string minus = body_of([](In<f32, 1> x, Out<f32, 1> y, Scalar<f32> s) {
    const Tile<f32, 1> v = load(x, {0}, {64});
    store(y, {0}, v - (s - v) - (v + s));
  });
  CHECK(finds(minus, R"((\S+) - \(scalar2 - \1\) - \(\1 \+ scalar2\))"));
}

TEST_CASE("a single iteration is no loop", "[generate]") {
  for (const int m : {16, 64, 128})
    for (const int n : {8, 64}) {
      const std::string text = body_of([=](In<bf16, 2> x, In<bf16, 2> w, Out<f32, 2> y) {
        auto [i, j] = blocks(cdiv(x.extent(0), m), cdiv(w.extent(1), n));
        Var sums = zeros<f32>({m, n});
        for (Index k : range(cdiv(x.extent(1), 64)))
          sums = mma(load(x, {i, k}, {m, 64}), load(w, {k, j}, {64, n}), sums);
        store(y, {i, j}, sums);
      });
      INFO(text);
      CHECK_FALSE(finds(text, R"(for \(int ([ijkm]) = 0; \1 < 1;)"));
      CHECK_FALSE(finds(text, R"( \+ 0\b[^.x])"));
    }
}

TEST_CASE("a constant index is a 64-bit literal", "[generate]") {
  const std::string far = body_of([](In<f32, 1> x, Out<f32, 1> y, Scalar<i32> n) {
    store(y, {0}, load(x, {-3}, {32768}));
    store(y.slice(0, n, 32768), {-3}, full<f32>({32768}, 1));
  });
  CHECK(has(far, "_at0 = -98304ll;"));
  CHECK(has(far, "= -98304ll + scalar2;"));
  CHECK_FALSE(has(far, "static_cast<i64>(-3)"));
  const std::string near =
      body_of([](In<f32, 1> x, Out<f32, 1> y, Scalar<i32> n) { store(y, {0}, load(x.slice(0, n, 64), {0}, {64})); });
  CHECK(has(near, "static_cast<i64>(scalar2)"));
}

TEST_CASE("a number that the author wrote on one line is one statement", "[generate]") {
  const std::string text = body_of([](In<f32, 2> x, Out<f32, 2> y, Scalar<i32> n) {
    Index b = blocks(x.extent(0));
    Index last = minimum((b + 1) * 64, n);
    Index other = last + 5;
    for (Index k : range(cdiv(other, 32))) store(y, {last, k}, load(x, {other, k}, {1, 32}));
  });
  CHECK(has(text, "= minimum(wrap_mul(wrap_add(block0, 1), 64), scalar2);"));
  // Each is used twice, or stands on a line of its own.
  CHECK(count(text, "const int minimum_") == 1);
  CHECK(count(text, "const int add_") == 1);
  const std::string twice = body_of([](In<f32, 2> x, Out<f32, 2> y, Scalar<i32> n) {
    // clang-format off
    const Index first = n * 3; const Index other = first + 5;
    // clang-format on
    store(y, {first, 0}, load(x, {other, 0}, {1, 32}));
  });
  CHECK(has(twice, "= wrap_mul(scalar2, 3);"));
  CHECK(has(twice, "= wrap_add(mul_"));
  const std::string product = body_of([](In<f32, 2> x, Out<f32, 2> y, Scalar<i32> n, Scalar<i32> m) {
    const Index other = (n + 1) * (m + 2);
    store(y, {0, 0}, load(x, {other, 0}, {1, 32}));
  });
  CHECK(has(product, "= wrap_mul(wrap_add(scalar2, 1), wrap_add(scalar3, 2));"));
  const std::string lines = body_of([](In<f32, 2> x, Out<f32, 2> y, Scalar<i32> n) {
    const Index first = n * 3;
    const Index other = first + 5;
    store(y, {0, 0}, load(x, {other, 0}, {1, 32}));
  });
  CHECK(has(lines, "= wrap_add(mul_"));
  // A condition that one if_ tests has no name.
  const std::string branch = body_of(
      [](In<f32, 1> x, Out<f32, 1> y, Scalar<i32> n) { if_(n < 5, [&] { store(y, {0}, load(x, {0}, {32})); }); });
  CHECK(has(branch, "if (scalar2 < 5) {"));
  const std::string both = body_of([](In<f32, 1> x, Out<f32, 1> y, Scalar<i32> n) {
    if_(n < 5, [&] { store(y, {0}, load(x, {0}, {32})); }).else_([&] { store(y, {1}, load(x, {0}, {32})); });
  });
  CHECK(has(both, "const bool less_"));
  const std::string again = body_of([](In<f32, 1> x, Out<f32, 1> y, Scalar<i32> n) {
    const Tile few = n < 5;
    if_(few, [&] { store(y, {0}, load(x, {0}, {32})); });
    if_(few, [&] { store(y, {1}, load(x, {1}, {32})); });
  });
  CHECK(has(again, "const bool less_"));
}

TEST_CASE("a peeled iteration counts 0", "[generate]") {
  const Graph graph = run_passes(attention_graph());
  const std::string text = generate(graph, dense_variant(graph), Arch::sm_90a).text;
  CHECK(has(text, "_first[64];"));
  CHECK_FALSE(has(text, "const int first_"));
  CHECK_FALSE(has(text, "const int second_"));
  CHECK_FALSE(has(text, "wrap_mul(0, "));
}

TEST_CASE("numbers of 32 bits are not computed in 64", "[generate]") {
  const Graph graph = run_passes(trace_kernel("small", [](In<f32, 1> x, Out<f32, 1> y, Scalar<i32> n, Scalar<i32> m) {
    if_(n < m, [&] { store(y, {0}, load(x, {0}, {32})); });
  }));
  const Plan plan = make_plan(graph, dense_variant(graph), Arch::sm_90a, {});
  constexpr ElementType i32 = ElementType::i32, i64 = ElementType::i64, pred = ElementType::pred;
  const auto term = [](int index) { return Operand{.kind = Operand::Kind::term, .index = index}; };
  const auto number = [](std::int64_t n) { return Operand{.kind = Operand::Kind::literal, .literal = n}; };
  // The condition of if_ that terms of the i64 numbers n and m, 0 and 1, become.
  const auto condition = [&](const std::vector<Term>& terms) {
    Plan changed = plan;
    std::vector<Term>& all = the<Compute>(changed).sweep.expression.terms;
    const std::vector<Operand> in = all.at(0).in;
    all = {{Op::cast, i64, i32, {in.at(0)}}, {Op::cast, i64, i32, {in.at(1)}}};
    all.insert(all.end(), terms.begin(), terms.end());
    fold_scalars(changed);
    const std::string text = kernel_source(changed).text;
    const std::size_t begin = text.find("if (", text.find("k_small"));
    return text.substr(begin, text.find(" {\n", begin) - begin);
  };
  const auto add = [&](int of, std::int64_t n) { return Term{Op::add, i64, i64, {term(of), number(n)}}; };
  const auto less_equal = [&](Operand a, Operand b) { return Term{Op::less_equal, pred, i64, {a, b}}; };
  CHECK(condition({{Op::less, pred, i64, {term(0), term(1)}}}) == "if (scalar2 < scalar3)");
  CHECK(condition({less_equal(number(63), term(0))}) == "if (63 <= scalar2)");
  CHECK(condition({add(0, 63), less_equal(term(2), number(2147483647))}) == "if (scalar2 <= 2147483584)");
  CHECK(condition({add(0, 5), add(1, 5), less_equal(term(2), term(3))}) == "if (scalar2 <= scalar3)");
  CHECK(condition({{Op::minimum, i64, i64, {term(0), number(64)}},
                   {Op::maximum, i64, i64, {term(2), number(0)}},
                   {Op::cast, i32, i64, {term(3)}},
                   {Op::less, pred, i32, {term(4), number(9)}}}) == "if (maximum(minimum(scalar2, 64), 0) < 9)");
  // These may need 33 bits.
  CHECK(condition({add(0, 63), less_equal(term(2), term(1))}) ==
        "if (wrap_add(cast_i64(scalar2), 63ll) <= cast_i64(scalar3))");
  CHECK(condition({add(0, 9), less_equal(term(2), number(-2147483645))}) ==
        "if (wrap_add(cast_i64(scalar2), 9ll) <= (-2147483645ll))");
  CHECK(condition({less_equal(term(0), number(1ll << 40))}) == "if (true)");
}

TEST_CASE("places in shared memory have names", "[generate]") {
  for (const NamedKernel& kernel : named_kernels()) {
    if (kernel.only && !kernel.name.ends_with("128x128x64-bf16")) continue;
    INFO(kernel.name);
    const Graph graph = kernel.graph();
    for (const Arch arch : {Arch::sm_80, Arch::sm_90a}) {
      if (!kernel.is_of(arch)) continue;
      const std::string text = generate(graph, dense_variant(graph), arch).text;
      CHECK_FALSE(std::regex_search(text, std::regex(R"(\bshared( \+ \d|[);]| \+ \w+ \*))")));
      CHECK_FALSE(std::regex_search(text, std::regex(R"(\.stage \* \d)")));
    }
  }
  const Graph attention = run_passes(attention_graph());
  const Plan plan = make_plan(attention, dense_variant(attention), Arch::sm_90a, {});
  const std::string text = generate(attention, dense_variant(attention), Arch::sm_90a).text;
  for (const Buffer& buffer : plan.buffers) {
    CHECK(has(text, fmt::format("{}_offset = {},", name_of(buffer.label), buffer.offset)));
    CHECK(has(text, fmt::format("{}_stage = {},", name_of(buffer.label), buffer.stage_bytes())));
  }
  for (const Pipeline& pipeline : plan.pipelines)
    CHECK(has(text, fmt::format("{}_offset = {},", name_of(pipeline.label), pipeline.offset)));
}

TEST_CASE("one element is read in one statement", "[generate]") {
  const std::string text = body_of([](In<i32, 1> counts, Out<i32, 1> y) {
    Index b = blocks(counts.extent(0));
    Tile count = item(load(counts, {b}, {1}));
    store(y, {count}, full<i32>({1}, 1));
  });
  CHECK(has(text, " = read_no_hoist(in0 + block0, block0 < in0_extent0);"));
  CHECK_FALSE(has(text, "load_4_base"));
}

TEST_CASE("a kernel has the parameters that its text names, and no others", "[generate]") {
  const std::regex name(R"((in|out|inout|scalar)\d+(_(extent|stride)\d+)?|grid\d+|blocks\d*|section|flags|reports)");
  const auto parameters_in = [&](const std::string& code) {
    std::set<std::string> words = words_of(code);
    std::erase_if(words, [&](const std::string& word) { return !std::regex_match(word, name); });
    return words;
  };
  struct Parameters {
    std::set<std::string> declared, used;
  };
  const auto parameters = [&](const Graph& graph, Arch arch) {
    const std::string text = generate(graph, dense_variant(graph), arch).text;
    const std::size_t kernel = text.find("extern \"C\""), body = text.find(") {\n", kernel);
    return Parameters{parameters_in(text.substr(kernel, body - kernel)), parameters_in(text.substr(body))};
  };
  for (const Arch arch : {Arch::sm_80, Arch::sm_90a}) {
    for (const NamedKernel& kernel : named_kernels()) {
      if (!kernel.is_of(arch) || (kernel.only && !kernel.name.ends_with("128x128x64-bf16"))) continue;
      INFO(kernel.name << " for " << arch.name());
      const auto [declared, used] = parameters(kernel.graph(), arch);
      CHECK(declared == used);
    }
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      INFO("random program " << seed << " for " << arch.name());
      const auto [declared, used] = parameters(run_passes(fuzz::trace(fuzz::generate(seed))), arch);
      CHECK(std::ranges::includes(declared, used));
    }
  }
  // The grid's first extent is in no number of a tile.
  const auto reporting = kernel("reporting", [](In<f32, 2> x, Out<f32, 2> y) {
    auto [m, n] = blocks(x.extent(0), cdiv(x.extent(1), 256));
    check(m < n, "above the diagonal");
    store(y, {m, n}, load(x, {m, n}, {1, 256}));
  });
  const auto [declared, used] = parameters(run_passes(reporting.graph()), Arch::sm_90a);
  CHECK(declared == used);
  CHECK(used.contains("reports"));
  CHECK(used.contains("grid1"));
}

TEST_CASE("a buffer has no name of a parameter", "[generate]") {
  const auto counting = kernel("counting", [](Out<i32, 1> counts, In<bf16, 2> x, In<bf16, 2> w, Out<bf16, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), 128), cdiv(y.extent(1), 128));
    Var acc = zeros<f32>({128, 128});
    for (Index k : range(cdiv(x.extent(1), 64))) acc = mma(load(x, {m, k}, {128, 64}), load(w, {k, n}, {64, 128}), acc);
    store(y, {m, n}, cast<bf16>(acc));
    store(counts, {m}, full<i32>({1}, 1));
  });
  const Graph graph = run_passes(counting.graph());
  const std::string text = generate(graph, dense_variant(graph), Arch::sm_90a).text;
  CHECK(has(text, "tma_store_guarded(&to_"));
  CHECK(has(text, "int* __restrict__ out0"));
  CHECK_FALSE(has(text, "char* const out"));
}

TEST_CASE("a kernel has no stride of an axis at whose first position all of a tile is", "[generate]") {
  const auto has_stride = [](const auto& view, int rows) {
    const std::string text = body_of([=](In<f32, 2> x, Out<f32, 2> y) {
      const Tile xs = load(view(x), {0, 0}, {rows, 256});
      store(y, {0, 0}, sum(xs));
    });
    return has(text, "in0_stride0");
  };
  const auto all = [](const In<f32, 2>& x) { return x; };
  CHECK_FALSE(has_stride(all, 1));
  CHECK(has_stride(all, 2));
  CHECK(has_stride([](const In<f32, 2>& x) { return x.slice(0, 3, 1); }, 1));
}

TEST_CASE("the bound of a loop is computed once, before any loop", "[generate]") {
  const std::string text = body_of([](In<f32, 2> x, Out<f32, 2> y, Scalar<i32> n) {
    for (Index i : range(cdiv(x.extent(0), 16)))
      if_(i < n, [&] {
        Var sums = zeros<f32>({16, 32});
        for (Index k : range(cdiv(x.extent(1), 32))) sums = sums + load(x, {i, k}, {16, 32});
        store(y, {i, 0}, sums);
      });
  });
  CHECK(count(text, "cdiv(") == 2);
  CHECK(text.rfind("cdiv(") < text.find("for (int i_"));
  CHECK(has(text, " = cdiv(in0_extent0, 16);"));
  CHECK_FALSE(has(text, "wrap_neg"));
}

}  // namespace test_text
