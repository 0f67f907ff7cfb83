#include "codegen/emit/emit_writer.hpp"

#include <cctype>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <tuple>

#include "codegen/plan/names.hpp"
#include "codegen/plan/spelling.hpp"

namespace tessera::internal::codegen {

namespace {

// A line that spells a step ends with this and the step's address, which thus move with it.
constexpr char noted = '\x1f';

void append_note(std::string& text, const Step* step) {
  if (!step) return;
  char digits[2 * sizeof(std::uintptr_t)];
  const auto end = std::to_chars(digits, std::end(digits), reinterpret_cast<std::uintptr_t>(step), 16).ptr;
  (text += noted).append(digits, end);
}

}  // namespace

void Writer::add_line(fmt::string_view format, fmt::format_args args) {
  text.append(static_cast<std::size_t>(depth) * 2, ' ');
  fmt::vformat_to(std::back_inserter(text), format, args);
  append_note(text, step);
  text += '\n';
}

StepLines step_lines(std::string_view text) {
  StepLines lines;
  lines.text.reserve(text.size());
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end), plain = line.substr(0, line.find(noted));
    std::uintptr_t step = 0;
    if (plain.size() < line.size())
      std::from_chars(line.data() + plain.size() + 1, line.data() + line.size(), step, 16);
    lines.text.append(plain) += '\n';
    lines.steps.push_back(reinterpret_cast<const Step*>(step));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

namespace {

std::string offset_name(std::string_view object) { return fmt::format("{}_offset", object); }
std::string stage_name(const Plan& plan, BufferId id) { return name_of(plan, id) + "_stage"; }

}  // namespace

IndexExpression place_in(bool workspace, std::int64_t offset, std::string_view object) {
  if (workspace) return IndexExpression::variable("workspace") + offset;
  return IndexExpression::variable("shared") + IndexExpression::variable(offset_name(object));
}

IndexExpression stage_bytes(const Plan& plan, BufferId id) {
  const Buffer& buffer = plan.buffers[id];
  return buffer.in_workspace ? IndexExpression(buffer.stage_bytes()) : IndexExpression::variable(stage_name(plan, id));
}

bool names(std::string_view text, std::string_view name) {
  const auto continues = [&](std::size_t at) {
    return at < text.size() && (text[at] == '_' || std::isalnum(static_cast<unsigned char>(text[at])));
  };
  for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1))
    if ((at == 0 || !continues(at - 1)) && !continues(at + name.size())) return true;
  return false;
}

std::string shared_offsets(const Plan& plan, std::string_view body) {
  constexpr std::size_t most = 120;                                         // columns
  std::set<std::tuple<std::int64_t, std::string, std::int64_t>> constants;  // by offset
  const auto add = [&](std::int64_t offset, const std::string& name, std::int64_t value) {
    if (names(body, name)) constants.insert({offset, name, value});
  };
  const auto add_place = [&](bool is_shared, std::int64_t offset, const std::string& object) {
    if (is_shared) add(offset, offset_name(object), offset);
  };
  for (int i = 0; i < plan.buffers.size(); ++i) {
    const BufferId id{i};
    const Buffer& buffer = plan.buffers[id];
    add_place(!buffer.in_workspace, buffer.offset, name_of(plan, id));
    if (!buffer.in_workspace) add(buffer.offset, stage_name(plan, id), buffer.stage_bytes());
  }
  for (int i = 0; i < plan.pipelines.size(); ++i)
    add_place(true, plan.pipelines[PipelineId{i}].offset, name_of(plan, PipelineId{i}));
  for (int i = 0; i < plan.scratch.size(); ++i)
    add_place(!plan.scratch[ScratchId{i}].in_workspace, plan.scratch[ScratchId{i}].offset, name_of(ScratchId{i}));
  for (int i = 0; i < plan.storages.size(); ++i) {
    const Storage& storage = plan.storages[StorageId{i}];
    add_place(storage.storage_class == StorageClass::shared, storage.offset, name_of(plan, StorageId{i}));
  }
  if (constants.empty()) return {};
  std::string text = "  // Shared memory: offsets, and bytes of a stage.\n  enum : int {\n";
  std::string line;
  for (const auto& [offset, name, value] : constants) {
    std::string one = fmt::format("{} = {},", name, value);
    if (!line.empty() && 5 + line.size() + one.size() > most) text += "    " + std::exchange(line, {}) + '\n';
    line += (line.empty() ? "" : " ") + one;
  }
  return text + "    " + line + "\n  };\n";
}

namespace {

// A line without its note, and the note.
std::pair<std::string, std::string> without_note(std::string_view line) {
  const std::size_t end = line.find('\n'), note = std::min(line.find(noted), end);
  return {std::string(line.substr(0, note)) + '\n', std::string(line.substr(note, end - note))};
}

// The statement of a body that is one line, without its indentation; "": it declares something.
std::string_view only_statement(std::string_view header, std::string_view body) {
  const bool is_if = header.starts_with("if ("), is_control = is_if || header.starts_with("for (");
  if (!is_control && header != "{\n") return {};
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
  const std::string_view all = text, body = all.substr(scope.body);
  if (declares || body.empty() || body.find('\n') + 1 != body.size()) return line("}}");
  const auto [header, header_note] =
      without_note(all.substr(scope.header + indent, scope.body - scope.header - indent));
  const auto [inside, note] = without_note(body);
  const std::string statement(only_statement(header, inside));
  if (statement.empty()) return line("}}");
  constexpr std::string_view brace = " {\n";
  const std::string opening = header == "{\n" ? "" : header.substr(0, header.size() - brace.size());
  const bool fits = indent + opening.size() + 1 + statement.size() <= most;
  text.resize(scope.header + indent);
  text += opening;
  if (!opening.empty()) text += fits ? " " : header_note + '\n' + std::string(indent + 2, ' ');
  text += statement + note + '\n';
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

std::string Writer::temporary(const Term& term, std::string_view op) {
  if (taken.empty())
    for (int i = 0; i < plan.storages.size(); ++i) taken.insert(name_of(plan, StorageId{i}));
  if (term.label.number < 0) return fmt::format("{}{}", op, temporaries++);
  const std::string own = name_of(term.label);
  std::string unique = own;
  for (int i = 2; !taken.insert(unique).second; ++i) unique = fmt::format("{}_{}", own, i);
  return unique;
}

std::string Writer::scratch(ScratchId id, ElementType type) {
  const Scratch& scratch = plan.scratch[id];
  use_memory(scratch.in_workspace);
  return fmt::format("reinterpret_cast<{}*>({})", scratch_type(type),
                     place_in(scratch.in_workspace, scratch.offset, name_of(id)));
}

}  // namespace tessera::internal::codegen
