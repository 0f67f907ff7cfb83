// User-defined elementwise ops: cuda_op.
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include "codegen/generate.hpp"
#include "jit/compile/compiler.hpp"
#include "support/catch.hpp"
#include "support/compiling.hpp"
#include "support/devices.hpp"
#include "support/stderr.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"

namespace test_custom {

using namespace tessera::internal;

namespace {

const auto softsign = cuda_op("softsign", "a / (1.0f + fabsf(a))", [](float a) { return a / (1 + std::fabs(a)); });
const auto blend = cuda_op("blend", "c < 0.0f ? a : b", [](float a, float b, float c) { return c < 0 ? a : b; });
const auto parity = cuda_op("parity", "(a ^ b) & 1", [](int a, int b) { return (a ^ b) & 1; });

/// In a template, where each instance has a lambda of its own.
template <TileExpr E>
auto half(const E& e) {
  return cuda_op("half", "0.5f * a", [](float a) { return 0.5f * a; })(e);
}

Graph graph_of(const auto& body) { return kernel("custom", body).graph(); }

int count(const Graph& graph, Op op) {
  int found = 0;
  for (const Node& node : graph.nodes) found += node.op == op;
  return found;
}

}  // namespace

TEST_CASE("user-defined ops are elementwise ops", "[cpu]") {
  const auto k = kernel("own", [](In<f32, 2> x, In<f32, 1> w, In<i32, 2> n, Out<f32, 2> y, Out<i32, 2> m, Out<f32, 2> s) {
    auto [i] = std::array<Index, 1>{blocks(cdiv(x.extent(0), 4))};
    Tile a = load(x, {i, 0}, {4, 40});
    Tile b = softsign(a * 2 - 1);
    store(y, {i, 0}, blend(b, load(w, {0}, {40}), half(a) - half(b)));
    store(m, {i, 0}, parity(load(n, {i, 0}, {4, 40}), 3));
    store(s, {i, 0}, sum(softsign(a), 1) + softsign(item(sum(load(w, {0}, {40})))));
  });
  const int rows = 7, cols = 33;
  std::vector<f32> x(rows * cols), w(cols), y, s;
  std::vector<i32> n(rows * cols), m;
  for (int i = 0; i < rows * cols; ++i) x[i] = static_cast<float>(i % 17) / 8 - 1, n[i] = i * 7 - 50;
  for (int i = 0; i < cols; ++i) w[i] = static_cast<float>(i) / 4;
  const Device& device = test_device();
  Tensor<f32, 2> tx(device, {rows, cols}), ty(device, {rows, cols}), ts(device, {rows, 1});
  Tensor<f32, 1> tw(device, {cols});
  Tensor<i32, 2> tn(device, {rows, cols}), tm(device, {rows, cols});
  tx.copy_from(x), tw.copy_from(w), tn.copy_from(n);
  launch(device.stream(), k, tx, tw, tn, ty, tm, ts);
  y = ty.to_vector(), m = tm.to_vector(), s = ts.to_vector();
  const auto sign = [](double a) { return a / (1 + std::abs(a)); };
  double of_w = 0;
  for (const f32 one : w) of_w += one;
  for (int i = 0; i < rows; ++i) {
    double total = 0;
    for (int j = 0; j < cols; ++j) {
      const double a = x[i * cols + j], b = sign(2 * a - 1), c = (a - b) / 2;
      INFO(i << ", " << j);
      CHECK(std::abs(y[i * cols + j] - (c < 0 ? b : w[j])) <= 1e-6);
      CHECK(m[i * cols + j] == ((n[i * cols + j] ^ 3) & 1));
      total += sign(a);
    }
    CHECK(std::abs(s[i] - (total + sign(of_w))) <= 1e-5);
  }
}

namespace {

template <class T, class F>
void check_type(const char* expression, const F& function) {
  const auto op = cuda_op("of_type", expression, function);
  const auto k = kernel("types", [&](In<T, 1> x, Out<T, 1> y) {
    Tile t = load(x, {0}, {64});
    store(y, {0}, op(op(t, t), t));  // the first result is rounded to the type
  });
  std::vector<T> x, expected;
  for (int i = 0; i < 50; ++i) {
    x.push_back(static_cast<T>(static_cast<float>(i % 13) + 1));
    expected.push_back(function(function(x.back(), x.back()), x.back()));
  }
  const Tensor<T, 1> tx(test_device(), {50}), ty(test_device(), {50});
  tx.copy_from(x);
  launch(test_device().stream(), k, tx, ty);
  const auto y = ty.to_vector();
  INFO(name(element_type<T>));
  for (int i = 0; i < 50; ++i) CHECK(std::memcmp(&y[i], &expected[i], sizeof(T)) == 0);
}

}  // namespace

TEST_CASE("user-defined ops take every element type", "[cpu]") {
  check_type<f32>("a * 3.0f - b", [](f32 a, f32 b) { return std::fma(a, 3.0f, -b); });
  check_type<f64>("a / 3.0 - b", [](f64 a, f64 b) { return a / 3 - b; });
  check_type<f16>("a * 0.3f + 4096.0f * b", [](f16 a, f16 b) { return f16(float(a) * 0.3f + 4096 * float(b)); });
  check_type<bf16>("a * 0.3f + 4096.0f * b", [](bf16 a, bf16 b) { return bf16(float(a) * 0.3f + 4096 * float(b)); });
  check_type<f8e4m3>("a * 1.1f + b", [](f8e4m3 a, f8e4m3 b) { return f8e4m3(float(a) * 1.1f + float(b)); });
  check_type<f8e5m2>("a * 1.1f + b", [](f8e5m2 a, f8e5m2 b) { return f8e5m2(float(a) * 1.1f + float(b)); });
  check_type<i8>("a * 100 + b", [](i8 a, i8 b) { return static_cast<i8>(a * 100 + b); });
  check_type<u16>("a * 10000 - b", [](u16 a, u16 b) { return static_cast<u16>(a * 10000 - b); });
  check_type<i64>("(a << 40) ^ b", [](i64 a, i64 b) -> i64 { return static_cast<i64>(static_cast<u64>(a) << 40) ^ b; });
  check_type<u32>("a * 2654435761u + b", [](u32 a, u32 b) -> u32 { return a * 2654435761u + b; });
  check_type<u64>("a * 11400714819323198485ull + b",
                  [](u64 a, u64 b) -> u64 { return a * 11400714819323198485ull + b; });
  check_type<pred>("a && !b", [](pred a, pred b) { return pred(a && !b); });
}

TEST_CASE("user-defined ops take four operands", "[cpu]") {
  const auto between = cuda_op("between", "a > b && a < c ? a : d",
                               [](float a, float b, float c, float d) { return a > b && a < c ? a : d; });
  const auto k = kernel("four", [&](In<f32, 2> x, In<f32, 1> w, Out<f32, 2> y) {
    Tile t = load(x, {0, 0}, {4, 32});
    store(y, {0, 0}, between(t, 3, load(w, {0}, {32}), t * -1));
  });
  std::vector<f32> x(4 * 32), w(32), expected;
  for (int i = 0; i < 128; ++i) x[i] = static_cast<f32>(i % 11);
  for (int i = 0; i < 32; ++i) w[i] = static_cast<f32>(i % 9);
  for (int i = 0; i < 128; ++i) expected.push_back(x[i] > 3 && x[i] < w[i % 32] ? x[i] : -x[i]);
  const auto tx = test_device().tensor<f32>({4, 32}, x);
  const auto tw = test_device().tensor<f32>({32}, w);
  const Tensor<f32, 2> ty(test_device(), {4, 32});
  launch(test_device().stream(), k, tx, tw, ty);
  CHECK(ty.to_vector() == expected);
}

TEST_CASE("a user-defined op is one function of the text, fused with its neighbors", "[graph]") {
  const auto body = [](In<f32, 1> x, Out<f32, 1> y) {
    Tile a = load(x, {0}, {64});
    store(y, {0}, softsign(softsign(a) + half(a)) * half(a + 1) + softsign(a));
  };
  const Graph graph = graph_of(body);
  CHECK(count(graph, Op::custom) == 4);  // softsign(a) occurs once
  CHECK(to_string(graph).find("custom %2 softsign \"a / (1.0f + fabsf(a))\" : f32[64]") != std::string::npos);
  const std::string text = cuda_source(graph, Arch::sm_90a);
  const std::string function = "__device__ inline float user_softsign(float a) { return a / (1.0f + fabsf(a)); }\n";
  CHECK(text.find(function) != text.npos);
  CHECK(text.find(function) == text.rfind(function));
  CHECK(text.find("user_half(float a)") == text.rfind("user_half(float a)"));
  CHECK(text.find("__shared__") == text.npos);
}

TEST_CASE("a user-defined op that does not compile is reported by name", "[jit]") {
  const auto with = [](const auto& op) {
    return kernel("wrong", [&](In<f32, 1> x, Out<f32, 1> y) { store(y, {0}, op(Tile(load(x, {0}, {64})))); });
  };
  // An expression may end in a comment.
  const auto twice = with(cuda_op("twice", "2.0f * a  // of each", [](float a) { return 2 * a; }));
  CHECK(cuda_source(twice, Arch::sm_90a).find("#line 1 \"cuda_op twice\"\n__device__ inline float user_twice(float a) "
                                              "{ return 2.0f * a  // of each\n; }\n#line ") != std::string::npos);
  if (!nvrtc_here()) return;
  const auto on_cpu = [](const auto& kernel) {
    const Device device = Device::cpu();
    const Tensor<f32, 1> x(device, {64}), y(device, {64});
    x.fill(1);
    const std::string said = line_of([&] { launch(device.stream(), kernel, x, y); });
    CHECK(y.to_vector()[63] == 2);
    return said;
  };
  CHECK(on_cpu(twice).empty());
  const auto wrong = with(cuda_op("thrice", "2.0f * b", [](float a) { return 2 * a; }));
  const std::string said = on_cpu(wrong);
  INFO(said);
  CHECK(says(said, {"warning", "kernel 'wrong'", "cuda_op thrice", "\"b\" is undefined"}));
  CHECK(on_cpu(wrong).empty());  // reported once
  CHECK(says(error_of([&] { Compiler::instance().compile(generate(wrong.executable().graph(), dense_variant(wrong.graph()), Arch::sm_90a), Arch::sm_90a); }),
             {"kernel 'wrong'", "cuda_op thrice"}));
  const CudaSource text = "extern \"C\" __global__ void broken(float* y) { y[0] = nonsense; }";
  const auto broken = cuda_kernel("broken", text, [](Out<f32, 1>) { return CudaLaunch{.blocks = {1}, .threads = {1}}; },
                                  [](float* y) { y[63] = 2; });
  const Device device = Device::cpu();
  const Tensor<f32, 1> y(device, {64});
  CHECK(says(line_of([&] { launch(device.stream(), broken, y); }), {"warning", "kernel 'broken'", "nonsense"}));
  CHECK(y.to_vector()[63] == 2);
}

TEST_CASE("a user-defined op of a constant is left to the device", "[graph]") {
  const Graph graph = kernel("constant", [](Out<f32, 1> y) { store(y, {0}, softsign(full<f32>({8}, 3))); }).graph();
  CHECK(count(graph, Op::custom) == 1);
}

TEST_CASE("invalid user-defined ops are rejected", "[graph]") {
  const auto refused = [](const auto& op) {
    return error_of([&] {
      graph_of([&](In<f32, 1> x, Out<f32, 1> y) { store(y, {0}, op(softsign(Tile(load(x, {0}, {8}))))); });
    });
  };
  const auto twice = [](float a) { return 2 * a; };
  CHECK(says(refused(cuda_op("two words", "2.0f * a", twice)),
             {"kernel 'custom'", "test_custom.cpp:",
              "cuda_op: 'two words' is not a valid name; use letters, digits and _"}));
  CHECK(says(refused(cuda_op("twice", "", twice)),
             {"cuda_op 'twice': it has no expression of its operands a, b, c and d"}));
  CHECK(says(refused(cuda_op("softsign", "2.0f * a", twice)),
             {"cuda_op 'softsign': the kernel has another cuda_op of this name, 'a / (1.0f + fabsf(a))'"}));
  CHECK(says(error_of([] {
               graph_of([](In<f32, 2> x, Out<f32, 2> y) {
                 Tile a = load(x, {0, 0}, {4, 8}), b = load(x, {0, 0}, {4, 6});
                 store(y, {0, 0}, blend(a, b, 1));
               });
             }),
             {"cuda_op: shapes [4,8] and [4,6] do not broadcast"}));
  CHECK(says(error_of([] {
               graph_of([](In<f32, 1> x, Out<f32, 1> y, Scalar<f32> s) {
                 require(softsign(s) < 1, "it is small");
                 store(y, {0}, load(x, {0}, {8}));
               });
             }),
             {"require takes a condition on extents and scalars"}));
}

namespace {
std::atomic<int> refusals;

auto doubled() {
  return kernel("doubled", [](In<f32, 1> x, Out<f32, 1> y) {
    Index i = blocks(cdiv(y.extent(0), 64));
    store(y, {i}, load(x, {i}, {64}) * 2);
  });
}

/// Side effects in an element's function.
template <class Does>
float refused(const Does& does) {
  const std::string text = error_of(does);
  if (says(text, {"refused: the function of a cuda_op", "kernel 'outer'", "test_custom.cpp:", "cannot launch"})) ++refusals;
  return 0;
}
}  // namespace

TEST_CASE("the function of a cuda_op cannot launch, copy by a kernel, or fill, in any thread", "[api]") {
  static const auto inner = doubled();
  static const Device cpu = Device::cpu();
  static const Tensor<f32, 2> x(cpu, {64, 64}), y(cpu, {64, 64});
  static const CapturedGraph recorded =
      cpu.stream().capture([] { launch(cpu.stream(), inner, x.reshaped({64 * 64}), y.reshaped({64 * 64})); });
  x.fill(1);
  const auto launches = cuda_op("launches", "a", [](float a) {
    return a + refused([] { launch(cpu.stream(), inner, x.reshaped({64 * 64}), y.reshaped({64 * 64})); });
  });
  const auto replays = cuda_op("replays", "a", [](float a) { return a + refused([] { cpu.stream().launch(recorded); }); });
  const auto fills = cuda_op("fills", "a", [](float a) { return a + refused([] { y.fill(3); }); });
  const auto copies = cuda_op("copies", "a", [](float a) { return a + refused([] { y.copy_from(x.transposed()); }); });
  // Calls that launch no kernel are allowed: tracing, contiguous copies, waiting.
  const auto others = cuda_op("others", "a", [](float a) {
    (void)doubled();
    std::vector<float> values = x.to_vector();
    cpu.synchronize();
    return a + values[5] - 1;
  });
  const Tensor<f32, 1> in(cpu, {300}), out(cpu, {300});
  const std::vector<float> sevens(300, 7);
  in.copy_from(sevens);
  const auto check = [&](const auto& op, int expected) {
    const auto outer = kernel("outer", [&](In<f32, 1> a, Out<f32, 1> b) {
      Index i = blocks(cdiv(b.extent(0), 4));
      store(b, {i}, op(load(a, {i}, {4})));
    });
    refusals = 0;
    launch(cpu.stream(), outer, in, out);
    CHECK(out.to_vector() == sevens);
    CHECK(refusals == expected);
  };
  check(launches, 300), check(replays, 300), check(fills, 300), check(copies, 300), check(others, 0);
  // The error is thrown by the launch, and the next launch runs.
  const auto throws = cuda_op("throws", "a", [](float a) {
    launch(cpu.stream(), inner, x.reshaped({64 * 64}), y.reshaped({64 * 64}));
    return a;
  });
  const auto outer = kernel("outer", [&](In<f32, 1> a, Out<f32, 1> b) {
    Index i = blocks(cdiv(b.extent(0), 4));
    store(b, {i}, throws(load(a, {i}, {4})));
  });
  CHECK(says(error_of([&] { launch(cpu.stream(), outer, in, out); }),
             {"launch of kernel 'doubled' refused: the function of a cuda_op, which computes an element of kernel "
              "'outer', "}));
  launch(cpu.stream(), inner, x.reshaped({64 * 64}), y.reshaped({64 * 64}));
  CHECK(y.to_vector() == std::vector<float>(64 * 64, 2));
}

}  // namespace test_custom
