// Matmuls of few rows by mma.sync: warps have slices of k, whose sums are added up after the loop (sliced-K). Plans,
// and results on any device.
#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "support/catch.hpp"
#include "support/plan_steps.hpp"
#include "support/plans.hpp"
#include "support/planted_faults.hpp"
#include "support/tensors.hpp"
#include "tessera/tessera.hpp"

namespace test_sliced_k {

using namespace tessera::internal;
using codegen::Mma;
using codegen::Plan;
using tessera::internal::Out;

namespace {

struct Tiles {
  int rows, keys, d;
};
struct Kind {
  bool causal = false;
  int warps = 0;                                                            ///< hinted
  enum { plain, looks, adds, scales_queries, keeps_sums } reading = plain;  ///< what else the loop does
};

/// softmax(q k^T scale) v with operands of type P that are stored as A: q [queries, d], k and v [keys, d].
template <class P, class A>
auto attention(const Tiles& of, const Kind& kind = {}) {
  return kernel("attention", [=](In<A, 2> q, In<A, 2> k, In<A, 2> v, Out<f32, 2> o, Scalar<f32> scale) {
    if (kind.warps) hints({.warps = kind.warps});
    const auto [bm, bn, d] = of;
    Index m = blocks(cdiv(q.extent(0), bm));
    Tile loaded = cast<P>(load(q, {m, 0}, {bm, d}));
    Tile queries = kind.reading == Kind::scales_queries ? cast<P>(cast<f32>(loaded) * 2.0f) : loaded;
    Tile rows = k.extent(0) - q.extent(0) + m * bm + iota({bm, 1}, 0);
    Tile factor = scale * (kind.reading == Kind::scales_queries ? 0.5 * log2e : log2e);
    Var top = full<f32>({bm, 1}, -1e30), norm = zeros<f32>({bm, 1}), acc = zeros<f32>({bm, d}),
        most = zeros<f32>({bm, 1});
    for (Index j : range(cdiv(k.extent(0), bn))) {
      Tile columns = j * bn + iota({1, bn}, 1);
      Tile seen = kind.causal ? Tile(columns <= rows) : Tile(columns < k.extent(0));
      Tile keys = cast<P>(load(k, {j, 0}, {bn, d})), values = cast<P>(load(v, {j, 0}, {bn, d}));
      Tile s = where(seen, mma(queries, transpose(keys), zeros<f32>({bm, bn})) * factor, -inf);
      Tile hi = maximum(top, max(s, 1)), p = exp2(s - hi), shrink = exp2(top - hi);
      norm = norm * shrink + sum(p, 1);
      if (kind.reading == Kind::keeps_sums) most = maximum(most, norm);
      acc = mma(cast<P>(p), values, kind.reading == Kind::adds ? Tile(acc + (shrink - shrink)) : Tile(acc * shrink));
      top = kind.reading == Kind::looks ? Tile(minimum(hi, max(acc, 1) + 1e30f)) : Tile(hi);
    }
    store(o, {m, 0}, acc / (kind.reading == Kind::keeps_sums ? Tile(norm + 0.0f * most) : Tile(norm)));
  });
}

Plan attention_plan(const Tiles& of, const Kind& kind = {}, std::string_view arch = "sm_80") {
  return plan_with(attention<bf16, bf16>(of, kind).graph(), {}, Arch::parse(arch));
}

template <class A>
std::vector<A> random_values(int count, unsigned seed) {
  std::mt19937 rng(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<A> values(static_cast<std::size_t>(count));
  for (A& value : values) value = A(uniform(rng));
  return values;
}

/// Compares attention of queries at the last positions with double precision.
template <class P, class A = P>
void check_attention(const Tiles& tiles, int queries, int keys, const Kind& kind = {}) {
  CAPTURE(tiles.rows, tiles.keys, tiles.d, queries, keys, kind.causal, kind.warps, static_cast<int>(kind.reading));
  const auto k = attention<P, A>(tiles, kind);
  const int d = tiles.d;
  const auto q = random_values<A>(queries * d, 1), of_keys = random_values<A>(keys * d, 2),
             of_values = random_values<A>(keys * d, 3);
  auto o = tensor<f32, 2>({queries, d}, std::vector<f32>(q.size(), std::numeric_limits<float>::quiet_NaN()));
  const double scale = 1 / std::sqrt(d);
  launch(test_device().stream(), k, tensor<A, 2>({queries, d}, q), tensor<A, 2>({keys, d}, of_keys),
         tensor<A, 2>({keys, d}, of_values), o, scale);
  const std::vector<f32> got = o.to_vector();
  const auto at = [&](const std::vector<A>& x, int row, int i) {
    return static_cast<double>(static_cast<float>(x[static_cast<std::size_t>(row * d + i)]));
  };
  // Probabilities are rounded: to 8 bits for bf16, to 11 for the others.
  const double allowed = std::is_same_v<P, bf16> ? 8e-3 : 1e-3;
  double worst = 0;
  for (int row = 0; row < queries; ++row) {
    std::vector<double> sums(static_cast<std::size_t>(d));
    double norm = 0;
    for (int column = 0; column < (kind.causal ? keys - queries + row + 1 : keys); ++column) {
      double score = 0;
      for (int i = 0; i < d; ++i) score += at(q, row, i) * at(of_keys, column, i);
      const double p = std::exp(score * scale);
      norm += p;
      for (int i = 0; i < d; ++i) sums[static_cast<std::size_t>(i)] += p * at(of_values, column, i);
    }
    for (int i = 0; i < d; ++i) {
      const double error = std::abs(static_cast<double>(got[static_cast<std::size_t>(row * d + i)]) -
                                    sums[static_cast<std::size_t>(i)] / norm);
      if (!(error <= worst)) worst = std::isnan(error) ? 1e30 : error;
    }
  }
  CHECK(worst <= allowed);
}

/// Warps along m, n and k of the nth matmul.
std::array<int, 3> warps_of(Plan plan, std::size_t nth) {
  const codegen::Matmul& matmul = the<Mma>(plan, nth).matmul;
  return {matmul.warps_m, matmul.warps_n, matmul.slices()};
}
using Warps = std::array<int, 3>;

}  // namespace

TEST_CASE("attention of few rows has four warps, which divide the keys", "[plan]") {
  struct Case {
    Tiles tiles;
    int hinted;
    Warps scores, values;
  };
  for (const auto& [tiles, hinted, scores, values] :
       std::initializer_list<Case>{{{16, 128, 64}, 0, {1, 4, 1}, {1, 1, 4}},
                                   {{16, 64, 128}, 0, {1, 4, 1}, {1, 1, 4}},
                                   {{16, 128, 64}, 8, {1, 8, 1}, {1, 1, 8}},
                                   {{16, 64, 64}, 8, {1, 4, 1}, {1, 1, 4}},  // 16 keys for each warp are the fewest
                                   {{16, 96, 64}, 0, {1, 2, 1}, {1, 1, 2}},
                                   {{16, 32, 64}, 0, {1, 2, 1}, {1, 1, 2}},
                                   {{16, 16, 64}, 8, {1, 1, 1}, {1, 1, 1}},
                                   {{16, 40, 64}, 0, {1, 1, 1}, {1, 1, 1}},
                                   {{32, 64, 64}, 0, {2, 2, 1}, {2, 1, 2}},
                                   {{32, 128, 64}, 8, {2, 4, 1}, {2, 1, 4}},
                                   {{64, 128, 64}, 0, {4, 1, 1}, {4, 1, 1}},
                                   {{64, 128, 64}, 8, {4, 2, 1}, {4, 1, 2}},
                                   {{128, 64, 64}, 8, {8, 1, 1}, {8, 1, 1}}}) {
    CAPTURE(tiles.rows, tiles.keys, tiles.d, hinted);
    Plan plan = attention_plan(tiles, {.warps = hinted});
    CHECK(warps_of(plan, 0) == scores);
    CHECK(warps_of(plan, 1) == values);
    const int warps = scores[0] * scores[1];
    CHECK(plan.threads() == 32 * warps);
    // Probabilities are the left operand in the registers that computed them, if they are whole instructions.
    const codegen::MatmulOperand& left = the<Mma>(plan, 1).matmul.a;
    const bool whole = tiles.keys % 16 == 0;
    CHECK((left.value.index != -1) == whole);
    CHECK(count<codegen::StoreShared>(plan) == (whole ? 0 : 1));
    CHECK(count<codegen::StoreScratch>(plan) == 0);
    CHECK(std::ranges::any_of(notes(plan), [](const std::string& note) { return note.starts_with("hint"); }) ==
          (hinted != 0 && hinted != warps));
  }
}

TEST_CASE("attention of few rows has 16 keys or more for each warp, whatever an instruction takes", "[plan]") {
  const auto warps = [](int keys) {
    return warps_of(plan_with(attention<tf32, f32>({16, keys, 64}).graph(), {}, Arch::sm_80), 1);
  };
  CHECK((warps(64) == Warps{1, 1, 4} && warps(32) == Warps{1, 1, 2} && warps(16) == Warps{1, 1, 1}));
}

TEST_CASE("warps do not have slices of k where the loop reads the sums", "[plan]") {
  for (const auto reading : {Kind::looks, Kind::adds})
    CHECK(warps_of(attention_plan({16, 128, 64}, {.reading = reading}), 1) == Warps{1, 1, 1});
  const Plan scaled = attention_plan({16, 128, 64}, {.reading = Kind::scales_queries});
  CHECK(warps_of(scaled, 0) == Warps{1, 4, 1});
  CHECK(warps_of(scaled, 1) == Warps{1, 1, 4});
}

TEST_CASE("attention of few rows leaves shared memory to other CTAs", "[plan]") {
  for (const auto& [arch, keys, most] : {std::tuple{"sm_80", 128, 68},
                                         {"sm_89", 128, 68},
                                         {"sm_90a", 128, 68},
                                         {"sm_90a", 64, 53},
                                         {"sm_120", 128, 68}}) {
    CAPTURE(arch, keys);
    CHECK(attention_plan({16, keys, 64}, {}, arch).shared_bytes <= most * 1024);
  }
  CHECK(attention_plan({64, 64, 64}).shared_bytes == 72 * 1024);  // four stages
}

TEST_CASE("sums of slices of k, and of the rows that warps share, are added up once, after the loop", "[plan]") {
  Plan plan = attention_plan({16, 128, 64});
  const codegen::Matmul& matmul = the<Mma>(plan, 1).matmul;
  CHECK((matmul.partial && matmul.warps_k == 3 && matmul.k_steps() == 2));
  const StepPlace loop = place_of<codegen::Loop>(plan);
  const std::vector<StepPlace> sums = places_of<codegen::LaneReduce>(plan);
  REQUIRE(sums.size() == 2);
  for (const StepPlace& sum : sums) {
    CHECK((sum.body == loop.body && sum.index > loop.index));
    CHECK(sum.step().action.get<codegen::LaneReduce>().warps == 3);
  }
  CHECK((the<codegen::LaneReduce>(plan, 0).lanes == 3 && the<codegen::LaneReduce>(plan, 1).lanes == 0));
  // One warp has the initial sums, the others begin with 0.
  int begun = 0;
  for (const StepPlace& place : places_of<codegen::Compute>(plan))
    begun += place.step().action.get<codegen::Compute>().zero_warps == 3;
  CHECK(begun == 2);
  // Within an iteration only the largest scores cross warps: one barrier for them, and one for the operands.
  const auto barriers = [](Plan of) {
    int in_loop = 0;
    each_step(the<codegen::Loop>(of).arrive, [&](StepPlace at) { in_loop += at.step().action.is<codegen::Barrier>(); });
    each_step(the<codegen::Loop>(of).body, [&](StepPlace at) { in_loop += at.step().action.is<codegen::Barrier>(); });
    return in_loop;
  };
  CHECK(barriers(plan) == 2);
  // The loop reads the sums of rows: they are complete in each iteration.
  Plan keeps = attention_plan({16, 128, 64}, {.reading = Kind::keeps_sums});
  CHECK(count<codegen::LaneReduce>(keeps) == 1);
  CHECK(barriers(keeps) > 2);
}

namespace {

const PlantedFault faults[] = {
    {"sums of slices are not added up", [](Plan& p) { place_of<codegen::LaneReduce>(p, 1).drop(); }, "partial sums"},
    {"sums of rows are not added up", [](Plan& p) { place_of<codegen::LaneReduce>(p, 0).drop(); }, "partial sums"},
    {"sums of slices are added up twice",
     [](Plan& p) {
  const StepPlace place = place_of<codegen::LaneReduce>(p, 1);
  place.body->insert(place.body->begin() + static_cast<std::ptrdiff_t>(place.index), place.step());
}, "are reduced, but"},
    {"sums of half of the slices", [](Plan& p) { the<codegen::LaneReduce>(p, 1).warps = 1; }, "are reduced, but"},
    {"sums are read before all are there",
     [](Plan& p) {
  codegen::Body& across = the<codegen::LaneReduce>(p, 1).across;
  codegen::Body& pass = across[0].action.get<codegen::CrossWarpReduce>().per_chunk;
  std::erase_if(pass, [](const codegen::Step& step) {
    const codegen::Barrier* barrier = step.action.as<codegen::Barrier>();
    return barrier && !barrier->again;
  });
}, "barrier"},
    {"every slice begins with the initial sums",
     [](Plan& p) {
  for (const StepPlace& place : places_of<codegen::Compute>(p))
    place.step().action.get<codegen::Compute>().zero_warps = 0;
}, "accumulate, but"},
    {"slices of half of k", [](Plan& p) { the<Mma>(p, 1).matmul.warps_k = 1; }, "warps in a role of"},
    {"slices that are no whole instructions", [](Plan& p) { the<Mma>(p, 1).matmul.k = 96; },
     "slices of whole instructions"},
    {"scores that two warps have", [](Plan& p) { the<Mma>(p, 0).matmul.warps_n = 2; }, "warps in a role of"},
    {"largest scores stay apart",
     [](Plan& p) {
  codegen::Reduce& reduce = the<codegen::Reduce>(p, 0);
  reduce.partial = true;
  reduce.across.clear();
}, "partial results of 'max' stay apart"},
    {"a complete value is added to sums of rows",
     [](Plan& p) {
  const codegen::ValueId sums = the<codegen::Reduce>(p, 1).out;
  for (const StepPlace& place : places_of<codegen::Compute>(p))
    for (codegen::Term& term : place.step().action.get<codegen::Compute>().sweep.expression.terms)
      for (codegen::Operand& operand : term.in)
        if (operand.kind == codegen::Operand::Kind::value && operand.value == sums)
          operand.kind = codegen::Operand::Kind::literal;
}, "'add' takes partial sums"},
    {"sums of rows are taken for complete ones", [](Plan& p) { the<codegen::Reduce>(p, 1).partial = false; },
     "hold partials, but do not reduce them"},
};

}  // namespace

TEST_CASE("the verifier reports errors of sliced k", "[plan]") {
  check_reported(attention_plan({16, 128, 64}), faults);
}

TEST_CASE("sliced k: attention of few rows, of each type and width", "[cpu]") {
  Cases cases(20);
  for (const Tiles& tiles : {Tiles{16, 128, 64}, {16, 64, 128}, {32, 64, 64}, {16, 64, 80}, {16, 96, 32}})
    for (const auto& [queries, keys] : {std::pair{16, 128}, {16, 391}, {5, 64}, {37, 260}})
      if (!cases.skip()) check_attention<bf16>(tiles, queries, keys);
  check_attention<f16>({16, 128, 64}, 16, 300);
  check_attention<tf32, f32>({16, 64, 64}, 16, 200);
  check_attention<bf16, f32>({16, 64, 64}, 16, 200);  // operands are converted on the way
}

TEST_CASE("sliced k: attention with masks, hints, and loops that read sums", "[cpu]") {
  for (const auto& [queries, keys] : {std::pair{16, 260}, {37, 37}, {1, 1}})
    check_attention<bf16>({16, 128, 64}, queries, keys, {.causal = true});
  check_attention<bf16>({16, 128, 64}, 16, 300, {.warps = 8});
  check_attention<bf16>({32, 128, 64}, 40, 300, {.causal = true, .warps = 8});
  for (const auto reading : {Kind::looks, Kind::scales_queries, Kind::keeps_sums})
    check_attention<bf16>({16, 64, 64}, 20, 200, {.causal = true, .reading = reading});
}

namespace {

struct Orders {
  bool km = false, nk = false;  ///< x is [k,m], w is [n,k]
};

/// y = b + x w, of small integers, whose sums are exact.
template <class P, class A, class S>
auto narrow(int bm, int bn, int bk, const Orders& orders) {
  return kernel("narrow", [=](In<A, 2> x, In<A, 2> w, In<S, 2> b, Out<S, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), bm), cdiv(y.extent(1), bn));
    Var sums = load(b, {m, n}, {bm, bn});
    for (Index k : range(cdiv(x.extent(orders.km ? 0 : 1), bk))) {
      Tile left = cast<P>(orders.km ? Tile(transpose(load(x, {k, m}, {bk, bm}))) : Tile(load(x, {m, k}, {bm, bk})));
      Tile right = cast<P>(orders.nk ? Tile(transpose(load(w, {n, k}, {bn, bk}))) : Tile(load(w, {k, n}, {bk, bn})));
      sums = mma(left, right, sums);
    }
    store(y, {m, n}, sums);
  });
}

template <class P, class A = P, class S = f32>
void check_narrow(int bm, int bn, int bk, const Warps& warps, const std::array<int, 3>& of, const Orders& orders = {}) {
  const auto [km, nk] = orders;
  CAPTURE(bm, bn, bk, km, nk, name(element_type<P>));
  const auto k = narrow<P, A, S>(bm, bn, bk, orders);
  CHECK(warps_of(plan_with(k.graph(), {}, Arch::sm_80), 0) == warps);
  const auto [rows, columns, depth] = of;
  const auto some = [](int count, unsigned seed) {
    std::vector<int> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>((i * 2654435761u + seed) >> 9 & 3) - 1;
    return values;
  };
  const auto as = [&]<class T>(const std::vector<int>& values, T) {
    std::vector<T> result;
    for (const int value : values) result.push_back(stored<T>(value));
    return result;
  };
  const std::vector<int> x = some(rows * depth, 1), w = some(depth * columns, 2), b = some(rows * columns, 3);
  auto y = tensor<S, 2>({rows, columns}, as(std::vector<int>(b.size(), 77), S()));
  launch(test_device().stream(), k, tensor<A, 2>({km ? depth : rows, km ? rows : depth}, as(x, A())),
         tensor<A, 2>({nk ? columns : depth, nk ? depth : columns}, as(w, A())),
         tensor<S, 2>({rows, columns}, as(b, S())), y);
  const std::vector<S> got = y.to_vector();
  int wrong = 0;
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) {
      const auto at = [](int row, int width, int column) { return static_cast<std::size_t>(row * width + column); };
      int sum = b[at(i, columns, j)];
      for (int l = 0; l < depth; ++l)
        sum += x[km ? at(l, rows, i) : at(i, depth, l)] * w[nk ? at(j, depth, l) : at(l, columns, j)];
      wrong += static_cast<int>(got[at(i, columns, j)]) != sum;
    }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("sliced k: matmuls with too few accumulators for all warps", "[cpu]") {
  for (const Orders& orders : {Orders{}, {.nk = true}, {.km = true}}) {
    check_narrow<bf16>(16, 16, 64, {1, 1, 4}, {20, 18, 200}, orders);
    check_narrow<bf16>(16, 32, 64, {1, 2, 2}, {16, 40, 130}, orders);
    check_narrow<i8, i8, i32>(16, 16, 128, {1, 1, 4}, {20, 18, 300}, orders);
  }
  check_narrow<f16>(32, 16, 128, {2, 1, 2}, {40, 16, 256});
  check_narrow<tf32, f32>(16, 16, 64, {1, 1, 4}, {16, 16, 200});
  check_narrow<bf16, f32>(16, 16, 64, {1, 1, 4}, {16, 16, 200});
  check_narrow<bf16>(16, 16, 48, {1, 4, 1}, {16, 16, 200});  // no four slices of whole instructions
  check_narrow<bf16>(16, 64, 64, {1, 4, 1}, {16, 64, 200});  // each warp has 16 columns
  check_narrow<bf16>(16, 16, 64, {1, 1, 4}, {16, 16, 0});    // no iteration
}

}  // namespace test_sliced_k
