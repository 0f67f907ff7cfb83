#include "jit/inspect/kernel_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <compare>
#include <iterator>
#include <map>
#include <set>

#include "codegen/kernel_source.hpp"
#include "codegen/lowering_record.hpp"
#include "codegen/schedule/machine_model.hpp"
#include "graph/in_json.hpp"
#include "graph/in_literal.hpp"
#include "jit/inspect/graph_drawing.hpp"

namespace tessera::internal {
namespace {

using Lines = std::vector<std::string>;
using Place = LoweringRecord::Place;

Lines lines_of(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool is_directive(std::string_view line) { return line.starts_with("#line "); }

/// JSON, member after member.
class Json {
 public:
  void raw(std::string_view name, std::string_view json) {
    text_ += fmt::format("{}{}:{}", text_.empty() ? "" : ",", in_json(name), json);
  }
  void text(std::string_view name, std::string_view text) { raw(name, in_json(text)); }
  void number(std::string_view name, std::int64_t number) { raw(name, std::to_string(number)); }
  std::string object() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

/// An array of what each(element) makes of the elements.
std::string array(const auto& elements, const auto& each) {
  std::string text = "[";
  for (const auto& element : elements) {
    if (text.size() > 1) text += ',';
    text += each(element);
  }
  return text + "]";
}
std::string array(const Lines& lines) {
  return array(lines, [](const std::string& line) { return in_json(line); });
}
std::string array(const std::vector<int>& numbers) {
  return array(numbers, [](int number) { return std::to_string(number); });
}

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
      if (!readable && with_source) note_ = "the source cannot be read here, or is newer than the program";
    }
    if (!with_source) note_ = "made without the author's text (--no-source)";
  }

  int row(const std::string& file, unsigned line) const {
    const auto found = rows_.find({file, line});
    return found == rows_.end() ? -1 : found->second;
  }
  int row(const Place& place) const { return row(place.file, place.line); }
  std::string json() const {
    Json json;
    json.raw("lines", array(lines_));
    json.raw("numbers", array(numbers_));
    json.text("note", note_);
    return json.object();
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
  CudaPane(const KernelSource& source, bool with_source) {
    const Lines text = lines_of(source.text);
    row_of_line_.assign(text.size() + 1, -1);  // lines count from 1
    if (!source.record) {
      for (std::size_t i = 0; i < text.size(); ++i) add(text[i], i + 1, -1);
      return;
    }
    const auto mark =
        static_cast<std::size_t>(std::ranges::find(text, kernel_mark.substr(0, kernel_mark.size() - 1)) - text.begin());
    const bool reworded = with_source && !source.shown.empty();
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
      const std::string_view trimmed =
          std::string_view(kernel[i]).substr(std::min(kernel[i].find_first_not_of(' '), kernel[i].size()));
      if (is_directive(trimmed)) continue;
      const bool names_author = !with_source && trimmed.starts_with("// ") && trimmed.find(".") != trimmed.npos;
      add(names_author ? kernel[i].substr(0, kernel[i].find("//")) + "// ..." : kernel[i], 0, step[i]);
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
    Json json;
    json.raw("lines", array(lines_));
    json.raw("of", array(steps_));
    return json.object();
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

/// ".loc file line column[, function_name ..., inlined_at file line column]": where a line of PTX comes from.
class PtxPlaces {
 public:
  /// Reads a directive. Returns the line of the innermost function, that of its call, and so on.
  std::vector<unsigned> read(std::string_view directive) {
    constexpr std::string_view loc = ".loc", inlined = "inlined_at";
    Place at = place(directive.substr(loc.size()));
    if (const std::size_t call = directive.find(inlined); call != directive.npos)
      called_from_[at] = place(directive.substr(call + inlined.size()));
    else
      called_from_.erase(at);
    std::vector<unsigned> lines = {at.line};
    constexpr std::size_t deepest = 32;
    for (auto call = called_from_.find(at); call != called_from_.end() && lines.size() < deepest;
         call = called_from_.find(call->second))
      lines.push_back(call->second.line);
    return lines;
  }

 private:
  struct Place {
    unsigned line = 0, column = 0;
    auto operator<=>(const Place&) const = default;
  };
  static Place place(std::string_view text) {
    Place place;
    unsigned file = 0;
    const char *at = text.data(), *const end = at + text.size();
    for (unsigned* const number : {&file, &place.line, &place.column}) {
      while (at < end && (*at == ' ' || *at == '\t')) ++at;
      at = std::from_chars(at, end, *number).ptr;
    }
    return place;
  }
  std::map<Place, Place> called_from_;  // as the last directive said; calls come before what is inlined there
};

/// PTX without directives for debuggers, and the lines that each of its lines comes from.
std::string ptx_json(const InspectedCode& code, const CudaPane& cuda) {
  Lines lines;
  std::vector<std::vector<int>> of;
  PtxPlaces places;
  std::vector<unsigned> from;
  for (std::string& line : lines_of(code.ptx)) {
    const std::string_view text = std::string_view(line).substr(std::min(line.find_first_not_of(" \t"), line.size()));
    if (text.starts_with(".section") && text.find(".debug") != text.npos) break;
    if (text.starts_with(".file")) continue;
    if (text.starts_with(".loc")) {
      from = places.read(text);
      continue;
    }
    // A label or a bracket belongs to no line.
    const bool is_code = text.ends_with(';') && !text.starts_with('.');
    of.push_back(is_code ? cuda.rows(from) : std::vector<int>());
    lines.push_back(std::move(line));
  }
  Json json;
  json.raw("lines", array(lines));
  json.raw("of", array(of, [](const std::vector<int>& rows) { return array(rows); }));
  json.text("note", code.why_no_ptx);
  return json.object();
}

std::string sass_json(const InspectedCode& code, const CudaPane& cuda) {
  const auto row = [&](const SassInstruction& one) {
    const ControlCode control = ControlCode::decode(one.encoding);
    Json json;
    json.number("a", one.address);
    if (!one.label.empty()) json.text("l", one.label);
    json.text("t", one.text);
    json.raw("c", fmt::format("[{},{},{},{},{},{}]", control.stall, control.yield ? 1 : 0, control.write_barrier,
                              control.read_barrier, control.wait, control.reuse));
    json.raw("k", array(cuda.rows(one.lines)));
    json.number("r", one.live_registers);
    return json.object();
  };
  Json json;
  json.raw("rows", array(code.sass, row));
  json.text("note", code.why_no_sass);
  return json.object();
}

std::string plan_json(const KernelSource& source) {
  const LoweringRecord& record = *source.record;
  const std::string* before = nullptr;
  const auto pass = [&](const LoweringRecord::Pass& pass) {
    Json json;
    json.text("name", pass.name);
    json.text("what", pass.what);
    if (!before || *before != pass.plan) {
      const Lines now = lines_of(pass.plan);
      std::multiset<std::string_view> old;
      const Lines old_lines = before ? lines_of(*before) : Lines();
      for (const std::string& line : old_lines) old.insert(line);
      std::size_t same = 0;
      for (const std::string& line : now)
        if (const auto found = old.find(line); found != old.end()) old.erase(found), ++same;
      json.raw("lines", array(now));
      json.number("plus", static_cast<std::int64_t>(now.size() - same));
      json.number("minus", static_cast<std::int64_t>(old_lines.size() - same));
    }
    before = &pass.plan;
    return json.object();
  };
  // A first line may name the dump of the graph.
  const Lines lines = lines_of(source.plan);
  std::vector<int> of(lines.size() - std::min(lines.size(), record.plan_steps.size()), -1);
  of.insert(of.end(), record.plan_steps.begin(), record.plan_steps.end());
  Json json;
  json.raw("lines", array(lines));
  json.raw("of", array(of));
  json.raw("passes", array(record.passes, pass));
  return json.object();
}

struct Roof {
  double bytes_per_cycle, tensor_flops, fma_flops;  // of one multiprocessor
};
constexpr int multiprocessors = 132;
Roof roof_of(const MachineModel& machine) {
  return {machine.memory_bandwidth / multiprocessors, 2 * machine.macs, 2.0 * 128};
}

std::string nodes_json(const LoweringRecord& record, const AuthorPane& author, bool with_roof) {
  const Roof roof = roof_of(MachineModel::h200());
  int number = 0;
  return array(record.nodes, [&](const LoweringRecord::Node& node) {
    std::string bound;
    if (with_roof && node.bytes)
      bound = fmt::format("{:.0f} cycles of a multiprocessor's share of memory",
                          static_cast<double>(node.bytes) / roof.bytes_per_cycle);
    else if (with_roof && node.flops)
      bound = fmt::format("{:.0f} cycles of its {}",
                          static_cast<double>(node.flops) / (node.is_matmul ? roof.tensor_flops : roof.fma_flops),
                          node.is_matmul ? "tensor cores (16-bit operands)" : "FMA units");
    if (node.repeated && (node.bytes || node.flops)) bound += bound.empty() ? "an iteration" : ", an iteration";
    Json json;
    json.number("number", number++);
    json.text("op", node.op);
    json.number("at", author.row(node.at));
    json.number("bytes", node.bytes);
    json.number("flops", node.flops);
    json.text("bound", bound);
    return json.object();
  });
}

std::string roofline_text(const LoweringRecord& record, bool with_roof) {
  std::int64_t bytes = 0, flops = 0;
  bool repeated = false, matmul = false;
  for (const LoweringRecord::Node& node : record.nodes) {
    bytes += node.bytes, flops += node.flops;
    repeated |= node.repeated && (node.bytes || node.flops);
    matmul |= node.is_matmul;
  }
  std::string text = fmt::format("{} bytes and {} flops{}: {:.1f} flops a byte, if every access reaches memory.", bytes,
                                 flops, repeated ? " (loops whose trip counts the launch decides count once)" : "",
                                 bytes ? static_cast<double>(flops) / static_cast<double>(bytes) : 0.0);
  if (!with_roof) return text;
  const Roof roof = roof_of(MachineModel::h200());
  return text + fmt::format(" On an H200 memory and {} take as long as each other at {:.0f} flops a byte.",
                            matmul ? "tensor cores" : "FMA units",
                            (matmul ? roof.tensor_flops : roof.fma_flops) / roof.bytes_per_cycle);
}

std::string layouts_json(const LoweringRecord& record) {
  return array(record.layouts, [](const LoweringRecord::Layout& layout) {
    Json json;
    json.text("name", layout.name);
    json.text("type", layout.type);
    json.text("storage", layout.storage);
    json.text("text", layout.text);
    json.number("registers", layout.registers);
    json.raw("shape", array(layout.shape));
    json.raw("axes", array(layout.axes, [](const std::vector<LoweringRecord::Factor>& axis) {
               return array(axis, [](const LoweringRecord::Factor& factor) {
                 return fmt::format("[{},{},{}]", factor.place, factor.size, factor.unit);
               });
             }));
    return json.object();
  });
}

std::string roles_json(const LoweringRecord& record) {
  return array(record.roles, [](const LoweringRecord::Role& role) {
    Json json;
    json.text("title", role.title);
    json.raw("steps", array(role.steps, [](const LoweringRecord::RoleStep& step) {
               Json json;
               json.number("step", step.step);
               json.number("depth", step.depth);
               json.text("text", step.text);
               if (!step.waits.empty()) json.text("waits", step.waits);
               if (!step.signals.empty()) json.text("passes", step.signals);
               return json.object();
             }));
    return json.object();
  });
}

std::string_view name(Remark::Status status) {
  return status == Remark::Status::passed ? "passed" : status == Remark::Status::missed ? "missed" : "analysis";
}

/// Without the names of the author's files.
std::string anonymous(std::string text, const LoweringRecord& record) {
  std::set<std::string> files;
  for (const LoweringRecord::Node& node : record.nodes) files.insert(node.at.file);
  for (const LoweringRecord::Step& step : record.steps) files.insert(step.at.file);
  for (const std::string& path : files) {
    if (path.empty()) continue;
    const std::string file = in_literal(path);
    for (const std::string& name : {file, file.substr(file.find_last_of('/') + 1)})
      for (std::size_t at; (at = text.find(name)) != text.npos;) text.replace(at, name.size(), "source");
  }
  return text;
}

}  // namespace

std::string compiled_text(const KernelSource& source) {
  std::string text;
  for (const std::string& line : lines_of(source.text)) text += (is_directive(line) ? "" : line) + '\n';
  return text;
}

std::string view_json(const InspectedKernel& kernel) {
  static const LoweringRecord none;
  const KernelSource& source = kernel.source;
  const LoweringRecord& record = source.record ? *source.record : none;
  const AuthorPane author(record, source.remarks, kernel.with_source);
  const CudaPane cuda(source, kernel.with_source);
  const bool with_roof = kernel.arch == Arch::sm_90a;
  Json json;
  json.text("kernel", source.author);
  json.text("arch", kernel.arch.name());
  json.text("label", kernel.label);
  json.text("command", kernel.command);
  json.raw("facts", array(kernel.facts, [](const auto& fact) {
             return fmt::format("[{},{}]", in_json(fact.first), in_json(fact.second));
           }));
  json.raw("notes", array(kernel.notes));
  json.raw("remarks", array(source.remarks, [&](const Remark& remark) {
             Json json;
             json.text("file", kernel.with_source ? remark.file : "");
             json.number("line", remark.line);
             json.number("at", author.row(remark.file, remark.line));
             json.text("status", name(remark.status));
             json.text("kind", remark.kind);
             json.text("message", remark.message);
             return json.object();
           }));
  json.raw("cpp", author.json());
  Json graph;
  graph.raw("lines", array(lines_of(record.graph)));
  graph.raw("of", array(record.graph_nodes));
  graph.text("svg", graph_svg(record));
  json.raw("graph", graph.object());
  json.raw("nodes", nodes_json(record, author, with_roof));
  json.text("roofline", roofline_text(record, with_roof));
  json.raw("plan", source.record ? plan_json(source)
                                 : R"({"lines":[],"of":[],"passes":[],"note":"handwritten CUDA C++ has no plan"})");
  json.raw("steps", array(record.steps, [&](const LoweringRecord::Step& step) {
             Json json;
             json.raw("nodes", array(step.nodes));
             json.number("at", author.row(step.at));
             return json.object();
           }));
  json.raw("cuda", cuda.json());
  json.raw("ptx", ptx_json(kernel.code, cuda));
  json.raw("sass", sass_json(kernel.code, cuda));
  json.raw("layouts", layouts_json(record));
  json.raw("shared", array(record.shared, [](const LoweringRecord::Shared& piece) {
             Json json;
             json.text("name", piece.name);
             json.number("bytes", piece.bytes);
             json.number("offset", piece.offset);
             json.number("first", piece.first);
             json.number("last", piece.last);
             return json.object();
           }));
  json.raw("roles", roles_json(record));
  return kernel.with_source ? json.object() : anonymous(json.object(), record);
}

}  // namespace tessera::internal
