// The kernels of a model that are compiled before they are launched, on a fake GPU.
#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "codegen/parameter_values.hpp"
#include "fake_cuda/machine.hpp"
#include "jit/cuda/cuda_backend.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"
#include "tessera/model/session.hpp"

namespace test_first_use {

using namespace tessera::internal;
using Tokens = std::vector<std::int32_t>;

namespace {

/// A fake GPU, and a compiler that accepts every text and counts.
class CountingGpu {
 public:
  std::atomic<int> compiled = 0, sampling = 0;
  FakeCuda& fake = new_fake_cuda();
  Device device = make_device();

 private:
  Device make_device() {
    CudaSettings settings;
    settings.compile = [this](const Graph& graph, const Variant& variant, Arch arch) {
      ++compiled;
      sampling += graph.name == "sample" || graph.name == "greedy_head" || graph.name == "greedy_token";
      CacheEntry entry;
      for (const char c : std::string("image") + '\0') entry.code.image.push_back(static_cast<std::byte>(c));
      CompiledKernel made{generate(graph, variant, arch), std::make_shared<const CacheEntry>(std::move(entry))};
      const std::lock_guard lock(mutex_);
      std::vector<std::size_t>& bytes = fake.parameter_bytes[made.source.name];
      bytes.clear();
      for (const KernelParameter& parameter : made.source.parameters)
        bytes.push_back(bytes_of(parameter, graph, variant.index64));
      return made;
    };
    return Device(CudaDevices(fake_cuda_places(), settings).first());
  }

  std::mutex mutex_;
};

TransformerConfig two_layers() {
  TransformerConfig config;
  config.vocab = 512, config.positions = 64, config.width = 128, config.layers = 2, config.heads = 2;
  config.inner = 4 * config.width;
  return config;
}

/// A prompt and a step of one token. The fake GPU computes nothing, so the chosen tokens are not used.
void use(Session& session, std::size_t batch, int prompt, const Sampling& sampling) {
  session.append(std::vector(batch, Tokens(static_cast<std::size_t>(prompt), 1)));
  error_of([&] { session.sample(sampling); });
  session.append(std::vector(batch, Tokens{1}));
}

}  // namespace

TEST_CASE("a session that is warmed up compiles nothing more", "[model]") {
  for (const Compute compute : {Compute::f32, Compute::bf16})
    for (const int batch : {1, 3})
      for (const float temperature : {0.0f, 1.0f}) {
        CountingGpu gpu;
        const Sampling sampling{.temperature = temperature};
        const Model model(gpu.device, two_layers(), 1, compute);
        Session session(model, batch, 40);
        const int before = gpu.compiled;
        const std::size_t launched = gpu.fake.launches.size();
        session.warm_up(std::array{20, 1}, sampling);
        CHECK(gpu.compiled > before);
        // Every step ends with the most probable tokens; that of one sequence finds them in more parts.
        const bool has_head = compute == Compute::bf16 && batch == 1;
        CHECK(gpu.sampling == 2 + has_head + (temperature != 0));
        CHECK(gpu.fake.launches.size() == launched);
        const int warm = gpu.compiled;
        use(session, static_cast<std::size_t>(batch), 20, sampling);
        INFO("batch " << batch << ", temperature " << temperature);
        CHECK(gpu.compiled == warm);
        CHECK(says(error_of([&] { session.warm_up(std::array{41}); }), {"41 tokens", "1 to 40"}));
        CHECK(says(error_of([&] { session.warm_up(std::array{0}); }), {"0 tokens", "1 to 40"}));
        CHECK(says(error_of([&] { session.warm_up(std::array{1}, Sampling{.temperature = -1}); }), {"temperature"}));
      }
}

TEST_CASE("a model that knows its first use compiles what another one does, each kernel once", "[model]") {
  const auto compiled_by = [](const FirstUse& first) {
    CountingGpu gpu;
    const Model model(gpu.device, two_layers(), 1, Compute::bf16, first);
    Session session(model, 1, 64);
    use(session, 1, 20, Sampling());
    return gpu.compiled.load();
  };
  const int expected = compiled_by({});
  CHECK(expected > 10);
  for (int i = 0; i < 5; ++i) CHECK(compiled_by({.batch = 1, .lengths = {20, 1}}) == expected);
}

TEST_CASE("a first use that is impossible leaves the model as it is", "[model]") {
  CountingGpu gpu;
  const Model model(gpu.device, two_layers(), 1, Compute::bf16, {.batch = 1, .lengths = {65, 1}});
  Session session(model, 1, 64);
  use(session, 1, 20, Sampling());
  CHECK(session.length(0) == 21);
}

TEST_CASE("a model may end while its kernels are compiled", "[model]") {
  for (int i = 0; i < 5; ++i) {
    CountingGpu gpu;
    { const Model model(gpu.device, two_layers(), 1, Compute::bf16, {.batch = 1, .lengths = {20, 1}}); }
    const int compiled = gpu.compiled;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(gpu.compiled == compiled);
  }
}

TEST_CASE("on the CPU a warmed-up session computes the same", "[model]") {
  const Model model(Device::cpu(), two_layers(), 1, Compute::f32, {.batch = 1, .lengths = {3, 1}});
  Session warm(model, 1, 8), other(model, 1, 8);
  warm.warm_up(std::array{3, 1});
  const std::vector<Tokens> tokens{{1, 2, 3}};
  warm.append(tokens), other.append(tokens);
  CHECK(warm.logits() == other.logits());
}

}  // namespace test_first_use
