#include "fuzz/memory.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace tessera::fuzz {
namespace {

constexpr std::int64_t guard = 256;  // bytes on either side of what the tensors of a buffer take
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
  if (fill == Fill::whole) return between(rng, type == ElementType::u8 ? 0 : -9, 9);
  if (fill == Fill::real) return between(rng, type == ElementType::u8 ? 0 : -100, 100);
  const bool is_long = type == ElementType::i64;
  switch (rng() % 4) {
    case 0:
      return between(rng, -3, 3);
    case 1:
      return (is_long ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int32_t>::min()) +
             between(rng, 0, 1);
    case 2:
      return (is_long ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int32_t>::max()) -
             between(rng, 0, 1);
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
    } else {
      std::memcpy(&bits, &value, sizeof value);
    }
  } else {
    bits = static_cast<std::uint64_t>(integer(rng, fill, type));
  }
  std::memcpy(to, &bits, static_cast<std::size_t>(info(type).bytes));  // little endian
}

Cell scalar_of(ElementType type, double value) {
  Cell cell;
  if (type == ElementType::f32) {
    cell.f32 = static_cast<float>(value);
  } else if (type == ElementType::i32) {
    cell.i32 = static_cast<std::int32_t>(value);
  } else {
    cell.i64 = static_cast<std::int64_t>(value);
  }
  return cell;
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
  if (type == ElementType::u8) return 255;
  return fill == Fill::whole ? 9 : fill == Fill::real ? 100 : type == ElementType::i64 ? 0x1p63 : 0x1p31;
}

Memory::Memory(const std::vector<Parameter>& parameters, std::span<const Given> given, std::uint64_t seed)
    : parameters_(parameters) {
  // Where each lies first, from the first element of its buffer; then how long the buffers are.
  std::vector<std::int64_t> low, high, order;
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
      if (own) low.push_back(0), high.push_back(0);
      place.buffer = own ? low.size() - 1 : places_[static_cast<std::size_t>(g.shares)].buffer;
      place.first = (own ? 0 : places_[static_cast<std::size_t>(g.shares)].first) + g.offset * bytes;
      std::int64_t begin = place.first, end = place.first + bytes;
      for (std::size_t axis = 0; axis < g.extents.size(); ++axis) {
        const std::int64_t reach = std::max<std::int64_t>(g.extents[axis] - 1, 0) * strides[axis] * bytes;
        (reach < 0 ? begin : end) += reach;
      }
      low[place.buffer] = std::min(low[place.buffer], begin);
      high[place.buffer] = std::max(high[place.buffer], end);
    }
    places_.push_back(place);
  }
  for (std::size_t buffer = 0; buffer < low.size(); ++buffer) {
    low[buffer] = -((-low[buffer] + alignment - 1) / alignment * alignment) - guard;
    buffers_.emplace_back(static_cast<std::size_t>(high[buffer] + guard - low[buffer]), std::byte{0xA5});
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (parameters[i].access == Access::scalar) continue;
    places_[i].first -= low[places_[i].buffer];
    Rng rng(seed * 64 + i);
    each_element(i, [&](std::size_t at) {
      write_element(buffers_[places_[i].buffer].data() + at, parameters[i].type, rng, given[i].fill);
    });
  }
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
  for (std::vector<std::byte>& buffer : buffers_) bases.push_back(buffer.data());
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
  std::vector<std::vector<int>> positions, writable;  // for each byte, how many
  for (const std::vector<std::byte>& buffer : buffers_) {
    positions.emplace_back(buffer.size(), 0);
    writable.emplace_back(buffer.size(), 0);
  }
  bool found = false;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (parameters_[i].access == Access::scalar) continue;
    each_element(i, [&](std::size_t at) {
      for (std::size_t byte = at; byte < at + static_cast<std::size_t>(info(parameters_[i].type).bytes); ++byte) {
        int &all = positions[places_[i].buffer][byte], &written = writable[places_[i].buffer][byte];
        ++all, written += is_written(i);
        found |= all > 1 && written > 0;
      }
    });
  }
  return found;
}

std::string Memory::stray_write(const Memory& before) const {
  for (std::size_t b = 0; b < buffers_.size(); ++b) {
    std::vector<bool> may_change(buffers_[b].size(), false);
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (parameters_[i].access == Access::scalar || places_[i].buffer != b || !is_written(i)) continue;
      each_element(i, [&](std::size_t at) {
        for (int byte = 0; byte < info(parameters_[i].type).bytes; ++byte)
          may_change[at + static_cast<std::size_t>(byte)] = true;
      });
    }
    for (std::size_t at = 0; at < buffers_[b].size(); ++at) {
      if (may_change[at] || buffers_[b][at] == before.buffers_[b][at]) continue;
      return fmt::format("byte {} of buffer {}, which is no element that may be written, has changed", at, b);
    }
  }
  return "";
}

}  // namespace tessera::fuzz
