// The language's errors when traced, and its rules about loops, threads and nesting. Its type rules are in
// compile_fail/.
#include <chrono>
#include <limits>
#include <optional>
#include <thread>

#include "model/kernels.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"

namespace test_language {

using namespace tessera::internal;

namespace {

template <class F>
std::string traced(const F& function) {
  return error_of([&] { trace_kernel("bad", function); });
}

}  // namespace

TEST_CASE("errors name the kernel, the location, the shapes and the fix", "[language]") {
  const unsigned line = __LINE__ + 3;
  const std::string text = traced([](In<f32, 2> x, Out<f32, 2> y) {
    Tile a = load(x, {0, 0}, {4, 8}), b = load(x, {0, 0}, {4, 6});
    store(y, {0, 0}, a + b);
  });
  CHECK(says(text, {"kernel 'bad'", "test_language.cpp:" + std::to_string(line), "add", "[4,8]", "[4,6]",
                    "make extents 8 and 6 equal, or one of them 1"}));
}

TEST_CASE("what does not fit is an error when traced", "[language]") {
  CHECK(says(traced([](In<f32, 2> x, Out<f32, 2> y) {
               store(y, {0, 0}, mma(load(x, {0, 0}, {4, 8}), load(x, {0, 0}, {4, 8}), zeros<f32>({4, 8})));
             }),
             {"mma", "[4,8] x [4,8] + [4,8]", "[m,k] x [k,n] + [m,n]"}));
  CHECK(says(traced([](In<f32, 2> x, Out<f32, 1> y) {
               store(y, {0}, reshape(load(x, {0, 0}, {4, 8}), {31}));
             }),
             {"reshape", "32 elements", "31"}));
  CHECK(says(traced([](In<f32, 2> x, Out<f32, 2> y) {
               store(y, {0, 0}, reshape(load(x, {0, 0}, {4, 8}), {-1, 5}));
             }),
             {"reshape", "32 elements", "[-1,5]"}));
  CHECK(says(traced([](In<f32, 2> x, Out<f32, 1> y) {
               store(y, {0}, reshape(load(x, {0, 0}, {4, 8}), {std::int64_t{5000000000}}));
             }),
             {"reshape"}));
  CHECK(says(traced([](In<f32, 2> x, Out<f32, 2> y) {
               store(y, {0, 0}, slice(load(x, {0, 0}, {4, 8}), 1, 5, 4));
             }),
             {"slice: 4 elements from 5 on", "axis 1", "[4,8]", "extract reads missing elements as 0"}));
  CHECK(says(traced([](In<f32, 2> x, Out<f32, 2> y) {
               store(y, {0, 0}, slice(load(x, {0, 0}, {4, 8}), 1, 2, 4, -1));
             }),
             {"slice: 4 elements from 2 on by steps of -1"}));
  CHECK(says(traced([](In<f32, 2> x, Out<f32, 2> y) {
               store(y, {0, 0}, slice(load(x, {0, 0}, {4, 8}), 1, std::int64_t{1} << 32, 4));
             }),
             {"slice: 4 elements from 2147483647 on"}));
  CHECK(says(traced([](In<f32, 2> x, Out<f32, 2> y) {
               store(y, {0, 0}, split<3>(load(x, {0, 0}, {4, 8}), 1)[0]);
             }),
             {"split: axis 1 of [4,8]", "3 equal parts"}));
  CHECK(says(traced([](In<f32, 2> x, Out<f32, 1> y) {
               store(y, {0}, squeeze(load(x, {0, 0}, {4, 8}), 1));
             }),
             {"squeeze: axis 1 of [4,8]"}));
  CHECK(says(traced([](In<f32, 2> x, Out<f32, 2> y) {
               store(y, {0, 0}, extract(load(x, {0, 0}, {4, 8}), {0, 0}, {0, 8}));
             }),
             {"extract", "[0,8]", "at least 1"}));
  CHECK(says(traced([](In<f32, 2> x, Out<f32, 2> y) {
               y.tiles({4, 4}).store({0, 0}, load(x, {0, 0}, {4, 8}));
             }),
             {"store: a tile of [4,8] among tiles of [4,4]"}));
  CHECK(says(traced([](In<f32, 2> x, Out<f32, 2> y) {
               store(y, {0, 0}, sum(load(x, {0, 0}, {4, 8}), 2));
             }),
             {"sum", "axis 2 does not exist", "-2 to 1"}));
  CHECK(says(traced([](In<f32, 2> x, Out<f32, 2> y) {
               store(y, {0, 0}, sum(load(x, {0, 0}, {4, 8}), -3));
             }),
             {"axis -3 does not exist"}));
  CHECK(says(traced([](In<f32, 2> x, Out<f32, 2> y) {
               store(y, {0, 0}, permute(load(x, {0, 0}, {4, 8}), {0, 0}));
             }),
             {"permute", "axis 0", "twice"}));
  CHECK(says(traced([](In<f32, 2> x, Out<f32, 2> y) {
               store(y, {0, 0}, broadcast(load(x, {0, 0}, {4, 8}), {4, 4}));
             }),
             {"broadcast", "[4,8]", "[4,4]"}));
  CHECK(says(traced([](In<f32, 2> x, Out<f32, 2> y) {
               store(y, {0, 0}, concat(0, load(x, {0, 0}, {4, 8}), load(x, {0, 0}, {4, 7})));
             }),
             {"concat", "[4,7]", "[4,8]"}));
  CHECK(says(traced([](In<f32, 2> x, Out<f32, 2> y) {
               store(y, {0, 0}, load(x, {0, 0}, {0, 8}));
             }),
             {"load", "[0,8]", "at least 1"}));
  CHECK(says(traced([](In<f32, 2> x, Out<f32, 2> y) {
               store(y, {0, 0}, load(x, {0, 0}, {-4, 8}));
             }),
             {"[-4,8]", "at least 1"}));
  CHECK(says(traced([](In<f32, 2> x, Out<f32, 2>) { x.extent(2); }), {"extent", "axis 2 does not exist"}));
}

TEST_CASE("ops that need a tile of one shape or a single element report it themselves", "[language]") {
  CHECK(says(traced([](In<f32, 2> x, Out<f32, 1> y) {
               store(y, {0}, full<f32>({1}, 1) * item(load(x, {0, 0}, {4, 8})));
             }),
             {"item: a tile of [4,8] has more than one element", "sum(x)"}));
  CHECK(says(traced([](In<f32, 2> x, Out<f32, 2> y) {
               store(y, {0, 0}, interleave(load(x, {0, 0}, {4, 8}), load(x, {0, 0}, {4, 4}), 1));
             }),
             {"interleave: tiles [4,8] and [4,4]", "broadcast"}));
}

TEST_CASE("invalid flips, rolls, new axes and inserted parts are rejected where they are written", "[language]") {
  // With a tile of [4,8]; the reported location is not in a header.
  const auto refused = [](const auto& function, std::string_view why, std::string_view more = "") {
    const std::string text = traced([&](In<f32, 2> x, Out<f32, 2> y) {
      const Tile t = load(x, {0, 0}, {4, 8});
      store(y, {0, 0}, function(t));
    });
    UNSCOPED_INFO(text);
    return says(text, {"kernel 'bad', ", "test_language.cpp:", why, more});
  };
  CHECK(refused([](auto t) { return flip(t, 2); }, "flip: axis 2 does not exist in rank 2", "-2 to 1"));
  CHECK(refused([](auto t) { return t + flip(item(sum(t)), 0); }, "flip: axis 0 does not exist", "rank 0 has no axes"));
  // The axis is the last argument. A shift may be any number.
  CHECK(refused([](auto t) { return roll(t, 1, 3); }, "roll: axis 3 does not exist in rank 2", "-2 to 1"));
  CHECK(refused([](auto t) { return roll(t, 0, -3); }, "roll: axis -3 does not exist in rank 2"));
  // Axes are those of the result.
  CHECK(refused([](auto t) { return squeeze(expand_dims(t, 3), 2); }, "expand_dims: axis 3 does not exist in rank 3"));
  CHECK(refused([](auto t) { return squeeze(expand_dims(t, -4), 0); }, "expand_dims: axis -4 does not exist",
                "-3 to 2"));
  // A part may be anywhere, as long as its index is an i32 and an existing value.
  const auto far = [](auto t) { return insert(t, {3000000000ll, 0}, zeros<f32>({2, 4})); };
  CHECK(refused(far, "3000000000", "i32"));
  std::optional<Tile<f32, 2>> part;
  const auto gone = [&](auto t) {
    for (Index i : range(2)) part.emplace(t * cast<f32>(i));
    return insert(t, {0, 1}, *part);
  };
  CHECK(refused(gone, "inside a loop is used outside of it", "carry it out in a Var"));
}

TEST_CASE("an if_ has one else_, and an iteration of a while_ can end it", "[language]") {
  CHECK(says(traced([](In<i32, 1> x) {
               auto branch = if_(x.extent(0) > 3, [&] { print("more"); });
               branch.else_([&] { print("less"); });
               branch.else_([&] { print("less"); });
             }),
             {"else_: this if_ already has one"}));
  const std::initializer_list<std::string_view> endless{"while_: no iteration changes the condition"};
  CHECK(says(traced([](In<i32, 1> x) {  // computed before the loop
               Var i = constant<i32>(0);
               Tile below = i < x.extent(0);
               while_([&] { return below; }, [&] { i += 1; });
             }),
             endless));
  CHECK(says(traced([](In<i32, 1> x) {  // a Var that no iteration assigns
               Var i = constant<i32>(0), j = constant<i32>(0);
               while_([&] { return item(load(x, {i}, {1})) > 0; }, [&] { j += 1; });
             }),
             endless));
  CHECK(traced([](In<i32, 1> x) {
          Var i = constant<i32>(0);
          while_([&] { return item(load(x, {i}, {1})) > 0; }, [&] { i += 1; });
        }) == "(no error)");
  CHECK(traced([](InOut<i32, 1> x) {  // the condition reads memory that the body writes
          const auto first = [&] {
            Tile value = load(x, {0}, {1});
            return item(value);
          };
          while_([&] { return first() > 0; }, [&] { store(x, {0}, full<i32>({1}, 0)); });
        }) == "(no error)");
  CHECK(traced([](In<i32, 1> x) {  // by a Var that changes in one branch of an if_
          Var i = constant<i32>(0), ended = constant<i32>(0);
          while_([&] { return ended == 0; },
                 [&] {
      i += 1;
      if_(i >= x.extent(0), [&] { ended = constant<i32>(1); });
          });
        }) == "(no error)");
}

TEST_CASE("literals that do not fit are rejected, others are exact", "[language]") {
  const auto with = [](auto literal) {
    return traced([=](In<i32, 1> x, Out<i32, 1> y) { store(y, {0}, load(x, {0}, {4}) + literal); });
  };
  CHECK(says(with(3000000000ll), {"3000000000", "i32"}));
  CHECK(with(2147483647) == "(no error)");
  const auto real = [](auto literal) {
    return traced([=](In<f32, 1> x, Out<f32, 1> y) { store(y, {0}, load(x, {0}, {4}) + literal); });
  };
  CHECK(says(real(16777217), {"16777217", "f32", "rounded"}));
  CHECK(real(16777216) == "(no error)");
  CHECK(real(16777217.0) == "(no error)");  // a floating literal rounds, as in C++
  CHECK(says(real(1e39), {"f32", "range"}));
  CHECK(says(real(1e-50), {"1e-50", "f32", "it would be 0"}));
  CHECK(says(real(-7e-46), {"f32", "it would be 0"}));  // half of the smallest, to even
  CHECK(real(1e-45) == "(no error)");
  CHECK(real(-0.0) == "(no error)");
  CHECK(says(traced([](Out<f16, 1> y) { store(y, {0}, full<f16>({4}, 1e-9)); }), {"f16", "it would be 0"}));
  CHECK(says(traced([](Out<f8e4m3, 1> y) { store(y, {0}, full<f8e4m3>({4}, 1e-4)); }), {"f8e4m3", "it would be 0"}));
  CHECK(traced([](Out<f64, 1> y) { store(y, {0}, full<f64>({4}, 5e-324)); }) == "(no error)");
  CHECK(real(inf) == "(no error)");
  CHECK(says(traced([](Out<f16, 1> y) { store(y, {0}, full<f16>({4}, 70000.0)); }), {"f16", "range"}));
  CHECK(says(traced([](Out<u8, 1> y) { store(y, {0}, full<u8>({4}, 256)); }), {"256", "[0, 255]"}));
  CHECK(says(traced([](In<i32, 1> x, Out<i32, 1> y) { store(y, {0}, load(x, {0}, {4}, 0.5)); }), {"0.5", "integer"}));
  const Graph graph =
      trace_kernel("wide", [](In<i64, 1> x, Out<i64, 1> y) { store(y, {0}, load(x, {0}, {4}) + 9007199254740993ll); });
  CHECK(to_string(graph).find("9007199254740993") != std::string::npos);  // above 2^53, where doubles have gaps
}

TEST_CASE("a Kernel may be assigned its kernel later", "[language]") {
  struct Holder {
    Kernel<In<f32, 1>, Out<f32, 1>> copy;
  } holder;
  CHECK(!holder.copy);
  CHECK(says(error_of([&] { (void)holder.copy.name(); }), {"an empty Kernel is used"}));
  const Device device = Device::cpu();
  const Tensor<f32, 1> x(device, {4}), y(device, {4});
  CHECK(says(error_of([&] { launch(device.stream(), holder.copy, x, y); }), {"an empty Kernel"}));
  holder.copy = kernel("copy", [](In<f32, 1> from, Out<f32, 1> to) { store(to, {0}, load(from, {0}, {4})); });
  CHECK(holder.copy);
  x.copy_from(std::vector<f32>{1, 2, 3, 4});
  launch(device.stream(), holder.copy, x, y);
  CHECK(y.to_vector() == std::vector<f32>{1, 2, 3, 4});
}

TEST_CASE("options of scans and sorts have names", "[language]") {
  const auto behind = [](const auto& x, tessera::ScanOptions options) { return cumsum(x, 0, options); };
  const auto ordered = [](const auto& x, tessera::SortOptions options) { return sort(x, 0, options); };
  const auto some = [](const auto& x, tessera::TopKOptions options) { return top_k(x, 2, 0, options); };
  CHECK(traced([&](In<f32, 1> x, Out<f32, 1> y) {
          Tile t = load(x, {0}, {4});
          store(y, {0}, ordered(behind(t, {.reverse = true}), {.descending = true}));
          store(y, {1}, some(t, {.smallest = true}).value);
        }) == "(no error)");
}

TEST_CASE("a value may leave its loop only in a Var", "[language]") {
  const std::string text = traced([](In<f32, 2> x, Out<f32, 2> y) {
    std::optional<Tile<f32, 2>> leak;
    for (Index i : range(4)) leak.emplace(load(x, {i, 0}, {4, 8}));
    store(y, {0, 0}, *leak);
  });
  CHECK(says(text, {"inside a loop", "outside", "carry it out in a Var"}));
}

TEST_CASE("leaving a traced loop is detected", "[language]") {
  const auto with_break = [](In<f32, 2> x, Out<f32, 2> y) {
    for (Index i : range(4)) {
      store(y, {i, 0}, load(x, {i, 0}, {4, 8}));
      break;
    }
  };
  CHECK(says(traced(with_break), {"break or return leaves a traced loop"}));
  const auto with_return = [](In<f32, 2> x, Out<f32, 2> y) {
    for (Index i : range(4))
      for (Index j : range(4)) {
        store(y, {i, j}, load(x, {i, 0}, {4, 8}));
        return;
      }
  };
  CHECK(says(traced(with_return), {"break or return leaves a traced loop"}));
}

TEST_CASE("an exception from a kernel's function passes through, and tracing still works afterwards", "[language]") {
  CHECK_THROWS_AS(trace_kernel(
                      "throws",
                      [](In<f32, 1> x, Out<f32, 1>) {
    Var v = load(x, {0}, {4});
    for ([[maybe_unused]] Index i : range(3)) {
      v = v + 1;
      throw std::runtime_error("mine");
    }
                      }),
                  std::runtime_error);
  CHECK_NOTHROW(trace_kernel("after", [](In<f32, 1> x, Out<f32, 1> y) { store(y, {0}, load(x, {0}, {4})); }));
}

TEST_CASE("a Var keeps its shape, in branches too", "[language]") {
  CHECK(says(traced([](In<f32, 1> x, Out<f32, 1> y) {
               Var v = load(x, {0}, {4});
               v = load(x, {0}, {8});
               store(y, {0}, v);
             }),
             {"a Var of f32[4] cannot take f32[8]"}));
  CHECK(says(traced([](In<f32, 1> x, Out<f32, 1> y) {
               Var v = load(x, {0}, {4});
               if_(x.extent(0) > 3, [&] { v = load(x, {0}, {5}); });
               store(y, {0}, v);
             }),
             {"a Var of f32[4] cannot take f32[5]"}));
  CHECK(says(traced([](In<f32, 1> x, Out<f32, 1> y) {
               std::optional<Tile<f32, 1>> inside;
               if_(x.extent(0) > 3, [&] {
                 Var v = load(x, {0}, {4});
                 for ([[maybe_unused]] Index i : range(x.extent(0))) v += 1;
                 store(y, {1}, v);
                 for (Index i : range(2)) inside.emplace(full<f32>({4}, 1) * cast<f32>(i));
               });
               store(y, {0}, *inside);
             }),
             {"inside a loop is used outside of it; carry it out in a Var"}));
  // Vars of a branch itself and from outside may change.
  CHECK(traced([](In<f32, 1> x, Out<f32, 1> y) {
          Var outside = constant<f32>(1);
          if_(x.extent(0) > 3, [&] {
            Var v = load(x, {0}, {4});
            for ([[maybe_unused]] Index i : range(3)) v = v + 1, outside += 1;
            store(y, {0}, v);
          }).else_([&] { outside = constant<f32>(0.5f); });
          store(y, {1}, outside + zeros<f32>({4}));
        }) == "(no error)");
}

TEST_CASE("blocks and require take values that the host knows", "[language]") {
  CHECK(says(traced([](In<i32, 1> x, Out<i32, 1>) { blocks(item(load(x, {0}, {1}))); }),
             {"blocks", "depends on a tile"}));
  CHECK(says(traced([](In<i32, 1> x, Out<i32, 1>) { blocks(x.extent(0)), blocks(4); }), {"called twice"}));
  CHECK(says(traced([](In<i32, 1> x, Out<i32, 1>) { require(item(load(x, {0}, {1})) == 3, "three"); }),
             {"require", "depends on a tile"}));
  CHECK(says(traced([](In<i32, 1> x, Out<i32, 1>) {
               for ([[maybe_unused]] Index i : range(3)) require(x.extent(0) == 3, "three");
             }),
             {"require", "outside of loops"}));
}

TEST_CASE("an Out without a store is an error", "[language]") {
  CHECK(says(
      traced([](In<f32, 1> x, Out<f32, 1> y, Out<i32, 2>) { store(y, {0}, load(x, {0}, {4})); }),
      {"kernel 'bad', ", "test_language.cpp:", "nothing is stored to parameter 3, an Out<i32, 2>", "store to it"}));
  // A store under a condition is enough, as is any op that writes.
  CHECK(traced([](In<f32, 1> x, Out<f32, 1> y, Out<f32, 1> z, InOut<f32, 1>) {
          if_(x.extent(0) > 3, [&] { store(y.slice(0, 1, 2), {0}, load(x, {0}, {4})); });
          scatter(z, iota({4}, 0), load(x, {0}, {4}));
        }) == "(no error)");
}

TEST_CASE("a launch in a kernel's function is rejected", "[language]") {
  const auto inner = kernel("inner", [](Out<f32, 1> y) { store(y, {0}, zeros<f32>({4})); });
  const Device cpu = Device::cpu();
  const Tensor<f32, 1> y = cpu.tensor<f32>({4});
  Sequence sequence(cpu);
  CHECK(says(traced([&](Out<f32, 1> z) {
               launch(cpu.stream(), inner, y);
               store(z, {0}, zeros<f32>({4}));
             }),
             {"launch of kernel 'inner' refused", "kernel 'bad' is being traced"}));
  CHECK(says(traced([&](Out<f32, 1>) { sequence.add(inner, y); }), {"'inner' refused", "'bad' is being traced"}));
  CHECK_NOTHROW(launch(cpu.stream(), inner, y));
}

TEST_CASE("a tile belongs to the kernel that made it", "[language]") {
  std::optional<Tile<f32, 1>> leak;
  trace_kernel("one", [&](In<f32, 1> x, Out<f32, 1> y) {
    leak.emplace(load(x, {0}, {4}));
    for (int i = 0; i < 100; ++i) leak.emplace(exp(*leak));  // more than the other kernels have
    store(y, {0}, *leak);
  });
  CHECK(says(traced([&](In<f32, 1>, Out<f32, 1> y) { store(y, {0}, *leak + 1); }), {"another kernel"}));
  CHECK(says(error_of([&] { [[maybe_unused]] Tile t = *leak + 1; }), {"outside of a kernel"}));
  // Also by ops that look at its shape first.
  const auto foreign = [&](const auto& function) {
    return says(traced([&](In<f32, 1>, Out<f32, 1> y) { function(*leak, y); }), {"another kernel"});
  };
  CHECK(foreign([](auto t, auto) { flip(t, 0); }));
  CHECK(foreign([](auto t, auto) { roll(t, 1, 0); }));
  CHECK(foreign([](auto t, auto) { slice(t, 0, 1, 2); }));
  CHECK(foreign([](auto t, auto) { split<2>(t, 0); }));
  CHECK(foreign([](auto t, auto) { squeeze(t, 0); }));
  CHECK(foreign([](auto t, auto) { expand_dims(t, 0); }));
  CHECK(foreign([](auto t, auto) { item(t); }));
  CHECK(foreign([](auto t, auto) { interleave(zeros<f32>({4}), t, 0); }));
  CHECK(foreign([](auto t, auto) { insert(zeros<f32>({4}), {0}, t); }));
  CHECK(foreign([](auto t, auto) { extract(t, {0}, {2}); }));
  CHECK(foreign([](auto t, auto) { top_k(t, 2, 0); }));
  CHECK(foreign([](auto t, auto) { mean(t, 0); }));
  CHECK(foreign([](auto t, auto) { (void)mma(reshape(t, {2, 2}), zeros<f32>({2, 2})); }));
  CHECK(foreign([](auto t, auto y) { y.tiles({4}).store({0}, t); }));
  CHECK(foreign([](auto t, auto) { histogram(cast<i32>(t), 0, 4); }));
}

TEST_CASE("a kernel traced inside another is rejected, and the outer one continues", "[language]") {
  std::string text;
  const Graph graph = trace_kernel("outer", [&](In<f32, 1> x, Out<f32, 1> y) {
    Tile a = load(x, {0}, {4});
    text =
        error_of([] { trace_kernel("inner", [](In<f32, 1> p, Out<f32, 1> q) { store(q, {0}, load(p, {0}, {4})); }); });
    store(y, {0}, a);
  });
  CHECK(says(text, {"'inner'", "'outer'"}));
  CHECK(graph.name == "outer");
}

TEST_CASE("tracing works from several threads", "[language]") {
  const auto text = [] { return to_string(kernels::attention<bf16>(4, 32, 16, 16).graph()); };
  const std::string expected = text();
  std::vector<std::thread> threads;
  std::atomic<int> equal = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) equal += text() == expected;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(equal == 80);
}

namespace {
auto square(TileExpr auto const& e) {
  Tile x = e;
  return x * x + x;
}
auto twice(TileExpr auto const& e) { return square(square(e)); }
auto four_times(TileExpr auto const& e) { return twice(twice(e)); }
auto eight_times(TileExpr auto const& e) { return four_times(four_times(e)); }
}  // namespace

TEST_CASE("deeply nested device functions stay small", "[language]") {
  const Graph graph =
      trace_kernel("deep", [](In<f32, 1> x, Out<f32, 1> y) { store(y, {0}, eight_times(load(x, {0}, {4}))); });
  CHECK(graph.nodes.size() < 30);
}

TEST_CASE("ordered reads see the writes before them", "[language]") {
  const Graph graph = trace_kernel("ordered", [](InOut<f32, 1> x) {
    Tile a = load(x, {0}, {4});
    store(x, {0}, a + 1);
    Tile b = load(x, {0}, {4});
    store(x, {1}, b);
  });
  std::vector<Op> effects;
  for (Id id : graph.regions[0].effects) effects.push_back(graph[id].op);
  CHECK(effects == std::vector<Op>{Op::load, Op::store, Op::load, Op::store});
}

TEST_CASE("an exception caught inside a kernel does not leave half a kernel", "[language]") {
  CHECK(says(traced([](In<f32, 1> x, Out<f32, 1> y) {
               try {
                 for (Index i : range(3)) {
                   store(y, {i}, load(x, {i}, {4}));
                   throw 1;
                 }
               } catch (int) {}
               store(y, {0}, load(x, {0}, {4}));
             }),
             {"exception left a loop"}));
  CHECK(says(traced([](In<f32, 1> x, Out<f32, 1> y) {
               try {
                 if_(x.extent(0) == 3, [] { throw 1; });
               } catch (int) {}
               store(y, {0}, load(x, {0}, {4}));
             }),
             {"exception left a loop or an if_"}));
}

TEST_CASE("an exception caught inside a kernel is reported even if Vars are alive", "[language]") {
  CHECK(says(traced([](In<f32, 1> x, Out<f32, 1> y) {
               Var sums = load(x, {0}, {4});
               try {
                 for (Index i : range(3)) {
                   sums = sums + load(x, {i}, {4});
                   throw 1;
                 }
               } catch (int) {}
               store(y, {0}, sums);
             }),
             {"exception left a loop or an if_"}));
  CHECK(says(traced([](In<f32, 1> x, Out<f32, 1> y) {
               Var sums = load(x, {0}, {4});
               try {
                 if_(x.extent(0) == 3, [&] {
                   sums = sums + 1.0f;
                   throw 1;
                 });
               } catch (int) {}
               store(y, {0}, sums);
             }),
             {"exception left a loop or an if_"}));
}

TEST_CASE("a Var may not end in a loop outside of which it was made", "[language]") {
  CHECK(says(traced([](In<f32, 1> x, Out<f32, 1> y) {
               std::optional<Var<f32, 1>> v;
               v.emplace(load(x, {0}, {4}));
               for (Index i : range(3)) {
                 store(y, {i}, *v);
                 v.reset();
               }
             }),
             {"destroyed inside"}));
}

TEST_CASE("every error reports its location", "[language]") {
  std::optional<Var<f32, 1>> leak;
  std::optional<Tile<i32, 1>> rows;
  trace_kernel("one", [&](In<f32, 1> x, In<i32, 1> i, Out<f32, 1> y) {
    leak.emplace(load(x, {0}, {4}));
    rows.emplace(load(i, {0}, {4}));
    store(y, {0}, *leak);
  });
  const std::string file = "test_language.cpp:";
  CHECK(says(traced([&](In<f32, 1>, Out<f32, 1> y) { store(y, {0}, *leak + 1.0f); }), {file, "another kernel"}));
  CHECK(says(traced([&](In<f32, 1>, Out<f32, 1> y) { store(y, {0}, *leak); }), {file, "another kernel"}));
  CHECK(says(traced([&](In<f32, 1> x, Out<f32, 1> y) { store(y, {0}, gather(x, *rows)); }), {file, "another kernel"}));
  CHECK(says(error_of([&] { [[maybe_unused]] Tile t = *leak + 1.0f; }), {file, "outside of a kernel"}));
  CHECK(
      says(traced([](In<f32, 1> x, Out<f32, 1> y) { store(y, {0}, concat(1, load(x, {0}, {4}), load(x, {0}, {4}))); }),
           {file, "concat"}));
  CHECK(says(traced([](In<f32, 1> x, Out<f32, 1> y) { store(y, {0}, permute(load(x, {0}, {4}), {1})); }),
             {file, "permute"}));
  CHECK(
      says(traced([](In<f32, 1> x, Out<f32, 1> y) { store(y, {0}, cumsum(load(x, {0}, {4}), 1)); }), {file, "cumsum"}));
  CHECK(
      says(traced([](In<f32, 1> x, Out<i32, 1> y) { store(y, {0}, argmax(load(x, {0}, {4}), 1)); }), {file, "argmax"}));
}

TEST_CASE("tiles have at most 2^30 elements, however they are made", "[language]") {
  CHECK(says(traced([](Out<i32, 2> y) {
               store(y, {0, 0}, iota({65536, 1}, 0) + iota({1, 65536}, 1));
             }),
             {"[65536,65536]", "2^30"}));
  CHECK(says(traced([](Out<i32, 2> y) { store(y, {0, 0}, zeros<i32>({65536, 65536})); }), {"2^30"}));
  constexpr int most = 1 << 30;
  for (const int parts : {2, 3})
    CHECK(says(traced([&](Out<u8, 1> y) {
                 Tile half = zeros<u8>({most});
                 store(y, {0}, parts == 2 ? concat(0, half, half) : concat(0, half, half, half));
               }),
               {"concat"}));
  const auto refused = [](const auto& make) {
    return says(traced([&](In<u8, 1> x, Out<i32, 1> y) { store(y, {0}, make(x)); }), {"more than 2^30 elements"});
  };
  const auto taken = [](const auto& make) {
    return traced([&](In<u8, 1> x, Out<i32, 1> y) { store(y, {0}, make(x)); }) == "(no error)";
  };
  for (const int n : {most + 1, std::numeric_limits<int>::max()}) {
    INFO(n);
    CHECK(refused([&](auto& x) { return cast<i32>(load(x, {0}, {n})); }));
    CHECK(refused([&](auto& x) { return sum(cast<i32>(load(x, {0}, {n})), 0); }));
    CHECK(refused([&](auto&) { return iota({n}, 0); }));
    CHECK(refused([&](auto&) { return full<i32>({n}, 1); }));
    CHECK(refused([&](auto& x) { return broadcast(cast<i32>(load(x, {0}, {1})), {n}); }));
    CHECK(refused([&](auto& x) { return histogram(cast<i32>(load(x, {0}, {4})), n); }));
  }
  CHECK(taken([&](auto& x) { return cast<i32>(load(x, {0}, {most})); }));
  CHECK(taken([&](auto& x) { return histogram(cast<i32>(load(x, {0}, {4})), most); }));
}

TEST_CASE("slices of slices step by at most 2^29 together", "[language]") {
  const auto stepped = [](int first, int second) {
    return traced([=](In<u8, 2> x, Out<u8, 2> y) {
      store(y, {0, 0}, load(x.slice(1, 0, 9, first).permute({1, 0}).slice(0, 0, 9, second), {0, 0}, {9, 1}));
    });
  };
  CHECK(stepped(-(1 << 20), 1 << 9) == "(no error)");
  CHECK(says(stepped(-(1 << 20), 1 << 10), {"test_language.cpp:", "a step of 1024", "with steps of -1048576", "2^29"}));
  CHECK(says(stepped(1 << 29, -2), {"a step of -2", "2^29"}));
}

TEST_CASE("a grid has at most 8 axes", "[language]") {
  const auto grid = [](Out<i32, 1> y, auto... extents) {
    const auto at = blocks(extents...);
    store(y, {at[0]}, full<i32>({1}, 1));
  };
  CHECK(traced([&](Out<i32, 1> y) { grid(y, 1, 1, 1, 1, 1, 1, 1, y.extent(0)); }) == "(no error)");
  CHECK(says(traced([&](Out<i32, 1> y) { grid(y, 1, 1, 1, 1, 1, 1, 1, 1, y.extent(0)); }),
             {"test_language.cpp:", "blocks(...) of 9 extents", "at most 8 axes"}));
}

TEST_CASE("a kernel's name is a C++ name", "[language]") {
  for (const char* bad : {"", "two words", "1st", "new\nline", "a\"b"})
    CHECK(says(error_of([&] { trace_kernel(bad, [](Out<f32, 1> y) { store(y, {0}, zeros<f32>({4})); }); }),
               {"test_language.cpp:", "a kernel's name must be a C++ identifier"}));
}

TEST_CASE("C++ numbers keep their value", "[language]") {
  CHECK(says(traced([](Out<i64, 1> y) { store(y, {0}, full<i64>({4}, 0xffffffffffffffffull)); }), {"i64", "range"}));
  CHECK(says(traced([](Out<f32, 1> y) { store(y, {0}, full<f32>({4}, 9007199254740993ll)); }), {"f32", "rounded"}));
  static_assert(cdiv(7, 2) == 4 && cdiv(8, 2) == 4 && cdiv(-7, 2) == -3 && cdiv(0, 5) == 0 &&
                cdiv(2147483647, 64) == 33554432);
}

}  // namespace test_language
