#include "tessera/jit/copy_tensor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <vector>

#include "graph/rewrite.hpp"
#include "jit/backend/overlap.hpp"
#include "tessera/graph/builder.hpp"
#include "tessera/jit/executable.hpp"

namespace tessera::internal::detail {
namespace {

/// Elements are copied bit by bit, whatever their type.
ElementType bits_of(ElementType type) {
  switch (info(type).bytes) {
    case 1:
      return ElementType::u8;
    case 2:
      return ElementType::u16;
    case 4:
      return ElementType::u32;
    default:
      return ElementType::u64;
  }
}

// The kernels -------------------------------------------------------------------------------------

/// Copies tiles of its last tensor, or fills it with a number if it has no other. The two last axes are those along
/// which the tensors have adjacent elements.
Graph tile_mover(ElementType bits, int rank, bool fills) {
  const Location here = Location::current();
  const ElementType number = info(bits).bytes < 4 ? ElementType::u32 : bits;
  const Parameter source = fills ? Parameter{Access::scalar, number, 0} : Parameter{Access::in, bits, rank};
  GraphBuilder builder(fmt::format("{}_{}_{}d", fills ? "fill" : "copy", name(bits), rank),
                       {source, {Access::out, bits, rank}}, here);
  const auto make = [&](Op op, ElementType type, std::vector<Id> in, std::vector<std::int64_t> attr, Shape shape = {}) {
    return builder.apply(op, type, in, attr, here, shape);
  };
  Shape tile = Shape::of_rank(rank);
  for (int axis = 0; axis < rank; ++axis) tile[axis] = rank == 1 ? 1024 : axis < rank - 2 ? 1 : 32;
  const Id to = make(Op::tensor, bits, {}, {1});
  std::vector<Id> grid, at;
  for (int axis = 0; axis < rank; ++axis) {
    const Id extent = make(Op::extent, ElementType::i32, {to}, {axis});
    const Id along = builder.constant(ElementType::i32, cell_of(std::int32_t{tile[axis]}), {}, here);
    grid.push_back(make(Op::cdiv, ElementType::i32, {extent, along}, {}));
  }
  builder.set_grid(grid, here);
  for (int axis = 0; axis < rank; ++axis) at.push_back(make(Op::block, ElementType::i32, {}, {axis}));
  const auto with = [&](std::vector<Id> first) {
    first.insert(first.end(), at.begin(), at.end());
    return first;
  };
  Id values;
  if (fills) {
    values = make(Op::scalar, number, {}, {0});
    if (number != bits) values = make(Op::cast, bits, {values}, {});
    values = make(Op::broadcast, bits, {values}, {}, tile);
  } else {
    values = make(Op::load, bits, with({make(Op::tensor, bits, {}, {0})}), {0}, tile);
  }
  make(Op::store, bits, with({values, to}), {});
  Graph graph = canonical(builder.graph());
  verify(graph, "copy_tensor");
  return graph;
}

const Executable& kernel_for(ElementType bits, int rank, bool fills) {
  static std::mutex mutex;
  static auto& kernels = *new std::map<std::tuple<ElementType, int, bool>, Executable>;  // never destroyed
  const std::lock_guard lock(mutex);
  const auto key = std::tuple(bits, rank, fills);
  const auto found = kernels.find(key);
  return found != kernels.end() ? found->second : kernels.try_emplace(key, tile_mover(bits, rank, fills)).first->second;
}

// Axes passed to the kernels ----------------------------------------------------------------------

struct Axis {
  std::int64_t extent, to, from;  // extent, and the strides of both tensors
};

/// The common axes of both tensors, by decreasing stride in `to`. Axes of a single position are left out, and axes of
/// which one continues the other are merged, as long as the result has at most `most` positions.
std::vector<Axis> common_axes(const AnyTensor& to, const Argument& from, std::int64_t most) {
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < to.extents().size(); ++i)
    if (to.place.extent[i] != 1) axes.push_back({to.place.extent[i], to.place.stride[i], from.stride[i]});
  const auto step = [](std::int64_t stride) { return stride < 0 ? 0 - static_cast<std::uint64_t>(stride) : stride; };
  std::ranges::stable_sort(axes, [&](const Axis& a, const Axis& b) { return step(a.to) > step(b.to); });
  std::vector<Axis> merged;
  for (const Axis& axis : axes) {
    std::int64_t to_apart = 0, from_apart = 0, extent = 0;
    if (!merged.empty() && !__builtin_mul_overflow(axis.to, axis.extent, &to_apart) &&
        !__builtin_mul_overflow(axis.from, axis.extent, &from_apart) && merged.back().to == to_apart &&
        merged.back().from == from_apart && !__builtin_mul_overflow(merged.back().extent, axis.extent, &extent) &&
        extent <= most)
      merged.back() = {extent, axis.to, axis.from};
    else
      merged.push_back(axis);
  }
  if (merged.empty()) merged.push_back({1, 1, 1});
  // Next to the axis along which `to` has adjacent elements, put the one along which `from` has.
  if (merged.size() > 2)
    std::iter_swap(std::min_element(merged.begin(), merged.end() - 1,
                                    [&](const Axis& a, const Axis& b) { return step(a.from) < step(b.from); }),
                   merged.end() - 2);
  return merged;
}

void launch(const Stream& stream, const AnyTensor& to, const std::vector<Axis>& axes, Argument source, bool fills) {
  Argument target;
  target.data = to.place.data;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    target.extent[i] = source.extent[i] = axes[i].extent;
    target.stride[i] = axes[i].to, source.stride[i] = axes[i].from;
  }
  kernel_for(bits_of(to.type), static_cast<int>(axes.size()), fills).launch(stream, std::array{source, target});
}

constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max(),
                       most_along = std::numeric_limits<std::int32_t>::max();

// For tensors of one device that do not overlap.
void copy_on(const Stream& stream, const AnyTensor& to, const AnyTensor& from) {
  if (to.size() == 0) return;
  const std::vector<Axis> whole = common_axes(to, from.place, unlimited);
  if (whole.size() == 1 && whole[0].to == 1 && whole[0].from == 1)
    return stream.copy(to.place.data, from.place.data, to.bytes());
  Argument source;
  source.data = from.place.data;
  launch(stream, to, common_axes(to, from.place, most_along), source, false);
}

// ----------------------------------------------------------------------------------------------

const Device& device_of(const AnyTensor& tensor) {
  if (!tensor.device) throw Error("a tensor that was given no memory has no device; make one with Device::tensor");
  return *tensor.device;
}

void check_stream(const Stream& stream, const AnyTensor& tensor) {
  if (!device_of(tensor).has(stream))
    throw Error(
        fmt::format("a tensor {} of {} is copied or filled on a stream of {}; pass a stream of its device, or none",
                    tensor.text(), tensor.device->name(), stream.device_name()));
}

void check_writable(const AnyTensor& to) {
  if (overlaps_itself(to.parameter(Access::out), to.place))
    throw Error(fmt::format("a tensor {} cannot be written, because its strides let elements share memory", to.text()));
}

/// Does `work` on a new stream, which nobody records, and waits for it.
template <class Work>
void at_once(const Device& device, const Work& work) {
  const Stream stream = device.new_stream();
  work(stream);
  stream.synchronize();
}
/// The same, after all work of the device.
template <class Work>
void behind_all(const Device& device, const Work& work) {
  device.synchronize();
  at_once(device, work);
}

/// Dense host memory as a tensor of a device that shares it.
AnyTensor on_host(const AnyTensor& like, void* values) {
  AnyTensor host = like;
  host.place.data = values;
  row_major(like.extents(), host.place.stride);
  return host;
}

void check_count(const AnyTensor& tensor, std::size_t count) {
  if (static_cast<std::uint64_t>(tensor.size()) != count)
    throw Error(fmt::format("a tensor {} of {} elements cannot be copied from or to {} values", tensor.text(),
                            tensor.size(), count));
}

void copy_between_devices(const AnyTensor& to, const AnyTensor& from) {
  const auto count = static_cast<std::size_t>(from.size());
  if (from.device->shares_host_memory()) return copy_in(to, dense(from, *from.device).place.data, count);
  std::vector<std::byte> values(from.bytes());
  copy_out(values.data(), count, from);
  copy_in(to, values.data(), count);
}

}  // namespace

void copy(const AnyTensor& to, const AnyTensor& from, const Stream* stream) {
  if (to.type != from.type || !std::ranges::equal(to.extents(), from.extents()))
    throw Error(fmt::format("cannot copy to a tensor {} from a tensor {}", to.text(), from.text()));
  if (stream) check_stream(*stream, to), check_stream(*stream, from);
  if (to.size() == 0) return;
  check_writable(to);
  if (!(device_of(to) == device_of(from))) return copy_between_devices(to, from);
  const bool overlaps = overlap(to.parameter(Access::out), to.place, from.parameter(Access::in), from.place);
  if (stream && overlaps)
    throw Error(
        fmt::format("a tensor {} is copied on a stream from one of {} that shares its memory; copy it without a "
                    "stream, or through another tensor",
                    to.text(), from.text()));
  if (stream) return copy_on(*stream, to, from);
  behind_all(*to.device, [&](const Stream& own) {
    if (!overlaps) return copy_on(own, to, from);
    const AnyTensor between = new_tensor(*to.device, to.type, to.extents());
    copy_on(own, between, from);
    copy_on(own, to, between);
  });
}

void copy_in(const AnyTensor& to, const void* values, std::size_t count) {
  check_count(to, count);
  if (count == 0) return;
  const Device& device = device_of(to);
  if (to.is_dense()) return device.copy_in(to.place.data, values, to.bytes());
  if (device.shares_host_memory()) return copy(to, on_host(to, const_cast<void*>(values)));
  check_writable(to);
  const AnyTensor between = new_tensor(device, to.type, to.extents());
  device.copy_in(between.place.data, values, to.bytes());  // after all work
  at_once(device, [&](const Stream& own) { copy_on(own, to, between); });
}

void copy_out(void* values, std::size_t count, const AnyTensor& from) {
  check_count(from, count);
  if (count == 0) return;
  const Device& device = device_of(from);
  if (from.is_dense()) return device.copy_out(values, from.place.data, from.bytes());
  if (device.shares_host_memory()) return copy(on_host(from, values), from);
  device.copy_out(values, dense(from, device).place.data, from.bytes());
}

void fill(const AnyTensor& to, std::uint64_t bits, const Stream* stream) {
  if (stream) check_stream(*stream, to);
  if (to.size() == 0) return;
  check_writable(to);
  Argument number;
  number.scalar = cell_of(bits);
  if (info(to.type).bytes < 8) number.scalar = cell_of(static_cast<std::uint32_t>(bits));
  const auto work = [&](const Stream& on) { launch(on, to, common_axes(to, to.place, most_along), number, true); };
  if (stream) return work(*stream);
  behind_all(device_of(to), work);
}

AnyTensor dense(const AnyTensor& tensor, const Device& device) {
  if (device_of(tensor) == device && tensor.is_dense()) return tensor;
  const AnyTensor result = new_tensor(device, tensor.type, tensor.extents());
  copy(result, tensor);
  return result;
}

}  // namespace tessera::internal::detail
