// mma against the fine print of ops.def, and matmuls in a loop.
#include "support/catch.hpp"
#include "support/structural_ops.hpp"
#include "support/support.hpp"
#include "support/tensors.hpp"

namespace test_mma {

using namespace tessera::internal;
using namespace structural_ops;

TEST_CASE("mma of every operand type", "[cpu]") {
  Cases cases(1008);
  oracle::Rng rng(27);
  struct Sizes {
    int m, k, n;
  };
  for (ElementType type : all_types) {
    if (!info(type).multiplies) continue;
    const ElementType sums = sum_type(type);
    for (const Sizes& s : {Sizes{1, 1, 1}, Sizes{1, 64, 33}, Sizes{77, 53, 130}, Sizes{16, 16, 16}, Sizes{33, 64, 1},
                           Sizes{64, 1, 64}, Sizes{128, 64, 96}, Sizes{2, 700, 3}, Sizes{5, 7, 9}, Sizes{8, 300, 17},
                           Sizes{3, 40, 600}, Sizes{6, 30, 130}, Sizes{12, 257, 49}, Sizes{13, 300, 33}}) {
      for (int turn = 0; turn < 8; ++turn) {  // bit 0: a, 1: b, 2: c is transposed
        if (cases.skip()) continue;
        INFO(name(type) << " " << s.m << "x" << s.k << "x" << s.n << " transposed " << turn);
        const auto numbers = [&](ElementType of, const Extents& shape) {
          return oracle::is_real(of) ? oracle::random_array(rng, of, shape, -2, 2)
                                     : oracle::random_bits_array(rng, of, shape);
        };
        const Array a = numbers(type, {s.m, s.k}), b = numbers(type, {s.k, s.n});
        const Array c = numbers(sums, {s.m, s.n});
        const auto flip = [](const Array& x, bool yes) { return yes ? oracle::permute(x, {1, 0}) : x; };
        const auto flipped = [](const Value& x, bool yes) { return yes ? permuted(x, {1, 0}) : x; };
        std::vector<Real> bound;
        const Array expected = oracle::mma(a, b, c, bound);
        const Array actual =
            oracle::evaluate({flip(a, turn & 1), flip(b, turn & 2), flip(c, turn & 4)}, expected, [&](const Values& x) {
          return oracle::apply(Op::mma, sums,
                               {flipped(x[0], turn & 1), flipped(x[1], turn & 2), flipped(x[2], turn & 4)});
        });
        CHECK(oracle::difference(actual, expected, 0, bound) == "");
      }
    }
  }
}

TEST_CASE("rows of a matmul have the same bits alone and together", "[cpu]") {
  constexpr int rows = 41, inner = 600;
  const int columns = GENERATE(77, 1);
  const auto product = [=](int tile) {
    return kernel("product", [=](In<f32, 2> x, In<bf16, 2> w, Out<f32, 2> y) {
      Index m = blocks(cdiv(x.extent(0), tile));
      Var acc = zeros<f32>({tile, columns});
      for (Index k : range(cdiv(x.extent(1), 200)))
        acc = mma(load(x, {m, k}, {tile, 200}), cast<f32>(load(w, {k, 0}, {200, columns})), acc);
      store(y, {m, 0}, acc);
    });
  };
  oracle::Rng rng(29);
  std::vector<float> left(rows * inner), right(inner * columns);
  for (std::vector<float>* values : {&left, &right})
    for (float& value : *values) value = oracle::between(rng, -1.0f, 1.0f);
  const Device device = Device::cpu();
  const Tensor<f32, 2> x(device, {rows, inner});
  const Tensor<bf16, 2> w(device, {inner, columns});
  x.copy_from(left);
  w.copy_from(std::vector<bf16>(right.begin(), right.end()));
  const auto result = [&](int tile) {
    const Tensor<f32, 2> y(device, {rows, columns});
    launch(device.stream(), product(tile), x, w, y);
    return y.to_vector();
  };
  const std::vector<float> one_by_one = result(1);
  for (int tile = 2; tile <= rows; ++tile) {
    INFO(tile);
    CHECK(result(tile) == one_by_one);
  }
}

TEST_CASE("mma of tiles that are computed, broadcast, reshaped, constant; and of one tile with itself", "[cpu]") {
  oracle::Rng rng(28);
  const Array a = oracle::random_array(rng, ElementType::f32, {3, 2, 20}, -2, 2),
              row = oracle::random_array(rng, ElementType::f32, {1, 11}, -2, 2);
  const Array c = oracle::random_array(rng, ElementType::f32, {11, 6}, -2, 2), left = oracle::reshape(a, {6, 20});
  std::vector<Real> bound;
  const auto check = [&](const Array& x, const Array& y, const Array& z,
                         const std::function<Value(const Values&)>& body) {
    const Array expected = oracle::mma(x, y, z, bound);
    CHECK(oracle::difference(oracle::evaluate({a, row, c}, expected, body), expected, 0, bound) == "");
  };
  const auto product = [](const Value& x, const Value& y, const Value& z) {
    return oracle::apply(Op::mma, ElementType::f32, {x, y, z});
  };
  const Array zero(ElementType::f32, {6, 11}), wide = oracle::broadcast(row, {20, 11});
  check(left, wide, zero, [&](const Values& x) {
    return product(oracle::apply_reshape(x[0], {6, 20}), stretched(x[1], {20, 11}),
                   oracle::literal(ElementType::f32, 0, {6, 11}));
  });
  check(left, oracle::unary(Op::neg, wide), oracle::permute(c, {1, 0}), [&](const Values& x) {
    return product(oracle::apply_reshape(x[0], {6, 20}), oracle::apply_unary(Op::neg, stretched(x[1], {20, 11})),
                   permuted(x[2], {1, 0}));
  });
  const Array square(ElementType::f32, {6, 6});
  check(left, oracle::permute(left, {1, 0}), square, [&](const Values& x) {
    const Value l = oracle::apply_reshape(x[0], {6, 20});
    return product(l, permuted(l, {1, 0}), oracle::literal(ElementType::f32, 0, {6, 6}));
  });
  const Array ones = oracle::filled(ElementType::f32, {20, 5}, [](std::size_t) { return 1; }),
              half = oracle::filled(ElementType::f32, {6, 5}, [](std::size_t) { return 0.5; });
  check(left, ones, half, [&](const Values& x) {
    return product(oracle::apply_reshape(x[0], {6, 20}), oracle::literal(ElementType::f32, 1, {20, 5}),
                   oracle::literal(ElementType::f32, 0.5, {6, 5}));
  });
  const Array c_row = oracle::broadcast(row, {6, 11});
  check(left, wide, c_row, [&](const Values& x) {
    return product(oracle::apply_reshape(x[0], {6, 20}), stretched(x[1], {20, 11}), stretched(x[1], {6, 11}));
  });
}

TEST_CASE("mma of NaN and infinities, and products beyond the range of f16", "[cpu]") {
  const Real nan = oracle::real_nan, inf = oracle::real_inf;
  for (ElementType type : {ElementType::f32, ElementType::tf32, ElementType::f16, ElementType::bf16}) {
    INFO(name(type));
    Array a(type, {3, 2}), b(type, {2, 3}), c = oracle::reals({3, 3}, {0, 0, 0, 1, 1, -inf, 0, nan, 0});
    a.real = {1, inf, 0, 2, 32768, 32768};
    b.real = {1, nan, -1, 1, 1, 32768};
    std::vector<Real> bound;
    Array expected = oracle::mma(a, b, c, bound);
    for (Real& x : bound)
      if (std::isnan(x)) x = 0;
    CHECK(oracle::difference(
              oracle::evaluate({a, b, c}, expected,
                               [&](const Values& x) { return oracle::apply(Op::mma, ElementType::f32, x); }),
              expected) == "");
  }
}

TEST_CASE("a matmul in a loop, in the language, with an epilogue", "[cpu]") {
  const auto k = kernel("linear", [](In<bf16, 2> x, In<bf16, 2> w, In<f32, 1> bias, Out<f32, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), 16), cdiv(y.extent(1), 24));
    Var acc = zeros<f32>({16, 24});
    for (Index i : range(cdiv(x.extent(1), 8)))
      acc = mma(load(x, {m, i}, {16, 8}), transpose(load(w, {n, i}, {24, 8})), acc);
    store(y, {m, n}, maximum(acc + load(bias, {n}, {24}), 0));
  });
  oracle::Rng rng(29);
  const Device& device = test_device();
  for (const auto& [rows, inner, cols] : {std::array{1, 1, 1}, {33, 61, 50}, {16, 8, 24}, {40, 3, 100}}) {
    INFO(rows << "x" << inner << "x" << cols);
    const Array a = oracle::random_array(rng, ElementType::bf16, {rows, inner}, -2, 2),
                b = oracle::random_array(rng, ElementType::bf16, {cols, inner}, -2, 2);
    const Array c = oracle::random_array(rng, ElementType::f32, {cols}, -2, 2);
    Tensor<bf16, 2> x(device, {rows, inner}), w(device, {cols, inner});
    Tensor<f32, 1> bias(device, {cols});
    Tensor<f32, 2> y(device, {rows, cols});
    const auto narrow = [](const Array& from) {
      std::vector<bf16> to(from.size());
      for (std::size_t i = 0; i < to.size(); ++i)
        to[i].bits = static_cast<std::uint16_t>(oracle::bits_of(from.real[i], ElementType::bf16));
      return to;
    };
    x.copy_from(narrow(a));
    w.copy_from(narrow(b));
    bias.copy_from(std::vector<float>(c.real.begin(), c.real.end()));
    y.copy_from(std::vector<float>(static_cast<std::size_t>(rows) * cols, NAN));
    launch(device.stream(), k, x, w, bias, y);
    std::vector<Real> bound;
    Array expected = oracle::mma(a, oracle::permute(b, {1, 0}), oracle::broadcast(c, {rows, cols}), bound);
    for (Real& v : expected.real) v = std::max<Real>(v, 0);
    const std::vector<float> got = y.to_vector();
    CHECK(oracle::difference(oracle::reals({rows, cols}, {got.begin(), got.end()}), expected, 0, bound) == "");
  }
}

/// Four matmuls in one kernel, with tiles of both operands in different storage orders; x and w are cast to Factor.
template <class T, class Factor, class Sum>
void check_orders() {
  constexpr int m = 29, k = 45, n = 43, tile_m = 32, tile_k = 48, tile_n = 48;
  INFO(name(element_type<T>) << " as " << name(element_type<Factor>));
  const auto multiply = kernel("orders", [=](In<T, 2> x, In<T, 2> xt, In<T, 2> w, In<T, 2> wt, Out<Sum, 3> y) {
    int which = 0;
    for (const bool km : {false, true})
      for (const bool nk : {false, true}) {
        const auto a = km ? xt.permute({1, 0}) : x.permute({0, 1}), b = nk ? wt.permute({1, 0}) : w.permute({0, 1});
        Tile product =
            mma(cast<Factor>(load(a, {0, 0}, {tile_m, tile_k})), cast<Factor>(load(b, {0, 0}, {tile_k, tile_n})));
        store(y, {which++, 0, 0}, expand_dims(product, 0));
      }
  });
  // Integers whose products and sums are exact in every type.
  const auto value = [](int seed, int i, int j) {
    return (i * 7 + j * 11 + seed) % 13 % 5 - (std::is_unsigned_v<T> ? 0 : 2);
  };
  const auto made = [&](int seed, int rows, int columns, bool transposed) {
    std::vector<T> values;
    for (int i = 0; i < (transposed ? columns : rows); ++i)
      for (int j = 0; j < (transposed ? rows : columns); ++j)
        values.push_back(stored<T>(transposed ? value(seed, j, i) : value(seed, i, j)));
    return tensor<T, 2>({transposed ? columns : rows, transposed ? rows : columns}, values);
  };
  const auto y = tensor<Sum, 3>({4, m, n}, std::vector<Sum>(4 * m * n, Sum(-77)));
  launch(test_device().stream(), multiply, made(1, m, k, false), made(1, m, k, true), made(4, k, n, false),
         made(4, k, n, true), y);
  std::vector<Sum> expected;
  for (int e = 0; e < 4 * m * n; ++e) {
    int sum = 0;
    for (int l = 0; l < k; ++l) sum += value(1, e / n % m, l) * value(4, l, e % n);
    expected.push_back(static_cast<Sum>(sum));
  }
  CHECK(y.to_vector() == expected);
}

TEST_CASE("matmuls for every storage order of both operands", "[cpu]") {
  check_orders<f16, f16, f32>();
  check_orders<bf16, bf16, f32>();
  check_orders<f32, tf32, f32>();
  check_orders<f32, f32, f32>();
  check_orders<i64, f32, f32>();
  check_orders<f64, f64, f64>();
  check_orders<i8, i8, i32>();
  check_orders<u8, u8, i32>();
  check_orders<f8e5m2, f8e5m2, f32>();
}

TEST_CASE("mma of a batch, and without an addend", "[cpu]") {
  oracle::Rng rng(38);
  for (const int batch : {1, 3}) {
    const int m = 5, k = 7, n = 9;
    const auto multiply = kernel("multiply", [=](In<i8, 3> x, In<i8, 3> w, Out<i32, 3> y, Out<i32, 3> z) {
      Tile a = load(x, {0, 0, 0}, {batch, m, k}), b = load(w, {0, 0, 0}, {batch, k, n});
      Tile product = mma(a, b);
      store(y, {0, 0, 0}, product);
      store(z, {0, 0, 0}, mma(a, b, product));
    });
    const Device& device = test_device();
    const auto made = [&](std::array<std::int64_t, 3> extents) {
      Tensor<i8, 3> tensor(device, extents);
      std::vector<i8> values(static_cast<std::size_t>(tensor.size()));
      for (i8& value : values) value = static_cast<i8>(oracle::between(rng, -128, 127));
      tensor.copy_from(values);
      return tensor;
    };
    const Tensor<i8, 3> x = made({batch, m, k}), w = made({batch, k, n});
    Tensor<i32, 3> y(device, {batch, m, n}), z(device, {batch, m, n});
    launch(device.stream(), multiply, x, w, y, z);
    const std::vector<i8> a = x.to_vector(), b = w.to_vector();
    std::vector<i32> once, twice;
    for (int e = 0; e < batch * m * n; ++e) {
      int sum = 0;
      for (int i = 0; i < k; ++i)
        sum +=
            a[static_cast<std::size_t>(e / n * k + i)] * b[static_cast<std::size_t>((e / (m * n) * k + i) * n + e % n)];
      once.push_back(sum);
      twice.push_back(2 * sum);
    }
    CHECK(y.to_vector() == once);
    CHECK(z.to_vector() == twice);
  }
  const auto wrong = [] {
    (void)kernel("wrong", [](Out<f32, 3> y) {
      store(y, {0, 0, 0}, mma(zeros<f32>({2, 4, 8}), zeros<f32>({3, 8, 4}), zeros<f32>({2, 4, 4})));
    });
  };
  CHECK(says(error_of(wrong), {"mma: [2,4,8] x [3,8,4] + [2,4,4]", "[b,m,k] x [b,k,n] + [b,m,n]"}));
}

namespace {

/// Batched matmuls in one op, accumulated onto it, and in a loop over k, with T cast to Factor. Small integers are
/// exact.
template <class T, class Factor, class Sum>
void check_batch(int batch, int m, int k, int n) {
  INFO(batch << " of " << name(element_type<T>) << " as " << name(element_type<Factor>) << ", " << m << "x" << k << "x"
             << n);
  constexpr int part = 8;
  const auto multiply =
      kernel("batch", [=](In<T, 3> x, In<T, 3> w, Out<Sum, 3> y, Out<Sum, 3> z, Out<Sum, 3> by_parts) {
    const Tile a = cast<Factor>(load(x, {0, 0, 0}, {batch, m, k})), b = cast<Factor>(load(w, {0, 0, 0}, {batch, k, n}));
    const Tile product = mma(a, b);
    store(y, {0, 0, 0}, product);
    store(z, {0, 0, 0}, mma(a, b, product * 2));
    Var sums = full<Sum>({batch, m, n}, 1);
    for (Index i : range(cdiv(x.extent(2), part)))
      sums = mma(cast<Factor>(load(x, {0, 0, i}, {batch, m, part})), cast<Factor>(load(w, {0, i, 0}, {batch, part, n})),
                 sums);
    store(by_parts, {0, 0, 0}, sums);
  });
  const auto value = [](int seed, int i) { return (i * 7 + i / 11 + seed) % 13 % 5 - (std::is_unsigned_v<T> ? 0 : 2); };
  const auto made = [&](int seed, const std::array<std::int64_t, 3>& extents) {
    std::vector<T> values;
    for (int i = 0; i < extents[0] * extents[1] * extents[2]; ++i) values.push_back(stored<T>(value(seed, i)));
    return tensor<T, 3>(extents, values);
  };
  const auto size = static_cast<std::size_t>(batch * m * n);
  const auto fresh = [&] { return tensor<Sum, 3>({batch, m, n}, std::vector<Sum>(size, Sum(-77))); };
  const auto y = fresh(), z = fresh(), by_parts = fresh();
  launch(test_device().stream(), multiply, made(1, {batch, m, k}), made(4, {batch, k, n}), y, z, by_parts);
  std::vector<Sum> once, thrice, one_more;
  for (int e = 0; e < batch * m * n; ++e) {
    int sum = 0;
    for (int l = 0; l < k; ++l) sum += value(1, e / n * k + l) * value(4, (e / (m * n) * k + l) * n + e % n);
    once.push_back(static_cast<Sum>(sum));
    thrice.push_back(static_cast<Sum>(3 * sum));
    one_more.push_back(static_cast<Sum>(sum + 1));
  }
  CHECK(y.to_vector() == once);
  CHECK(z.to_vector() == thrice);
  CHECK(by_parts.to_vector() == one_more);
}

}  // namespace

TEST_CASE("mma of a batch, for every operand type", "[cpu]") {
  Cases cases(11);
  const auto chosen = [&](void (*check)(int, int, int, int), int batch, int m, int k, int n) {
    if (!cases.skip()) check(batch, m, k, n);
  };
  chosen(check_batch<f16, f16, f32>, 3, 17, 20, 9);
  chosen(check_batch<f32, f32, f32>, 3, 5, 11, 3);
  chosen(check_batch<f64, f64, f64>, 2, 3, 9, 5);
  chosen(check_batch<bf16, bf16, f32>, 2, 16, 16, 24);
  chosen(check_batch<f32, tf32, f32>, 2, 18, 12, 9);
  chosen(check_batch<f8e5m2, f8e5m2, f32>, 2, 17, 20, 9);
  chosen(check_batch<f8e4m3, f8e4m3, f32>, 1, 3, 9, 2);
  chosen(check_batch<u8, u8, i32>, 2, 17, 36, 9);
  chosen(check_batch<f16, f16, f32>, 1, 1, 1, 1);
  chosen(check_batch<f32, f32, f32>, 5, 3, 9, 1);
  chosen(check_batch<f64, f64, f64>, 3, 1, 17, 4);
}

}  // namespace test_mma
