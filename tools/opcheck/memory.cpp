#include "opcheck/memory.hpp"

#include <fmt/format.h>

#include <cstring>

#include "graph/error.hpp"
#include "opcheck/numbers.hpp"

namespace tessera::opcheck {
namespace {

/// Of the memory that devices give, in bytes.
constexpr std::size_t alignment = 64;

void lay_out(const Field& field, Argument& argument) {
  std::int64_t stride = field.layout == Layout::strided ? 2 : 1;
  const std::size_t rank = field.extents.size();
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t axis = field.layout == Layout::transposed ? i : rank - 1 - i;
    argument.extent[axis] = field.extents[axis];
    argument.stride[axis] = stride;
    stride *= field.extents[axis];
    if (field.layout == Layout::padded && i == 0) stride += 3;
  }
}

/// From the first element to behind the last.
std::size_t bytes_of(const Field& field, const Argument& argument) {
  std::int64_t elements = 1;
  for (std::size_t axis = 0; axis < field.extents.size(); ++axis) {
    if (field.extents[axis] == 0) return 0;
    elements += (field.extents[axis] - 1) * argument.stride[axis];
  }
  return static_cast<std::size_t>(elements * info(field.type).bytes);
}

/// Calls visit(offset), in elements, for each element in row-major order.
template <class Visit>
void for_each(const Field& field, const Argument& argument, const Visit& visit, std::size_t axis = 0,
              std::int64_t offset = 0) {
  if (axis == field.extents.size()) return visit(offset);
  for (std::int64_t i = 0; i < field.extents[axis]; ++i)
    for_each(field, argument, visit, axis + 1, offset + i * argument.stride[axis]);
}

/// Fills a tensor of T with numbers drawn as N.
template <class T, class N>
void fill(const Field& field, const Argument& argument, Random& random) {
  std::int64_t count = 1;
  for (const std::int64_t extent : field.extents) count *= extent;
  const std::vector<N> some = numbers<N>(field.values, count, random);
  std::size_t next = 0;
  for_each(field, argument, [&](std::int64_t offset) {
    static_cast<T*>(argument.data)[offset] = static_cast<T>(some[next]);
    if (++next == some.size()) next = 0;
  });
}

void fill(const Field& field, const Argument& argument, Random& random) {
  switch (field.type) {
    case ElementType::f32:
      return fill<f32, f32>(field, argument, random);
    case ElementType::f16:
      return fill<f16, f32>(field, argument, random);
    case ElementType::bf16:
      return fill<bf16, f32>(field, argument, random);
    case ElementType::i32:
      return fill<i32, i32>(field, argument, random);
    case ElementType::i64:
      return fill<i64, i64>(field, argument, random);
    case ElementType::u8:
      return fill<u8, u8>(field, argument, random);
    default:
      throw InternalError(fmt::format("there are no tensors of {}", name(field.type)));
  }
}

Cell scalar(const Field& field, Random& random) {
  Cell cell;
  switch (host_type(field.type)) {
    case HostType::f32:
      cell.f32 = number<f32>(field.values, random);
      break;
    case HostType::i32:
      cell.i32 = number<i32>(field.values, random);
      break;
    case HostType::i64:
      cell.i64 = number<i64>(field.values, random);
      break;
  }
  return cell;
}

}  // namespace

HostTensors::HostTensors(const Case& of) : case_(of) {
  for (std::size_t i = 0; i < of.fields.size(); ++i) {
    const Field& field = of.fields[i];
    Random random(i);
    Argument argument;
    std::size_t bytes = 0;
    if (field.access == Access::scalar) {
      argument.scalar = scalar(field, random);
    } else {
      lay_out(field, argument);
      bytes = bytes_of(field, argument);
      const int skipped = field.layout == Layout::padded ? info(field.type).bytes : 0;
      memory_.push_back(Device::cpu().allocate(bytes + alignment));
      argument.data = static_cast<std::byte*>(memory_.back().get()) + skipped;
      if (bytes) std::memset(argument.data, 0xa5, bytes);
      if (field.access != Access::out) fill(field, argument, random);
    }
    const auto* data = static_cast<const std::byte*>(argument.data);
    before_.emplace_back(data, data + bytes);
    arguments_.push_back(argument);
  }
}

std::string HostTensors::damage() const {
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    const Field& field = case_.fields[i];
    std::vector<std::byte> expected = before_[i];
    const auto* data = static_cast<const std::byte*>(arguments_[i].data);
    const auto size = static_cast<std::size_t>(info(field.type).bytes);
    if (field.access == Access::out || field.access == Access::in_out)
      for_each(field, arguments_[i], [&](std::int64_t offset) {
        const std::size_t at = static_cast<std::size_t>(offset) * size;
        std::memcpy(&expected[at], data + at, size);
      });
    const auto changed = std::mismatch(expected.begin(), expected.end(), data).first;
    if (changed != expected.end())
      return fmt::format("parameter {}: byte {} of its memory, {}, was changed", i, changed - expected.begin(),
                         field.access == Access::in ? "an In" : "which belongs to no element");
  }
  return "";
}

DeviceTensors::DeviceTensors(const Device& device, const HostTensors& host)
    : device_(device), arguments_(host.arguments().begin(), host.arguments().end()) {
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    arguments_[i].data = nullptr;
    if (!host.bytes(i)) continue;
    memory_.push_back(device_.allocate(host.bytes(i) + alignment));
    const std::size_t skipped = reinterpret_cast<std::uintptr_t>(host.arguments()[i].data) % alignment;
    arguments_[i].data = static_cast<std::byte*>(memory_.back().get()) + skipped;
    device_.copy_in(arguments_[i].data, host.arguments()[i].data, host.bytes(i));
  }
}

void DeviceTensors::copy_back(const HostTensors& host) const {
  for (std::size_t i = 0; i < arguments_.size(); ++i)
    if (host.bytes(i)) device_.copy_out(host.arguments()[i].data, arguments_[i].data, host.bytes(i));
}

}  // namespace tessera::opcheck
