// Launches that leave out optional tensors, and launches in place.
#include <array>
#include <optional>
#include <vector>

#include "jit/launch/specialize.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"

namespace test_specialize {

using namespace tessera::internal;

namespace {

const Device& device = test_device();
constexpr int rows = 10, columns = 70;

std::vector<f32> numbers(int count, int from) {
  std::vector<f32> values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<f32>((from + i * 37) % 101));
  return values;
}
Tensor<f32, 2> matrix(int from) { return device.tensor<f32>({rows, columns}, numbers(rows * columns, from)); }
Tensor<f32, 1> line(int from) { return device.tensor<f32>({columns}, numbers(columns, from)); }

auto affine() {
  return kernel("affine", [](In<f32, 2> x, Optional<In<f32, 1>> scale, Optional<In<f32, 1>> bias, Out<f32, 2> y,
                             Optional<Out<f32, 2>> sums) {
    same_extents(x, y);
    same_extents(scale, bias);
    require((bias.extent(0) == x.extent(1)) | !bias.present(), "a bias for each column");
    Index i = blocks(cdiv(x.extent(0), 4));
    Tile t = load(x, {i, 0}, {4, 128});
    Tile result = t * load(scale, {0}, {128}, 1) + load(bias, {0}, {128});
    store(y, {i, 0}, result);
    store(sums, {i, 0}, sum(result, 1));
  });
}

int count(const Graph& graph, Op op) {
  int found = 0;
  for (const auto& region : schedule(graph))
    for (const Id id : region) found += graph[id].op == op;
  return found;
}

}  // namespace

TEST_CASE("a launch may leave out optional tensors", "[api]") {
  const auto k = affine();
  CHECK(to_string(k.graph()).find("affine(In<f32, 2>, Optional<In<f32, 1>>, Optional<In<f32, 1>>, Out<f32, 2>, "
                                  "Optional<Out<f32, 2>>)") != std::string::npos);
  const auto x = matrix(1), y = matrix(2);
  const auto scale = line(3), bias = line(4);
  const Tensor<f32, 2> sums(device, {rows, 1});
  const auto given = x.to_vector(), scales = scale.to_vector(), biases = bias.to_vector();
  const auto check = [&](bool scaled, bool biased, bool summed) {
    const auto made = y.to_vector(), totals = sums.to_vector();
    for (int r = 0; r < rows; ++r) {
      double total = 0;
      for (int c = 0; c < columns; ++c) {
        const f32 expected = given[r * columns + c] * (scaled ? scales[c] : 1) + (biased ? biases[c] : 0);
        if (made[r * columns + c] != expected) FAIL(r << ", " << c << ": " << made[r * columns + c]);
        total += expected;
      }
      CHECK(totals[r] == (summed ? static_cast<f32>(total) : -1));
    }
  };
  const auto run = [&](const auto& a, const auto& b, const auto& s) {
    y.fill(-1), sums.fill(-1);
    launch(device.stream(), k, x, a, b, y, s);
  };
  run(scale, bias, sums), check(true, true, true);
  run(scale, bias, std::nullopt), check(true, true, false);
  run(std::nullopt, bias, sums), check(false, true, true);
  run(scale, std::nullopt, sums), check(true, false, true);
  run(std::nullopt, std::nullopt, std::nullopt), check(false, false, false);
  const std::optional<Tensor<f32, 1>> some = bias, none;
  run(none, some, sums), check(false, true, true);
  run(scale, bias, sums), check(true, true, true);  // the general code still there
  CHECK(says(error_of([&] { launch(device.stream(), k, x, line(1).slice(0, 0, 3), bias, y, sums); }),
             {"launch of kernel 'affine' refused", "arguments 2 and 3 have the same extent along axis 0"}));
  CHECK(says(error_of([&] { run(std::nullopt, bias.slice(0, 0, 3), sums); }), {"a bias for each column"}));
}

TEST_CASE("code for launches without a tensor does not access it", "[graph]") {
  Specialization special;
  special.memory[1] = special.memory[4] = Specialization::none;
  const Graph graph = specialize(affine().graph(), special);
  verify(graph, "specialize");
  CHECK(count(affine().graph(), Op::load) == 3);
  CHECK(count(graph, Op::load) == 2);
  CHECK(count(affine().graph(), Op::store) == 2);
  CHECK(count(graph, Op::store) == 1);
  CHECK(graph.parameters[2].optional);
  CHECK(!graph.parameters[1].optional);
}

TEST_CASE("accesses of a tensor that is left out", "[api]") {
  const auto k = kernel("counts", [](In<i32, 1> x, Optional<InOut<i32, 1>> counts, Optional<In<f32, 1>> table,
                                     Out<i32, 1> old, Out<f32, 1> y) {
    Tile t = load(x, {0}, {32});
    Tile before = atomic_add(counts, {t}, full<i32>({32}, 1));
    store(old, {0}, before);
    Var result = full<f32>({32}, -5);
    if_(table.present(), [&] { result = gather(table, {t}, 7); });
    store(y, {0}, result);
  });
  const auto x = device.tensor<i32>({32}, std::vector<i32>(32, 2));
  const Tensor<i32, 1> counts(device, {4}), old(device, {32});
  const Tensor<f32, 1> table(device, {4}), y(device, {32});
  counts.fill(3), table.fill(9);
  launch(device.stream(), k, x, std::nullopt, std::nullopt, old, y);
  CHECK(old.to_vector() == std::vector<i32>(32, 0));
  CHECK(y.to_vector() == std::vector<f32>(32, -5));
  launch(device.stream(), k, x, counts, table, old, y);
  CHECK(counts.to_vector() == std::vector<i32>{3, 3, 35, 3});
  CHECK(y.to_vector() == std::vector<f32>(32, 9));
}

TEST_CASE("a kernel whose blocks write the tile that they read runs in place", "[api]") {
  const auto softmax = kernel("softmax", [](In<f32, 2> x, Out<f32, 2> y) {
    Index i = blocks(x.extent(0));
    Tile t = load(x, {i, 0}, {1, 128}, -inf);
    Tile e = exp(t - max(t, 1));
    store(y, {i, 0}, e / sum(e, 1));
  });
  const auto x = matrix(1), y = matrix(2), z = matrix(1);
  launch(device.stream(), softmax, x, y);
  launch(device.stream(), softmax, z, z);
  CHECK(z.to_vector() == y.to_vector());
  launch(device.stream(), softmax, x, y);
  CHECK(z.to_vector() == y.to_vector());

  // Rows that are read through other lanes than those that write them, two tensors that are the result's, and a loop.
  const auto turned = kernel("turned", [](In<f32, 2> a, In<f32, 2> b, Out<f32, 2> y) {
    Index i = blocks(cdiv(a.extent(0), 2));
    for (Index j : range(cdiv(a.extent(1), 16))) {
      Tile t = load(a, {i, j}, {2, 16});
      store(y, {i, j}, flip(t, 1) + cumsum(load(b, {i, j}, {2, 16}), 1));
    }
  });
  const auto p = matrix(5);
  launch(device.stream(), turned, p, p, y);
  launch(device.stream(), turned, p, p, p);
  CHECK(p.to_vector() == y.to_vector());
  const auto q = matrix(6), r = matrix(6);
  launch(device.stream(), turned, x, q, y);
  launch(device.stream(), turned, x, r, r);
  CHECK(r.to_vector() == y.to_vector());
  Sequence sequence(device);
  const auto s = matrix(6);
  sequence.add(turned, x, s, s);
  sequence.run(device.stream());
  CHECK(s.to_vector() == y.to_vector());
}

TEST_CASE("a kernel that would read what it wrote is refused in place", "[api]") {
  const auto refused = [&](const auto& k) {
    const auto x = matrix(1);
    return error_of([&] { launch(device.stream(), k, x, x); });
  };
  const std::string place = "test_specialize.cpp:";
  CHECK(says(refused(kernel("across",
                            [](In<f32, 2> x, Out<f32, 2> y) {
    Index i = blocks(x.extent(0));
    store(y, {i, 0}, load(x, {i + 1, 0}, {1, 64}));
  })),
             {"argument 2 is written and overlaps argument 1 in memory, and the kernel cannot run in place (", place,
              "the tile that ", " loads is not the one that ", "); give it memory of its own"}));
  CHECK(says(refused(kernel("gathered",
                            [](In<f32, 2> x, Out<f32, 2> y) { store(y, {0, 0}, gather(x, iota({4}, 0), {0}, {64})); })),
             {"'gather' is not of a tile of the whole tensor"}));
  CHECK(says(
      refused(kernel("sliced",
                     [](In<f32, 2> x, Out<f32, 2> y) { store(y, {0, 0}, load(x.slice(0, 1, 4), {0, 0}, {4, 64})); })),
      {"'load' is not of a tile of the whole tensor"}));
  CHECK(says(refused(kernel("twice",
                            [](In<f32, 2> x, Out<f32, 2> y) {
    Tile t = load(x, {0, 0}, {4, 64});
    store(y, {0, 0}, t);
    store(y, {0, 0}, t + 1);
  })),
             {"it is stored twice"}));
  CHECK(says(refused(kernel("late",
                            [](In<f32, 2> x, Out<f32, 2> y) {
    store(y, {0, 0}, full<f32>({4, 64}, 1));
    check(load(x, {0, 0}, {4, 64}) > -1, "positive");
  })),
             {"the store at ", " does not depend on the load at "}));
  CHECK(says(refused(kernel("same",
                            [](In<f32, 2> x, Out<f32, 2> y) {
    auto [i, j] = blocks(x.extent(0), 3);
    store(y, {i, 0}, load(x, {i, 0}, {1, 64}) + cast<f32>(j));
  })),
             {"blocks along axis 1 of the grid access the same tile"}));
  CHECK(says(refused(kernel("again",
                            [](In<f32, 2> x, Out<f32, 2> y) {
    Index i = blocks(x.extent(0));
    for ([[maybe_unused]] Index k : range(3)) store(y, {i, 0}, load(x, {i, 0}, {1, 64}) + 1);
  })),
             {"iterations of the loop around ", " access the same tile"}));
  CHECK(says(refused(kernel("halves",
                            [](In<f32, 2> x, Out<f32, 2> y) {
    for (Index j : range(4)) store(y, {j / 2, 0}, load(x, {j / 2, 0}, {1, 64}) + 1);
  })),
             {"iterations of the loop around "}));
  // Tensors that overlap, but are not the same.
  const auto k = kernel("copy", [](In<f32, 2> x, Out<f32, 2> y) {
    Index i = blocks(x.extent(0));
    store(y, {i, 0}, load(x, {i, 0}, {1, 128}));
  });
  const auto x = matrix(1);
  CHECK(says(error_of([&] { launch(device.stream(), k, x.slice(0, 0, 4), x.slice(0, 1, 4)); }),
             {"argument 2 is written and overlaps argument 1 in memory; give it memory of its own"}));
  const Tensor<f32, 2> narrow(device, x.data(), {5, 35}, {70, 1}), wide(device, x.data(), {5, 35}, {140, 1});
  for (const Tensor<f32, 2>& part : {x.slice(0, 0, 4), x.slice(1, 0, 9)})
    CHECK(says(error_of([&] { launch(device.stream(), k, x, part); }), {"overlaps argument 1 in memory; give it"}));
  CHECK(says(error_of([&] { launch(device.stream(), k, narrow, wide); }), {"overlaps argument 1 in memory; give it"}));
  CHECK(error_of([&] { launch(device.stream(), k, x.slice(1, 0, 4), x.slice(1, 0, 4)); }) == "(no error)");
}

}  // namespace test_specialize
