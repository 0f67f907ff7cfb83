#include "codegen/emit/emit_writer.hpp"

#include <iterator>

#include "codegen/plan/names.hpp"
#include "codegen/plan/spelling.hpp"

namespace tessera::internal::codegen {

void Writer::add_line(fmt::string_view format, fmt::format_args args) {
  text.append(static_cast<std::size_t>(depth) * 2, ' ');
  fmt::vformat_to(std::back_inserter(text), format, args);
  text += '\n';
}

IndexExpression place_in(bool workspace, std::int64_t offset) {
  return IndexExpression::variable(workspace ? "workspace" : "shared") + offset;
}

void Writer::close() {
  --depth;
  for (; order_.size() > scopes_.back(); order_.pop_back()) declared_.erase(order_.back());
  scopes_.pop_back();
  line("}}");
}

bool Writer::declares(StorageId id) {
  if (!declared_.insert(id).second) return false;
  order_.push_back(id);
  return true;
}

void Writer::unroll(bool unrolled) {
  if (unrolled) unroll_by(0);
}

void Writer::unroll(const Sweep& sweep) {
  if (sweep.unrolled || sweep.at_once) unroll_by(sweep.unrolled ? 0 : sweep.at_once);
}

void Writer::unroll_by(int factor) { line("#pragma unroll{}", factor ? fmt::format(" {}", factor) : ""); }

IndexExpression Writer::lane() {
  uses.lane = true;
  return IndexExpression::variable("lane", 32);
}

IndexExpression Writer::warp() {
  uses.warp = true;
  return IndexExpression::variable("warp", role.warps);
}

void Writer::use_memory(bool in_workspace) { uses.shared |= !in_workspace; }

std::string Writer::name(ValueId value) {
  const StorageId storage = plan.values[value].storage;
  storages.insert(storage);
  return name_of(plan, storage);
}

const Buffer& Writer::buffer(BufferId id) {
  const Buffer& buffer = plan.buffers[id];
  buffers.insert(id);
  use_memory(buffer.in_workspace);
  return buffer;
}

IndexExpression Writer::extent(int parameter, int axis) const {
  return IndexExpression::variable(name_of(plan, {KernelParameter::Kind::extent, parameter, axis}));
}

IndexExpression Writer::extent(const TileAccess& access, int axis) const {
  if (!access.member) return extent(access.parameter, axis);
  return IndexExpression::variable(fmt::format("{}.extent[{}]", member_name(access), axis));
}

IndexExpression Writer::stride(const TileAccess& access, int axis) const {
  if (axis == plan.variant.tensors[static_cast<std::size_t>(access.parameter)].contiguous_axis) return 1;
  if (access.member) return IndexExpression::variable(fmt::format("{}.stride[{}]", member_name(access), axis));
  return IndexExpression::variable(name_of(plan, {KernelParameter::Kind::stride, access.parameter, axis}));
}

IndexExpression Writer::grid(int axis) const {
  return IndexExpression::variable(name_of(plan, {KernelParameter::Kind::grid, 0, phase.first_axis + axis}));
}

std::string Writer::scratch(ScratchId id, ElementType type) {
  const Scratch& scratch = plan.scratch[id];
  use_memory(scratch.in_workspace);
  return fmt::format("reinterpret_cast<{}*>({})", scratch_type(type), place_in(scratch.in_workspace, scratch.offset));
}

}  // namespace tessera::internal::codegen
