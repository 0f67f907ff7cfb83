// Persistent kernels: a sequence of launches as one kernel leaves the same bits in memory as launches one by one.
#include <algorithm>
#include <random>
#include <string>

#include "codegen/persistent_source.hpp"
#include "model/repeated.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/fake_gpu.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"

namespace test_persistent {

using namespace tessera::internal;

namespace {

constexpr std::int64_t rows = 6;
constexpr int width = 96;

/// y = x w + bias of rows: weights and bias are loaded before the kernel waits.
const auto& linear() {
  static const auto linear = kernel("linear", [](In<f32, 2> x, In<bf16, 2> w, In<f32, 1> bias, Out<f32, 2> y) {
    auto [i, n] = blocks(x.extent(0), cdiv(w.extent(1), 8));
    Tile row = cast<bf16>(load(x, {i, 0}, {1, width}));
    store(y, {i, n}, mma(row, load(w, {0, n}, {width, 8}), zeros<f32>({1, 8})) + load(bias, {n}, {8}));
  });
  return linear;
}
/// The same for all rows at once: weights are copied to shared memory before the kernel waits.
const auto& linear_of_all() {
  static const auto linear = kernel("linear_of_all", [](In<f32, 2> x, In<bf16, 2> w, Out<f32, 2> y) {
    Index n = blocks(cdiv(w.extent(1), 8));
    Tile all = cast<bf16>(load(x, {0, 0}, {16, width}));
    store(y, {0, n}, mma(all, load(w, {0, n}, {width, 8}), zeros<f32>({16, 8})));
  });
  return linear;
}
/// Rows of one warp, of many, and of more than the registers of one warp.
auto normalize(int warps) {
  return kernel("normalize" + std::to_string(warps), [=](In<f32, 2> x, Out<f32, 2> y) {
    if (warps > 0) hints({.warps = warps});
    Index i = blocks(x.extent(0));
    Tile row = load(x, {i, 0}, {1, width});
    Tile e = exp(row - max(row, 1));
    store(y, {i, 0}, e / sum(e, 1));
  });
}
const auto& add() {
  static const auto add = kernel("add", [](In<f32, 2> x, InOut<f32, 2> y) {
    auto [i, j] = blocks(cdiv(y.extent(0), 2), cdiv(y.extent(1), 32));
    Tile before = load(y, {i, j}, {2, 32});
    store(y, {i, j}, before + load(x, {i, j}, {2, 32}));
  });
  return add;
}
/// Rows in reverse order: each CTA reads what another one has written.
const auto& reverse() {
  static const auto reverse = kernel("reverse", [](In<f32, 2> x, Out<f32, 2> y) {
    Index i = blocks(x.extent(0));
    store(y, {i, 0}, load(x, {x.extent(0) - 1 - i, 0}, {1, width}));
  });
  return reverse;
}

/// Writes a tensor that linear() may load before it waits.
const auto& take_bias() {
  static const auto take_bias = kernel("take_bias", [](In<f32, 2> x, Out<f32, 1> bias) {
    Index n = blocks(cdiv(bias.extent(0), 32));
    store(bias, {n}, reshape(load(x, {0, n}, {1, 32}), {32}));
  });
  return take_bias;
}

/// Random launches over a few matrices.
struct Program {
  Sequence sequence;
  std::vector<Tensor<f32, 2>> matrices;
  Tensor<bf16, 2> weights;
  Tensor<f32, 1> bias;
  std::vector<float> start;

  Program(const Device& device, unsigned seed, int count)
      : sequence(device), weights(device, {width, width}), bias(device, {width}) {
    static const auto one = normalize(1);
    static const auto few = normalize(2);
    static const auto many = normalize(4);
    std::mt19937 random(seed);
    const auto value = [&] { return static_cast<float>(random() % 2001) / 1000 - 1; };
    for (std::int64_t i = 0; i < rows * width; ++i) start.push_back(value());
    std::vector<bf16> of_weights;
    for (int i = 0; i < width * width; ++i) of_weights.push_back(bf16(value() / 8));
    weights.copy_from(of_weights);
    for (int i = 0; i < 4; ++i) matrices.emplace_back(device, std::array{rows, std::int64_t{width}});
    while (static_cast<int>(sequence.launches().size()) < count) {
      const auto &x = matrices[random() % 4], &y = matrices[random() % 4];
      if (&x == &y) continue;
      switch (random() % 9) {
        case 0:
          sequence.add(linear(), x, weights, bias, y);
          break;
        case 1:
          sequence.add(one, x, y);
          break;
        case 2:
          sequence.add(few, x, y);
          break;
        case 3:
          sequence.add(many, x, y);
          break;
        case 4:
          sequence.add(add(), x, y);
          break;
        case 5:
          sequence.add(reverse(), x, y);
          break;
        case 6:  // other code of the same kernel
          sequence.add(linear(), x, weights.permuted({1, 0}), bias, y);
          break;
        case 7:
          sequence.add(linear_of_all(), x, weights.permuted({1, 0}), y);
          break;
        case 8:
          sequence.add(take_bias(), x, bias);
          sequence.add(linear(), x, weights, bias, y);
          break;
      }
    }
  }

  template <class Run>
  std::vector<float> after(const Run& run) const {
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      std::vector<float> values = start;
      std::rotate(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(7 * i), values.end());
      matrices[i].copy_from(values);
    }
    bias.copy_from(std::vector<float>(start.begin(), start.begin() + width));
    run();
    std::vector<float> all = bias.to_vector();
    for (const auto& matrix : matrices) {
      const std::vector<float> values = matrix.to_vector();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
};

}  // namespace

TEST_CASE("a persistent kernel leaves the same bits as the launches of its sequence", "[jit]") {
  if (!runs_generated_code()) {
    WARN("skipped: persistent kernels need a GPU, or the emulator");
    SUCCEED();
    return;
  }
  const Device& device = generated_device();
  const Stream stream = device.stream();
  for (unsigned seed = 0; seed < 3; ++seed) {
    const Program program(device, seed, 14);
    const std::vector<float> plain = program.after([&] { program.sequence.run(stream); });
    const CapturedGraph persistent = program.sequence.persistent("random");
    for (int run = 0; run < 4; ++run) {
      INFO("seed " << seed << ", run " << run);
      CHECK(program.after([&] { stream.launch(persistent); }) == plain);
    }
  }
}

/// Two launches with a grid tile for four elements.
Sequence pair_on(const Device& device, const Tensor<f32, 1>& x, const Tensor<f32, 1>& y) {
  Sequence pair(device);
  pair.add(fake_gpu::copy_kernel(), x, y);
  pair.add(fake_gpu::copy_kernel(), y, x);
  return pair;
}

TEST_CASE("a persistent kernel is one cooperative launch, whose runs do not overlap", "[jit]") {
  fake_gpu::Machine machine;
  machine.fake.parameter_bytes["k_pair"] = {8, 4, 8};
  const Device device = machine.open();
  const Tensor<f32, 1> x(device, {1200}), y(device, {1200});
  const CapturedGraph pair = pair_on(device, x, y).persistent("pair");
  const Stream stream = device.stream(), other = device.new_stream();
  const auto names = [](const fake_gpu::Calls& calls) {
    std::string names;
    for (const std::string& call : calls) names += call.substr(0, call.find(' ')) + " ";
    return names;
  };
  // Streams wait for new memory once, and for the run before this one.
  CHECK(names(machine.calls_of([&] { stream.launch(pair); })) == "cuStreamWaitEvent cuLaunchKernelEx cuEventRecord ");
  CHECK(names(machine.calls_of([&] { other.launch(pair); })) ==
        "cuStreamWaitEvent cuStreamWaitEvent cuLaunchKernelEx cuEventRecord ");
  CHECK(says(error_of([&] { other.capture([&] { other.launch(pair); }); }), {"kernel 'pair'", "cannot be recorded"}));
  REQUIRE(machine.fake.launches.size() == 2);
  for (const FakeCuda::Launch& launch : machine.fake.launches) {
    CHECK(launch.function == "k_pair");
    CHECK(launch.cooperative);
    CHECK(!launch.early);
    CHECK(launch.grid == 264);  // for three waves, a multiprocessor has two CTAs
    CHECK(fake_gpu::read<int>(launch.parameters, 8) == 2);
    CHECK(fake_gpu::read<std::uint64_t>(launch.parameters, 0) != fake_gpu::read<std::uint64_t>(launch.parameters, 16));
  }
}

TEST_CASE("launches run one by one, and then as a graph, if a cooperative launch is refused", "[jit]") {
  fake_gpu::Machine machine;
  machine.pdl = false;
  machine.fake.parameter_bytes["k_decode_step"] = {8, 4, 8};
  const Device device = machine.open();
  const Tensor<f32, 1> x(device, {800}), y(device, {800});
  const Stream stream = device.stream();
  Repeated step(pair_on(device, x, y));
  step.choose(DecodeForm::persistent);
  machine.fake.fail["cuLaunchKernelEx"] = 720;
  step.run(stream);
  CHECK(machine.fake.launches.size() == 2);
  CHECK(step.report().form == DecodeForm::plain);
  CHECK(says(step.report().why_not, {"cuda:0", "kernel 'decode_step'", "CTAs at once", "cuLaunchKernelEx"}));
  step.run(stream);
  CHECK(step.report().form == DecodeForm::graph);
  CHECK(says(step.report().why_not, {"decode_step"}));
  machine.fake.fail.clear();
  step.run(stream);
  CHECK(step.report().form == DecodeForm::graph);  // it is not tried again
}

TEST_CASE("a persistent kernel whose launch succeeded does not run again, whatever fails behind it", "[jit]") {
  fake_gpu::Machine machine;
  machine.fake.parameter_bytes["k_decode_step"] = {8, 4, 8};
  const Device device = machine.open();
  const Tensor<f32, 1> x(device, {800}), y(device, {800});
  Repeated step(pair_on(device, x, y));
  step.choose(DecodeForm::persistent);
  step.make();
  machine.fake.fail["cuEventRecord"] = 1;
  CHECK(says(error_of([&] { step.run(device.stream()); }), {"cuEventRecord"}));
  CHECK(step.report().why_not == "");
  CHECK(machine.fake.launches.size() == 1);
  CHECK(step.report().form == DecodeForm::persistent);
}

TEST_CASE("a sequence that cannot be one persistent kernel names the launch and the reason", "[jit]") {
  const Tensor<f32, 1> x(Device::cpu(), {4}), y(Device::cpu(), {4});
  Sequence on_cpu(Device::cpu());
  on_cpu.add(fake_gpu::copy_kernel(), x, y);
  CHECK(says(error_of([&] { on_cpu.persistent("step"); }), {"'step'", "persistent", "cpu"}));

  static const auto product = kernel("product", [](In<bf16, 2> a, In<bf16, 2> w, Out<bf16, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), 128), cdiv(y.extent(1), 128));
    Var sums = zeros<f32>({128, 128});
    for (Index k : range(cdiv(a.extent(1), 64)))
      sums = mma(load(a, {m, k}, {128, 64}), load(w, {k, n}, {64, 128}), sums);
    store(y, {m, n}, cast<bf16>(sums));
  });
  const Graph& graph = product.executable().graph();
  const SequenceLaunch launches[] = {{&graph, dense_variant(graph)}};
  CHECK(says(error_of([&] { generate_persistent("step", launches, 1, Arch::sm_90a); }),
             {"'step'", "launch 1", "kernel 'product'", "warp-specialized"}));
  CHECK(error_of([&] { generate_persistent("step", launches, 1, Arch::sm_80); }) == "(no error)");
  CHECK(says(error_of([&] { generate_persistent("step", {}, 1, Arch::sm_90a); }), {"'step'", "no launches"}));
}

}  // namespace test_persistent
