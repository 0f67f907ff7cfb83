// A gemv with one operand in memory and one in registers was placed on the stack.
#include "fuzz/corpus.hpp"

TEST_CASE("fuzz 17", "[fuzz][corpus]") {
  const auto k = kernel("fuzz_17", [](In<f32, 1> x0, In<f16, 2> x1, In<u8, 3> x2, Out<i32, 1> y0, Out<bf16, 2> y1, Scalar<i32> s0, Scalar<i32> s1) {
    auto [b0, b1] = blocks(3, s0);
    const Tile t0 = (b0 * 2) + b1;
    Var v0 = full<f32>({64, 16}, 0.0f);
    for ([[maybe_unused]] Index i0 : range(constant<i32>(64) % 2)) {
      const Tile t1 = sum(max(full<f32>({64, 16}, 0.0f), Axis(0)), 1);
      const Tile t2 = item(cast<i32>(t1));
      const Tile t3 = v0;
      const Tile t4 = mma(load(x1, {t2 % 1, 0}, {64, 64}), load(x1, {s1, t2 * 2}, {64, 16}), t3);
      v0 = t4;
      const Tile t5 = item(cast<i32>(t1));
      const Tile t6 = load(x2.slice(1, b1, 2), {s1, b0 - 1, t5 % 20}, {256, 1, 1});
      const Tile t7 = cast<pred>(gather(x1, broadcast(t5, {64}), {t2}, {4}));
      const Tile t8 = cumsum(full<i64>({1}, -5), 0);
      const Tile t9 = gather(x1, random_bits(t8, t8) % 64, {1048576}, {1});
      const Tile t10 = where(cast<pred>(cast<i64>(reshape(t6, {64, 4}))), t7, cast<pred>(t9));
      store(y1.slice(1, b1 * 64, 64), {b0, s1}, cast<bf16>(t10));
    }
    Var v1 = full<f32>({8, 16}, 0.0f);
    for ([[maybe_unused]] Index i1 : range(2)) {
      const Tile t11 = cast<tf32>(load(x1, {0, b0 * 1}, {8, 864}, 1.0f));
      const Tile t12 = cast<i32>(max(min(full<f32>({8, 16}, 0.0f), Axis(0)), 1));
      const Tile t13 = load(x1, {3, (item(t12) % 3) - 1}, {864, 16}, 2.0f);
      const Tile t14 = v1;
      v1 = mma(t11, cast<tf32>(t13), t14);
    }
    const Tile t15 = cast<f32>(reshape(load(x1, {0, b1}, {1, 1}), {1, 1, 1}));
    const Tile t16 = (reshape(load(x0, {b0}, {16}), {1, 1, 16}) * t15) * 0.0009765625f;
    const Tile t17 = (load(x0, {0}, {1}) * load(x0, {0}, {1})) * 0.015625f;
    const Tile t18 = load(x2, {constant<i32>(2) + 1, 2, 0}, {1, 1, 1}, 4);
    store(y0, {t0}, cast<i32>(reshape(t18, {1})));
    const Tile t19 = v0;
    const Tile t20 = v1;
    store(y0, {t0}, reshape(cast<i32>(min(exp2(t16), 2)), {1}));
    store(y0, {t0}, cast<i32>(exp(t17)));
    const Tile t21 = cast<i32>(sum(max(t19, Axis(0)) * 0.00024414062f, 1));
    store(y0, {t0}, reshape(t21, {1}));
    const Tile t22 = reshape(cast<i32>(max(sum(t20, 0) * 1.9073486e-06f, 1)), {1});
    store(y0, {t0}, t22);
  });
  check(k.graph(), 17,
        {
            {.extents = {46}, .fill = Fill::whole},
            {.extents = {64, 33}, .fill = Fill::wide},
            {.extents = {20, 20, 20}, .fill = Fill::whole},
            {.extents = {0}, .strides = {1}},
            {.extents = {192, 104}, .fill = Fill::whole},
            {.scalar = 2},
            {.scalar = 3},
        });
}
