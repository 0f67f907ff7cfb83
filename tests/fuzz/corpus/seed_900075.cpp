// Ping-pong consumer groups, and a loop of one iteration whose count is a literal: making the kernel threw an internal
// error.
#include "fuzz/corpus.hpp"

TEST_CASE("fuzz 900075", "[fuzz][corpus]") {
  const auto k = kernel("fuzz_900075", [](In<f16, 2> x0, In<f16, 2> x1, Out<f32, 2> y0) {
    auto [b0, b1] = blocks(cdiv(y0.extent(0), 128), 2);
    Var v0 = full<f32>({128, 128}, 0.0f);
    for (Index i0 : range(1)) {
      const Tile t0 = v0;
      const Tile t1 = mma(load(x0, {i0, i0}, {128, 64}), permute(load(x1, {b1, i0}, {128, 64}), {1, 0}), t0);
      v0 = t1;
    }
    const Tile t2 = v0;
    store(y0, {b0, b1}, t2 * 0.0078125f);
  });
  check(k.graph(), 900075,
        {
            {.extents = {21, 8}, .strides = {1, 24}, .fill = Fill::whole},
            {.extents = {248, 8}, .strides = {8, 1}, .fill = Fill::whole},
            {.extents = {21, 248}, .strides = {248, 1}, .fill = Fill::whole},
        });
}
