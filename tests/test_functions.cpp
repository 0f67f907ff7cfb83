// The examples of docs/ops.md are programs of the language, and of what is public of it.
#include "catch.hpp"
#include "tessera/tessera.hpp"

// Examples name what nothing uses.
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"

using namespace tessera;

TEST_CASE("the examples of the page of ops can be traced", "[language]") {
  const auto examples = kernel("examples", [](In<f32, 2> x, In<f32, 2> table, In<i32, 1> list, Out<f32, 2> y,
                                              InOut<f32, 2> total, InOut<i32, 2> bits) {
    Index i = blocks(4);
    Tile a = load(x, {i, 0}, {8, 16}), b = load(table, {i, 0}, {8, 16}), c = transpose(b);
    Tile n = cast<i32>(a);
    Tile rows = load(list, {i}, {8});
    Tile p = a < b;
    Var acc = zeros<f32>({8, 8});
#define HEADING(...)
#define FUNCTION(op, signature, types, shapes, meaning, ...) \
  { __VA_ARGS__ }
#include "opcheck/functions.def"
    store(y, {i, 1}, where(p, a, 0));
    Tile before = load(total, {i, 0}, {8, 8});
    store(total, {i, 0}, before + acc);
  });
  CHECK(examples.graph().regions.size() >= 4);
}

TEST_CASE("each structural op that an author can write is on the page of ops", "[language]") {
  using namespace tessera::internal;
  for (int i = 0; i <= static_cast<int>(Op::print); ++i) {
    const Op op = static_cast<Op>(i);
    if (info(op).group != OpGroup::structural) continue;
    // What an author does not write: parameters, and what regions are made of.
    bool found = op == Op::scalar || op == Op::tensor || op == Op::argument || op == Op::result;
#define HEADING(...)
#define FUNCTION(of, ...) found |= op == Op::of;
#include "opcheck/functions.def"
    CHECK((std::string(name(op)) + (found ? "" : " is missing")) == std::string(name(op)));
  }
}
