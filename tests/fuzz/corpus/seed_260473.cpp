// generate: internal error in Tessera, please report it: the plan of kernel 'fuzz_' after pass ': internal error in Tessera, please report it: the plan of kernel 'fuzz_260473' after pass 'lower': sorted_11, argsort_11 = sort along 0, ascending by 64, of 1: argsort_11 is in registers, and the sweep is not unrolled
#include "fuzz/corpus.hpp"

TEST_CASE("fuzz 260473", "[fuzz][corpus]") {
  const auto k = kernel("fuzz_260473", [](In<i8, 2> x0, InOut<f16, 2> z0) {
    const Tile t0 = cast<f32>(gather(x0, full<i32>({61}, 1), {-1}, {62}));
    const Tile t1 = gather(x0, full<i32>({61}, 1), {item(cast<i32>(max(max(t0, axis(0)), 1)))}, {1}, 26);
    const Tile t2 = gather(x0, argsort(full<i32>({61}, 1), 0), {-1}, {1});
    store(z0, {-1, -1}, cast<f16>(cast<f32>(t1) + cast<f32>(t2)));
  });
  check(k.graph(), 260473,
        {
            {.extents = {0, 1}, .fill = Fill::whole},
            {.extents = {1, 1}, .fill = Fill::whole},
        });
}
