#include "tessera/jit/dlpack.hpp"

#include <fmt/format.h>

#include "tessera/graph/error.hpp"

#ifdef TESSERA_HAS_DLPACK
#include <dlpack/dlpack.h>
#endif

namespace tessera::internal::detail {

#ifdef TESSERA_HAS_DLPACK
namespace {

[[noreturn]] void refuse(std::string_view why) { throw Error(fmt::format("a DLPack tensor is rejected: {}", why)); }

ElementType type_of(const DLDataType& type) {
  for (std::size_t i = 0; i < std::size(detail::element_table); ++i) {
    const ElementInfo& element = detail::element_table[i];
    if (element.dlpack == type.code && 8 * element.bytes == type.bits && type.lanes == 1)
      return static_cast<ElementType>(i);
  }
  refuse(fmt::format("its element type has code {}, {} bits and {} lanes, which is not a type of Tessera's", type.code,
                     type.bits, type.lanes));
}

std::string text_of(const DLDevice& device) {
  switch (device.device_type) {
    case kDLCPU:
      return "cpu";
    case kDLCUDA:
      return fmt::format("cuda:{}", device.device_id);
    case kDLCUDAHost:
      return "the host, pinned for CUDA";
    case kDLCUDAManaged:
      return fmt::format("cuda:{}, managed", device.device_id);
    default:
      return fmt::format("a device of DLPack's type {}", static_cast<int>(device.device_type));
  }
}

/// The device whose kernels will use the memory: `wanted`, if it can access the memory in place.
Device device_for(const DLDevice& device, const std::optional<Device>& wanted) {
  const bool host = device.device_type == kDLCPU || device.device_type == kDLCUDAHost,
             gpu = device.device_type == kDLCUDA || device.device_type == kDLCUDAManaged;
  if (!host && !gpu)
    refuse(fmt::format("it is on {}, and kernels run on the CPU and on CUDA devices", text_of(device)));
  if (!wanted) return host ? Device::cpu() : Device::parse(fmt::format("cuda:{}", device.device_id));
  if (host ? wanted->shares_host_memory() : wanted->info().ordinal == device.device_id) return *wanted;
  refuse(fmt::format("it is on {}, but {} is requested", text_of(device), wanted->name()));
}

template <class Managed>
AnyTensor take(Managed* managed, const std::optional<Device>& wanted, std::optional<ElementType> type, int rank) {
  const DLTensor& given = managed->dl_tensor;
  const ElementType element = type_of(given.dtype);
  if (given.ndim < 1 || given.ndim > max_rank)
    refuse(fmt::format("it has {} axes, and a tensor has 1 to {}; reshape it", given.ndim, max_rank));
  if (!given.shape) refuse("it has no shape");
  const std::span<const std::int64_t> extents(given.shape, static_cast<std::size_t>(given.ndim));
  std::array<std::int64_t, max_rank> dense{};
  row_major(extents, dense);
  const std::span<const std::int64_t> strides(given.strides ? given.strides : dense.data(), extents.size());
  if (type && (*type != element || rank != given.ndim))
    refuse(fmt::format("it is {} [{}], of rank {}, and is used as a Tensor<{}, {}>", name(element),
                       fmt::join(extents, ","), given.ndim, name(*type), rank));
  const Device device = device_for(given.device, wanted);

  struct Owner {
    Managed* managed = nullptr;
    ~Owner() {
      if (managed && managed->deleter) managed->deleter(managed);
    }
  };
  const auto owner = std::make_shared<Owner>();
  void* const data = given.data ? static_cast<std::byte*>(given.data) + given.byte_offset : nullptr;
  AnyTensor tensor = tensor_over(device, element, data, extents, strides, {});
  tensor.memory = std::shared_ptr<void>(owner, owner.get());
  owner->managed = managed;  // from here on the tensor owns it, and nothing throws
  return tensor;
}

struct Lent {
  DLManagedTensor managed{};
  AnyTensor tensor;  // holds the extents and the strides
};

}  // namespace

AnyTensor from_dlpack(DLManagedTensor* managed, const std::optional<Device>& device, std::optional<ElementType> type,
                      int rank) {
  if (!managed) refuse("it is null");
  return take(managed, device, type, rank);
}

AnyTensor from_dlpack(DLManagedTensorVersioned* managed, const std::optional<Device>& device,
                      std::optional<ElementType> type, int rank) {
#ifdef DLPACK_MAJOR_VERSION
  if (!managed) refuse("it is null");
  if (managed->version.major != DLPACK_MAJOR_VERSION)
    refuse(fmt::format("its version is DLPack {}.{}, and Tessera was built with {}.{}", managed->version.major,
                       managed->version.minor, DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION));
  if (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY)
    refuse("it is read-only, and a kernel could write to it; pass a copy");
  return take(managed, device, type, rank);
#else
  (void)managed, (void)device, (void)type, (void)rank;
  refuse(
      fmt::format("its version is DLPack 1.0 or later, and Tessera was built with {}.{}; request a tensor without a "
                  "version (__dlpack__() without max_version)",
                  DLPACK_VERSION / 100, DLPACK_VERSION / 10 % 10));
#endif
}

DLManagedTensor* to_dlpack(const AnyTensor& tensor) {
  if (!tensor.device) throw Error("a tensor that was given no memory has no device, and cannot be passed to DLPack");
  auto lent = std::make_unique<Lent>();
  lent->tensor = tensor;
  Argument& place = lent->tensor.place;
  DLTensor& given = lent->managed.dl_tensor;
  given.data = place.data;
  given.device = {kDLCPU, 0};
  if (const std::optional<int>& ordinal = tensor.device->info().ordinal) given.device = {kDLCUDA, *ordinal};
  given.ndim = tensor.rank;
  const ElementInfo& element = info(tensor.type);
  given.dtype = {static_cast<std::uint8_t>(element.dlpack), static_cast<std::uint8_t>(8 * element.bytes), 1};
  given.shape = place.extent.data();
  given.strides = place.stride.data();
  lent->managed.manager_ctx = lent.get();
  lent->managed.deleter = [](DLManagedTensor* managed) { delete static_cast<Lent*>(managed->manager_ctx); };
  return &lent.release()->managed;
}

void free_dlpack(DLManagedTensor* managed) {
  if (managed && managed->deleter) managed->deleter(managed);
}

#else
namespace {
[[noreturn]] void refuse() {
  throw Error("Tessera was built without DLPack; install its header (libdlpack-dev) and build it again");
}
}  // namespace
AnyTensor from_dlpack(DLManagedTensor*, const std::optional<Device>&, std::optional<ElementType>, int) { refuse(); }
AnyTensor from_dlpack(DLManagedTensorVersioned*, const std::optional<Device>&, std::optional<ElementType>, int) {
  refuse();
}
DLManagedTensor* to_dlpack(const AnyTensor&) { refuse(); }
void free_dlpack(DLManagedTensor*) { refuse(); }
#endif

}  // namespace tessera::internal::detail
