// Lines of a scan whose two register factors are a single factor of the layout without the scan's axis.
#include "fuzz/corpus.hpp"

TEST_CASE("fuzz 148", "[fuzz][corpus]") {
  const auto k = kernel("fuzz_148", [](Out<f32, 2> y0) {
    auto [b0, b1] = blocks(cdiv(constant<i32>(1), 1), 1);
    const Tile t0 = mma(full<tf32>({33, 33}, 2.0f), full<tf32>({33, 10}, 1.0f), full<f32>({33, 10}, 1.0f));
    store(y0, {b1, b0}, cumprod(t0, 1));
  });
  check(k.graph(), 148,
        {
            {.extents = {1, 10}, .fill = Fill::whole},
        });
}
