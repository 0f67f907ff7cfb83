// Tiles of indices: gather and scatter within a tile, inverse permutations, and 64-bit indices.
#include <cstdint>
#include <limits>
#include <vector>

#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"

namespace test_index_tiles {

using namespace tessera::internal;

namespace {

const Device& device = test_device();

template <class T>
std::vector<T> numbers(int count, int from, int modulus) {
  std::vector<T> values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<T>((from + i * 7919) % modulus));
  return values;
}

constexpr int rows = 5, columns = 40, taken = 70;

}  // namespace

TEMPLATE_TEST_CASE("take_along_axis gathers within a tile", "[cpu]", i32, i64) {
  using I = TestType;
  const auto k = kernel("take", [](In<f32, 2> x, In<I, 2> p, In<I, 2> q, Out<f32, 2> y, Out<f32, 2> z) {
    Tile t = load(x, {0, 0}, {rows, columns});
    store(y, {0, 0}, take_along_axis(t * 2, load(p, {0, 0}, {rows, taken}), 1));
    store(z, {0, 0}, take_along_axis(t, load(q, {0, 0}, {3, columns}), -2));
  });
  const auto x = numbers<f32>(rows * columns, 1, 1000);
  auto p = numbers<I>(rows * taken, 3, columns + 3), q = numbers<I>(3 * columns, 5, rows);
  p[0] = -1, p[1] = columns, p[2] = std::numeric_limits<I>::min(), p[3] = std::numeric_limits<I>::max();
  if constexpr (sizeof(I) == 8) p[4] = (I{1} << 32) + 1;  // its low bits are an index
  Tensor<f32, 2> tx(device, {rows, columns}), ty(device, {rows, taken}), tz(device, {3, columns});
  Tensor<I, 2> tp(device, {rows, taken}), tq(device, {3, columns});
  tx.copy_from(x), tp.copy_from(p), tq.copy_from(q);
  launch(device.stream(), k, tx, tp, tq, ty, tz);
  const auto y = ty.to_vector(), z = tz.to_vector();
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < taken; ++j) {
      const I at = p[i * taken + j];
      INFO(i << ", " << j);
      CHECK(y[i * taken + j] == (at >= 0 && at < columns ? 2 * x[i * columns + at] : 0));
    }
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < columns; ++j) CHECK(z[i * columns + j] == x[q[i * columns + j] * columns + j]);
}

TEST_CASE("take_along_axis broadcasts the other axes, of the tile or of the indices", "[cpu]") {
  const auto k = kernel("broadcast", [](In<i32, 2> x, In<i32, 2> p, Out<i32, 2> y, Out<i32, 2> z) {
    Tile line = load(x, {0, 0}, {1, columns}), all = load(x, {0, 0}, {rows, columns});
    Tile at = load(p, {0, 0}, {rows, 8});
    store(y, {0, 0}, take_along_axis(line, at, 1));
    store(z, {0, 0}, take_along_axis(all, slice(at, 0, 1, 1), 1));
  });
  const auto x = numbers<i32>(rows * columns, 1, 1000), p = numbers<i32>(rows * 8, 3, columns);
  const auto tx = device.tensor<i32>({rows, columns}, x), tp = device.tensor<i32>({rows, 8}, p);
  const Tensor<i32, 2> ty(device, {rows, 8}), tz(device, {rows, 8});
  launch(device.stream(), k, tx, tp, ty, tz);
  const auto y = ty.to_vector(), z = tz.to_vector();
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < 8; ++j) {
      CHECK(y[i * 8 + j] == x[p[i * 8 + j]]);
      CHECK(z[i * 8 + j] == x[i * columns + p[8 + j]]);
    }
}

TEST_CASE("put_along_axis scatters within a tile: the last of several values, none outside", "[cpu]") {
  const auto k = kernel("put", [](In<f32, 2> x, In<i32, 2> p, In<f32, 2> v, Out<f32, 2> y, Out<f32, 2> z) {
    Tile t = load(x, {0, 0}, {rows, columns});
    Tile at = load(p, {0, 0}, {rows, taken});
    store(y, {0, 0}, put_along_axis(t, at, load(v, {0, 0}, {rows, taken}), 1));
    store(z, {0, 0}, put_along_axis(t, slice(at, 1, 0, columns) % 3, t + 1, 0));
  });
  const auto x = numbers<f32>(rows * columns, 1, 1000), v = numbers<f32>(rows * taken, 4, 1000);
  auto p = numbers<i32>(rows * taken, 3, 2 * columns);
  p[7] = -1;
  const auto tx = device.tensor<f32>({rows, columns}, x), tv = device.tensor<f32>({rows, taken}, v);
  const auto tp = device.tensor<i32>({rows, taken}, p);
  const Tensor<f32, 2> ty(device, {rows, columns}), tz(device, {rows, columns});
  launch(device.stream(), k, tx, tp, tv, ty, tz);
  auto y = x, z = x;
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < taken; ++j)
      if (const i32 at = p[i * taken + j]; at >= 0 && at < columns) y[i * columns + at] = v[i * taken + j];
    for (int j = 0; j < columns; ++j) z[((p[i * taken + j] % 3 + 3) % 3) * columns + j] = x[i * columns + j] + 1;
  }
  CHECK(ty.to_vector() == y);
  CHECK(tz.to_vector() == z);
}

TEST_CASE("inverse_permutation inverts argsort, and finds last positions", "[cpu]") {
  const auto k = kernel("inverse", [](In<f32, 2> x, In<i64, 1> p, Out<f32, 2> y, Out<i32, 1> last) {
    Tile t = load(x, {0, 0}, {rows, columns});
    Tile order = argsort(t, 1);
    store(y, {0, 0}, take_along_axis(sort(t, 1), inverse_permutation(order, 1), 1));
    store(last, {0}, inverse_permutation(load(p, {0}, {600}), 9, 0));
  });
  const auto x = numbers<f32>(rows * columns, 1, 100);
  auto p = numbers<i64>(600, 2, 8);
  p[599] = (i64{1} << 32) + 3;
  const auto tx = device.tensor<f32>({rows, columns}, x);
  const Tensor<i64, 1> tp(device, {600});
  tp.copy_from(p);
  const Tensor<f32, 2> ty(device, {rows, columns});
  const Tensor<i32, 1> tl(device, {9});
  launch(device.stream(), k, tx, tp, ty, tl);
  CHECK(ty.to_vector() == x);
  std::vector<i32> last(9, -1);
  for (int i = 0; i < 599; ++i) last[static_cast<std::size_t>(p[i])] = i;
  CHECK(last[8] == -1);
  CHECK(tl.to_vector() == last);
}

TEST_CASE("tensors are accessed at 64-bit indices", "[cpu]") {
  const auto k = kernel("wide", [](In<f32, 2> x, In<i64, 1> at, In<i64, 1> columns_at, Out<f32, 2> y, Out<f32, 1> z,
                                   InOut<i32, 1> n, Out<f32, 2> s) {
    Tile i = load(at, {0}, {16}), j = load(columns_at, {0}, {16});
    store(y, {0, 0}, gather(x, i, {0}, {columns}));
    store(z, {0}, gather(x, {i, j}, -1));
    atomic_add(n, {i}, full<i32>({16}, 1));
    scatter(s, i, {0}, gather(x, i, {0}, {columns}));
  });
  const auto x = numbers<f32>(rows * columns, 1, 1000);
  std::vector<i64> at = numbers<i64>(16, 0, rows), in_row = numbers<i64>(16, 5, columns);
  at[3] = -1, at[4] = (i64{1} << 32) + 1, at[5] = std::numeric_limits<i64>::max(), at[6] = rows;
  const auto tx = device.tensor<f32>({rows, columns}, x);
  const Tensor<i64, 1> ti(device, {16}), tj(device, {16});
  ti.copy_from(at), tj.copy_from(in_row);
  const Tensor<f32, 2> ty(device, {16, columns}), ts(device, {rows, columns});
  const Tensor<f32, 1> tz(device, {16});
  const Tensor<i32, 1> tn(device, {rows});
  tn.fill(0), ts.fill(0);
  launch(device.stream(), k, tx, ti, tj, ty, tz, tn, ts);
  const auto y = ty.to_vector(), z = tz.to_vector();
  std::vector<i32> counts(rows);
  std::vector<f32> scattered(rows * columns);
  for (int r = 0; r < 16; ++r) {
    const bool inside = at[r] >= 0 && at[r] < rows;
    INFO(r);
    CHECK(z[r] == (inside ? x[at[r] * columns + in_row[r]] : -1));
    for (int c = 0; c < columns; ++c) {
      CHECK(y[r * columns + c] == (inside ? x[at[r] * columns + c] : 0));
      if (inside) scattered[at[r] * columns + c] = x[at[r] * columns + c];
    }
    if (inside) ++counts[static_cast<std::size_t>(at[r])];
  }
  CHECK(tn.to_vector() == counts);
  CHECK(ts.to_vector() == scattered);
}

TEST_CASE("extents of indices that do not fit are refused", "[graph]") {
  const auto refused = [](const auto& body) {
    return error_of([&] {
      kernel("bad", [&](In<f32, 2> x) {
        Tile t = load(x, {0, 0}, {rows, columns});
        body(t);
      });
    });
  };
  CHECK(says(refused([](auto& t) { take_along_axis(t, zeros<i32>({2, 3}), 1); }),
             {"kernel 'bad'", "test_index_tiles.cpp:",
              "take_along_axis: positions [2,3] in a tile [5,40]; only the extent along axis 1 may differ"}));
  CHECK(says(refused([](auto& t) { take_along_axis(t, zeros<i32>({5, 3}), 2); }), {"take_along_axis", "axis 2"}));
  CHECK(says(refused([](auto& t) { put_along_axis(t, zeros<i32>({3, 40}), t, 1); }), {"kernel 'bad'", "[3,40]"}));
  CHECK(says(refused([](auto& t) { inverse_permutation(cast<i32>(t), 0, 1); }), {"every extent must be at least 1"}));
}

}  // namespace test_index_tiles
