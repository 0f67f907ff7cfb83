// Code that is made before its launch: by whom, how often, in which order, and what a failure leaves.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "fake_cuda/machine.hpp"
#include "jit/cuda/cuda_backend.hpp"
#include "support/catch.hpp"
#include "support/compiling.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"

namespace test_warm_up {

using namespace tessera::internal;

namespace {

using namespace std::chrono_literals;

/// A fake GPU, and a compiler that accepts every text and counts.
class Counted {
 public:
  std::function<void(const std::string& kernel)> before = [](const std::string&) {};  ///< called by the compiler

  FakeCuda& fake = new_fake_cuda();
  Device device = make_device();

  int compiled(const std::string& kernel) {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(std::ranges::count(order_, kernel));
  }
  /// The kernels in the order in which their compilation began.
  std::vector<std::string> order() {
    const std::lock_guard lock(mutex_);
    return order_;
  }

 private:
  Device make_device() {
    CudaSettings settings;
    settings.compile = [this](const Graph& graph, const Variant& variant, Arch arch) {
      {
        const std::lock_guard lock(mutex_);
        order_.push_back(graph.name);
      }
      before(graph.name);
      CacheEntry entry;
      for (const char c : std::string("image") + '\0') entry.code.image.push_back(static_cast<std::byte>(c));
      return CompiledKernel{generate(graph, variant, arch), std::make_shared<const CacheEntry>(std::move(entry))};
    };
    return Device(CudaDevices(fake_cuda_places(), settings).first());
  }

  std::mutex mutex_;
  std::vector<std::string> order_;
};

auto scale(const std::string& name) {
  return kernel(name, [](In<f32, 1> x, Out<f32, 1> y, Scalar<f32> factor) {
    Index i = blocks(cdiv(y.extent(0), 256));
    store(y, {i}, load(x, {i}, {256}) * factor);
  });
}

/// Launches of kernels with these names, each twice.
Sequence launches_of(const Device& device, const std::vector<std::string>& names) {
  const Tensor<f32, 1> x(device, {1024}), y(device, {1024}), z(device, {1024});
  Sequence sequence(device);
  for (const std::string& name : names) {
    const auto k = scale(name);
    sequence.add(k, x, y, 2);
    sequence.add(k, y, z, 3);
  }
  return sequence;
}

/// Made before anything is compiled, so destroyed after exit() has waited.
struct AtTheEnd {
  bool looks = false;
  ~AtTheEnd() {
    if (looks && compile_times().running > 0) ::_exit(9);
  }
} at_the_end;

const std::vector<std::string> six{"a", "b", "c", "d", "e", "f"};

}  // namespace

TEST_CASE("a warm-up compiles each kernel once and runs none, and launches find the code", "[jit]") {
  Counted counted;
  const Sequence sequence = launches_of(counted.device, six);
  sequence.warm_up();
  CHECK(counted.fake.launches.empty());
  for (const std::string& name : six) CHECK(counted.compiled(name) == 1);
  sequence.warm_up();
  sequence.run(counted.device.stream());
  CHECK(counted.fake.launches.size() == 2 * six.size());
  CHECK(counted.order().size() == six.size());
  Sequence(counted.device).warm_up();  // of nothing
}

TEST_CASE("a warm-up makes each variant of a launch, and the specialized kernel", "[jit]") {
  Counted counted;
  const auto k = scale("k");
  const Tensor<f32, 1> x(counted.device, {1024}), y(counted.device, {1025}), z(counted.device, {1024});
  Sequence sequence(counted.device);
  sequence.add(k, x, z, 1);
  sequence.add(k, x, y.slice(0, 1, 1024), 1);                                                    // aligned to 4 bytes
  sequence.add(k, z, z, 1);                                                                      // in place
  sequence.add(k, Tensor<f32, 1>(counted.device, {0}), Tensor<f32, 1>(counted.device, {0}), 1);  // an empty grid
  sequence.warm_up();
  CHECK(counted.compiled("k") == 3);
  sequence.run(counted.device.stream());
  CHECK(counted.compiled("k") == 3);
  CHECK(counted.fake.launches.size() == 3);
}

TEST_CASE("one kernel is warmed up with the arguments of its launch", "[jit]") {
  Counted counted;
  const Tensor<f32, 1> x(counted.device, {1024}), y(counted.device, {1024});
  const auto k = scale("k");
  warm_up(counted.device.stream(), k, x, y, 2);
  CHECK((counted.compiled("k") == 1 && counted.fake.launches.empty()));
  launch(counted.device.stream(), k, x, y, 5);
  CHECK(counted.compiled("k") == 1);
  CHECK(says(error_of([&] { warm_up(counted.device.stream(), k, x, x.slice(0, 1, 1000), 2); }),
             {"kernel 'k'", "overlaps"}));
  const auto text = cuda_kernel(
      "text", "text", [](In<f32, 1> x, Out<f32, 1>) { return CudaLaunch{.blocks = {x.extent(0)}, .threads = {32}}; });
  warm_up(counted.device.stream(), text, x, y);
  launch(counted.device.stream(), text, x, y);
  CHECK(counted.compiled("text") == 1);
}

TEST_CASE("threads that warm up the same kernels compile each once, and wait for it", "[jit]") {
  Counted counted;
  counted.before = [](const std::string&) { std::this_thread::sleep_for(5ms); };
  const Sequence sequence = launches_of(counted.device, six);
  std::barrier start(4);
  std::atomic<int> late = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        start.arrive_and_wait();
        if (t < 3)
          sequence.warm_up();
        else
          sequence.run(counted.device.stream());
        late += counted.order().size() != six.size();
      });
  }
  CHECK(late == 0);
  for (const std::string& name : six) CHECK(counted.compiled(name) == 1);
}

TEST_CASE("a warm-up compiles on several threads", "[jit]") {
  if (std::thread::hardware_concurrency() < 2) return;
  Counted counted;
  std::mutex mutex;
  std::condition_variable arrived;
  int inside = 0, most = 0;
  counted.before = [&](const std::string&) {
    std::unique_lock lock(mutex);
    most = std::max(most, ++inside);
    arrived.notify_all();
    arrived.wait_for(lock, 20s, [&] { return most >= 2; });
    --inside;
  };
  launches_of(counted.device, six).warm_up();
  CHECK((most >= 2 && most <= 8));
}

TEST_CASE("what is launched first is compiled first", "[jit]") {
  Counted counted;
  const std::vector<std::string> names{"z", "m", "a", "q", "b", "y", "c", "x", "d", "w", "e", "v"};
  launches_of(counted.device, names).warm_up();
  const std::vector<std::string> order = counted.order();
  REQUIRE(order.size() == names.size());
  // Kernels that begin at the same time may be recorded in any order.
  const auto threads = std::min<std::size_t>(8, std::max(1u, std::thread::hardware_concurrency()));
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto at = static_cast<std::size_t>(std::ranges::find(names, order[i]) - names.begin());
    INFO(order[i] << " began as number " << i);
    CHECK(at < i + threads);
  }
}

TEST_CASE("a kernel that fails is named, and the others are made", "[jit]") {
  Counted counted;
  counted.before = [](const std::string& name) {
    if (name == "b") throw Error("words of the compiler");
    if (name == "d") throw std::bad_alloc();
  };
  const Sequence sequence = launches_of(counted.device, six);
  const std::string failure = error_of([&] { sequence.warm_up(); });
  CHECK(failure == "kernel 'b': words of the compiler (also failed: kernels 'd')");
  for (const std::string& name : six) CHECK(counted.compiled(name) == 1);
  counted.before = [](const std::string&) {};
  sequence.run(counted.device.stream());  // the launch tries again
  CHECK(counted.fake.launches.size() == 2 * six.size());
  for (const std::string& name : six) CHECK(counted.compiled(name) == (name == "b" || name == "d" ? 2 : 1));
}

TEST_CASE("a warm-up that is stopped begins no other kernel", "[jit]") {
  Counted counted;
  std::stop_source stop;
  counted.before = [&](const std::string&) { stop.request_stop(); };
  const Sequence sequence = launches_of(counted.device, six);
  sequence.warm_up(stop.get_token());
  const std::size_t begun = counted.order().size();
  CHECK((begun >= 1 && begun < six.size()));
  CHECK(compile_times().awaited == 0);
  sequence.warm_up();
  CHECK(counted.order().size() == six.size());
}

TEST_CASE("the kernels that a warm-up has still to make are counted", "[jit]") {
  Counted counted;
  std::mutex mutex;
  std::vector<int> awaited;
  std::atomic<int> begun = 0;
  counted.before = [&](const std::string&) {
    // Each waits for those that began before it, as many threads may begin at once.
    const int rank = begun++;
    for (int i = 0; i < 2000 && compile_times().awaited > 6 - rank; ++i) std::this_thread::sleep_for(5ms);
    const std::lock_guard lock(mutex);
    awaited.push_back(compile_times().awaited);
  };
  launches_of(counted.device, six).warm_up();
  CHECK(std::ranges::max(awaited) == 6);
  CHECK(std::ranges::min(awaited) == 1);
  CHECK(compile_times().awaited == 0);
}

TEST_CASE("the time in which someone waits for code is counted, and that of work in the background is not", "[jit]") {
  Counted counted;
  counted.before = [](const std::string&) { std::this_thread::sleep_for(5ms); };
  const auto waited = [&](const auto& work) {
    const double before = compile_times().waited;
    work();
    return compile_times().waited - before;
  };
  const Sequence sequence = launches_of(counted.device, {"a"});
  CHECK(waited([&] { sequence.run(counted.device.stream()); }) >= 5);
  CHECK(waited([&] { sequence.run(counted.device.stream()); }) == 0);
  const std::stop_source stop;
  CHECK(waited([&] { launches_of(counted.device, six).warm_up(stop.get_token()); }) == 0);
  CHECK(waited([&] { launches_of(counted.device, six).warm_up(); }) >= 5);
}

TEST_CASE("sequences are joined for a warm-up", "[jit]") {
  Counted counted;
  Sequence all(counted.device);
  std::weak_ptr<void> memory;
  {
    const Sequence first = launches_of(counted.device, {"a"}), second = launches_of(counted.device, {"b"});
    all.append(first), all.append(second);
  }
  CHECK(all.launches().size() == 4);
  all.warm_up();
  all.run(counted.device.stream());
  CHECK(counted.order().size() == 2);
  CHECK(counted.fake.launches.size() == 4);
  CHECK(says(error_of([&] { all.append(Sequence(Device::cpu())); }), {"cpu", "Fake H200"}));
}

TEST_CASE("on the CPU a warm-up makes the executor's programs", "[jit]") {
  const Device device = Device::cpu();
  const Sequence sequence = launches_of(device, six);
  sequence.warm_up();
  sequence.run(device.stream());
  const Tensor<f32, 1> x(device, {1024}), y(device, {1024}), z(device, {1024});
  const auto without_host = cuda_kernel(
      "text", "text", [](In<f32, 1> x, Out<f32, 1>) { return CudaLaunch{.blocks = {x.extent(0)}, .threads = {32}}; });
  Sequence failing(device);
  failing.add(without_host, x, y);
  failing.add(scale("fine"), x, z, 2);
  CHECK(says(error_of([&] { failing.warm_up(); }), {"kernel 'text'", "it is CUDA C++, which runs on a GPU"}));
  x.fill(4);
  failing.run(device.stream(), 1, 2);
  CHECK(z.to_vector()[1023] == 8);
}

TEST_CASE("threads compile at the same time with NVRTC, each text once", "[nvrtc]") {
  if (!nvrtc_here()) return;
  const Device device(CudaDevices((new_fake_cuda(), fake_cuda_places())).first());
  const std::string unique = "warmed_" + std::to_string(std::chrono::steady_clock::now().time_since_epoch().count());
  std::vector<std::string> names;
  for (int i = 0; i < 4; ++i) names.push_back(unique + "_" + std::to_string(i));
  const Sequence sequence = launches_of(device, names);
  const auto made = [] {
    const CompileTimes times = compile_times();
    return times.compiled + times.cached;
  };
  warm_up(device.stream(), scale(unique), Tensor<f32, 1>(device, {1}), Tensor<f32, 1>(device, {1}), 1);
  const auto before = made();
  in_parallel(4, [&](std::size_t) { sequence.warm_up(); });
  CHECK(made() == before + names.size());
}

TEST_CASE("a process may end during a warm-up", "[nvrtc]") {
  if (!nvrtc_here()) return;
  for (const bool by_return : {true, false, false, false}) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      at_the_end.looks = true;
      CudaSettings settings;
      settings.compile = [](const Graph& graph, const Variant& variant, Arch arch) {
        return compile_kernel(graph, variant, arch);
      };
      const Device device(CudaDevices((new_fake_cuda(), fake_cuda_places()), settings).first());
      const std::string unique = "ended_" + std::to_string(::getpid());
      std::vector<std::string> names;
      for (int i = 0; i < 40; ++i) names.push_back(unique + "_" + std::to_string(i));
      const Sequence sequence = launches_of(device, names);
      launches_of(device, {unique}).warm_up();  // NVRTC registers destructors during its first compilation
      const auto before = compile_times().compiled;
      {
        std::jthread warming([&](std::stop_token stop) { error_of([&] { sequence.warm_up(stop); }); });
        while (compile_times().running == 0) std::this_thread::sleep_for(1ms);
        if (!by_return) std::exit(7);
      }
      std::exit(compile_times().compiled < before + names.size() ? 7 : 8);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    INFO("status " << status);
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 7));
  }
}

}  // namespace test_warm_up
