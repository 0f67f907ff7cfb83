#include "jit/tune/job.hpp"

#include <algorithm>
#include <optional>

#include "jit/backend/overlap.hpp"
#include "jit/tune/archive.hpp"

namespace tessera::internal {

template <class Archive>
void fields(Archive& archive, ArchivedAs<TuneBlock> auto& b) {
  archive(b.bytes, b.misalignment, b.is_read, b.is_written, b.poison);
}
template <class Archive>
void fields(Archive& archive, ArchivedAs<TuneArgument> auto& a) {
  archive(a.block, a.offset, a.argument.extent, a.argument.stride, a.argument.scalar.u64);
}
template <class Archive>
void fields(Archive& archive, ArchivedAs<TuneJob> auto& j) {
  archive(j.version, j.device, j.graphs, j.blocks, j.arguments, j.tolerance, j.equal_bits, j.compiles_one_by_one);
}

std::string TuneJob::bytes() const {
  ArchiveWriter writer;
  writer(*this);
  return std::move(writer).bytes();
}

TuneJob TuneJob::from(std::string_view bytes) {
  ArchiveReader reader(bytes);
  TuneJob job;
  reader(job);
  for (const TuneArgument& a : job.arguments)
    if (a.block >= 0 && (static_cast<std::size_t>(a.block) >= job.blocks.size() ||
                         a.offset > job.blocks[static_cast<std::size_t>(a.block)].bytes))
      throw Error("a tuning job has an argument outside of its memory");
  return job;
}

void TuneJob::add_arguments(std::span<const Parameter> parameters, std::span<const Argument> given) {
  const auto range_of = [&](std::size_t i) -> std::optional<AddressRange> {
    if (parameters[i].access == Access::scalar || !given[i].data) return std::nullopt;
    return addresses(parameters[i], given[i]);
  };
  // Ranges in order of their addresses; those that overlap become one block.
  std::vector<AddressRange> ranges;
  for (std::size_t i = 0; i < given.size(); ++i)
    if (const auto range = range_of(i)) ranges.push_back(*range);
  std::ranges::sort(ranges, {}, &AddressRange::first);
  std::vector<AddressRange> merged;
  for (const AddressRange& range : ranges) {
    if (!merged.empty() && range.first <= merged.back().last)
      merged.back().last = std::max(merged.back().last, range.last);
    else
      merged.push_back(range);
  }
  for (const AddressRange& range : merged)
    blocks.push_back(
        {.bytes = range.last - range.first + 1, .misalignment = range.first % block_alignment, .address = range.first});
  for (std::size_t i = 0; i < given.size(); ++i) {
    TuneArgument& argument = arguments.emplace_back();
    argument.argument = given[i];
    argument.argument.data = nullptr;
    const auto range = range_of(i);
    if (!range) continue;
    const auto block = std::ranges::find_if(
        blocks, [&](const TuneBlock& b) { return b.address <= range->first && range->last < b.address + b.bytes; });
    block->is_read |= parameters[i].access != Access::out;
    block->is_written |= parameters[i].access != Access::in;
    if (info(parameters[i].type).kind != ElementKind::real) block->poison = 0xa5;
    argument.block = static_cast<int>(block - blocks.begin());
    argument.offset = reinterpret_cast<std::uintptr_t>(given[i].data) - block->address;
  }
}

}  // namespace tessera::internal
