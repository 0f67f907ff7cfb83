#include "support/plan_kernels.hpp"

#include <map>

#include "codegen/make_plan.hpp"
#include "codegen/passes.hpp"
#include "tessera/dsl/control.hpp"
#include "tessera/graph/error.hpp"

using namespace tessera::internal;

namespace {

struct Kernels {
  std::vector<std::string> names;
  std::map<std::string, Graph, std::less<>> graphs;

  template <class F>
  void add(const char* name, const F& function) {
    names.push_back(name);
    graphs.emplace(name, run_passes(trace_kernel(name, function)));
  }
};

// --- tiles that move between threads

void add_moves(Kernels& kernels) {
  // Elementwise ops in sequence, by vectors.
  kernels.add("pointwise", [](In<f32, 1> x, Out<f32, 1> y, Scalar<f32> factor) {
    Index i = blocks(cdiv(y.extent(0), 1024));
    Tile t = load(x, {i}, {1024});
    store(y, {i}, exp(t * factor) + t);
  });
  // Through scratch memory, which the second exchange reuses.
  kernels.add("transposed", [](In<f32, 2> x, Out<f32, 2> y, Out<f32, 2> z) {
    auto [i, j] = blocks(cdiv(x.extent(0), 64), cdiv(x.extent(1), 64));
    Tile t = load(x, {i, j}, {64, 64}) + 1.0f;
    store(y, {j, i}, transpose(t));
    store(z, {i, j}, reshape(permute(reshape(t, {64, 8, 8}), {0, 2, 1}), {64, 64}));
  });
  kernels.add("joined", [](In<f32, 2> a, In<f32, 2> b, Out<f32, 2> y) {
    Tile s = load(a, {0, 0}, {16, 64}) * 2.0f, t = load(b, {0, 0}, {48, 64}) + 1.0f;
    store(y, {0, 0}, concat(0, s, t));
  });
  kernels.add("scanned", [](In<f32, 2> x, Out<f32, 2> y) { store(y, {0, 0}, cumsum(load(x, {0, 0}, {1, 1024}), 1)); });
  kernels.add("gathered", [](In<f32, 2> table, In<i32, 1> from, In<i32, 1> to, Out<f32, 2> y) {
    Tile rows = load(from, {0}, {64});
    scatter(y, load(to, {0}, {64}), {0}, exp(gather(table, rows, {0}, {128})));
  });
  kernels.add("placed", [](In<f32, 1> x, In<i32, 1> to, Out<f32, 1> y) {
    scatter(y, {load(to, {0}, {64})}, load(x, {0}, {64}));
  });
}

// --- memory that is read and written

void add_effects(Kernels& kernels) {
  // Threads read elements that others wrote.
  kernels.add("exchanged", [](InOut<f32, 2> x) {
    Tile before = load(x, {0, 0}, {64, 64});
    store(x, {0, 0}, before + 1.0f);
    Tile after = load(x.permute({1, 0}), {0, 0}, {64, 64});
    store(x, {1, 0}, after);
  });
  // Threads read elements that they wrote themselves.
  kernels.add("same_place", [](InOut<f32, 1> x, Out<f32, 1> y) {
    Index i = blocks(cdiv(x.extent(0), 256));
    Tile before = load(x, {i}, {256});
    store(x, {i}, before + 1.0f);
    Tile after = load(x, {i}, {256});
    store(y, {i}, after);
  });
  // An iteration reads elements that the previous one wrote.
  kernels.add("shifted", [](InOut<f32, 1> x) {
    for (Index i : range(x.extent(0) / 256)) {
      Tile t = load(x, {i}, {256});
      store(x, {i + 1}, t * 0.5f);
    }
  });
  kernels.add("counted", [](In<i32, 1> x, InOut<i32, 1> counts) {
    Index i = blocks(cdiv(x.extent(0), 256));
    atomic_add(counts, {0}, where(load(x, {i}, {256}) > 0, 1, 0));
    Tile seen = load(counts, {0}, {128});
    if_(item(max(seen, Axis(0))) > 100, [&] { store(counts, {1}, seen); });
  });
  // A row, and then a flag for its reader; and the reverse.
  kernels.add("released", [](In<i32, 1> x, InOut<i32, 1> y, InOut<i32, 1> flags) {
    Index i = blocks(cdiv(x.extent(0), 256));
    store(y, {i}, load(x, {i}, {256}));
    atomic_or(flags, {i}, full<i32>({1}, 1), MemoryOrder::release, MemoryScope::system);
  });
  kernels.add("acquired", [](InOut<i32, 1> x, Out<i32, 1> y, InOut<i32, 1> flags) {
    Index i = blocks(cdiv(y.extent(0), 256));
    Tile flag = atomic_or(flags, {i}, zeros<i32>({1}), MemoryOrder::acquire);
    Tile row = load(x, {i}, {256});
    store(y, {i}, row + flag);
  });
  kernels.add("awaited", [](InOut<i32, 1> x, Out<i32, 1> y, InOut<i32, 1> flags) {
    Index i = blocks(cdiv(y.extent(0), 256));
    atomic_or(flags, {i}, zeros<i32>({1}), MemoryOrder::acquire);
    Tile row = load(x, {i}, {256});
    store(y, {i}, row);
  });
  // Threads return the elements that they changed themselves.
  kernels.add("drawn", [](In<i32, 1> x, InOut<i32, 1> y, Out<i32, 1> z) {
    Index i = blocks(cdiv(x.extent(0), 256));
    Tile old = atomic_compare_exchange(y, {i}, iota({256}, 0), load(x, {i}, {256}));
    store(z, {i}, old);
  });
  kernels.add("mixed", [](InOut<i32, 1> y) {
    Tile transposed = 255 - iota({256}, 0);
    atomic_add(y, {0}, iota({256}, 0));
    atomic_add(y, {transposed}, iota({256}, 0));
    atomic_max(y, {0}, iota({256}, 0));
    atomic_exchange(y, {transposed}, iota({256}, 0));
    atomic_exchange(y, {0}, iota({256}, 0));
  });
  kernels.add("branched", [](In<f32, 1> x, Out<f32, 1> y, Scalar<i32> n) {
    Index i = blocks(cdiv(x.extent(0), 256));
    if_(i < n, [&] {
      for (Index j : range(n)) {
        Tile t = load(x.slice(0, j, n), {i - j}, {256});
        store(y, {i}, t * t);
      }
    });
  });
}

// --- partial results

void add_reductions(Kernels& kernels) {
  // More registers than go through scratch memory at a time.
  kernels.add("rows", [](In<f32, 2> x, Out<f32, 2> y) { store(y, {0, 0}, sum(load(x, {0, 0}, {32, 512}), Axis(0))); });
  kernels.add("best_rows", [](In<f32, 2> x, Out<i32, 2> y) {
    store(y, {0, 0}, reshape(argmax(load(x, {0, 0}, {32, 512}), 0), {1, 512}));
  });
  kernels.add("sorted", [](In<f32, 2> x, Out<f32, 2> y, Out<i32, 2> at) {
    auto [value, place] = top_k(load(x, {0, 0}, {4, 256}), 9, 1);
    store(y, {0, 0}, value);
    store(at, {0, 0}, place);
  });
  kernels.add("merged", [](In<f32, 2> x, Out<f32, 2> y, Out<i32, 2> at) {
    auto [value, place] = sort_with_index(load(x, {0, 0}, {2, 3000}), 1);
    store(y, {0, 0}, value);
    store(at, {0, 0}, place);
  });
  kernels.add("taken", [](In<f32, 2> x, In<i32, 2> p, Out<f32, 2> y) {
    store(y, {0, 0}, take_along_axis(load(x, {0, 0}, {8, 256}), load(p, {0, 0}, {8, 512}), 1));
  });
  kernels.add("inverse", [](In<i32, 2> p, Out<i32, 2> y) {
    store(y, {0, 0}, inverse_permutation(load(p, {0, 0}, {4, 512}), 100, 1));
  });
  kernels.add("bins", [](In<i32, 1> x, Out<i32, 1> y) { store(y, {0}, histogram(load(x, {0}, {4096}), 64)); });
  kernels.add("normalized", [](In<f32, 2> x, Out<f32, 2> y) {
    Index i = blocks(x.extent(0));
    Tile t = load(x, {i, 0}, {1, 2048});
    Tile centered = t - sum(t, 1) / 2048;
    store(y, {i, 0}, centered * rsqrt(sum(centered * centered, 1) / 2048 + 1e-5f));
  });
  // Values that are not in registers: some in shared memory, some in the workspace.
  kernels.add("large", [](In<f32, 2> x, In<f32, 2> z, Out<f32, 2> y) {
    Index i = blocks(cdiv(x.extent(0), 32));
    Tile e = exp(load(x, {i, 0}, {32, 1024})), f = exp(load(z, {i, 0}, {32, 1024}));
    Tile s = sum(e, 1), t = max(f, Axis(0));
    store(y, {i, 0}, e / s + f / t);
  });
}

// --- matmuls

void add_matmuls(Kernels& kernels) {
  kernels.add("pipelined", [](In<bf16, 2> x, In<bf16, 2> w, Out<bf16, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), 128), cdiv(y.extent(1), 128));
    Var acc = zeros<f32>({128, 128});
    for (Index k : range(cdiv(x.extent(1), 32))) acc = mma(load(x, {m, k}, {128, 32}), load(w, {k, n}, {32, 128}), acc);
    store(y, {m, n}, cast<bf16>(acc));
  });
  // It writes elements that it has read.
  kernels.add("residual", [](In<bf16, 2> x, In<bf16, 2> w, InOut<bf16, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), 128), cdiv(y.extent(1), 128));
    Var acc = zeros<f32>({128, 128});
    for (Index k : range(cdiv(x.extent(1), 32))) acc = mma(load(x, {m, k}, {128, 32}), load(w, {k, n}, {32, 128}), acc);
    const Tile old = load(y, {m, n}, {128, 128});
    store(y, {m, n}, cast<bf16>(acc + cast<f32>(old)));
  });
  // Two loops one after the other, in the same memory.
  kernels.add("two_loops", [](In<f32, 2> x, In<f32, 2> w, In<f32, 2> v, Out<f32, 2> y) {
    Index m = blocks(cdiv(y.extent(0), 64));
    Var acc = zeros<f32>({64, 64});
    for (Index k : range(cdiv(x.extent(1), 32))) acc = mma(load(x, {m, k}, {64, 32}), load(w, {k, 0}, {32, 64}), acc);
    for (Index k : range(cdiv(x.extent(1), 32))) acc = mma(load(x, {m, k}, {64, 32}), load(v, {k, 0}, {32, 64}), acc);
    store(y, {m, 0}, acc);
  });
  kernels.add("in_place", [](In<bf16, 2> x, In<bf16, 2> w, Out<f32, 2> y) {
    store(y, {0, 0}, mma(load(x, {0, 0}, {64, 32}), load(w, {0, 0}, {32, 64}), zeros<f32>({64, 64})));
  });
  // Each iteration's tile index comes from data: it cannot be prefetched.
  kernels.add("unpipelined", [](In<bf16, 2> x, In<i32, 1> places, In<bf16, 2> w, Out<f32, 2> y) {
    Var acc = zeros<f32>({64, 64});
    for (Index k : range(places.extent(0))) {
      Index at = item(load(places, {k}, {1}));
      acc = mma(load(x, {0, at}, {64, 32}), load(w, {at, 0}, {32, 64}), acc);
    }
    store(y, {0, 0}, acc);
  });
  // Operands that are computed, with extents that no instruction supports.
  kernels.add("staged", [](In<f32, 2> x, In<f32, 2> w, Out<f32, 2> y) {
    Tile a = cast<tf32>(load(x, {0, 0}, {40, 20}) * 2.0f), b = cast<tf32>(load(w, {0, 0}, {20, 40}) + 1.0f);
    store(y, {0, 0}, mma(a, b, zeros<f32>({40, 40})));
  });
  // The first matmul's result is the second's left operand, in registers; its width is not supported by wgmma.
  kernels.add("chained", [](In<bf16, 2> q, In<bf16, 2> k, In<bf16, 2> v, Out<f32, 2> o) {
    Index m = blocks(cdiv(q.extent(0), 64));
    Tile queries = load(q, {m, 0}, {64, 64});
    Var acc = zeros<f32>({64, 64});
    for (Index j : range(cdiv(k.extent(0), 32))) {
      Tile s = mma(queries, transpose(load(k, {j, 0}, {32, 64})), zeros<f32>({64, 32}));
      acc = mma(cast<bf16>(exp(s)), load(v, {j, 0}, {32, 64}), acc);
    }
    store(o, {m, 0}, acc);
  });
  // Warps share rows: each has scores of its own keys, and a slice of k of the second matmul.
  kernels.add("sliced", [](In<bf16, 2> q, In<bf16, 2> k, In<bf16, 2> v, Out<f32, 2> o) {
    Index m = blocks(cdiv(q.extent(0), 16));
    Tile queries = load(q, {m, 0}, {16, 64});
    Var top = full<f32>({16, 1}, -1e30), norm = zeros<f32>({16, 1}), acc = zeros<f32>({16, 64});
    for (Index j : range(cdiv(k.extent(0), 64))) {
      Tile s = mma(queries, transpose(load(k, {j, 0}, {64, 64})), zeros<f32>({16, 64}));
      Tile hi = maximum(top, max(s, 1)), p = exp(s - hi), shrink = exp(top - hi);
      norm = norm * shrink + sum(p, 1);
      acc = mma(cast<bf16>(p), load(v, {j, 0}, {64, 64}), acc * shrink);
      top = hi;
    }
    store(o, {m, 0}, acc / norm);
  });
  // Partial sums stay separate until the loop is done; they do not start at 0.
  kernels.add("thin", [](In<bf16, 2> x, In<bf16, 2> w, In<f32, 2> bias, Out<f32, 2> y) {
    Index n = blocks(cdiv(y.extent(1), 64));
    Var acc = load(bias, {0, n}, {1, 64});
    for (Index k : range(cdiv(x.extent(1), 256))) acc = mma(load(x, {0, k}, {1, 256}), load(w, {k, n}, {256, 64}), acc);
    store(y, {0, n}, acc);
  });
  // Partial sums that are combined in place.
  kernels.add("thin_alone", [](In<f32, 2> x, In<f32, 2> w, In<f32, 2> bias, Out<f32, 2> y) {
    store(y, {0, 0}, mma(load(x, {0, 0}, {2, 256}), load(w, {0, 0}, {256, 64}), load(bias, {0, 0}, {2, 64})));
  });
  // An operand that does not fit into shared memory.
  kernels.add("beyond", [](In<f32, 2> x, In<f32, 2> w, Out<f32, 2> y) {
    store(y, {0, 0}, mma(load(x, {0, 0}, {64, 1024}) * 2.0f, load(w, {0, 0}, {1024, 64}) + 1.0f, zeros<f32>({64, 64})));
  });
}

const Kernels& all() {
  static const Kernels kernels = [] {
    Kernels made;
    add_moves(made);
    add_effects(made);
    add_reductions(made);
    add_matmuls(made);
    return made;
  }();
  return kernels;
}

}  // namespace

const std::vector<std::string>& plan_kernels() { return all().names; }

const Graph& plan_graph(std::string_view kernel) {
  const auto found = all().graphs.find(kernel);
  if (found == all().graphs.end()) throw InternalError("there is no kernel '" + std::string(kernel) + "'");
  return found->second;
}

codegen::Plan plan_of(std::string_view kernel, Arch arch) {
  const Graph& graph = plan_graph(kernel);
  return codegen::make_plan(graph, dense_variant(graph), arch, {});
}
