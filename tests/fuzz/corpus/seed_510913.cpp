// it crashed: Segmentation fault
#include "fuzz/corpus.hpp"

TEST_CASE("fuzz 510913", "[fuzz][corpus]") {
  const auto k = kernel("fuzz_510913", [](In<f32, 1>, In<i32, 2> x1, InOut<i64, 1>, InOut<f16, 1> z1, InOut<f32, 2> y0) {
    const Tile t0 = cast<bf16>(reshape(load(x1, {0, -1}, {2, 1}, 194), {2}));
    const Tile t1 = cast<bf16>(reshape(load(x1, {0, 0}, {3, 1}), {3}));
    Var v0 = concat(0, t0, t1, t1);
    const Tile t2 = -((-y0.extent(0)) / -1);
    for ([[maybe_unused]] Index i0 : range(t2)) {
      const Tile t3 = cast<bf16>(reshape(load(x1, {0, t2}, {1, 1}), {1}));
      v0 = broadcast(t3, {8});
    }
    const Tile t4 = v0;
    store(z1.slice(0, -1, -1), {0}, broadcast(cast<f16>(max(cast<f32>(t4), Axis(0))), {4}));
  });
  check(k.graph(), 510913,
        {
            {.extents = {24}, .fill = Fill::whole},
            {.extents = {9, 24}, .fill = Fill::whole},
            {.extents = {16}, .fill = Fill::whole},
            {.extents = {9}, .fill = Fill::whole},
            {.extents = {6, 9}, .strides = {14, 1}, .fill = Fill::whole},
        });
}
