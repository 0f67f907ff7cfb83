// cuda: values: parameter 2 [0,0]: 1.3125, expected 0
#include "fuzz/corpus.hpp"

TEST_CASE("fuzz 500787", "[fuzz][corpus]") {
  const auto k = kernel("fuzz_500787",
                        [](In<i64, 2> x0, In<i64, 2>, Out<bf16, 2> y0, Out<i32, 2> y1, Scalar<i32> s0, Scalar<i32>) {
    Index b0 = blocks(4);
    const Tile t0 = cumsum(iota({16, 16}, 1), 0);
    store(y1, {b0, 8}, t0 / t0);
    const Tile t1 = iota({8}, 0) * -1;
    scatter(y0.slice(0, b0 * 8, 8), t1 + s0, {item(max(t1, Axis(0))) % 4}, cast<bf16>(cast<u8>(iota({8, 48}, 1))));
    const Tile t2 = maximum(cast<i32>(load(x0, {0, 4}, {16, 16}, 205)), full<i32>({16, 16}, 1));
    store(y1, {b0, constant<i32>(0) - 4}, t2);
  });
  check(k.graph(), 500787,
        {
            {.extents = {16, 32}},
            {.extents = {96, 48}, .fill = Fill::whole},
            {.extents = {32, 32}},
            {.extents = {64, 16}},
            {.scalar = 2},
            {.scalar = 1},
        });
}
