// A gather by constant rows made a value while the enclosing expression was being built, which then lost its reads:
// emulated: the host's compiler refuses the emulated kernels: redeclaration of 'const Window gather_5_in1'
#include "fuzz/corpus.hpp"

TEST_CASE("fuzz 81", "[fuzz][corpus]") {
  const auto k = kernel("fuzz_81", [](Out<i32, 2> y0, In<i32, 2> x0) {
    const Tile t0 = gather(x0, reshape(load(x0, {0, 0}, {255, 1}), {255}), {1}, {127});
    const Tile t1 = (t0 * full<i32>({255, 127}, 1)) * gather(x0, full<i32>({255}, 1), {0}, {127});
    store(y0, {1, 0}, t1 - t0);
  });
  check(k.graph(), 81,
        {
            {.extents = {600, 120}, .fill = Fill::whole},
            {.extents = {256, 250}, .fill = Fill::whole},
        });
}
