// A kernel with values in memory was given launch bounds of five CTAs of 64 threads: it spilled.
#include "fuzz/corpus.hpp"

TEST_CASE("fuzz 53", "[fuzz][corpus]") {
  const auto k = kernel("fuzz_53", [](Scalar<i64>, In<i32, 2> x0, InOut<f32, 2> z0, InOut<i32, 2> z1, In<f32, 2> x1, Scalar<i32> s1) {
    const auto w0 = x0.permute({0, 1});
    const Tile t0 = 256 <= z1.extent(0);
    require(t0, "what the program says");
    const Tile t1 = load(x1, {item(load(w0, {0, 0}, {1, 1})) % 39, -3}, {8, 4096});
    const Tile t2 = load(z1, {3, 3}, {8, 4096}, 152);
    const Tile t3 = (t1 * cast<f32>(load(x0, {3, 0}, {8, 4096}))) - cast<f32>(t2 % 7);
    const Tile t4 = cast<bf16>(load(w0, {constant<i32>(7) * 1, 3}, {1, 128}));
    const Tile t5 = mma(t4, cast<bf16>(load(w0, {s1, 3}, {128, 1}, 51)), full<f32>({1, 1}, 0.0f));
    const Tile t6 = t5 * 3.0517578e-05f;
    const Tile t7 = load(z0, {1, 0}, {1, 128});
    const Tile t8 = load(w0, {item(load(x0, {-1, 7}, {1, 1})) % 128, 0}, {1, 1});
    const Tile t9 = load(z0, {-3, 0}, {1, 65});
    const Tile t10 = concat(1, t7, gather(x1, reshape(t8, {1}), {0}, {64}), rsqrt(abs(t9) + 0.5f));
    const Tile t11 = maximum(broadcast(where(t0, t6, t6), {128, 257}), t10);
    const Tile t12 = gather(x1, broadcast(constant<i32>(0), {128}), {0}, {257}, 1.0f);
    const Tile t13 = ((((t11 * t12) * 0.015625f) + t10) * 0.03125f) * 0.0078125f;
    const Tile t14 = ((iota({128}, 0) * -1) + (constant<i32>(-1) - 2)) % 129;
    scatter(z0, t14, {0}, t13);
    const Tile t15 = load(w0, {0, s1}, {128, 256});
    const Tile t16 = gather(z0, iota({128}, 0), {0}, {256});
    const Tile t17 = load(z1, {0, s1}, {128, 1}, 226);
    scatter(z1, reshape(t17, {128}) % 258, {0}, maximum(t15, t15) + cast<i32>(t16));
    const Tile t18 = broadcast(cast<f32>(min(argmax(t3, 0), 1)), {1, 40});
    store(z0, {26, 1}, t18);
  });
  check(k.graph(), 53,
        {
            {.scalar = 4},
            {.extents = {128, 4}, .strides = {4, 1}, .fill = Fill::whole},
            {.extents = {128, 128}},
            {.extents = {256, 128}, .strides = {144, 1}, .offset = 4, .fill = Fill::wide},
            {.extents = {300, 300}, .strides = {304, 1}, .fill = Fill::whole},
            {.scalar = 3},
        });
}
