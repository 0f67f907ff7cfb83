// Tensors from DLPack and to it: who owns the memory, when it is released, and which tensors are rejected.
#include <atomic>
#include <thread>

#include "fake_cuda/machine.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"
#include "support/tensors.hpp"
#include "tessera/tessera.hpp"

#ifdef TESSERA_HAS_DLPACK
#include <dlpack/dlpack.h>
#endif

namespace test_dlpack {

#ifdef TESSERA_HAS_DLPACK

using namespace tessera::internal;

namespace {

const Device cpu = Device::cpu();

/// A tensor of another library, which counts how often it is released.
struct Foreign {
  std::vector<std::byte> memory;
  std::vector<std::int64_t> shape, strides;
  std::atomic<int> deleted = 0;
  DLManagedTensor managed{};

  Foreign(std::vector<std::int64_t> extents, DLDataType type = {kDLFloat, 32, 1}, DLDevice device = {kDLCPU, 0})
      : memory(4096), shape(std::move(extents)) {
    auto& tensor = managed.dl_tensor;
    tensor.data = memory.data();
    tensor.device = device;
    tensor.ndim = static_cast<int>(shape.size());
    tensor.dtype = type;
    tensor.shape = shape.data();
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* self) { ++static_cast<Foreign*>(self->manager_ctx)->deleted; };
  }
  float* values() { return reinterpret_cast<float*>(memory.data()); }
  void stride(std::vector<std::int64_t> given) {
    strides = std::move(given);
    managed.dl_tensor.strides = strides.data();
  }
};

template <class T, int R>
std::string refusal(Foreign& foreign, const std::optional<Device>& device = {}) {
  const std::string text = error_of([&] { from_dlpack<T, R>(&foreign.managed, device); });
  CHECK(foreign.deleted == 0);  // the caller still owns it
  return text;
}

}  // namespace

TEST_CASE("a tensor of another library is used in place", "[api]") {
  Foreign foreign({2, 3});
  for (int i = 0; i < 6; ++i) foreign.values()[i] = static_cast<float>(i);
  {
    const auto x = from_dlpack<f32, 2>(&foreign.managed);
    CHECK(x.device() == cpu);
    CHECK(x.data() == foreign.values());
    CHECK(x.to_vector() == numbered<f32>(6));
    foreign.values()[4] = 40;  // written there, and visible here
    CHECK(x.to_vector()[4] == 40);
    x.fill(7);  // and vice versa
    CHECK(foreign.values()[5] == 7);
    CHECK(foreign.values()[6] == 0);
    CHECK(foreign.deleted == 0);
  }
  CHECK(foreign.deleted == 1);
}

TEST_CASE("it may have strides, an offset, or no elements", "[api]") {
  Foreign transposed({3, 2});
  for (int i = 0; i < 8; ++i) transposed.values()[i] = static_cast<float>(i);
  transposed.stride({1, 3});
  transposed.managed.dl_tensor.byte_offset = 2 * sizeof(float);
  CHECK(from_dlpack<f32, 2>(&transposed.managed).to_vector() == std::vector<f32>{2, 5, 3, 6, 4, 7});
  Foreign backward({3});
  for (int i = 0; i < 3; ++i) backward.values()[i] = static_cast<float>(i);
  backward.stride({-1});
  backward.managed.dl_tensor.byte_offset = 2 * sizeof(float);
  CHECK(from_dlpack<f32, 1>(&backward.managed).to_vector() == std::vector<f32>{2, 1, 0});
  Foreign broadcast({3});
  broadcast.values()[0] = 5;
  broadcast.stride({0});
  CHECK(from_dlpack<f32, 1>(&broadcast.managed).to_vector() == std::vector<f32>{5, 5, 5});
  Foreign empty({2, 0});
  empty.managed.dl_tensor.data = nullptr;
  CHECK(from_dlpack<f32, 2>(&empty.managed).to_vector().empty());
  CHECK(empty.deleted == 1);
}

TEST_CASE("it is released once, with the last handle, from any thread", "[api]") {
  Foreign foreign({4, 4});
  auto x = from_dlpack<f32, 2>(&foreign.managed);
  auto part = x.slice(0, 1, 2).transposed();
  DLManagedTensor* const lent = to_dlpack(part);
  x = {}, part = {};
  CHECK(foreign.deleted == 0);
  auto back = from_dlpack<f32, 2>(lent);
  CHECK(back.data() == foreign.values() + 4);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([copy = back] { copy.to_vector(); });
  back = {};
  for (std::thread& thread : threads) thread.join();
  CHECK(foreign.deleted == 1);

  Foreign without({1});
  without.managed.deleter = nullptr;  // without a deleter
  CHECK(from_dlpack<f32, 1>(&without.managed).size() == 1);
}

TEST_CASE("a tensor of ours is shared, and retained until the other side releases it", "[api]") {
  auto x = cpu.tensor<f32>({2, 3}, numbered<f32>(6));
  const std::weak_ptr<void> memory = x.memory();
  DLManagedTensor* const lent = to_dlpack(x.transposed());
  const DLTensor& given = lent->dl_tensor;
  REQUIRE(given.ndim == 2);
  CHECK(std::vector(given.shape, given.shape + 2) == std::vector<std::int64_t>{3, 2});
  CHECK(std::vector(given.strides, given.strides + 2) == std::vector<std::int64_t>{1, 3});
  CHECK(given.device.device_type == kDLCPU);
  CHECK(given.byte_offset == 0);
  CHECK(given.data == x.data());
  static_cast<float*>(given.data)[2] = 20;
  CHECK(x.to_vector()[2] == 20);
  x = {};
  CHECK(!memory.expired());
  std::thread([&] { lent->deleter(lent); }).join();
  CHECK(memory.expired());
  CHECK(says(error_of([] { to_dlpack(Tensor<f32, 2>()); }), {"no memory", "no device"}));
}

TEST_CASE("a thousand round trips leak nothing", "[api]") {
  Foreign foreign({8, 8});
  const auto x = cpu.tensor<f32>({8, 8}, numbered<f32>(64));
  for (int i = 0; i < 1000; ++i) {
    const auto y = from_dlpack<f32, 2>(to_dlpack(from_dlpack<f32, 2>(&foreign.managed)));
    const auto z = from_dlpack<f32, 2>(to_dlpack(x.transposed()));
    z.copy_from(y, cpu.stream());
  }
  CHECK(foreign.deleted == 1000);
  CHECK(x.memory().use_count() == 1);
}

TEST_CASE("types are converted to and from DLPack's", "[api]") {
  const auto both = []<class T>(T, int code, int bits) {
    const Tensor<T, 1> x(cpu, {3});
    DLManagedTensor* const lent = to_dlpack(x);
    const DLDataType type = lent->dl_tensor.dtype;
    CHECK(std::tuple(int{type.code}, int{type.bits}, int{type.lanes}) == std::tuple(code, bits, 1));
    CHECK(from_dlpack<T, 1>(lent).data() == x.data());
  };
  both(f32(), 2, 32), both(f64(), 2, 64), both(f16(), 2, 16), both(bf16(), 4, 16);
  both(f8e4m3(), 10, 8), both(f8e5m2(), 12, 8);
  both(i8(), 0, 8), both(i16(), 0, 16), both(i32(), 0, 32), both(i64(), 0, 64);
  both(u8(), 1, 8), both(u16(), 1, 16), both(u32(), 1, 32), both(u64(), 1, 64), both(pred(), 6, 8);
}

TEST_CASE("unsupported DLPack tensors are rejected with a reason, and stay with the caller", "[api]") {
  Foreign x({2, 3});
  CHECK(says(refusal<f16, 2>(x), {"f32 [2,3]", "Tensor<f16, 2>"}));
  CHECK(says(refusal<f32, 1>(x), {"of rank 2", "Tensor<f32, 1>"}));
  Foreign lanes({2}, {kDLFloat, 32, 4}), complex({2}, {kDLComplex, 64, 1});
  CHECK(says(refusal<f32, 1>(lanes), {"code 2, 32 bits and 4 lanes"}));
  CHECK(says(refusal<f32, 1>(complex), {"code 5, 64 bits"}));
  Foreign scalar({}), deep({1, 1, 1, 1, 1, 1, 1}), negative({-1});
  CHECK(says(refusal<f32, 1>(scalar), {"0 axes", "1 to 6"}));
  CHECK(says(refusal<f32, 1>(deep), {"7 axes"}));
  CHECK(says(refusal<f32, 1>(negative), {"negative extent, -1"}));
  Foreign crooked({2});
  crooked.managed.dl_tensor.byte_offset = 2;
  CHECK(says(refusal<f32, 1>(crooked), {"f32 [2]", "not aligned to its elements of 4 bytes"}));
  Foreign nowhere({2}), shapeless({2});
  nowhere.managed.dl_tensor.data = nullptr;
  shapeless.managed.dl_tensor.shape = nullptr;
  CHECK(says(refusal<f32, 1>(nowhere), {"no memory"}));
  CHECK(says(refusal<f32, 1>(shapeless), {"no shape"}));
  Foreign huge({1ll << 40, 1ll << 40});
  CHECK(says(refusal<f32, 2>(huge), {"2^63 bytes"}));
  Foreign opencl({2}, {kDLFloat, 32, 1}, {kDLOpenCL, 0}), far({2}, {kDLFloat, 32, 1}, {kDLCUDA, 99});
  CHECK(says(refusal<f32, 1>(opencl), {"DLPack's type 4", "CUDA"}));
  CHECK(says(refusal<f32, 1>(far), {"cuda:99"}));
  CHECK(says(refusal<f32, 1>(far, cpu), {"on cuda:99, but cpu"}));
  CHECK(says(error_of([] { from_dlpack<f32, 1>(static_cast<DLManagedTensor*>(nullptr)); }), {"null"}));
}

TEST_CASE("CUDA tensors keep the number of their device", "[jit]") {
  FakeCuda& fake = new_fake_cuda();
  fake.devices.resize(2);
  CudaDevices devices(fake_cuda_places());
  const Device first(devices.open(0)), second(devices.open(1));
  CHECK(second.info().ordinal == 1);
  CHECK(!cpu.info().ordinal);
  const auto x = second.tensor<f32>({2, 2}, numbered<f32>(4));
  DLManagedTensor* lent = to_dlpack(x);
  CHECK(lent->dl_tensor.device.device_type == kDLCUDA);
  CHECK(lent->dl_tensor.device.device_id == 1);
  CHECK(says(error_of([&] { from_dlpack<f32, 2>(lent, first); }), {"on cuda:1, but cuda:0"}));
  CHECK(says(error_of([&] { from_dlpack<f32, 2>(lent, cpu); }), {"on cuda:1, but cpu"}));
  const auto back = from_dlpack<f32, 2>(lent, second);
  CHECK(back.device() == second);
  CHECK(back.data() == x.data());
  CHECK(back.to_vector() == numbered<f32>(4));

  Foreign theirs({2}, {kDLFloat, 32, 1}, {kDLCUDA, 0}), pinned({2}, {kDLFloat, 32, 1}, {kDLCUDAHost, 0}),
      managed({2}, {kDLFloat, 32, 1}, {kDLCUDAManaged, 0});
  CHECK(says(refusal<f32, 1>(pinned, first), {"the host, pinned for CUDA", "but cuda:0"}));
  const Tensor<f32, 1> other(first, {2});
  {
    const auto y = from_dlpack<f32, 1>(&theirs.managed, first);
    y.copy_from(other, first.stream());
    fake.calls.clear();
  }
  CHECK(theirs.deleted == 1);
  CHECK(fake.calls.empty());  // its owner's memory is not freed by us, and nothing waits
  CHECK(from_dlpack<f32, 1>(&pinned.managed).device() == cpu);
  CHECK(from_dlpack<f32, 1>(&managed.managed, first).device() == first);
}

TEST_CASE("when a kernel has lost the GPU, shared tensors are released nevertheless", "[jit]") {
  FakeCuda& fake = new_fake_cuda();
  const Device device(CudaDevices(fake_cuda_places()).open(0));
  Foreign foreign({2}, {kDLFloat, 32, 1}, {kDLCUDA, 0});
  auto theirs = from_dlpack<f32, 1>(&foreign.managed, device);
  auto ours = device.tensor<f32>({2}, numbered<f32>(2));
  const std::weak_ptr<void> memory = ours.memory();
  DLManagedTensor* const lent = to_dlpack(ours);
  for (const char* call : {"cuStreamSynchronize", "cuMemcpyAsync", "cuMemAllocAsync", "cuMemFreeAsync", "cuEventRecord",
                           "cuStreamWaitEvent", "cuEventSynchronize"})
    fake.fail[call] = 700;
  CHECK(says(error_of([&] { device.stream().synchronize(); }), {"cuda:0", "CUDA_ERROR", "700"}));
  const std::initializer_list<std::string_view> lost{"cuda:0", "this process lost the GPU", "700"};
  CHECK(says(error_of([&] { theirs.to_vector(); }), lost));
  CHECK(says(error_of([&] { ours.copy_from(theirs); }), lost));
  CHECK(says(error_of([&] { device.synchronize(); }), lost));
  CHECK(says(error_of([&] { device.tensor<f32>({2}); }), lost));
  CHECK(says(error_of([&] { ours.to(cpu); }), lost));
  CHECK(cpu.tensor<f32>({2}, numbered<f32>(2)).to_vector() == numbered<f32>(2));
  theirs = {};
  CHECK(foreign.deleted == 1);
  ours = {};
  CHECK(!memory.expired());
  lent->deleter(lent);
  CHECK(memory.expired());
}

TEST_CASE("versioned DLPack tensors", "[api]") {
#ifdef DLPACK_MAJOR_VERSION
  static int deleted = 0;
  float values[2] = {1, 2};
  std::int64_t shape[1] = {2};
  DLManagedTensorVersioned managed{};
  managed.version = {DLPACK_MAJOR_VERSION, 0};
  managed.dl_tensor = {values, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, nullptr, 0};
  managed.deleter = [](DLManagedTensorVersioned*) { ++deleted; };
  managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  CHECK(says(error_of([&] { from_dlpack<f32, 1>(&managed); }), {"read-only"}));
  managed.flags = 0, managed.version.major = DLPACK_MAJOR_VERSION + 1;
  CHECK(says(error_of([&] { from_dlpack<f32, 1>(&managed); }), {"version is DLPack", "was built with"}));
  managed.version.major = DLPACK_MAJOR_VERSION;
  CHECK(deleted == 0);
  CHECK(from_dlpack<f32, 1>(&managed).to_vector() == std::vector<f32>{1, 2});
  CHECK(deleted == 1);
#else
  CHECK(says(error_of([&] { from_dlpack<f32, 1>(static_cast<DLManagedTensorVersioned*>(nullptr)); }),
             {"DLPack 1.0 or later", "built with 0."}));
#endif
}
#else
TEST_CASE("without DLPack's header its functions report that", "[api]") {
  CHECK(says(error_of([] { tessera::internal::to_dlpack(tessera::internal::Tensor<float, 1>()); }),
             {"built without DLPack", "libdlpack-dev"}));
}

#endif

}  // namespace test_dlpack
