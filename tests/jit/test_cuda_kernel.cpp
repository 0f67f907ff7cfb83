// Raw CUDA kernels: their launches, invalid ones, and the compiler's messages.
#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

#include "codegen/target/variant.hpp"
#include "fake_cuda/machine.hpp"
#include "jit/cuda/cuda_backend.hpp"
#include "support/catch.hpp"
#include "support/compiling.hpp"
#include "support/devices.hpp"
#include "support/support.hpp"
#include "tessera/api/sequence.hpp"
#include "tessera/tessera.hpp"

namespace test_cuda_kernel {

using namespace tessera::internal;

namespace {

constexpr const char* axpy_text = R"cuda(
extern "C" __global__ void axpy(const float* x, float* y, float a, int n, int first) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= first && i < n) y[i] += a * x[i];
}
)cuda";

const auto axpy_launch = [](In<f32, 1> x, InOut<f32, 1> y, Scalar<f32>, Scalar<i32> first) {
  require(x.extent(0) == y.extent(0), "as many of x as of y");
  return CudaLaunch{.blocks = {cdiv(x.extent(0), 256)}, .threads = {256}, .numbers = {x.extent(0), first + 1}};
};

/// Also passes a Scalar to the text.
constexpr const char* whole_text = R"cuda(
extern "C" __global__ void axpy(const float* x, float* y, float a, int first, int n, int next) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= first && i < n) y[i] += a * x[i] + next;
}
)cuda";
const auto on_host = [](const float* x, float* y, float a, int first, int n, int next) {
  for (int i = first; i < n; ++i) y[i] += a * x[i] + static_cast<float>(next);
};

std::vector<float> counted(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

/// A fake GPU whose compiler accepts every text.
Device fake_device() {
  new_fake_cuda();
  CudaSettings settings;
  settings.compile = [](const Graph& graph, const Variant& variant, Arch arch) {
    CacheEntry entry;
    for (const char c : std::string("image") + '\0') entry.code.image.push_back(static_cast<std::byte>(c));
    return CompiledKernel{generate(graph, variant, arch), std::make_shared<const CacheEntry>(std::move(entry))};
  };
  return Device(CudaDevices(fake_cuda_places(), settings).first());
}

template <class T>
T read(const std::vector<std::byte>& bytes, std::size_t offset) {
  T value{};
  REQUIRE(offset + sizeof value <= bytes.size());
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace

TEST_CASE("a kernel in CUDA C++ is launched as it says", "[jit]") {
  const Device device = fake_device();
  const auto k = cuda_kernel("axpy", whole_text, axpy_launch);
  Tensor<f32, 1> x(device, {1000}), y(device, {1000});
  launch(device.stream(), k, x, y, 2.5f, 7);
  const auto square = cuda_kernel("square", "text", [](In<f16, 3> x, Out<f16, 3>) {
    return CudaLaunch{
        .blocks = {x.extent(2), x.extent(1), x.extent(0)}, .threads = {8, 4, 2}, .shared_bytes = 1024 * x.extent(0)};
  });
  Tensor<f16, 3> p(device, {60, 3, 4}), q(device, {60, 3, 4});
  launch(device.stream(), square, p, q);
  REQUIRE(fake_cuda_library().symbol<FakeCuda* (*)()>("fake_cuda")()->launches.size() == 2);
  const FakeCuda& fake = *fake_cuda_library().symbol<FakeCuda* (*)()>("fake_cuda")();
  const FakeCuda::Launch& first = fake.launches[0];
  CHECK((first.function == "axpy" && first.grid == 4 && first.block == 256 && first.shared_bytes == 0));
  CHECK(first.further == std::vector<unsigned>{1, 1, 1, 1});
  CHECK(read<const void*>(first.parameters, 0) == x.data());
  CHECK(read<const void*>(first.parameters, 8) == y.data());
  CHECK(read<float>(first.parameters, 16) == 2.5f);
  CHECK(read<int>(first.parameters, 20) == 7);
  CHECK(read<int>(first.parameters, 24) == 1000);
  CHECK(read<int>(first.parameters, 28) == 8);
  const FakeCuda::Launch& second = fake.launches[1];
  CHECK((second.grid == 4 && second.block == 8 && second.shared_bytes == 60 * 1024));
  CHECK(second.further == std::vector<unsigned>{3, 60, 4, 2});
  CHECK(fake.count("cuFuncSetAttribute") == 1);  // beyond the default limit per CTA

  // Like any other kernel it can be part of a sequence, and an empty grid runs nothing.
  Sequence sequence(device);
  sequence.add(k, x, y, 1, 0);
  sequence.run(device.stream());
  CHECK(fake.launches.size() == 3);
  Tensor<f32, 1> none(device, {0}), nothing(device, {0});
  launch(device.stream(), k, none, nothing, 1, 0);
  CHECK(fake.launches.size() == 3);
}

TEST_CASE("a kernel in CUDA C++ runs on the CPU if its author says how", "[jit]") {
  const Device device = Device::cpu();
  Tensor<f32, 1> x(device, {600}), y(device, {600});
  x.copy_from(counted(600)), y.copy_from(std::vector<float>(600, 1));
  const auto k = cuda_kernel("axpy", whole_text, axpy_launch, on_host);
  launch(device.stream(), k, x, y, 2, 10);
  const std::vector<float> got = y.to_vector();
  CHECK((got[9] == 1 && got[10] == 1 + 2 * 11 + 11 && got[599] == 1 + 2 * 600 + 11));
  Sequence sequence(device);
  sequence.add(k, x, y, 0, 0);
  const CapturedGraph recorded = sequence.record(device.stream());
  device.stream().launch(recorded);
  CHECK(y.to_vector()[0] == 2);
  const auto without = cuda_kernel("axpy", whole_text, axpy_launch);
  CHECK(says(error_of([&] { launch(device.stream(), without, x, y, 2, 10); }),
             {"kernel 'axpy', ", "test_cuda_kernel.cpp:", "it is CUDA C++, which runs on a GPU",
              "give cuda_kernel a function"}));
}

#ifdef TESSERA_HAS_EMULATOR

TEST_CASE("a kernel in CUDA C++ runs in the emulator if its author says how", "[emulator]") {
  const Device device = emulated_device();
  Tensor<f32, 1> x(device, {600}), y(device, {600});
  x.copy_from(counted(600)), y.copy_from(std::vector<float>(600, 1));
  const auto k = cuda_kernel("axpy", whole_text, axpy_launch, on_host);
  launch(device.stream(), k, x, y, 2, 10);
  std::vector<float> expected(600, 1);
  for (std::size_t i = 10; i < 600; ++i) expected[i] += 2 * static_cast<float>(i + 1) + 11;
  CHECK(y.to_vector() == expected);
  // Between tile kernels, whose text the emulator executes: in a sequence, and captured.
  const auto halve = kernel("halve", [](InOut<f32, 1> v) {
    Index i = blocks(cdiv(v.extent(0), 256));
    Tile before = load(v, {i}, {256});
    store(v, {i}, before * 0.5f);
  });
  Sequence sequence(device);
  sequence.add(halve, y);
  sequence.add(k, x, y, 4, 0);
  sequence.add(halve, y);
  const auto once = [&] {
    for (std::size_t i = 0; i < 600; ++i) expected[i] = (expected[i] / 2 + 4 * static_cast<float>(i + 1) + 1) / 2;
  };
  sequence.run(device.stream());
  once();
  CHECK(y.to_vector() == expected);
  const CapturedGraph recorded = sequence.record(device.stream());
  CHECK(y.to_vector() == expected);
  device.stream().launch(recorded);
  once();
  CHECK(y.to_vector() == expected);
  // Requirements of a launch are checked there too, and a kernel without a host function is rejected.
  const Tensor<f32, 1> shorter(device, {32});
  CHECK(says(error_of([&] { launch(device.stream(), k, x, shorter, 1, 0); }),
             {"launch of kernel 'axpy' refused: it requires: ", "as many of x as of y"}));
  const auto without = cuda_kernel("axpy", whole_text, axpy_launch);
  CHECK(says(error_of([&] { launch(device.stream(), without, x, y, 2, 10); }),
             {"kernel 'axpy', ", "test_cuda_kernel.cpp:", "it is CUDA C++, which runs on a GPU",
              "give cuda_kernel a function"}));
  CHECK(y.to_vector() == expected);
}

#endif

TEST_CASE("launches of a kernel in CUDA C++ are checked", "[jit]") {
  const Device device = Device::cpu();
  const auto k = cuda_kernel("axpy", whole_text, axpy_launch, on_host);
  Tensor<f32, 1> x(device, {64}), y(device, {64}), z(device, {32});
  Tensor<f32, 2> wide(device, {64, 2});
  const auto refused = [&](const auto& a, const auto& b) {
    return error_of([&] { launch(device.stream(), k, a, b, 1, 0); });
  };
  CHECK(says(refused(x, z), {"launch of kernel 'axpy' refused: it requires: ", "as many of x as of y"}));
  CHECK(says(refused(x, x), {"argument 2 is written and overlaps argument 1"}));
  const Tensor<f32, 1> strided(device, wide.data(), {64}, {2});
  CHECK(says(refused(strided, y), {"argument 1 is not dense", "pass a dense tensor"}));
  const auto geometry = [&](const std::function<CudaLaunch(Index)>& launches) {
    const auto one = cuda_kernel(
        "one", "text", [=](In<f32, 1> x, Out<f32, 1>) { return launches(x.extent(0)); }, [](const float*, float*) {});
    return error_of([&] { launch(device.stream(), one, x, y); });
  };
  CHECK(geometry([](Index n) { return CudaLaunch{.blocks = {n, 1}, .threads = {n, 16}}; }) == "(no error)");
  CHECK(says(geometry([](Index n) {
               return CudaLaunch{.blocks = {n}, .threads = {n, 32}};
             }),
             {"launch of kernel 'one' refused: a CTA of [64,32,1] threads; it has 1 to 1024"}));
  CHECK(says(geometry([](Index n) { return CudaLaunch{.blocks = {n}, .threads = {n - 64}}; }),
             {"a CTA of [0,1,1] threads"}));
  CHECK(says(geometry([](Index n) {
               return CudaLaunch{.blocks = {n, n * 2000}, .threads = {n}};
             }),
             {"128000 CTAs along axis 1; CUDA allows at most 65535 along y and z"}));
  CHECK(says(geometry([](Index n) { return CudaLaunch{.blocks = {n - 65}, .threads = {n}}; }),
             {"axis 0 of the grid has the extent -1"}));
  CHECK(says(geometry([](Index n) { return CudaLaunch{.blocks = {n}, .threads = {n}, .shared_bytes = n - 65}; }),
             {"-1 bytes of shared memory"}));
}

TEST_CASE("an invalid kernel in CUDA C++ is rejected when it is made", "[language]") {
  const auto made = [](const auto& launch) { return error_of([&] { cuda_kernel("one", "text", launch); }); };
  const auto with_kernel = [](const std::string& text) {
    return says(text, {"kernel 'one', ", "test_cuda_kernel.cpp:"});
  };
  const std::string text = made([](In<f32, 1> x, Out<f32, 1> y) {
    store(y, {0}, load(x, {0}, {4}));
    return CudaLaunch{.blocks = {1}, .threads = {32}};
  });
  CHECK(with_kernel(text));
  CHECK(says(text, {"cuda_kernel: 'store' is called in the function that describes the launch"}));
  CHECK(says(made([](Out<f32, 1>) { return CudaLaunch{.blocks = {}, .threads = {32}}; }),
             {"0 axes of blocks; CUDA has 1 to 3"}));
  CHECK(says(made([](Out<f32, 1>) {
               return CudaLaunch{.blocks = {1}, .threads = {1, 1, 1, 1}};
             }),
             {"4 axes of threads"}));
  CHECK(says(
      made([](In<i32, 1> x, Out<f32, 1>) { return CudaLaunch{.blocks = {item(load(x, {0}, {1}))}, .threads = {32}}; }),
      {"a launch is computed from extents and scalars; this value depends on a tile"}));
  CHECK(says(made([](Out<f32, 1>) {
               return CudaLaunch{.blocks = {1}, .threads = {1}, .numbers = std::vector<GridExtent>(10, GridExtent(1))};
             }),
             {"10 numbers; a launch computes 9 at most"}));
  CHECK(says(error_of([] {
               cuda_kernel(
                   "one", "text", [](Out<f32, 1>) { return CudaLaunch{.blocks = {1}, .threads = {32}}; },
                   [](float*, int) {});
             }),
             {"the host function takes 1 numbers after the kernel's parameters, and the launch has 0"}));
}

TEST_CASE("a kernel in CUDA C++ has a graph and a text, and no plan", "[graph]") {
  const auto k = cuda_kernel("axpy", whole_text, axpy_launch);
  const std::string graph = to_string(k.graph());
  CHECK(graph.find("kernel axpy(In<f32, 1>, InOut<f32, 1>, Scalar<f32>, Scalar<i32>)") == 0);
  CHECK(graph.find("  cuda \"\\x0aextern \\\"C\\\" __global__ void axpy(") != graph.npos);
  const std::string text = cuda_source(k, Arch::sm_80);
  CHECK(text.find(whole_text) != text.npos);
  CHECK(text.find("#line ") != text.npos);
  CHECK(plan_text(k, Arch::sm_80).find("kernel axpy in CUDA C++, by hand\nparameter 1: In<f32, 1>\n") !=
        std::string::npos);
  CHECK(says(error_of([&] { kernel_texts(k.graph(), Arch::sm_80, {"plan:lower"}); }), {"and has no plan"}));
}

TEST_CASE("stats of a kernel in CUDA C++ have the threads and the memory of its launch", "[nvrtc]") {
  if (!nvrtc_here()) return;
  const CudaSource text = R"(extern "C" __global__ void one(float* y) {
    extern __shared__ float dynamic[];
    __shared__ float fixed[8];
    fixed[threadIdx.x % 8] = dynamic[threadIdx.x] = 1;
    y[threadIdx.x] = fixed[0] + dynamic[1];
  })";
  const auto stats = [&](const auto& launch) {
    return kernel_texts(cuda_kernel("one", text, launch).executable().graph(), Arch::sm_80, {"stats"})[0];
  };
  const std::string constant = stats([](Out<f32, 1>) {
    return CudaLaunch{.blocks = {1}, .threads = {64, 2, 2}, .shared_bytes = 1024};
  });
  INFO(constant);
  CHECK(constant.find(": 256 threads, ") != constant.npos);
  CHECK(constant.find(" 1024 + 32 bytes of shared memory") != constant.npos);
  const std::string computed = stats([](Out<f32, 1> y) {
    return CudaLaunch{.blocks = {1}, .threads = {y.extent(0), 2}, .shared_bytes = y.extent(0) * 4};
  });
  INFO(computed);
  CHECK(computed.find(": as many threads as the launch says, ") != computed.npos);
  CHECK(computed.find(" the launch's + 32 bytes of shared memory") != computed.npos);
  const std::string none = stats([](Out<f32, 1>) { return CudaLaunch{.blocks = {1}, .threads = {32}}; });
  CHECK(none.find(": 32 threads, ") != none.npos);
  CHECK(none.find(" 0 + 32 bytes of shared memory") != none.npos);
}

TEST_CASE("the compilation statistics of a process are accumulated", "[nvrtc]") {
  if (!nvrtc_here()) return;
  // The first one includes kernels that earlier tests had compiled in another way.
  const Graph first = kernel("first", [](Out<f32, 1> y) { store(y, {0}, zeros<f32>({1})); }).executable().graph();
  compile_kernel(first, dense_variant(first), Arch::sm_80);
  const auto k = cuda_kernel("axpy", std::string(whole_text) + "__device__ int of_this_test_alone;\n", axpy_launch);
  const CompileTimes before = compile_times();
  compile_kernel(k.executable().graph(), Variant{}, Arch::sm_80);
  const CompileTimes once = compile_times();
  CHECK(once.compiled + once.cached == before.compiled + before.cached + 1);
  CHECK(once.milliseconds > before.milliseconds);
  CHECK(once.running == 0);
  compile_kernel(k.executable().graph(), Variant{}, Arch::sm_80);
  const CompileTimes twice = compile_times();
  CHECK(twice.compiled + twice.cached == once.compiled + once.cached);  // in memory
  CHECK(twice.milliseconds > once.milliseconds);
}

TEST_CASE("the compiler's messages for a kernel in CUDA C++ have its author's lines", "[nvrtc]") {
  if (!nvrtc_here()) return;
  const auto compiled = [](const auto& k, Arch arch) {
    return error_of([&] { compile_kernel(k.executable().graph(), Variant{}, arch); });
  };
  for (const char* arch : {"sm_80", "sm_90a", "sm_120"}) {
    INFO(arch);
    if (nvrtc_here()->target(Arch::parse(arch)).is_ptx) continue;
    CHECK(compiled(cuda_kernel("axpy", whole_text, axpy_launch), Arch::parse(arch)) == "(no error)");
  }
  const unsigned line = __LINE__ + 1;
  const CudaSource wrong = R"cuda(
    extern "C" __global__ void one(float* y) {
      y[0] = nothing;
    }
  )cuda";
  const auto launches = [](Out<f32, 1>) { return CudaLaunch{.blocks = {1}, .threads = {32}}; };
  const std::string text = compiled(cuda_kernel("one", wrong, launches), Arch::sm_80);
  INFO(text);
  CHECK(text.find("kernel 'one'") != text.npos);
  CHECK(text.find("test_cuda_kernel.cpp:" + std::to_string(line + 2) + ": error") != text.npos);
  CHECK(text.find("nothing") != text.npos);
  const std::string other = compiled(cuda_kernel("one", axpy_text, launches), Arch::sm_80);
  CHECK(says(other, {"kernel 'one': its text defines no extern \"C\" __global__ void one"}));
}

TEST_CASE("the function that runs a kernel in CUDA C++ on the host may launch others", "[api]") {
  static const auto twice = kernel("twice", [](In<f32, 1> x, Out<f32, 1> y) {
    Index i = blocks(cdiv(y.extent(0), 64));
    store(y, {i}, load(x, {i}, {64}) * 2);
  });
  const auto outer = cuda_kernel(
      "outer", "extern \"C\" __global__ void outer(const float* x, float* y, int n) {}",
      [](In<f32, 1> x, Out<f32, 1>) {
        return CudaLaunch{.blocks = {1}, .threads = {1}, .numbers = {x.extent(0)}};
      },
      [](const float* x, float* y, int n) {
        const Device cpu = Device::cpu();
        const Tensor<f32, 1> from(cpu, const_cast<float*>(x), {n}, {1}), to(cpu, y, {n}, {1});
        const Tensor<f32, 1> between(cpu, {n});
        launch(cpu.stream(), twice, from, between);
        launch(cpu.stream(), twice, between, to);
      });
  const Device cpu = Device::cpu();
  const Tensor<f32, 1> x(cpu, {300}), y(cpu, {300});
  x.fill(3);
  launch(cpu.stream(), outer, x, y);
  CHECK(y.to_vector() == std::vector<float>(300, 12));
  const CapturedGraph graph = cpu.stream().capture([&] { launch(cpu.stream(), outer, x, y); });
  y.fill(0);
  cpu.stream().launch(graph);
  CHECK(y.to_vector() == std::vector<float>(300, 12));
}

namespace {
auto kernel_at_an_odd_place() {
// clang-format off
#line 7 "a \"quoted\" folder\\with\nlines\\/odd \"file\"\\.cpp"
  return kernel("odd_place", [](In<f32, 1> x, Out<f32, 1> y) {
    Tile a = load(x, {0}, {64});
    check(a < 100.0f, "small");
    store(y, {0}, a * 2.0f);
  });
#line 334 "test_cuda_kernel.cpp"
  // clang-format on
}
}  // namespace

TEST_CASE("a source of any name compiles, and errors name it", "[cpu]") {
  const auto k = kernel_at_an_odd_place();
  const std::string text = cuda_source(k, Arch::sm_90a);
  CHECK(text.find(R"(#line 8 "a \"quoted\" folder\\with\012lines\\/odd \"file\"\\.cpp")") != text.npos);
  const Device& device = test_device();
  const Tensor<f32, 1> x(device, {64}), y(device, {64});
  x.fill(3);
  launch(device.stream(), k, x, y);
  CHECK(y.to_vector() == std::vector<float>(64, 6));
  x.fill(200);
  const std::string failed = error_of([&] {
    launch(device.stream(), k, x, y);
    device.synchronize();
  });
  CHECK(failed.find("odd \"file\"\\.cpp:9: check failed: small") != failed.npos);
  const auto by_hand = cuda_kernel(
      "by_hand", "extern \"C\" __global__ void by_hand(float* y) { y[threadIdx.x] = 1; }",
      [](Out<f32, 1>) { return CudaLaunch{.blocks = {1}, .threads = {64}}; },
      [](float* y) { std::fill_n(y, 64, 1.0f); }, Location{"b \"c\"\\", 4});
  launch(device.stream(), by_hand, y);
  if (test_device_name() != "compiled") CHECK(y.to_vector() == std::vector<float>(64, 1));
}

}  // namespace test_cuda_kernel
