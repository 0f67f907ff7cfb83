// Tensors on the host: made from values, viewed in other ways, filled, and copied with any strides and devices.
#include <algorithm>
#include <numeric>
#include <thread>

#include "fake_cuda/machine.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"
#include "support/tensors.hpp"
#include "tessera/tessera.hpp"

namespace test_tensor {

using namespace tessera::internal;

namespace {

const Device cpu = Device::cpu();

/// Memory on the test's device, a part of it as a tensor, and the indices of its elements, in row-major order.
template <class T, int R>
struct Strided {
  Tensor<T, 1> all;
  Tensor<T, R> tensor;
  std::vector<std::size_t> places;
};

int between(std::mt19937_64& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

/// Axes in any order, gaps, negative strides, single positions and sometimes none at all; a source may have strides of
/// 0.
template <class T, int R>
Strided<T, R> strided(std::mt19937_64& random, const std::array<std::int64_t, R>& extents, bool source) {
  std::array<std::size_t, R> order;
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  std::array<std::int64_t, R> strides{};
  std::int64_t step = between(random, 1, 2), origin = 3;
  for (const std::size_t axis : order) {
    strides[axis] = step;
    step = step * std::max<std::int64_t>(extents[axis], 1) + between(random, 0, 3) / 3;
    if (source && between(random, 0, 9) == 0) strides[axis] = 0;
    if (between(random, 0, 3) == 0) {
      origin += strides[axis] * std::max<std::int64_t>(extents[axis] - 1, 0);
      strides[axis] *= -1;
    }
  }
  Strided<T, R> made{Tensor<T, 1>(test_device(), {step + origin + 6}), {}, {}};
  made.tensor = Tensor<T, R>(test_device(), made.all.data() + origin, extents, strides, made.all.memory());
  std::array<std::int64_t, R> at{};
  for (std::int64_t i = 0; i < made.tensor.size(); ++i) {
    std::int64_t place = origin;
    for (std::size_t axis = 0; axis < R; ++axis) place += at[axis] * strides[axis];
    made.places.push_back(static_cast<std::size_t>(place));
    for (std::size_t axis = R; axis-- > 0 && ++at[axis] == extents[axis];) at[axis] = 0;
  }
  return made;
}

template <class T>
std::vector<std::uint64_t> bits(const std::vector<T>& values) {
  std::vector<std::uint64_t> all;
  for (const T& value : values) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    all.push_back(bits);
  }
  return all;
}

/// Values whose bits are consecutive numbers.
template <class T>
std::vector<T> counted(std::size_t size, std::uint64_t first) {
  std::vector<T> values(size);
  for (T& value : values) std::memcpy(static_cast<void*>(&value), &first, sizeof value), ++first;
  return values;
}

template <class T, int R>
void copies(std::mt19937_64& random) {
  std::array<std::int64_t, R> extents;
  for (std::int64_t& extent : extents)
    extent = between(random, 0, 15) == 0 ? between(random, 0, 1) : between(random, 2, R > 3 ? 4 : 40);
  const auto from = strided<T, R>(random, extents, true), to = strided<T, R>(random, extents, false);
  const auto source = counted<T>(static_cast<std::size_t>(from.all.size()), 1),
             before = counted<T>(static_cast<std::size_t>(to.all.size()), 77);
  std::vector<T> values, expected = before;
  for (std::size_t i = 0; i < from.places.size(); ++i)
    values.push_back(source[from.places[i]]), expected[to.places[i]] = values.back();
  const auto rewritten = [&](const auto& action) {
    to.all.copy_from(before);
    action();
    return bits(to.all.to_vector()) == bits(expected);
  };
  from.all.copy_from(source);
  INFO(from.tensor.any().text() << " to " << to.tensor.any().text());
  CHECK(rewritten([&] { to.tensor.copy_from(from.tensor); }));
  CHECK(rewritten([&] { to.tensor.copy_from(from.tensor, test_device().stream()); }));
  CHECK(rewritten([&] { to.tensor.copy_from(values); }));
  CHECK(bits(from.tensor.to_vector()) == bits(values));
  CHECK(bits(from.tensor.dense().to_vector()) == bits(values));
  CHECK(from.tensor.dense().is_dense());
  for (std::size_t place : to.places) expected[place] = stored<T>(5);
  CHECK(rewritten([&] { to.tensor.fill(5); }));
  CHECK(rewritten([&] { to.tensor.fill(stored<T>(5), test_device().stream()); }));
}

/// A machine with two GPUs, whose kernels do nothing.
struct Machine {
  FakeCuda& fake = new_fake_cuda();
  std::shared_ptr<CudaDevices> devices;
  Machine() {
    fake.devices.resize(2);
    CudaSettings settings;
    settings.compile = [](const Graph& graph, const Variant&, Arch) {
      CacheEntry entry;
      for (const char c : graph.name + '\0') entry.code.image.push_back(static_cast<std::byte>(c));
      KernelSource source{.author = graph.name,
                          .name = graph.name,
                          .text = "text",
                          .plan = "",
                          .parameters = {},
                          .tma_tensors = {},
                          .threads = 128};
      return CompiledKernel{source, std::make_shared<const CacheEntry>(std::move(entry))};
    };
    devices = std::make_shared<CudaDevices>(fake_cuda_places(), settings);
  }
  Device gpu(int ordinal) { return Device(devices->open(ordinal)); }
};

}  // namespace

TEST_CASE("a tensor is made from values and from braces", "[api]") {
  CHECK(cpu.tensor<f32>({2, 3}, numbered<f32>(6)).to_vector() == numbered<f32>(6));
  CHECK(says(error_of([] { cpu.tensor<f32>({2, 3}, numbered<f32>(5)); }), {"f32 [2,3] of 6 elements", "5 values"}));

  const auto x = Tensor<f32, 2>::of(cpu, {{1, 2, 3}, {4, 5.5, 6}});
  CHECK(x.extents() == std::array<std::int64_t, 2>{2, 3});
  CHECK(x.to_vector() == std::vector<f32>{1, 2, 3, 4, 5.5, 6});
  CHECK(Tensor<i64, 1>::of(cpu, {-1, 1ll << 40}).to_vector() == std::vector<i64>{-1, 1ll << 40});
  CHECK(bits(Tensor<bf16, 1>::of(cpu, {1, 0.5}).to_vector()) == bits(std::vector{bf16(1.0f), bf16(0.5f)}));
  const auto deep = Tensor<u8, 3>::of(cpu, {{{1}, {2}}, {{3}, {4}}, {{5}, {6}}});
  CHECK(deep.extents() == std::array<std::int64_t, 3>{3, 2, 1});
  CHECK(deep.to_vector() == numbered<u8>(6, 1));
  CHECK(Tensor<f32, 2>::of(cpu, {}).extents() == std::array<std::int64_t, 2>{0, 0});
  CHECK(Tensor<f32, 2>::of(cpu, {{}, {}}).extents() == std::array<std::int64_t, 2>{2, 0});

  CHECK(says(error_of([] { Tensor<f32, 2>::of(cpu, {{1, 2, 3}, {4, 5}}); }), {"row [1] has 2 elements", "3"}));
  CHECK(says(error_of([] {
               Tensor<f32, 3>::of(cpu, {{{1}, {2}}, {{3}, {4, 5}}});
             }),
             {"row [1,1] has 2 elements", "1"}));
  CHECK(says(error_of([] { Tensor<f32, 3>::of(cpu, {{{1}, {2}}, {{3}}}); }), {"row [1] has 1 elements", "2"}));
}

TEST_CASE("tensors of any strides are copied, read and filled", "[cpu]") {
  std::mt19937_64 random(7);
  Cases cases(250);
  for (int round = 0; round < 40; ++round) {
    if (!cases.skip()) copies<f32, 2>(random);
    if (!cases.skip()) copies<u8, 3>(random);
    if (!cases.skip()) copies<bf16, 1>(random);
    if (!cases.skip()) copies<i64, 4>(random);
    if (!cases.skip()) copies<f8e4m3, 2>(random);
    if (!cases.skip()) copies<i16, 6>(random);
    if (!cases.skip()) copies<f64, 5>(random);
  }
}

TEST_CASE("a copy of a large transposed tensor takes many tiles", "[cpu]") {
  const auto x = tensor<i32, 2>({300, 257}, numbered<i32>(300 * 257));
  const auto y = x.transposed().dense();
  CHECK(y.extents() == std::array<std::int64_t, 2>{257, 300});
  const auto values = y.to_vector();
  int right = 0;
  for (int i = 0; i < 257; ++i)
    for (int j = 0; j < 300; ++j) right += values[static_cast<std::size_t>(i * 300 + j)] == j * 257 + i;
  CHECK(right == 257 * 300);
}

TEST_CASE("a tensor is filled with numbers of its type", "[api]") {
  const auto filled = []<class T>(T, auto number) {
    const Tensor<T, 2> x(cpu, {3, 5});
    x.fill(number);
    const auto values = x.to_vector();
    CHECK(bits(values) == std::vector(values.size(), bits(values)[0]));
    return values[0];
  };
  CHECK(filled(f32(), 1.5) == 1.5f);
  CHECK(filled(f32(), -std::numeric_limits<float>::infinity()) == -std::numeric_limits<float>::infinity());
  CHECK(std::isnan(filled(f32(), std::nan(""))));
  CHECK(filled(f64(), 0.1) == 0.1);
  CHECK(filled(u64(), ~0ull) == ~0ull);
  CHECK(filled(i8(), -128) == -128);
  CHECK(static_cast<float>(filled(f16(), 65504)) == 65504);
  CHECK(static_cast<float>(filled(f8e4m3(), 448)) == 448);
  const Tensor<u8, 1> bytes(cpu, {4});
  CHECK(says(error_of([&] { bytes.fill(256); }), {"u8", "256", "out of its range"}));
  CHECK(says(error_of([&] { bytes.fill(-1); }), {"u8", "-1"}));
  CHECK(says(error_of([&] { Tensor<f16, 1>(cpu, {4}).fill(65520); }), {"f16", "65520"}));
  CHECK(says(error_of([&] { Tensor<f32, 1>(cpu, {4}).fill(1e300); }), {"f32", "out of its range"}));
  CHECK(says(error_of([&] { Tensor<f8e4m3, 1>(cpu, {4}).fill(449); }), {"f8e4m3", "449"}));
}

namespace {
template <class T>
void check_rounded_once() {
  // Halfway between two neighbors, and slightly more: rounded once it goes up, rounded twice down.
  const int digits = std::is_same_v<T, f16> ? 10 : std::is_same_v<T, bf16> ? 7 : std::is_same_v<T, f8e4m3> ? 3 : 2;
  const double up = 1 + std::ldexp(1, -digits), number = 1 + std::ldexp(1, -digits - 1) + 0x1p-40;
  const long double farther = 1 + static_cast<long double>(std::ldexp(1, -digits - 1)) + 0x1p-60L;
  const auto value = [](T x) { return double{static_cast<float>(x)}; };
  CHECK(value(T(number)) == up);
  CHECK(value(T(-number)) == -up);
  CHECK(value(T(farther)) == up);
  CHECK(value(T(number - 0x1p-39)) == 1);
  CHECK(value(T(double{value(T(number))})) == up);
  const auto k = kernel("rounded", [&](Out<T, 1> y) {
    store(y, {0}, concat(0, full<T>({1}, number), full<T>({1}, farther)));
  });
  const Tensor<T, 1> x(cpu, {3}), y(cpu, {2});
  x.fill(number);
  CHECK(value(x.to_vector()[1]) == up);
  x.fill(farther);
  CHECK(value(x.to_vector()[1]) == up);
  CHECK(value(Tensor<T, 1>::of(cpu, {number, -number}).to_vector()[1]) == -up);
  launch(cpu.stream(), k, y);
  CHECK(value(y.to_vector()[0]) == up);
  CHECK(value(y.to_vector()[1]) == up);
  // Integers that no float represents.
  const std::int64_t integer = (std::int64_t{1} << 40) + (std::int64_t{1} << (39 - digits)) + 1;
  if (digits == 7) CHECK(value(T(integer)) == std::ldexp(up, 40));
  if (digits == 7) CHECK(value(T(static_cast<std::uint64_t>(integer) << 23)) == std::ldexp(up, 63));
  // Below the smallest float, and at the limits.
  CHECK(value(T(1e-300)) == 0);
  CHECK(std::signbit(value(T(-1e-300))));
  CHECK(std::isnan(value(T(std::nan("")))));
}
}  // namespace

TEST_CASE("a number becomes an element of memory by one rounding", "[api]") {
  check_rounded_once<f16>();
  check_rounded_once<bf16>();
  check_rounded_once<f8e4m3>();
  check_rounded_once<f8e5m2>();
  CHECK(std::isinf(static_cast<float>(f16(65520.0))));
  CHECK(static_cast<float>(f16(std::nextafter(65520.0, 0))) == 65504);
  CHECK(static_cast<float>(f8e4m3(1e300)) == 448);
  CHECK(static_cast<float>(bf16(std::numeric_limits<double>::infinity())) == std::numeric_limits<float>::infinity());
  const Tensor<f32, 1> x(cpu, {1});
  x.fill(1 + 0x1p-24L + 0x1p-60L);  // as a double it is halfway
  CHECK(x.to_vector()[0] == 1 + 0x1p-23f);
  const auto k = kernel("rounded", [&](Out<f32, 1> y) { store(y, {0}, full<f32>({1}, 1 + 0x1p-24L + 0x1p-60L)); });
  launch(cpu.stream(), k, x);
  CHECK(x.to_vector()[0] == 1 + 0x1p-23f);
}

TEST_CASE("an out-of-range number is printed with few digits", "[api]") {
  CHECK(says(error_of([&] { Tensor<f32, 1>(cpu, {4}).fill(1e300); }), {"f32 cannot be filled with 1e+300, which"}));
  const auto k = kernel("scale", [](Out<f32, 1> y, Scalar<f32> a, Scalar<i32> n) {
    store(y, {0}, full<f32>({1}, 0) + a + cast<f32>(n));
  });
  const Tensor<f32, 1> y(cpu, {1});
  CHECK(says(error_of([&] { launch(cpu.stream(), k, y, 1e300, 1); }),
             {"launch of kernel 'scale' refused: argument 2: a Scalar<f32> is given 1e+300, which is out of its range"}));
  CHECK(says(error_of([&] { launch(cpu.stream(), k, y, 1, std::int64_t{1} << 40); }),
             {"launch of kernel 'scale' refused: argument 3: a Scalar<i32> is given 1099511627776, which"}));
}

TEST_CASE("tensors that share memory are copied as if they did not", "[api]") {
  const auto x = cpu.tensor<i32>({3, 3}, numbered<i32>(9));
  x.copy_from(x.transposed());
  CHECK(x.to_vector() == std::vector<i32>{0, 3, 6, 1, 4, 7, 2, 5, 8});
  const auto y = cpu.tensor<i32>({6}, numbered<i32>(6));
  y.slice(0, 1, 5).copy_from(y.slice(0, 0, 5));
  CHECK(y.to_vector() == std::vector<i32>{0, 0, 1, 2, 3, 4});
  y.copy_from(y);
  CHECK(y.to_vector() == std::vector<i32>{0, 0, 1, 2, 3, 4});
  CHECK(says(error_of([&] { y.slice(0, 1, 5).copy_from(y.slice(0, 0, 5), cpu.stream()); }),
             {"i32 [5]", "shares its memory"}));
  const Tensor<i32, 2> broadcast(cpu, y.data(), {4, 6}, {0, 1});
  CHECK(broadcast.dense().to_vector().size() == 24);
  CHECK(says(error_of([&] {
               broadcast.copy_from(Tensor<i32, 2>(cpu, {4, 6}));
             }),
             {"i32 [4,6] with strides [0,1]", "share memory"}));
  CHECK(says(error_of([&] { broadcast.fill(0); }), {"share memory"}));
  CHECK(says(error_of([&] { x.copy_from(Tensor<i32, 2>(cpu, {3, 4})); }), {"i32 [3,3]", "i32 [3,4]"}));
}

TEST_CASE("a tensor is permuted and transposed", "[api]") {
  const auto x = cpu.tensor<i32>({2, 3, 4}, numbered<i32>(24));
  const auto transposed = x.permuted({2, 0, -2});
  CHECK(transposed.extents() == std::array<std::int64_t, 3>{4, 2, 3});
  CHECK(transposed.strides() == std::array<std::int64_t, 3>{1, 12, 4});
  CHECK(transposed.stride(-1) == 4);
  CHECK(transposed.data() == x.data());
  CHECK(x.transposed().extents() == std::array<std::int64_t, 3>{2, 4, 3});
  CHECK(x.transposed().transposed().strides() == x.strides());
  CHECK(says(error_of([&] { x.permuted({0, 1, -2}); }), {"i32 [2,3,4]", "[0,1,-2]", "axis 1 twice"}));
  CHECK(says(error_of([&] { x.permuted({0, 1, 3}); }), {"no axis 3", "-3 to 2"}));
}

TEST_CASE("a dense tensor is reshaped, and one extent may be left open", "[api]") {
  const auto x = cpu.tensor<i32>({2, 3, 4}, numbered<i32>(24));
  CHECK(x.reshaped({-1}).extents() == std::array<std::int64_t, 1>{24});
  CHECK(x.reshaped({4, -1}).extents() == std::array<std::int64_t, 2>{4, 6});
  CHECK(x.reshaped({1, 24, 1, 1}).data() == x.data());
  CHECK(x.slice(0, 1, 1).reshaped({12}).to_vector() == numbered<i32>(12, 12));  // one row: dense, whatever its stride
  CHECK(x.slice(1, 0, 0).reshaped({5, 0}).size() == 0);
  CHECK(x.slice(1, 0, 0).reshaped({-1}).size() == 0);
  CHECK(says(error_of([&] {
               x.reshaped({5, -1});
             }),
             {"i32 [2,3,4] to [5,-1]", "24 elements are not a multiple of 5"}));
  CHECK(says(error_of([&] { x.reshaped({-1, -1}); }), {"only one extent"}));
  CHECK(says(error_of([&] { x.reshaped({-1, -2}); }), {"negative"}));
  CHECK(says(error_of([&] { x.reshaped({-2}); }), {"negative"}));
  CHECK(says(error_of([&] { x.reshaped({23}); }), {"24 elements are not 23"}));
  CHECK(says(error_of([&] { x.slice(1, 0, 0).reshaped({0, -1}); }), {"ambiguous"}));
  CHECK(says(error_of([&] { x.reshaped({1ll << 62, 1ll << 62, -1}); }), {"number of elements differs"}));
  CHECK(
      says(error_of([&] { x.transposed().reshaped({24}); }), {"i32 [2,4,3] with strides [12,1,4]", "[24]", "dense()"}));
  CHECK(x.transposed().dense().reshaped({24}).to_vector()[1] == 4);
}

TEST_CASE("copies and fills are captured with a stream, and do not wait then", "[api]") {
  const auto x = cpu.tensor<i32>({2, 2}, numbered<i32>(4)), y = cpu.tensor<i32>({2, 2});
  const auto z = cpu.tensor<i32>({3});
  const CapturedGraph graph = cpu.stream().capture([&] {
    y.copy_from(x.transposed(), cpu.stream());
    z.fill(9, cpu.stream());
    CHECK(says(error_of([&] { y.copy_from(x); }), {"while this thread records"}));
    CHECK(says(error_of([&] { z.fill(1); }), {"while this thread records"}));
  });
  for (const int first : {0, 5}) {
    x.copy_from(numbered<i32>(4, first));
    z.fill(0);
    cpu.stream().launch(graph);
    CHECK(y.to_vector() == std::vector<i32>{first, first + 2, first + 1, first + 3});
    CHECK(z.to_vector() == std::vector<i32>(3, 9));
  }
}

TEST_CASE("tensors are copied between devices", "[jit]") {
  Machine machine;
  const Device first = machine.gpu(0), second = machine.gpu(1);
  const auto values = numbered<f32>(6);
  const auto x = cpu.tensor<f32>({2, 3}, values);
  CHECK(x.to(cpu).data() == x.data());
  const auto there = x.to(first);
  CHECK(there.device() == first);
  CHECK(there.to(first).data() == there.data());
  CHECK(there.to(second).to_vector() == values);  // through the host
  const Tensor<f32, 2> back(cpu, {2, 3});
  back.copy_from(there);
  CHECK(back.to_vector() == values);
  x.copy_from(numbered<f32>(6, 9));
  CHECK(there.to(cpu).to_vector() == values);
  // A strided source here is copied as dense; a strided target there is written by a kernel.
  CHECK(x.transposed().to(first).to_vector() == x.transposed().to_vector());
  CHECK(machine.fake.launches.empty());
  there.transposed().to_vector();
  REQUIRE(machine.fake.launches.size() == 1);
  CHECK(machine.fake.launches[0].function == "copy_u32_2d");
  there.transposed().copy_from(values);
  there.slice(1, 0, 2).fill(1);
  REQUIRE(machine.fake.launches.size() == 3);
  CHECK(machine.fake.launches[2].function == "fill_u32_2d");
  CHECK(says(error_of([&] { back.copy_from(there, cpu.stream()); }), {"f32 [2,3] of cuda:0", "a stream of cpu"}));
  CHECK(says(error_of([&] { there.fill(0, second.stream()); }), {"cuda:0", "cuda:1"}));
  CHECK(says(error_of([&] { back.copy_from(Tensor<f32, 2>(first, {3, 2})); }), {"f32 [2,3]", "f32 [3,2]"}));
}

TEST_CASE("a copy on a GPU comes after all work of the device, and a stream's in its order", "[jit]") {
  Machine machine;
  const Device device = machine.gpu(0);
  const Stream other = device.new_stream();  // stream3; stream2 is the device's own, stream1 is for memory
  const Tensor<f32, 1> x(device, {64}), y(device, {64});
  y.copy_from(x, other);
  machine.fake.calls.clear();
  y.copy_from(x, other);
  CHECK(machine.fake.calls.size() == 1);
  CHECK(says(machine.fake.calls[0], {"cuMemcpyAsync", "stream3"}));
  machine.fake.calls.clear();
  y.copy_from(x);
  std::vector<std::string> kinds;
  for (const std::string& call : machine.fake.calls)
    for (const char* kind : {"cuEventRecord", "cuMemcpyAsync", "cuStreamSynchronize"})
      if (call.starts_with(kind)) kinds.push_back(call);
  // All streams are awaited, then the copy is made on one that nobody else has, stream4, and awaited.
  const auto copy = std::ranges::find_if(kinds, [](auto& call) {
    return says(call, {"cuMemcpyAsync 256", "stream4"});
  });
  REQUIRE(copy != kinds.end());
  CHECK(std::any_of(kinds.begin(), copy, [](auto& call) { return says(call, {"cuEventRecord", "stream3"}); }));
  CHECK(std::any_of(kinds.begin(), copy, [](auto& call) { return says(call, {"cuStreamSynchronize", "stream1"}); }));
  CHECK(std::any_of(copy, kinds.end(), [](auto& call) { return says(call, {"cuStreamSynchronize", "stream4"}); }));
}

TEST_CASE("a copy without a stream is not part of another thread's capture", "[jit]") {
  Machine machine;
  const Device device = machine.gpu(0);
  const Tensor<f32, 1> x(device, {64}), y(device, {64});
  (void)device.stream().capture([&] {
    std::thread([&] {
      y.copy_from(x);
      y.fill(1);
    }).join();
  });
  for (const std::string& call : machine.fake.calls)
    if (call.starts_with("cuMemcpyAsync 256")) CHECK(!says(call, {"stream2"}));
  REQUIRE(machine.fake.launches.size() == 1);
}

}  // namespace test_tensor
