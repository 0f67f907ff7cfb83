#include "opcheck/memory.hpp"

#include <fmt/format.h>

#include <cstring>

#include "opcheck/numbers.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal::opcheck {
namespace {

/// Bytes before and after a tensor: the alignment of memory that devices allocate.
constexpr std::size_t guard = 64;

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

/// From the first element to the end of the last.
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

/// Fills a tensor of T with numbers generated as N.
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

template <ElementType type>
void fill_with(const Field& field, const Argument& argument, Random& random) {
  using T = typename detail::TypeOf<type>::type;
  if constexpr (info(type).stored)
    fill<T, std::conditional_t<std::is_arithmetic_v<T>, T, std::conditional_t<std::is_same_v<T, pred>, i32, f32>>>(
        field, argument, random);
  else
    throw InternalError(fmt::format("there are no tensors of {}", name(type)));
}

void fill(const Field& field, const Argument& argument, Random& random) {
  switch (field.type) {
#define TYPE(name, ...)   \
  case ElementType::name: \
    return fill_with<ElementType::name>(field, argument, random);
#include "tessera/graph/types.def"
  }
}

Cell scalar(const Field& field, Random& random) {
  return with_host(host_type(field.type), [&]<class T>(T) { return cell_of(number<T>(field.values, random)); });
}

}  // namespace

HostTensors::HostTensors(const Case& of) : case_(of) {
  for (std::size_t i = 0; i < of.fields.size(); ++i) {
    const Field& field = of.fields[i];
    Random random(i);
    Argument argument;
    std::size_t bytes = 0;
    std::shared_ptr<void> memory;
    if (field.access == Access::scalar) {
      argument.scalar = scalar(field, random);
    } else {
      lay_out(field, argument);
      const std::size_t first = guard + (field.layout == Layout::padded ? info(field.type).bytes : 0);
      bytes = first + bytes_of(field, argument) + guard;
      memory = Device::cpu().allocate(bytes);
      std::memset(memory.get(), 0xa5, bytes);
      argument.data = static_cast<std::byte*>(memory.get()) + first;
      if (field.access != Access::out) fill(field, argument, random);
    }
    const auto* begin = static_cast<const std::byte*>(memory.get());
    before_.emplace_back(begin, begin + bytes);
    memory_.push_back(std::move(memory));
    arguments_.push_back(argument);
  }
}

std::span<std::byte> HostTensors::memory(std::size_t parameter) const {
  return {static_cast<std::byte*>(memory_[parameter].get()), before_[parameter].size()};
}

std::string HostTensors::damage() const {
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    const Field& field = case_.fields[i];
    std::vector<std::byte> expected = before_[i];
    const std::span<const std::byte> now = memory(i);
    const auto size = static_cast<std::size_t>(info(field.type).bytes);
    const auto first = static_cast<const std::byte*>(arguments_[i].data) - now.data();
    if (field.access == Access::out || field.access == Access::in_out)
      for_each(field, arguments_[i], [&](std::int64_t offset) {
        const auto at = static_cast<std::size_t>(first) + static_cast<std::size_t>(offset) * size;
        std::memcpy(&expected[at], &now[at], size);
      });
    const auto changed = std::mismatch(expected.begin(), expected.end(), now.begin()).first - expected.begin();
    if (changed != std::ssize(expected))
      return fmt::format("parameter {}: byte {} of its memory, {}, was changed", i, changed - first,
                         field.access == Access::in ? "an In" : "which belongs to no element");
  }
  return "";
}

DeviceTensors::DeviceTensors(const Device& device, const HostTensors& host)
    : device_(device), arguments_(host.arguments().begin(), host.arguments().end()) {
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    const std::span<const std::byte> from = host.memory(i);
    memory_.push_back(from.empty() ? nullptr : device_.allocate(from.size()));
    if (from.empty()) continue;
    device_.copy_in(memory_[i].get(), from.data(), from.size());
    const auto first = static_cast<const std::byte*>(host.arguments()[i].data) - from.data();
    arguments_[i].data = static_cast<std::byte*>(memory_[i].get()) + first;
  }
}

void DeviceTensors::copy_back(const HostTensors& host) const {
  for (std::size_t i = 0; i < arguments_.size(); ++i)
    if (const auto to = host.memory(i); !to.empty()) device_.copy_out(to.data(), memory_[i].get(), to.size());
}

}  // namespace tessera::internal::opcheck
