// Atomics as authors write them: the values that they return, how CTAs synchronize by them, and their memory orders.
#include <algorithm>
#include <limits>
#include <numeric>

#include "../bench/common/order_kernels.hpp"
#include "../samples/gallery/prefix_sum_single_pass.cpp"  // the kernel under test
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/support.hpp"
#include "support/tensors.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/tessera.hpp"

using namespace tessera::internal;

// The sample's dependencies on its gallery: its own launch is not made here.
namespace gallery {
Example::Example(std::string, double, double (*)(const tessera::Device&)) {}
std::vector<f32> normal_values(std::int64_t, unsigned) { return {}; }
double largest_error(const std::vector<double>&, const std::vector<double>&) { return 0; }
}  // namespace gallery

namespace test_atomics {

namespace {

template <class T>
std::vector<T> sorted(std::vector<T> values) {
  std::ranges::sort(values);
  return values;
}

/// The message that is thrown when the kernel is traced.
template <class F>
std::string refusal(const char* name, const F& f) {
  try {
    (void)kernel(name, f);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

// --- returned values

TEST_CASE("atomics return the old value", "[cpu][atomics]") {
  const auto k = kernel("old_values", [](InOut<i32, 2> y, Out<i32, 2> old) {
    Index i = blocks(9);
    Tile x = full<i32>({1, 8}, 6) + iota({1, 8}, 1);
    int row = 0;
    const auto keep = [&](const Tile<i32, 2>& was) { store(old, {i * 9 + row++, 0}, was); };
    keep(atomic_add(y, {i, 0}, x));
    keep(atomic_max(y, {i, 0}, x + 3));
    keep(atomic_min(y, {i, 0}, x));
    keep(atomic_and(y, {i, 0}, x - 4));
    keep(atomic_or(y, {i, 0}, x));
    keep(atomic_xor(y, {i, 0}, x * 2));
    keep(atomic_exchange(y, {i, 0}, x));
    keep(atomic_compare_exchange(y, {i, 0}, where(iota({1, 8}, 1) < 4, x, 0), x + 1));
    keep(atomic_add(y, {i, 1}, x));  // out of bounds
  });
  const auto y = tensor<i32, 2>({9, 8}, std::vector<i32>(72, 5)), old = tensor<i32, 2>({81, 8}, std::vector<i32>(648));
  launch(test_device().stream(), k, y, old);
  const std::vector<i32> was = old.to_vector(), is = y.to_vector();
  for (int block = 0; block < 9; ++block)
    for (int j = 0; j < 8; ++j) {
      const i32 x = 6 + j;
      i32 expected[10] = {5};
      const i32 step[] = {5 + x,       std::max(5 + x, x + 3), x,
                          x & (x - 4), (x & (x - 4)) | x,      (x | (x & (x - 4))) ^ (x * 2),
                          x,           j < 4 ? x + 1 : x};
      std::copy(std::begin(step), std::end(step), expected + 1);
      expected[3] = std::min(expected[2], x);
      expected[4] = expected[3] & (x - 4), expected[5] = expected[4] | x, expected[6] = expected[5] ^ (x * 2);
      for (int n = 0; n < 8; ++n) CHECK(was[static_cast<std::size_t>((block * 9 + n) * 8 + j)] == expected[n]);
      CHECK(was[static_cast<std::size_t>((block * 9 + 8) * 8 + j)] == 0);
      CHECK(is[static_cast<std::size_t>(block * 8 + j)] == expected[8]);
    }
}

TEST_CASE("elements with the same index each see the previous one's result", "[cpu][atomics]") {
  const auto k = kernel("tickets", [](InOut<u32, 1> next, Out<u32, 2> drawn, InOut<i64, 1> least) {
    Index i = blocks(drawn.extent(0));
    Tile place = zeros<i32>({96});
    Tile ticket = atomic_add(next, {place}, full<u32>({96}, 1));
    store(drawn, {i, 0}, reshape(ticket, {1, 96}));
    atomic_min(least, {place}, cast<i64>(iota({96}, 0)) - cast<i64>(i) * 1000);
  });
  constexpr int blocks = 21;
  const auto next = tensor<u32, 1>({1}, {7});
  const auto drawn = tensor<u32, 2>({blocks, 96}, std::vector<u32>(blocks * 96));
  const auto least = tensor<i64, 1>({1}, {0});
  launch(test_device().stream(), k, next, drawn, least);
  std::vector<u32> expected(blocks * 96);
  std::iota(expected.begin(), expected.end(), 7u);
  CHECK(sorted(drawn.to_vector()) == expected);
  CHECK(next.to_vector()[0] == 7 + blocks * 96);
  CHECK(least.to_vector()[0] == -1000 * (blocks - 1));
}

TEST_CASE("max and min by atomics ignore NaN", "[cpu][atomics]") {
  constexpr f32 nan = std::numeric_limits<f32>::quiet_NaN(), infinity = std::numeric_limits<f32>::infinity();
  const auto k = kernel("reals", [](In<f32, 1> x, InOut<f32, 1> most, InOut<f32, 1> least, Out<f32, 1> old) {
    Tile t = load(x, {0}, {7});
    Tile was = atomic_max(most, {0}, t);
    atomic_min(least, {0}, t);
    store(old, {0}, was);
  });
  const std::vector<f32> x = {nan, 1, nan, -infinity, infinity, -2, 1e-40f};
  const std::vector<f32> y = {3, nan, nan, -5, 4, -1, -1e-40f};
  const auto most = tensor<f32, 1>({7}, y), least = tensor<f32, 1>({7}, y);
  const auto old = tensor<f32, 1>({7}, std::vector<f32>(7));
  launch(test_device().stream(), k, tensor<f32, 1>({7}, x), most, least, old);
  const auto same = [](const std::vector<f32>& a, const std::vector<f32>& b) {
    return std::ranges::equal(a, b, [](f32 p, f32 q) { return p == q || (p != p && q != q); });
  };
  CHECK(same(old.to_vector(), y));
  CHECK(same(most.to_vector(), {3, 1, nan, -5, infinity, -1, 1e-40f}));
  CHECK(same(least.to_vector(), {3, 1, nan, -infinity, 4, -2, -1e-40f}));
}

TEST_CASE("compare_exchange compares bits", "[cpu][atomics]") {
  constexpr f32 nan = std::numeric_limits<f32>::quiet_NaN();
  const auto k = kernel("bits", [](In<f32, 1> expected, InOut<f32, 1> y) {
    atomic_compare_exchange(y, {0}, load(expected, {0}, {4}), full<f32>({4}, 9));
  });
  const auto y = tensor<f32, 1>({4}, {0.0f, 0.0f, nan, 2.5f});
  launch(test_device().stream(), k, tensor<f32, 1>({4}, {-0.0f, 0.0f, nan, 2.5f}), y);
  CHECK(y.to_vector() == std::vector<f32>{0, 9, 9, 9});
}

// --- order within a CTA

TEST_CASE("atomics of a CTA happen in program order, whichever threads have the elements", "[cpu][atomics]") {
  const auto k = kernel("in_order", [](InOut<i32, 1> y, InOut<i32, 1> z, Out<i32, 2> seen) {
    Tile transposed = 255 - iota({256}, 0);
    Tile first = atomic_exchange(y, {0}, iota({256}, 0) * 10);
    Tile second = atomic_add(y, {transposed}, full<i32>({256}, 1));  // by other threads than those that exchanged
    atomic_max(z, {0}, iota({256}, 0));
    atomic_add(z, {transposed}, full<i32>({256}, 1000));  // another op: it must not be reordered
    Tile after = load(z, {0}, {256});
    Tile third = atomic_add(y, {0}, full<i32>({256}, 1));
    atomic_exchange(z, {0}, iota({256}, 0));
    atomic_exchange(z, {transposed}, iota({256}, 0));
    store(seen, {0, 0}, reshape(first, {1, 256}));
    store(seen, {1, 0}, reshape(second, {1, 256}));
    store(seen, {2, 0}, reshape(after, {1, 256}));
    store(seen, {3, 0}, reshape(third, {1, 256}));
  });
  const auto y = tensor<i32, 1>({256}, std::vector<i32>(256, -4)),
             z = tensor<i32, 1>({256}, std::vector<i32>(256, 100));
  const auto seen = tensor<i32, 2>({4, 256}, std::vector<i32>(1024));
  launch(test_device().stream(), k, y, z, seen);
  const std::vector<i32> was = seen.to_vector();
  for (int i = 0; i < 256; ++i) {
    const auto at = static_cast<std::size_t>(i);
    CHECK(was[at] == -4);
    CHECK(was[256 + at] == (255 - i) * 10);
    CHECK(was[512 + at] == std::max(i, 100) + 1000);
    CHECK(was[768 + at] == i * 10 + 1);
    CHECK(y.to_vector()[at] == i * 10 + 2);
    CHECK(z.to_vector()[at] == 255 - i);
  }
}

TEST_CASE("an old value decides for all threads of a CTA", "[cpu][atomics]") {
  // The first CTA that reaches a row fills all of it.
  const auto k = kernel("first_fills", [](InOut<i32, 1> taken, InOut<i32, 2> rows, InOut<i32, 1> fills) {
    Index i = blocks(40);
    Index row = i % 5;
    Tile before = atomic_exchange(taken, {row}, full<i32>({1}, 1), MemoryOrder::relaxed, MemoryScope::device);
    if_(item(before) == 0, [&] {
      store(rows, {row, 0}, broadcast(reshape(row, {1, 1}), {1, 300}) + 7);
      atomic_add(fills, {row}, full<i32>({1}, 1));
    });
  });
  const auto taken = tensor<i32, 1>({5}, std::vector<i32>(5)), fills = tensor<i32, 1>({5}, std::vector<i32>(5));
  const auto rows = tensor<i32, 2>({5, 300}, std::vector<i32>(1500));
  launch(test_device().stream(), k, taken, rows, fills);
  CHECK(fills.to_vector() == std::vector<i32>(5, 1));
  const std::vector<i32> filled = rows.to_vector();
  for (std::size_t i = 0; i < filled.size(); ++i) CHECK(filled[i] == static_cast<i32>(i / 300) + 7);
}

TEST_CASE("a matmul on tensor cores, whose index comes from a ticket", "[cpu][atomics]") {
  const auto k = kernel("drawn_product", [](In<bf16, 2> x, In<bf16, 2> w, Out<f32, 2> y, InOut<i32, 1> next) {
    [[maybe_unused]] Index block = blocks(cdiv(y.extent(0), 64));
    Var sums = zeros<f32>({64, 64});
    for (Index i : range(cdiv(x.extent(1), 64))) sums = mma(load(x, {0, i}, {64, 64}), load(w, {i, 0}, {64, 64}), sums);
    Tile drawn = atomic_add(next, {0}, full<i32>({1}, 1));
    Index place = item(drawn);
    store(y, {place, 0}, sums + cast<f32>(place));
  });
  const auto x = tensor<bf16, 2>({64, 128}, std::vector<bf16>(64 * 128, bf16(1.0f)));
  const auto w = tensor<bf16, 2>({128, 64}, std::vector<bf16>(128 * 64, bf16(2.0f)));
  const auto y = tensor<f32, 2>({192, 64}, std::vector<f32>(192 * 64));
  const auto next = tensor<i32, 1>({1}, {0});
  launch(test_device().stream(), k, x, w, y, next);
  const std::vector<f32> sums = y.to_vector();
  for (std::size_t i = 0; i < sums.size(); ++i) CHECK(sums[i] == 256 + static_cast<f32>(i / (64 * 64)));
}

TEST_CASE("a loop of compare_exchange implements any function of a value in memory", "[cpu][atomics]") {
  const auto k = kernel("products", [](InOut<f32, 1> y) {
    [[maybe_unused]] Index i = blocks(20);
    Var held = zeros<f32>({1});
    Var done = constant<i32>(0);
    while_([&] { return done == 0; },
           [&] {
      Tile found = atomic_compare_exchange(y, {0}, held, held * 2);
      done = cast<i32>(item(found == held));
      held = found;
    });
  });
  const auto y = tensor<f32, 1>({1}, {3});
  launch(test_device().stream(), k, y);
  CHECK(y.to_vector()[0] == 3.0f * (1 << 20));
}

// --- order between CTAs

namespace {

/// Each CTA waits for the one before it, reads everything that it wrote by any thread, and signals the next one.
auto relay(MemoryOrder release, MemoryOrder acquire, MemoryScope scope) {
  return kernel("relay", [=](InOut<i32, 1> next, InOut<i32, 1> flags, InOut<i32, 2> rows) {
    [[maybe_unused]] Index block = blocks(rows.extent(0));
    Tile drawn = atomic_add(next, {0}, full<i32>({1}, 1));
    Index mine = item(drawn);
    Var ready = where(mine > 0, 0, 1);
    while_([&] { return ready == 0; },
           [&] {
      Tile flag = atomic_or(flags, {mine - 1}, zeros<i32>({1}), acquire, scope);
      ready = item(flag);
    });
    Tile before = load(rows, {mine - 1, 0}, {1, 384});
    store(rows, {mine, 0}, flip(before, 1) + iota({1, 384}, 1));  // each element by another thread than read it
    atomic_exchange(flags, {mine}, full<i32>({1}, 1), release, scope);
  });
}

std::vector<i32> relayed(int rows) {
  std::vector<i32> all, before(384);
  for (int row = 0; row < rows; ++row) {
    std::ranges::reverse(before);
    for (int j = 0; j < 384; ++j) before[static_cast<std::size_t>(j)] += j;
    all.insert(all.end(), before.begin(), before.end());
  }
  return all;
}

}  // namespace

TEST_CASE("released writes are visible after an acquire", "[cpu][atomics]") {
  const bool on_cpu = test_device_name() == "cpu";
  const int rows = on_cpu ? 150 : 24, launches = on_cpu && !sanitized ? 50 : 6;  // by all threads of the executor
  for (const MemoryScope scope : {MemoryScope::device, MemoryScope::system}) {
    const auto k = relay(MemoryOrder::release, MemoryOrder::acquire, scope);
    for (int i = 0; i < launches; ++i) {
      const auto next = tensor<i32, 1>({1}, {0}), flags = tensor<i32, 1>({rows}, std::vector<i32>(rows));
      const auto y = tensor<i32, 2>({rows, 384}, std::vector<i32>(rows * 384));
      launch(test_device().stream(), k, next, flags, y);
      CHECK(y.to_vector() == relayed(rows));
    }
  }
}

namespace {

/// Launches a single-pass scan with parts of `size` over so many elements: integers, so that sums are exact in any
/// order. Returns nothing, or the errors.
template <class K>
std::string wrong_sums(const K& k, const Device& device, int count, int size, int seed) {
  const std::int64_t parts = cdiv(count, size);
  auto x = device.tensor<f32>({count}), y = device.tensor<f32>({count});
  auto next = device.tensor<i32>({1});
  auto words = device.tensor<u64>({parts});
  std::vector<f32> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<f32>((i * 7919 + static_cast<std::size_t>(seed) * 31) % 23) - 9;
  x.copy_from(values);
  y.copy_from(std::vector<f32>(values.size(), -0.5f));
  next.copy_from(std::vector<i32>(1)), words.copy_from(std::vector<u64>(static_cast<std::size_t>(parts)));
  try {
    launch(device.stream(), k, x, y, next, words);
  } catch (const Error& error) {
    return error.what();
  }
  const std::vector<f32> sums = y.to_vector();
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (sum += static_cast<double>(values[i]); static_cast<double>(sums[i]) != sum)
      return "sum " + std::to_string(i) + " is " + std::to_string(sums[i]) + ", not " + std::to_string(sum);
  if (next.to_vector()[0] != parts) return std::to_string(next.to_vector()[0]) + " parts were taken";
  for (const u64 word : words.to_vector())
    if (word >> 32 != 2) return "a part has not told the sum up to it";
  return {};
}

}  // namespace

TEST_CASE("scans in a single pass by look-back are right, whichever CTAs wait", "[cpu][atomics]") {
  const bool on_cpu = test_device_name() == "cpu";
  const auto alone = gallery::single_pass(64);
  const auto windowed = bench::running_sum_kernel(64);
  for (const int count : {1, 64, 65, 1000, 64 * 70 + 5})
    for (int i = 0; i < (on_cpu && !sanitized ? 10 : 1); ++i) {
      INFO(count << " elements, launch " << i);
      CHECK(wrong_sums(alone, test_device(), count, 64, i) == "");
      CHECK(wrong_sums(windowed, test_device(), count, 64, i) == "");
    }
}

#ifdef TESSERA_HAS_EMULATOR

TEST_CASE("scans in a single pass are right in the emulator in any order of CTAs and warps", "[emulator][atomics]") {
  // Each launch of a kernel has an order of its own, with one to four CTAs in flight.
  const auto looks_back = [](const auto& k, int size, const std::vector<int>& counts) {
    const Device device = emulated_device();
    for (const int count : counts)
      for (int i = 0; i < 8; ++i) {
        INFO(count << " elements, launch " << i);
        CHECK(wrong_sums(k, device, count, size, i) == "");
      }
  };
  looks_back(gallery::single_pass(64), 64, {61, 64 * 3 + 1, 64 * 9 + 5});
  looks_back(bench::running_sum_kernel(128), 128, {77, 128 * 3 + 1, 128 * 40 + 5});
}

namespace {

/// The emulator's report on the relay.
std::string said_of_relay(MemoryOrder release, MemoryOrder acquire, MemoryScope scope) {
  const auto k = relay(release, acquire, scope);
  constexpr int rows = 6;
  std::string said;
  for (int i = 0; i < 8 && said.empty(); ++i) {
    const Device device = emulated_device();
    auto next = device.tensor<i32>({1}), flags = device.tensor<i32>({rows});
    auto y = device.tensor<i32>({rows, 384});
    next.copy_from(std::vector<i32>(1)), flags.copy_from(std::vector<i32>(rows));
    y.copy_from(std::vector<i32>(rows * 384));
    try {
      launch(device.stream(), k, next, flags, y);
    } catch (const Error& error) {
      said = error.what();
    }
  }
  return said;
}

}  // namespace

TEST_CASE("the emulator reports races that a too weak order or too small scope allows", "[emulator][atomics]") {
  using enum MemoryOrder;
  using enum MemoryScope;
  CHECK(said_of_relay(release, acquire, device) == "");
  CHECK(said_of_relay(acq_rel, acq_rel, system) == "");
  for (const auto& [order, other, scope] : {std::tuple(relaxed, acquire, device),
                                            {release, relaxed, device},
                                            {relaxed, relaxed, system},
                                            {release, acquire, block},
                                            {acquire, release, device}})
    CHECK(said_of_relay(order, other, scope).find("no barrier between") != std::string::npos);
}

#endif

// --- the language

TEST_CASE("atomics as they are traced", "[language]") {
  const auto k = kernel("traced", [](InOut<u32, 2> y, InOut<f32, 1> z) {
    Tile one = full<u32>({1, 4}, 1);
    Tile old = atomic_or(y, {0, 1}, one, MemoryOrder::acq_rel, MemoryScope::block);
    atomic_exchange(y, {0, 2}, old);
    Tile i = cast<i32>(reshape(old, {4}));
    atomic_compare_exchange(z, {i}, constant<f32>(0), full<f32>({4}, 2), MemoryOrder::release);
  });
  CHECK(to_string(k.graph()) == R"(kernel traced(InOut<u32, 2>, InOut<f32, 1>)
  %0 = constant {1} : u32[1,4]
  %1 = tensor {0} : u32
  %2 = constant {0} : i32[]
  %3 = constant {1} : i32[]
  %4 = atomic_or %0 %1 %2 %3 {acq_rel,block} : u32[1,4]
  %5 = constant {2} : i32[]
  %6 = atomic_exchange %4 %1 %2 %5 : u32[1,4]
  %7 = constant {2} : f32[4]
  %8 = constant {0} : f32[]
  %9 = broadcast %8 : f32[4]
  %10 = tensor {1} : f32
  %11 = reshape %4 : u32[4]
  %12 = cast %11 : i32[4]
  %13 = atomic_compare_exchange_elements %7 %9 %10 %12 {release,device} : f32[4]
)");
}

TEST_CASE("atomics whose shapes do not fit", "[language]") {
  const std::string shapes =
      refusal("shapes", [](InOut<i32, 1> y) { atomic_compare_exchange(y, {0}, zeros<i32>({3}), zeros<i32>({4})); });
  CHECK(shapes.find("kernel 'shapes', ") == 0);
  CHECK(shapes.find("atomic_compare_exchange: shapes [4] and [3] do not broadcast; make extents 4 and 3 equal") !=
        std::string::npos);
  const std::string places = refusal("places", [](InOut<i32, 1> y) {
    Tile i = iota({3}, 0);
    atomic_max(y, {i}, zeros<i32>({4}));
  });
  CHECK(places.find("atomic_max_elements: shapes [4] and [3] do not broadcast") != std::string::npos);
}

}  // namespace test_atomics
