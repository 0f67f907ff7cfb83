// From a planted fault, accesses of an InOut left unordered:
// emulated: race: kernel fuzz_7, block 0: thread 5 writes byte 48 of argument 0 (InOut<f32, 3>) (4 bytes) at fuzz:22,
// which thread 28 read at fuzz:8 with no barrier between
#include "fuzz/corpus.hpp"

TEST_CASE("fuzz 7", "[fuzz][corpus]") {
  const auto k = kernel("fuzz_7", [](InOut<f32, 3> z0) {
    const Tile t0 = load(z0, {0, 12, 0}, {1, 1, 1});
    const Tile t1 = cast<f32>(cast<tf32>(item(cast<i32>(reshape(t0, {1})))));
    store(z0, {0, 1, 0}, broadcast(t1, {1, 7, 7}));
  });
  check(k.graph(), 7,
        {
            {.extents = {1, 13, 1}, .fill = Fill::whole},
        });
}
