// emulated: values: parameter 4 [0,0]: 68, expected 390
#include "fuzz/corpus.hpp"

TEST_CASE("fuzz 310783", "[fuzz][corpus]") {
  const auto k = kernel("fuzz_310783", [](In<f32, 2>, In<f32, 2> x1, In<i64, 1>, In<f32, 2>, Out<f32, 2> y0, InOut<f32, 2>) {
    auto [b0, b1] = blocks(2, cdiv(constant<i32>(2), 128));
    Var v0 = full<f32>({128, 128}, 0.0f);
    for (Index i0 : range(cdiv(constant<i32>(2), 128))) {
      const Tile t0 = cast<tf32>(permute(load(x1, {b1, i0}, {128, 128}), {1, 0}));
      const Tile t1 = v0;
      v0 = mma(permute(t0, {1, 0}), t0, t1);
    }
    const Tile t2 = v0;
    store(y0.slice(1, b1 * 128, 128).permute({0, 1}), {b0, 0}, maximum(t2 * 0.5f, full<f32>({128, 1}, 1.0f)));
  });
  check(k.graph(), 310783,
        {
            {.extents = {256, 120}, .fill = Fill::whole},
            {.extents = {64, 120}, .strides = {1, 69}, .fill = Fill::whole},
            {.extents = {64}, .strides = {1}, .fill = Fill::whole},
            {.extents = {256, 2}, .strides = {1, 280}, .fill = Fill::whole},
            {.extents = {256, 64}, .strides = {64, 1}, .fill = Fill::whole},
            {.extents = {256, 64}, .strides = {64, 1}, .fill = Fill::whole},
        });
}
