// Launches, tensors, devices, options: checks and their messages.
#include <algorithm>
#include <cstdio>
#include <limits>
#include <new>
#include <random>
#include <string>
#include <thread>

#include "cpu/program.hpp"
#include "jit/backend/overlap.hpp"
#include "jit/options/options.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"

namespace test_launch {

using namespace tessera::internal;

namespace {

const auto& add_kernel() {
  static const auto add = kernel("add", [](In<f32, 2> a, In<f32, 2> b, Out<f32, 2> y) {
    require(a.extent(0) == b.extent(0), "as many rows in both");
    auto [i, j] = blocks(cdiv(y.extent(0), 4), cdiv(y.extent(1), 4));
    store(y, {i, j}, load(a, {i, j}, {4, 4}) + load(b, {i, j}, {4, 4}));
  });
  return add;
}

Tensor<f32, 2> filled(std::int64_t rows, std::int64_t columns, float value) {
  Tensor<f32, 2> tensor(Device::cpu(), {rows, columns});
  tensor.copy_from(std::vector<float>(static_cast<std::size_t>(rows * columns), value));
  return tensor;
}

const Stream stream = Device::cpu().stream();

}  // namespace

namespace {
/// The output of tests/lifetime.
std::string lifetime(const std::string& device, const std::string& how) {
  FILE* const pipe = ::popen(("TESSERA_DEVICE=" + device + " " TESSERA_BIN_DIR "/lifetime " + how + " 2>&1").c_str(), "r");
  REQUIRE(pipe);
  std::string text;
  for (int c; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
  const int status = ::pclose(pipe);
  return status == 0 ? text : text + "status " + std::to_string(status);
}
}  // namespace

TEST_CASE("devices exist until the very end of a process, and in forked children", "[api]") {
  std::vector<std::string> devices{"cpu"};
#ifdef TESSERA_HAS_EMULATOR
  if (!sanitized) devices.push_back("emulated");  // a separate library, built without sanitizers
#endif
  for (const std::string& device : devices) {
    CAPTURE(device);
    CHECK(lifetime(device, "static") == "main: 150\nstatic: 150\n");
    CHECK(lifetime(device, "atexit") == "main: 150\natexit: 150\n");
    CHECK(lifetime(device, "fork") == "main: 150\nchild: 150\nstatus 0\nparent: 150\n");
    // Objects of the parent's threads are leaked in a child that exits by itself, as LeakSanitizer reports.
    if (!sanitized) CHECK(lifetime(device, "fork-exit") == "main: 150\nchild: 150\nstatus 0\nparent: 150\n");
  }
}

TEST_CASE("an endless while_ is an error on the CPU in a debug build of a kernel", "[jit]") {
  const Graph rounds = trace_kernel("rounds", [](InOut<i32, 1> x, Scalar<i32> count) {
    Var n = constant<i32>(0);
    while_([&] { return n != count; }, [&] { n = n + 1; });
    store(x, {0}, reshape(n, {1}));
  }, Location::current());
  const auto run = [&](int count, bool debug) {
    i32 x = 0;
    Argument arguments[2];
    arguments[0].data = &x, arguments[0].extent[0] = arguments[0].stride[0] = 1;
    arguments[1].scalar = cell_of(count);
    const std::int64_t grid[] = {1};
    const std::string error = error_of([&] { cpu::Program(rounds, debug).run(arguments, grid); });
    return error == "(no error)" ? std::to_string(x) : error;
  };
  CHECK(run(1 << 20, true) == "1048576");
  CHECK(run((1 << 20) + 1, false) == "1048577");
  CHECK(says(run((1 << 20) + 1, true),
             {"kernel 'rounds', ", "test_launch.cpp:", "a while_ has not ended after 1048576 iterations (block 0)"}));
}

TEST_CASE("if a launch runs out of memory, the error names the kernel and its tensors", "[api]") {
  const auto k = cuda_kernel(
      "hungry", "extern \"C\" __global__ void hungry(float* y) {}",
      [](Out<f32, 1>) { return CudaLaunch{.blocks = {1}, .threads = {1}}; }, [](float*) { throw std::bad_alloc(); });
  const Device device = Device::cpu();
  const Tensor<f32, 1> y(device, {5});
  const auto refused = [](const std::string& text) {
    return says(text, {"no host memory left for a launch of kernel 'hungry' (argument 1 is f32 [5])"});
  };
  CHECK(refused(error_of([&] { launch(device.stream(), k, y); })));
  const CapturedGraph graph = device.stream().capture([&] { launch(device.stream(), k, y); });
  CHECK(refused(error_of([&] { device.stream().launch(graph); })));
  CHECK_THROWS_AS(launch(device.stream(), k, y), OutOfMemory);
}

TEST_CASE("a launch computes the grid from the arguments", "[api]") {
  const auto a = filled(5, 7, 1), b = filled(5, 7, 2), y = filled(5, 7, -1);
  launch(stream, add_kernel(), a, b, y);
  CHECK(y.to_vector() == std::vector<float>(35, 3));
}

TEST_CASE("a launch that violates a requirement is rejected with its text", "[api]") {
  const auto a = filled(5, 7, 1), b = filled(6, 7, 2), y = filled(5, 7, -1);
  const std::string text = error_of([&] { launch(stream, add_kernel(), a, b, y); });
  CHECK(says(text, {"'add'", "as many rows in both", "test_launch.cpp:", "argument 1 is f32 [5,7]",
                    "argument 2 is f32 [6,7]"}));
  CHECK(y.to_vector() == std::vector<float>(35, -1));
}

TEST_CASE("a written argument that overlaps another is rejected", "[api]") {
  const auto a = filled(8, 8, 1), b = filled(8, 8, 2);
  CHECK(says(error_of([&] { launch(stream, add_kernel(), a.slice(1, 0, 4), b.slice(1, 0, 4), a.slice(1, 1, 4)); }),
             {"argument 3 is written and overlaps argument 1"}));
  CHECK(says(error_of([&] { launch(stream, add_kernel(), a.slice(0, 0, 4), b, a.slice(0, 3, 4)); }), {"overlaps"}));
  CHECK(error_of([&] { launch(stream, add_kernel(), a, a, b); }) == "(no error)");  // reading one twice is fine
  // Rows with gaps, and columns side by side in one memory.
  CHECK(error_of([&] { launch(stream, add_kernel(), a.slice(0, 0, 4), a.slice(0, 0, 4), a.slice(0, 4, 4)); }) ==
        "(no error)");
  CHECK(error_of([&] { launch(stream, add_kernel(), a.slice(1, 0, 3), a.slice(1, 3, 2), a.slice(1, 5, 3)); }) ==
        "(no error)");
  CHECK(says(error_of([&] { launch(stream, add_kernel(), a.slice(1, 0, 4), a.slice(1, 0, 4), a.slice(1, 3, 4)); }),
             {"overlaps"}));
  const Tensor<f32, 2> empty(Device::cpu(), {0, 8});
  CHECK(error_of([&] { launch(stream, add_kernel(), empty, empty, empty); }) == "(no error)");
  const Tensor<f32, 2> repeated(Device::cpu(), a.data(), {8, 8}, {0, 1});
  CHECK(says(error_of([&] { launch(stream, add_kernel(), b, b, repeated); }), {"elements share memory"}));
  CHECK(error_of([&] { launch(stream, add_kernel(), repeated, repeated, b); }) == "(no error)");
}

TEST_CASE("strides of any size are checked exactly", "[jit]") {
  std::vector<float> memory(64);
  const Device device = Device::cpu();
  const auto one = kernel("one", [](In<f32, 2> a, Out<f32, 2> y) { store(y, {0, 0}, load(a, {0, 0}, {1, 1})); });
  const auto error = [&](const Tensor<f32, 2>& a, const Tensor<f32, 2>& y) {
    return error_of([&] { launch(stream, one, a, y); });
  };
  const Tensor<f32, 2> dense(device, memory.data() + 16, {4, 4}, {4, 1});
  // An element at an offset that is arbitrary modulo 2^64 bytes; 2^62 elements further is the same element.
  constexpr auto most = std::numeric_limits<std::int64_t>::max(), least = std::numeric_limits<std::int64_t>::min();
  for (const std::int64_t stride : {std::int64_t{1} << 60, std::int64_t{1} << 61, std::int64_t{1} << 62, most, least,
                                    least / 2, least / 4, least / 8, std::int64_t{-1} << 60}) {
    INFO(stride);
    const Tensor<f32, 2> far(device, memory.data() + 16, {5, 4}, {stride, 1});
    CHECK(says(error(dense, far), {"the strides of argument 2 lead outside of the address space"}));
    CHECK(says(error(far, dense), {"the strides of argument 1 lead outside of the address space"}));
    const Tensor<f32, 2> far_in_both(device, memory.data() + 16, {3, 3}, {stride, stride});
    CHECK(says(error(dense, far_in_both), {"argument 2 lead outside"}));
    // In a single row the stride is irrelevant.
    const Tensor<f32, 2> row(device, memory.data() + 16, {1, 4}, {stride, 1});
    CHECK(says(error(dense, row), {"overlaps"}));
    const Tensor<f32, 2> free_row(device, memory.data() + 40, {1, 4}, {stride, 1});
    CHECK(error(dense, free_row) == "(no error)");
  }
  // Within the address space, rows of two tensors may be side by side.
  const auto rows_at = [&](std::size_t at) {
    return Tensor<f32, 2>(device, &memory[at], {3, 4}, {std::int64_t{1} << 59, 1});
  };
  CHECK(error(rows_at(0), rows_at(4)) == "(no error)");
  CHECK(says(error(rows_at(0), rows_at(3)), {"overlaps"}));
}

TEST_CASE("overlap in one memory is detected exactly", "[jit]") {
  // Two boxes in a 6 x 8 matrix, at every pair of positions, compared with marking the elements.
  std::vector<float> memory(48);
  const Device device = Device::cpu();
  const auto one = kernel("one", [](In<f32, 2> a, Out<f32, 2> y) { store(y, {0, 0}, load(a, {0, 0}, {1, 1})); });
  int wrong = 0;
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 5; ++j)
      for (int k = 0; k < 4; ++k)
        for (int l = 0; l < 5; ++l) {
          const Tensor<f32, 2> a(device, &memory[static_cast<std::size_t>(i * 8 + j)], {2, 3}, {8, 1});
          const Tensor<f32, 2> y(device, &memory[static_cast<std::size_t>(k * 8 + l)], {3, 4}, {8, 1});
          const bool meet = i < k + 3 && k < i + 2 && j < l + 4 && l < j + 3;
          wrong += (error_of([&] { launch(stream, one, a, y); }) != "(no error)") != meet;
        }
  CHECK(wrong == 0);
}

TEST_CASE("the stride of an axis of one element does not affect overlap", "[jit]") {
  const Parameter parameter{.access = Access::in, .type = ElementType::u8, .rank = 2};
  std::vector<char> memory(64);
  const auto column = [&](std::size_t first, std::int64_t extent, std::int64_t stride) {
    Argument argument;
    argument.data = &memory[first];
    argument.extent = {extent, 1}, argument.stride = {2, stride};
    return argument;
  };
  for (const std::int64_t stride : {1, 9, 0, -5}) {
    CAPTURE(stride);
    CHECK(!overlap(parameter, column(0, 4, 1), parameter, column(1, 4, stride)));
    CHECK(!overlap(parameter, column(1, 4, stride), parameter, column(0, 4, 7)));
    CHECK(overlap(parameter, column(0, 4, 1), parameter, column(2, 4, stride)));
    CHECK(overlap(parameter, column(4, 1, stride), parameter, column(0, 4, 7)));
    CHECK(!overlap(parameter, column(3, 1, stride), parameter, column(0, 4, 7)));
  }
}

TEST_CASE("overlap of tensors with equal strides is never missed", "[jit]") {
  std::mt19937 engine(37);
  const auto number = [&](int low, int high) { return std::uniform_int_distribution(low, high)(engine); };
  const Parameter parameter{.access = Access::in, .type = ElementType::u8, .rank = 2};
  constexpr std::size_t bytes = 256;
  std::vector<char> memory(bytes);
  int missed = 0, met = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::int64_t outer = number(1, 12), inner = number(1, 3);
    Argument of[2];
    std::vector<char> marks[2]{std::vector<char>(bytes), std::vector<char>(bytes)};
    for (int one = 0; one < 2; ++one) {
      const int first = number(0, 60);
      of[one].data = &memory[static_cast<std::size_t>(first)];
      of[one].stride = {outer, inner};
      of[one].extent = {number(1, 4), number(1, 8)};
      for (std::int64_t row = 0; row < of[one].extent[0]; ++row)
        for (std::int64_t column = 0; column < of[one].extent[1]; ++column)
          marks[one][static_cast<std::size_t>(first + row * outer + column * inner)] = 1;
    }
    bool meet = false;
    for (std::size_t at = 0; at < bytes; ++at) meet |= marks[0][at] && marks[1][at];
    const bool found = overlap(parameter, of[0], parameter, of[1]);
    met += meet;
    missed += meet && !found;
    // With nested strides it is known exactly.
    if (outer >= inner * std::max(of[0].extent[1], of[1].extent[1])) CHECK(found == meet);
  }
  CHECK(missed == 0);
  CHECK(met > 1000);
}

TEST_CASE("several tensors' extents are checked in one statement", "[api]") {
  const auto copy = kernel("copy", [](In<f32, 2> a, In<i32, 2> b, Out<f32, 2> y) {
    same_extents(a, b.permute({1, 0}), y);
    store(y, {0, 0}, load(a, {0, 0}, {4, 8}) + cast<f32>(load(b, {0, 0}, {4, 8})));
  });
  const Device cpu = Device::cpu();
  const auto run = [&](int a0, int a1, int b0, int b1, int y0, int y1) {
    return error_of([&] {
      launch(stream, copy, cpu.tensor<f32>({a0, a1}), cpu.tensor<i32>({b0, b1}), cpu.tensor<f32>({y0, y1}));
    });
  };
  CHECK(run(3, 5, 5, 3, 3, 5) == "(no error)");
  CHECK(says(run(3, 5, 5, 4, 3, 5),
             {"test_launch.cpp:", "it requires", "arguments 1 and 2 have the same extent along axis 0"}));
  CHECK(says(run(3, 5, 4, 3, 3, 5), {"arguments 1 and 2 have the same extent along axis 1"}));
  CHECK(says(run(3, 5, 5, 3, 3, 4), {"arguments 1 and 3 have the same extent along axis 1"}));
}

TEST_CASE("in debug the CPU checks stores for NaN", "[cpu]") {
  const auto divide = trace_kernel("divide", [](In<f32, 1> x, InOut<f32, 1> y) {
    Index i = blocks(cdiv(x.extent(0), 2));
    Tile xs = load(x, {i}, {2});
    store(y, {i}, xs / xs);
  });
  std::vector<float> x{1, 2, 3, 4, 5, 0, 7}, y(7, -1);
  const auto argument = [](std::vector<float>& values) {
    Argument argument;
    argument.data = values.data();
    argument.extent[0] = static_cast<std::int64_t>(values.size()), argument.stride[0] = 1;
    return argument;
  };
  const Argument arguments[] = {argument(x), argument(y)};
  const std::int64_t grid[] = {4};
  const auto run = [&](bool debug) { return error_of([&] { cpu::Program(divide, debug).run(arguments, grid); }); };
  CHECK(run(false) == "(no error)");
  CHECK(says(run(true), {"kernel 'divide', ", "test_launch.cpp:", "NaN is stored (block 2)"}));
  x[5] = 1;  // elements beyond the tensor, even 0 / 0, are not stored
  CHECK(run(true) == "(no error)");
}

TEST_CASE("grids with a zero do nothing, negative ones are rejected", "[api]") {
  const auto fill = kernel("fill", [](Out<f32, 1> y, Scalar<i32> n) {
    Index i = blocks(n);
    store(y, {i}, full<f32>({1}, 5));
  });
  Tensor<f32, 1> y(Device::cpu(), {4});
  y.copy_from(std::vector<float>(4, 1));
  launch(stream, fill, y, 0);
  CHECK(y.to_vector() == std::vector<float>(4, 1));
  CHECK(says(error_of([&] { launch(stream, fill, y, -2); }), {"axis 0 of the grid", "-2"}));
  launch(stream, fill, y, 3);
  CHECK(y.to_vector() == std::vector<float>{5, 5, 5, 1});
  // However long the other axes are.
  const auto large = kernel("large", [](Out<f32, 1> y, Scalar<i32> n, Scalar<i32> first, Scalar<i32> last) {
    auto [i, j, k, l, m] = blocks(first, n, n, n, last);
    store(y, {i + j + k + l + m}, full<f32>({1}, 7));
  });
  constexpr int most = std::numeric_limits<int>::max();
  launch(stream, large, y, most, 1, 0);
  launch(stream, large, y, most, 0, 1);
  CHECK(y.to_vector() == std::vector<float>{5, 5, 5, 1});
  CHECK(says(error_of([&] { launch(stream, large, y, -1, 0, 1); }), {"axis 1 of the grid", "-1"}));
}

TEST_CASE("a tensor may refer to a user's memory", "[api]") {
  std::vector<float> memory(24);
  const Tensor<f32, 2> columns(Device::cpu(), memory.data() + 1, {3, 4}, {2, 6});  // column-major, every other row
  const auto a = filled(3, 4, 1), b = filled(3, 4, 1);
  launch(stream, add_kernel(), a, b, columns);
  double sum = 0;
  for (std::size_t i = 0; i < memory.size(); ++i) sum += memory[i] == 2 && i % 2 == 1;
  CHECK(sum == 12);
  CHECK(columns.to_vector() == std::vector<float>(12, 2));
  CHECK(says(error_of([&] { a.copy_from(std::vector<float>(11)); }), {"12", "11"}));
  CHECK(says(error_of([&] { a.slice(1, 2, 3); }), {"3 elements from 2 on along axis 1", "f32 [3,4]"}));
  CHECK(says(error_of([&] { a.reshaped(std::array<std::int64_t, 1>{11}); }), {"12", "11"}));
}

TEST_CASE("axes of a tensor count from either end, and others are rejected", "[api]") {
  const Tensor<f32, 3> x(Device::cpu(), {2, 3, 4});
  for (int axis = 0; axis < 3; ++axis) {
    CHECK(x.extent(axis) == axis + 2);
    CHECK(x.extent(axis - 3) == axis + 2);
    CHECK(x.slice(axis, 1, 1).extents() == x.slice(axis - 3, 1, 1).extents());
    CHECK(x.slice(axis, 1, 1).data() == x.slice(axis - 3, 1, 1).data());
  }
  for (const int axis : {-4, 3, 4, 6, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()}) {
    const std::initializer_list<std::string_view> said{"rank 3 has no axis", "axes are -3 to 2"};
    CHECK(says(error_of([&] { x.extent(axis); }), said));
    CHECK(says(error_of([&] { x.slice(axis, 0, 0); }), said));
  }
}

TEST_CASE("a tensor without memory belongs to no device", "[api]") {
  // On some machines not even the CPU can be used, so making one must not query any device.
  const Tensor<f32, 2> none;
  CHECK(none.size() == 0);
  CHECK(none.to_vector().empty());
  none.copy_from({});
  CHECK(none.slice(0, 0, 0).size() == 0);
  CHECK(none.reshaped(std::array<std::int64_t, 3>{0, 4, 5}).extent(2) == 5);
  CHECK(says(error_of([&] { none.device(); }), {"without memory", "no device"}));
  CHECK(says(error_of([&] { launch(stream, add_kernel(), none, none, none); }),
             {"'add' refused", "argument 1 is a tensor without memory", "Device::tensor"}));
  const Tensor<f32, 2> some(Device::cpu(), {2, 2});
  CHECK(says(error_of([&] { launch(stream, add_kernel(), some, none, some); }), {"argument 2 is a tensor without"}));
  CHECK(says(error_of([&] { none.copy_from(std::vector<float>(1)); }), {"0 elements", "1 values"}));
  CHECK(says(error_of([&] { none.reshaped({-2}); }), {"negative"}));
}

TEST_CASE("a device makes tensors", "[api]") {
  Tensor<bf16, 2> x = Device::cpu().tensor<bf16>({3, 5});
  CHECK(x.extents() == Tensor<bf16, 2>::Extents{3, 5});
  CHECK(reinterpret_cast<std::uintptr_t>(x.data()) % 64 == 0);
}

TEST_CASE("one kernel may be launched from several threads", "[api]") {
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const auto a = filled(33, 65, static_cast<float>(t)), b = filled(33, 65, static_cast<float>(i)),
                   y = filled(33, 65, -1);
        launch(stream, add_kernel(), a, b, y);
        right += y.to_vector() == std::vector<float>(33 * 65, static_cast<float>(t + i));
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 200);
}

TEST_CASE("devices are selected by name", "[jit]") {
  CHECK(Device::parse("cpu") == Device::cpu());
  CHECK(Device::cpu().name().find("cpu") == 0);
  for (const char* bad : {"", "gpu", "cuda:", "cuda:x", "CPU", "cpu:0"})
    CHECK(says(error_of([&] { Device::parse(bad); }), {"there is no device", bad}));
  CHECK(!Device::best().reason().empty());
}

TEST_CASE("grids and tensors too large to count are rejected", "[api]") {
  const auto fill = kernel("fill", [](Out<f32, 1> y, Scalar<i32> n) {
    auto [i, j, k, l] = blocks(n, n, n, n);
    store(y, {i + j + k + l}, full<f32>({1}, 5));
  });
  const Tensor<f32, 1> y(Device::cpu(), {4});
  CHECK(says(error_of([&] { launch(stream, fill, y, 65536); }),
             {"launch of kernel 'fill' refused: a grid of [65536,65536,65536,65536] blocks", "2^31 - 1 at most",
              "a larger tile, or several in a loop", "argument 2 is 65536"}));
  CHECK(says(error_of([&] { launch(stream, fill, y, 216); }), {"a grid of [216,216,216,216] blocks"}));  // 2^31 + 3e7
  const auto cube = cuda_kernel(
      "cube", "extern \"C\" __global__ void cube(float*) {}",
      [](Out<f32, 1> x) {
    return CudaLaunch{.blocks = {x.extent(0) << 24, 64}, .threads = {1}};
      },
      [](float*) {});
  CHECK(says(error_of([&] { launch(stream, cube, y); }), {"'cube' refused: a grid of [67108864,64,1] blocks"}));
  CHECK(says(error_of([] { Tensor<f32, 3>(Device::cpu(), {1 << 22, 1 << 22, 1 << 20}); }), {"2^63 bytes"}));
  CHECK(says(error_of([] { Tensor<f32, 1>(Device::cpu(), {-1}); }), {"negative"}));
  CHECK(says(error_of([&] { y.slice(0, 1, std::numeric_limits<std::int64_t>::max()); }), {"slice"}));
}

TEST_CASE("cdiv is exact up to the largest extent", "[api]") {
  const auto count =
      kernel("count", [](In<u8, 1> x, Out<i32, 1> y) { store(y, {0}, reshape(cdiv(x.extent(0), 64), {1})); });
  std::vector<u8> memory(1);
  const Tensor<u8, 1> x(Device::cpu(), memory.data(), {2147483647}, {0});
  const Tensor<i32, 1> y(Device::cpu(), {1});
  launch(stream, count, x, y);
  CHECK(y.to_vector()[0] == 33554432);
}

TEST_CASE("scalars keep their value or are rejected, and the messages show them", "[api]") {
  const auto positive = kernel("positive", [](Out<f32, 1> y, Scalar<i32> n, Scalar<f32> f) {
    require(n > 0, "n is positive");
    store(y, {0}, full<f32>({1}, 1) * f);
  });
  const Tensor<f32, 1> y(Device::cpu(), {4});
  CHECK(says(error_of([&] { launch(stream, positive, y, -3, 1.0f); }), {"n is positive", "argument 2 is -3"}));
  CHECK(says(error_of([&] { launch(stream, positive, y, 5000000000ll, 1.0f); }), {"5000000000", "range"}));
  CHECK(says(error_of([&] { launch(stream, positive, y, 4000000000u, 1.0f); }), {"4000000000", "range"}));
  CHECK(says(error_of([&] { launch(stream, positive, y, 1, 1e300); }), {"range"}));
  CHECK(error_of([&] { launch(stream, positive, y, 1, inf); }) == "(no error)");
}

TEST_CASE("a user's memory is checked", "[api]") {
  std::vector<float> memory(16);
  CHECK(says(error_of([] { Tensor<f32, 1>(Device::cpu(), nullptr, {4}, {1}); }), {"no memory"}));
  CHECK(error_of([] { Tensor<f32, 1>(Device::cpu(), nullptr, {0}, {1}); }) == "(no error)");
  CHECK(says(error_of([&] {
               Tensor<f32, 1>(Device::cpu(), reinterpret_cast<float*>(reinterpret_cast<char*>(memory.data()) + 1), {4},
                              {1});
             }),
             {"aligned"}));
  const auto a = filled(4, 4, 1);
  const Tensor<f32, 2> sliding(Device::cpu(), memory.data(), {4, 4}, {2, 1});
  CHECK(says(error_of([&] { launch(stream, add_kernel(), a, a, sliding); }), {"elements share memory"}));
  CHECK(error_of([&] { launch(stream, add_kernel(), sliding, sliding, a); }) == "(no error)");
  const Tensor<f32, 2> backwards(Device::cpu(), memory.data() + 15, {4, 4}, {-4, -1});
  CHECK(error_of([&] { launch(stream, add_kernel(), a, a, backwards); }) == "(no error)");
}

TEST_CASE("an op returns the same bits in a tile, as a scalar and folded", "[api]") {
  const auto both = kernel("both", [](In<f32, 1> x, Out<f32, 1> tile, Out<f32, 1> scalar, Scalar<f32> s) {
    Tile t = load(x, {0}, {64});
    store(tile, {0}, exp(t) + tanh(t) * log(t) + exp2(t));
    Tile u = exp(s) + tanh(s) * log(s) + exp2(s);
    store(scalar, {0}, full<f32>({1}, 0) + u);
  });
  Tensor<f32, 1> x(Device::cpu(), {64}), tile(Device::cpu(), {64}), scalar(Device::cpu(), {1});
  std::vector<float> values(64);
  int different = 0, folded_different = 0;
  for (int round = 0; round < 20; ++round) {
    for (std::size_t i = 0; i < 64; ++i)
      values[i] = 0.01f + 0.0137f * static_cast<float>(i + 64 * static_cast<std::size_t>(round));
    x.copy_from(values);
    for (std::size_t i = 0; i < 64; i += 7) {
      launch(stream, both, x, tile, scalar, values[i]);
      different += tile.to_vector()[i] != scalar.to_vector()[0];
      const auto folded = kernel("folded", [&](Out<f32, 1> y) {
        Tile c = full<f32>({1}, values[i]);
        store(y, {0}, exp(c) + tanh(c) * log(c) + exp2(c));
      });
      launch(stream, folded, scalar);
      folded_different += tile.to_vector()[i] != scalar.to_vector()[0];
    }
  }
  CHECK(different == 0);
  CHECK(folded_different == 0);
}

TEST_CASE("failing to allocate memory is an error with the size", "[jit]") {
  CHECK(says(error_of([] { Device::cpu().allocate(std::size_t(1) << 60); }), {"memory", "MB"}));
}

TEST_CASE("options are parsed from their table", "[jit]") {
  const auto read = [](std::string_view variable, std::string value) {
    return read_options([=](std::string_view name) { return name == variable ? value : std::string(); });
  };
  const Options defaults = read("", "");
  CHECK(defaults.device == "auto");
  CHECK(defaults.threads == 0);
  CHECK(defaults.dump.empty());
  CHECK(read("TESSERA_THREADS", "3").threads == 3);
  CHECK(read("TESSERA_DUMP", "graph").dump == std::vector<std::string>{"graph"});
  CHECK(says(error_of([&] { read("TESSERA_DUMP", "graph,everything"); }), {"TESSERA_DUMP=everything", "graph"}));
  for (const char* bad : {"-1", "two", "1.5", "99999999"})
    CHECK(says(error_of([&] { read("TESSERA_THREADS", bad); }), {"TESSERA_THREADS", bad}));
  CHECK(says(error_of([&] { read("TESSERA_LOG", "loud"); }), {"TESSERA_LOG=loud", "warn"}));
  CHECK(read("TESSERA_DUMP", "cuda,sass").dump == std::vector<std::string>{"cuda", "sass"});
  CHECK(defaults.dump_filter == "*");
  CHECK(defaults.dump_arch == Arch::parse("sm_90a"));
  CHECK(read("TESSERA_DUMP_ARCH", "sm_80").dump_arch == Arch::parse("sm_80"));
  CHECK(says(error_of([&] { read("TESSERA_DUMP_ARCH", "hopper"); }), {"TESSERA_DUMP_ARCH=hopper", "sm_80"}));
  for (const char* bad : {"sm_75", "sm_80a"})
    CHECK(says(error_of([&] { read("TESSERA_DUMP_ARCH", bad); }),
               {"TESSERA_DUMP_ARCH=" + std::string(bad), "choose from sm_80, sm_86"}));
  CHECK((!defaults.debug && !read("TESSERA_DEBUG", "0").debug && read("TESSERA_DEBUG", "1").debug));
  CHECK((defaults.tensor_cores == "wgmma" && read("TESSERA_TENSOR_CORES", "mma_sync").tensor_cores == "mma_sync"));
  CHECK(says(error_of([&] { read("TESSERA_TIER", "wgmma"); }), {"TESSERA_TIER is called TESSERA_TENSOR_CORES now"}));
  CHECK(says(error_of([&] { read("TESSERA_SHARING", "none"); }), {"TESSERA_SHARING is called TESSERA_SPLIT_K now"}));
  CHECK(says(error_of([&] { read("TESSERA_OVERLAP", "0"); }), {"TESSERA_OVERLAP is called TESSERA_PDL now"}));
  CHECK(says(error_of([&] { read("TESSERA_SPLIT_K", "grid"); }), {"TESSERA_SPLIT_K=grid: the value is called stream_k now"}));
  CHECK(read("TESSERA_SPLIT_K", "stream_k").split_k == "stream_k");
  CHECK(says(error_of([&] { read("TESSERA_TENSOR_CORES", "wmma"); }), {"TESSERA_TENSOR_CORES=wmma", "mma_sync"}));
  for (const char* bad : {"2", "yes", "01"})
    CHECK(says(error_of([&] { read("TESSERA_ALWAYS_COMPILE", bad); }), {"TESSERA_ALWAYS_COMPILE", bad, "0 or 1"}));
  for (const OptionInfo& option : option_table()) {
    CHECK(option.variable.substr(0, 8) == "TESSERA_");
    CHECK(!option.meaning.empty());
  }
}

TEST_CASE("the page of environment variables matches the table of options", "[jit]") {
  const std::string page = read_text(std::filesystem::path(TESSERA_SOURCE_DIR) / "docs/environment.md");
  for (const OptionInfo& option : option_table()) {
    const std::string row = "| `" + std::string(option.variable) + "` | " +
                            (option.fallback.empty() ? "" : "`" + std::string(option.fallback) + "` ") + "| " +
                            std::string(option.meaning) + " |";
    INFO(row);
    CHECK(page.find(row) != std::string::npos);
  }
}

}  // namespace test_launch
