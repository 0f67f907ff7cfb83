// Parts of tiles, and tiles composed of parts: against plain loops over a tile of 6 x 8.
#include <climits>
#include <functional>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "tessera/tessera.hpp"

namespace test_parts {

using namespace tessera::internal;

namespace {

constexpr int rows = 6, columns = 8;

/// A piece's element at (i, j): the tile's number at an index, or 0 if there is none.
int number_at(int i, int j) { return i >= 0 && i < rows && j >= 0 && j < columns ? 1 + i * columns + j : 0; }

struct Piece {
  const char* name;
  int rows, columns;
  std::function<int(int i, int j)> expected;
};

}  // namespace

TEST_CASE("slices, splits, flips, rolls and interleaved tiles", "[cpu]") {
  // Each piece has its own row of y.
  const auto k = kernel("pieces", [](In<i32, 2> x, Out<i32, 2> y, Scalar<i32> n) {
    const Tile t = load(x, {0, 0}, {rows, columns});
    int row = 0;
    const auto keep = [&](const auto& tile) { store(y, {row++, 0}, reshape(tile, {1, -1})); };
    auto [left, right] = split<2>(t, 1);
    auto [top, middle, bottom] = split<3>(t, 0);
    keep(left), keep(right), keep(top), keep(middle), keep(bottom);
    keep(slice(t, 0, 1, 4));
    keep(slice(t, -1, 1, 3, 2));
    keep(slice(t, 1, 7, 3, -3));
    keep(slice(t, 1, n, 5));
    keep(extract(t, {0, 1}, {6, 5}));
    keep(flip(t, 0)), keep(flip(t, -1));
    keep(roll(t, 3, 1)), keep(roll(t, -1, 0)), keep(roll(t, 16, 1));
    keep(interleave(left, right, 1)), keep(interleave(top, middle, 0));
    keep(flip(slice(roll(t, 1, 0), 1, 2, 4), 1));
    keep(squeeze(slice(expand_dims(t, 1), 0, 2, 1), 0));
  });
  for (const int n : {0, 2, 5, -3, 8, -5, INT_MAX, INT_MIN}) {
    INFO("n = " << n);
    const auto begins = [n](int j) { return n > columns || n < -columns ? -1 : n + j; };
    const Piece pieces[] = {
        {"left", 6, 4, [](int i, int j) { return number_at(i, j); }},
        {"right", 6, 4, [](int i, int j) { return number_at(i, j + 4); }},
        {"top", 2, 8, [](int i, int j) { return number_at(i, j); }},
        {"middle", 2, 8, [](int i, int j) { return number_at(i + 2, j); }},
        {"bottom", 2, 8, [](int i, int j) { return number_at(i + 4, j); }},
        {"slice of rows", 4, 8, [](int i, int j) { return number_at(i + 1, j); }},
        {"slice by steps", 6, 3, [](int i, int j) { return number_at(i, 1 + 2 * j); }},
        {"slice backwards", 6, 3, [](int i, int j) { return number_at(i, 7 - 3 * j); }},
        {"slice from n on", 6, 5, [&](int i, int j) { return number_at(i, begins(j)); }},
        {"a part over the end", 6, 5, [](int i, int j) { return number_at(i, j + 5); }},
        {"flipped rows", 6, 8, [](int i, int j) { return number_at(5 - i, j); }},
        {"flipped columns", 6, 8, [](int i, int j) { return number_at(i, 7 - j); }},
        {"rolled by 3", 6, 8, [](int i, int j) { return number_at(i, (j + 5) % 8); }},
        {"rolled by -1", 6, 8, [](int i, int j) { return number_at((i + 1) % 6, j); }},
        {"rolled by 16", 6, 8, [](int i, int j) { return number_at(i, j); }},
        {"interleaved columns", 6, 8, [](int i, int j) { return number_at(i, j / 2 + j % 2 * 4); }},
        {"interleaved rows", 4, 8, [](int i, int j) { return number_at(i / 2 + i % 2 * 2, j); }},
        {"one of another", 6, 4, [](int i, int j) { return number_at((i + 5) % 6, 5 - j); }},
        {"one row", 1, 8, [](int, int j) { return number_at(2, j); }},
    };
    const auto x = tensor<i32, 2>({rows, columns}, numbered<i32>(rows * columns, 1));
    const auto y = tensor<i32, 2>({std::ssize(pieces), 48}, std::vector<i32>(std::size(pieces) * 48, -1));
    launch(test_device().stream(), k, x, y, n);
    const std::vector<i32> got = y.to_vector();
    for (std::size_t p = 0; p < std::size(pieces); ++p) {
      INFO(pieces[p].name);
      std::vector<i32> expected;
      for (int i = 0; i < pieces[p].rows; ++i)
        for (int j = 0; j < pieces[p].columns; ++j) expected.push_back(pieces[p].expected(i, j));
      const auto first = got.begin() + static_cast<std::ptrdiff_t>(p) * 48;
      CHECK(std::vector<i32>(first, first + std::ssize(expected)) == expected);
    }
  }
}

TEST_CASE("parts are extracted from a tile and inserted into it at tile indices", "[cpu]") {
  const auto k = kernel("parts", [](In<i32, 2> x, Out<i32, 2> part, Out<i32, 2> whole, Scalar<i32> m, Scalar<i32> n) {
    const Tile t = load(x, {0, 0}, {rows, columns});
    const Tile p = extract(t, {m, n}, {4, 3});
    store(part, {0, 0}, p);
    store(whole, {0, 0}, insert(t, {n, m}, p * 100));
  });
  for (const int m : {0, 1, 2, -1, INT_MAX, INT_MIN})
    for (const int n : {0, 1, 2, 3, -1, 1 << 30}) {
      INFO("at " << m << ", " << n);
      const auto x = tensor<i32, 2>({rows, columns}, numbered<i32>(rows * columns, 1));
      const auto part = tensor<i32, 2>({4, 3}, std::vector<i32>(12, -1));
      const auto whole = tensor<i32, 2>({rows, columns}, std::vector<i32>(rows * columns, -1));
      launch(test_device().stream(), k, x, part, whole, m, n);
      const auto place = [](int position, int extent) {
        return position < -1 || position > 8 ? -99 : position * extent;
      };
      std::vector<i32> taken, put = numbered<i32>(rows * columns, 1);
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 3; ++j) {
          taken.push_back(number_at(place(m, 4) + i, place(n, 3) + j));
          const int row = place(n, 4) + i, column = place(m, 3) + j;
          if (number_at(row, column) != 0) put[static_cast<std::size_t>(row * columns + column)] = 100 * taken.back();
        }
      CHECK(part.to_vector() == taken);
      CHECK(whole.to_vector() == put);
    }
}

TEST_CASE("parts are extracted with steps from any start", "[cpu]") {
  constexpr int count = 4;
  const auto k = kernel("stepped", [](In<i32, 2> x, Out<i32, 3> y, Scalar<i32> first) {
    const Tile t = load(x, {0, 0}, {rows, columns});
    store(y, {0, 0, 0}, reshape(slice(t, 0, first, count, 3), {1, count, columns}));
    store(y, {1, 0, 0}, reshape(slice(t, 0, first, count, -2), {1, count, columns}));
    store(y, {2, 0, 0}, reshape(slice(t, 0, first, count, 1), {1, count, columns}));
  });
  const auto x = tensor<i32, 2>({rows, columns}, numbered<i32>(rows * columns, 1));
  std::vector<int> firsts{INT_MIN, -1000, 1000, INT_MAX};
  for (int first = -14; first < rows + 14; ++first) firsts.push_back(first);
  for (const int first : firsts) {
    INFO("from " << first);
    const auto y = tensor<i32, 3>({3, count, columns}, std::vector<i32>(3 * count * columns, -1));
    launch(test_device().stream(), k, x, y, first);
    std::vector<i32> expected;
    for (const std::int64_t step : {3, -2, 1})
      for (int i = 0; i < count; ++i)
        for (int j = 0; j < columns; ++j) {
          const std::int64_t row = first + i * step;
          expected.push_back(row < 0 || row >= rows ? 0 : number_at(static_cast<int>(row), j));
        }
    CHECK(y.to_vector() == expected);
  }
}

TEST_CASE("a view as tiles of one shape", "[cpu]") {
  const auto k = kernel("tiles", [](In<i32, 2> x, Out<i32, 2> y, Out<i32, 1> counts) {
    const auto from = x.permute({1, 0}).tiles({3, 4});
    const auto to = y.tiles({3, 4});
    auto [i, j] = blocks(from.count(0), from.count(1));
    to.store({i, j}, from.load({i, j}, -1));
    if_((i == 0) & (j == 0), [&] { store(counts, {0}, reshape(from.count(0) * 100 + from.count(-1), {1})); });
  });
  const auto x = tensor<i32, 2>({5, 7}, numbered<i32>(35)), y = tensor<i32, 2>({8, 6}, std::vector<i32>(48, 77));
  const auto counts = tensor<i32, 1>({1}, {0});
  launch(test_device().stream(), k, x, y, counts);
  std::vector<i32> expected;
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 6; ++j) expected.push_back(i < 7 && j < 5 ? j * 7 + i : -1);
  CHECK(y.to_vector() == expected);
  CHECK(counts.to_vector() == std::vector<i32>{302});
}

}  // namespace test_parts
