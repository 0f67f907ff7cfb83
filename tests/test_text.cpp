// The text of small kernels: what is known is folded, and computed once.
#include <sstream>

#include "api/tessera.hpp"
#include "catch.hpp"
#include "codegen/generate.hpp"
#include "codegen/passes/passes.hpp"

using namespace tessera;

namespace {

/// What a kernel's body says, without the author's lines.
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

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("what is known of a tile's place is not asked", "[generate]") {
  // One row is there or not; columns from the first end where the tensor does.
  const std::string rows = body_of([](In<f32, 2> x, Out<f32, 2> y) {
    Index b = blocks(x.extent(0));
    store(y, {b, 0}, load(x, {b, 0}, {1, 64}) + 1);
  });
  CHECK_FALSE(has(rows, "Window"));
  CHECK(has(rows, "_in0 = block0 < in0_extent0;"));
  CHECK(has(rows, " < in0_extent1)"));
  CHECK(has(rows, "_in0 = block0 < out1_extent0;"));
  // Positions that a layout has beyond the tile are none of it.
  const std::string odd = body_of([](In<f32, 1> x, Out<f32, 1> y) { store(y, {0}, exp(load(x, {0}, {1000}))); });
  CHECK(has(odd, " < minimum(in0_extent0, 1000)"));
  // A place that may be negative is asked for both ends.
  const std::string any = body_of([](In<f32, 1> x, Out<f32, 1> y, Scalar<i32> n) { store(y, {0}, load(x, {n}, {1})); });
  CHECK(has(any, "_in0 = scalar2 >= 0 && scalar2 < in0_extent0;"));
  // Of a view of known extent its tiles are inside, or in part, or not at all.
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
  CHECK(has(of_view(0, 128), "both(window(0ll, 128, 96), window(0ll, 128, in0_extent1))"));
  CHECK(has(of_view(1, 64), "both(window(64ll, 64, 96), window(64ll, 64, in0_extent1))"));
  CHECK(has(of_view(3, 32), "window(96ll, 32, 96)"));
}

TEST_CASE("a place that is a number is one, of 64 bits", "[generate]") {
  const std::string far = body_of([](In<f32, 1> x, Out<f32, 1> y, Scalar<i32> n) {
    store(y, {0}, load(x, {-3}, {32768}));
    store(y.slice(0, n, 32768), {-3}, full<f32>({32768}, 1));
  });
  CHECK(has(far, "_at0 = -98304ll;"));
  CHECK(has(far, "= -98304ll + scalar2;"));
  CHECK_FALSE(has(far, "static_cast<i64>(-3)"));
  const std::string near =
      body_of([](In<f32, 1> x, Out<f32, 1> y, Scalar<i32> n) { store(y, {0}, load(x.slice(0, n, 64), {0}, {64})); });
  CHECK(has(near, "= static_cast<i64>(scalar2);"));
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
