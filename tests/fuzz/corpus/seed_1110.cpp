// The index of a matmul operand depends on a tile: generating the kernel's CUDA C++ recursed endlessly, and the process
// crashed.
#include "fuzz/corpus.hpp"

TEST_CASE("fuzz 1110", "[fuzz][corpus]") {
  const auto k = kernel("fuzz_1110", [](In<f32, 2> x0, In<i32, 1> x1, Out<f32, 2> y0) {
    const Tile t0 = item(load(x1, {0}, {1}));
    store(y0, {0, 0}, mma(full<f32>({9, 1}, 2.0f), load(x0, {t0, 0}, {1, 1}), full<f32>({9, 1}, 1.0f)));
  });
  check(k.graph(), 1110,
        {
            {.extents = {10, 1}},
            {.extents = {1}, .fill = Fill::whole},
            {.extents = {9, 1}},
        });
}
