#include "emulator/device_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

namespace tessera::internal::emulator {
namespace {

constexpr std::size_t gap = std::size_t{1} << 20;  // on either side of a buffer
constexpr std::size_t page = 4096;                 // the offset of an address in a page is kept, and so its alignment

std::unique_ptr<Mapping> mapped(std::size_t bytes, const std::string& what) {
  return std::make_unique<Mapping>(bytes + page + 2 * gap, what);
}

/// Copies only pages that differ, so that untouched zero pages stay untouched on both sides.
void copy_changes(char* to, const char* from, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes; done += page) {
    const std::size_t here = std::min(page, bytes - done);
    if (std::memcmp(to + done, from + done, here) != 0) std::memcpy(to + done, from + done, here);
  }
}

std::string text_of(std::size_t argument, const Graph& graph) {
  return fmt::format("argument {} ({})", argument_name(graph.parameters, argument), to_string(graph.parameters[argument]));
}

std::int64_t bytes_of(const Parameter& parameter) { return info(parameter.type).bytes; }

bool is_empty(const Parameter& parameter, const Argument& argument) {
  return std::any_of(argument.extent.begin(), argument.extent.begin() + parameter.rank,
                     [](std::int64_t extent) { return extent == 0; });
}

/// Calls visit(offset) for every element of the tensor, with offsets in elements; contiguous rows are visited once, by
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

/// `ranges` outside of `parts`; inside, the owner's.
std::vector<Shadow::Range> DeviceMemory::laid_over(const std::vector<Shadow::Range>& ranges,
                                                   const std::vector<Part>& parts, std::size_t owner) {
  std::vector<Shadow::Range> result;
  auto range = ranges.begin();
  std::size_t begin = 0;  // of the rest of *range, once a part covers its start
  const auto keep_before = [&](std::size_t limit) {
    for (; range != ranges.end() && range->begin < limit; ++range) {
      const std::size_t from = std::max(range->begin, begin), to = std::min(range->end, limit);
      if (from < to) result.push_back({from, to, range->owner});
      if (range->end > limit) return;
    }
  };
  for (const Part& part : parts) {
    keep_before(part.first);
    result.push_back({part.first, part.end, owner});
    begin = part.end;
    while (range != ranges.end() && range->end <= begin) ++range;
  }
  keep_before(std::numeric_limits<std::size_t>::max());
  return result;
}

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
    const std::size_t first = buffer.tensors.front();
    buffer.memory = mapped(static_cast<std::size_t>(buffer.host_end - buffer.host_begin),
                           "a copy of " + text_of(first, graph));
    buffer.begin = buffer.memory->data() + gap + reinterpret_cast<std::uintptr_t>(buffer.host_begin) % page;
    for (const std::size_t tensor : buffer.tensors) {
      void*& data = arguments_[tensor].data;
      data = buffer.begin + (static_cast<char*>(data) - buffer.host_begin);
    }
    buffer.parts = parts_of(buffer);
    for (const auto& [begin, end] : buffer.parts)
      copy_changes(buffer.begin + begin, buffer.host_begin + begin, end - begin);
  }
}

/// The byte ranges of a tensor's elements, relative to the start of its buffer, in ascending order.
std::vector<DeviceMemory::Part> DeviceMemory::bytes_of_tensor(const Buffer& buffer, std::size_t tensor) const {
  std::vector<Part> rows;
  const std::int64_t bytes = bytes_of(graph_.parameters[tensor]);
  const std::int64_t base = static_cast<const char*>(arguments_[tensor].data) - buffer.begin;
  for_each_row(graph_.parameters[tensor], arguments_[tensor], [&](std::int64_t offset, std::int64_t count) {
    const auto first = static_cast<std::size_t>(base + offset * bytes), end = first + static_cast<std::size_t>(count * bytes);
    if (!rows.empty() && rows.back().end == first)
      rows.back().end = end;
    else
      rows.push_back({first, end});
  });
  std::ranges::sort(rows, {}, &Part::first);
  return merged(rows, 0);
}

std::vector<DeviceMemory::Part> DeviceMemory::merged(const std::vector<Part>& rows, std::size_t apart) {
  std::vector<Part> parts;
  for (const Part& row : rows) {
    if (parts.empty() || row.first > parts.back().end + apart)
      parts.push_back(row);
    else
      parts.back().end = std::max(parts.back().end, row.end);
  }
  return parts;
}

std::vector<DeviceMemory::Part> DeviceMemory::parts_of(const Buffer& buffer) const {
  std::vector<Part> rows;
  for (const std::size_t tensor : buffer.tensors) {
    const std::vector<Part> of_tensor = bytes_of_tensor(buffer, tensor);
    rows.insert(rows.end(), of_tensor.begin(), of_tensor.end());
  }
  std::ranges::sort(rows, {}, &Part::first);
  return merged(rows, gap);
}

void DeviceMemory::copy_back() const {
  for (const Buffer& buffer : buffers_) {
    const auto is_written = [&](std::size_t tensor) { return graph_.parameters[tensor].access != Access::in; };
    if (std::ranges::none_of(buffer.tensors, is_written)) continue;
    for (const auto& [first, end] : buffer.parts)
      copy_changes(buffer.host_begin + first, buffer.begin + first, end - first);
  }
}

char* DeviceMemory::new_workspace(std::size_t bytes) {
  workspace_ = mapped(bytes, "the workspace");
  workspace_bytes_ = bytes;
  char* const begin = workspace_->data() + gap;
  std::memset(begin, poison, bytes);
  return begin;
}

std::vector<Shadow> DeviceMemory::tensor_shadows(std::span<const int> early) const {
  std::vector<Shadow> shadows;
  for (const Buffer& buffer : buffers_) {
    // Memory of two parameters, of which one may be read early, may be read early: the later owner counts.
    const auto is_early = [&](std::size_t tensor) {
      return std::ranges::find(early, static_cast<int>(tensor)) != early.end();
    };
    std::vector<std::size_t> tensors = buffer.tensors;
    std::ranges::stable_partition(tensors, [&](std::size_t tensor) { return !is_early(tensor); });
    std::vector<Owner> owners;
    for (const std::size_t tensor : tensors) {
      const Parameter& parameter = graph_.parameters[tensor];
      owners.push_back({.name = text_of(tensor, graph_),
                        .base = static_cast<const char*>(arguments_[tensor].data),
                        .initialized = parameter.access != Access::out,
                        .writable = parameter.access != Access::in,
                        .early = is_early(tensor)});
    }
    std::vector<Shadow::Range> ranges;
    for (std::size_t owner = 0; owner < owners.size(); ++owner)
      ranges = laid_over(ranges, bytes_of_tensor(buffer, tensors[owner]), owner);
    auto range = ranges.begin();
    for (const auto& [first, end] : buffer.parts) {
      std::vector<Shadow::Range> inside;
      for (; range != ranges.end() && range->begin < end; ++range)
        inside.push_back({range->begin - first, range->end - first, range->owner});
      shadows.emplace_back(buffer.begin + first, end - first, owners, std::move(inside));
    }
  }
  return shadows;
}

Shadow DeviceMemory::workspace_shadow() const {
  const char* const begin = workspace_->data() + gap;
  return {begin, workspace_bytes_, {{.name = "the workspace", .base = begin}}};
}

}  // namespace tessera::internal::emulator
