#include "common/growing.hpp"

#include <memory>

namespace tessera::internal {
namespace {

using Reals = In<f32, 1>;
using Results = Out<f32, 1>;
using Vars = std::vector<std::unique_ptr<Var<f32, 1>>>;

Vars vars_of(const Reals& x, int count) {
  Vars vars;
  for (int i = 0; i < count; ++i) vars.push_back(std::make_unique<Var<f32, 1>>(load(x, {i}, {4})));
  return vars;
}

void nest(int depth, bool stores, Var<f32, 1>& v, const Results& y) {
  if (depth == 0) {
    v = v + 1.0f;
    return;
  }
  for (Index i : range(2)) {
    nest(depth - 1, stores, v, y);
    if (stores) store(y, {i}, v);
  }
}

void nest_ifs(int depth, const Reals& x, const Results& y) {
  if_(x.extent(0) > depth, [&] {
    store(y, {depth}, load(x, {depth}, {4}));
    if (depth > 0) nest_ifs(depth - 1, x, y);
  });
}

void chain_with_numbers(int size, Reals x, Results y) {
  Var v = load(x, {0}, {4});
  for (int i = 0; i < size; ++i) v = v + static_cast<float>(i);
  store(y, {0}, v);
}

void added_to_itself(int size, Reals x, Results y) {
  Var v = load(x, {0}, {4});
  for (int i = 0; i < size; ++i) v = v + v;
  store(y, {0}, v);
}

void index_in_loop(int size, Reals x, Results y) {
  for (Index j : range(3)) {
    Var at = j;
    for (int i = 0; i < size; ++i) at = at + at;
    store(y, {at}, load(x, {at}, {4}));
  }
}

void grid_extent(int size, Reals x, Results y) {
  Var extent = x.extent(0);
  for (int i = 0; i < size; ++i) extent = extent + i;
  Index at = blocks(extent);
  store(y, {at}, load(x, {at}, {4}));
}

void stores_at_host_places(int size, Reals x, Results y) {
  Var at = x.extent(0);
  for (int i = 0; i < size; ++i) {
    at = at + i;
    store(y, {at}, load(x, {at}, {4}));
  }
}

void slices(int size, Reals x, Results y) {
  Var sum = zeros<f32>({4});
  for (int i = 0; i < size; ++i) sum = sum + load(x.slice(0, i, 4), {0}, {4});
  store(y, {0}, sum);
}

void slices_at_host_places(int size, Reals x, Results y) {
  Var at = x.extent(0);
  for (int i = 0; i < size; ++i) {
    at = at + i;
    store(y.slice(0, at, 4), {0}, load(x.slice(0, at, 4), {0}, {4}));
  }
}

void long_lives(int size, Reals x, Results y) {
  std::vector<Tile<f32, 1>> sums;
  for (int i = 0; i < size; ++i) sums.push_back(sum(load(x, {i}, {4}), 0));
  Var result = load(x, {0}, {4});
  for (const auto& s : sums) result = result + s;
  for (const auto& s : sums) result = result * s;
  store(y, {0}, result);
}

void reshapes(int size, Reals x, Results y) {
  Var v = load(x, {0}, {32});
  for (int i = 0; i < size; i += 2) {
    Tile folded = reshape(v, {4, 8});
    v = reshape(folded + 1.0f, {32});
  }
  store(y, {0}, v);
}

void only_reshapes(int size, Reals x, Results y) {
  Var v = reshape(load(x, {0}, {32}), {4, 8});
  for (int i = 0; i < size; ++i) {
    Tile other = reshape(v, {2, 16});
    v = reshape(other, {4, 8});
  }
  store(y, {0}, reshape(v, {32}));
}

void many_shapes(int size, Reals x, Results y) {
  Var results = load(x, {0}, {1});
  for (int i = 1; i < size; ++i) results = results + sum(load(x, {0}, {i}) * 2.0f, 0);
  store(y, {0}, results);
}

void ifs(int size, Reals x, Results y) {
  for (int i = 0; i < size; ++i) if_(x.extent(0) > i, [&] { store(y, {i}, load(x, {i}, {4})); });
}

void ifs_to_one_place(int size, Reals x, Results y) {
  for (int i = 0; i < size; ++i) if_(x.extent(0) > i, [&] { store(y, {0}, load(x, {i}, {4})); });
}

void nested_ifs(int size, Reals x, Results y) { nest_ifs(size, x, y); }

void loops_in_a_row(int size, Reals x, Results y) {
  Var v = load(x, {0}, {4});
  for (int i = 0; i < size; ++i)
    for (Index j : range(3)) v = v + cast<f32>(j + i);
  store(y, {0}, v);
}

void loops_with_vars(int size, Reals x, Results y) {
  const Vars vars = vars_of(x, size);
  for (const auto& v : vars)
    for (Index j : range(3)) *v = *v + cast<f32>(j);
  for (int i = 0; i < size; ++i) store(y, {i}, *vars[static_cast<std::size_t>(i)]);
}

void loop_with_many_vars(int size, Reals x, Results y) {
  const Vars vars = vars_of(x, size);
  for (Index j : range(3))
    for (const auto& v : vars) *v = *v * 2.0f + cast<f32>(j);
  for (int i = 0; i < size; ++i) store(y, {i}, *vars[static_cast<std::size_t>(i)]);
}

void nested_loops(int size, Reals x, Results y) {
  Var v = load(x, {0}, {4});
  nest(size, false, v, y);
  store(y, {0}, v);
}

void nested_loops_that_store(int size, Reals x, Results y) {
  Var v = load(x, {0}, {4});
  nest(size, true, v, y);
}

void products(int size, Reals x, Results y) {
  Var sum = zeros<f32>({32, 32});
  for (int i = 0; i < size; ++i) {
    Tile a = reshape(load(x, {i}, {32 * 256}), {32, 256});
    sum = mma(a, transpose(a), sum);
  }
  store(y, {0}, reshape(sum, {32 * 32}));
}

// For sm_90a; both stored tiles are computed from the same accumulators.
Graph warp_specialized_matmul(int size) {
  using Matrix = In<bf16, 2>;
  using Result = Out<bf16, 2>;
  return trace_kernel("growing", [&](Matrix x, Matrix w, Result y, Result z) {
    auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 64));
    Var sums = zeros<f32>({64, 64});
    for (Index k : range(cdiv(x.extent(1), 64))) sums = mma(load(x, {m, k}, {64, 64}), load(w, {k, n}, {64, 64}), sums);
    Var v = sums;
    for (int i = 0; i < size; ++i) v = v + static_cast<float>(i);
    store(y, {m, n}, cast<bf16>(v));
    store(z, {m, n}, cast<bf16>(v * 2.0f));
  });
}

template <void (*make)(int, Reals, Results)>
Graph of(int size) {
  return trace_kernel("growing", [&](Reals x, Results y) { make(size, x, y); });
}

const Growing all_growing[] = {
    {"a chain of ops with numbers", 20000, of<chain_with_numbers>},
    {"a value added to itself, again and again", 20000, of<added_to_itself>},
    {"an index computed in a loop", 20000, of<index_in_loop>},
    {"the grid's extent", 20000, of<grid_extent>},
    {"stores at places that the host computes", 10000, of<stores_at_host_places>},
    {"slices", 10000, of<slices>},
    {"slices at places that the host computes", 10000, of<slices_at_host_places>},
    {"many values that live long", 8000, of<long_lives>},
    {"reshapes", 20000, of<reshapes>},
    {"reshapes and nothing else", 20000, of<only_reshapes>},
    {"tiles of as many shapes", 2000, of<many_shapes>},
    {"ifs", 8000, of<ifs>},
    {"ifs that store to one place", 8000, of<ifs_to_one_place>},
    {"ifs in one another", 80, of<nested_ifs>},
    {"loops in a row", 4000, of<loops_in_a_row>},
    {"loops in a row, each with a Var of its own", 2000, of<loops_with_vars>},
    {"a loop that carries many Vars", 4000, of<loop_with_many_vars>},
    {"loops in one another", 80, of<nested_loops>},
    {"loops in one another that store", 80, of<nested_loops_that_store>},
    {"products", 800, of<products>},
    {"arithmetic on a warp-specialized matmul", 4000, warp_specialized_matmul},
};

}  // namespace

std::span<const Growing> growing_kernels() { return all_growing; }

}  // namespace tessera::internal
