#include "jit/inspect/kernel_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "codegen/kernel_source.hpp"
#include "codegen/lowering_record.hpp"
#include "graph/in_literal.hpp"
#include "graph/text_lines.hpp"
#include "jit/inspect/graph_drawing.hpp"
#include "jit/inspect/json_text.hpp"
#include "jit/inspect/ptx_listing.hpp"
#include "jit/inspect/roofline.hpp"

namespace tessera::internal {
namespace {

using Lines = std::vector<std::string>;
using Place = LoweringRecord::Place;

Lines lines_of(std::string_view text) {
  const std::vector<std::string_view> lines = text_lines(text);
  return {lines.begin(), lines.end()};
}

bool is_directive(std::string_view line) { return line.starts_with("#line "); }

/// The author's lines that a kernel came from: those that something names, and some around them.
class AuthorPane {
 public:
  AuthorPane(const LoweringRecord& record, const std::vector<Remark>& remarks, bool with_source) {
    std::map<std::string, std::set<unsigned>> named;
    const auto name = [&](const std::string& file, unsigned line) {
      if (!file.empty()) named[file].insert(line);
    };
    for (const LoweringRecord::Node& node : record.nodes) name(node.at.file, node.at.line);
    for (const LoweringRecord::Step& step : record.steps) name(step.at.file, step.at.line);
    for (const Remark& remark : remarks) name(remark.file, remark.line);
    int number = 0;
    for (const auto& [file, lines] : named) {
      ++number;
      const auto source = record.sources.find(file);
      const bool readable = source != record.sources.end() && with_source;
      add(with_source ? file : fmt::format("source {}", number), 0);
      if (readable) {
        constexpr unsigned around = 12;
        const auto count = static_cast<unsigned>(source->second.size());
        const unsigned first = *lines.begin() > around ? *lines.begin() - around : 1;
        for (unsigned line = first; line <= std::min(*lines.rbegin() + around, count); ++line) {
          rows_[{file, line}] = static_cast<int>(lines_.size());
          add(source->second[line - 1], line);
        }
      }
      for (const unsigned line : lines) {
        if (!rows_.try_emplace({file, line}, static_cast<int>(lines_.size())).second) continue;
        add(fmt::format("line {}", line), line);
      }
      if (!readable && with_source)
        note_ = fmt::format("{} cannot be read from this folder, or is newer than the program", file);
    }
    if (!with_source) note_ = "made without the author's text (--no-source)";
  }

  int row(const std::string& file, unsigned line) const {
    const auto found = rows_.find({file, line});
    return found == rows_.end() ? -1 : found->second;
  }
  int row(const Place& place) const { return row(place.file, place.line); }
  std::string json() const {
    JsonObject json;
    json.raw("lines", json_array(lines_));
    json.raw("numbers", json_array(numbers_));
    json.text("note", note_);
    return json.text();
  }

 private:
  void add(std::string_view line, unsigned number) {
    lines_.emplace_back(line);
    numbers_.push_back(static_cast<int>(number));
  }

  Lines lines_;
  std::vector<int> numbers_;
  std::map<std::pair<std::string, unsigned>, int> rows_;
  std::string note_;
};

/// The generated text as a reader wants it: the kernel in the author's words, then its helpers.
class CudaPane {
 public:
  explicit CudaPane(const KernelSource& source) {
    const Lines text = lines_of(source.text);
    row_of_line_.assign(text.size() + 1, -1);  // lines count from 1
    if (!source.record) {
      for (std::size_t i = 0; i < text.size(); ++i) add(text[i], i + 1, -1);
      return;
    }
    const auto mark =
        static_cast<std::size_t>(std::ranges::find(text, kernel_mark.substr(0, kernel_mark.size() - 1)) - text.begin());
    const bool reworded = !source.shown.empty();
    const std::size_t at = reworded ? source.shown.find(kernel_mark) + kernel_mark.size() : 0;
    const Lines kernel =
        reworded ? lines_of(std::string_view(source.shown).substr(at))
                 : Lines(text.begin() + static_cast<std::ptrdiff_t>(std::min(mark + 1, text.size())), text.end());
    std::vector<int> step(kernel.size(), 0);
    std::vector<std::vector<std::size_t>> from(kernel.size());
    for (std::size_t i = 0; mark + 1 + i < text.size(); ++i) {
      std::size_t shown = reworded && i < source.record->shown_lines.size()
                              ? static_cast<std::size_t>(source.record->shown_lines[i])
                              : i;
      shown = std::min(shown, kernel.size() - 1);
      from[shown].push_back(mark + 2 + i);
      if (i < source.record->kernel_steps.size() && source.record->kernel_steps[i] > 0)
        step[shown] = source.record->kernel_steps[i];
    }
    for (std::size_t i = 0; i < kernel.size(); ++i) {
      if (is_directive(trimmed(kernel[i]))) continue;
      add(kernel[i], 0, step[i]);
      for (const std::size_t line : from[i]) row_of_line_[line] = static_cast<int>(lines_.size()) - 1;
    }
    add("", 0, -1);
    add("// ---- helpers ----", 0, -1);
    const std::size_t first = static_cast<std::size_t>(std::ranges::find(text, std::string()) - text.begin());
    for (std::size_t i = first + 1; i < mark; ++i) add(text[i], i + 1, -1);
  }

  /// The rows of lines of compiled_text(), each once.
  std::vector<int> rows(const std::vector<unsigned>& lines) const {
    std::vector<int> rows;
    for (const unsigned line : lines) {
      const int row = line < row_of_line_.size() ? row_of_line_[line] : -1;
      if (row >= 0 && std::ranges::find(rows, row) == rows.end()) rows.push_back(row);
    }
    return rows;
  }
  std::string json() const {
    JsonObject json;
    json.raw("lines", json_array(lines_));
    json.raw("of", json_array(steps_));
    return json.text();
  }

 private:
  void add(std::string_view line, std::size_t number, int step) {
    if (number > 0) row_of_line_[number] = static_cast<int>(lines_.size());
    lines_.emplace_back(line);
    steps_.push_back(step);
  }

  Lines lines_;
  std::vector<int> steps_, row_of_line_;
};

std::string ptx_json(const InspectedCode& code, const CudaPane& cuda) {
  const std::vector<PtxLine> listing = ptx_listing(code.ptx);
  JsonObject json;
  json.raw("lines", json_array(listing, [](const PtxLine& line) { return in_json(line.text); }));
  json.raw("of", json_array(listing, [&](const PtxLine& line) { return json_array(cuda.rows(line.lines)); }));
  json.text("note", code.why_no_ptx);
  return json.text();
}

std::string sass_json(const InspectedCode& code, const CudaPane& cuda) {
  const auto row = [&](const SassInstruction& one) {
    const ControlCode control = ControlCode::decode(one.encoding);
    JsonObject json;
    json.number("a", one.address);
    if (!one.label.empty()) json.text("l", one.label);
    json.text("t", one.text);
    json.text("s", to_string(control));
    json.raw("c", fmt::format("[{},{},{},{},{},{}]", control.stall, control.yield ? 1 : 0, control.write_barrier,
                              control.read_barrier, control.wait, control.reuse));
    json.raw("k", json_array(cuda.rows(one.lines)));
    json.number("r", one.live_registers);
    return json.text();
  };
  JsonObject json;
  json.raw("rows", json_array(code.sass, row));
  json.text("note", code.why_no_sass);
  return json.text();
}

std::string plan_json(const KernelSource& source) {
  const LoweringRecord& record = *source.record;
  const std::string* before = nullptr;
  const auto pass = [&](const LoweringRecord::Pass& pass) {
    JsonObject json;
    json.text("name", pass.name);
    json.text("what", pass.what);
    if (!before || *before != pass.plan) json.raw("lines", json_array(lines_of(pass.plan)));
    before = &pass.plan;
    return json.text();
  };
  // A first line may name the dump of the graph.
  const Lines lines = lines_of(source.plan);
  std::vector<int> of(lines.size() - std::min(lines.size(), record.plan_steps.size()), -1);
  of.insert(of.end(), record.plan_steps.begin(), record.plan_steps.end());
  JsonObject json;
  json.raw("lines", json_array(lines));
  json.raw("of", json_array(of));
  json.raw("passes", json_array(record.passes, pass));
  return json.text();
}

std::string no_plan_json(const KernelSource& source) {
  JsonObject json;
  for (const char* const list : {"lines", "of", "passes"}) json.raw(list, "[]");
  json.text("note", source.by_hand ? "handwritten CUDA C++ has no plan"
                                   : "no plan was recorded of an edited text, or of several launches");
  return json.text();
}

std::string drawing_json(const LoweringRecord& record) {
  const GraphDrawing drawing = draw_graph(record);
  JsonObject json;
  json.number("width", drawing.width);
  json.number("height", drawing.height);
  json.raw("boxes", json_array(drawing.boxes, [&](const GraphDrawing::Box& box) {
             const LoweringRecord::Node& node = record.nodes[static_cast<std::size_t>(box.node)];
             JsonObject json;
             json.number("node", box.node);
             json.number("x", box.x);
             json.number("y", box.y);
             json.text("result", node.result);
             json.text("kind", node.is_access ? "effect" : node.is_matmul ? "math" : "");
             return json.text();
           }));
  json.raw("wires", json_array(drawing.wires, [](const GraphDrawing::Wire& wire) {
             return fmt::format("[{},{}]", wire.from, wire.to);
           }));
  return json.text();
}

std::string nodes_json(const LoweringRecord& record, const AuthorPane& author, Arch arch) {
  int number = 0;
  return json_array(record.nodes, [&](const LoweringRecord::Node& node) {
    JsonObject json;
    json.number("number", number++);
    json.text("op", node.op);
    json.number("at", author.row(node.at));
    json.number("bytes", node.bytes);
    json.number("flops", node.flops);
    json.text("bound", bound_text(node, arch));
    return json.text();
  });
}

std::string layouts_json(const LoweringRecord& record) {
  return json_array(record.layouts, [](const LoweringRecord::Layout& layout) {
    JsonObject json;
    json.text("name", layout.name);
    json.text("type", layout.type);
    json.text("storage", layout.storage);
    json.text("text", layout.text);
    json.number("registers", layout.registers);
    json.raw("shape", json_array(layout.shape));
    json.raw("axes", json_array(layout.axes, [](const std::vector<LoweringRecord::Factor>& axis) {
               return json_array(axis, [](const LoweringRecord::Factor& factor) {
                 return fmt::format("[{},{},{}]", factor.place, factor.size, factor.unit);
               });
             }));
    return json.text();
  });
}

std::string roles_json(const LoweringRecord& record) {
  return json_array(record.roles, [](const LoweringRecord::Role& role) {
    JsonObject json;
    json.text("title", role.title);
    json.raw("steps", json_array(role.steps, [](const LoweringRecord::RoleStep& step) {
               JsonObject json;
               json.number("step", step.step);
               json.number("depth", step.depth);
               json.text("text", step.text);
               if (!step.waits.empty()) json.text("waits", step.waits);
               if (!step.signals.empty()) json.text("signals", step.signals);
               return json.text();
             }));
    return json.text();
  });
}

/// Replaces the names of the author's files.
class FileNames {
 public:
  explicit FileNames(const KernelSource& source) {
    for (const Remark& remark : source.remarks) add(remark.file);
    if (!source.record) return;
    for (const LoweringRecord::Node& node : source.record->nodes) add(node.at.file);
    for (const LoweringRecord::Step& step : source.record->steps) add(step.at.file);
  }
  void hide(std::string& text) const {
    constexpr std::string_view instead = "source";
    // A path comes before the file's name in it.
    for (auto name = names_.rbegin(); name != names_.rend(); ++name)
      for (std::size_t at = 0; (at = text.find(*name, at)) != text.npos; at += instead.size())
        text.replace(at, name->size(), instead);
  }
  std::string hidden(std::string text) const {
    hide(text);
    return text;
  }

 private:
  void add(const std::string& path) {
    for (const std::string& file : {path, in_literal(path)})
      for (const std::string& name : {file, file.substr(file.find_last_of('/') + 1)})
        if (!name.empty()) names_.insert(name);
  }
  std::set<std::string> names_;
};

/// The same kernel without the author's text and the names of his files.
KernelSource without_source(const KernelSource& source, const FileNames& names) {
  KernelSource hidden = source;
  hidden.shown.clear();
  if (source.by_hand) hidden.text = "// CUDA C++ of the author\n";
  LoweringRecord record = source.record ? *source.record : LoweringRecord();
  for (std::string* const text : {&hidden.text, &hidden.plan, &record.graph}) names.hide(*text);
  for (LoweringRecord::Pass& pass : record.passes) names.hide(pass.plan);
  for (LoweringRecord::Role& role : record.roles)
    for (LoweringRecord::RoleStep& step : role.steps) names.hide(step.text);
  for (Remark& remark : hidden.remarks) names.hide(remark.message);
  if (source.record) hidden.record = std::make_shared<const LoweringRecord>(std::move(record));
  return hidden;
}

}  // namespace

std::string compiled_text(const KernelSource& source) {
  std::string text;
  for (const std::string& line : lines_of(source.text)) text += (is_directive(line) ? "" : line) + '\n';
  return text;
}

std::string view_json(const InspectedKernel& kernel) {
  static const LoweringRecord none;
  const FileNames names(kernel.source);
  const KernelSource hidden = kernel.with_source ? KernelSource() : without_source(kernel.source, names);
  const auto shown = [&](const std::string& text) { return in_json(kernel.with_source ? text : names.hidden(text)); };
  const KernelSource& source = kernel.with_source ? kernel.source : hidden;
  const LoweringRecord& record = source.record ? *source.record : none;
  const AuthorPane author(record, source.remarks, kernel.with_source);
  const CudaPane cuda(source);
  JsonObject json;
  json.text("kernel", source.author);
  json.text("arch", kernel.arch.name());
  json.text("label", kernel.label);
  json.text("command", kernel.command);
  json.raw("facts", json_array(kernel.facts, [&](const auto& fact) {
             return fmt::format("[{},{}]", in_json(fact.first), shown(fact.second));
           }));
  json.raw("notes", json_array(kernel.notes, shown));
  json.raw("remarks", json_array(source.remarks, [&](const Remark& remark) {
             JsonObject json;
             json.text("file", kernel.with_source ? remark.file : "");
             json.number("line", remark.line);
             json.number("at", author.row(remark.file, remark.line));
             json.text("status", name(remark.status));
             json.text("kind", remark.kind);
             json.text("message", remark.message);
             return json.text();
           }));
  json.raw("cpp", author.json());
  JsonObject graph;
  graph.raw("lines", json_array(lines_of(record.graph)));
  graph.raw("of", json_array(record.graph_nodes));
  graph.raw("drawing", drawing_json(record));
  json.raw("graph", graph.text());
  json.raw("nodes", nodes_json(record, author, kernel.arch));
  json.text("roofline", roofline_text(record, kernel.arch));
  json.raw("plan", source.record ? plan_json(source) : no_plan_json(source));
  json.raw("steps", json_array(record.steps, [&](const LoweringRecord::Step& step) {
             JsonObject json;
             json.raw("nodes", json_array(step.nodes));
             json.number("at", author.row(step.at));
             return json.text();
           }));
  json.raw("cuda", cuda.json());
  InspectedCode code = kernel.code;
  if (!kernel.with_source)
    for (std::string* const text : {&code.ptx, &code.why_no_ptx, &code.why_no_sass}) names.hide(*text);
  json.raw("ptx", ptx_json(code, cuda));
  json.raw("sass", sass_json(code, cuda));
  json.raw("layouts", layouts_json(record));
  json.raw("shared", json_array(record.shared, [](const LoweringRecord::Shared& piece) {
             JsonObject json;
             json.text("name", piece.name);
             json.number("bytes", piece.bytes);
             json.number("offset", piece.offset);
             json.number("first", piece.first);
             json.number("last", piece.last);
             return json.text();
           }));
  json.raw("roles", roles_json(record));
  return json.text();
}

}  // namespace tessera::internal
