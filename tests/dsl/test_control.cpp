// Control flow of a kernel: grids, loops, carried values, branches, the order of effects.
#include <climits>

#include "support/catch.hpp"
#include "support/oracle.hpp"
#include "support/support.hpp"
#include "support/tensors.hpp"

namespace test_control {

using namespace tessera::internal;
using oracle::Array;
using oracle::Extents;
using oracle::Memory;
using oracle::Real;
using oracle::Rng;
using oracle::Value;
using oracle::Values;

TEST_CASE("effects on an InOut happen in the order of the program", "[cpu]") {
  const auto k = kernel("order", [](InOut<i32, 1> x, Out<i32, 2> seen) {
    Index b = blocks(x.extent(0));
    const Tile before = load(x, {b}, {1});
    store(x, {b}, before * 10);
    const Tile after = load(x, {b}, {1});
    store(x, {b}, after + 1);
    atomic_add(x, {b}, full<i32>({1}, 100));
    const Tile last = load(x, {b}, {1});
    scatter(x, b + iota({1}, 0), last + before);
    const Tile end = load(x, {b}, {1});
    store(seen, {b, 0}, reshape(before, {1, 1}));
    store(seen, {b, 1}, reshape(after, {1, 1}));
    store(seen, {b, 2}, reshape(last, {1, 1}));
    store(seen, {b, 3}, reshape(end, {1, 1}));
  });
  const auto x = tensor<i32, 1>({50}, numbered<i32>(50));
  const auto seen = tensor<i32, 2>({50, 4}, std::vector<i32>(200, 77));
  launch(test_device().stream(), k, x, seen);
  const std::vector<i32> got = seen.to_vector(), memory = x.to_vector();
  for (i32 i = 0; i < 50; ++i) {
    CHECK(std::vector<i32>(got.begin() + i * 4, got.begin() + i * 4 + 4) ==
          std::vector<i32>{i, i * 10, i * 10 + 101, i * 11 + 101});
    CHECK(memory[i] == i * 11 + 101);
  }
}

TEST_CASE("a loop reads back its own writes", "[cpu]") {
  const auto k = kernel("scan", [](InOut<i64, 1> x, Out<i64, 1> seen) {
    for (Index i : range(x.extent(0) - 1)) {
      const Tile left = load(x, {i}, {1}), right = load(x, {i + 1}, {1});
      store(x, {i + 1}, left + right);
      const Tile now = load(x, {i + 1}, {1});
      store(seen, {i}, now - right);
    }
  });
  const auto x = tensor<i64, 1>({100}, numbered<i64>(100)), seen = tensor<i64, 1>({99}, std::vector<i64>(99, -1));
  launch(test_device().stream(), k, x, seen);
  for (std::size_t i = 0; i < 100; ++i) CHECK(x.to_vector()[i] == static_cast<i64>(i * (i + 1) / 2));
  for (std::size_t i = 0; i < 99; ++i) CHECK(seen.to_vector()[i] == static_cast<i64>(i * (i + 1) / 2));
}

TEST_CASE("a store hides nothing that was read before it", "[cpu]") {
  // The tile read first is used last, after its memory was written twice.
  const auto k = kernel("stale", [](InOut<f32, 2> x, Out<f32, 2> y) {
    const Tile old = load(x, {0, 0}, {3, 5});
    const Tile transposed = load(x.permute({1, 0}), {0, 0}, {5, 3});
    store(x, {0, 0}, transpose(transposed) * 2 + 1);
    const Tile now = load(x, {0, 0}, {3, 5});
    store(x, {0, 0}, zeros<f32>({3, 5}));
    store(y, {0, 0}, old * 1000 + now + transpose(transposed) * 1000000);
  });
  const auto x = tensor<f32, 2>({3, 5}, numbered<f32>(15)), y = tensor<f32, 2>({3, 5}, std::vector<f32>(15, NAN));
  launch(test_device().stream(), k, x, y);
  CHECK(x.to_vector() == std::vector<f32>(15, 0));
  for (std::size_t i = 0; i < 15; ++i) CHECK(y.to_vector()[i] == static_cast<float>(i) * 1001002 + 1);
}

TEST_CASE("no elements, no CTAs, no blocks()", "[cpu]") {
  const auto k = kernel("grid", [](In<i32, 2> x, Out<i32, 1> y) {
    auto [m, n, o] = blocks(x.extent(0), x.extent(1), 2);
    store(y, {0}, full<i32>({4}, 5) + 0 * (m + n + o));
  });
  const std::vector<i32> untouched(4, 77);
  for (const auto& [rows, cols] : {std::array{0, 5}, {5, 0}, {0, 0}}) {
    const auto x = tensor<i32, 2>({rows, cols}, {});
    const auto y = tensor<i32, 1>({4}, untouched);
    launch(test_device().stream(), k, x, y);
    CHECK(y.to_vector() == untouched);
  }
  const auto one_block = kernel("one_block", [](In<i32, 2> x, InOut<i32, 1> y) {
    atomic_add(y, {0}, sum(reshape(load(x, {0, 0}, {2, 2}, 3), {4}), 0) + iota({4}, 0));
  });
  const auto x = tensor<i32, 2>({0, 5}, {});
  const auto y = tensor<i32, 1>({4}, untouched);
  launch(test_device().stream(), one_block, x, y);
  CHECK(y.to_vector() == std::vector<i32>{89, 90, 91, 92});
}

TEST_CASE("grids of one to three axes visit every CTA once", "[cpu]") {
  const auto k = kernel("visit", [](InOut<i32, 3> x, Scalar<i32> a, Scalar<i32> b) {
    auto [i, j, l] = blocks(a, b + 1, x.extent(2));
    atomic_add(x, {i, j, l}, reshape(constant<i32>(1) + i * 10000 + j * 100 + l, {1, 1, 1}));
  });
  for (const auto& [a, b, c] : {std::array{1, 1, 1}, {5, 3, 7}, {1, 40, 2}, {300, 1, 3}}) {
    const auto x = tensor<i32, 3>({a, b, c}, std::vector<i32>(static_cast<std::size_t>(a) * b * c, 0));
    launch(test_device().stream(), k, x, a, b - 1);
    const std::vector<i32> got = x.to_vector();
    std::size_t wrong = 0, at = 0;
    for (int i = 0; i < a; ++i)
      for (int j = 0; j < b; ++j)
        for (int l = 0; l < c; ++l) wrong += got[at++] != 1 + i * 10000 + j * 100 + l;
    CHECK(wrong == 0);
  }
}

TEST_CASE("loops of any count", "[cpu]") {
  const auto k = kernel("counts", [](Out<i32, 1> y, Scalar<i32> n) {
    Var total = zeros<i32>({5});
    Var last = constant<i32>(-1);
    Var rounds = constant<i64>(0);
    for (Index i : range(n)) {
      total = total + i * iota({5}, 0);
      last = i;
      rounds = rounds + 1;
    }
    store(y, {0}, total);
    store(y, {5}, reshape(last, {1}));
    store(y, {6}, reshape(cast<i32>(rounds), {1}));
  });
  for (int n : {0, 1, 2, 7, 1000, -1, -1000, INT_MIN}) {
    INFO(n << " rounds");
    const auto y = tensor<i32, 1>({7}, std::vector<i32>(7, 77));
    launch(test_device().stream(), k, y, n);
    const int rounds = std::max(n, 0), sum = rounds * (rounds - 1) / 2;
    CHECK(y.to_vector() == std::vector<i32>{0, sum, 2 * sum, 3 * sum, 4 * sum, rounds - 1, rounds});
  }
  const auto fixed = kernel("fixed", [](Out<i32, 1> y) {
    Var a = zeros<i32>({1});
    for ([[maybe_unused]] Index i : range(0)) a = a + 1;
    for ([[maybe_unused]] Index i : range(1)) a = a + 10;
    for ([[maybe_unused]] Index i : range(-3)) a = a + 100;
    for ([[maybe_unused]] Index i : range(4)) a = a + 1000;
    store(y, {0}, a);
  });
  const auto y = tensor<i32, 1>({1}, {77});
  launch(test_device().stream(), fixed, y);
  CHECK(y.to_vector()[0] == 4010);
}

TEST_CASE("loops from one number to another, with a step", "[cpu]") {
  const auto k = kernel("steps", [](Out<i32, 1> y, Scalar<i32> a, Scalar<i32> b, Scalar<i32> c) {
    Var between = zeros<i32>({2});
    Var apart = constant<i32>(0), product = constant<i32>(1), back = constant<i32>(0);
    for (Index i : range(a, b)) between += i * iota({2}, 0) + 1;
    for (Index i : range(a, b, c)) {
      apart *= 10;
      apart += i;
    }
    for (Index i : range(3, 0, -1)) product *= i, back = back * 10 + i;
    product -= 1, product /= 2, product %= 2;
    store(y, {0}, between);
    store(y, {2}, reshape(apart, {1}));
    store(y, {3}, reshape(product * 1000 + back, {1}));
  });
  for (const auto& [a, b, c] : {std::array{0, 5, 1},
                                {2, 5, 2},
                                {2, 6, 2},
                                {5, 2, 1},
                                {5, 2, -1},
                                {7, 1, -4},
                                {3, 9, 0},
                                {-2, 3, 2},
                                {INT_MAX - 2, INT_MAX, 1},
                                {INT_MIN, INT_MIN + 2, 3}}) {
    INFO("from " << a << " to " << b << " by " << c);
    const auto y = tensor<i32, 1>({4}, std::vector<i32>(4, 77));
    launch(test_device().stream(), k, y, a, b, c);
    std::int64_t rounds = 0, sum = 0, apart = 0;
    for (std::int64_t i = a; i < b; ++i) ++rounds, sum += i;
    for (std::int64_t i = a; c > 0 ? i < b : c < 0 && i > b; i += c) apart = apart * 10 + i;
    CHECK(y.to_vector() ==
          std::vector<i32>{static_cast<i32>(rounds), static_cast<i32>(sum + rounds), static_cast<i32>(apart), 321});
  }
}

TEST_CASE("a grid with a given number of CTAs takes tiles in turn", "[cpu]") {
  const auto k = kernel("in_turns", [](In<i32, 1> x, Out<i32, 1> y, Out<i32, 1> taken_by, InOut<i32, 1> rounds,
                                       Out<i64, 1> sums, Scalar<i32> count) {
    Index block = blocks(count);
    Var total = zeros<i64>({1});
    Var own = constant<i32>(0);
    for (Index t : range(block, cdiv(x.extent(0), 16), count)) {
      Tile part = load(x, {t}, {16});
      store(y, {t}, part * 2);
      store(taken_by, {t}, reshape(block, {1}));
      atomic_add(rounds, {t}, full<i32>({1}, 1));
      total += cast<i64>(sum(part, 0));
      own += 1;
    }
    store(sums, {block}, total * 1000 + cast<i64>(own));
  });
  for (const auto& [count, size] :
       {std::pair{1, 100}, {3, 100}, {7, 112}, {264, 100}, {5, 0}, {2, 1}, {13, 13 * 16 * 4}}) {
    INFO(count << " blocks, " << size << " elements");
    const int tiles = (size + 15) / 16;
    const auto x = tensor<i32, 1>({size}, numbered<i32>(static_cast<std::size_t>(size), 5));
    const auto y = tensor<i32, 1>({size}, std::vector<i32>(static_cast<std::size_t>(size), 77));
    const auto taken_by = tensor<i32, 1>({tiles}, std::vector<i32>(static_cast<std::size_t>(tiles), 77));
    const auto rounds = tensor<i32, 1>({tiles}, std::vector<i32>(static_cast<std::size_t>(tiles)));
    const auto sums = tensor<i64, 1>({count}, std::vector<i64>(static_cast<std::size_t>(count), 77));
    launch(test_device().stream(), k, x, y, taken_by, rounds, sums, count);
    std::vector<i32> twice, blocks;
    std::vector<i64> of_blocks(static_cast<std::size_t>(count));
    for (int t = 0; t < tiles; ++t) {
      blocks.push_back(t % count);
      i64& of_block = of_blocks[static_cast<std::size_t>(t % count)];
      ++of_block;
      for (int i = t * 16; i < std::min(size, t * 16 + 16); ++i)
        twice.push_back(2 * (i + 5)), of_block += 1000 * (i + 5);
    }
    CHECK(y.to_vector() == twice);
    CHECK(taken_by.to_vector() == blocks);
    CHECK(rounds.to_vector() == std::vector<i32>(static_cast<std::size_t>(tiles), 1));
    CHECK(sums.to_vector() == of_blocks);
  }
  // As on the language page, with a constant number of CTAs.
  const auto fixed = kernel("fixed", [](In<f32, 1> x, Out<f32, 1> y) {
    Index block = blocks(5);
    for (Index t : range(block, cdiv(x.extent(0), 8), 5)) store(y, {t}, load(x, {t}, {8}) * 2);
  });
  for (const int size : {3, 41, 200}) {
    const auto y = tensor<f32, 1>({size}, std::vector<f32>(static_cast<std::size_t>(size), 77));
    launch(test_device().stream(), fixed, tensor<f32, 1>({size}, numbered<f32>(static_cast<std::size_t>(size))), y);
    std::vector<f32> twice = numbered<f32>(static_cast<std::size_t>(size));
    for (f32& v : twice) v *= 2;
    CHECK(y.to_vector() == twice);
  }
}

TEST_CASE("Vars that are permuted", "[cpu]") {
  const auto k = kernel("rotate", [](In<i32, 2> x, Out<i32, 3> y, Scalar<i32> n) {
    Var a = load(x, {0, 0}, {1, 37}), b = load(x, {1, 0}, {1, 37});                                // swapped
    Var f = load(x, {0, 0}, {1, 37}), g = load(x, {1, 0}, {1, 37});                                // f, g = g, f + g
    Var p = load(x, {0, 0}, {1, 37}), q = load(x, {1, 0}, {1, 37}), r = load(x, {2, 0}, {1, 37});  // rotated
    for ([[maybe_unused]] Index i : range(n)) {
      const Tile old = a;
      a = b;
      b = old;
      const Tile next = f + g;
      f = g;
      g = next;
      const Tile first = p;
      p = q;
      q = r;
      r = first;
    }
    store(y, {0, 0, 0}, reshape(concat(0, a, b, f, g), {1, 4, 37}));
    store(y, {1, 0, 0}, reshape(concat(0, p, q, r, f), {1, 4, 37}));
  });
  std::vector<i32> values = numbered<i32>(111, -20);
  const auto x = tensor<i32, 2>({3, 37}, values);
  for (int n : {0, 1, 2, 3, 10, 50}) {
    INFO(n << " rounds");
    const auto y = tensor<i32, 3>({2, 4, 37}, std::vector<i32>(296, 77));
    launch(test_device().stream(), k, x, y, n);
    const std::vector<i32> got = y.to_vector();
    std::size_t wrong = 0;
    for (int i = 0; i < 37; ++i) {
      const std::uint32_t v[3] = {static_cast<std::uint32_t>(values[i]), static_cast<std::uint32_t>(values[37 + i]),
                                  static_cast<std::uint32_t>(values[74 + i])};
      std::uint32_t f = v[0], g = v[1];
      for (int j = 0; j < n; ++j) {
        const std::uint32_t next = f + g;
        f = g, g = next;
      }
      const std::uint32_t expected[8] = {v[n % 2], v[1 - n % 2], f, g, v[n % 3], v[(n + 1) % 3], v[(n + 2) % 3], f};
      for (int j = 0; j < 8; ++j) wrong += static_cast<std::uint32_t>(got[j * 37 + i]) != expected[j];
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("carried values of several types, transposed and broadcast", "[cpu]") {
  const auto k = kernel("types", [](In<f32, 2> x, In<i64, 1> n, In<bf16, 1> h, Out<f32, 2> y, Out<i64, 1> m,
                                    Out<bf16, 1> o, Out<u8, 1> p, Scalar<i32> rounds) {
    Var t = load(x, {0, 0}, {6, 6});
    Var s = load(n, {0}, {5});
    Var u = load(h, {0}, {7});
    Var even = cast<pred>(zeros<i32>({3}) + 1);
    Var stretched = zeros<f32>({4, 6});
    Var reduced = zeros<f32>({1, 6});
    for (Index i : range(rounds)) {
      t = transpose(t);
      s = s * 3 + cast<i64>(i);
      u = cast<bf16>(cast<f32>(u) * 1.5f);
      even = !even;
      stretched = broadcast(load(x, {i, 0}, {1, 6}), {4, 6});
      reduced = max(t + reduced, Axis(0));
    }
    store(y, {0, 0}, concat(0, t, stretched, reduced));
    store(m, {0}, s);
    store(o, {0}, u);
    store(p, {0}, cast<u8>(even));
  });
  const auto x = tensor<f32, 2>({6, 6}, numbered<f32>(36));
  const auto n = tensor<i64, 1>({5}, {1, -1, 0, 1'000'000'000'000, 7});
  std::vector<bf16> narrow(7);
  for (int i = 0; i < 7; ++i) narrow[i] = bf16(static_cast<float>(i) + 1);
  const auto h = tensor<bf16, 1>({7}, narrow);
  for (int rounds : {0, 1, 2, 5}) {
    INFO(rounds << " rounds");
    const auto y = tensor<f32, 2>({11, 6}, std::vector<f32>(66, NAN));
    const auto m = tensor<i64, 1>({5}, std::vector<i64>(5, 77));
    const auto o = tensor<bf16, 1>({7}, std::vector<bf16>(7));
    const auto p = tensor<u8, 1>({3}, std::vector<u8>(3, 77));
    launch(test_device().stream(), k, x, n, h, y, m, o, p, rounds);
    std::vector<f32> t = numbered<f32>(36), reduced(6, 0);
    for (int i = 0; i < rounds; ++i) {
      std::vector<f32> transposed(36);
      for (int j = 0; j < 36; ++j) transposed[j] = t[j % 6 * 6 + j / 6];
      t = transposed;
      for (int j = 0; j < 6; ++j) reduced[j] += t[30 + j];
    }
    for (int i = 0; i < 24; ++i) t.push_back(rounds ? static_cast<float>((rounds - 1) * 6 + i % 6) : 0.0f);
    t.insert(t.end(), reduced.begin(), reduced.end());
    CHECK(y.to_vector() == t);
    std::vector<i64> s = n.to_vector();
    for (i64 i = 0; i < rounds; ++i)
      for (i64& v : s) v = v * 3 + i;
    CHECK(m.to_vector() == s);
    for (int i = 0; i < 7; ++i) {
      Real v = i + 1;
      for (int j = 0; j < rounds; ++j) v = oracle::rounded(v * 1.5L, ElementType::bf16);
      CHECK(o.to_vector()[i].bits == oracle::bits_of(v, ElementType::bf16));
    }
    CHECK(p.to_vector() == std::vector<u8>(3, static_cast<u8>(rounds % 2 == 0)));
  }
}

TEST_CASE("Vars that a loop only reads, values that do not vary, values used after loops", "[cpu]") {
  const auto k = kernel("invariant", [](In<i32, 1> x, Out<i32, 2> y, Scalar<i32> n) {
    const Tile t = load(x, {0}, {9});
    Var only_read = t + 1, late = t, previous = zeros<i32>({9});
    for (Index i : range(n)) {
      const Tile square = only_read * only_read;  // loop-invariant
      const Tile now = square + i;
      previous = late;
      late = now + sum(t, 0);
    }
    store(y, {0, 0}, reshape(late, {1, 9}));
    store(y, {1, 0}, reshape(previous, {1, 9}));
    only_read = only_read * 2;
    store(y, {2, 0}, reshape(only_read + late, {1, 9}));
  });
  const auto x = tensor<i32, 1>({9}, numbered<i32>(9));
  for (int n : {0, 1, 2, 6}) {
    INFO(n << " rounds");
    const auto y = tensor<i32, 2>({3, 9}, std::vector<i32>(27, 77));
    launch(test_device().stream(), k, x, y, n);
    for (int j = 0; j < 9; ++j) {
      const auto at = [&](int round) { return round < 0 ? j : (j + 1) * (j + 1) + round + 36; };
      CHECK(y.to_vector()[j] == at(n - 1));
      CHECK(y.to_vector()[9 + j] == (n == 0 ? 0 : at(n - 2)));
      CHECK(y.to_vector()[18 + j] == 2 * (j + 1) + at(n - 1));
    }
  }
}

TEST_CASE("nested loops", "[cpu]") {
  const auto k = kernel("nested", [](Out<i32, 2> y, Out<i32, 1> last, Scalar<i32> n) {
    Index block = blocks(y.extent(0));
    Var total = zeros<i32>({1, 6});
    Var turns = constant<i32>(0);
    for (Index i : range(n)) {
      Var inner = total;  // starts anew in each iteration
      for (Index j : range(i + block)) {
        inner = inner * 3 + j;
        for ([[maybe_unused]] Index l : range(2)) turns = turns + 1;
      }
      total = inner + iota({1, 6}, 1) + i;
    }
    store(y, {block, 0}, total);
    store(last, {block}, reshape(turns, {1}));
  });
  for (int n : {0, 1, 2, 5}) {
    INFO(n << " rounds");
    const auto y = tensor<i32, 2>({4, 6}, std::vector<i32>(24, 77));
    const auto last = tensor<i32, 1>({4}, std::vector<i32>(4, 77));
    launch(test_device().stream(), k, y, last, n);
    for (int block = 0; block < 4; ++block) {
      int turns = 0;
      for (int c = 0; c < 6; ++c) {
        std::uint32_t total = 0;
        turns = 0;
        for (int i = 0; i < n; ++i) {
          for (int j = 0; j < i + block; ++j) total = total * 3 + static_cast<std::uint32_t>(j), turns += 2;
          total += static_cast<std::uint32_t>(c + i);
        }
        CHECK(static_cast<std::uint32_t>(y.to_vector()[block * 6 + c]) == total);
      }
      CHECK(last.to_vector()[block] == turns);
    }
  }
}

TEST_CASE("if_ holds effects, in loops too", "[cpu]") {
  const auto k = kernel("effects", [](In<i32, 1> x, Out<i32, 1> y, InOut<i32, 1> count, Out<i32, 1> rounds) {
    Index b = blocks(2);
    Var total = zeros<i32>({2});
    for (Index i : range(x.extent(0) / 2)) {
      const Tile t = load(x, {i}, {2});
      total = total + t;
      if_(i % 2 == b, [&] {
        store(y, {i}, t * 10 + total);
        if_(i > 2, [&] {
          for (Index j : range(i)) atomic_add(count, {0}, reshape(j, {1}));
        });
      });
    }
    if_(b == 1, [&] {
      Var mine = total;
      for ([[maybe_unused]] Index i : range(3)) mine = mine * 2;
      store(rounds, {0}, mine);
    });
  });
  const auto x = tensor<i32, 1>({17}, numbered<i32>(17));
  const auto y = tensor<i32, 1>({17}, std::vector<i32>(17, 77)), count = tensor<i32, 1>({1}, {0}),
             rounds = tensor<i32, 1>({2}, {77, 77});
  launch(test_device().stream(), k, x, y, count, rounds);
  int totals[2] = {0, 0};
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 2; ++j) {
      totals[j] += 2 * i + j;
      CHECK(y.to_vector()[2 * i + j] == (2 * i + j) * 10 + totals[j]);
    }
  }
  CHECK(y.to_vector()[16] == 77);
  CHECK(count.to_vector()[0] == 3 + 6 + 10 + 15 + 21);
  CHECK(rounds.to_vector() == std::vector<i32>{totals[0] * 8, totals[1] * 8});
}

TEST_CASE("an op guarded by an if is total, wherever it is computed", "[cpu]") {
  const auto k = kernel("guarded", [](In<i32, 1> x, Out<i32, 1> y) {
    Index b = blocks(x.extent(0));
    const Tile divisor = item(load(x, {b}, {1}));
    if_(divisor != 0, [&] { store(y, {b}, reshape(100 / divisor, {1})); });
    if_(divisor == 0, [&] { store(y, {b}, reshape((divisor - 7) % divisor + 55, {1})); });
  });
  const auto x = tensor<i32, 1>({5}, {3, 0, -7, INT_MIN, -1}), y = tensor<i32, 1>({5}, std::vector<i32>(5, 77));
  launch(test_device().stream(), k, x, y);
  CHECK(y.to_vector() == std::vector<i32>{33, 55, -15, -1, -100});
}

// Random programs
// --------------------------------------------------------------------------------------------------------

namespace {

/// A random program of nested loops, branches, Vars, and effects on two InOut tensors, all i32; executed by the library
/// and here.
class RandomProgram {
 public:
  explicit RandomProgram(std::uint64_t seed) : rng_(seed) {
    inputs_ = {oracle::random_bits_array(rng_, ElementType::i32, {4}),
               oracle::random_array(rng_, ElementType::i32, {3, 4}, -9, 9),
               oracle::random_array(rng_, ElementType::i32, {1, 1}, 0, 4),
               oracle::random_array(rng_, ElementType::i32, {16}, -9, 9),
               oracle::random_array(rng_, ElementType::i32, {6, 4}, -9, 9)};
    for (int i = 0; i < 3; ++i) visible_.push_back({next_++, inputs_[i].shape});
    for (int i = oracle::between(rng_, 2, 5); i > 0; --i) declare(body_);
    outer_ = vars_;
    generate(body_, 2, oracle::between(rng_, 4, 10));
  }

  std::string check() {
    // Here.
    Here here;
    here.values.resize(next_);
    here.vars.resize(next_var_);
    here.memory = {inputs_[3], inputs_[4]};
    for (int i = 0; i < 3; ++i) here.values[i] = inputs_[i];
    execute(body_, here);
    // In the library.
    std::vector<Memory> memory;
    for (const Array& a : inputs_) memory.push_back(oracle::input(a));
    memory[3].access = memory[4].access = Access::in_out;
    for (const auto& [var, shape] : outer_)
      memory.push_back(oracle::dense(Access::out, ElementType::i32, shape.empty() ? Extents{1} : shape));
    const std::string graph = oracle::run(memory, [&](const Values& parameters) {
      There there;
      there.values.resize(next_);
      there.vars.resize(next_var_);
      there.memory = {parameters[3], parameters[4]};
      for (int i = 0; i < 3; ++i) there.values[i] = oracle::load_all(parameters[i], inputs_[i].shape);
      trace(body_, there, outer_.size());
      for (std::size_t i = 0; i < outer_.size(); ++i) {
        Value value{Trace::current(oracle::here()).var(there.vars[outer_[i].id], oracle::here()), ElementType::i32};
        const Extents shape = outer_[i].shape.empty() ? Extents{1} : outer_[i].shape;
        if (outer_[i].shape.empty()) value = oracle::apply_reshape(value, shape);
        oracle::store_all(parameters[5 + i], value, shape.size());
      }
    });
    std::string wrong;
    for (std::size_t i = 0; i < outer_.size() && wrong.empty(); ++i) {
      wrong = oracle::difference(oracle::reshape(oracle::values_of(memory[5 + i]), outer_[i].shape),
                                 here.vars[outer_[i].id]);
      if (!wrong.empty()) wrong = "Var " + std::to_string(i) + ": " + wrong;
    }
    for (std::size_t i = 0; i < 2 && wrong.empty(); ++i)
      wrong = oracle::difference(oracle::values_of(memory[3 + i]), here.memory[i]);
    return wrong.empty() ? "" : wrong + "\n" + graph;
  }

 private:
  struct Named {
    std::size_t id;
    Extents shape;
  };
  enum class Kind { let, declare, read_var, set_var, load, store, add, loop, branch };
  struct Statement {
    Kind kind;
    Op op{};
    std::size_t to = 0;  // the value, Var or memory
    std::vector<std::size_t> from;
    std::vector<std::int64_t> attributes;
    Extents shape;
    std::vector<Statement> body;
  };
  using Body = std::vector<Statement>;
  struct Here {
    std::vector<Array> values, vars, memory;
  };
  struct There {
    std::vector<Value> values;
    std::vector<Trace::VarSlot> vars;
    std::vector<Value> memory;
  };

  const Named& any() {
    const std::size_t last = visible_.size() - 1;
    return visible_[oracle::chance(rng_, 50)
                        ? oracle::between<std::size_t>(rng_, 0, last)
                        : oracle::between<std::size_t>(rng_, last - std::min<std::size_t>(last, 4), last)];
  }
  std::size_t let(Body& body, Op op, std::vector<std::size_t> from, std::vector<std::int64_t> attributes,
                  const Extents& shape) {
    body.push_back({Kind::let, op, next_, std::move(from), std::move(attributes), shape, {}});
    visible_.push_back({next_, shape});
    return next_++;
  }
  /// A visible value of one element, in [0, below).
  std::size_t number(Body& body, int below) {
    const Named from = any();
    std::size_t value = from.id;
    Extents shape = from.shape;
    for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
      if (shape[axis] == 1) continue;
      shape[axis] = 1;
      value = let(body, oracle::chance(rng_, 50) ? Op::sum : Op::max, {value}, {axis}, shape);
    }
    value = let(body, Op::reshape, {value}, {}, {});
    return let(body, Op::modulo, {value}, {below}, {});  // by a literal
  }
  void declare(Body& body) {
    const Named from = any();
    body.push_back({Kind::declare, {}, next_var_, {from.id}, {}, from.shape, {}});
    vars_.push_back({next_var_++, from.shape});
    assignable_.push_back(vars_.back());
  }
  void generate(Body& body, int depth, int count) {
    while (count-- > 0) statement(body, depth);
  }
  void statement(Body& body, int depth) {
    const int kind = oracle::between(rng_, 0, 19);
    if (kind < 5) {
      const Named a = any(), b = any();
      if (const auto shape = oracle::common_shape(a.shape, b.shape); shape && oracle::size_of(*shape) <= 64) {
        constexpr std::array ops = {Op::add, Op::sub, Op::mul, Op::minimum, Op::maximum, Op::floor_div, Op::modulo};
        let(body, oracle::one_of(rng_, ops), {a.id, b.id}, {}, *shape);
      }
    } else if (kind < 7) {
      const Named a = any();
      if (a.shape.empty()) return;
      const int axis = oracle::between(rng_, 0, static_cast<int>(a.shape.size()) - 1);
      constexpr std::array ops = {Op::sum, Op::max, Op::min, Op::argmax, Op::cumsum};
      const Op op = oracle::one_of(rng_, ops);
      const std::vector<std::int64_t> attributes =
          op == Op::cumsum ? std::vector<std::int64_t>{axis, 0} : std::vector<std::int64_t>{axis};
      let(body, op, {a.id}, attributes, op == Op::cumsum ? a.shape : oracle::without(a.shape, axis));
    } else if (kind == 7) {
      const Named a = any();
      if (a.shape.size() == 2)
        let(body, Op::permute, {a.id}, {1, 0}, {a.shape[1], a.shape[0]});
      else if (oracle::size_of(a.shape) == 1)
        let(body, Op::broadcast, {a.id}, {}, oracle::chance(rng_, 50) ? Extents{3, 4} : Extents{4});
      else if (a.shape.size() == 1)
        let(body, Op::reshape, {a.id}, {}, {1, a.shape[0]});
    } else if (kind < 10) {
      if (vars_.empty()) return;
      const Named var = oracle::one_of(rng_, vars_);
      body.push_back({Kind::read_var, {}, next_, {var.id}, {}, {}, {}});
      visible_.push_back({next_++, var.shape});
    } else if (kind < 14) {
      if (assignable_.empty()) return;
      const Named var = oracle::one_of(rng_, assignable_);
      std::vector<std::size_t> fitting;
      for (const Named& value : visible_)
        if (value.shape == var.shape) fitting.push_back(value.id);
      const std::size_t near = std::min<std::size_t>(fitting.size() - 1, 2);
      if (!fitting.empty())
        body.push_back({Kind::set_var,
                        {},
                        var.id,
                        {fitting[oracle::between<std::size_t>(
                            rng_, oracle::chance(rng_, 40) ? 0 : fitting.size() - 1 - near, fitting.size() - 1)]},
                        {},
                        {},
                        {}});
    } else if (kind < 16) {
      // Memory 0 in tiles of [4], memory 1 in tiles of [3, 4].
      const std::size_t memory = oracle::between<std::size_t>(rng_, 0, 1), at = number(body, 5);  // out of range, too
      const Extents shape = memory == 0 ? Extents{4} : Extents{3, 4};
      body.push_back({Kind::load, {}, next_, {memory, at}, {}, shape, {}});
      visible_.push_back({next_++, shape});
    } else if (kind < 18) {
      const std::size_t memory = oracle::between<std::size_t>(rng_, 0, 1), at = number(body, 5);
      const Extents shape = memory == 0 ? Extents{4} : Extents{3, 4};
      std::vector<std::size_t> fitting;
      for (const Named& value : visible_)
        if (value.shape == shape) fitting.push_back(value.id);
      if (!fitting.empty())
        body.push_back({oracle::chance(rng_, 70) ? Kind::store : Kind::add,
                        {},
                        memory,
                        {oracle::one_of(rng_, fitting), at},
                        {},
                        shape,
                        {}});
    } else if (depth > 0) {
      const bool loop = kind == 18 || oracle::chance(rng_, 50);
      const std::size_t count = number(body, loop ? 4 : 2);
      Statement inner{loop ? Kind::loop : Kind::branch, {}, 0, {count}, {}, {}, {}};
      const auto visible = visible_, vars = vars_, assignable = assignable_;
      if (loop) {
        inner.to = next_;
        visible_.push_back({next_++, {}});
      }
      if (oracle::chance(rng_, 50)) declare(inner.body);
      generate(inner.body, depth - 1, oracle::between(rng_, 2, 9));
      visible_ = visible, vars_ = vars, assignable_ = assignable;
      body.push_back(std::move(inner));
    }
  }

  void execute(const Body& body, Here& here) const {
    for (const Statement& s : body) {
      const auto value = [&](std::size_t i) -> const Array& { return here.values[s.from[i]]; };
      const auto each = [&](std::size_t at,
                            const auto& element) {  // of the tile at an index, the elements that exist
        const int rows = s.shape[0], cols = s.shape.size() > 1 ? s.shape[1] : 1;
        const std::int64_t first = here.values[s.from[at]].whole[0] * rows;
        for (int i = 0; i < rows * cols; ++i)
          if (const std::int64_t row = first + i / cols;
              row >= 0 && row < here.memory[0].shape[0] * (cols == 1) + here.memory[1].shape[0] * (cols != 1))
            element(i, row * cols + i % cols);
      };
      switch (s.kind) {
        case Kind::let: {
          const int axis = s.attributes.empty() ? 0 : static_cast<int>(s.attributes[0]);
          Array& to = here.values[s.to];
          if (s.op == Op::modulo && !s.attributes.empty())
            to = oracle::binary(s.op, value(0), oracle::wholes(ElementType::i32, {}, {s.attributes[0]}));
          else if (is_binary(s.op))
            to = oracle::binary(s.op, value(0), value(1));
          else if (s.op == Op::argmax)
            to = oracle::argmax(value(0), axis);
          else if (s.op == Op::cumsum)
            to = oracle::cumsum(value(0), axis);
          else if (s.op == Op::permute)
            to = oracle::permute(value(0), {1, 0});
          else if (s.op == Op::broadcast)
            to = oracle::broadcast(value(0), s.shape);
          else if (s.op == Op::reshape)
            to = oracle::reshape(value(0), s.shape);
          else
            to = oracle::reduce(s.op, value(0), axis);
          break;
        }
        case Kind::declare:
        case Kind::set_var:
          here.vars[s.to] = value(0);
          break;
        case Kind::read_var:
          here.values[s.to] = here.vars[s.from[0]];
          break;
        case Kind::load: {
          Array to(ElementType::i32, s.shape);
          each(1, [&](std::size_t i, std::size_t place) { to.whole[i] = here.memory[s.from[0]].whole[place]; });
          here.values[s.to] = to;
          break;
        }
        case Kind::store:
        case Kind::add:
          each(1, [&](std::size_t i, std::size_t place) {
            i64& to = here.memory[s.to].whole[place];
            to = s.kind == Kind::store
                     ? value(0).whole[i]
                     : oracle::wrapped(oracle::binary(Op::add, ElementType::i32, to, value(0).whole[i]),
                                       ElementType::i32);
          });
          break;
        case Kind::loop: {
          const i64 count = value(0).whole[0];
          for (i64 i = 0; i < count; ++i) {
            here.values[s.to] = oracle::wholes(ElementType::i32, {}, {i});
            execute(s.body, here);
          }
          break;
        }
        case Kind::branch:
          if (value(0).whole[0] != 0) execute(s.body, here);
      }
    }
  }

  void trace(const Body& body, There& there, std::size_t keep = 0) const {
    Trace& t = Trace::current(oracle::here());
    std::vector<Trace::VarSlot> declared;
    const Location at = oracle::here();
    for (const Statement& s : body) {
      const auto value = [&](std::size_t i) { return there.values[s.from[i]]; };
      const auto places = [&](Values in) {  // the view, then the index
        in.push_back(there.values[s.from[1]]);
        if (s.shape.size() == 2) in.push_back(oracle::literal(ElementType::i32, 0));
        return in;
      };
      switch (s.kind) {
        case Kind::let:
          if (s.op == Op::modulo && !s.attributes.empty())
            there.values[s.to] =
                oracle::apply_binary(s.op, value(0), oracle::literal(ElementType::i32, s.attributes[0]));
          else if (is_binary(s.op))
            there.values[s.to] = oracle::apply_binary(s.op, value(0), value(1));
          else
            there.values[s.to] = oracle::apply(s.op, ElementType::i32, {value(0)}, s.attributes,
                                               s.op == Op::reshape || s.op == Op::broadcast ? s.shape : Extents{});
          break;
        case Kind::declare:
          there.vars[s.to] = t.make_var(value(0).handle, at);
          declared.push_back(there.vars[s.to]);
          break;
        case Kind::read_var:
          there.values[s.to] = {t.var(there.vars[s.from[0]], at), ElementType::i32};
          break;
        case Kind::set_var:
          t.assign_var(there.vars[s.to], value(0).handle, at);
          break;
        case Kind::load:
          there.values[s.to] =
              oracle::apply(Op::load, ElementType::i32, places({there.memory[s.from[0]]}), {0}, s.shape);
          break;
        case Kind::store:
          oracle::apply(Op::store, ElementType::i32, places({value(0), there.memory[s.to]}));
          break;
        case Kind::add:
          oracle::apply(Op::atomic_add, ElementType::i32, places({value(0), there.memory[s.to]}),
                        {0, static_cast<std::int64_t>(MemoryScope::device)});
          break;
        case Kind::loop:
          there.values[s.to] = {t.begin_loop(value(0).handle, at), ElementType::i32};
          trace(s.body, there);
          t.end_region();
          break;
        case Kind::branch: {
          const Value condition = oracle::apply_cast(value(0), ElementType::pred);
          t.begin_branch(condition.handle, at);
          trace(s.body, there);
          t.end_region();
        }
      }
    }
    for (std::size_t i = declared.size(); i-- > keep;) t.drop_var(declared[i]);
  }

  Rng rng_;
  std::vector<Array> inputs_;
  std::size_t next_ = 0, next_var_ = 0;
  std::vector<Named> visible_, vars_, assignable_, outer_;
  Body body_;
};

}  // namespace

TEST_CASE("random programs of loops, branches, Vars and effects", "[cpu]") {
  const Seeds seeds(3000);
  for (std::uint64_t seed = seeds.first; seed < seeds.end; ++seed) {
    INFO("seed " << seed);
    CHECK(RandomProgram(seed).check() == "");
  }
}

}  // namespace test_control
