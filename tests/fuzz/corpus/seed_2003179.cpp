// On a GPU: no word of the text named double, so the cast overload for integers was chosen: parameter 0 [33,15,0] was
// -128, not 127.
#include "fuzz/corpus.hpp"

TEST_CASE("fuzz 2003179", "[fuzz][corpus]") {
  const auto k = kernel("fuzz_2003179", [](Out<f16, 3> y0) {
    auto [b0, b1] = blocks(4, 2);
    const Tile t6 = fma(cast<f64>(iota({33, 33, 4}, 1)), full<f64>({1, 1, 4}, 8.0), 8.0);
    store(y0, {b1, b0, 0}, cast<f16>(cast<i8>(t6)));
  });
  check(k.graph(), 2003179,
        {
            {.extents = {66, 131, 1}, .strides = {1, 66, 66}, .fill = Fill::whole},
        });
}
