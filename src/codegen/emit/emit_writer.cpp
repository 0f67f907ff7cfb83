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

namespace {

// The statement of a body that is one line, without its indentation; "": it has several, or declares something.
std::string_view only_statement(std::string_view header, std::string_view body) {
  const bool is_if = header.starts_with("if ("), is_control = is_if || header.starts_with("for (");
  if ((!is_control && header != "{\n") || body.empty() || body.find('\n') + 1 != body.size()) return {};
  const std::string_view statement = body.substr(body.find_first_not_of(' '), body.npos);
  const bool declares = statement.starts_with("const ") || statement.find_first_of("#{}") != statement.npos;
  // An else may follow the braces.
  const bool has_if = statement.starts_with("if (") || (is_if && statement.find("if (") != statement.npos);
  return declares || has_if || !statement.ends_with(";\n") ? std::string_view()
                                                           : statement.substr(0, statement.size() - 1);
}

}  // namespace

void Writer::close() {
  constexpr std::size_t most = 120;  // columns
  --depth;
  const Scope scope = scopes_.back();
  scopes_.pop_back();
  const bool declares = order_.size() > scope.declared;
  for (; order_.size() > scope.declared; order_.pop_back()) declared_.erase(order_.back());
  const std::size_t indent = static_cast<std::size_t>(depth) * 2;
  const std::string_view all = text, header = all.substr(scope.header + indent, scope.body - scope.header - indent);
  const std::string statement(declares ? "" : only_statement(header, all.substr(scope.body)));
  if (statement.empty()) return line("}}");
  if (header == "{\n") {
    text.resize(scope.header);
    return line("{}", statement);
  }
  constexpr std::size_t brace = 3;  // " {" and the end of the line
  text.resize(scope.body - brace);
  const bool fits = indent + header.size() - brace + 1 + statement.size() <= most;
  text += fits ? " " : "\n" + std::string(indent + 2, ' ');
  text += statement + "\n";
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
