// Tiles whose axes a reshape merges into rows of a matmul's operand, or splits before a store: boxes of several axes,
// by TMA and by cp.async.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "codegen/kernel_source.hpp"
#include "codegen/plan/plan_text.hpp"
#include "support/catch.hpp"
#include "support/compiled_device.hpp"
#include "support/devices.hpp"
#include "support/plan_steps.hpp"
#include "support/plans.hpp"
#include "support/planted_faults.hpp"
#include "support/tensors.hpp"
#include "tessera/tessera.hpp"

namespace test_merged_axes {

using namespace tessera::internal;
using namespace tessera::internal::codegen;
template <class T, int R>
using Result = tessera::internal::Out<T, R>;

namespace {

// --- attention whose rows are tokens and the heads that share keys

struct Packed {
  int bm, bn, d, group;
  bool causal = true;
  bool heads_first = false;  ///< rows are heads, then tokens: q is loaded as [group, tokens, d]
  bool paged = false;        ///< keys are in pages of 16; otherwise in one
};

/// q and o [tokens, heads, d], k and v [pages, keys of a page, heads / group, d]; token i is at position keys - tokens
/// + i.
template <class T>
auto attention(const Packed& of) {
  return kernel("packed", [=](In<T, 3> q, In<T, 4> k, In<T, 4> v, Result<T, 3> o, Scalar<f32> scale) {
    const auto [bm, bn, d, group, causal, heads_first, paged] = of;
    const int tokens = bm / group;
    require(q.extent(1) == k.extent(2) * group, "a head of keys for each group of heads of queries");
    Tile count = k.extent(0) * k.extent(1);
    auto [m, head] = blocks(cdiv(q.extent(0), tokens), k.extent(2));
    Tile row = iota({bm, 1}, 0);
    Tile token = heads_first ? Tile(m * tokens + row % tokens) : Tile((m * bm + row) / group);
    Tile position = count - q.extent(0) + token;
    const auto heads = q.permute({1, 0, 2});
    Tile packed = heads_first ? Tile(load(heads, {head, m, 0}, {group, tokens, d}))
                              : Tile(load(q, {m, head, 0}, {tokens, group, d}));
    Tile queries = reshape(packed, {bm, d});
    Var top = full<f32>({bm, 1}, -1e30), norm = zeros<f32>({bm, 1}), acc = zeros<f32>({bm, d});
    Tile last = causal ? Tile(minimum(count - q.extent(0) + (m + 1) * tokens, count)) : Tile(count);
    for (Index j : range(cdiv(last, bn))) {
      Tile column = j * bn + iota({1, bn}, 1);
      Tile seen = causal ? Tile(column <= position) : Tile(column < count);
      const auto rows = [&](const auto& x) {
        return paged ? Tile(load(x, {j, 0, head, 0}, {bn / 16, 16, 1, d}))
                     : Tile(load(x, {0, j, head, 0}, {1, bn, 1, d}));
      };
      Tile keys = reshape(rows(k), {bn, d}), values = reshape(rows(v), {bn, d});
      Tile s = where(seen, mma(queries, transpose(keys), zeros<f32>({bm, bn})) * (scale * log2e), -inf);
      Tile hi = maximum(top, max(s, 1)), p = exp2(s - hi), shrink = exp2(top - hi);
      norm = norm * shrink + sum(p, 1);
      acc = mma(cast<T>(p), values, acc * shrink);
      top = hi;
    }
    Tile out = acc / maximum(norm, 1e-30);
    heads_first ? store(o.permute({1, 0, 2}), {head, m, 0}, reshape(cast<T>(out), {group, tokens, d}))
                : store(o, {m, head, 0}, cast<T>(reshape(out, {tokens, group, d})));
  });
}

std::string note(const Plan& plan) { return has_roles(plan) ? notes(plan).front() : why_not(plan); }

template <class T>
void check(const Packed& of, int tokens, int keys, int kv_heads) {
  CAPTURE(of.bm, of.bn, of.d, of.group, of.causal, of.heads_first, of.paged, tokens, keys, kv_heads);
  const int heads = kv_heads * of.group, d = of.d;
  const auto values = [&](int count, unsigned seed) {
    std::mt19937 rng(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<T> all(static_cast<std::size_t>(count));
    for (T& value : all) value = T(uniform(rng));
    return all;
  };
  const std::vector<T> q = values(tokens * heads * d, 1), k = values(keys * kv_heads * d, 2),
                       v = values(keys * kv_heads * d, 3);
  auto o = tensor<T, 3>({tokens, heads, d}, std::vector<T>(q.size(), T(std::numeric_limits<float>::quiet_NaN())));
  const double scale = 1 / std::sqrt(d);
  const int page = of.paged ? 16 : keys;
  const std::array<std::int64_t, 4> of_keys{keys / page, page, kv_heads, d};
  launch(test_device().stream(), attention<T>(of), tensor<T, 3>({tokens, heads, d}, q), tensor<T, 4>(of_keys, k),
         tensor<T, 4>(of_keys, v), o, scale);
  const std::vector<T> got = o.to_vector();
  const auto at = [](const std::vector<T>& x, int i) {
    return double{static_cast<float>(x[static_cast<std::size_t>(i)])};
  };
  double worst = 0;
  for (int token = 0; token < tokens; ++token)
    for (int head = 0; head < heads; ++head) {
      std::vector<double> sums(static_cast<std::size_t>(d));
      double norm = 0;
      const int seen = of.causal ? keys - tokens + token + 1 : keys, row = (token * heads + head) * d;
      for (int j = 0; j < seen; ++j) {
        const int key = (j * kv_heads + head / of.group) * d;
        double score = 0;
        for (int i = 0; i < d; ++i) score += at(q, row + i) * at(k, key + i);
        const double p = std::exp(score * scale);
        norm += p;
        for (int i = 0; i < d; ++i) sums[static_cast<std::size_t>(i)] += p * at(v, key + i);
      }
      for (int i = 0; i < d; ++i) {
        const double error = std::abs(at(got, row + i) - sums[static_cast<std::size_t>(i)] / norm);
        if (!(error <= worst)) worst = std::isnan(error) ? 1e30 : error;
      }
    }
  CHECK(worst <= (std::is_same_v<T, bf16> ? 8e-3 : 1e-3));  // probabilities and the result are rounded
}

// --- matmuls whose rows are two axes of x and y

struct Rows {
  int b, t, n, k;
  bool by_columns = false;  ///< x is [k, b, t] in memory
  bool split_k = false;     ///< w is loaded as [4, k / 4, n]
  bool residual = false;
};
template <class T, class Sum = f32>
auto matmul(const Rows& of) {
  return kernel("rows", [=](In<T, 3> x, In<T, 3> w, In<T, 3> z, Result<T, 3> y) {
    const auto [b, t, n, k, by_columns, split_k, residual] = of;
    auto [i, j, l] = blocks(cdiv(y.extent(0), b), cdiv(y.extent(1), t), cdiv(y.extent(2), n));
    Var sums = zeros<Sum>({b * t, n});
    const int inner = split_k ? k / 4 : k;
    for (Index at : range(cdiv(x.extent(by_columns ? 0 : 2), k))) {
      Tile xs = by_columns ? Tile(transpose(reshape(load(x, {at, i, j}, {k, b, t}), {k, b * t})))
                           : Tile(reshape(load(x, {i, j, at}, {b, t, k}), {b * t, k}));
      Tile ws = split_k ? Tile(reshape(load(w, {at, 0, l}, {4, inner, n}), {k, n}))
                        : Tile(reshape(load(w, {0, at, l}, {1, k, n}), {k, n}));
      sums = mma(xs, ws, sums);
    }
    if (residual)
      store(y, {i, j, l}, cast<T>(reshape(maximum(sums, 0), {b, t, n}) + cast<f32>(load(z, {i, j, l}, {b, t, n}))));
    else
      store(y, {i, j, l}, reshape(cast<T>(sums), {b, t, n}));
  });
}

/// Small integers, whose sums are exact.
template <class T>
void check(const Rows& of, int b, int t, int n, int k) {
  CAPTURE(of.b, of.t, of.n, of.k, of.by_columns, of.split_k, of.residual, b, t, n, k);
  const auto values = [](int count, unsigned seed) {
    std::mt19937 rng(seed);
    std::vector<T> all(static_cast<std::size_t>(count));
    for (T& value : all) value = T(static_cast<float>(static_cast<int>(rng() % 5) - 2));
    return all;
  };
  const std::vector<T> x = values(b * t * k, 1), w = values(k * n, 2), z = values(b * t * n, 3);
  auto y = tensor<T, 3>({b, t, n}, std::vector<T>(z.size()));
  const std::array<std::int64_t, 3> of_x =
      of.by_columns ? std::array<std::int64_t, 3>{k, b, t} : std::array<std::int64_t, 3>{b, t, k};
  const int inner = of.split_k ? of.k / 4 : k;
  launch(test_device().stream(), matmul<T>(of), tensor<T, 3>(of_x, x), tensor<T, 3>({k / inner, inner, n}, w),
         tensor<T, 3>({b, t, n}, z), y);
  const std::vector<T> got = y.to_vector();
  const auto at = [](const std::vector<T>& all, int i) { return static_cast<float>(all[static_cast<std::size_t>(i)]); };
  int wrong = 0;
  for (int row = 0; row < b * t; ++row)
    for (int column = 0; column < n; ++column) {
      float sum = 0;
      for (int i = 0; i < k; ++i) sum += at(x, of.by_columns ? i * b * t + row : row * k + i) * at(w, i * n + column);
      if (of.residual) sum = std::max(sum, 0.0f) + at(z, row * n + column);
      wrong += at(got, row * n + column) != static_cast<float>(T(sum));
    }
  CHECK(wrong == 0);
}

/// The boxes of the plan's tensor maps, as text.
std::vector<std::string> boxes(const Plan& plan) {
  std::vector<std::string> all;
  for (const TensorMap& map : plan.tensor_maps)
    all.push_back(fmt::format("{}{}", map.store ? "to " : "", fmt::join(map.tensor.box, ",")));
  return all;
}

}  // namespace

TEST_CASE("merged axes: attention of packed heads, by wgmma", "[cpu]") {
  Cases cases(10);
  for (const int group : {1, 2, 4, 8, 16, 32, 64})
    for (const bool causal : {true, false})
      if (!cases.skip()) check<bf16>({64, 64, 64, group, causal}, 149 / group + 1, 150, 2);
  if (!cases.skip()) check<bf16>({128, 128, 128, 4}, 45, 45, 2);
  if (!cases.skip()) check<f16>({128, 64, 64, 8, true, true}, 37, 80, 2);
  if (!cases.skip()) check<bf16>({64, 64, 64, 4, true, true}, 37, 37, 1);
  if (!cases.skip()) check<bf16>({64, 64, 64, 4, false, false, true}, 37, 96, 2);
  if (!cases.skip()) check<bf16>({192, 64, 64, 64}, 7, 100, 1);
}

TEST_CASE("merged axes: attention of packed heads, by mma.sync", "[cpu]") {
  check<bf16>({48, 64, 64, 3}, 20, 50, 2);
  check<bf16>({192, 64, 64, 3}, 70, 70, 2);
  check<bf16>({32, 64, 32, 4, true, true}, 13, 40, 2);
  check<f16>({32, 32, 64, 16}, 5, 33, 1);
}

TEST_CASE("merged axes: rows of several axes of a matmul", "[cpu]") {
  Cases cases(8);
  const auto both = [&](const Rows& of) {
    if (!cases.skip()) check<bf16>(of, of.b, of.t, of.n, of.k);
    if (!cases.skip()) check<bf16>(of, of.b + 1, of.t + of.t / 2 + 1, of.n + 24, of.k + 64);
  };
  both({4, 32, 128, 64});
  both({2, 32, 64, 64, false, false, true});
  both({8, 16, 128, 64, true});
  both({1, 64, 64, 64});
  both({64, 1, 64, 128});
  both({3, 64, 64, 64});  // 192 rows: mma.sync
  both({4, 8, 64, 64});
  both({3, 16, 64, 64});
  both({5, 7, 48, 16, false, false, true});
  if (!cases.skip()) check<bf16>({2, 64, 128, 64, false, true}, 3, 70, 100, 192);
  if (!cases.skip()) check<f32>({4, 8, 64, 16}, 5, 11, 70, 36);
  if (!cases.skip()) check<f32>({4, 1, 64, 16, false, true}, 5, 3, 64, 32);  // a gemv
}

TEST_CASE("merged axes: tiles in registers", "[cpu]") {
  const auto check = [](int a, int b, int c, bool splits) {
    CAPTURE(a, b, c, splits);
    const auto product = [=](const In<f32, 3>& x, const In<f32, 1>& z, const Index& i) {
      Tile rows = reshape(load(x, {i, 0, 0}, {a, b, c}), {a * b, c});
      return Tile(rows * 2.0f + reshape(load(z, {i}, {a * b}), {a * b, 1}));
    };
    const int n = 2 * a + 1;
    std::vector<float> x = numbered<float>(static_cast<std::size_t>(n * b * c)),
                       z = numbered<float>(static_cast<std::size_t>(n * b));
    const auto of_x = tensor<f32, 3>({n, b, c}, x);
    const auto of_z = tensor<f32, 1>({n * b}, z);
    const auto y = tensor<f32, 2>({n * b, c}, std::vector<float>(x.size()));
    const auto y3 = tensor<f32, 3>({n, b, c}, std::vector<float>(x.size()));
    if (splits)
      launch(test_device().stream(),
             kernel(
                 "split",
                 [=](In<f32, 3> x, In<f32, 1> z, Result<f32, 3> y) {
        Index i = blocks(cdiv(x.extent(0), a));
        store(y, {i, 0, 0}, reshape(product(x, z, i), {a, b, c}));
                 }),
             of_x, of_z, y3);
    else
      launch(test_device().stream(),
             kernel(
                 "merged",
                 [=](In<f32, 3> x, In<f32, 1> z, Result<f32, 2> y) {
        Index i = blocks(cdiv(x.extent(0), a));
        store(y, {i, 0}, product(x, z, i));
                 }),
             of_x, of_z, y);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 2 * x[i] + z[i / static_cast<std::size_t>(c)];
    CHECK((splits ? y3.to_vector() : y.to_vector()) == x);
  };
  for (const bool splits : {false, true}) {
    check(4, 6, 32, splits);
    check(3, 5, 16, splits);
    check(2, 64, 8, splits);
    check(16, 4, 128, splits);
  }
}

TEST_CASE("merged axes: a mask of a quotient whose dividend wraps", "[cpu]") {
  const auto wrapping = kernel("wrapping", [](In<bf16, 2> x, Result<f32, 2> y, Scalar<i32> shift) {
    Index m = blocks(cdiv(y.extent(0), 64));
    Tile ones = load(x, {0, 0}, {64, 64});
    Var top = zeros<f32>({64, 1}), acc = zeros<f32>({64, 64});
    for (Index j : range(cdiv(x.extent(0), 64))) {
      Tile seen = (shift + m * 64 + iota({64, 1}, 0)) / 2 > j;
      Tile s = where(seen, mma(ones, transpose(load(x, {j, 0}, {64, 64})), zeros<f32>({64, 64})), 0.0f);
      top = maximum(top, max(s, 1));
      acc = mma(cast<bf16>(s), ones, acc);
    }
    store(y, {m, 0}, acc + top);
  });
  CHECK(has_roles(plan_with(wrapping.graph())));
  const auto y = tensor<f32, 2>({64, 64}, std::vector<float>(64 * 64));
  launch(test_device().stream(), wrapping, tensor<bf16, 2>({64, 64}, std::vector<bf16>(64 * 64, bf16(1))), y,
         std::numeric_limits<int>::max() - 31);
  const std::vector<float> got = y.to_vector();
  CHECK((got[31 * 64] == 4096 + 64 && got[32 * 64] == 0));  // rows from 32 on are negative
}

TEST_CASE("an axis that stays may be covered beyond its end, even if it has one element", "[plan]") {
  const Layout layout = accumulator_layout({16, 1}, 1, 1);
  CHECK(layout.reshaped({16, 1}, {16, 1}) == layout);
  CHECK(layout.reshaped({16, 1}, {1, 16, 1}).has_value());
  CHECK_FALSE(layout.reshaped({16, 1}, {16}).has_value());
}

TEST_CASE("rows of several axes are loaded by boxes of these axes", "[plan]") {
  const Plan plan = plan_with(attention<bf16>({64, 64, 128, 4}).graph());
  INFO(note(plan));
  REQUIRE(has_roles(plan));
  CHECK(plan.workspace_bytes == 0);
  CHECK(plan.scratch.size() == 0);
  CHECK(boxes(plan) == std::vector<std::string>{"64,4,16,1,1", "64,1,64,1,1", "64,1,64,1,1"});
  CHECK(boxes(plan_with(attention<bf16>({64, 64, 64, 4, false, false, true}).graph()))[1] == "64,1,16,4,1");
  // The mask is evaluated in tiles that it cuts.
  CHECK(count<codegen::Branch>(plan) == count<codegen::Branch>(plan_with(attention<bf16>({64, 64, 128, 1}).graph())));
  const Plan first = plan_with(attention<bf16>({64, 64, 128, 4, true, true}).graph());
  REQUIRE(has_roles(first));
  CHECK(boxes(first)[0] == "64,16,4,1,1");
  CHECK(first.tensor_maps[TensorMapId{0}].tensor.axes == std::array<std::int8_t, 5>{2, 0, 1, -1, -1});
  const auto of_rows = [](const Rows& of) { return plan_with(matmul<bf16>(of).graph()); };
  REQUIRE(has_roles(of_rows({4, 32, 128, 64})));
  CHECK(boxes(of_rows({4, 32, 128, 64})) == std::vector<std::string>{"64,32,4,1,1", "64,64,1,1,1", "to 64,32,4,1,1"});
  CHECK(boxes(of_rows({2, 64, 128, 64, false, true}))[1] == "64,16,4,1,1");
  CHECK(why_not(of_rows({8, 16, 128, 64, true})) ==
        "a reshape makes the columns of [64,128] of several axes of [64,8,16]");
}

TEST_CASE("the verifier reports boxes that are not the rows of their buffer", "[plan]") {
  const auto box = [](Plan & plan) -> auto& { return plan.tensor_maps[TensorMapId{0}].tensor.box; };
  const PlantedFault faults[] = {
      {"a box of half of the rows", [&](Plan& p) { box(p)[2] /= 2; }, "a box of 32 rows in a panel of 64"},
      {"a box whose rows are in another order", [&](Plan& p) { std::swap(box(p)[1], box(p)[2]); },
       "boxes of 16 along coordinate 1 of tiles of 4"},
  };
  check_reported(plan_with(attention<bf16>({64, 64, 128, 4}).graph()), faults);
}

TEST_CASE("rows of several axes are not multicast, not copied by threads, and not split within a warp", "[plan]") {
  const auto several = [](bool multicasts, bool aligned) {
    return plan_with(matmul<bf16>({2, 64, 128, 64, false, true}).graph(), [=](Variant& variant) {
      variant.multicast = multicasts;
      if (!aligned) variant.tensors[1].tma_addressable = false, variant.tensors[1].alignment = 2;
    });
  };
  CHECK(note(several(true, true)).find("multicast") == std::string::npos);
  CHECK(note(several(false, false)) ==
        "the right operand cannot be loaded by TMA, as rows of several axes must be for wgmma");
  CHECK(why_not(plan_with(attention<bf16>({192, 64, 64, 2, true, true}).graph())) ==
        "threads exchange elements of tiles, for the reshape of [192,64] to [2,96,64]");
}

TEST_CASE("packed attention has the plan of attention with as many rows", "[plan]") {
  const auto summary = [](const Plan& plan) {
    INFO(note(plan));
    return fmt::format("{} warps, {} registers, {} + {} bytes, {}", plan.threads() / 32,
                       plan.phases[0].roles.back().registers, plan.shared_bytes, plan.workspace_bytes, note(plan));
  };
  for (const auto& [bm, bn, d] : {std::array{64, 64, 128}, {128, 128, 128}, {128, 128, 64}, {192, 128, 64}}) {
    const std::string plain = summary(plan_with(attention<bf16>({bm, bn, d, 1}).graph()));
    for (const int group : {2, 4, 8, 64}) {
      CHECK(summary(plan_with(attention<bf16>({bm, bn, d, group}).graph())) == plain);
      if (bm != 192) CHECK(summary(plan_with(attention<bf16>({bm, bn, d, group, true, true}).graph())) == plain);
    }
  }
}

TEST_CASE("packed attention compiles without spills", "[generate]") {
  std::vector<KernelSource> sources, of_sm_80;
  for (const Packed& of : {Packed{64, 64, 128, 4}, Packed{128, 128, 128, 4}, Packed{192, 128, 64, 8},
                           Packed{128, 176, 128, 4}, Packed{64, 64, 64, 64}, Packed{128, 128, 128, 4, false},
                           Packed{64, 128, 128, 4, true, true}, Packed{48, 64, 64, 3}})
    sources.push_back(kernel_source(plan_with(attention<bf16>(of).graph())));
  for (const Rows& of : {Rows{4, 32, 128, 64}, Rows{8, 16, 128, 64, true}, Rows{2, 64, 128, 64, false, true}})
    for (const Arch arch : {Arch::sm_80, Arch::sm_90a})
      (arch == Arch::sm_80 ? of_sm_80 : sources)
          .push_back(kernel_source(plan_with(matmul<bf16>(of).graph(), {}, arch)));
  check_compiled(sources);
  check_compiled(of_sm_80, Arch::sm_80);
}

}  // namespace test_merged_axes
