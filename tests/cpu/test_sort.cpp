// sort, argsort, top_k and histogram, against stable sorts and counts by plain loops; and how they are compiled for a
// GPU.
#include "codegen/layout/sort_layout.hpp"
#include "codegen/make_plan.hpp"
#include "codegen/passes.hpp"
#include "support/catch.hpp"
#include "support/oracle.hpp"
#include "support/plan_steps.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"

namespace test_sort {

using namespace tessera::internal;
using oracle::Array;
using oracle::Extents;
using oracle::Real;
using oracle::Values;

namespace {

constexpr ElementType number_types[] = {ElementType::f32, ElementType::f64, ElementType::i32,
                                        ElementType::i64, ElementType::u32, ElementType::u64};

/// Few distinct values, NaN and infinities among them; or arbitrary ones, for f64 only those that f32 represents, too.
Array some(oracle::Rng& rng, ElementType type, const Extents& shape, bool ties) {
  if (!ties && type == ElementType::f64 && rng() % 2) return oracle::random_array(rng, type, shape, 1, 1 + 0x1p-25);
  if (!ties && oracle::is_real(type)) return oracle::random_array(rng, type, shape, -100, 100);
  if (!ties) return oracle::random_bits_array(rng, type, shape);
  Array a(type, shape);
  const Real choices[] = {-2, -1, 0, 1, 2, oracle::real_nan, oracle::real_inf, -oracle::real_inf};
  for (Real& x : a.real) x = choices[oracle::between(rng, 0, 7)];
  for (i64& x : a.whole) x = oracle::wrapped(oracle::between<i64>(rng, -1, 1), type);
  return a;
}

/// Values and indices of the first `count` along the axis, from one sort and from separate ones.
void check_sorted(const Array& a, int axis, int count, bool descending) {
  INFO("the first " << count << " of " << name(a.type) << oracle::text_of(a.shape) << " along " << axis
                    << (descending ? ", descending" : ""));
  const Array places = oracle::argsort(a, axis, count, descending), values = oracle::taken(a, places, axis);
  const std::vector<std::int64_t> attributes = {axis, descending};
  const auto sorted = [&](const oracle::Value& x) {
    return oracle::apply(Op::sort, a.type, {x}, attributes, values.shape);
  };
  const auto stands = [&](const oracle::Value& x) {
    return oracle::apply(Op::argsort, ElementType::i32, {x}, attributes, places.shape);
  };
  const std::vector<Array> both = oracle::evaluate({a}, std::vector{values, places}, [&](const Values& x) {
    return Values{sorted(x[0]), stands(x[0])};
  });
  CHECK(oracle::difference(both[0], values) == "");
  CHECK(oracle::difference(both[1], places) == "");
  CHECK(oracle::difference(oracle::evaluate({a}, values, [&](const Values& x) { return sorted(x[0]); }), values) == "");
  CHECK(oracle::difference(oracle::evaluate({a}, places, [&](const Values& x) { return stands(x[0]); }), places) == "");
}

}  // namespace

TEST_CASE("sorts along every axis, in both directions", "[cpu]") {
  Cases cases(1000);
  oracle::Rng rng(31);
  for (const Extents& shape : {Extents{1},
                               {7},
                               {33},
                               {64},
                               {1537},
                               {3, 5},
                               {16, 33},
                               {1, 64},
                               {64, 1},
                               {70, 40},
                               {5, 1, 7},
                               {2, 17, 3},
                               {33, 2, 3},
                               {2, 3, 4, 5},
                               {3, 1024},
                               {2, 7, 1, 3, 2},
                               {2, 1, 3, 5, 2, 3}})
    for (const ElementType type : number_types)
      for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis)
        for (const bool ties : {false, true}) {
          if (cases.skip()) continue;
          const bool descending = rng() % 2;
          check_sorted(some(rng, type, shape, ties), axis, shape[axis], descending);
        }
}

TEST_CASE("sorts of lines that are too long for a warp", "[cpu]") {
  Cases cases(180);
  oracle::Rng rng(32);
  for (const ElementType type : number_types)
    for (const Extents& shape : {Extents{1025}, {2, 1100}, {1100, 2}, {3000}, {5000}})
      for (const bool descending : {false, true}) {
        if (cases.skip()) continue;
        int axis = 0;
        while (shape[axis] < 1000) ++axis;
        check_sorted(some(rng, type, shape, rng() % 2), axis, shape[axis], descending);
      }
}

TEST_CASE("sorts of lines in which one element differs", "[cpu]") {
  Cases cases(30);
  for (const ElementType type : number_types)
    for (const int place : {0, 1, 2, 151, 299}) {
      if (cases.skip()) continue;
      Array a(type, {300});
      if (!a.real.empty()) a.real[static_cast<std::size_t>(place)] = -1;
      if (!a.whole.empty()) a.whole[static_cast<std::size_t>(place)] = oracle::wrapped(-1, type);
      check_sorted(a, 0, 300, place % 2 != 0);
    }
}

TEST_CASE("sorts of tiles that are too large for a CTA's registers", "[cpu]") {
  Cases cases(18);
  oracle::Rng rng(37);
  for (const Extents& shape : {Extents{40, 700}, {33000}, {700, 40}})
    for (const ElementType type : {ElementType::f32, ElementType::i64}) {
      if (cases.skip()) continue;
      const int axis = shape.size() == 1 || shape[0] > shape[1] ? 0 : 1;
      check_sorted(some(rng, type, shape, true), axis, shape[axis], true);
    }
}

TEST_CASE("sorts of which only the first elements are used", "[cpu]") {
  Cases cases(1300);
  oracle::Rng rng(33);
  check_sorted(some(rng, ElementType::f32, {2, 2300}, true), 1, 300, false);  // merged, in whichever cases occur
  for (const Extents& shape : {Extents{2, 29}, {29, 2}, {2, 64}, {64, 40}, {2, 1000}, {2, 2300}})
    for (const ElementType type : number_types)
      for (const int count : {1, 2, 7, 8, 9, 28, 40, 300, 1100})
        for (const bool descending : {false, true}) {
          int axis = shape[0] > shape[1] ? 0 : 1;
          if (count > shape[axis] || cases.skip()) continue;
          check_sorted(some(rng, type, shape, rng() % 2), axis, count, descending);
        }
}

TEST_CASE("sorts by each length near a power of two", "[cpu]") {
  Cases cases(180);
  oracle::Rng rng(34);
  for (const int power : {1, 2, 4, 8, 16, 32, 64, 128, 512, 1024})
    for (const int more : {-1, 0, 1}) {
      if (power + more < 1 || cases.skip()) continue;
      check_sorted(some(rng, ElementType::f32, {3, power + more}, true), 1, power + more, false);
      check_sorted(some(rng, ElementType::i64, {3, power + more}, false), 1, power + more, true);
    }
}

TEST_CASE("histograms count the elements of each bin", "[cpu]") {
  Cases cases(60);
  oracle::Rng rng(35);
  for (const Extents& shape : {Extents{1},
                               {33},
                               {5000},
                               {3, 5},
                               {16, 33},
                               {70, 40},
                               {2, 17, 3},
                               {2, 3, 4, 5},
                               {2, 7, 1, 3, 2},
                               {2, 1, 3, 5, 2, 3}})
    for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis)
      for (const int bins : {1, 3, 100, 1300}) {
        if (cases.skip()) continue;
        INFO(bins << " bins of " << oracle::text_of(shape) << " along " << axis);
        Array a(ElementType::i32, shape);
        for (i64& x : a.whole) x = oracle::between<i64>(rng, -2, bins < 10 ? 4 : bins + 2);
        if (a.size() > 4) a.whole[1] = INT32_MIN, a.whole[2] = INT32_MAX;
        const Array expected = oracle::histogram(a, axis, bins);
        const Array actual = oracle::evaluate({a}, expected, [&](const Values& x) {
          return oracle::apply(Op::histogram, ElementType::i32, {x[0]}, {axis}, expected.shape);
        });
        CHECK(oracle::difference(actual, expected) == "");
      }
}

TEST_CASE("sorts of the language", "[cpu]") {
  const auto k = kernel("sorts", [](In<f32, 2> x, Out<f32, 2> up, Out<f32, 2> down, Out<i32, 2> at, Out<f32, 2> most,
                                    Out<i32, 2> least, Out<i32, 1> counts) {
    const Tile t = load(x, {0, 0}, {4, 6});
    store(up, {0, 0}, sort(t * 2, -1));
    auto [value, place] = sort_with_index(t, 0, {.descending = true});
    store(down, {0, 0}, value);
    store(at, {0, 0}, place - argsort(t, 0, {.descending = true}) + argsort(t, 1));
    auto [largest, where_largest] = top_k(t, 2, 1);
    store(most, {0, 0}, largest + cast<f32>(where_largest));
    store(least, {0, 0}, top_k(t, 3, 1, {.smallest = true}).index);
    store(counts, {0}, histogram(cast<i32>(t), 8));
  });
  const Array a = oracle::reals({4, 6}, {3, 1, 2, 7, -1, 9, 0, 0, 0, 5, 5, 5, 2, 4, 6, 1, 3, 5, 9, 8, 7, 6, 5, 4});
  const Device& device = test_device();
  Tensor<f32, 2> x(device, {4, 6}), up(device, {4, 6}), down(device, {4, 6}), most(device, {4, 2});
  Tensor<i32, 2> at(device, {4, 6}), least(device, {4, 3});
  Tensor<i32, 1> counts(device, {8});
  x.copy_from(std::vector<f32>(a.real.begin(), a.real.end()));
  launch(device.stream(), k, x, up, down, at, most, least, counts);
  const auto same = [](const auto& tensor, const Array& expected) {
    const auto values = tensor.to_vector();
    for (std::size_t i = 0; i < values.size(); ++i)
      if (Real(values[i]) != expected.as_real(i)) return false;
    return values.size() == expected.size();
  };
  Array twice = oracle::taken(a, oracle::argsort(a, 1, 6, false), 1);
  for (Real& r : twice.real) r *= 2;
  CHECK(same(up, twice));
  CHECK(same(down, oracle::taken(a, oracle::argsort(a, 0, 4, true), 0)));
  CHECK(same(at, oracle::argsort(a, 1, 6, false)));
  const Array best = oracle::argsort(a, 1, 2, true);
  Array sums = oracle::taken(a, best, 1);
  for (std::size_t i = 0; i < sums.size(); ++i) sums.real[i] += static_cast<Real>(best.whole[i]);
  CHECK(same(most, sums));
  CHECK(same(least, oracle::argsort(a, 1, 3, false)));
  CHECK(counts.to_vector() == std::vector<i32>{3, 2, 2, 2, 2, 5, 2, 2});
}

TEST_CASE("sorts keep zeros in their order, whatever their signs, and put all NaNs last", "[cpu]") {
  for (const int length : {40, 1200}) {
    std::vector<f32> values(static_cast<std::size_t>(length));
    for (int i = 0; i < length; ++i)
      values[static_cast<std::size_t>(i)] = std::array{-0.0f, 0.0f, -NAN, NAN, 0.0f}[i % 5];
    const auto k = kernel("zeros", [=](In<f32, 1> x, Out<f32, 1> y, Out<i32, 1> at, Out<f32, 1> alone) {
      auto [value, place] = sort_with_index(load(x, {0}, {length}), 0);
      store(y, {0}, value);
      store(at, {0}, place);
      store(alone, {0}, sort(load(x, {0}, {length}) * 1, 0));
    });
    const Device& device = test_device();
    Tensor<f32, 1> x(device, {length}), y(device, {length}), alone(device, {length});
    Tensor<i32, 1> at(device, {length});
    x.copy_from(values);
    launch(device.stream(), k, x, y, at, alone);
    const auto sorted = y.to_vector(), by_itself = alone.to_vector();
    const auto places = at.to_vector();
    int last = -1, zeros = 0, negative = 0;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      const bool nan = std::isnan(values[static_cast<std::size_t>(places[i])]);
      if (nan && zeros == 0) zeros = static_cast<int>(i), last = -1;
      CHECK((std::isnan(sorted[i]) == nan && std::isnan(by_itself[i]) == nan));
      CHECK(places[i] > last);
      last = places[i];
      negative += std::signbit(by_itself[i]) && !nan;
      if (!nan) CHECK(std::signbit(sorted[i]) == std::signbit(values[static_cast<std::size_t>(places[i])]));
    }
    CHECK(zeros == length / 5 * 3);
    CHECK(negative == length / 5);  // none is lost
  }
}

TEST_CASE("a carried value may be sorted, and sorts may be in loops and branches", "[cpu]") {
  const auto k = kernel("carried", [](In<i32, 2> x, Out<i32, 2> y, Out<i32, 1> counts) {
    Var first = full<i32>({1, 8}, 1000);
    Var seen = zeros<i32>({16});
    for (Index i : range(x.extent(0))) {
      const Tile row = load(x, {i, 0}, {1, 40});
      first = slice(sort(concat(1, first, row), 1), 1, 0, 8);
      if_(i != 2, [&] { seen += histogram(row, 16); });
    }
    store(y, {0, 0}, first);
    store(counts, {0}, seen);
  });
  const int rows = 5;
  std::vector<i32> values(rows * 40), all, expected(16);
  oracle::Rng rng(36);
  for (i32& v : values) v = oracle::between(rng, 0, 99);
  for (int i = 0; i < rows * 40; ++i)
    if (i / 40 != 2 && values[static_cast<std::size_t>(i)] < 16)
      ++expected[static_cast<std::size_t>(values[static_cast<std::size_t>(i)])];
  all = values;
  std::ranges::sort(all);
  all.resize(8);
  const Device& device = test_device();
  Tensor<i32, 2> x(device, {rows, 40}), y(device, {1, 8});
  Tensor<i32, 1> counts(device, {16});
  x.copy_from(values);
  launch(device.stream(), k, x, y, counts);
  CHECK(y.to_vector() == all);
  CHECK(counts.to_vector() == expected);
}

TEST_CASE("sorts reject invalid arguments", "[language]") {
  const auto says = [](const std::string& text, std::initializer_list<std::string_view> parts) {
    INFO(text);
    return std::ranges::all_of(parts, [&](std::string_view part) { return text.find(part) != text.npos; });
  };
  const auto traced = [](const auto& function) { return error_of([&] { (void)kernel("traced", function); }); };
  CHECK(says(traced([](In<f32, 1> x, Out<f32, 1> y) { store(y, {0}, sort(load(x, {0}, {4}), 1)); }),
             {"kernel 'traced'", "test_sort.cpp:", "sort"}));
  CHECK(says(traced([](In<f32, 1> x, Out<i32, 1> y) { store(y, {0}, argsort(load(x, {0}, {4}), -2)); }),
             {"test_sort.cpp:", "argsort"}));
  const auto first = [&](int k) {
    return traced([=](In<f32, 2> x, Out<f32, 2> y) { store(y, {0, 0}, top_k(load(x, {0, 0}, {3, 4}), k, 1).value); });
  };
  CHECK(says(first(5), {"test_sort.cpp:", "top_k: the first 5 of [3,4] along axis 1; take from 1 to 4"}));
  CHECK(says(first(0), {"the first 0 of [3,4]"}));
  const auto bins = [&](int count) {
    return traced([=](In<i32, 1> x, Out<i32, 1> y) { store(y, {0}, histogram(load(x, {0}, {4}), count)); });
  };
  CHECK(says(bins(0), {"test_sort.cpp:", "histogram: a tile of shape [0]; every extent must be at least 1"}));
}

namespace {

template <class F>
codegen::Plan plan_for(const F& function) {
  const Graph graph = run_passes(trace_kernel("sorts", function));
  return codegen::make_plan(graph, dense_variant(graph), Arch::sm_90a, {.verify = true}, {});
}

}  // namespace

TEST_CASE("a row that a warp holds is sorted in registers, and read by vector accesses", "[plan]") {
  using namespace codegen;
  Plan rows = plan_for([](In<f32, 2> x, Out<f32, 2> y, Out<i32, 2> at) {
    Index i = blocks(cdiv(x.extent(0), 4));
    auto [value, place] = sort_with_index(load(x, {i, 0}, {4, 1024}), 1);
    store(y, {i, 0}, value);
    store(at, {i, 0}, place);
  });
  CHECK(count<Sort>(rows) == 1);
  CHECK(count<StoreScratch>(rows) + count<LoadScratch>(rows) + count<Merge>(rows) + count<Barrier>(rows) == 0);
  CHECK(rows.threads() == 128);
  CHECK(the<Load>(rows).access.vector == 4);
  CHECK(the<Sort>(rows).kept == 1024);
  Plan few = plan_for([](In<f32, 2> x, Out<f32, 2> y) {
    store(y, {0, 0}, top_k(load(x, {0, 0}, {1, 1000}), 5, 1).value);
  });
  CHECK(few.threads() == 32);
  CHECK(the<Sort>(few).kept == 8);
  CHECK_FALSE(the<Sort>(few).at);
  Plan columns = plan_for([](In<f32, 2> x, Out<f32, 2> y) { store(y, {0, 0}, sort(load(x, {0, 0}, {16, 128}), 0)); });
  CHECK(count<StoreScratch>(columns) + count<LoadScratch>(columns) == 0);  // each column belongs to one lane
  Plan longer = plan_for([](In<f32, 1> x, Out<f32, 1> y) { store(y, {0}, sort(load(x, {0}, {4000}), 0)); });
  CHECK(count<Merge>(longer) == 1);
  CHECK(the<Merge>(longer).chunk == 1024);
  CHECK(count<Barrier>(longer) == 2);
}

TEST_CASE("indices may be in registers while their keys are in memory", "[plan]") {
  using namespace codegen;
  Plan plan = plan_for([](In<i8, 2> x, InOut<f16, 2> y) {
    Tile ones = full<i32>({61}, 1);
    Tile at = item(cast<i32>(max(cast<f32>(gather(x, ones, {-1}, {62})))));
    Tile one = gather(x, ones, {at}, {1}), other = gather(x, argsort(ones, 0), {-1}, {1});
    store(y, {-1, -1}, cast<f16>(cast<f32>(one) + cast<f32>(other)));
  });
  const Sort& sort = the<Sort>(plan);
  CHECK(plan.storage(sort.out).storage_class != StorageClass::registers);
  CHECK(plan.storage(sort.at).storage_class == StorageClass::registers);
  CHECK(sort.sweep.unrolled);
}

TEST_CASE("histograms have copies per lane, as far as counts and memory allow", "[plan]") {
  using namespace codegen;
  const auto copies = [](int numbers, int bins) {
    Plan plan = plan_for(
        [=](In<u8, 1> x, Out<i32, 1> y) { store(y, {0}, histogram(cast<i32>(load(x, {0}, {numbers})), bins)); });
    CHECK(the<HistogramReduce>(plan).copies == the<HistogramUpdate>(plan).copies);
    return the<HistogramUpdate>(plan).copies;
  };
  CHECK(copies(65536, 256) == 32);
  CHECK(copies(8192, 256) == 8);
  CHECK(copies(65536, 4096) == 2);
  CHECK(copies(100, 256) == 1);
}

TEST_CASE("lines that are sorted are entirely in the registers of one warp", "[plan]") {
  using namespace codegen;
  for (const Shape& shape :
       {Shape{1}, Shape{7}, Shape{1000}, Shape{5000}, Shape{3, 64}, Shape{64, 40}, Shape{1100, 2}, Shape{2, 30, 3}})
    for (int axis = 0; axis < shape.rank(); ++axis)
      for (const int warps : {1, 2, 4, 12, 16})
        for (const ElementType type : {ElementType::f32, ElementType::i64}) {
          const Layout sorted = sorted_layout(shape, axis, type, warps), read = unsorted_layout(sorted, axis);
          INFO(oracle::text_of({shape.begin(), shape.end()}) << " along " << axis << ": " << to_string(sorted));
          CHECK(sorts_from(sorted, sorted, axis));
          CHECK(sorts_from(read, sorted, axis));
          CHECK(sorted.cover(axis) >= shape[axis]);
          CHECK(sorted.warps() <= warps);
        }
  const Layout sorted = sorted_layout({4, 1024}, 1, ElementType::f32, 4);
  CHECK(to_string(sorted) == "warp 4 | lane 32, reg 32");
  CHECK(to_string(unsorted_layout(sorted, 1)) == "warp 4 | reg 8/4, lane 32, reg 4");
  CHECK_FALSE(sorts_from(sorted_layout({4, 1024}, 0, ElementType::f32, 4), sorted, 1));
  CHECK_FALSE(sorts_from(blocked_layout({4, 1024}, 0, 4, 4), sorted, 1));
}

}  // namespace test_sort
