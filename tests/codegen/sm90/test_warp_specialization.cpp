// Which kernels are warp-specialized on sm_90a, why others are not, and how work is divided.
#include <fmt/format.h>

#include "codegen/generate.hpp"
#include "codegen/make_plan.hpp"
#include "codegen/passes.hpp"
#include "codegen/passes/plan/no_hoist_loads.hpp"
#include "codegen/plan/remarks.hpp"
#include "codegen/plan/verify/verify_plan.hpp"
#include "model/kernels.hpp"
#include "support/catch.hpp"
#include "support/plan_steps.hpp"
#include "support/plans.hpp"
#include "support/planted_faults.hpp"
#include "support/variants.hpp"

namespace test_warp_specialization {

using namespace tessera::internal;
using namespace tessera::internal::codegen;

namespace {

/// Why a kernel has a single role; nothing if it has several.
using ::why_not;
std::string why_not(const Graph& traced, const Changes& change = {}) { return why_not(plan_with(traced, change)); }

using X = In<bf16, 2>;
using Y = Out<f32, 2>;

/// A kernel of one matmul: `operands` computes its operands from each k-iteration's indices, `epilogue` does the rest.
template <class Make, class Finish>
Graph matmul_of(MatmulTiles tiles, const Make& operands, const Finish& epilogue) {
  return kernel(
             "product",
             [&](X x, X w, InOut<f32, 2> z, Y y) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    Var acc = zeros<f32>({tiles.m, tiles.n});
    for (Index k : range(cdiv(x.extent(1), tiles.k))) {
      const auto [a, b] = operands(x, w, m, n, k);
      acc = mma(a, b, acc);
    }
    const Tile<f32, 2> sums = acc;
    epilogue(sums, z, y, m, n);
             })
      .graph();
}
constexpr MatmulTiles tile{64, 64, 64};
const auto stored = [](const Tile<f32, 2>& sums, const InOut<f32, 2>&, const Y& y, const Index& m, const Index& n) {
  store(y, {m, n}, sums);
};
template <class Make>
Graph with_operands(const Make& make) {
  return matmul_of(tile, make, stored);
}
template <class Finish>
Graph with_epilogue(const Finish& finish, MatmulTiles tiles = tile) {
  const auto any = [=](const X& x, const X& w, const Index& m, const Index& n, const Index& k) {
    return std::pair(Tile<bf16, 2>(load(x, {m, k}, {tiles.m, tiles.k})),
                     Tile<bf16, 2>(load(w, {k, n}, {tiles.k, tiles.n})));
  };
  return matmul_of(tiles, any, finish);
}
/// As many k-iterations as `count` says, of tiles that `count` may use.
template <class Count>
Graph with_rounds(const Count& count) {
  return kernel(
             "k_iterations",
             [&](X x, X w, Y y, Scalar<i32> s) {
    auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 64));
    Var acc = zeros<f32>({64, 64});
    for (Index k : range(count(x, m, s))) acc = mma(load(x, {m, k}, {64, 64}), load(w, {k, n}, {64, 64}), acc);
    store(y, {m, n}, acc);
             })
      .graph();
}
Graph plain(MatmulTiles tiles) { return with_epilogue(stored, tiles); }

Graph gelu(MatmulTiles tiles) { return kernels::linear_gelu<bf16, bf16>(tiles).executable().graph(); }

}  // namespace

TEST_CASE("a kernel of one matmul in a loop over k is warp-specialized, on sm_90a alone", "[plan]") {
  CHECK(why_not(plain(tile)) == "");
  CHECK(why_not(with_rounds([](const X& x, const Index&, const Scalar<i32>&) { return cdiv(x.extent(1), 64); })) == "");
  CHECK(why_not(with_rounds([](const X&, const Index&, const Scalar<i32>&) { return 3; })) == "");
  for (const char* arch : {"sm_80", "sm_90", "sm_100", "sm_120"}) {
    const Plan plan = plan_with(plain(tile), {}, Arch::parse(arch));
    INFO(arch);
    CHECK(!has_roles(plan));
    CHECK(notes(plan).empty());
  }
}

TEST_CASE("why a matmul is not warp-specialized: the matmul and its loop", "[plan]") {
  const auto one_round = [](const auto& a, const auto& b) { return mma(a, b, zeros<f32>({64, 64})); };
  CHECK(why_not(kernel("two", [&](X x, X w, Y y) {
                  Var acc = zeros<f32>({64, 64});
                  for (Index k : range(cdiv(x.extent(1), 64)))
                    acc = mma(load(x, {0, k}, {64, 64}), load(w, {k, 0}, {64, 64}), acc);
                  store(y, {0, 0}, acc + one_round(load(x, {0, 0}, {64, 64}), load(w, {0, 0}, {64, 64})));
                }).graph()) == "the kernel has several matmuls, which differ");
  CHECK(why_not(kernels::linear<f32, f32>({64, 64, 64}).graph()) ==
        "wgmma multiplies f16, bf16, tf32, fp8, i8 or u8, not f32");
  CHECK(why_not(kernel("once", [&](X x, X w, Y y) {
                  store(y, {0, 0}, one_round(load(x, {0, 0}, {64, 64}), load(w, {0, 0}, {64, 64})));
                }).graph()) == "the matmul is not in a loop");
  const auto inside = [](const auto& around) {
    return kernel(
               "inside",
               [&](X x, X w, Y y) {
      around(x, [&](const Index& m) {
        Var acc = zeros<f32>({64, 64});
        for (Index k : range(cdiv(x.extent(1), 64)))
          acc = mma(load(x, {m, k}, {64, 64}), load(w, {k, 0}, {64, 64}), acc);
        store(y, {m, 0}, acc);
      });
               })
        .graph();
  };
  CHECK(why_not(inside([](const X& x, const auto& body) {
          for (Index m : range(cdiv(x.extent(0), 64))) body(m);
        })) == "the matmul's loop is inside another loop or a branch");
  CHECK(why_not(inside([](const X& x, const auto& body) {
          const Index m = blocks(cdiv(x.extent(0), 64));
          if_(m > 0, [&] { body(m); });
        })) == "the matmul's loop is inside another loop or a branch");
  CHECK(why_not(kernel("more", [](X x, X w, Y y) {
                  Var acc = zeros<f32>({64, 64});
                  Var all = zeros<f32>({64, 64});
                  for (Index k : range(cdiv(x.extent(1), 64))) {
                    acc = mma(load(x, {0, k}, {64, 64}), load(w, {k, 0}, {64, 64}), acc);
                    all = all + acc;
                  }
                  store(y, {0, 0}, all);
                }).graph()) == "the loop carries more than the accumulators");
  const std::string no_round = "the loop may have no iteration";
  CHECK(why_not(with_rounds([](const X&, const Index& m, const Scalar<i32>&) { return m + 1; })) ==
        "the loop's trip count is not the same for all grid tiles");
  CHECK(why_not(with_rounds([](const X&, const Index&, const Scalar<i32>& s) { return s; })) == no_round);
  CHECK(why_not(with_rounds([](const X& x, const Index&, const Scalar<i32>&) { return x.extent(1) / 64; })) ==
        no_round);
  CHECK(why_not(with_rounds([](const X& x, const Index&, const Scalar<i32>& s) { return cdiv(x.extent(1), s); })) ==
        no_round);
  CHECK(why_not(with_rounds([](const X&, const Index&, const Scalar<i32>&) { return 0; })) != "");
  const Graph counted = kernel("counted", [](X x, X w, Y y, In<f32, 1> all) {
                          auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 64));
                          Var acc = zeros<f32>({64, 64});
                          for (Index k : range(cdiv(all.extent(0), 64)))
                            acc = mma(load(x, {m, k}, {64, 64}), load(w, {k, n}, {64, 64}), acc);
                          store(y, {m, n}, acc);
                        }).graph();
  CHECK(why_not(counted) == "");
  CHECK(why_not(counted, [](Variant& v) { v.tensors[3].tma_addressable = false; }) == "");
  CHECK(why_not(counted, [](Variant& v) { v.tensors[3].has_elements = false; }) == no_round);
  const auto also = [](const auto& what) {
    return kernel(
               "also",
               [&](X x, X w, Y y, InOut<bf16, 2> z) {
      auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 64));
      Var acc = zeros<f32>({64, 64});
      for (Index k : range(cdiv(x.extent(1), 64))) {
        const Tile a = load(x, {m, k}, {64, 64});
        acc = mma(a, load(w, {k, n}, {64, 64}), acc);
        what(a, z, m, k);
      }
      store(y, {m, n}, acc);
               })
        .graph();
  };
  CHECK(why_not(also([](const auto& a, const auto& z, const Index& m, const Index& k) {
          store(z, {m, k}, a);
        })) == "the loop does more than the matmul: 'store'");
  CHECK(why_not(also([](const auto& a, const auto& z, const Index& m, const Index& k) {
          if_(k > m, [&] { store(z, {m, k}, a); });
        })) == "the loop does more than the matmul: 'branch'");
}

TEST_CASE("why a matmul is not warp-specialized: its tiles", "[plan]") {
  const auto none = [](int m, int n, int k) {
    return fmt::format("no wgmma schedule for tiles of [{0},{2}] x [{2},{1}]", m, n, k);
  };
  for (const MatmulTiles& tiles : {MatmulTiles{32, 64, 64}, {192, 64, 64}, {64, 48, 64}, {64, 80, 64}, {64, 64, 32}}) {
    INFO(fmt::format("[{},{}] by {}", tiles.m, tiles.n, tiles.k));
    CHECK(why_not(plain(tiles)) == none(tiles.m, tiles.n, tiles.k));
  }
  CHECK(why_not(plain({256, 256, 64})) == "[256,256] accumulators do not fit in registers");
  CHECK(why_not(plain({256, 128, 128})) == "two stages do not fit into shared memory");
}

TEST_CASE("why a matmul is not warp-specialized: its operands", "[plan]") {
  using I = Index;
  using B = Tile<bf16, 2>;
  const auto right = [](const X& w, const I& k, const I& n) { return B(load(w, {k, n}, {64, 64})); };
  CHECK(why_not(with_operands([&](const X& x, const X& w, const I& m, const I& n, const I& k) {
          return std::pair(B(cast<bf16>(cast<f32>(load(x, {m, k}, {64, 64})) * 2.0f)), right(w, k, n));
        })) == "");
  CHECK(why_not(with_operands([&](const X& x, const X& w, const I& m, const I& n, const I& k) {
          return std::pair(B(load(x, {m, k}, {64, 64})), B(cast<bf16>(cast<f32>(load(w, {k, n}, {64, 64})) * 2.0f)));
        })) == "");
  CHECK(why_not(kernel("computed", [&](X x, X w, Y y) {
                  const I n = blocks(cdiv(y.extent(1), 64));
                  Var acc = zeros<f32>({64, 64});
                  const B a = cast<bf16>(cast<f32>(load(x, {0, 0}, {64, 64})) * 2.0f);
                  for (I k : range(cdiv(w.extent(0), 64))) acc = mma(a, right(w, k, n), acc);
                  store(y, {0, n}, acc);
                }).graph()) == "");
  CHECK(why_not(kernel("computed", [&](X x, X w, Y y) {
                  const I m = blocks(cdiv(y.extent(0), 64));
                  Var acc = zeros<f32>({64, 64});
                  const B b = cast<bf16>(cast<f32>(load(w, {0, 0}, {64, 64})) * 2.0f);
                  for (I k : range(cdiv(x.extent(1), 64))) acc = mma(load(x, {m, k}, {64, 64}), b, acc);
                  store(y, {m, 0}, acc);
                }).graph()) == "");
  const auto reshaped = [&](int a, int b, int c) {
    return why_not(kernel("reshaped", [&](In<bf16, 3> x, X w, Y y) {
                     auto [m, n] = blocks(cdiv(y.extent(0), 128), cdiv(y.extent(1), 64));
                     Var acc = zeros<f32>({128, 64});
                     for (I k : range(cdiv(x.extent(2), c)))
                       acc = mma(reshape(load(x, {m, 0, k}, {a, b, c}), {128, 64}), right(w, k, n), acc);
                     store(y, {m, n}, acc);
                   }).graph());
  };
  CHECK(reshaped(2, 64, 64) == "");
  CHECK(reshaped(128, 2, 32) == "a reshape makes the columns of [128,64] of several axes of [128,2,32]");
  CHECK(reshaped(2, 32, 128) == "the left operand comes from 'reshape'");
  CHECK(why_not(with_operands([&](const X& x, const X& w, const I& m, const I& n, const I& k) {
          const Tile<i32, 1> rows = m * 64 + iota({64}, 0);
          return std::pair(B(gather(x, rows, {k}, {64})), right(w, k, n));
        })) == "the left operand comes from 'gather'");
  CHECK(why_not(with_operands([&](const X& x, const X& w, const I& m, const I& n, const I& k) {
          return std::pair(B(load(x, {m, k}, {64, 64}, 1.0f)), right(w, k, n));
        })) == "the left operand is padded with a value other than 0");
  CHECK(why_not(kernel("written", [&](InOut<bf16, 2> x, X w, Y y) {
                  auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 64));
                  Var acc = zeros<f32>({64, 64});
                  for (I k : range(cdiv(w.extent(0), 64))) {
                    const B a = load(x, {m, k}, {64, 64});
                    acc = mma(a, right(w, k, n), acc);
                  }
                  store(y, {m, n}, acc);
                }).graph()) == "the left operand is loaded from a tensor that is written");
  CHECK(why_not(kernels::linear<bf16, f32>({64, 64, 64}).graph()) == "");
  CHECK(why_not(with_operands([&](const X& x, const X& w, const I& m, const I& n, const I& k) {
          const B both = cast<bf16>(cast<f32>(load(x, {m, k}, {64, 64})) * 2.0f);
          return std::pair(both, B(cast<bf16>(cast<f32>(load(w, {k, n}, {64, 64})) * 2.0f)));
        })) == "the right operand comes from 'mul'; with its operands swapped, the right operand comes from 'mul'");
  for (const std::size_t i : {0, 1}) {
    CHECK(why_not(plain(tile), [=](Variant& v) { v.tensors[i].tma_addressable = false; }) == "");
    CHECK(why_not(plain(tile), [=](Variant& v) { v.tensors[i].contiguous_axis = -1; }) == "");
  }
  CHECK(why_not(with_operands([&](const X& x, const X& w, const I& m, const I& n, const I& k) {
          return std::pair(B(load(x.slice(1, 8, 640), {m, k}, {64, 64})), right(w, k, n));
        })) == "");
  CHECK(why_not(kernel("sliced", [&](X x, X w, In<i32, 1> at, Y y) {
                  auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 64));
                  const Index first = item(max(load(at, {m}, {4}), axis(0)));
                  Var acc = zeros<f32>({64, 64});
                  for (I k : range(cdiv(x.extent(1), 64)))
                    acc = mma(load(x.slice(0, first, 640), {m, k}, {64, 64}), right(w, k, n), acc);
                  store(y, {m, n}, acc);
                }).graph()) == "the tile coordinates of parameter 1 depend on computed values");
  CHECK(why_not(kernel("indirect", [&](X x, X w, In<i32, 1> at, Y y) {
                  auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 64));
                  const Index row = item(max(load(at, {m}, {4}), axis(0)));
                  Var acc = zeros<f32>({64, 64});
                  for (I k : range(cdiv(x.extent(1), 64))) acc = mma(load(x, {row, k}, {64, 64}), right(w, k, n), acc);
                  store(y, {m, n}, acc);
                }).graph()) == "the tile coordinates of parameter 1 depend on computed values");
  const Graph batches = kernel("batches", [&](In<bf16, 3> x, X w, Y y) {
                          auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 64));
                          Var acc = zeros<f32>({64, 64});
                          for (I k : range(cdiv(x.extent(2), 64)))
                            acc = mma(reshape(load(x, {1, m, k}, {1, 64, 64}), {64, 64}), right(w, k, n), acc);
                          store(y, {m, n}, acc);
                        }).graph();
  CHECK(why_not(batches) == "");
  CHECK(why_not(batches, [](Variant& v) { v.tensors[0].contiguous_axis = 0; }) == "");
  CHECK(why_not(plain({64, 96, 64})) == "[64,96] bf16 cannot be divided into panels of 8 rows of 128 bytes");
  CHECK(why_not(plain({64, 96, 64}), [](Variant& v) { v.tensors[1].contiguous_axis = 0; }) == "");
}

TEST_CASE("why a matmul is not warp-specialized: its epilogue", "[plan]") {
  using Z = InOut<f32, 2>;
  using S = Tile<f32, 2>;
  using I = Index;
  CHECK(why_not(with_epilogue([](const S& s, const Z&, const Y& y, const I& m, const I& n) {
          store(y, {m, n}, s - sum(s, 1));
        })) == "");
  CHECK(why_not(with_epilogue([](const S& s, const Z&, const Y& y, const I& m, const I& n) {
          store(y, {m, n}, s - sum(s, 0));
        })) == "'sum' crosses warps");
  CHECK(why_not(with_epilogue([](const S& s, const Z&, const Y& y, const I& m, const I& n) {
          if_(m > 0, [&] { store(y, {m, n}, cumsum(s, 1)); });
        })) == "'cumsum' crosses warps");
  CHECK(why_not(with_epilogue([](const S& s, const Z&, const Y& y, const I& m, const I& n) {
          Var doubled = s;
          for ([[maybe_unused]] I i : range(3)) doubled = doubled * 2.0f;
          store(y, {m, n}, doubled);
        })) == "the kernel has another loop");
  CHECK(why_not(with_epilogue([](const S& s, const Z&, const Y& y, const I& m, const I& n) {
          store(y, {m, n}, s + transpose(s));
        })) == "threads exchange elements of tiles");
  // A tile that must be retained: with 512 registers per thread; with as many as the accumulators, beside them and
  // another.
  CHECK(why_not(with_epilogue([](const S& s, const Z& z, const Y& y, const I& m, const I& n) {
          const Tile kept = load(z, {m, n}, {512, 128});
          store(y, {m, n}, s);
          store(z, {m + 100, n}, kept);
        })) == "a tile takes 512 registers of each thread");
  CHECK(why_not(with_epilogue(
                    [](const S& s, const Z& z, const Y& y, const I& m, const I& n) {
    const Tile kept = load(z, {m, n}, {128, 256});
    store(y, {m, n}, s + kept);
    store(z, {m + 100, n}, s - kept);
                    },
                    {128, 256, 64}))
            .find(" registers, and a thread has 220") != std::string::npos);
  // Values that all threads of the CTA must know.
  CHECK(why_not(with_epilogue([](const S& s, const Z& z, const Y& y, const I& m, const I& n) {
          const Tile drawn = atomic_add(z, {m, n}, full<f32>({1, 1}, 1));
          store(y, {m, n}, s + drawn);
        })) == "the kernel uses results or memory orders of atomics");
  CHECK(why_not(with_epilogue([](const S& s, const Z& z, const Y& y, const I& m, const I& n) {
          store(y, {m, n}, s);
          atomic_add(z, {m, n}, full<f32>({1, 1}, 1), MemoryOrder::release);
        })) == "the kernel uses results or memory orders of atomics");
  CHECK(why_not(with_epilogue([](const S& s, const Z&, const Y& y, const I& m, const I& n) {
          check(s >= 0, "no sum is negative");
          store(y, {m, n}, s);
        })) == "the kernel checks or prints");
}

TEST_CASE("consumer groups, warp groups, stages and raster order follow from the tile", "[plan]") {
  struct Share {
    MatmulTiles tiles;
    int groups, consumer_groups, stages, together;
  };
  for (const Share& share : {Share{{64, 64, 64}, 1, 2, 12, 16},
                             {{64, 128, 64}, 1, 2, 8, 16},
                             {{64, 256, 64}, 1, 2, 4, 16},
                             {{128, 64, 64}, 1, 2, 6, 8},
                             {{128, 128, 64}, 1, 2, 5, 16},
                             {{128, 192, 64}, 1, 2, 4, 16},
                             {{128, 256, 64}, 2, 1, 4, 16},
                             {{256, 64, 64}, 2, 1, 4, 8},
                             {{256, 128, 64}, 2, 1, 3, 8},
                             {{256, 192, 64}, 2, 1, 2, 8},
                             {{128, 128, 128}, 1, 2, 2, 16},
                             {{64, 64, 256}, 1, 2, 3, 16}}) {
    INFO(fmt::format("[{},{}] by {}", share.tiles.m, share.tiles.n, share.tiles.k));
    const Plan plan = plan_with(plain(share.tiles));
    REQUIRE(has_roles(plan));
    const Role &producer = plan.phases[0].roles[0], &consumer = plan.phases[0].roles[1];
    CHECK(producer.warps == 4);
    CHECK(consumer.warps == 4 * share.groups);
    CHECK(consumer.consumer_groups == share.consumer_groups);
    REQUIRE(plan.pipelines.size() == 1);
    CHECK(plan.pipelines[PipelineId{0}].stages == share.stages);
    CHECK(plan.phases[0].schedule.raster_group == share.together);
    CHECK(plan.shared_bytes <= plan.target.shared_bytes);
    CHECK(count<TmaLoad>(plan) == share.tiles.k / 64 + 2 * (share.tiles.n / 64));  // right ones before the wait, too
    CHECK(count<TmaStore>(plan) == share.tiles.n / 32);
    CHECK(count<Store>(plan) == 0);
    CHECK(count<DeclareAccumulator>(plan) == 1);
  }
}

TEST_CASE("the schedule pass reports how warp specialization divides the work, or why it does not apply", "[plan]") {
  const auto decided = [](const Graph& traced, const Changes& change = {}, Arch arch = Arch::sm_90a) {
    const Graph graph = run_passes(traced);
    Variant variant = dense_variant(graph);
    if (change) change(variant);
    std::optional<Plan> plan;
    make_plan(graph, variant, arch, {.verify = true},
              {.after_pass = [&](const lowering::PlanPass& pass, const Plan& made) {
                if (pass.name == "schedule") plan = made;
              }});
    return plan.value();
  };
  using Notes = std::vector<std::string>;
  const Plan turns = decided(plain({128, 128, 64}));
  REQUIRE(turns.phases[0].roles.size() == 2);
  CHECK(turns.phases[0].roles[1].consumer_groups == 2);
  CHECK(turns.phases[0].roles[1].body.empty());
  CHECK(notes(turns) ==
        Notes{"warp-specialized: 128x128x64 bf16 by wgmma, 2 consumer groups of 1 warp group, 5 stages, "
              "1 store by TMA"});
  CHECK(notes(decided(plain({64, 64, 64}), [](Variant& v) { v.split_k = SplitK::cluster; }))[0].ends_with(
      "1 consumer group of 1 warp group, 12 stages, split-K in clusters, 1 store by TMA"));
  CHECK(notes(decided(plain({64, 64, 64}), [](Variant& v) { v.tensors[1].tma_addressable = false; }))[0].ends_with(
      "12 stages, 1 tile copied by threads, 1 store by TMA"));
  // A thread's accumulators leave no registers for GELU: two warp groups share them.
  const Plan shared = decided(gelu({128, 192, 64}));
  CHECK(shared.phases[0].roles[1].warps == 8);
  REQUIRE(notes(shared).size() == 2);
  CHECK(notes(shared)[1].starts_with("schedule candidate rejected: "));
  CHECK(notes(shared)[1].ends_with(" registers, and a thread has 220"));
  const Plan one = decided(plain({32, 64, 64}));
  CHECK(one.phases[0].roles.size() == 1);
  CHECK(notes(one) == Notes{"not warp-specialized: no wgmma schedule for tiles of [32,64] x [64,64]"});
  CHECK(notes(decided(plain({64, 64, 64}), {}, Arch::sm_80)).empty());
}

std::string pdl_order(const Body& steps) {
  std::string order;
  for (const Step& step : steps) {
    if (step.action.is<GridDependencyTrigger>()) order += "trigger ";
    if (step.action.is<GridDependencyWait>()) order += "wait ";
    if (step.action.is<Barrier>()) order += "barrier ";
  }
  return order;
}

TEST_CASE("a warp-specialized kernel waits for the previous launch before its first access", "[plan]") {
  const Plan plan = plan_with(plain({128, 128, 64}));
  CHECK(plan.waits_for_previous());
  CHECK(pdl_order(plan.phases[0].prologue) == "barrier ");
  CHECK(count<GridDependencyTrigger>(plan) == 0);  // the next launch begins when its CTAs have ended
  for (const Role& role : plan.phases[0].roles) {
    const auto wait =
        std::ranges::find_if(role.body, [](const Step& step) { return step.action.is<GridDependencyWait>(); });
    CHECK(std::all_of(role.body.begin(), wait, [](const Step& step) {
      return step.action.is<SetMaxNReg>() || step.action.is<Compute>() || step.action.is<PrefetchBeforeWait>();
    }));
    CHECK(wait < role.body.end() - 1);
  }
  CHECK_FALSE(plan_with(plain({128, 128, 64}), {}, Arch::sm_80).waits_for_previous());
}

TEST_CASE("threads' loads stay behind the PDL wait", "[plan]") {
  const auto row = kernel("row", [](In<f32, 2> x, In<f32, 1> weight, Out<f32, 2> y) {
    Index i = blocks(x.extent(0));
    store(y, {i, 0}, load(x, {i, 0}, {1, 768}) * load(weight, {0}, {768}));
  });
  Plan plan = plan_with(row.graph());
  CHECK(plan.waits_for_previous());
  CHECK(violations(plan).empty());
  // The next launch begins behind this one's wait: its CTAs must not take the places of CTAs that have not begun.
  CHECK(pdl_order(plan.phases[0].prologue) == "wait trigger ");
  const auto reads_in_order = [](Plan& of) {
    int reads = 0, in_order = 0;
    for (const StepPlace& place : steps_of(of))
      each_read(place.step(), [&](const Sweep&, TileAccess& read) { ++reads, in_order += read.in_order; });
    return std::pair(reads, in_order);
  };
  // A role's, too: the bias of a warp-specialized matmul.
  Plan biased = plan_with(gelu({128, 128, 64}));
  CHECK(biased.phases[0].roles.size() > 1);
  CHECK(biased.waits_for_previous());
  CHECK(reads_in_order(biased) == std::pair(1, 1));
  bool all = true;
  int reads = 0;
  for (const StepPlace& place : steps_of(plan))
    each_read(place.step(), [&](const Sweep&, TileAccess& read) {
      ++reads;
      all &= std::exchange(read.in_order, false);
    });
  CHECK((reads == 2 && all));
  const std::vector<std::string> found = violations(plan);
  REQUIRE(!found.empty());
  CHECK(found[0].find("may be read before the grid dependency wait") != std::string::npos);
  Plan kept = plan_with(row.graph());
  for (const StepPlace& place : steps_of(kept))
    each_read(place.step(), [&](const Sweep&, TileAccess& read) { read.padding = read.kept; });
  CHECK(violations(kept).front().find("is read with evict_last, but not in order by 16-byte") != std::string::npos);
  // For unaligned rows copies are plain loads.
  const auto bytes = [](Variant& variant) {
    for (TensorClass& tensor : variant.tensors) tensor.alignment = 2;
  };
  CHECK_FALSE(plan_with(plain({32, 32, 32}), bytes).waits_for_previous());
  Plan copied = plan_with(plain({32, 32, 32}));
  CHECK((copied.waits_for_previous() && violations(copied).empty()));
  the<Fetch>(copied).tiles.front().copy = Fetch::Copy::vector;
  REQUIRE(!violations(copied).empty());
  CHECK(violations(copied)[0].find("by plain loads in a launch that may begin before") != std::string::npos);
  CHECK_FALSE(plan_with(row.graph(), {}, Arch::sm_80).waits_for_previous());
  CHECK_FALSE(plan_with(row.graph(), {}, Arch::parse("sm_120")).waits_for_previous());
}

TEST_CASE("rows that no box fills are cleared before they are read", "[plan]") {
  for (const MatmulTiles& tiles : {MatmulTiles{64, 64, 64}, {128, 256, 64}}) {
    const Plan whole = plan_with(plain(tiles));
    INFO(tree_text(whole));
    CHECK(whole.pipelines[PipelineId{0}].clipped == std::vector<ClippedRows>{{BufferId{0}, 0, 0}, {BufferId{1}, 1, 0}});
    // Two consumer groups synchronize by their ping-pong turns.
    const bool two = tiles.n == 64;
    CHECK(whole.phases[0].roles[1].consumer_groups == (two ? 2 : 1));
    // The step at this distance after the clearing.
    const auto behind = [](Plan& plan, std::size_t steps) {
      Body& body = plan.phases[0].roles[1].body;
      std::size_t i = 0;
      while (!body.at(i).action.is<ZeroFillRows>()) ++i;
      return StepPlace{&body, i + steps};
    };
    const PlantedFault faults[] = {
        {"rows are not cleared", [&](Plan& p) { behind(p, 0).drop(); }, "not zeroed"},
        {"rows are cleared after the fence", [&](Plan& p) { behind(p, 0).move(1); }, "not zeroed"},
        {"no fence", [&](Plan& p) { behind(p, 1).drop(); }, "not zeroed"},
        {"no barrier", [&](Plan& p) { two ? place_of<NamedBarrier>(p, 0).drop() : behind(p, 2).drop(); },
         two ? "" : "not zeroed"},
        {"boxes that are not clipped", [](Plan& p) { p.tensor_maps[TensorMapId{0}].tensor.clipped = false; },
         "no fewer rows"},
        {"a pipeline that does not know of the rows", [](Plan& p) { p.pipelines[PipelineId{0}].clipped.pop_back(); },
         "has fewer rows"},
        {"rows of another axis", [](Plan& p) { p.pipelines[PipelineId{0}].clipped[0].axis = 1; },
         "not clipped like its boxes"},
        {"rows of another tensor", [](Plan& p) { p.pipelines[PipelineId{0}].clipped[1].argument = 0; },
         "not clipped like its boxes"},
        {"rows of an axis that does not exist", [](Plan& p) { p.pipelines[PipelineId{0}].clipped[1].axis = 2; },
         "an unknown axis or buffer"},
    };
    check_reported(whole, faults);
  }
}

TEST_CASE("tile coordinates that may exceed 32 bits", "[plan]") {
  using I = Index;
  const auto far = [](const Graph& graph) {
    Plan plan = plan_with(graph);
    CHECK(has_roles(plan));
    std::ptrdiff_t count = 0;
    const auto add = [&](const std::vector<TileCoordinate>& at) {
      count += std::ranges::count_if(at, &TileCoordinate::far);
    };
    for (const StepPlace& place : places_of<TmaLoad>(plan)) add(place.step().action.get<TmaLoad>().at);
    for (const StepPlace& place : places_of<TmaStore>(plan)) add(place.step().action.get<TmaStore>().at);
    return count;
  };
  // A loop's counter is used in two coordinates, along the rows of one operand and the columns of the other; and in
  // that of the one that is prefetched before the wait.
  const auto k_iterations = [&](const auto& count) { return far(with_rounds(count)); };
  CHECK(k_iterations([](const X& x, const I&, const Scalar<i32>&) { return cdiv(x.extent(1), 64); }) == 0);
  CHECK(k_iterations([](const X& x, const I&, const Scalar<i32>&) { return cdiv(x.extent(1), 63); }) == 3);
  CHECK(k_iterations([](const X&, const I&, const Scalar<i32>&) { return 1 << 25; }) == 0);
  CHECK(k_iterations([](const X&, const I&, const Scalar<i32>&) { return (1 << 25) + 1; }) == 3);
  // Two matmuls' tiles of a store, and one of an operand.
  const auto rows = [&](const auto& row) {
    return far(kernel("rows", [&](X x, X w, Y y, Scalar<i32> s) {
                 auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 64));
                 Var acc = zeros<f32>({64, 64});
                 for (I k : range(cdiv(x.extent(1), 64)))
                   acc = mma(load(x, {row(m, s), k}, {64, 64}), load(w, {k, n}, {64, 64}), acc);
                 store(y, {row(m, s), n}, acc);
               }).graph());
  };
  CHECK(rows([](const I& m, const Scalar<i32>&) { return m; }) == 0);
  CHECK(rows([](const I& m, const Scalar<i32>&) { return m + 1; }) == 3);
  CHECK(rows([](const I&, const Scalar<i32>& s) { return s; }) == 3);
  CHECK(rows([](const I&, const Scalar<i32>&) { return (1 << 25) - 1; }) == 0);
  CHECK(rows([](const I&, const Scalar<i32>&) { return -(1 << 25) + 1; }) == 0);
  CHECK(rows([](const I&, const Scalar<i32>&) { return 1 << 25; }) == 3);
  CHECK(rows([](const I&, const Scalar<i32>&) { return -(1 << 25) - 1; }) == 3);
  const auto grid = [&](const auto& blocks_of) {
    return far(kernel("grid", [&](X x, X w, Y y, Scalar<i32> s) {
                 const I m = blocks(blocks_of(y, s));
                 Var acc = zeros<f32>({64, 64});
                 for (I k : range(cdiv(x.extent(1), 64)))
                   acc = mma(load(x, {m, k}, {64, 64}), load(w, {k, 0}, {64, 64}), acc);
                 store(y, {m, 0}, acc);
               }).graph());
  };
  CHECK(grid([](const Y& y, const Scalar<i32>&) { return cdiv(y.extent(0), 64); }) == 0);
  CHECK(grid([](const Y& y, const Scalar<i32>&) { return cdiv(y.extent(0), 32); }) == 3);
  CHECK(grid([](const Y&, const Scalar<i32>& s) { return s; }) == 3);
  CHECK(grid([](const Y&, const Scalar<i32>&) { return 4; }) == 0);
}

TEST_CASE("a bias is read before the loop if registers hold it, else part by part", "[plan]") {
  const auto steps = [](MatmulTiles tiles) {
    Plan plan = plan_with(gelu(tiles));
    std::string order;
    each_step(plan.phases[0].roles[1].body, [&](StepPlace at) {
      const Load* const load = at.step().action.as<Load>();
      if (load) order += load->access.from_here ? "part " : "row ";
      if (at.step().action.is<Loop>()) order += "loop ";
    });
    return order;
  };
  CHECK(steps({128, 128, 64}) == "row loop ");
  CHECK(steps({128, 192, 64}) == "row loop ");  // shared by two warp groups
  CHECK(steps({128, 256, 64}) == "loop part part part part ");
}

TEST_CASE("TMA stores whole tiles of accumulators, of one type, where nothing else is written", "[plan]") {
  using Z = InOut<f32, 2>;
  using S = Tile<f32, 2>;
  using I = Index;
  struct Stores {
    int tma_tensors, others;
    bool operator==(const Stores&) const = default;
  };
  const auto stores = [](const Graph& graph, const Changes& change = {}) {
    const Plan plan = plan_with(graph, change);
    CHECK(has_roles(plan));
    return Stores{count<TmaStore>(plan), count<Store>(plan)};
  };
  const auto of = [&](const auto& epilogue) { return stores(with_epilogue(epilogue)); };
  CHECK(of(stored) == Stores{2, 0});
  // Twice to one tensor, to an InOut, by some CTAs, at another index than that of the tile.
  CHECK(of([](const S& s, const Z&, const Y& y, const I& m, const I& n) {
          store(y, {m, n}, s);
          store(y, {m + 100, n}, -s);
        }) == Stores{0, 2});
  CHECK(of([](const S& s, const Z& z, const Y& y, const I& m, const I& n) {
          store(z, {m, n}, s);
          store(y, {m, n}, zeros<f32>({1, 1}));
        }) == Stores{0, 2});
  CHECK(of([](const S& s, const Z&, const Y& y, const I& m, const I& n) {
          if_(m > 0, [&] { store(y, {m, n}, s); });
        }) == Stores{0, 1});
  CHECK(of([](const S& s, const Z&, const Y& y, const I& m, const I& n) {
          store(y.slice(1, 0, 640), {m, n}, s);
        }) == Stores{0, 1});
  // Transposed: two parts of rows, with two panels each.
  CHECK(of([](const S& s, const Z&, const Y& y, const I& m, const I& n) {
          store(y, {n, m}, transpose(s));
        }) == Stores{4, 0});
  // A tile of as many elements with other rows than the accumulators.
  CHECK(of([](const S& s, const Z& z, const Y& y, const I& m, const I& n) {
          store(y, {m, n}, full<f32>({64, 64}, 1));
          store(z, {m, n}, s);
        }).others >= 1);
  const Graph plain = with_epilogue(stored);
  CHECK(stores(plain, [](Variant& v) { v.tensors[3].tma_addressable = false; }) == Stores{0, 1});
  CHECK(stores(plain, [](Variant& v) { v.tensors[3].contiguous_axis = 0; }) == Stores{0, 1});
  const auto typed = [&](const auto& epilogue) {
    return stores(kernel("typed", [&](X x, X w, Out<bf16, 2> y, Out<bf16, 2> z, Y u) {
                    auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 192));
                    epilogue(kernels::matmul<bf16>(x, w, m, n, {64, 192, 64}), y, z, u, m, n);
                  }).graph());
  };
  using H = Out<bf16, 2>;
  // With an odd number of parts the first one of a tile reuses the buffer of the last part of the previous tile.
  CHECK(typed([](const S& s, const H& y, const H& z, const Y& u, const I& m, const I& n) {
          store(y, {m, n}, cast<bf16>(s));
          store(z, {m, n}, zeros<bf16>({1, 1}));
          store(u, {m, n}, zeros<f32>({1, 1}));
        }) == Stores{3, 2});
  CHECK(typed([](const S& s, const H& y, const H& z, const Y& u, const I& m, const I& n) {
          store(y, {m, n}, cast<bf16>(s));
          store(z, {m, n}, cast<bf16>(-s));
          store(u, {m, n}, zeros<f32>({1, 1}));
        }) == Stores{6, 1});
  CHECK(typed([](const S& s, const H& y, const H& z, const Y& u, const I& m, const I& n) {
          store(u, {m, n}, s);
          store(y, {m, n}, cast<bf16>(s));
          store(z, {m, n}, cast<bf16>(-s));
        }) == Stores{6, 2});
}

TEST_CASE("a warp-specialized matmul is short to read, and a comment at its start explains its constants", "[plan]") {
  for (const MatmulTiles& tiles : {MatmulTiles{128, 256, 64}, {256, 128, 64}, {128, 192, 64}, {128, 128, 64}})
    for (const bool nk : {false, true}) {
      const auto gemm = kernel("gemm", [=](X x, X w, Out<bf16, 2> y) {
        auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
        const auto right = nk ? w.permute({1, 0}) : w.permute({0, 1});
        Var acc = zeros<f32>({tiles.m, tiles.n});
        for (Index k : range(cdiv(x.extent(1), tiles.k)))
          acc = mma(load(x, {m, k}, {tiles.m, tiles.k}), load(right, {k, n}, {tiles.k, tiles.n}), acc);
        store(y, {m, n}, cast<bf16>(acc));
      });
      const Graph graph = run_passes(gemm.graph());
      const KernelSource source = generate(graph, dense_variant(graph), Arch::sm_90a);
      const std::string own = source.text.substr(source.text.find("extern \"C\" __global__"));
      INFO(source.plan << own);
      CHECK(std::ranges::count(own, '\n') < 220);
      const Plan plan = plan_with(gemm.graph());
      const Pipeline& pipeline = plan.pipelines[PipelineId{0}];
      const auto says = [&](const std::string& what) { return source.plan.find(what) != std::string::npos; };
      CHECK(says(fmt::format("pipeline: {} stages, mbarriers at {}, ", pipeline.stages, pipeline.offset)));
      for (const Role& role : plan.phases[0].roles)
        CHECK(says(fmt::format("role {}: warps {} to {}", role.name, role.first_warp, role.end_warp() - 1)));
      CHECK(says("24 registers per thread"));
      CHECK(says("240 registers per thread"));
      CHECK(says(plan.phases[0].roles[1].consumer_groups > 1 ? "named barriers 1,2,3,4" : "named barriers 1"));
      CHECK(says(" rows per warp group by "));
    }
}

}  // namespace test_warp_specialization
