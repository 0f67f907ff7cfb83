// Generated code as compilers see it: the kernels of model and lessons through NVRTC for every architecture, and as
// plain C++. Its results are tested by running it: see devices.hpp.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>

#include "codegen/kernel_source.hpp"
#include "codegen/passes.hpp"
#include "common/kernels.hpp"
#include "jit/compile/nvrtc.hpp"
#include "support/catch.hpp"
#include "support/compiled_device.hpp"
#include "support/compiling.hpp"
#include "support/patterns.hpp"
#include "support/support.hpp"
#include "support/variants.hpp"
#include "tessera/dsl/control.hpp"
#include "tessera/tessera.hpp"
#ifdef TESSERA_HAS_EMULATOR
#include "emulator/emulator.hpp"
#include "emulator/prelude.hpp"
#endif

namespace test_generate {

using namespace tessera::internal;

namespace {

const Arch hopper = Arch::parse("sm_90a");

/// Checks that the kernels of the table compile for tensors with `variant`, or else with each kernel's own variant, for
/// each architecture that has the kernel; for other tensors, kernels that only one GPU has are skipped except
/// `of_name`.
void check_table(const char* tensors, Variant (*variant)(const Graph&), const std::vector<Arch>& archs,
                 std::string_view of_name = {}) {
  struct Job {
    const NamedKernel* kernel;
    Arch arch;
    std::string wrong = {};
  };
  std::vector<Job> jobs;
  std::size_t number = 0;
  for (const NamedKernel& kernel : named_kernels())
    for (const Arch arch : archs)
      if (kernel.is_of(arch) && kernel.name.find(of_name) != std::string::npos &&
          (!variant || !kernel.only || !of_name.empty()) && in_share(number++))
        jobs.push_back({&kernel, arch});
  in_parallel(jobs.size(), [&](std::size_t i) {
    Job& job = jobs[i];
    try {
      const Graph graph = job.kernel->graph();
      const Variant of = variant ? variant(graph) : job.kernel->variant(graph);
      job.wrong = compile_check(generate(graph, of, job.arch), job.arch);
    } catch (const std::exception& error) {
      job.wrong = error.what();
    }
  });
  for (const Job& job : jobs) {
    INFO(job.kernel->name << " for " << job.arch.name() << ", " << tensors << " tensors");
    CHECK(job.wrong == "");
  }
}

/// The generated text of this kernel, after the prelude.
std::string kernel_part(const KernelSource& source) {
  const std::size_t at = source.text.find(kernel_mark);
  REQUIRE(at != source.text.npos);
  return source.text.substr(at + kernel_mark.size());
}

/// The CUDA words in a text that name hardware features and belong in the prelude.
std::vector<std::string> hardware_words(const std::string& text) {
  std::vector<std::string> words;
  for (const Match& match : matches(text, R"(\b(asm|threadIdx|blockIdx|blockDim|gridDim|atomicAdd|__shared__|)"
                                          R"(__shfl\w*|__syncthreads\w*|__syncwarp|__ballot\w*|__cvta\w*)\b)"))
    words.push_back(match[0]);
  return words;
}

}  // namespace

// scripts/kernels does so for all_archs().
TEST_CASE("every kernel compiles for every architecture that is tested", "[generate]") {
  if (nvrtc_here()) check_table("its own", nullptr, test_archs());
}

TEST_CASE("the table's matmuls that only one GPU has are warp-specialized", "[generate]") {
  for (const NamedKernel& kernel : named_kernels()) {
    if (!kernel.only) continue;
    INFO(kernel.name);
    const Graph graph = kernel.graph();
    const KernelSource source = generate(graph, kernel.variant(graph), *kernel.only);
    CHECK(source.plan.find("role producer") != std::string::npos);
    CHECK((source.split_k == SplitK::cluster) == (kernel.name.find("clusters") != std::string::npos));
  }
}

TEST_CASE("every kernel compiles for awkward tensors", "[generate]") {
  if (!nvrtc_here()) return;
  check_table("ragged", ragged_variant, {hopper});
  check_table("strided", strided_variant, {hopper});
  // 64-bit offsets, with operands that threads copy.
  for (const char* tiles : {"-64x64x128", "-128x64x64"}) check_table("strided", strided_variant, {hopper}, tiles);
}

// A producer has few registers, and attention leaves none, so that stamps may cost spills.
TEST_CASE("every kernel compiles with stamps, and has none without", "[generate]") {
  struct Job {
    const NamedKernel* kernel;
    Arch arch;
    std::string wrong = {};
  };
  std::vector<Job> jobs;
  for (const NamedKernel& kernel : named_kernels())
    for (const Arch arch : test_archs())
      if (kernel.is_of(arch)) jobs.push_back({&kernel, arch});
  in_parallel(jobs.size(), [&](std::size_t i) {
    Job& job = jobs[i];
    try {
      const Graph graph = job.kernel->graph();
      Variant variant = job.kernel->variant(graph);
      const KernelSource plain = generate(graph, variant, job.arch);
      variant.stamped = true;
      const KernelSource stamped = generate(graph, variant, job.arch);
      if (!plain.stamps.rows.empty() || plain.text.find("stamp") != std::string::npos) job.wrong = "plain, but stamped";
      if (stamped.stamps.rows.empty() || stamped.stamps.activities.empty()) job.wrong = "not stamped";
      if (job.wrong.empty() && nvrtc_here() && in_share(i)) job.wrong = compile_check(stamped, job.arch, true);
    } catch (const std::exception& error) {
      job.wrong = error.what();
    }
  });
  for (const Job& job : jobs) {
    INFO(job.kernel->name << " for " << job.arch.name());
    CHECK(job.wrong == "");
  }
}

TEST_CASE("compilations with warnings or spills are detected", "[generate]") {
  if (!nvrtc_here()) return;
  const auto check = [](const std::string& body, bool may_spill = false) {
    return compile_check({.author = "bad",
                          .name = "bad",
                          .text = "extern \"C\" __global__ void bad(int* x) {" + body + "}",
                          .plan = "",
                          .parameters = {}},
                         hopper, may_spill);
  };
  CHECK(check("*x = 1;") == "");
  CHECK(check("*x = y;").find("identifier \"y\" is undefined") != std::string::npos);
  CHECK(check("int y;").find("warns: ") != std::string::npos);
  const std::string on_stack = "int y[64]; for (int i = 0; i < 64; ++i) y[x[i] & 63] = i; *x = y[*x & 63];";
  CHECK(check(on_stack).find(" bytes of stack") != std::string::npos);
  CHECK(check(on_stack, true) == "");
}

TEST_CASE("the same graph gives the same bytes", "[generate]") {
  for (const NamedKernel& kernel : named_kernels()) {
    INFO(kernel.name);
    const Graph graph = kernel.graph(), again = kernel.graph();
    const Variant variant = kernel.variant(graph);
    const std::string text = generate(graph, variant, hopper).text;
    CHECK(generate(graph, variant, hopper).text == text);
    CHECK(generate(again, variant, hopper).text == text);
  }
}

TEST_CASE("a kernel further down its file differs only in line numbers", "[generate]") {
  const Graph up = run_passes(trace_kernel("twin", [](In<f32, 1> x, Out<f32, 1> y) {
    Index i = blocks(cdiv(y.extent(0), 256));
    Tile t = load(x, {i}, {256});
    store(y, {i}, exp(t) + 1);
  }));
  const Graph down = run_passes(trace_kernel("twin", [](In<f32, 1> x, Out<f32, 1> y) {
    Index i = blocks(cdiv(y.extent(0), 256));
    Tile t = load(x, {i}, {256});
    store(y, {i}, exp(t) + 1);
  }));
  const std::string a = generate(up, dense_variant(up), hopper).text,
                    b = generate(down, dense_variant(down), hopper).text;
  const auto without_places = [](const std::string& text) {
    return replaced(text, R"((#line |// test_generate\.cpp:)[0-9]+)", "$1");
  };
  CHECK(a != b);
  CHECK(without_places(a) == without_places(b));
}

#ifdef TESSERA_HAS_EMULATOR
TEST_CASE("a debug build of a kernel checks itself", "[generate]") {
  // For each: a kernel of x and y, f32 or bf16, with those extents; the index in x where a NaN is stored, and one where
  // it is not.
  struct Case {
    const char* name;
    Graph graph;
    ElementType type;
    std::vector<std::int64_t> extents, grid = {};
    std::int64_t stored, not_stored;
    const char* text;  ///< part of the kernel, which shows that it stores in this way
    Arch arch = hopper;
  };
  const auto matmul = [](In<bf16, 2> x, Out<bf16, 2> y) {
    auto [i, j] = blocks(cdiv(y.extent(0), 128), cdiv(y.extent(1), 128));
    Var sums = zeros<f32>({128, 128});
    for (Index k : range(cdiv(x.extent(1), 64)))
      sums = mma(load(x, {i, k}, {128, 64}), transpose(load(x, {j, k}, {128, 64})), sums);
    store(y, {i, j}, cast<bf16>(sums));
  };
  const auto here = Location::current();
  using X = In<f32, 1>;
  using Y = InOut<f32, 1>;
  const auto rows = [] { return iota({64}, 0); };
  Case cases[] =
      {
          {"vectors",
           trace_kernel(
               "vectors", [](X x, Out<f32, 1> y) { store(y, {0}, sqrt(load(x, {0}, {64}))); }, here),
           ElementType::f32,
           {64},
           {},
           7,
           -1,
           "store_vector"},
          {"elements beyond the tensor",
           trace_kernel(
               "beyond",
               [](X x, Out<f32, 1> y) {
    Tile a = load(x, {0}, {64}, -1);  // the square roots are NaN
    store(y, {0}, sqrt(a));
               },
               here),
           ElementType::f32,
           {63},
           {},
           62,
           -1,
           "check_number("},
          {"vectors beyond the tensor",
           trace_kernel(
               "short",
               [](X x, Out<f32, 1> y) {
    Tile a = load(x, {0}, {1024}, -1);
    store(y, {0}, sqrt(a));
               },
               here),
           ElementType::f32,
           {1000},
           {},
           999,
           -1,
           "store_vector"},
       {"rows",
        trace_kernel(
            "rows",
            [&](X x, Out<f32, 1> y) {
    Tile at = where(rows() < 32, rows(), -1);
    scatter(y, at, load(x, {0}, {64}));
            },
            here),
        ElementType::f32,
        {64},
        {},
        31,
        32,
        "scatter_element"},
      {"elements",
       trace_kernel(
           "elements",
           [&](X x, Out<f32, 1> y) {
    Tile at = where(rows() < 32, rows() * 2, 64);
    scatter(y, {at}, load(x, {0}, {64}));
           },
           here),
       ElementType::f32,
       {64},
       {},
       31,
       32,
       "scatter_element"},
      {"sums in memory",
       trace_kernel(
           "sums", [](X x, Y y) { atomic_add(y, {0}, load(x, {0}, {64})); }, here),
       ElementType::f32,
       {64},
       {},
       63,
       -1,
       "atomic_add"},
      {"the larger in memory",
       trace_kernel(
           "larger", [](X x, Y y) { atomic_max(y, {0}, load(x, {0}, {64})); }, here),
       ElementType::f32,
       {64},
       {},
       -1,
       5,
       "atomic_max"},
      {"a warp-specialized matmul",
       trace_kernel("product", matmul, here),
       ElementType::bf16,
       {128, 128},
       {1, 1},
       5 * 128 + 3,
       -1,
       "wgmma_"},
      {"a product by mma.sync",
       trace_kernel("product", matmul, here),
       ElementType::bf16,
       {128, 128},
       {1, 1},
       5 * 128 + 3,
       -1,
       "mma_bf16(",
       Arch::parse("sm_80")},
      };
  std::vector<KernelSource> sources;
  std::vector<std::vector<std::uint16_t>> memory;
  const auto argument = [](const Case& of, void* data) {
    std::vector<std::int64_t> strides(of.extents.size(), 1);
    for (std::size_t i = strides.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * of.extents[i + 1];
    Argument result;
    result.data = data;
    std::ranges::copy(of.extents, result.extent.begin());
    std::ranges::copy(strides, result.stride.begin());
    return result;
  };
  std::vector<double> x(128 * 128), y(128 * 128);  // enough for any type
  for (Case& of : cases) {
    of.graph = run_passes(of.graph);
    const Argument arguments[] = {argument(of, x.data()), argument(of, y.data())};
    sources.push_back(generate(of.graph, classify(of.graph, arguments), of.arch, {.debug = true}));
    INFO(of.name << "\n" << sources.back().text);
    CHECK(sources.back().text.find(of.text) != std::string::npos);
    CHECK(sources.back().text.find("check_offset(") != std::string::npos);
  }
  const Emulator emulator = Emulator::compile(sources);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Case& of = cases[i];
    INFO(of.name);
    const auto run = [&](std::int64_t nan_at) {
      if (of.type == ElementType::bf16) {
        std::fill_n(reinterpret_cast<std::uint16_t*>(x.data()), x.size(), std::uint16_t{0x3f80});
        if (nan_at >= 0) reinterpret_cast<std::uint16_t*>(x.data())[nan_at] = 0x7fc0;
      } else {
        std::fill_n(reinterpret_cast<float*>(x.data()), x.size(), 2.0f);
        if (nan_at >= 0) reinterpret_cast<float*>(x.data())[nan_at] = std::numeric_limits<float>::quiet_NaN();
      }
      std::ranges::fill(y, 0.0);
      const Argument arguments[] = {argument(of, x.data()), argument(of, y.data())};
      return emulator.run(i, of.graph, arguments, of.grid);
    };
    CHECK(run(-1).text() == "");
    if (of.not_stored >= 0) CHECK(run(of.not_stored).text() == "");
    if (of.stored < 0) continue;
    const Report report = run(of.stored);
    REQUIRE(!report.clean());
    CHECK(report.faults[0].kind == Fault::Kind::failed_check);
    CHECK(report.faults[0].text.find("NaN is stored") != std::string::npos);
  }
}
#endif

TEST_CASE("long functions that would be copied very often are called instead", "[generate]") {
  const auto chain = [](auto type, int length, const auto& function) {
    using T = decltype(type);
    return cuda_source(kernel("chain",
                              [&](In<T, 2> x, Out<T, 2> y) {
      Var a = load(x, {0, 0}, {64, 128});
      for (int i = 0; i < length; ++i) a = function(Tile(a)) * 1.1;
      store(y, {0, 0}, a);
                              }),
                       hopper);
  };
  const auto count = [](const std::string& text, const std::string& part) {
    int found = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++found;
    return found;
  };
  const auto check = [&](auto type, const std::string& name, const auto& function) {
    INFO(name << (sizeof(type) == 4 ? " of f32" : " of f64"));
    const std::string few = chain(type, 1, function), many = chain(type, 40, function);
    CHECK(count(few, "called_") == 0);
    CHECK(count(many, "called_" + name + "(") == 41);  // the function, and each use
    CHECK(count(many, "__device__ __attribute__((noinline)) ") == 1);
    CHECK(count(many, "// long functions are called") == 1);
  };
  const auto each = [&](auto type) {
    check(type, "sin", [](const auto& a) { return sin(a); });
    check(type, "cos", [](const auto& a) { return cos(a); });
    check(type, "tan", [](const auto& a) { return tan(a); });
    check(type, "pow", [](const auto& a) { return pow(a, 1.5); });
    check(type, "atan2", [](const auto& a) { return atan2(a, 1.5); });
    check(type, "erfc", [](const auto& a) { return erfc(a); });
  };
  each(f32{});
  each(f64{});
  check(f64{}, "log1p", [](const auto& a) { return log1p(a); });
  // Short functions are never called.
  CHECK(count(chain(f32{}, 200, [](const auto& a) { return exp2(a); }), "called_") == 0);
  if (!nvrtc_here()) return;
  const auto k = kernel("chain", [](In<f32, 2> x, Out<f32, 2> y) {
    Var a = load(x, {0, 0}, {64, 128});
    for (int i = 0; i < 20; ++i) a = sin(a) * 1.1 + cos(a * 0.3);
    store(y, {0, 0}, a);
  });
  for (const Arch arch : test_archs())
    CHECK(compile_check(generate(k.executable().graph(), dense_variant(k.graph()), arch), arch) == "");
}

// prelude/device/select.cuh explains why.
TEST_CASE("no max or min of integers reaches ptxas", "[generate]") {
  if (!nvrtc_here()) return;
  const auto ptx_of = [](const auto& combine) {
    const auto k = kernel("chain", [&](In<i32, 2> a, In<i32, 2> b, Out<i32, 2> c) {
      const Tile x = load(a, {0, 0}, {16, 16}), y = load(b, {0, 0}, {16, 16});
      const Tile made = combine(x, y);
      store(c, {0, 0}, broadcast(made, {16, 16}));
    });
    const Graph graph = k.graph();
    const KernelSource source = generate(graph, dense_variant(graph), hopper);
    const CompiledCode code =
        Nvrtc::instance().compile({.source = source.text, .kernel = source.name, .arch = hopper, .to_ptx = true});
    return std::string(reinterpret_cast<const char*>(code.image.data()), code.image.size());
  };
  const auto clean = [&](const auto& combine) { return !finds(ptx_of(combine), R"((max|min)\.[su]32)"); };
  CHECK(clean([](const auto& x, const auto& y) { return maximum(maximum(y, -x), x); }));
  CHECK(clean([](const auto& x, const auto& y) { return minimum(minimum(y, x * -1), x); }));
  CHECK(clean([](const auto& x, const auto& y) { return maximum(abs(x), y); }));
  CHECK(clean([](const auto& x, const auto& y) { return where(y > -x, y, -x); }));
  CHECK(clean([](const auto& x, const auto& y) { return where(x < y, x, y); }));
  CHECK(clean([](const auto& x, const auto&) { return max(-x, 1); }));
  CHECK(clean([](const auto& x, const auto&) { return min(-x, Axis(0)); }));
  CHECK(clean([](const auto& x, const auto&) { return reshape(argmax(-x, 1), {16, 1}); }));
  CHECK(clean([](const auto& x, const auto& y) { return maximum(cast<i32>(cast<u8>(x)), y); }));
  CHECK(clean([](const auto& x, const auto& y) {
    return cast<i32>(maximum(maximum(cast<i64>(y), cast<i64>(-x)), cast<i64>(x)));
  }));
  CHECK(clean([](const auto& x, const auto& y) { return cast<i32>(where(y > -x, cast<i64>(y), cast<i64>(-x))); }));
}

TEST_CASE("a kernel's own text names no hardware", "[generate]") {
  CHECK(hardware_words("int my_asm = threadIdx.x;") == std::vector<std::string>{"threadIdx"});
  for (const NamedKernel& kernel : named_kernels()) {
    const Graph graph = kernel.graph();
    for (const auto& variant : {dense_variant, ragged_variant, strided_variant}) {
      const auto words = hardware_words(kernel_part(generate(graph, variant(graph), hopper)));
      INFO(kernel.name << ": " << fmt::format("{}", fmt::join(words, " ")));
      CHECK(words.empty());
    }
  }
}

#ifdef TESSERA_HAS_EMULATOR
TEST_CASE("a kernel's own text is plain C++", "[generate]") {
  const auto parse_errors = [](const std::string& compiler, const std::string& kernels) {
    const TempDir folder;
    write_text(folder / "kernels.cpp", "#include \"text.hpp\"\n" + emulator::emulated_prelude() + kernels);
    const std::string command =
        fmt::format("cd '{}' && {} -std=c++20 -fsyntax-only -w -I {}/tests/emulator kernels.cpp >log 2>&1",
                    folder.path().string(), compiler, TESSERA_SOURCE_DIR);
    return std::system(command.c_str()) == 0 ? "" : read_text(folder / "log").substr(0, 4000);
  };
  std::string kernels;
  for (const NamedKernel& kernel : named_kernels()) {
    const Graph graph = kernel.graph();
    std::size_t number = 0;
    for (const auto& variant : {dense_variant, ragged_variant, strided_variant})
      kernels += fmt::format("namespace {}_{} {{\n{}\n}}\n", file_stem(kernel.name), number++,
                             kernel_part(generate(graph, variant(graph), hopper)));
  }
  // Names of extern "C" functions share one namespace.
  kernels = replaced(kernels, "extern \"C\" ", "");
  for (const std::string compiler : {"g++", "clang++ -mavx512fp16"}) {  // without it clang 14 has no _Float16
    if (std::system((compiler + " --version >/dev/null 2>&1").c_str()) != 0) {
      WARN(compiler << " is not on this machine");
      continue;
    }
    INFO(compiler);
    CHECK(parse_errors(compiler, kernels) == "");
    CHECK(parse_errors(compiler, "int f() { return undeclared; }") != "");
  }
}
#endif

}  // namespace test_generate
