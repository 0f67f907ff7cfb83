// Warp-specialized fused matmuls in a loop, for tiles of sm_90a: on any device, compared with attention in double
// precision without rounding.

#include <cmath>
#include <limits>
#include <random>

#include "codegen/kernel_source.hpp"
#include "codegen/make_plan.hpp"
#include "codegen/passes.hpp"
#include "codegen/plan/remarks.hpp"
#include "codegen/plan/verify/verify_plan.hpp"
#include "codegen/schedule/raster_order.hpp"
#include "support/catch.hpp"
#include "support/compiled_device.hpp"
#include "support/devices.hpp"
#include "support/plan_steps.hpp"
#include "support/plans.hpp"
#include "support/planted_faults.hpp"
#include "support/tensors.hpp"
#include "tessera/tessera.hpp"

namespace test_fused_matmul {

using namespace tessera::internal;
using codegen::Plan;

namespace {

struct AttentionTiles {
  int m, n, d;
};
/// The keys that a query attends to; `square`: causal, with as many keys as queries; `distance`: a window, written as a
/// distance.
enum class Mask { full, causal, square, window, distance, prefix, documents };
constexpr int window_length = 70, prefix_length = 45;

struct Kind {
  bool looks = false;  ///< reads accumulators within the loop: then iterations cannot overlap
  /// Keys and values are the first ones in memory, as many as a tensor says; there may be none, or there is one.
  enum { all, some, one } keys = all;
};
/// q [heads, queries, d], k and v [heads / group, keys, d]: query i is at position keys - queries + i.
template <class T>
auto attention(const AttentionTiles& of, Mask mask, int group, Kind kind = {}, const Hints& wanted = {}) {
  return kernel("attention", [=](In<T, 3> q, In<T, 3> all_k, In<T, 3> all_v, In<i32, 1> filled, In<i32, 1> document,
                                 tessera::internal::Out<T, 3> o, Scalar<f32> scale) {
    const auto [bm, bn, d] = of;
    if (wanted != Hints{}) hints(wanted);
    const bool sliced = kind.keys != Kind::all;
    const Tile count = sliced ? Tile(item(load(filled, {0}, {1}))) : Tile(all_k.extent(1));
    using View = decltype(all_k.slice(1, 0, count));
    const View k = sliced ? all_k.slice(1, 0, count) : View(all_k), v = sliced ? all_v.slice(1, 0, count) : View(all_v);
    require((q.extent(2) == d) & (k.extent(2) == d), "heads as wide as the kernel was made for");
    auto [m, head] = blocks(cdiv(q.extent(1), bm), q.extent(0));
    Tile from = head / group, ahead = mask == Mask::square ? Tile(0 * m) : Tile(count - q.extent(1));
    Tile queries = reshape(load(q, {head, m, 0}, {1, bm, d}), {bm, d});
    Tile rows = ahead + m * bm + iota({bm, 1}, 0);
    Var top = full<f32>({bm, 1}, -1e30), norm = zeros<f32>({bm, 1}), acc = zeros<f32>({bm, d});
    const bool ends = mask == Mask::causal || mask == Mask::square;
    Tile length = ends ? Tile(minimum(count, ahead + (m + 1) * bm)) : count;
    for (Index j : range(cdiv(kind.keys == Kind::one ? Tile(maximum(length, 1)) : length, bn))) {
      Tile columns = j * bn + iota({1, bn}, 1);
      Tile there = columns < count;
      Tile own = reshape(gather(document, reshape(minimum(rows, count - 1), {bm})), {bm, 1});
      Tile seen = ends                     ? Tile(columns <= rows)
                  : mask == Mask::window   ? Tile(there & (columns <= rows) & (columns > rows - window_length))
                  : mask == Mask::distance ? Tile(there & (rows - columns >= 0) & (rows - columns < window_length))
                  : mask == Mask::prefix   ? Tile(there & ((columns <= rows) | (columns < prefix_length)))
                  : mask == Mask::full     ? Tile(there)
                                           : Tile(there & (load(document, {j}, {bn}) == own));
      Tile keys = reshape(load(k, {from, j, 0}, {1, bn, d}), {bn, d});
      Tile values = reshape(load(v, {from, j, 0}, {1, bn, d}), {bn, d});
      Tile s = where(seen, mma(queries, transpose(keys), zeros<f32>({bm, bn})) * (scale * log2e), -inf);
      Tile hi = maximum(top, max(s, 1));
      Tile p = exp2(s - hi), shrink = exp2(top - hi);
      norm = norm * shrink + sum(p, 1);
      acc = mma(cast<T>(p), values, acc * shrink);
      top = kind.looks ? Tile(minimum(hi, max(acc, 1) + 1e30f)) : Tile(hi);
    }
    store(o, {head, m, 0}, reshape(cast<T>(acc / maximum(norm, 1e-30)), {1, bm, d}));
  });
}

std::string first_note(const Plan& plan) { return notes(plan).empty() ? "" : notes(plan).front(); }

struct Sizes {
  int heads = 1, group = 1, queries = 0, keys = 0;
  int room = 0;  ///< after the keys, filled with NaN; then they are a slice
  bool has_key = true;
};

bool sees(Mask mask, int row, int column, const std::vector<std::int32_t>& document) {
  switch (mask) {
    case Mask::full:
      return true;
    case Mask::causal:
    case Mask::square:
      return column <= row;
    case Mask::window:
    case Mask::distance:
      return column <= row && column > row - window_length;
    case Mask::prefix:
      return column <= row || column < prefix_length;
    case Mask::documents:
      return document[static_cast<std::size_t>(row)] == document[static_cast<std::size_t>(column)];
  }
  return false;
}

template <class T>
std::vector<T> random_values(int count, unsigned seed) {
  std::mt19937 rng(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& value : values) value = T(uniform(rng));
  return values;
}

template <class T>
void check(const AttentionTiles& tiles, Mask mask, const Sizes& of, bool shared = true, const Hints& hints = {}) {
  CAPTURE(tiles.m, tiles.n, tiles.d, static_cast<int>(mask), of.heads, of.group, of.queries, of.keys);
  const Kind kind{.keys = of.room == 0 ? Kind::all : of.has_key ? Kind::one : Kind::some};
  const auto k = attention<T>(tiles, mask, of.group, kind, hints);
  const Plan plan = plan_with(k.graph());
  INFO(first_note(plan));
  CHECK((plan.phases[0].roles.size() > 1) == shared);
  const int d = tiles.d, of_keys = of.heads / of.group;
  const auto q = random_values<T>(of.heads * of.queries * d, 1), keys = random_values<T>(of_keys * of.keys * d, 2),
             values = random_values<T>(of_keys * of.keys * d, 3);
  std::vector<std::int32_t> document(static_cast<std::size_t>(of.keys));
  for (int i = 0; i < of.keys; ++i) document[static_cast<std::size_t>(i)] = i / 37;
  const auto in_room = [&](const std::vector<T>& x) {
    std::vector<T> more(static_cast<std::size_t>(of_keys * (of.keys + of.room) * d),
                        T(std::numeric_limits<float>::quiet_NaN()));
    for (int head = 0; head < of_keys; ++head)
      std::copy_n(x.begin() + head * of.keys * d, of.keys * d, more.begin() + head * (of.keys + of.room) * d);
    return tensor<T, 3>({of_keys, of.keys + of.room, d}, more);
  };
  const auto device_q = tensor<T, 3>({of.heads, of.queries, d}, q);
  const auto device_k = in_room(keys), device_v = in_room(values);
  const auto device_filled = tensor<i32, 1>({1}, std::vector<std::int32_t>{of.keys});
  const auto device_document = tensor<i32, 1>({of.keys}, document);
  auto o =
      tensor<T, 3>({of.heads, of.queries, d}, std::vector<T>(q.size(), T(std::numeric_limits<float>::quiet_NaN())));
  const double scale = 1 / std::sqrt(d);
  launch(test_device().stream(), k, device_q, device_k, device_v, device_filled, device_document, o, scale);
  const std::vector<T> got = o.to_vector();

  const auto at = [&](const std::vector<T>& x, int head, int extent, int position, int i) {
    return static_cast<double>(static_cast<float>(
        x[(static_cast<std::size_t>(head) * static_cast<std::size_t>(extent) + static_cast<std::size_t>(position)) *
              static_cast<std::size_t>(d) +
          static_cast<std::size_t>(i)]));
  };
  // Probabilities and the result are rounded, to 8 or 11 bits.
  const double allowed = std::is_same_v<T, bf16> ? 8e-3 : 1e-3;
  double worst = 0;
  for (int head = 0; head < of.heads; ++head)
    for (int row = 0; row < of.queries; ++row) {
      const int position = of.keys - of.queries + row;
      std::vector<double> sums(static_cast<std::size_t>(d));
      double norm = 0;
      for (int column = 0; column < of.keys; ++column) {
        if (!sees(mask, position, column, document)) continue;
        double score = 0;
        for (int i = 0; i < d; ++i)
          score += at(q, head, of.queries, row, i) * at(keys, head / of.group, of.keys, column, i);
        const double p = std::exp(score * scale);
        norm += p;
        for (int i = 0; i < d; ++i)
          sums[static_cast<std::size_t>(i)] += p * at(values, head / of.group, of.keys, column, i);
      }
      for (int i = 0; i < d; ++i) {
        const double error = std::abs(at(got, head, of.queries, row, i) - sums[static_cast<std::size_t>(i)] / norm);
        if (!(error <= worst)) worst = std::isnan(error) ? 1e30 : error;
      }
    }
  CHECK(worst <= allowed);
}

}  // namespace

TEST_CASE("fused matmul: attention of each tile and mask", "[cpu]") {
  Cases cases(24);
  for (const Mask mask : {Mask::causal, Mask::square, Mask::full, Mask::window, Mask::prefix, Mask::documents})
    for (const AttentionTiles& tiles : {AttentionTiles{192, 128, 64}, AttentionTiles{128, 128, 128},
                                        AttentionTiles{64, 64, 64}, AttentionTiles{128, 64, 64}})
      if (!cases.skip()) check<bf16>(tiles, mask, {.heads = 2, .group = 2, .queries = 200, .keys = 200});
  check<f16>({128, 128, 64}, Mask::causal, {.heads = 1, .group = 1, .queries = 130, .keys = 130});
  check<bf16>({128, 176, 64}, Mask::causal, {.heads = 1, .group = 1, .queries = 190, .keys = 190});
  check<bf16>({64, 64, 64}, Mask::distance, {.heads = 1, .group = 1, .queries = 200, .keys = 200});
}

TEST_CASE("fused matmul: attention of few or many positions, and of more keys than queries", "[cpu]") {
  Cases cases(12);
  for (const Mask mask : {Mask::causal, Mask::full})
    for (const int queries : {1, 64, 193, 400})
      for (const int more : {0, 100})
        if (!(sanitized && queries > 200) && !cases.skip())  // three quarters of its time
          check<bf16>({192, 128, 64}, mask, {.heads = 3, .group = 1, .queries = queries, .keys = queries + more});
}

TEST_CASE("fused matmul: attention of the keys that a cache has so far", "[cpu]") {
  Cases cases(20);
  const int rooms[] = {1, 300};
  for (const bool has_key : {true, false})
    for (const int keys : {1, 63, 64, 127, 128, 129, 200, 256})
      for (const int room : rooms) {
        const int queries = std::min(keys, keys % 2 ? 70 : 1);
        const Sizes sizes{.heads = 2, .group = 1, .queries = queries, .keys = keys, .room = room, .has_key = has_key};
        for (const Mask mask : {Mask::causal, Mask::full})
          if (!(sanitized && keys > 130) && !cases.skip()) check<bf16>({128, 128, 64}, mask, sizes);
      }
  const Sizes sizes{.heads = 2, .group = 2, .queries = 150, .keys = 150, .room = 42};
  check<bf16>({128, 128, 128}, Mask::window, sizes);
  check<bf16>({192, 128, 64}, Mask::causal, sizes);
  check<f16>({64, 64, 64}, Mask::prefix, sizes);
}

namespace {

/// Three warp groups, or two whose iterations overlap.
Plan causal_plan(bool overlaps = false) {
  return plan_with(attention<bf16>({overlaps ? 128 : 192, 64, 64}, Mask::causal, 1, {.looks = !overlaps}).graph());
}

const PlantedFault faults[] = {
    {"scores are read while they are multiplied", [](Plan& p) { place_of<codegen::WgmmaWait>(p, 0).drop(); },
     "is the accumulator of a wgmma in flight"},
    {"a stage is released while it is multiplied", [](Plan& p) { place_of<codegen::WgmmaWait>(p, 1).move(3); },
     "wgmma that read the stage are in flight"},
    {"keys are multiplied before they have arrived", [](Plan& p) { place_of<codegen::WaitFull>(p, 1).drop(); },
     "not known to be full"},
    {"queries are multiplied before they have arrived", [](Plan& p) { place_of<codegen::WaitFull>(p, 0).drop(); },
     "not known to be full"},
    {"queries are never released", [](Plan& p) { place_of<codegen::ArriveEmpty>(p, 2).drop(); },
     "stages read, 0 released"},
    {"values are released twice",
     [](Plan& p) {
  const StepPlace place = place_of<codegen::ArriveEmpty>(p, 1);
  place.body->push_back(place.step());
}, "released"},
    {"the pipeline state of keys does not advance", [](Plan& p) { place_of<codegen::AdvanceStage>(p, 3).drop(); },
     "advances by"},
    {"no fence before probabilities", [](Plan& p) { place_of<codegen::WgmmaFence>(p, 1).drop(); }, "no fence"},
    {"probabilities after the fence",
     [](Plan& p) {
  for (const StepPlace& place : places_of<codegen::Compute>(p)) {
    if (p.storage(place.step().action.get<codegen::Compute>().out).packed == 1) continue;
    place.move(place_of<codegen::WgmmaFence>(p, 1).index - place.index);
    return;
  }
}, "before it is defined"},
    {"accumulators that start anew in each iteration", [](Plan& p) { the<codegen::Wgmma>(p, 0).overwrites = false; },
     "is accumulated to before it is set"},
    {"a layout of other rows",
     [](Plan& p) {
  codegen::Value& sums = p.values[the<codegen::Wgmma>(p, 1).out];
  sums.layout = codegen::wgmma_accumulator_layout(sums.shape, 1);
}, "registers, its storage"},
    {"sections said twice", [](Plan& p) { p.phases[0].schedule.l2_group = 16; }, "whose L2 groups the launch chooses"},
    {"nobody says the sections",
     [](Plan& p) {
  std::erase_if(p.parameters, [](const KernelParameter& one) { return one.kind == KernelParameter::Kind::l2_group; });
}, "parameters, but needs"},
    {"keys for values", [](Plan& p) { the<codegen::Wgmma>(p, 1).b_state = the<codegen::Wgmma>(p, 0).b_state; },
     "not known to be full"},
};

}  // namespace

TEST_CASE("the verifier reports errors of fused matmuls", "[plan]") { check_reported(causal_plan(), faults); }

namespace {

/// Attention on a cache's first keys, with overlapping iterations.
Plan cached_plan() { return plan_with(attention<bf16>({128, 64, 64}, Mask::causal, 1, {.keys = Kind::one}).graph()); }
StepPlace next_in(const StepPlace& place, std::ptrdiff_t by) {
  return {place.body, static_cast<std::size_t>(static_cast<std::ptrdiff_t>(place.index) + by)};
}

const PlantedFault of_caches[] = {
    {"no fence after the zeros", [](Plan& p) { next_in(place_of<codegen::ZeroFillPastEnd>(p, 0), 1).drop(); },
     "wgmma, at at_consumer_35 and at_consumer_52: threads zeroed rows of it"},
    {"no barrier after the zeros", [](Plan& p) { next_in(place_of<codegen::ZeroFillPastEnd>(p, 3), 2).drop(); },
     "a fence and then a barrier must precede"},
    {"the fence after the barrier", [](Plan& p) { next_in(place_of<codegen::ZeroFillPastEnd>(p, 2), 1).move(1); },
     "a fence and then a barrier must precede"},
    {"zeros before the tile has come", [](Plan& p) { place_of<codegen::WaitFull>(p, 1).move(3); },
     "not known to be full"},
    {"zeros of one group", [](Plan& p) { place_of<codegen::ZeroFillPastEnd>(p, 1).elect(128); }, "threads zero it"},
    {"no zeros", [](Plan& p) { next_in(place_of<codegen::WaitFull>(p, 1), 3).drop(); }, "are not zeroed"},
    {"the fence of one group", [](Plan& p) { next_in(place_of<codegen::ZeroFillPastEnd>(p, 1), 1).elect(128); },
     "threads fence their writes"},
    {"a barrier of another branch",
     [](Plan& p) {
  const StepPlace branch = place_of<codegen::Branch>(p, 0);
  codegen::Branch other = branch.step().action.get<codegen::Branch>();
  other.body.erase(other.body.begin(), other.body.end() - 1);
  branch.step().action.get<codegen::Branch>().body.pop_back();
  branch.body->insert(branch.body->begin() + static_cast<std::ptrdiff_t>(branch.index) + 1,
                      codegen::Step{codegen::Action(std::move(other))});
}, "must follow in the same branch"},
    {"zeros in the other tile",
     [](Plan& p) { the<codegen::ZeroFillPastEnd>(p, 0).buffer = the<codegen::ZeroFillPastEnd>(p, 1).buffer; },
     "is not a buffer of the pipeline"},
    {"zeros while the tile is multiplied",
     [](Plan& p) {
  const StepPlace branch = place_of<codegen::Branch>(p, 0);
  REQUIRE(count<codegen::ZeroFillPastEnd>(p) == 4);
  // After wgmma's fence, the matmul and its commit.
  branch.move(3);
}, "wgmma that read the stage are in flight"},
    {"all groups meet within a turn", [](Plan& p) { place_of<codegen::OrderedBarrier>(p, 1).move(-1); },
     "cannot reach it before their turn"},
};

}  // namespace

TEST_CASE("the verifier reports errors of tiles of a slice", "[plan]") { check_reported(cached_plan(), of_caches); }

TEST_CASE("a fused matmul's tiles may be of a slice with a constant start", "[plan]") {
  const auto says = [](const Plan& plan, std::string_view words) {
    return std::ranges::any_of(notes(plan), [&](const std::string& note) { return note.find(words) != note.npos; });
  };
  CHECK(says(cached_plan(), "k-iterations overlap"));
  CHECK(!says(cached_plan(), "blocks overlap"));
  // Without keys there is no iteration, so warp groups would not reach the barriers.
  const Plan some = plan_with(attention<bf16>({128, 64, 64}, Mask::causal, 1, {.keys = Kind::some}).graph());
  CHECK((some.phases[0].roles.size() == 2 && !says(some, "overlap")));
  const auto sliced = [](const auto& start) {
    return plan_with(trace_kernel("sliced", [=](In<bf16, 2> q, In<bf16, 2> k, In<i32, 1> at, tessera::internal::Out<f32, 2> o) {
      Index m = blocks(cdiv(q.extent(0), 64));
      const auto [first, last] = start(at, m);
      const auto keys = k.slice(0, first, last);
      Tile queries = load(q, {m, 0}, {64, 64});
      Var acc = zeros<f32>({64, 64});
      for (Index j : range(cdiv(last, 64))) {
        Tile tile = load(keys, {j, 0}, {64, 64});
        acc = mma(cast<bf16>(mma(queries, transpose(tile), zeros<f32>({64, 64}))), tile, acc);
      }
      store(o, {m, 0}, acc);
    }));
  };
  const auto number = [](In<i32, 1> at, const auto& i) { return Tile(item(load(at, {i}, {1}))); };
  CHECK(sliced([&](In<i32, 1> at, Index m) { return std::pair(Tile(m * 0 + 5), number(at, m)); })
            .phases[0]
            .roles.size() == 2);
  CHECK(says(sliced([&](In<i32, 1> at, Index m) { return std::pair(number(at, m), number(at, m)); }),
             "TMA cannot address parameter 2"));
}

TEST_CASE("a fused matmul retains queries, has pipelines for keys and for values, and masks only where necessary",
          "[plan]") {
  Plan plan = causal_plan();
  REQUIRE(plan.phases[0].roles.size() == 2);
  CHECK(plan.phases[0].roles[1].warps == 12);
  REQUIRE(plan.pipelines.size() == 3);
  CHECK(plan.pipelines[codegen::PipelineId{0}].stages == 2);  // the next block's queries come meanwhile
  CHECK(plan_with(attention<bf16>({128, 128, 128}, Mask::causal, 1).graph()).pipelines[codegen::PipelineId{0}].stages ==
        1);
  CHECK((plan.pipelines[codegen::PipelineId{1}].stages == 4 && plan.pipelines[codegen::PipelineId{2}].stages == 4));
  CHECK((the<codegen::Wgmma>(plan, 0).overwrites && !the<codegen::Wgmma>(plan, 0).left));
  CHECK((!the<codegen::Wgmma>(plan, 1).overwrites && the<codegen::Wgmma>(plan, 1).left));
  CHECK(count<codegen::Branch>(plan) == 1);
  CHECK((plan.phases[0].schedule.snake_order && plan.phases[0].l2_groups_of_launch()));
  const std::string text = kernel_source(plan).text;
  CHECK(text.find("const int block0 = grid0 - 1 - place.column;") != std::string::npos);
  // Terms have the same order, whatever compiler built Tessera.
  CHECK(text.find("!((wrap_add(cast_i64(") != std::string::npos);
  const auto of = [](Mask mask) { return plan_with(attention<bf16>({192, 64, 64}, mask, 1, {.looks = true}).graph()); };
  CHECK(!of(Mask::full).phases[0].schedule.snake_order);
  CHECK(count<codegen::Branch>(of(Mask::distance)) == 1);
  CHECK((count<codegen::Branch>(of(Mask::window)) == 1 && count<codegen::Branch>(of(Mask::full)) == 1));
  // Conditions on loaded elements are evaluated for each element.
  CHECK((count<codegen::Branch>(of(Mask::documents)) == 0 && count<codegen::Branch>(of(Mask::prefix)) == 0));
}

TEST_CASE("L2 groups of different CTAs are few lines whose CTAs fill whole waves", "[plan]") {
  const auto lines_of = [](std::vector<std::int64_t> grid, std::int64_t at_once) {
    return l2_group_of(grid, 0, at_once);
  };
  CHECK(lines_of({8, 16, 16}, 132) == 33);
  CHECK(lines_of({16, 8, 16}, 132) == 33);
  CHECK(lines_of({11, 8, 16}, 132) == 24);
  CHECK(lines_of({24, 87, 1}, 132) == 22);
  CHECK(lines_of({64, 32}, 132) == 32);    // no more than there are
  CHECK(lines_of({43, 300}, 132) == 300);  // none fill whole waves
  CHECK(lines_of({8, 256}, 114) == 57);
  CHECK((lines_of({5, 7}, 1) == 7 && lines_of({6, 7}, 2) == 1 && lines_of({1, 1}, 132) == 1));
  CHECK(lines_of({7, std::int64_t{1} << 40}, 132) == std::numeric_limits<int>::max());
  CHECK(l2_group_of(std::array<std::int64_t, 3>{4, 8, 16}, 1, 132) == 33);
}

TEST_CASE("a mask whose expression is too long for bounds is evaluated for each element", "[plan]") {
  const auto branches = [](int doublings, int ones) {
    return count<codegen::Branch>(
        plan_with(trace_kernel("long", [=](In<bf16, 2> q, In<bf16, 2> k, tessera::internal::Out<f32, 2> o) {
      Index m = blocks(cdiv(q.extent(0), 64));
      Tile queries = load(q, {m, 0}, {64, 64});
      Var top = full<f32>({64, 1}, -1e30), acc = zeros<f32>({64, 64});
      for (Index j : range(cdiv(k.extent(0), 64))) {
        Tile first = j * 64 + iota({1, 64}, 1);
        std::vector<decltype(first)> columns{first};
        for (int i = 0; i < doublings; ++i) columns.push_back(columns.back() + columns.back());
        for (int i = 0; i < ones; ++i) columns.push_back(columns.back() + iota({1, 64}, 1));
        Tile keys = load(k, {j, 0}, {64, 64});
        Tile s = where(columns.back() < 5000, mma(queries, transpose(keys), zeros<f32>({64, 64})), 0.0f);
        top = maximum(top, max(s, 1));
        acc = mma(cast<bf16>(s), keys, acc);
      }
      store(o, {m, 0}, acc + top);
    })));
  };
  CHECK((branches(0, 0) == 1 && branches(2, 3) == 1));
  CHECK((branches(40, 0) == 0 && branches(0, 20000) == 0));
}

TEST_CASE("fused matmul: loops other than attention", "[cpu]") {
  // Queries that are scaled before the loop, probabilities that two matmuls use, and a matmul that skips its
  // accumulator.
  const auto scaled = kernel("scaled", [](In<bf16, 2> x, In<bf16, 2> w, In<bf16, 2> u, tessera::internal::Out<f32, 2> y) {
    Index m = blocks(cdiv(x.extent(0), 64));
    Tile left = cast<bf16>(cast<f32>(load(x, {m, 0}, {64, 64})) * 2.0f);
    Var sums = zeros<f32>({64, 64}), more = zeros<f32>({64, 64});
    for (Index k : range(cdiv(w.extent(0), 64))) {
      Tile p = cast<bf16>(mma(left, transpose(load(w, {k, 0}, {64, 64})), zeros<f32>({64, 64})) * 0.125f);
      sums = mma(p, load(w, {k, 0}, {64, 64}), sums);
      more = more + mma(p, load(u, {k, 0}, {64, 64}), zeros<f32>({64, 64}));
    }
    store(y, {m, 0}, sums + more);
  });
  const Plan plan = plan_with(scaled.graph());
  INFO(first_note(plan));
  CHECK(plan.phases[0].roles.size() == 2);
  constexpr int m = 70, n = 64, k = 136;
  std::mt19937 rng(3);
  const auto numbers = [&](int count) {
    std::vector<bf16> values;
    for (int i = 0; i < count; ++i) values.push_back(bf16(static_cast<float>(static_cast<int>(rng() % 3) - 1)));
    return values;
  };
  const auto x = numbers(m * 64), w = numbers(k * 64), u = numbers(k * n);
  const auto device_x = tensor<bf16, 2>({m, 64}, x), device_w = tensor<bf16, 2>({k, 64}, w),
             device_u = tensor<bf16, 2>({k, n}, u);
  const auto y = tensor<f32, 2>({m, n}, std::vector<f32>(std::size_t{m} * n, -1.0f));
  launch(test_device().stream(), scaled, device_x, device_w, device_u, y);
  const std::vector<f32> got = y.to_vector();
  const auto at = [](const std::vector<bf16>& of, int row, int column) {
    return static_cast<double>(static_cast<float>(of[static_cast<std::size_t>(row * 64 + column)]));
  };
  double worst = 0;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int l = 0; l < k; ++l) {
        double score = 0;
        for (int c = 0; c < 64; ++c) score += 2 * at(x, i, c) * at(w, l, c);
        sum += score * 0.125 * (at(w, l, j) + at(u, l, j));  // exact: quarters below 32
      }
      worst = std::max(worst, std::abs(got[static_cast<std::size_t>(i * n + j)] - sum));
    }
  CHECK(worst == 0);
}

TEST_CASE("fused matmul: a slice with a constant start", "[cpu]") {
  // With whole numbers sums are exact: o = q k^T k for rows [5, 5 + n) of k; memory outside is NaN.
  const auto sliced = kernel("sliced", [](In<bf16, 2> q, In<bf16, 2> k, In<i32, 1> count, tessera::internal::Out<f32, 2> o) {
    Index m = blocks(cdiv(q.extent(0), 64));
    Tile n = item(load(count, {0}, {1}));
    const auto keys = k.slice(0, 5, n);
    Tile queries = load(q, {m, 0}, {64, 64});
    Var acc = zeros<f32>({64, 64});
    for (Index j : range(cdiv(n, 64))) {
      Tile tile = load(keys, {j, 0}, {64, 64});
      acc = mma(cast<bf16>(mma(queries, transpose(tile), zeros<f32>({64, 64}))), tile, acc);
    }
    store(o, {m, 0}, acc);
  });
  CHECK(plan_with(sliced.graph()).phases[0].roles.size() == 2);
  constexpr int m = 64, rows = 150;
  for (const int n : {0, 1, 64, 100, 145, 200}) {
    INFO(n);
    const int end = std::min(5 + n, rows);
    std::vector<bf16> q(m * 64, bf16(0.0f)), k(rows * 64, bf16(std::numeric_limits<float>::quiet_NaN()));
    for (int i = 0; i < m; ++i) q[static_cast<std::size_t>(i * 64 + i)] = bf16(static_cast<float>(i % 3 + 1));
    for (int row = 5; row < end; ++row)
      for (int c = 0; c < 64; ++c)
        k[static_cast<std::size_t>(row * 64 + c)] = bf16(static_cast<float>((row * 7 + c * 3) % 4 - 1));
    const auto device_q = tensor<bf16, 2>({m, 64}, q), device_k = tensor<bf16, 2>({rows, 64}, k);
    const auto o = tensor<f32, 2>({m, 64}, std::vector<f32>(m * 64, -1.0f));
    launch(test_device().stream(), sliced, device_q, device_k, tensor<i32, 1>({1}, std::vector<std::int32_t>{n}), o);
    const std::vector<f32> got = o.to_vector();
    const auto at = [&](int row, int c) {
      return static_cast<double>(static_cast<float>(k[static_cast<std::size_t>(row * 64 + c)]));
    };
    bool same = true;
    for (int i = 0; i < m; ++i)
      for (int c = 0; c < 64; ++c) {
        double sum = 0;
        for (int row = 5; row < end; ++row) sum += (i % 3 + 1) * at(row, i) * at(row, c);
        same &= got[static_cast<std::size_t>(i * 64 + c)] == sum;
      }
    CHECK(same);
  }
}

TEST_CASE("variants of fused matmuls that are warp-specialized", "[plan]") {
  const auto roles = [](const Graph& graph) {
    const Plan plan = plan_with(graph);
    UNSCOPED_INFO(first_note(plan));
    return plan.phases[0].roles.size();
  };
  // Keys that are values, too; a condition that is used twice; and accumulators that are read within the loop.
  const auto asked = [&](int bm, bool looks) {
    return trace_kernel("asked", [=](In<bf16, 2> q, In<bf16, 2> k, tessera::internal::Out<f32, 2> o) {
      Index m = blocks(cdiv(q.extent(0), bm));
      Tile queries = load(q, {m, 0}, {bm, 64});
      Tile rows = m * bm + iota({bm, 1}, 0);
      Var acc = zeros<f32>({bm, 64}), drift = zeros<f32>({bm, 1});
      for (Index j : range(cdiv((m + 1) * bm, 64))) {
        Tile columns = j * 64 + iota({1, 64}, 1);
        Tile keys = load(k, {j, 0}, {64, 64});
        Tile seen = columns <= rows;
        Tile s = where(seen, mma(queries, transpose(keys), zeros<f32>({bm, 64})) + cast<f32>(columns - rows), -inf);
        Tile p = where(seen, exp2(s), 0.0f);
        drift = maximum(drift, looks ? max(acc, 1) : sum(p, 1));
        acc = mma(cast<bf16>(p), keys, acc);
      }
      store(o, {m, 0}, acc + drift);
    });
  };
  for (const int bm : {64, 128, 192})
    for (const bool looks : {false, true}) {
      CHECK(roles(asked(bm, looks)) == 2);
      CHECK(plan_with(asked(bm, looks)).pipelines.size() == 2);  // queries, and keys
    }
  // A tile that is both operands of a matmul.
  CHECK(roles(trace_kernel("square", [](In<bf16, 2> x, In<bf16, 2> w, tessera::internal::Out<f32, 2> y) {
    Index m = blocks(cdiv(x.extent(0), 64));
    Var acc = zeros<f32>({64, 64});
    for (Index j : range(cdiv(w.extent(0), 64))) {
      Tile tile = load(w, {j, 0}, {64, 64});
      acc = mma(cast<bf16>(mma(tile, transpose(tile), zeros<f32>({64, 64}))), load(w, {m, 0}, {64, 64}), acc);
    }
    store(y, {m, 0}, acc);
  })) == 2);
  // More rows than a box has.
  const Graph wide = trace_kernel("wide", [](In<bf16, 2> x, In<bf16, 2> w, In<bf16, 2> u, tessera::internal::Out<f32, 2> y) {
    Index m = blocks(cdiv(x.extent(0), 64));
    Tile rows = load(x, {m, 0}, {64, 384});
    Var acc = zeros<f32>({64, 128});
    for (Index j : range(cdiv(w.extent(1), 64))) {
      Tile h = maximum(mma(rows, load(w, {0, j}, {384, 64}), zeros<f32>({64, 64})), 0.0f);
      acc = mma(cast<bf16>(h), load(u, {j, 0}, {64, 128}), acc);
    }
    store(y, {m, 0}, acc);
  });
  CHECK(first_note(plan_with(wide)) == "not warp-specialized: 384 rows are more than a TMA box has");
}

TEST_CASE("fused matmul: an atomic of twelve warps is performed once", "[cpu]") {
  const auto counted = kernel("counted", [](In<bf16, 2> q, In<bf16, 2> k, tessera::internal::Out<f32, 2> o, InOut<f32, 1> count) {
    Index m = blocks(cdiv(q.extent(0), 192));
    Tile queries = load(q, {m, 0}, {192, 64});
    Var acc = zeros<f32>({192, 64});
    for (Index j : range(cdiv(k.extent(0), 64))) {
      Tile keys = load(k, {j, 0}, {64, 64});
      acc = mma(cast<bf16>(mma(queries, transpose(keys), zeros<f32>({192, 64}))), keys, acc);
    }
    store(o, {m, 0}, acc);
    atomic_add(count, {m}, full<f32>({64}, 1));
  });
  CHECK(plan_with(counted.graph()).phases[0].roles.size() == 2);
  const auto q = tensor<bf16, 2>({192, 64}, std::vector<bf16>(192 * 64, bf16(1.0f))),
             k = tensor<bf16, 2>({64, 64}, std::vector<bf16>(64 * 64, bf16(0.0f)));
  const auto o = tensor<f32, 2>({192, 64}, std::vector<f32>(192 * 64, 3.0f));
  const auto count = tensor<f32, 1>({64}, std::vector<f32>(64, 0.0f));
  launch(test_device().stream(), counted, q, k, o, count);
  CHECK(count.to_vector() == std::vector<f32>(64, 1.0f));
}

TEST_CASE("two warp groups overlap an iteration's second matmul with the next iteration's scores", "[plan]") {
  Plan plan = causal_plan(true);
  CHECK(codegen::violations(plan).empty());
  REQUIRE(count<codegen::Wgmma>(plan) == 4);  // first iteration: scores; loop: both; last iteration: sums
  const std::vector<StepPlace> matmuls = places_of<codegen::Wgmma>(plan);
  CHECK(matmuls[1].body == matmuls[2].body);
  CHECK((matmuls[0].body != matmuls[1].body && matmuls[2].body != matmuls[3].body));
  std::vector<int> pending;
  for (const StepPlace& place : places_of<codegen::WgmmaWait>(plan))
    pending.push_back(place.step().action.get<codegen::WgmmaWait>().pending);
  CHECK(pending == std::vector<int>{0, 1, 0, 0});
  // There is room beside 128 columns of accumulators, too: the first iteration's results are not kept.
  CHECK(count<codegen::Wgmma>(plan_with(attention<bf16>({128, 128, 128}, Mask::causal, 1).graph())) == 4);
  check_reported(plan, [](Plan& p) { the<codegen::WgmmaWait>(p, 1).pending = 2; },
                 "is the accumulator of a wgmma in flight");
  check_reported(plan, [](Plan& p) { place_of<codegen::WgmmaWait>(p, 2).drop(); }, "of a wgmma in flight");
  check_reported(plan, [](Plan& p) { the<codegen::WgmmaWait>(p, 2).pending = 1; }, "of a wgmma in flight");
  check_reported(plan, [](Plan& p) { the<codegen::Wgmma>(p, 2).b_state = the<codegen::Wgmma>(p, 1).b_state; },
                 "wgmma that read the stage are in flight");

  // The groups issue their matmuls in turn, so that one multiplies while the other computes exponentials.
  using codegen::OrderedBarrier;
  const std::vector<StepPlace> turns = places_of<OrderedBarrier>(plan);
  REQUIRE(turns.size() == 3);
  CHECK(turns[0].step().action.get<OrderedBarrier>().kind == OrderedBarrier::Kind::begin);
  CHECK((turns[1].body == matmuls[1].body && turns[1].index < matmuls[1].index));
  CHECK((turns[2].body == matmuls[1].body && turns[2].index > matmuls[2].index));
  check_reported(plan, [](Plan& p) { place_of<OrderedBarrier>(p, 0).drop(); }, "no turn has begun");
  check_reported(plan, [](Plan& p) { place_of<OrderedBarrier>(p, 1).drop(); }, "it is not the warp group's turn");
  check_reported(plan, [](Plan& p) { place_of<OrderedBarrier>(p, 2).drop(); }, "not passed on before the body ends");
  check_reported(plan, [](Plan& p) { the<OrderedBarrier>(p, 2).kind = OrderedBarrier::Kind::wait; },
                 "already the warp group's turn");
  check_reported(plan, [](Plan& p) { the<OrderedBarrier>(p, 1).kind = OrderedBarrier::Kind::begin; }, "begin 2 times");
  check_reported(plan, [](Plan& p) { the<OrderedBarrier>(p, 1).id = 15; }, "there is no named barrier 16");
  check_reported(plan, [](Plan& p) {
    for (int i = 0; i < 3; ++i) the<OrderedBarrier>(p, i).id = 1;
  }, "named barrier 1 is not only used for turns");
}

TEST_CASE("a tile's last sums are multiplied along with the next tile's first scores", "[plan]") {
  Plan plan = plan_with(attention<bf16>({128, 128, 128}, Mask::full, 1).graph());
  REQUIRE(first_note(plan) != "");
  const std::vector<StepPlace> matmuls = places_of<codegen::Wgmma>(plan);
  REQUIRE(matmuls.size() == 5);  // scores of the first tile; scores and sums; the last sums, and the next scores
  CHECK(matmuls[0].body == &plan.phases[0].roles[1].body);
  CHECK((matmuls[1].body == matmuls[2].body && matmuls[3].body == matmuls[4].body));
  CHECK((matmuls[1].body != matmuls[3].body && matmuls[0].body != matmuls[3].body));
  CHECK(the<codegen::Wgmma>(plan, 0).out == the<codegen::Wgmma>(plan, 4).out);
  std::vector<int> pending;
  for (const StepPlace& place : places_of<codegen::WgmmaWait>(plan))
    pending.push_back(place.step().action.get<codegen::WgmmaWait>().pending);
  CHECK(pending == std::vector<int>{0, 1, 0, 1, 0});
  CHECK(places_of<codegen::WgmmaWait>(plan)[4].index > places_of<codegen::Store>(plan)[0].index);
  // The next tile's queries are loaded while the last iteration reads this tile's, and all its memory is used.
  const auto stages = [](const Plan& of) {
    std::vector<int> stages;
    for (int i = 0; i < of.pipelines.size(); ++i) stages.push_back(of.pipelines[codegen::PipelineId{i}].stages);
    return stages;
  };
  CHECK(stages(plan) == std::vector<int>{2, 3, 2});
  CHECK(stages(plan_with(attention<bf16>({192, 128, 64}, Mask::full, 1).graph())) == std::vector<int>{2, 4, 4});
  // No overlap of tiles where two tiles' queries leave too little room for keys, or where a tile may have no iteration.
  const auto runs_on = [](const Plan& of) { return count<codegen::Wgmma>(of) == 5; };
  CHECK(!runs_on(plan_with(attention<bf16>({128, 176, 128}, Mask::full, 1).graph())));
  CHECK(!runs_on(plan_with(attention<bf16>({128, 128, 128}, Mask::causal, 1).graph())));
  const Graph graph = run_passes(attention<bf16>({128, 128, 128}, Mask::full, 1).graph());
  Variant empty = dense_variant(graph);
  empty.tensors[1].has_elements = false;
  CHECK(!runs_on(codegen::make_plan(graph, empty, Arch::sm_90a, {.verify = true})));

  check_reported(plan, [](Plan& p) { the<codegen::WgmmaWait>(p, 3).pending = 2; }, "of a wgmma in flight");
  check_reported(plan, [](Plan& p) { place_of<codegen::WgmmaWait>(p, 4).drop(); }, "of a wgmma in flight");
  check_reported(plan, [](Plan& p) { the<codegen::WgmmaWait>(p, 0).pending = 1; }, "of a wgmma in flight");
  const auto waits = places_of<codegen::WaitFull>(plan);
  for (std::size_t i = 0; i < waits.size(); ++i)
    check_reported(plan, [&](Plan& p) { place_of<codegen::WaitFull>(p, static_cast<int>(i)).drop(); },
                   "not known to be full");
  const auto releases = places_of<codegen::ArriveEmpty>(plan);
  for (std::size_t i = 0; i < releases.size(); ++i)
    check_reported(plan, [&](Plan& p) { place_of<codegen::ArriveEmpty>(p, static_cast<int>(i)).drop(); }, "released");
  // Where the state of the queries advances, after the step that releases them.
  const auto given_back = [](Plan& p) {
    const codegen::PipelineStateId queries = the<codegen::Wgmma>(p, 0).a_state;
    for (const StepPlace& place : places_of<codegen::AdvanceStage>(p))
      if (place.step().action.get<codegen::AdvanceStage>().state == queries) return place;
    throw std::logic_error("queries are not given back");
  };
  check_reported(plan, [&](Plan& p) {  // after the wait for the next tile's, of which none are loaded then
    const StepPlace place = given_back(p);
    const auto last = static_cast<std::ptrdiff_t>(place.body->size()) - 1;
    for (int i = 0; i < 2; ++i)
      StepPlace{place.body, place.index - 1}.move(last - static_cast<std::ptrdiff_t>(place.index) + 1);
  }, "the stage is already full");
  check_reported(plan, [&](Plan& p) { given_back(p).move(-1); }, "the stage is released");
  check_reported(plan, [](Plan& p) {  // the producer loads nothing after the last tile
    codegen::Body& body = *place_of<codegen::TileLoop>(p, 0).body;
    body.erase(body.begin() + static_cast<std::ptrdiff_t>(place_of<codegen::TileLoop>(p, 0).index) + 1, body.end());
  }, "filled than read");
  const auto loads = places_of<codegen::TmaLoad>(plan);
  for (std::size_t i = 0; i < loads.size(); ++i)
    check_reported(plan, [&](Plan& p) { place_of<codegen::TmaLoad>(p, static_cast<int>(i)).drop(); }, "bytes loaded");
}

TEST_CASE("CTAs of a fused matmul share a multiprocessor, if it has room for as many as hinted", "[plan]") {
  const auto plan_of = [](const AttentionTiles& tiles, const Hints& hints) {
    return plan_with(attention<bf16>(tiles, Mask::causal, 1, {.keys = Kind::one}, hints).graph());
  };
  const auto ignored = [](const Plan& plan) {
    const std::vector<std::string> all = notes(plan);
    return std::ranges::count_if(all, [](const std::string& one) { return one.find("hint ignored") != one.npos; });
  };
  for (const AttentionTiles& tiles : {AttentionTiles{64, 128, 64}, {64, 64, 64}, {64, 64, 128}, {128, 64, 64}})
    for (int blocks = 1; blocks <= (tiles.m * tiles.n * tiles.d == 64 * 64 * 64 ? 4 : 2); ++blocks) {
      CAPTURE(tiles.m, tiles.n, tiles.d, blocks);
      const Plan plan = plan_of(tiles, {.occupancy = blocks});
      CHECK(has_roles(plan));
      CHECK(plan.blocks == blocks);
      CHECK(ignored(plan) == 0);
      int registers = 0;
      for (const codegen::Role& role : plan.phases[0].roles) registers += role.registers * role.threads();
      CHECK(blocks * registers <= 65536);
      if (blocks > 1) CHECK(blocks * registers > 65536 - 16 * plan.threads() * blocks);  // which are rounded, twice
      CHECK(blocks * (plan.shared_bytes + 1024) <= 228 * 1024);
      for (const codegen::Pipeline& pipeline : plan.pipelines) CHECK(pipeline.stages <= 4);
    }
  // Two stages of keys and values of 128 columns take more than half of shared memory.
  const Plan one = plan_of({64, 128, 128}, {.occupancy = 2});
  CHECK(has_roles(one));
  CHECK(one.blocks == 1);
  CHECK(ignored(one) == 1);
  CHECK(plan_of({192, 128, 64}, {.occupancy = 4}).blocks == 1);
  CHECK(plan_of({64, 128, 64}, {.occupancy = 3}).blocks == 2);  // a third of the registers holds no instruction
  for (const int stages : {2, 3}) {
    const Plan plan = plan_of({64, 64, 64}, {.stages = stages});
    CHECK(ignored(plan) == 0);
    int of_loop = 0;
    for (const codegen::Pipeline& pipeline : plan.pipelines) of_loop += pipeline.stages == stages;
    CHECK(of_loop >= 2);
  }
  CHECK(ignored(plan_of({64, 64, 64}, {.stages = 9})) == 1);
  check_reported(
      plan_of({64, 128, 64}, {.occupancy = 2}), [](Plan& p) { p.blocks = 3; },
      "registers for the roles of each of 3 CTAs");
}

TEST_CASE("fused matmul: several CTAs of a multiprocessor", "[cpu]") {
  for (const int blocks : {2, 3})
    for (const int keys : {1, 129, 300})
      check<bf16>({64, blocks == 2 ? 128 : 96, 64}, Mask::causal,
                  {.heads = 40, .group = 4, .queries = 1, .keys = keys, .room = 20}, true, {.occupancy = blocks});
  check<bf16>({64, 64, 64}, Mask::full, {.heads = 3, .group = 1, .queries = 70, .keys = 200}, true, {.occupancy = 3});
}

TEST_CASE("the reason why a fused matmul is not warp-specialized is reported", "[plan]") {
  const auto note = [](const AttentionTiles& tiles) {
    const std::vector<std::string> all = notes(plan_with(attention<bf16>(tiles, Mask::causal, 1).graph()));
    const auto found = std::ranges::find_if(all, [](const std::string& one) { return one.starts_with("not warp-specialized"); });
    return found == all.end() ? std::string() : *found;
  };
  CHECK(note({64, 32, 64}) == "not warp-specialized: no fused wgmma schedule for tiles of [64,64] x [64,32]");
  CHECK(note({256, 64, 64}) == "not warp-specialized: no fused wgmma schedule for tiles of [256,64] x [64,64]");
  CHECK(note({64, 64, 32}) == "not warp-specialized: no fused wgmma schedule for tiles of [64,64] x [64,32]");
}

TEST_CASE("attention with other tiles compiles without spills", "[generate]") {
  std::vector<KernelSource> sources;
  const auto add = [&](const Plan& plan) {
    INFO(first_note(plan));
    CHECK(plan.phases[0].roles.size() == 2);
    sources.push_back(kernel_source(plan));
  };
  for (const AttentionTiles& tiles :
       {AttentionTiles{192, 128, 64}, AttentionTiles{128, 128, 128}, AttentionTiles{128, 64, 128},
        AttentionTiles{64, 128, 64}, AttentionTiles{128, 192, 64}, AttentionTiles{128, 64, 256},
        AttentionTiles{128, 176, 128}, AttentionTiles{128, 160, 128}, AttentionTiles{192, 96, 64},
        AttentionTiles{128, 176, 64}, AttentionTiles{128, 160, 64}})
    for (const Mask mask : {Mask::causal, Mask::full, Mask::documents})
      if (mask != Mask::documents || tiles.n == 128 || tiles.n == 176)
        add(plan_with(attention<bf16>(tiles, mask, 1).graph()));
  for (const auto keys : {Kind::all, Kind::one}) {
    const auto add_shared = [&](const AttentionTiles& tiles, int blocks) {
      add(plan_with(attention<bf16>(tiles, Mask::causal, 1, {.keys = keys}, {.occupancy = blocks}).graph()));
    };
    add_shared({64, 128, 64}, 2);
    add_shared({64, 64, 128}, 2);
    add_shared({128, 64, 64}, 2);
    add_shared({64, 96, 64}, 3);
    for (const int blocks : {2, 3, 4}) add_shared({64, 64, 64}, blocks);
  }
  check_compiled(sources);
}

}  // namespace test_fused_matmul
