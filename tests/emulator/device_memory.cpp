#include "emulator/device_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace tessera::emulator {
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
    const auto bytes = static_cast<std::size_t>(buffer.host_end - buffer.host_begin);
    buffer.memory = mapped(bytes);
    buffer.begin = buffer.memory->data() + gap + reinterpret_cast<std::uintptr_t>(buffer.host_begin) % page;
    std::memcpy(buffer.begin, buffer.host_begin, bytes);
    for (const std::size_t tensor : buffer.tensors) {
      void*& data = arguments_[tensor].data;
      data = buffer.begin + (static_cast<char*>(data) - buffer.host_begin);
    }
  }
}

void DeviceMemory::copy_back() const {
  for (const Buffer& buffer : buffers_) {
    const auto is_written = [&](std::size_t tensor) { return graph_.parameters[tensor].access != Access::in; };
    if (std::ranges::none_of(buffer.tensors, is_written)) continue;
    std::memcpy(buffer.host_begin, buffer.begin, static_cast<std::size_t>(buffer.host_end - buffer.host_begin));
  }
}

char* DeviceMemory::new_workspace(std::size_t bytes) {
  workspace_ = mapped(bytes);
  workspace_bytes_ = bytes;
  char* const begin = workspace_->data() + gap;
  std::memset(begin, poison, bytes);
  return begin;
}

std::vector<Shadow> DeviceMemory::tensor_shadows() const {
  std::vector<Shadow> shadows;
  for (const Buffer& buffer : buffers_) {
    std::vector<Owner> owners;
    for (const std::size_t tensor : buffer.tensors) {
      const Parameter& parameter = graph_.parameters[tensor];
      owners.push_back({.name = fmt::format("argument {} ({})", tensor, to_string(parameter)),
                        .base = static_cast<const char*>(arguments_[tensor].data),
                        .initialised = parameter.access != Access::out,
                        .writable = parameter.access != Access::in});
    }
    const auto bytes = static_cast<std::size_t>(buffer.host_end - buffer.host_begin);
    Shadow& shadow = shadows.emplace_back(buffer.begin, bytes, owners);
    shadow.give(0, bytes, Shadow::nobody);
    for (std::size_t owner = 0; owner < owners.size(); ++owner) {
      const Parameter& parameter = graph_.parameters[buffer.tensors[owner]];
      const std::int64_t first = owners[owner].base - buffer.begin, size = bytes_of(parameter);
      for_each_row(parameter, arguments_[buffer.tensors[owner]], [&](std::int64_t offset, std::int64_t count) {
        shadow.give(static_cast<std::size_t>(first + offset * size), static_cast<std::size_t>(count * size), owner);
      });
    }
  }
  return shadows;
}

Shadow DeviceMemory::workspace_shadow() const {
  const char* const begin = workspace_->data() + gap;
  return {begin, workspace_bytes_, {{.name = "the workspace", .base = begin}}};
}

}  // namespace tessera::emulator
