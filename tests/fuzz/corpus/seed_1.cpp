// From a planted fault, a step that does not wait for the readers of its scratch memory:
// emulated: race: kernel fuzz_1, block 3: thread 12 reads byte 48 of shared memory (4 bytes) at fuzz:21, which thread 4
// wrote at fuzz:34 with no barrier between
#include "fuzz/corpus.hpp"

TEST_CASE("fuzz 1", "[fuzz][corpus]") {
  const auto k = kernel("fuzz_1", [](Out<bf16, 2> y0, In<f32, 3> x0) {
    Index b0 = blocks(7);
    const Tile t0 = reshape(load(x0, {8, 7, 7}, {24, 1, 1}, 3.0f), {3, 8});
    const Tile t1 = concat(0, full<bf16>({1, 8}, 1.0f), cast<bf16>(t0), full<bf16>({1, 8}, 1.0f));
    store(y0.slice(1, b0 * 8, 8), {7, 8}, t1);
  });
  check(k.graph(), 1,
        {
            {.extents = {1, 1}, .fill = Fill::whole},
            {.extents = {1, 1, 1}, .fill = Fill::whole},
        });
}
