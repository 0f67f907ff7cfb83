// Plans of memory-bound kernels: which tensors are read once, access widths, and exchanges between threads.
#include <fmt/format.h>

#include "codegen/make_plan.hpp"
#include "codegen/passes.hpp"
#include "codegen/passes/plan/no_hoist_loads.hpp"
#include "codegen/plan/verify/verify_plan.hpp"
#include "support/catch.hpp"
#include "support/plan_steps.hpp"
#include "tessera/dsl/control.hpp"

namespace test_row_plans {

using namespace tessera::internal;
using namespace tessera::internal::codegen;

namespace {

template <class F>
Plan plan_for(const F& function) {
  const Graph graph = run_passes(trace_kernel("rows", function));
  return make_plan(graph, dense_variant(graph), Arch::sm_90a, {.verify = true}, {});
}

template <Element From, Element To>
Plan transposed(int rows, int columns) {
  return plan_for([=](In<From, 2> x, Out<To, 2> y) {
    auto [i, j] = blocks(cdiv(x.extent(0), rows), cdiv(x.extent(1), columns));
    Tile t = load(x, {i, j}, {rows, columns});
    if constexpr (std::same_as<From, To>)
      store(y, {j, i}, transpose(t));
    else
      store(y, {j, i}, cast<To>(transpose(t)));
  });
}

}  // namespace

TEST_CASE("a tile is transposed in registers, with vector accesses on both sides", "[plan]") {
  const auto check = [](Plan plan, int read, int written) {
    CHECK(plan.scratch.size() == 0);
    CHECK(the<Load>(plan).access.vector == read);
    CHECK(the<Store>(plan).access.vector == written);
    CHECK(the<Store>(plan).whole);
  };
  check(transposed<bf16, bf16>(64, 64), 8, 8);
  check(transposed<f32, f32>(64, 64), 4, 4);
  check(transposed<bf16, f32>(64, 64), 8, 4);
  check(transposed<f32, bf16>(64, 64), 4, 8);
  check(transposed<bf16, bf16>(32, 96), 8, 8);
}

TEST_CASE("a permuted view is transposed in registers, too", "[plan]") {
  Plan plan = plan_for([](In<f32, 2> x, In<f32, 2> z, Out<f32, 2> y) {
    auto [i, j] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 64));
    store(y, {i, j}, load(x.permute({1, 0}), {i, j}, {64, 64}) + load(z, {i, j}, {64, 64}));
  });
  CHECK(plan.scratch.size() == 0);
  CHECK(the<Load>(plan, 0).access.vector == 4);
  CHECK(the<Load>(plan, 1).access.vector == 4);
  CHECK(the<Store>(plan).access.vector == 4);
}

TEST_CASE("each warp has rows of its own if its registers hold them", "[plan]") {
  const auto softmax = [](int rows, int width) {
    return plan_for([=](In<f32, 2> x, Out<f32, 2> y) {
      Index i = blocks(cdiv(x.extent(0), rows));
      Tile e = exp2(load(x, {i, 0}, {rows, width}));
      store(y, {i, 0}, e / sum(e, 1));
    });
  };
  const Plan of_warps = softmax(4, 768);
  CHECK(of_warps.threads() == 128);
  CHECK(of_warps.scratch.size() == 0);
  CHECK(count<Barrier>(of_warps) == 0);
  CHECK(softmax(4, 4096).threads() > 128);
  CHECK(softmax(1, 768).threads() > 32);
}

TEST_CASE("pointwise kernels use one access per thread", "[plan]") {
  const auto threads = []<Element T>(T, int elements, int rounds = 0) {
    return plan_for([=](In<T, 1> x, Out<T, 1> y) {
             Index i = blocks(cdiv(x.extent(0), elements));
             if (rounds == 0) return store(y, {i}, load(x, {i}, {elements}));
             for (Index k : range(rounds)) store(y, {i + k}, load(x, {i + k}, {elements}));
           }).threads();
  };
  CHECK(threads(f32(), 1024) == 256);
  CHECK(threads(bf16(), 2048) == 256);
  CHECK(threads(f32(), 4096) == 512);  // a CTA of more threads would keep others waiting
  CHECK(threads(f32(), 1024, 2) == 128);
  CHECK(threads(u8(), 1024) == 64);
}

TEST_CASE("inputs that CTAs read once are evict_last if outputs are not much larger", "[plan]") {
  const auto kept = [](Plan plan) {
    std::string names;
    for (const StepPlace& place : steps_of(plan))
      each_read(place.step(), [&](const Sweep&, TileAccess& read) {
        if (read.kept) names += fmt::format("in{} ", read.parameter);
      });
    CHECK(violations(plan).empty());
    return names;
  };
  const auto norm = [](int rounds, int rows) {
    return plan_for([=](In<f32, 2> x, In<f32, 1> weight, Out<f32, 2> y) {
      Index i = blocks(cdiv(x.extent(0), rows));
      const auto row = [&](const Index& at) {
        Tile t = load(x, {at, 0}, {rows, 1024});
        store(y, {at, 0}, t * rsqrt(sum(t * t, 1)) * load(weight, {0}, {1024}));
      };
      if (rounds == 0) return row(i);
      for (Index k : range(rounds)) row(i + k);
    });
  };
  CHECK(kept(norm(0, 1)) == "in0 ");
  CHECK(kept(norm(2, 1)) == "");  // other inputs of the CTA may be worth more
  CHECK(kept(plan_for([](In<f32, 1> x, In<f32, 1> often, Out<f32, 1> y) {
          Index i = blocks(cdiv(y.extent(0), 1024));
          Tile once = load(x, {i}, {1024});
          Var sum = zeros<f32>({1024});
          for (Index k : range(often.extent(0) / 1024)) sum = sum + load(often, {k}, {1024});
          store(y, {i}, once * sum);
        })) == "");
  CHECK(kept(plan_for([](In<f32, 1> x, Out<f32, 1> y) {  // hardly anything is written
          Index i = blocks(y.extent(0));
          store(y, {i}, sum(load(x, {i}, {1024}), 0));
        })) == "in0 ");
  CHECK(kept(plan_for([](In<bf16, 1> x, Out<bf16, 1> y) {
          Index i = blocks(cdiv(y.extent(0), 2048));
          store(y, {i}, cast<bf16>(cast<f32>(load(x, {i}, {2048})) * 2));
        })) == "in0 ");
  CHECK(kept(plan_for([](In<u8, 1> x, Out<f32, 1> y) {  // much more is written
          Index i = blocks(cdiv(y.extent(0), 1024));
          store(y, {i}, cast<f32>(cast<i32>(load(x, {i}, {1024}))));
        })) == "");
  CHECK(kept(plan_for([](In<f32, 1> x, Out<f32, 1> y) {
          Index i = blocks(cdiv(y.extent(0), 1024));
          store(y, {i}, load(x, {i}, {1024}, 1.0f));
        })) == "");
}

TEST_CASE("weights of long rows are read where they are used", "[plan]") {
  const auto norm = [](int width) {
    return plan_for([=](In<f32, 2> x, In<f32, 1> weight, In<f32, 1> bias, Out<f32, 2> y) {
      Index i = blocks(cdiv(x.extent(0), 4));
      Tile row = load(x, {i, 0}, {4, width});
      store(y, {i, 0}, (row - sum(row, 1)) * load(weight, {0}, {width}) + load(bias, {0}, {width}));
    });
  };
  Plan of_many = norm(1600);
  CHECK(count<Load>(of_many) == 1);
  CHECK(the<Store>(of_many).sweep.reads.size() == 2);
  CHECK(of_many.blocks == 4);
  CHECK(count<Load>(norm(256)) == 3);
}

TEST_CASE("max reuses the result of argmax", "[plan]") {
  Plan both = plan_for([](In<f32, 2> x, Out<f32, 2> y, Out<i32, 2> at) {
    Tile t = load(x, {0, 0}, {4, 512});
    auto [largest, index] = max_with_index(t, 1);
    store(y, {0, 0}, largest + max(t, axis(0)));
    store(at, {0, 0}, index);
  });
  CHECK(count<Argmax>(both) == 1);
  CHECK(count<Reduce>(both) == 1);  // along the other axis
}

TEST_CASE("scans along a row stay in registers, and warps exchange only totals", "[plan]") {
  const auto scan = [](int rows, int columns, int axis) {
    return plan_for([=](In<f32, 2> x, Out<f32, 2> y) {
      Index i = blocks(cdiv(x.extent(0), rows));
      store(y, {i, 0}, cumsum(load(x, {i, 0}, {rows, columns}) * 2.0f, axis));
    });
  };
  Plan row = scan(1, 4096, 1);
  CHECK(count<StoreScratch>(row) + count<LoadScratch>(row) == 0);
  CHECK(count<Barrier>(row) == 1);
  CHECK(row.threads() == 512);
  CHECK(row.scratch[the<WriteScanTotals>(row).scratch].bytes == 4 * 32);
  CHECK(the<Scan>(row).sweep.expression.terms.size() == 1);
  CHECK(scan(32, 128, 1).scratch.size() == 0);
  Plan columns = scan(256, 64, 0);
  CHECK(count<StoreScratch>(columns) + count<LoadScratch>(columns) == 0);
}

}  // namespace test_row_plans
