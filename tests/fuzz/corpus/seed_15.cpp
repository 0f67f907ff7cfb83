// From a planted fault, all tensors assumed to begin at a multiple of 16 bytes:
// emulated: misaligned: kernel fuzz_15, block 0: thread 0 writes byte 8 of argument 0 (Out<f32, 2>) (8 bytes) at
// fuzz:13, which is not a multiple of 8 bytes
#include "fuzz/corpus.hpp"

TEST_CASE("fuzz 15", "[fuzz][corpus]") {
  const auto k = kernel("fuzz_15", [](Out<f32, 2> y0) {
    Index b0 = blocks(y0.extent(0));
    const Tile t0 = b0 * 1;
    store(y0.slice(0, t0, 1), {t0, 1}, full<f32>({2, 2}, 1.0f));
  });
  check(k.graph(), 15,
        {
            {.extents = {1, 48}, .offset = 1, .fill = Fill::whole},
        });
}
