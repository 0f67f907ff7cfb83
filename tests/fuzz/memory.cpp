#include "fuzz/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace tessera::internal::fuzz {
namespace {

constexpr std::int64_t guard = 256;  // bytes before and after the tensors of a buffer
constexpr std::int64_t alignment = 16;

using Rng = std::mt19937_64;

std::int64_t between(Rng& rng, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(rng() % static_cast<std::uint64_t>(high - low + 1));
}

float wide_real(Rng& rng) {
  const auto size = static_cast<float>(std::exp2(static_cast<double>(between(rng, -6'000, 6'000)) * 1e-3));
  return rng() % 2 ? size : -size;
}

float real(Rng& rng, Fill fill) {
  switch (fill) {
    case Fill::whole:
      return static_cast<float>(between(rng, -4, 4));
    case Fill::real:
      return static_cast<float>(static_cast<double>(between(rng, -(1 << 24) + 1, (1 << 24) - 1)) * 0x1p-23);
    case Fill::wide:
      return wide_real(rng);
    case Fill::special:
      break;
  }
  constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float rare[] = {nan, nan, infinity, -infinity, 0.0f, -0.0f, 1e-40f, 0x1p-24f};
  return rng() % 5 ? wide_real(rng) : rare[rng() % std::size(rare)];
}

std::int64_t integer(Rng& rng, Fill fill, ElementType type) {
  if (fill == Fill::whole) return between(rng, lowest(type) == 0 ? 0 : -9, 9);
  if (fill == Fill::real) return between(rng, lowest(type) == 0 ? 0 : -100, 100);
  switch (rng() % 4) {
    case 0:
      return between(rng, -3, 3);
    case 1:
      return lowest(type) + between(rng, 0, 1);
    case 2:
      return static_cast<std::int64_t>(highest(type)) - between(rng, 0, 1);
    default:
      return static_cast<std::int64_t>(rng());
  }
}

void write_element(std::byte* to, ElementType type, Rng& rng, Fill fill) {
  std::uint64_t bits = 0;
  if (info(type).kind == ElementKind::real) {
    const float value = real(rng, fill);
    if (type == ElementType::f16) {
      bits = f16(value).bits;
    } else if (type == ElementType::bf16) {
      bits = bf16(value).bits;
    } else if (type == ElementType::f8e4m3) {
      bits = f8e4m3(value).bits;
    } else if (type == ElementType::f8e5m2) {
      bits = f8e5m2(value).bits;
    } else if (type == ElementType::f64) {
      bits = std::bit_cast<std::uint64_t>(static_cast<double>(value));
    } else {
      std::memcpy(&bits, &value, sizeof value);
    }
  } else {
    bits = static_cast<std::uint64_t>(integer(rng, fill, type));
  }
  std::memcpy(to, &bits, static_cast<std::size_t>(info(type).bytes));  // little endian
}

Cell scalar_of(ElementType type, double value) {
  return with_host(host_type(type), [&]<class T>(T) { return cell_of(static_cast<T>(value)); });
}

}  // namespace

std::vector<std::int64_t> dense_strides(std::span<const std::int64_t> extents) {
  std::vector<std::int64_t> strides(extents.size());
  std::int64_t stride = 1;
  for (std::size_t axis = extents.size(); axis-- > 0; stride *= std::max<std::int64_t>(extents[axis], 1)) {
    strides[axis] = stride;
  }
  return strides;
}

double largest(Fill fill, ElementType type) {
  if (info(type).kind == ElementKind::real) return fill == Fill::whole ? 4 : fill == Fill::real ? 2 : 64;
  return fill == Fill::whole ? 9 : fill == Fill::real ? 100 : static_cast<double>(highest(type)) + 1;
}

Buffer::Buffer(const Buffer& other) : Buffer(other.parts_) {
  for (const Part& part : parts_) std::memcpy(data() + part.first, other.data() + part.first, part.end - part.first);
}

bool Buffer::operator==(const Buffer& other) const {
  return size() == other.size() && std::ranges::all_of(parts_, [&](const Part& part) {
           return std::memcmp(data() + part.first, other.data() + part.first, part.end - part.first) == 0;
         });
}

Memory::Memory(const std::vector<Parameter>& parameters, std::span<const Given> given, std::uint64_t seed)
    : parameters_(parameters) {
  // First the offsets from the first element of each buffer; then where the buffers begin.
  std::vector<std::int64_t> low;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Given& g = given[i];
    Place place;
    place.argument.scalar = scalar_of(parameters[i].type, g.scalar);
    if (parameters[i].access != Access::scalar) {
      const std::vector<std::int64_t> strides = g.strides.empty() ? dense_strides(g.extents) : g.strides;
      std::copy(g.extents.begin(), g.extents.end(), place.argument.extent.begin());
      std::copy(strides.begin(), strides.end(), place.argument.stride.begin());
      const std::int64_t bytes = info(parameters[i].type).bytes;
      const bool own = g.shares < 0;
      if (own) low.push_back(0);
      place.buffer = own ? low.size() - 1 : places_[static_cast<std::size_t>(g.shares)].buffer;
      place.first = (own ? 0 : places_[static_cast<std::size_t>(g.shares)].first) + g.offset * bytes;
      std::int64_t begin = place.first;
      for (std::size_t axis = 0; axis < g.extents.size(); ++axis)
        begin += std::min<std::int64_t>(std::max<std::int64_t>(g.extents[axis] - 1, 0) * strides[axis] * bytes, 0);
      low[place.buffer] = std::min(low[place.buffer], begin);
    }
    places_.push_back(place);
  }
  for (std::int64_t& begin : low) begin = -((-begin + alignment - 1) / alignment * alignment) - guard;
  for (std::size_t i = 0; i < given.size(); ++i)
    if (parameters[i].access != Access::scalar) places_[i].first -= low[places_[i].buffer];
  for (std::size_t buffer = 0; buffer < low.size(); ++buffer) {
    buffers_.emplace_back(parts_of(buffer));
    for (const auto& [first, end] : buffers_.back().parts()) std::memset(&buffers_.back()[first], 0xA5, end - first);
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (parameters[i].access == Access::scalar) continue;
    Rng rng(seed * 64 + i);
    each_element(i, [&](std::size_t at) {
      write_element(&buffers_[places_[i].buffer][at], parameters[i].type, rng, given[i].fill);
    });
  }
}

/// Each element with a guard on either side.
std::vector<Buffer::Part> Memory::parts_of(std::size_t buffer) const {
  std::vector<Buffer::Part> parts, merged;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (parameters_[i].access == Access::scalar || places_[i].buffer != buffer) continue;
    const auto first = static_cast<std::size_t>(places_[i].first);  // also for a tensor without elements
    const auto bytes = static_cast<std::size_t>(info(parameters_[i].type).bytes);
    parts.push_back({first - guard, first + bytes + guard});
    each_element(i, [&](std::size_t at) {
      const Buffer::Part part{at - guard, at + bytes + guard};
      const bool follows = part.first >= parts.back().first && part.first <= parts.back().end;
      follows ? void(parts.back().end = std::max(parts.back().end, part.end)) : parts.push_back(part);
    });
  }
  std::ranges::sort(parts, {}, &Buffer::Part::first);
  for (const Buffer::Part& part : parts) {
    if (merged.empty() || part.first > merged.back().end)
      merged.push_back(part);
    else
      merged.back().end = std::max(merged.back().end, part.end);
  }
  return merged;
}

template <class Visit>
void Memory::each_element(std::size_t argument, const Visit& visit) const {
  const Parameter& parameter = parameters_[argument];
  const Place& place = places_[argument];
  std::int64_t size = 1;
  for (int axis = 0; axis < parameter.rank; ++axis) size *= place.argument.extent[static_cast<std::size_t>(axis)];
  for (std::int64_t i = 0; i < size; ++i) {
    std::int64_t rest = i, at = 0;
    for (auto axis = static_cast<std::size_t>(parameter.rank); axis-- > 0; rest /= place.argument.extent[axis]) {
      at += rest % place.argument.extent[axis] * place.argument.stride[axis];
    }
    visit(static_cast<std::size_t>(place.first + at * info(parameter.type).bytes));
  }
}

bool Memory::is_written(std::size_t argument) const {
  return parameters_[argument].access == Access::out || parameters_[argument].access == Access::in_out;
}

std::vector<Argument> Memory::arguments() {
  std::vector<std::byte*> bases;
  for (const Buffer& buffer : buffers_) bases.push_back(buffer.data());
  return arguments(bases);
}

std::vector<Argument> Memory::arguments(std::span<std::byte* const> bases) const {
  std::vector<Argument> arguments;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    arguments.push_back(places_[i].argument);
    if (parameters_[i].access != Access::scalar) arguments.back().data = bases[places_[i].buffer] + places_[i].first;
  }
  return arguments;
}

bool Memory::overlaps() const {
  enum : char { taken = 1, writable = 2 };
  std::vector<std::unique_ptr<emulator::Mapping>> marks;  // one for each byte
  for (const Buffer& buffer : buffers_) marks.push_back(std::make_unique<emulator::Mapping>(buffer.size()));
  bool found = false;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (parameters_[i].access == Access::scalar) continue;
    const char mark = is_written(i) ? taken | writable : taken;
    each_element(i, [&](std::size_t at) {
      char* const bytes = marks[places_[i].buffer]->data() + at;
      for (int byte = 0; byte < info(parameters_[i].type).bytes; ++byte) {
        found |= bytes[byte] != 0 && ((bytes[byte] | mark) & writable) != 0;
        bytes[byte] |= mark;
      }
    });
  }
  return found;
}

std::string Memory::stray_write(const Memory& before) const {
  for (std::size_t b = 0; b < buffers_.size(); ++b) {
    Buffer meant = before.buffers_[b];
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (parameters_[i].access == Access::scalar || places_[i].buffer != b || !is_written(i)) continue;
      const auto bytes = static_cast<std::size_t>(info(parameters_[i].type).bytes);
      each_element(i, [&](std::size_t at) { std::memcpy(&meant[at], &buffers_[b][at], bytes); });
    }
    for (const auto& [first, end] : meant.parts())
      for (std::size_t at = first; at < end; ++at)
        if (meant[at] != buffers_[b][at])
          return fmt::format("byte {} of buffer {}, which is no element that may be written, has changed", at, b);
  }
  return "";
}

}  // namespace tessera::internal::fuzz
