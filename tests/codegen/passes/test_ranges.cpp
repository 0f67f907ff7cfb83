// The bounds of integers in a kernel, for any launch.
#include <functional>
#include <limits>
#include <vector>

#include "codegen/analysis/ranges.hpp"
#include "codegen/passes.hpp"
#include "support/catch.hpp"
#include "tessera/tessera.hpp"

namespace test_ranges {

using namespace tessera::internal;

namespace {

using X = In<bf16, 2>;
constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max(),
                       smallest = std::numeric_limits<std::int32_t>::min(), far = std::int64_t{1} << 30;

/// Bounds of a loop's trip count in a kernel with tiles of 64 rows.
template <class Rounds>
lowering::Range bounds(const Rounds& rounds, const std::function<void(Variant&)>& change = {}) {
  const Graph graph = run_passes(trace_kernel("rounds", [&](X x, tessera::internal::Out<f32, 1> y, Scalar<i32> s) {
    Index m = blocks(cdiv(x.extent(0), 64));
    Var sum = zeros<f32>({1});
    for (Index k : range(rounds(x, m, s))) sum = sum + cast<f32>(k);
    store(y, {m}, sum);
  }));
  Variant variant = dense_variant(graph);
  if (change) change(variant);
  const lowering::GraphAnalysis analysis(graph, variant, Target::of(Arch::sm_90a));
  for (Id id = 0; id < static_cast<Id>(graph.nodes.size()); ++id)
    if (graph[id].op == Op::loop) return lowering::range_of(analysis, graph[id].in[0]);
  return {};
}
bool is(const lowering::Range& range, std::int64_t least, std::int64_t most) {
  UNSCOPED_INFO(range.least << " to " << range.most);
  return range.least == least && range.most == most;
}

}  // namespace

TEST_CASE("bounds of numbers", "[plan]") {
  const auto extent = [](const X& x, const Index&, const Scalar<i32>&) { return x.extent(0); };
  CHECK(is(bounds(extent), 1, far));
  CHECK(is(bounds(extent, [](Variant& v) { v.index64 = true; }), 1, largest));
  CHECK(is(bounds(extent, [](Variant& v) { v.tensors[0].tma_addressable = false; }), 1, largest));
  CHECK(is(bounds(extent, [](Variant& v) { v.tensors[0].has_elements = false; }), 0, far));
  CHECK(is(bounds([](const X&, const Index&, const Scalar<i32>& s) { return s; }), smallest, largest));
  CHECK(is(bounds([](const X&, const Index& m, const Scalar<i32>&) { return m; }), 0, far / 64 - 1));
  CHECK(is(bounds([](const X&, const Index& m, const Scalar<i32>&) { return cdiv((m + 1) * 64, 48); }), 2,
           (far + 47) / 48));
  CHECK(is(bounds([](const X&, const Index& m, const Scalar<i32>&) { return (m + 1) * 192; }), smallest,
           largest));  // tiles of 64 rows: it may wrap
  CHECK(is(bounds([](const X& x, const Index& m, const Scalar<i32>&) {
    return minimum(cdiv((m + 1) * 64, 128), cdiv(x.extent(1), 128));
  }),
           1, far / 128));
  CHECK(is(bounds([](const X& x, const Index&, const Scalar<i32>&) { return x.extent(1) / 64; }), 0, far / 64));
  CHECK(is(bounds([](const X& x, const Index& m, const Scalar<i32>&) { return x.extent(1) - m; }), 2 - far / 64, far));
  CHECK(is(bounds([](const X& x, const Index&, const Scalar<i32>&) { return maximum(x.extent(1) - 100, 3); }), 3,
           far - 100));
  CHECK(is(bounds([](const X& x, const Index&, const Scalar<i32>&) { return (x.extent(1) - 65) / 64; }), -1,
           (far - 65) / 64));
  CHECK(
      is(bounds([](const X& x, const Index&, const Scalar<i32>&) { return cdiv(0 - x.extent(1), 64); }), -far / 64, 0));
  CHECK(is(bounds([](const X& x, const Index&, const Scalar<i32>&) { return x.extent(1) * -3 + x.extent(0); }),
           smallest, largest));  // -3 * 2^30 wraps
  CHECK(is(bounds([](const X& x, const Index&, const Scalar<i32>& s) { return cdiv(x.extent(1), s); }), smallest,
           largest));
  CHECK(is(bounds([](const X& x, const Index&, const Scalar<i32>&) { return x.extent(1) % 64; }), smallest, largest));
}

TEST_CASE("bounds of an expression that is long, or doubled often", "[plan]") {
  for (const int times : {40, 20000}) {
    const lowering::Range found = bounds([&](const X& x, const Index& m, const Scalar<i32>&) {
      std::vector<Index> sums{x.extent(1) % 2};
      for (int i = 0; i < times; ++i)
        sums.push_back(times == 40 ? Index(minimum(sums.back() + m, sums.back() + 1))
                                   : Index(minimum(sums.back() + m, 5 + i)));
      return sums.back();
    });
    CHECK(found.least <= 0);
  }
}

}  // namespace test_ranges
