#include "emulator/device_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace tessera::internal::emulator {
namespace {

constexpr std::size_t gap = std::size_t{1} << 20;  // on either side of a buffer
constexpr std::size_t page = 4096;                 // an address keeps its place in a page, and so its alignment

std::unique_ptr<Mapping> mapped(std::size_t bytes) { return std::make_unique<Mapping>(bytes + page + 2 * gap); }

std::int64_t bytes_of(const Parameter& parameter) { return info(parameter.type).bytes; }

bool is_empty(const Parameter& parameter, const Argument& argument) {
  return std::any_of(argument.extent.begin(), argument.extent.begin() + parameter.rank,
                     [](std::int64_t extent) { return extent == 0; });
}

/// Calls visit(offset) for every element of the tensor, offsets in elements; for rows of neighbours only once, with
/// visit(offset, count).
template <class Visit>
void for_each_row(const Parameter& parameter, const Argument& argument, Visit&& visit, int axis = 0,
                  std::int64_t offset = 0) {
  if (axis == parameter.rank) return visit(offset, 1);
  const auto a = static_cast<std::size_t>(axis);
  if (axis + 1 == parameter.rank && argument.stride[a] == 1) return visit(offset, argument.extent[a]);
  for (std::int64_t i = 0; i < argument.extent[a]; ++i) {
    for_each_row(parameter, argument, visit, axis + 1, offset + i * argument.stride[a]);
  }
}

}  // namespace

DeviceMemory::DeviceMemory(const Graph& graph, std::span<const Argument> arguments)
    : graph_(graph), arguments_(arguments.begin(), arguments.end()) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Parameter& parameter = graph.parameters[i];
    const Argument& argument = arguments[i];
    if (parameter.access == Access::scalar || is_empty(parameter, argument)) continue;
    std::int64_t low = 0, high = 1;
    for (std::size_t a = 0; a < static_cast<std::size_t>(parameter.rank); ++a) {
      const std::int64_t reach = (argument.extent[a] - 1) * argument.stride[a];
      (reach < 0 ? low : high) += reach;
    }
    char* const data = static_cast<char*>(argument.data);
    buffers_.push_back({data + low * bytes_of(parameter), data + high * bytes_of(parameter), {i}});
  }
  std::ranges::sort(buffers_, {}, &Buffer::host_begin);
  std::vector<Buffer> merged;
  for (Buffer& buffer : buffers_) {
    if (merged.empty() || buffer.host_begin >= merged.back().host_end) {
      merged.push_back(std::move(buffer));
    } else {
      merged.back().host_end = std::max(merged.back().host_end, buffer.host_end);
      merged.back().tensors.push_back(buffer.tensors.front());
    }
  }
  buffers_ = std::move(merged);
  for (Buffer& buffer : buffers_) {
    buffer.memory = mapped(static_cast<std::size_t>(buffer.host_end - buffer.host_begin));
    buffer.begin = buffer.memory->data() + gap + reinterpret_cast<std::uintptr_t>(buffer.host_begin) % page;
    for (const std::size_t tensor : buffer.tensors) {
      void*& data = arguments_[tensor].data;
      data = buffer.begin + (static_cast<char*>(data) - buffer.host_begin);
    }
    buffer.parts = parts_of(buffer);
    for (const auto& [first, end] : buffer.parts)
      std::memcpy(buffer.begin + first, buffer.host_begin + first, end - first);
  }
}

std::vector<DeviceMemory::Part> DeviceMemory::parts_of(const Buffer& buffer) const {
  std::vector<Part> rows, parts;
  for (const std::size_t tensor : buffer.tensors) {
    const std::int64_t bytes = bytes_of(graph_.parameters[tensor]);
    const std::int64_t base = static_cast<const char*>(arguments_[tensor].data) - buffer.begin;
    for_each_row(graph_.parameters[tensor], arguments_[tensor], [&](std::int64_t offset, std::int64_t count) {
      const std::int64_t first = base + offset * bytes;
      rows.push_back({static_cast<std::size_t>(first), static_cast<std::size_t>(first + count * bytes)});
    });
  }
  std::ranges::sort(rows, {}, &Part::first);
  for (const Part& row : rows) {
    if (parts.empty() || row.first > parts.back().end + gap)
      parts.push_back(row);
    else
      parts.back().end = std::max(parts.back().end, row.end);
  }
  return parts;
}

void DeviceMemory::copy_back() const {
  for (const Buffer& buffer : buffers_) {
    const auto is_written = [&](std::size_t tensor) { return graph_.parameters[tensor].access != Access::in; };
    if (std::ranges::none_of(buffer.tensors, is_written)) continue;
    for (const auto& [first, end] : buffer.parts)
      std::memcpy(buffer.host_begin + first, buffer.begin + first, end - first);
  }
}

char* DeviceMemory::new_workspace(std::size_t bytes) {
  workspace_ = mapped(bytes);
  workspace_bytes_ = bytes;
  char* const begin = workspace_->data() + gap;
  std::memset(begin, poison, bytes);
  return begin;
}

std::vector<Shadow> DeviceMemory::tensor_shadows(std::span<const int> early) const {
  std::vector<Shadow> shadows;
  for (const Buffer& buffer : buffers_) {
    std::vector<Owner> owners;
    for (const std::size_t tensor : buffer.tensors) {
      const Parameter& parameter = graph_.parameters[tensor];
      owners.push_back({.name = fmt::format("argument {} ({})", tensor, to_string(parameter)),
                        .base = static_cast<const char*>(arguments_[tensor].data),
                        .initialised = parameter.access != Access::out,
                        .writable = parameter.access != Access::in,
                        .early = std::ranges::find(early, static_cast<int>(tensor)) != early.end()});
    }
    const std::size_t first_shadow = shadows.size();
    for (const auto& [first, end] : buffer.parts)
      shadows.emplace_back(buffer.begin + first, end - first, owners).give(0, end - first, Shadow::nobody);
    for (std::size_t owner = 0; owner < owners.size(); ++owner) {
      const Parameter& parameter = graph_.parameters[buffer.tensors[owner]];
      const std::int64_t size = bytes_of(parameter);
      for_each_row(parameter, arguments_[buffer.tensors[owner]], [&](std::int64_t offset, std::int64_t count) {
        const char* const row = owners[owner].base + offset * size;
        const auto behind = std::upper_bound(shadows.begin() + static_cast<std::ptrdiff_t>(first_shadow), shadows.end(),
                                             row, [](const char* at, const Shadow& s) { return at < s.begin(); });
        Shadow& shadow = *std::prev(behind);
        shadow.give(static_cast<std::size_t>(row - shadow.begin()), static_cast<std::size_t>(count * size), owner);
      });
    }
  }
  return shadows;
}

Shadow DeviceMemory::workspace_shadow() const {
  const char* const begin = workspace_->data() + gap;
  return {begin, workspace_bytes_, {{.name = "the workspace", .base = begin}}};
}

}  // namespace tessera::internal::emulator
