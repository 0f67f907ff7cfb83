// The CUDA driver: how it is found, the messages if it cannot be used, and its errors in words.
#include <algorithm>
#include <map>

#include "fake_cuda/machine.hpp"
#include "support/catch.hpp"
#include "support/compiling.hpp"
#include "support/patterns.hpp"
#include "support/support.hpp"

namespace test_driver {

using namespace tessera::internal;
using cuda::Driver;

namespace {

std::string error_of_first() {
  return error_of([] { CudaDevices(fake_cuda_places()).first(); });
}

/// Bytes of each parameter of a call, as declared in driver.def.
struct Signature {
  const char* name;
  std::vector<std::size_t> sizes;
};
template <class... P>
Signature signature(const cuda::Call<P...>& call) {
  return {call.name, {sizeof(P)...}};
}

/// From a parameter list of cudaTypedefs.h: on a 64-bit machine.
std::vector<std::size_t> sizes_of(const std::string& parameters) {
  const std::string wide =
      R"(\*|size_t|unsigned long long|CUdeviceptr_v2|CU(context|module|function|stream|event|graph|graphExec|memoryPool) )";
  std::vector<std::size_t> sizes;
  for (const Match& each : matches(parameters, "[^,]+")) sizes.push_back(finds(each[0], wide) ? 8 : 4);
  return sizes;
}

}  // namespace

// A driver keeps all historical forms of a call: the name and a version select one.
TEST_CASE("the driver's calls have the parameters of CUDA's header", "[jit]") {
  SUCCEED();
  const Nvrtc* const nvrtc = nvrtc_here();
  const std::filesystem::path place = nvrtc ? nvrtc->path().parent_path().parent_path() / "include/cudaTypedefs.h" : "";
  if (!exists(place)) {
    WARN("skipped: there is no cudaTypedefs.h beside NVRTC");
    return;
  }
  const std::string header = read_text(place);
  std::map<std::string, std::pair<int, std::string>> latest;  // up to 12.0
  for (const Match& entry : matches(header, R"(typedef CUresult \(CUDAAPI \*PFN_(\w+)_v(\d+)\)\(([^)]*)\);)")) {
    const int version = std::stoi(entry[2]);
    auto& [found, parameters] = latest[entry[1]];
    if (version > 12000 || version < found) continue;
    found = version;
    parameters = entry[3];
  }
  using namespace cuda;
  const Signature calls[] = {
#define CALL(name, ...) signature(Call<__VA_ARGS__>{#name}),
#include "jit/cuda/driver.def"
  };
  for (const Signature& call : calls) {
    INFO(call.name << "(" << latest[call.name].second << ")");
    CHECK(call.sizes == sizes_of(latest[call.name].second));
  }
}

TEST_CASE("without a driver there is a reason in one line", "[jit]") {
  const std::vector<std::string> places{"libtessera_no_such_driver.so.1", "/no/such/folder/libcuda.so.1"};
  CHECK(
      says(error_of([&] { Driver::open(places); }),
           {"the NVIDIA driver was not found", "libtessera_no_such_driver.so.1", "/no/such/folder: no libcuda.so.1"}));
  CudaDevices devices(places);
  CHECK(says(error_of([&] { devices.first(); }), {"the NVIDIA driver was not found"}));
  CHECK(says(error_of([&] { devices.open(0); }), {"the NVIDIA driver was not found"}));
}

TEST_CASE("the default device reports why it was chosen", "[jit]") {
  const std::string failure = error_of([] { CudaDevices::instance().first(); });
  const Device best = Device::best();
  CHECK(says(best.reason(), {}));
  if (failure == "(no error)") {
    CHECK(best.name().starts_with("cuda:"));
    CHECK(Device::parse("cuda") == best);
  } else {
    CHECK(best == Device::cpu());
    CHECK(says(best.reason(), {failure}));
    CHECK(says(error_of([] { Device::parse("cuda"); }), {"device cuda", failure, "cpu"}));
    CHECK(says(error_of([] { Device::parse("cuda:1"); }), {"device cuda:1", failure, "cpu"}));
  }
}

TEST_CASE("a library that is no driver, or an old one, is rejected", "[jit]") {
  CHECK(says(error_of([] { Driver::open(std::vector<std::string>{"libm.so.6"}); }), {"libm", "cuDriverGetVersion"}));
  FakeCuda& fake = new_fake_cuda();
  fake.version = 11080;
  CHECK(says(error_of_first(), {"CUDA 11.8", "12.0", "install", "525"}));
  fake.version = 12000;
  CHECK(error_of_first() == "(no error)");
  fake.lacks = {"cuTensorMapEncodeTiled"};
  CHECK(says(error_of_first(), {"libfake_cuda.so has no cuTensorMapEncodeTiled", "install", "525"}));
}

TEST_CASE("a driver that does not start suggests a fix", "[jit]") {
  FakeCuda& fake = new_fake_cuda();
  fake.devices.clear();
  CHECK(says(error_of_first(), {"sees no GPU", "CUDA_VISIBLE_DEVICES"}));
  fake = {};
  fake.fail["cuInit"] = 34;
  CHECK(says(error_of_first(), {"cuInit failed", "(34)", "stub", "LD_LIBRARY_PATH"}));
  fake.fail["cuInit"] = 802;
  CHECK(says(error_of_first(), {"nvidia-fabricmanager"}));
}

TEST_CASE("the first GPU that is new enough is taken", "[jit]") {
  FakeCuda& fake = new_fake_cuda();
  fake.devices = {{"Fake T4", 7, 5}};
  CHECK(says(error_of_first(), {"cuda:0 (Fake T4, sm_75)", "sm_80"}));
  fake.devices = {{"Fake T4", 7, 5}, {"Fake A100", 8, 0, 108, 40 << 20}, {"Fake H200"}};
  CudaDevices devices(fake_cuda_places());
  const Device second(devices.first()), third(devices.open(2));
  CHECK(second.name() == "cuda:1 (Fake A100, sm_80)");
  CHECK(second.info().arch == Arch::parse("sm_80"));
  CHECK(second.info().multiprocessors == 108);
  CHECK(second.info().l2_bytes == 40 << 20);
  CHECK(third.name() == "cuda:2 (Fake H200, sm_90)");
  CHECK(third.info().arch == Arch::parse("sm_90a"));
  CHECK(!third.shares_host_memory());
  CHECK(Device(devices.open(1)) == second);
  CHECK(says(error_of([&] { devices.open(0); }), {"sm_75"}));
  CHECK(says(error_of([&] { devices.open(3); }), {"the last CUDA device", "cuda:2"}));
}

TEST_CASE("a driver error names the call, the message and the fix", "[jit]") {
  new_fake_cuda();
  const Driver driver = Driver::open(fake_cuda_places());
  CHECK(driver.version() == 13000);
  CHECK(says(driver.describe(700, "cuLaunchKernel", "kernel 'gelu'"),
             {"kernel 'gelu': cuLaunchKernel failed with CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access",
              "TESSERA_DEBUG=1"}));
  CHECK(says(driver.describe(2, "cuMemAllocAsync"), {"CUDA_ERROR_OUT_OF_MEMORY (2)", "free tensors"}));
  CHECK(says(driver.describe(209, "cuModuleLoadDataEx"), {"CUDA_ERROR_NO_BINARY_FOR_GPU", "update"}));
  CHECK(says(driver.describe(701, "cuLaunchKernel"), {"registers or shared memory", "smaller tiles"}));
  CHECK(says(driver.describe(900, "cuStreamSynchronize"), {"cannot be recorded"}));
  CHECK(says(driver.describe(12345, "cuInit"), {"cuInit", "12345", "no description"}));
  CHECK(error_of([&] { driver.check(0, "cuInit"); }) == "(no error)");
  CHECK(says(error_of([&] { driver.check(1, "cuInit", "the start"); }), {"the start: cuInit failed"}));
}

TEST_CASE("everything that the driver allocated is released", "[jit]") {
  FakeCuda& fake = new_fake_cuda();
  {
    CudaDevices devices(fake_cuda_places());
    const Device device(devices.first());
    const Stream stream = device.new_stream();
    const Event event = stream.record();
    const auto memory = device.allocate(100), pinned = device.pinned(100);
    const CapturedGraph graph = stream.capture([] {});
    CHECK(fake.contexts == 1);
    CHECK(fake.streams == 3);
    CHECK(fake.graphs == 1);
    CHECK(fake.memory.size() == 1);
    CHECK(fake.pinned == 1);
  }
  CHECK(fake.contexts + fake.streams + fake.events + fake.graphs + fake.modules + fake.pinned == 0);
  CHECK(fake.memory.empty());
}

TEST_CASE("a device that cannot be opened leaks nothing", "[jit]") {
  FakeCuda& fake = new_fake_cuda();
  for (const char* call : {"cuDevicePrimaryCtxRetain", "cuStreamCreate", "cuEventCreate"}) {
    fake.fail = {{call, 46}};
    CHECK(says(error_of_first(), {call, "another process"}));
    CHECK(fake.contexts + fake.streams + fake.events == 0);
  }
}

}  // namespace test_driver
