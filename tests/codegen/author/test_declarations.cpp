// Names that C++ text declares.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/author/declarations.hpp"
#include "support/catch.hpp"

namespace test_declarations {

using namespace tessera::internal::author;

namespace {

/// "value a 1-2, counter i 3-3"
std::string declared(std::string_view text) {
  constexpr std::string_view kinds[] = {"value", "variable", "assignment", "counter", "binding"};
  std::vector<std::string> parts;
  for (const Declaration& one : declarations_in(text).names)
    parts.push_back(fmt::format("{} {} {}-{}", kinds[static_cast<int>(one.kind)], one.name, one.first, one.last));
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// "a b c": the parameters of the kernels' lambdas; "|" between kernels.
std::string parameters(std::string_view text) {
  std::vector<std::string> parts;
  for (const KernelLambda& one : declarations_in(text).kernels)
    parts.push_back(fmt::format("{}", fmt::join(one.parameters, " ")));
  return fmt::format("{}", fmt::join(parts, "|"));
}

}  // namespace

TEST_CASE("Declared names are read from source", "[author]") {
  CHECK(declared("Tile x = load(a, {i}, {n});") == "value x 1-1");
  CHECK(declared("const auto x = a + b;") == "value x 1-1");
  CHECK(declared("[[maybe_unused]] const Tile<f32, 2> x = a;") == "value x 1-1");
  CHECK(declared("tessera::Tile x{a + b};") == "value x 1-1");
  CHECK(declared("Tile x(a + b);") == "value x 1-1");
  CHECK(declared("const auto& x = a;") == "value x 1-1");
  CHECK(declared("Index row = blocks(x.extent(0));") == "value row 1-1");
  CHECK(declared("Var<f32, 2> m{zeros<f32>({4, 4})};") == "variable m 1-1");
  CHECK(declared("Var top = full<f32>({m, 1}, lowest), norm = zeros<f32>({m, 1}), acc = zeros<f32>({m, n});") ==
        "variable top 1-1, variable norm 1-1, variable acc 1-1");
  CHECK(declared("auto [m, n] = blocks(cdiv(a, b), c);") == "binding m 1-1, binding n 1-1");
  CHECK(declared("for (Index k : range(cdiv(n, 32))) acc = mma(a, b, acc);") == "counter k 1-1, assignment acc 1-1");
  CHECK(declared("{ acc += x; n <<= 2; m = hi; }") == "assignment acc 1-1, assignment n 1-1, assignment m 1-1");
  CHECK(declared("if (causal) x = y;") == "assignment x 1-1");
  // A comma of template arguments separates no declarators.
  CHECK(declared("Tile x = constant<f32, 2>(a), y = f<a, b>(c);") == "value x 1-1, value y 1-1");
}

TEST_CASE("A declaration of several lines is read as one", "[author]") {
  CHECK(declared("\nTile x =\n    a +\n    b;  // done\nTile y = x;") == "value x 2-4, value y 5-5");
  CHECK(declared("Var a = x,\n    b = f(y,\n          z);") == "variable a 1-1, variable b 2-3");
  CHECK(declared("for (Index i :\n     range(n)) {\n  x = i;\n}") == "counter i 1-2, assignment x 3-3");
  CHECK(declared("Tile \\\nx = a;\nTile y = b;") == "value x 1-2, value y 3-3");
}

TEST_CASE("Comments, literals and directives declare nothing", "[author]") {
  CHECK(declared("// Tile x = a;\n/* Tile y = b;\n Tile z = c; */ Tile w = d;") == "value w 3-3");
  CHECK(declared("auto s = \"; Tile x = a;\"; f(';', '\\'', R\"(; Tile y = b;)\");") == "value s 1-1");
  CHECK(declared("#define MAKE Tile x = a; \\\n  Tile y = b;\nMAKE(z)\n  # if 1 ; x = 2;\n") == "");
  CHECK(declared("MAKE_TILE(x, a + b);") == "");
}

TEST_CASE("What is no declaration of a value has no name", "[author]") {
  CHECK(declared("auto gelu(TileExpr auto const& e) { f(e); }") == "");
  CHECK(declared("Tile<f32, 2> matmul(const In<A, 2>& x) { f(x); }") == "");
  CHECK(declared("struct S { Tile<f32, 2> product(int x) const; Tile<f32, 2> sum() noexcept; };") == "");
  CHECK(declared("int n = 3; float f; x == y; x <= y; a[i] = 3; p->x = 2;") == "");
  CHECK(declared("return x = y;") == "");
  // A lambda with statements is no value, but its statements declare some.
  CHECK(declared("auto f = [&](auto x) { Tile y = x * 2; store(o, {0}, y); };") == "value y 1-1");
  CHECK(declared("auto half = [](auto x) -> Tile<f32, 1> { Tile y = x * 2; return y + 1; };") == "");
  CHECK(declared(
            "auto k = kernel(\"k\", [](In<f32, 1> x, Out<f32, 1> y) {\n  Tile t = f(x);\n  store(y, {0}, t);\n});") ==
        "value t 2-2");
}

TEST_CASE("Text that is cut off or no C++ has no names and does no harm", "[author]") {
  for (const std::string_view text : {"",
                                      "Tile",
                                      "Tile x",
                                      "Tile x =",
                                      "Tile x = (a",
                                      "Tile<f32, 2",
                                      "auto [",
                                      "auto [a, b",
                                      "Var x{",
                                      "for (Index i :",
                                      "x",
                                      "x =",
                                      "\"",
                                      "R\"(",
                                      "/*",
                                      "#",
                                      "kernel(",
                                      "kernel(\"k\", [",
                                      "kernel(\"k\", [](",
                                      "))}]",
                                      "\\",
                                      "[[",
                                      "\xff\xfe"})
    CHECK(declared(text) == "");
  CHECK(parameters("kernel(\"k\", [](In<f32, 2> x, ") == "");
}

TEST_CASE("The parameters of a kernel's lambda are read from source", "[author]") {
  CHECK(parameters("return kernel(\"k\", [=](In<f32, 2> x, const Scalar<f32>& eps, List<In<f32, 2>, 8> many) {});") ==
        "x eps many");
  CHECK(parameters("auto k = tessera::kernel(fmt::format(\"{}\", n),\n  [n, m = f(1)](In<T, 2> a,\n   Out<T, 2> b) { "
                   "g(a); });") == "a b");
  CHECK(parameters("trace_kernel(\"k\", [](Out<f32, 1> y) {}); kernel(\"l\", [](Out<f32, 1> z) {});") == "y|z");
  CHECK(parameters("kernel(\"k\", [](In<f32, 1>, Out<f32, 1> y) {});") == " y");  // the first one has no name
  CHECK(parameters("kernel(\"k\", body);") == "");
  CHECK(parameters("f(a[0], [](int x) {});") == "");
  const Declarations lines = declarations_in("\nkernel(\"k\",\n  [](In<f32, 1> x,\n     Out<f32, 1> y) {\n});");
  REQUIRE(lines.kernels.size() == 1);
  CHECK(lines.kernels[0].first == 2);
  CHECK(lines.kernels[0].last == 4);
}

}  // namespace test_declarations
