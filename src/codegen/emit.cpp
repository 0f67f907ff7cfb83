// emit: a plan, spelled as CUDA C++. What is decided here changes no result: how far loops are unrolled, and names.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "codegen/plan.hpp"
#include "graph/error.hpp"
#include "graph/host_ops.hpp"

namespace tessera {
namespace {

std::string_view register_type(ElementType type) {
  if (type == ElementType::pred) return "bool";
  constexpr std::string_view names[] = {"float", "int", "i64"};
  return names[static_cast<int>(host_type(type))];
}
// In scratch memory, where a truth value takes as much room as a number.
std::string_view scratch_type(ElementType type) { return type == ElementType::pred ? "int" : register_type(type); }
std::string_view memory_type(ElementType type) {
  switch (type) {
    case ElementType::f32:
    case ElementType::tf32:
      return "float";
    case ElementType::i32:
      return "int";
    default:
      return name(type);
  }
}

std::string number(ElementType type, Cell cell) {
  if (type == ElementType::pred) return cell.i32 ? "true" : "false";
  switch (host_type(type)) {
    case HostType::f32: {
      if (std::isnan(cell.f32)) return "nan_value()";
      if (std::isinf(cell.f32)) return cell.f32 > 0 ? "infinity()" : "-infinity()";
      std::string text = fmt::format("{}", cell.f32);
      if (text.find_first_of(".e") == text.npos) text += ".0";
      return text + "f";
    }
    case HostType::i32:
      if (cell.i32 == std::numeric_limits<std::int32_t>::min()) return "(-2147483647 - 1)";
      return fmt::format("{}", cell.i32);
    case HostType::i64:
      if (cell.i64 == std::numeric_limits<std::int64_t>::min()) return "(-9223372036854775807ll - 1)";
      return fmt::format("{}ll", cell.i64);
  }
  return "";
}

// Parentheses around what is not one name, number or call.
std::string atom(std::string text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == '[') ++depth;
    if (text[i] == ')' || text[i] == ']') --depth;
    if (depth == 0 && (text[i] == ' ' || (i == 0 && (text[i] == '-' || text[i] == '!')))) return "(" + text + ")";
  }
  return text;
}

// "a + b" with a and b replaced, by what needs no parentheses there.
std::string substitute(std::string_view pattern, const std::string& a, const std::string& b) {
  const bool call = pattern.find('(') != pattern.npos;
  std::string text;
  const auto letter = [&](std::size_t i) {
    return i < pattern.size() && (std::isalnum(static_cast<unsigned char>(pattern[i])) || pattern[i] == '_');
  };
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const bool operand = (pattern[i] == 'a' || pattern[i] == 'b') && (i == 0 || !letter(i - 1)) && !letter(i + 1);
    const std::string& value = pattern[i] == 'a' ? a : b;
    text += operand ? (call ? value : atom(value)) : std::string(1, pattern[i]);
  }
  return text;
}

std::string joined(const std::vector<std::string>& parts, std::string_view between, std::string_view none) {
  return parts.empty() ? std::string(none) : fmt::format("{}", fmt::join(parts, between));
}

std::string digits(const std::vector<Digit>& map, const std::string& index, int count) {
  std::vector<std::string> parts;
  for (const Digit& digit : map) {
    std::string text = index;
    if (digit.unit != 1) text += fmt::format(" / {}", digit.unit);
    if (digit.unit * digit.size != count) text += fmt::format(" % {}", digit.size);
    if (digit.scale != 1) text += fmt::format(" * {}", digit.scale);
    parts.push_back(std::move(text));
  }
  return joined(parts, " + ", "0");
}

class Emitter {
 public:
  explicit Emitter(const Plan& plan) : plan_(plan) {}

  std::string run() {
    depth_ = plan_.persistent ? 2 : 1;
    scopes_.emplace_back();
    for (const Step& step : plan_.steps) emit(step);
    std::string body = std::move(text_);
    depth_ = 0;
    header();
    text_ += body;
    depth_ = 0;
    if (plan_.persistent) line("  }}");
    line("}}");
    return std::move(text_);
  }

 private:
  // --- text

  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    text_.append(static_cast<std::size_t>(depth_) * 2, ' ');
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }
  template <class... Args>
  void open(fmt::format_string<Args...> format, Args&&... args) {
    line(format, std::forward<Args>(args)...);
    ++depth_;
    scopes_.push_back(scopes_.back());
  }
  void close(std::string_view end = "}") {
    --depth_;
    scopes_.pop_back();
    line("{}", end);
  }
  void unroll(bool unrolled) {
    if (unrolled) line("#pragma unroll");
  }

  const Value& value(ValueId id) const { return plan_.values[static_cast<std::size_t>(id)]; }

  // --- header

  std::string tensor_name(int parameter) const {
    constexpr std::string_view access[] = {"in", "out", "inout", "scalar"};
    return fmt::format("{}{}", access[static_cast<int>(tensor(parameter).access)], parameter);
  }
  const Parameter& tensor(int parameter) const { return plan_.tensors[static_cast<std::size_t>(parameter)]; }
  std::string stride(int parameter, int axis) const {
    if (axis == plan_.variant.tensors[static_cast<std::size_t>(parameter)].unit_axis) return "";
    return fmt::format("{}_stride{}", tensor_name(parameter), axis);
  }

  void header() {
    using Kind = KernelParameter::Kind;
    std::vector<std::string> parameters;
    std::string current;
    for (const KernelParameter& p : plan_.parameters) {
      switch (p.kind) {
        case Kind::pointer: {
          const bool in = tensor(p.argument).access == Access::in;
          current = fmt::format("{}{}* __restrict__ {}", in ? "const " : "", memory_type(tensor(p.argument).type),
                                tensor_name(p.argument));
          break;
        }
        case Kind::extent:
          current = fmt::format("int {}_extent{}", tensor_name(p.argument), p.axis);
          break;
        case Kind::stride:
          current = fmt::format("{} {}_stride{}", plan_.variant.wide ? "i64" : "int", tensor_name(p.argument), p.axis);
          break;
        case Kind::scalar:
          current = fmt::format("{} scalar{}", register_type(tensor(p.argument).type), p.argument);
          break;
        case Kind::grid:
          current = fmt::format("int grid{}", p.axis);
          break;
        case Kind::blocks:
          current = fmt::format("{} blocks", block_type());
          break;
        case Kind::first_block:
          current = "i64 first_block";
          break;
        case Kind::workspace:
          current = "char* all_workspace";
          break;
      }
      parameters.push_back(current);
    }
    line("extern \"C\" __global__ void __launch_bounds__({}, {}) {}(", plan_.threads(), plan_.blocks, plan_.kernel);
    for (std::size_t i = 0; i < parameters.size(); ++i)
      line("    {}{}", parameters[i], i + 1 < parameters.size() ? "," : ") {");
    depth_ = 1;
    if (uses("shared")) line("char* const shared = shared_memory();");
    if (plan_.workspace_bytes)
      line("char* const workspace = all_workspace + block_index() * {}ll;", plan_.workspace_bytes);
    if (uses("thread")) line("const int thread = thread_index();");
    if (uses("lane")) line("const int lane = lane_index();");
    if (uses("warp")) line("const int warp = warp_index();");
    for (const ThreadTerm& term : terms_) {
      std::vector<std::string> parts;
      for (const auto& [factor, scale] : term.digits) {
        std::string text = factor.place == Place::lane ? "lane" : "warp";
        const int all = factor.place == Place::lane ? 32 : plan_.warps;
        if (factor.unit != 1) text += fmt::format(" / {}", factor.unit);
        if (factor.unit * factor.size != all) text += fmt::format(" % {}", factor.size);
        if (scale != 1) text += fmt::format(" * {}", scale);
        parts.push_back(std::move(text));
      }
      line("const int {} = {};", term.name, joined(parts, " + ", "0"));
    }
    std::set<std::string> pointers;
    for (const Value& v : plan_.values) {
      if (v.home != Home::shared && v.home != Home::workspace) continue;
      if (!mentioned_.contains(v.name) || !pointers.insert(v.name).second) continue;
      line("{0}* const {1} = reinterpret_cast<{0}*>({2} + {3}) + thread * {4};", register_type(v.type), v.name,
           v.home == Home::shared ? "shared" : "workspace", v.offset, v.vector);
    }
    for (const Buffer& buffer : plan_.buffers)
      if (mentioned_.contains(buffer.name))
        line("char* const {} = {} + {};", buffer.name, buffer.in_workspace ? "workspace" : "shared", buffer.offset);
    block_place();
  }
  bool uses(std::string_view what) const { return used_.contains(std::string(what)); }

  std::string_view block_type() const { return plan_.variant.wide ? "i64" : "u32"; }

  void block_place() {
    if (plan_.persistent) {
      line("for ({} block = block_index(); block < blocks; block += grid_size()) {{", block_type());
      depth_ = 2;
    } else {
      line("const {} block = {}block_index();", block_type(), plan_.variant.wide ? "first_block + " : "");
    }
    std::vector<int> axes;
    for (const KernelParameter& p : plan_.parameters)
      if (p.kind == KernelParameter::Kind::grid) axes.push_back(p.axis);
    const auto wanted = [&](int axis) { return mentioned_.contains(fmt::format("block{}", axis)); };
    // The last axis runs fastest; or the first two go in groups, inside of the others.
    const std::size_t grouped = plan_.raster ? 2 : 0;
    std::string rest = "block";
    if (grouped) {
      const std::string plane = fmt::format("(static_cast<{}>(grid0) * grid1)", block_type());
      line("const GridPlace place = grouped({}, grid0, grid1, {});", axes.size() > 2 ? "block % " + plane : "block",
           plan_.raster);
      if (wanted(0)) line("const int block0 = place.row;");
      if (wanted(1)) line("const int block1 = place.column;");
      rest = "block / " + plane;
    }
    for (std::size_t i = axes.size(); i-- > grouped;) {
      const std::string text = i > grouped ? fmt::format("{} % grid{}", rest, i) : rest;
      if (wanted(static_cast<int>(i))) line("const int block{} = static_cast<int>({});", i, text);
      rest += fmt::format(" / grid{}", i);
    }
  }

  // --- coordinates and values

  void use(std::string_view what) { used_.insert(std::string(what)); }
  void mention(const std::string& name) { mentioned_.insert(name); }

  std::string thread_term(const std::vector<std::pair<Factor, int>>& digits) {
    for (const ThreadTerm& term : terms_)
      if (term.digits == digits) return term.name;
    for (const auto& [factor, scale] : digits) use(factor.place == Place::lane ? "lane" : "warp");
    terms_.push_back({fmt::format("t{}", terms_.size()), digits});
    return terms_.back().name;
  }
  std::string coordinate(const Layout& layout, int axis, const std::string& index) {
    std::vector<std::string> parts;
    if (const auto of_thread = layout.thread_digits(axis); !of_thread.empty()) parts.push_back(thread_term(of_thread));
    if (const auto of_register = layout.register_digits(axis); !of_register.empty()) {
      const std::string text = digits(of_register, index, layout.registers());
      if (text != "0") parts.push_back(text);
    }
    return joined(parts, " + ", "0");
  }

  std::string element(const Value& v, const std::string& index) {
    mention(v.name);
    switch (v.home) {
      case Home::variable:
        return v.name;
      case Home::registers:
        return fmt::format("{}[{}]", v.name, index);
      default:
        use(v.home == Home::shared ? "shared" : "");
        use("thread");
        if (v.vector == 1) return fmt::format("{}[{} * {}]", v.name, atom(index), plan_.threads());
        return fmt::format("{0}[{1} / {2} * {3} + {1} % {2}]", v.name, atom(index), v.vector,
                           plan_.threads() * v.vector);
    }
  }
  std::string mapped(const Operand& operand, const std::string& index, int count) {
    return element(value(operand.index), digits(operand.map, index, count));
  }
  std::string scalar(const Operand& operand) {
    if (operand.kind == Operand::Kind::literal) return fmt::format("{}", decode(ElementType::i32, operand.literal).i32);
    mention(value(operand.index).name);
    return value(operand.index).name;
  }

  // Declares the value a step makes, unless a loop around declared it.
  void declare(ValueId id, bool array_only = true) {
    const Value& v = value(id);
    mention(v.name);
    if (v.home == Home::registers && scopes_.back().insert(v.name).second)
      line("{} {}[{}];", register_type(v.type), v.name, v.layout.registers());
    if (!array_only && v.home == Home::variable && scopes_.back().insert(v.name).second)
      line("{} {};", register_type(v.type), v.name);
    if (v.home == Home::shared) use("shared");
    if (v.home == Home::shared || v.home == Home::workspace) use("thread");
  }
  // "x[r] = " or "const float x = ".
  std::string assign(ValueId id, const std::string& index) {
    const Value& v = value(id);
    if (v.home != Home::variable) return element(v, index) + " = ";
    mention(v.name);
    if (!scopes_.back().insert(v.name).second) return v.name + " = ";
    return fmt::format("{}{} {} = ", v.changes ? "" : "const ", register_type(v.type), v.name);
  }

  // Which thread of those that hold copies acts for all.
  std::string first_copy(const Layout& layout) {
    std::vector<std::string> parts;
    if (const int lanes = layout.lane_copies()) {
      use("lane");
      parts.push_back(lanes == 31 ? "lane == 0" : fmt::format("(lane & {}) == 0", lanes));
    }
    if (const int warps = layout.warp_copies(plan_.warps)) {
      use("warp");
      parts.push_back(warps == plan_.warps - 1 ? "warp == 0" : fmt::format("(warp & {}) == 0", warps));
    }
    return joined(parts, " && ", "");
  }
  // Elements beyond the tile that a layout covers.
  std::string inside_tile(const Step& step, const std::string& index) {
    std::vector<std::string> parts;
    for (int axis = 0; axis < step.shape.rank(); ++axis)
      if (step.layout.covers_more(axis, step.shape))
        parts.push_back(fmt::format("{} < {}", coordinate(step.layout, axis, index), step.shape[axis]));
    return joined(parts, " && ", "");
  }
  static std::string both(const std::string& a, const std::string& b) {
    return a.empty() ? b : b.empty() ? a : a + " && " + b;
  }

  // --- expressions

  std::string operand(const Step& step, const std::vector<std::string>& made, const Operand& o, ElementType type,
                      const std::string& index, int count) {
    switch (o.kind) {
      case Operand::Kind::term:
        return made[static_cast<std::size_t>(o.index)];
      case Operand::Kind::value:
        return mapped(o, index, count);
      case Operand::Kind::fetched: {
        const TileAccess& read = step.reads[static_cast<std::size_t>(o.index)];
        return read.vector > 1 ? fmt::format("{}[r - g]", read.name) : read.name;
      }
      case Operand::Kind::literal:
        return number(type, decode(type, o.literal));
      case Operand::Kind::coordinate:
        return coordinate(step.layout, o.index, index);
    }
    return "";
  }

  static std::string spell(const Term& term, const std::vector<std::string>& in) {
    switch (term.op) {
      case Op::broadcast:
        return in[0];
      case Op::select:
        if (info(term.type).kind == ElementKind::integer) return fmt::format("select({}, {}, {})", in[0], in[1], in[2]);
        return fmt::format("{} ? {} : {}", atom(in[0]), atom(in[1]), atom(in[2]));
      case Op::cast: {
        if (term.type == ElementType::f32 && info(term.operand).kind == ElementKind::real) return in[0];
        return fmt::format("cast_{}({})", name(term.type), in[0]);
      }
      default: {
        const OpInfo& op = info(term.op);
        const bool real = info(term.operand).kind == ElementKind::real;
        return substitute(real ? op.cuda_real : op.cuda_integer, in[0], in.size() > 1 ? in[1] : "");
      }
    }
  }

  // The step's expression for one element. Terms that are used twice, or are long, get a name.
  std::string expression(const Step& step, const std::string& index) {
    const auto& terms = step.expression.terms;
    std::vector<int> uses(terms.size());
    for (const Term& term : terms)
      for (const Operand& in : term.in)
        if (in.kind == Operand::Kind::term) ++uses[static_cast<std::size_t>(in.index)];
    std::vector<std::string> made;
    for (std::size_t i = 0; i < terms.size(); ++i) {
      const Term& term = terms[i];
      std::vector<std::string> in;
      for (std::size_t k = 0; k < term.in.size(); ++k) {
        const ElementType type = term.op == Op::select && k == 0 ? ElementType::pred : term.operand;
        in.push_back(operand(step, made, term.in[k], type, index, step.layout.registers()));
      }
      std::string text = spell(term, in);
      const bool last = i + 1 == terms.size();
      if (!last && (uses[i] > 1 || text.size() > 60)) {
        std::string name =
            fmt::format("{}{}", term.op == Op::select ? "where" : tessera::name(term.op), temporaries_++);
        line("const {} {} = {};", register_type(term.type), name, text);
        text = std::move(name);
      }
      made.push_back(std::move(text));
    }
    return made.back();
  }

  // --- tiles of tensors

  // Start, window and pointer of a tile.
  void place(const TileAccess& access, bool writes) {
    const std::string tensor = tensor_name(access.parameter);
    std::vector<std::string> offset;
    for (std::size_t i = 0; i < access.axes.size(); ++i) {
      const TileAccess::Axis& axis = access.axes[i];
      if (axis.tensor_axis < 0) continue;
      const std::string at = fmt::format("{}_at{}", access.name, i), in = fmt::format("{}_in{}", access.name, i);
      const std::string extent = fmt::format("{}_extent{}", tensor, axis.tensor_axis);
      const bool gathered = access.rows >= 0 && i == 0;
      std::string start;
      if (gathered) {
        for (const TileAccess::Slice& slice : axis.slices)
          start += fmt::format("{}static_cast<i64>({})", start.empty() ? "" : " + ", scalar(slice.start));
      } else {
        std::string index = scalar(axis.index);
        start = index == "0"                              ? ""
                : axis.extent == 1 && axis.slices.empty() ? index
                : axis.extent == 1                        ? fmt::format("static_cast<i64>({})", index)
                                   : fmt::format("static_cast<i64>({}) * {}", index, axis.extent);
        std::string window;
        for (const TileAccess::Slice& slice : axis.slices) {
          const std::string this_window =
              fmt::format("window({}, {}, {})", start.empty() ? "0" : start, axis.extent, scalar(slice.extent));
          window = window.empty() ? this_window : fmt::format("both({}, {})", window, this_window);
          const std::string by = scalar(slice.start);
          if (by != "0")
            start = start.empty() ? fmt::format("static_cast<i64>({})", by) : fmt::format("{} + {}", start, by);
        }
        const std::string this_window =
            fmt::format("window({}, {}, {})", start.empty() ? "0" : start, axis.extent, extent);
        line("const Window {} = {};", in,
             window.empty() ? this_window : fmt::format("both({}, {})", window, this_window));
      }
      if (start.empty()) continue;
      const std::string by = stride(access.parameter, axis.tensor_axis);
      // 64 bits: a tile may start far outside.
      line("const i64 {} = {};", at, start);
      offset.push_back(by.empty() ? at : fmt::format("{} * {}", at, by));
    }
    line("{}{}* const {}_base = {}{};", writes ? "" : "const ", memory_type(this->tensor(access.parameter).type),
         access.name, tensor, offset.empty() ? "" : fmt::format(" + ({})", fmt::join(offset, " + ")));
  }

  struct Spot {
    std::string inside, offset;
  };
  // In a debug build of a kernel every access is checked against the tensor's reach.
  Spot checked(const TileAccess& access, Spot spot) {
    if (!plan_.debug) return spot;
    const std::string tensor = tensor_name(access.parameter);
    std::vector<std::string> low{"0"}, high{"0"};
    for (int axis = 0; axis < this->tensor(access.parameter).rank; ++axis) {
      const std::string by = stride(access.parameter, axis);
      const std::string reach =
          fmt::format("({}_extent{} - 1) * static_cast<i64>({})", tensor, axis, by.empty() ? "1" : by);
      low.push_back(fmt::format("reach_below({})", reach));
      high.push_back(fmt::format("reach_above({})", reach));
    }
    line("if ({}) check_offset({}_base - {} + ({}), {}, {}, {}, {});", spot.inside, access.name, tensor, spot.offset,
         access.vector, fmt::join(low, " + "), fmt::join(high, " + "), line_);
    return spot;
  }
  // Condition and offset of the element at the given coordinates of the tile.
  Spot spot(const TileAccess& access, const std::vector<std::string>& at, const std::string& row) {
    std::vector<std::string> inside, offset;
    for (std::size_t i = 0; i < access.axes.size(); ++i) {
      const TileAccess::Axis& axis = access.axes[i];
      if (axis.tensor_axis < 0) {
        if (at[i] != "0") inside.push_back(fmt::format("{} < 1", at[i]));
        continue;
      }
      const bool gathered = access.rows >= 0 && i == 0;
      const std::string by = stride(access.parameter, axis.tensor_axis);
      if (gathered) {
        std::string position = row;
        for (const TileAccess::Slice& slice : axis.slices) {
          inside.push_back(fmt::format("{0} >= 0 && {0} < {1}", position, scalar(slice.extent)));
          position = fmt::format("(static_cast<i64>({}) + {})", position, scalar(slice.start));
        }
        inside.push_back(
            fmt::format("{0} >= 0 && {0} < {1}_extent{2}", position, tensor_name(access.parameter), axis.tensor_axis));
        offset.push_back(by.empty() ? row : fmt::format("static_cast<i64>({}) * {}", row, by));
        continue;
      }
      const std::string in = fmt::format("{}_in{}", access.name, i);
      inside.push_back(axis.positive && axis.slices.empty() ? fmt::format("{} < {}.high", at[i], in)
                                                            : fmt::format("within({}, {})", in, at[i]));
      if (at[i] != "0") offset.push_back(by.empty() ? at[i] : fmt::format("{} * {}", atom(at[i]), by));
    }
    return {joined(inside, " && ", "true"), joined(offset, " + ", "0")};
  }
  Spot spot(const Step& step, const TileAccess& access, const std::string& index) {
    std::vector<std::string> at;
    const int shift = step.shape.rank() - static_cast<int>(access.axes.size());
    for (int i = 0; i < static_cast<int>(access.axes.size()); ++i) {
      const bool stretched = access.axes[static_cast<std::size_t>(i)].extent != step.shape[i + shift];
      at.push_back(stretched ? "0" : coordinate(step.layout, i + shift, index));
    }
    std::string row;
    if (access.rows >= 0) {
      line("const int {}_row = {};", access.name,
           element(value(access.rows), digits(access.rows_map, index, step.layout.registers())));
      row = access.name + "_row";
      // Rows that the layout has beyond the tile's are none.
      Spot result = spot(access, at, row);
      if (at[0] != "0" && step.layout.covers_more(shift, step.shape))
        result.inside = fmt::format("{} < {} && {}", at[0], step.shape[shift], result.inside);
      return checked(access, std::move(result));
    }
    return checked(access, spot(access, at, row));
  }

  // --- sweeps

  bool is_one(const Step& step) const { return step.layout.registers() == 1; }

  // Runs over the elements a thread holds; each(index) spells what happens to one, with its reads at hand. `begin` and
  // `end` stand around a group of neighbours.
  template <class Begin, class Each, class End>
  void sweep(const Step& step, Begin&& begin, Each&& each, End&& end) {
    const bool scoped = !step.reads.empty();
    if (scoped) {
      if (step.out >= 0) declare(step.out, false);
      open("{{");
    }
    for (const TileAccess& read : step.reads) place(read, false);
    elements(step, begin, each, end);
    if (scoped) close();
  }
  template <class Begin, class Each, class End>
  void elements(const Step& step, Begin&& begin, Each&& each, End&& end) {
    const int count = step.layout.registers();
    const auto element_reads = [&](const std::string& index) {
      for (const TileAccess& read : step.reads) {
        if (read.vector > 1) continue;
        const Spot at = spot(step, read, index);
        line("const {} {} = {};", register_type(tensor(read.parameter).type), read.name, read_element(read, at));
      }
    };
    if (count == 1) {
      element_reads("0");
      begin("0");
      each(std::string("0"));
      end("0");
      return;
    }
    if (step.vector == 1) {
      unroll(step.unrolled);
      open("for (int r = 0; r < {}; ++r) {{", count);
      element_reads("r");
      begin("r");
      each(std::string("r"));
      end("r");
      close();
      return;
    }
    unroll(step.unrolled);
    open("for (int g = 0; g < {}; g += {}) {{", count, step.vector);
    for (const TileAccess& read : step.reads) {
      if (read.vector == 1) continue;
      const ElementType type = tensor(read.parameter).type;
      const Spot at = spot(step, read, "g");
      line("{} {}[{}];", register_type(type), read.name, read.vector);
      line("{}", read_vector(read, at, read.name));
    }
    begin("g");
    unroll(true);
    open("for (int r = g; r < g + {}; ++r) {{", step.vector);
    element_reads("r");
    each(std::string("r"));
    close();
    end("g");
    close();
  }
  template <class Each>
  void sweep(const Step& step, Each&& each) {
    sweep(
        step, [](const std::string&) {}, each, [](const std::string&) {});
  }

  // --- steps

  void emit(const Step& step) {
    line_ = step.location.line;
    if (step.location.file && *step.location.file && step.kind != Step::Kind::barrier && step.kind != Step::Kind::wait)
      where(step);
    switch (step.kind) {
      case Step::Kind::compute:
        return compute(step);
      case Step::Kind::load:
        return load(step);
      case Step::Kind::store:
      case Step::Kind::scatter:
      case Step::Kind::atomic:
        return store(step);
      case Step::Kind::reduce:
        return reduce(step);
      case Step::Kind::argmax:
        return argmax(step);
      case Step::Kind::replicas:
        return replicas(step);
      case Step::Kind::put:
        return put(step);
      case Step::Kind::scan:
        use("shared");
        line("scan_lines({}, {}, {}, {}, {});",
             scratch(step, plan_.scratch[static_cast<std::size_t>(step.scratch)].type), step.lines, step.length,
             step.inner, plan_.threads());
        return;
      case Step::Kind::get:
        return get(step);
      case Step::Kind::stage:
        return stage(step);
      case Step::Kind::clear: {
        const Buffer& buffer = this->buffer(step.buffer);
        line("clear_tile<{}>({}, {});", plan_.threads(), buffer.name, buffer.stage_bytes() / 16);
        return;
      }
      case Step::Kind::fetch:
        return fetch(step);
      case Step::Kind::wait:
        line("copy_async_commit();");
        line("copy_async_wait<0>();");
        return;
      case Step::Kind::product:
        return product(step);
      case Step::Kind::barrier:
        line("barrier();");
        return;
      case Step::Kind::loop:
        return loop(step);
      case Step::Kind::branch:
        open("if ({}) {{", scalar(step.count));
        for (const Step& inner : step.body) emit(inner);
        close();
        return;
    }
  }

  // The ops that a step computes, in order.
  static std::string what(const Step& step) {
    std::vector<std::string_view> ops;
    for (const Term& term : step.expression.terms)
      if (term.op != Op::broadcast && (ops.empty() || ops.back() != name(term.op))) ops.push_back(name(term.op));
    constexpr std::string_view kinds[] = {"", "load", "store",  "scatter", "atomic_add", "", "argmax",
                                          "", "move", "cumsum", "move",    "stage",      "", "fetch",
                                          "", "mma",  "",       "range",   "if_"};
    std::string_view kind = kinds[static_cast<int>(step.kind)];
    if (step.kind == Step::Kind::reduce || step.kind == Step::Kind::replicas) kind = name(step.op);
    if (!kind.empty()) ops.push_back(kind);
    if (ops.empty()) ops.push_back("copy");
    return fmt::format("{}", fmt::join(ops, ", "));
  }

  // One comment, and a line directive, for what the author wrote in one place.
  void where(const Step& step) {
    const std::string file(step.location.file);
    std::string text = fmt::format("#line {} \"{}\"", step.location.line, file);
    const std::string ops = what(step);
    if (text == last_place_ && ops == last_ops_ && depth_ == last_depth_) return;
    const std::size_t slash = file.find_last_of('/');
    line("// {}: {}", slash == file.npos ? file : file.substr(slash + 1), ops);
    if (text != last_place_) text_ += text + '\n';
    last_place_ = std::move(text);
    last_ops_ = ops;
    last_depth_ = depth_;
  }

  void compute(const Step& step) {
    declare(step.out);
    const bool masked = step.replica_lanes || step.replica_warps;
    std::string mask;
    if (masked) {
      if (step.replica_lanes) use("lane");
      if (step.replica_warps) use("warp");
      mask = both(step.replica_lanes ? fmt::format("(lane & {}) == 0", step.replica_lanes) : "",
                  step.replica_warps ? fmt::format("(warp & {}) == 0", step.replica_warps) : "");
    }
    sweep(step, [&](const std::string& index) {
      std::string text = expression(step, index);
      if (masked && text != "0.0f") text = fmt::format("{} ? {} : 0.0f", mask, atom(text));
      const std::string to = assign(step.out, index);
      line("{}{};", to, text);
    });
  }

  bool is_input(const TileAccess& access) const { return tensor(access.parameter).access == Access::in; }
  std::string padding(const TileAccess& access) const {
    const ElementType type = tensor(access.parameter).type;
    return number(type, decode(type, access.padding));
  }
  // Place and mask of a read, and what stands for the elements outside; of an input that is 0 if not said.
  std::string source(const TileAccess& access, const Spot& at) const {
    return fmt::format("{}_base + ({}), {}{}", access.name, at.offset, at.inside,
                       is_input(access) && access.padding == 0 ? "" : ", " + padding(access));
  }
  std::string read_vector(const TileAccess& access, const Spot& at, std::string_view to) const {
    return fmt::format("{}<{}>({}, {});", is_input(access) ? "read_input" : "read_vector", access.vector, to,
                       source(access, at));
  }
  std::string read_element(const TileAccess& access, const Spot& at) const {
    if (is_input(access)) return fmt::format("read_input({})", source(access, at));
    return fmt::format("{} ? from_memory({}_base[{}]) : {}", at.inside, access.name, at.offset, padding(access));
  }

  void load(const Step& step) {
    const TileAccess& access = *step.access;
    const Value& out = value(step.out);
    declare(step.out, false);
    place(access, false);
    const ElementType type = tensor(access.parameter).type;
    const int count = step.layout.registers();
    if (access.vector > 1) {
      unroll(step.unrolled);
      open("for (int g = 0; g < {}; g += {}) {{", count, access.vector);
      const Spot at = spot(step, access, "g");
      if (out.home == Home::registers) {
        line("{}", read_vector(access, at, out.name + " + g"));
      } else {
        line("{} read[{}];", register_type(type), access.vector);
        line("{}", read_vector(access, at, "read"));
        unroll(true);
        line("for (int r = g; r < g + {}; ++r) {} = read[r - g];", access.vector, element(out, "r"));
      }
      close();
      return;
    }
    const bool one = count == 1;
    if (one) {
      open("{{");
    } else {
      unroll(step.unrolled);
      open("for (int r = 0; r < {}; ++r) {{", count);
    }
    const std::string index = one ? "0" : "r";
    const Spot at = spot(step, access, index);
    line("{} = {};", element(out, index), read_element(access, at));
    close();
  }

  void store(const Step& step) {
    const TileAccess& access = *step.access;
    const ElementType type = tensor(access.parameter).type;
    open("{{");
    place(access, true);
    const std::string mine = first_copy(step.layout);
    const auto check = [&](const std::string& text) {
      if (plan_.debug && info(type).kind == ElementKind::real)
        line("if ({0} != {0}) debug_fail(\"NaN is stored\", {1});", text, step.location.line);
    };
    if (access.vector > 1) {
      sweep(
          step, [&](const std::string&) { line("{} out[{}];", register_type(type), access.vector); },
          [&](const std::string& index) {
        const std::string text = expression(step, index);
        line("out[r - g] = {};", text);
        check("out[r - g]");
          },
          [&](const std::string& index) {
        const Spot at = spot(step, access, index);
        line("if ({}) store_vector<{}>({}_base + ({}), out);", both(mine, at.inside), access.vector, access.name,
             at.offset);
      });
    } else {
      sweep(step, [&](const std::string& index) {
        const Spot at = spot(step, access, index);
        const std::string text = expression(step, index);
        if (step.kind == Step::Kind::atomic)
          line("if ({}) atomic_add({}_base + ({}), {});", both(mine, at.inside), access.name, at.offset, text);
        else if (step.kind == Step::Kind::scatter)
          line("if ({}) scatter_element({}_base + ({}), to_memory<{}>({}));", both(mine, at.inside), access.name,
               at.offset, memory_type(type), text);
        else
          line("if ({}) {}_base[{}] = to_memory<{}>({});", both(mine, at.inside), access.name, at.offset,
               memory_type(type), text);
      });
    }
    close();
  }

  // --- across threads

  std::string combine(Op op, ElementType type, const std::string& a, const std::string& b) const {
    return substitute(info(type).kind == ElementKind::real ? info(op).cuda_real : info(op).cuda_integer, a, b);
  }
  static std::string identity(Op op, ElementType type) {
    Cell cell;
    const auto of = [&]<class T>(T) {
      switch (op) {
#define UNARY(...)
#define BINARY(...)
#define STRUCTURAL(...)
#define REDUCTION(name, ...) \
  case Op::name:             \
    return math::Host<Op::name>::identity<T>();
#include "graph/ops.def"
        default:
          return std::numeric_limits<T>::lowest();
      }
    };
    switch (host_type(type)) {
      case HostType::f32:
        cell.f32 = of(0.0f);
        break;
      case HostType::i32:
        cell.i32 = of(std::int32_t(0));
        break;
      case HostType::i64:
        cell.i64 = of(std::int64_t(0));
        break;
    }
    return number(type, cell);
  }
  std::string scratch(const Step& step, ElementType type) {
    const Scratch& s = plan_.scratch[static_cast<std::size_t>(step.scratch)];
    use(s.in_workspace ? "" : "shared");
    return fmt::format("reinterpret_cast<{}*>({} + {})", scratch_type(type), s.in_workspace ? "workspace" : "shared",
                       s.offset);
  }

  template <class Each>
  void over_results(const Value& out, Each&& each) {
    const int count = out.layout.registers();
    if (count == 1) return each(std::string("0"));
    unroll(out.home == Home::registers);
    open("for (int i = 0; i < {}; ++i) {{", count);
    each(std::string("i"));
    close();
  }
  static std::vector<int> lane_masks(const std::vector<std::pair<Factor, int>>& of_thread) {
    std::vector<int> masks;
    for (const auto& [factor, scale] : of_thread)
      if (factor.place == Place::lane)
        for (int bit = factor.unit; bit < factor.unit * factor.size; bit *= 2) masks.push_back(bit);
    std::sort(masks.begin(), masks.end());
    return masks;
  }

  // The warps that hold parts of one result, added up in the same order by each.
  template <class Exchange>
  void over_warps(const Value& out, Exchange&& exchange) {
    use("lane");
    use("warp");
    const int count = out.layout.registers(), chunk = std::min(count, most_partials);
    if (count > chunk) {
      unroll(out.home == Home::registers);
      open("for (int c = 0; c < {}; c += {}) {{", count, chunk);
      line("if (c > 0) barrier();");
    }
    // Registers of this round: i, of result c + i.
    const auto round = [&](const auto& body) {
      if (chunk == 1) return body(std::string("0"), std::string("0"));
      unroll(true);
      open("for (int i = 0; i < {}; ++i) {{", chunk);
      const bool guard = count % chunk != 0;
      if (guard) open("if (c + i < {}) {{", count);
      body(std::string("i"), count > chunk ? std::string("c + i") : std::string("i"));
      if (guard) close();
      close();
    };
    exchange(round, [&](const std::string& slot, const std::string& warp) {
      return warp == "0" ? fmt::format("[{} * {} + lane]", slot, plan_.threads())
                         : fmt::format("[({} * {} + {}) * 32 + lane]", slot, plan_.warps, atom(warp));
    });
    if (count > chunk) close();
  }
  static std::vector<int> bits_of(int mask) {
    std::vector<int> bits;
    for (int bit = 1; bit <= mask; bit *= 2)
      if (mask & bit) bits.push_back(bit);
    return bits;
  }
  // Calls body(warp) for every warp whose index differs from this warp's in the bits only, those of one factor, in
  // rising order. Unrolled, the loop would be most of a small kernel's code, and of its compilation.
  template <class Body>
  void over_members(int bits, Body&& body) {
    const int unit = bits & -bits, others = ~bits & (plan_.warps - 1);
    if ((bits / unit & (bits / unit + 1)) != 0) throw InternalError("warps of two factors hold parts of one result");
    const std::string first = others ? fmt::format("(warp & {})", others) : "0";
    const auto member = [&](const std::string& by) { return others ? fmt::format("{} + {}", first, by) : by; };
    body(first);
    if (bits == unit) return body(member(fmt::format("{}", unit)));
    line("#pragma unroll 1");
    open("for (int other = {0}; other <= {1}; other += {0}) {{", unit, bits);
    body(member("other"));
    close();
  }
  static int warp_bits(const Layout& layout, int axis) {
    int bits = 0;
    for (const Factor& factor : layout.axis(axis))
      if (factor.place == Place::warp) bits |= (factor.size - 1) * factor.unit;
    return bits;
  }

  void combine_warps(const Step& step, ElementType type, int bits) {
    const Value& out = value(step.out);
    open("{{");
    line("{}* const partial = {};", scratch_type(type), scratch(step, type));
    over_warps(out, [&](const auto& round, const auto& slot) {
      round([&](const std::string& i, const std::string& result) {
        line("partial{} = {};", slot(i, "warp"), element(out, result));
      });
      line("barrier();");
      bool first = true;
      over_members(bits, [&](const std::string& warp) {
        round([&](const std::string& i, const std::string& result) {
          const std::string to = element(out, result), from = "partial" + slot(i, warp);
          line("{} = {};", to, first ? from : combine(step.op, type, to, from));
        });
        first = false;
      });
    });
    close();
  }

  void reduce(const Step& step) {
    const Value& out = value(step.out);
    const ElementType type = out.type;
    declare(step.out, false);
    over_results(out,
                 [&](const std::string& index) { line("{} = {};", element(out, index), identity(step.op, type)); });
    const std::vector<Digit> map = register_map(out.layout, step.layout);
    const bool padded = step.layout.covers_more(step.axis, step.shape);
    sweep(step, [&](const std::string& index) {
      std::string text = expression(step, index);
      const std::string to = element(out, digits(map, index, step.layout.registers()));
      if (padded)
        line("if ({} < {}) {} = {};", coordinate(step.layout, step.axis, index), step.shape[step.axis], to,
             combine(step.op, type, to, text));
      else
        line("{} = {};", to, combine(step.op, type, to, text));
    });
    for (int mask : lane_masks(step.layout.thread_digits(step.axis)))
      over_results(out, [&](const std::string& index) {
        const std::string to = element(out, index);
        line("{} = {};", to, combine(step.op, type, to, fmt::format("shuffle_xor({}, {})", to, mask)));
      });
    if (const int bits = warp_bits(step.layout, step.axis)) combine_warps(step, type, bits);
  }

  void replicas(const Step& step) {
    const Value& out = value(step.out);
    for (int mask : bits_of(step.replica_lanes))
      over_results(out, [&](const std::string& index) {
        const std::string to = element(out, index);
        line("{} = {};", to, combine(step.op, out.type, to, fmt::format("shuffle_xor({}, {})", to, mask)));
      });
    if (step.replica_warps) combine_warps(step, out.type, step.replica_warps);
  }

  void argmax(const Step& step) {
    const Value& out = value(step.out);
    const ElementType type = step.expression.terms.back().type;
    const int count = out.layout.registers();
    declare(step.out, false);
    declare(step.best, false);
    const auto best = [&](const std::string& index) { return element(value(step.best), index); };
    over_results(out, [&](const std::string& index) {
      line("{} = {};", best(index), info(type).kind == ElementKind::real ? "nan_value()" : identity(step.op, type));
      line("{} = 0;", element(out, index));
    });
    const auto keep = [&](const std::string& x, const std::string& at, const std::string& index) {
      return fmt::format("keep_best({}, {}, {}, {});", x, at, best(index), element(out, index));
    };
    const std::vector<Digit> map = register_map(out.layout, step.layout);
    const bool padded = step.layout.covers_more(step.axis, step.shape);
    sweep(step, [&](const std::string& index) {
      open("{{");
      const std::string text = expression(step, index);
      line("const {} x = {};", register_type(type), text);
      line("const int at = {};", coordinate(step.layout, step.axis, index));
      line("{}{}", padded ? fmt::format("if (at < {}) ", step.shape[step.axis]) : "",
           keep("x", "at", digits(map, index, step.layout.registers())));
      close();
    });
    for (int mask : lane_masks(step.layout.thread_digits(step.axis)))
      over_results(out, [&](const std::string& index) {
        open("{{");
        line("const {} x = shuffle_xor({}, {});", register_type(type), best(index), mask);
        line("const int at = shuffle_xor({}, {});", element(out, index), mask);
        line("{}", keep("x", "at", index));
        close();
      });
    const int bits = warp_bits(step.layout, step.axis);
    if (!bits) return;
    const int chunk = std::min(count, most_partials);
    open("{{");
    line("{}* const partial = {};", scratch_type(type), scratch(step, type));
    line("int* const partial_at = reinterpret_cast<int*>(partial + {});", chunk * plan_.threads());
    over_warps(out, [&](const auto& round, const auto& slot) {
      round([&](const std::string& i, const std::string& result) {
        line("partial{} = {};", slot(i, "warp"), best(result));
        line("partial_at{} = {};", slot(i, "warp"), element(out, result));
      });
      line("barrier();");
      over_members(bits, [&](const std::string& warp) {
        round([&](const std::string& i, const std::string& result) {
          const std::string from = slot(i, warp);
          line("{}", keep("partial" + from, "partial_at" + from, result));
        });
      });
    });
    close();
  }

  std::string linear(const Step& step, const std::string& index) {
    std::vector<std::string> parts;
    if (step.base) parts.push_back(fmt::format("{}", step.base));
    for (int axis = 0; axis < step.shape.rank(); ++axis) {
      const std::string at = coordinate(step.layout, axis, index);
      const std::int64_t by = step.strides[static_cast<std::size_t>(axis)];
      if (at == "0" || step.shape[axis] == 1) continue;
      parts.push_back(by == 1 ? at : fmt::format("{} * {}", atom(at), by));
    }
    return joined(parts, " + ", "0");
  }
  void put(const Step& step) {
    const ElementType type = step.expression.terms.back().type;
    open("{{");
    line("{}* const to = {};", scratch_type(type), scratch(step, type));
    const std::string mine = first_copy(step.layout);
    sweep(step, [&](const std::string& index) {
      const std::string text = expression(step, index);
      const std::string condition = both(mine, inside_tile(step, index));
      line("{}to[{}] = {};", condition.empty() ? "" : fmt::format("if ({}) ", condition), linear(step, index), text);
    });
    close();
  }
  void get(const Step& step) {
    const Value& out = value(step.out);
    declare(step.out, false);
    open("{{");
    line("const {}* const from = {};", scratch_type(out.type), scratch(step, out.type));
    sweep(step, [&](const std::string& index) {
      const std::string condition = inside_tile(step, index), at = linear(step, index);
      line("{} = {};", element(out, index),
           condition.empty() ? fmt::format("from[{}]", at)
                             : fmt::format("{} ? from[{}] : {}", condition, at, number(out.type, Cell{})));
    });
    close();
  }

  // --- tiles in shared memory

  const Buffer& buffer(int id) {
    const Buffer& buffer = plan_.buffers[static_cast<std::size_t>(id)];
    mention(buffer.name);
    if (!buffer.in_workspace) use("shared");
    return buffer;
  }

  void stage(const Step& step) {
    const Buffer& to = buffer(step.buffer);
    const std::string_view type = memory_type(to.type);
    const std::string mine = first_copy(step.layout);
    sweep(step, [&](const std::string& index) {
      const std::string text = expression(step, index);
      const std::string condition = both(mine, inside_tile(step, index));
      line("{0}*reinterpret_cast<{1}*>({2} + element_offset<{1}, {3}>({4}, {5})) = to_memory<{1}>({6});",
           condition.empty() ? "" : fmt::format("if ({}) ", condition), type, to.name, to.chunks(),
           coordinate(step.layout, 0, index), coordinate(step.layout, 1, index), text);
    });
  }

  void fetch(const Step& step) {
    use("thread");
    for (std::size_t i = 0; i < step.tiles.size(); ++i) {
      const TileAccess& access = step.tiles[i];
      const Buffer& to = buffer(step.buffers[i]);
      const std::string_view type = memory_type(tensor(access.parameter).type);
      const int bytes = access.vector * info(tensor(access.parameter).type).bytes;
      const int per_row = to.columns / access.vector, pieces = to.rows * per_row;
      open("{{");
      place(access, false);
      std::string tile = to.name;
      if (to.stages > 1) tile = fmt::format("{} + {} % {} * {}", to.name, step.counter, to.stages, to.stage_bytes());
      line("char* const tile = {};", tile);
      const int rounds = (pieces + plan_.threads() - 1) / plan_.threads();
      // Copies that are not asynchronous hold registers until they arrive.
      const bool async = bytes >= 4 && !to.in_workspace;
      line("#pragma unroll{}", !async || access.vector == 1 ? " 2" : rounds <= 16 ? "" : " 4");
      open("for (int i = 0; i < {}; ++i) {{", rounds);
      line("const int piece = i * {} + thread;", plan_.threads());
      if (pieces % plan_.threads()) line("if (piece >= {}) break;", pieces);
      line("const int row = piece / {}, column = piece % {}{};", per_row, per_row,
           access.vector > 1 ? fmt::format(" * {}", access.vector) : "");
      std::vector<std::string> at(access.axes.size(), "0");
      at[at.size() - 2] = "row";
      at[at.size() - 1] = "column";
      const Spot spot = checked(access, this->spot(access, at, ""));
      if (async)
        line("copy_async<{0}>(tile + element_offset<{1}, {2}>(row, column), {3}_base + ({4}), {5});", bytes, type,
             to.chunks(), access.name, spot.offset, spot.inside);
      else if (access.vector == 1)
        line("*reinterpret_cast<{0}*>(tile + element_offset<{0}, {1}>(row, column)) = {2} ? {3}_base[{4}] : {0}{{}};",
             type, to.chunks(), spot.inside, access.name, spot.offset);
      else {
        line("#pragma unroll");
        line("for (int e = 0; e < {}; ++e)", access.vector);
        line(
            "  reinterpret_cast<{0}*>(tile + element_offset<{0}, {1}>(row, column))[e] = {2} ? {3}_base[{4} + e] : "
            "{0}{{}};",
            type, to.chunks(), spot.inside, access.name, spot.offset);
      }
      close();
      close();
    }
  }

  // --- products

  std::string tile_of(const ProductOperand& operand) {
    const Buffer& from = buffer(operand.buffer);
    if (operand.stage.empty()) return from.name;
    return fmt::format("{} + {} % {} * {}", from.name, operand.stage, from.stages, from.stage_bytes());
  }
  static std::string converted(const ProductOperand& operand, std::string text) {
    for (ElementType type : operand.casts)
      if (type != ElementType::f32 && type != operand.stored) text = fmt::format("cast_{}({})", name(type), text);
    return text;
  }

  void product(const Step& step) {
    switch (step.product->kind) {
      case ProductKind::tensor:
        return step.product->type == ElementType::tf32 ? tf32_product(step) : matrix_product(step);
      case ProductKind::block:
        return block_product(step);
      case ProductKind::thin:
        return thin_product(step);
    }
  }

  // Accumulators in memory are worked on one instruction at a time.
  struct Tiles {
    int m, n;
  };
  Tiles tiles(const Step& step) const {
    return {step.layout.cover(0) / (16 * step.product->warps_m), step.layout.cover(1) / (8 * step.product->warps_n)};
  }
  std::string warp_row(const Product& product, int rows) {
    if (product.warps_m == 1) return "0";
    use("warp");
    return fmt::format("warp / {} * {}", product.warps_n, rows);
  }
  std::string warp_column(const Product& product, int columns) {
    if (product.warps_n == 1) return "0";
    use("warp");
    return fmt::format("warp % {} * {}", product.warps_n, columns);
  }

  // Registers of a left operand are named by k, so all rounds are written out; else two at a time overlap enough.
  void rounds_of_k(const Product& product, int rounds) {
    line("#pragma unroll{}", product.a.value >= 0 ? "" : " 2");
    open("for (int k = 0; k < {}; ++k) {{", rounds);
  }

  // Calls accumulate(c, i, j) in loops over the accumulators of a thread.
  template <class Accumulate>
  void over_accumulators(const Step& step, Tiles t, Accumulate&& accumulate) {
    const Value& out = value(step.out);
    unroll(true);
    open("for (int i = 0; i < {}; ++i) {{", t.m);
    unroll(true);
    open("for (int j = 0; j < {}; ++j) {{", t.n);
    const std::string at = fmt::format("(i * {} + j) * 4", t.n);
    if (out.home == Home::registers || out.home == Home::variable) {
      accumulate(fmt::format("{} + {}", out.name, at));
    } else {
      line("float c[4];");
      line("for (int e = 0; e < 4; ++e) c[e] = {};", element(out, fmt::format("({} + e)", at)));
      accumulate("c");
      line("for (int e = 0; e < 4; ++e) {} = c[e];", element(out, fmt::format("({} + e)", at)));
    }
    close();
    close();
  }

  void matrix_product(const Step& step) {
    const Product& p = *step.product;
    const Tiles t = tiles(step);
    const std::string_view type = name(p.type);
    const int rounds = (p.k + 15) / 16;
    mention(value(step.out).name);
    open("{{");
    if (p.a.buffer >= 0) line("const char* const left = {};", tile_of(p.a));
    line("const char* const right = {};", tile_of(p.b));
    if (p.a.buffer >= 0) line("const int row = {};", warp_row(p, t.m * 16));
    line("const int column = {};", warp_column(p, t.n * 8));
    rounds_of_k(p, rounds);
    line("u32 a[{}][4], b[{}][2];", t.m, t.n);
    unroll(true);
    open("for (int i = 0; i < {}; ++i) {{", t.m);
    if (p.a.value >= 0) {
      // The accumulators of a score are, two by two, the left operand's registers.
      const Value& from = value(p.a.value);
      mention(from.name);
      for (int e = 0; e < 4; ++e)
        line("a[i][{0}] = pack_{1}({2}[(i * {3} + 2 * k) * 4 + {4}], {2}[(i * {3} + 2 * k) * 4 + {5}]);", e, type,
             from.name, 2 * rounds, 2 * e, 2 * e + 1);
    } else {
      const int chunks = buffer(p.a.buffer).chunks();
      if (p.a.k_major)
        line("left_fragment<{}>(a[i], left, row + i * 16, k * 2);", chunks);
      else
        line("left_fragment_turned<{}>(a[i], left, k * 16, row / 8 + i * 2);", chunks);
    }
    close();
    const int chunks = buffer(p.b.buffer).chunks();
    if (t.n > 1) {
      unroll(true);
      open("for (int j = 0; j + 1 < {}; j += 2) {{", t.n);
      if (p.b.k_major)
        line("right_fragments<{}>(b[j], right, column + j * 8, k * 2);", chunks);
      else
        line("right_fragments_turned<{}>(b[j], right, k * 16, column / 8 + j);", chunks);
      close();
    }
    if (t.n % 2) {
      if (p.b.k_major)
        line("right_fragment<{}>(b[{}], right, column + {}, k * 2);", chunks, t.n - 1, (t.n - 1) * 8);
      else
        line("right_fragment_turned<{}>(b[{}], right, k * 16, column / 8 + {});", chunks, t.n - 1, t.n - 1);
    }
    over_accumulators(step, t, [&](const std::string& c) { line("mma_{}({}, a[i], b[j]);", type, c); });
    close();
    close();
  }

  // k is permuted within an instruction, for both operands alike: a lane's two positions are neighbours.
  void tf32_product(const Step& step) {
    const Product& p = *step.product;
    const Tiles t = tiles(step);
    const int rounds = (p.k + 7) / 8;
    mention(value(step.out).name);
    use("lane");
    open("{{");
    if (p.a.buffer >= 0) line("const char* const left = {};", tile_of(p.a));
    line("const char* const right = {};", tile_of(p.b));
    if (p.a.buffer >= 0) line("const int row = {} + lane / 4;", warp_row(p, t.m * 16));
    line("const int column = {} + lane / 4;", warp_column(p, t.n * 8));
    rounds_of_k(p, rounds);
    line("const int at = k * 8 + lane % 4 * 2;");
    line("u32 a[{}][4], b[{}][2];", t.m, t.n);
    unroll(true);
    open("for (int i = 0; i < {}; ++i) {{", t.m);
    if (p.a.value >= 0) {
      const Value& from = value(p.a.value);
      mention(from.name);
      for (int e = 0; e < 4; ++e) {
        const int at = e % 2 * 2 + e / 2;
        line("a[i][{}] = bits_of({}[(i * {} + k) * 4 + {}]);", e, from.name, rounds, at);
      }
    } else {
      for (int half = 0; half < 2; ++half) {
        line("float x{}[2];", half);
        pair(p.a, "left", fmt::format("x{}", half), fmt::format("row + i * 16 + {}", half * 8));
        for (int e = 0; e < 2; ++e)
          line("a[i][{}] = bits_of({});", half + 2 * e, converted(p.a, fmt::format("x{}[{}]", half, e)));
      }
    }
    close();
    unroll(true);
    open("for (int j = 0; j < {}; ++j) {{", t.n);
    line("float x[2];");
    pair(p.b, "right", "x", "column + j * 8");
    for (int e = 0; e < 2; ++e) line("b[j][{}] = bits_of({});", e, converted(p.b, fmt::format("x[{}]", e)));
    close();
    over_accumulators(step, t, [&](const std::string& c) { line("mma_tf32({}, a[i], b[j]);", c); });
    close();
    close();
  }
  // Two neighbours along k.
  void pair(const ProductOperand& operand, std::string_view tile, const std::string& out, const std::string& other) {
    const Buffer& from = buffer(operand.buffer);
    const std::string_view type = memory_type(from.type);
    if (operand.k_major) {
      line("read_tile<2, {}, {}>({}, {}, {}, at);", type, from.chunks(), out, tile, other);
    } else {
      line("read_tile<1, {}, {}>({}, {}, at, {});", type, from.chunks(), out, tile, other);
      line("read_tile<1, {}, {}>({} + 1, {}, at + 1, {});", type, from.chunks(), out, tile, other);
    }
  }

  void block_product(const Step& step) {
    const Product& p = *step.product;
    const Value& out = value(step.out);
    const bool in_registers = out.home == Home::registers || out.home == Home::variable;
    const Layout of_rows = step.layout.without(1), of_columns = step.layout.without(0);
    const int m = of_rows.registers(), n = of_columns.registers();
    const std::vector<Digit> row_map = register_map(of_rows, step.layout),
                             column_map = register_map(of_columns, step.layout);
    mention(out.name);
    open("{{");
    line("const char* const left = {};", tile_of(p.a));
    line("const char* const right = {};", tile_of(p.b));
    line("#pragma unroll 2");
    open("for (int k = 0; k < {}; k += 4) {{", (p.k + 3) / 4 * 4);
    if (in_registers) {
      line("float a[{}][4], b[{}][4];", m, n);
      fragment(p.a, "left", "a", of_rows, 0, m);
      fragment(p.b, "right", "b", of_columns, 1, n);
      unroll(true);
      open("for (int r = 0; r < {}; ++r) {{", step.layout.registers());
      unroll(true);
      line("for (int e = 0; e < 4; ++e) {0} = fmaf(a[{1}][e], b[{2}][e], {0});", element(out, "r"),
           digits(row_map, "r", step.layout.registers()), digits(column_map, "r", step.layout.registers()));
      close();
    } else {
      open("for (int r = 0; r < {}; ++r) {{", step.layout.registers());
      line("float a[4], b[4], c = {};", element(out, "r"));
      four(p.a, "left", "a", coordinate(step.layout, 0, "r"));
      four(p.b, "right", "b", coordinate(step.layout, 1, "r"));
      unroll(true);
      line("for (int e = 0; e < 4; ++e) c = fmaf({}, {}, c);", converted(p.a, "a[e]"), converted(p.b, "b[e]"));
      line("{} = c;", element(out, "r"));
      close();
    }
    close();
    close();
  }
  // Four neighbours along k at one position of the other axis.
  void four(const ProductOperand& operand, std::string_view tile, const std::string& out, const std::string& other) {
    const Buffer& from = buffer(operand.buffer);
    const std::string_view type = memory_type(from.type);
    if (operand.k_major)
      line("read_tile<4, {}, {}>({}, {}, {}, k);", type, from.chunks(), out, tile, other);
    else
      for (int e = 0; e < 4; ++e)
        line("read_tile<1, {}, {}>({} + {}, {}, k + {}, {});", type, from.chunks(), out, e, tile, e, other);
  }
  // What a thread needs of an operand for four steps of k: out[position][k].
  void fragment(const ProductOperand& operand, std::string_view tile, std::string_view out, const Layout& layout,
                int axis, int count) {
    const Buffer& from = buffer(operand.buffer);
    const std::string_view type = memory_type(from.type);
    const int run = layout.run(axis);
    if (!operand.k_major && run % 4 == 0) {
      unroll(true);
      open("for (int i = 0; i < {}; i += 4) {{", count);
      unroll(true);
      open("for (int e = 0; e < 4; ++e) {{");
      line("float x[4];");
      line("read_tile<4, {}, {}>(x, {}, k + e, {});", type, from.chunks(), tile, coordinate(layout, axis, "i"));
      unroll(true);
      line("for (int j = 0; j < 4; ++j) {}[i + j][e] = {};", out, converted(operand, "x[j]"));
      close();
      close();
      return;
    }
    unroll(true);
    open("for (int i = 0; i < {}; ++i) {{", count);
    four(operand, tile, fmt::format("{}[i]", out), coordinate(layout, axis, "i"));
    if (converted(operand, "x") != "x") {
      unroll(true);
      line("for (int e = 0; e < 4; ++e) {0}[i][e] = {1};", out, converted(operand, fmt::format("{}[i][e]", out)));
    }
    close();
  }

  // Registers times registers: what a thread holds of k adds up in it.
  void thin_product(const Step& step) {
    const Product& p = *step.product;
    const Value &out = value(step.out), &a = value(p.a.value), &b = value(p.b.value);
    const int count = p.layout_b.registers();
    const bool unrolled =
        a.home != Home::workspace && a.home != Home::shared && b.home != Home::workspace && b.home != Home::shared;
    unroll(unrolled);
    open("for (int r = 0; r < {}; ++r) {{", count);
    std::vector<Digit> to_a, to_out;
    match(p.layout_b, 0, a.layout, 1, to_a);
    match(p.layout_b, 1, out.layout, 1, to_out);
    const bool padded = p.layout_b.cover(0) > p.k;
    if (padded) open("if ({} < {}) {{", coordinate(p.layout_b, 0, count == 1 ? "0" : "r"), p.k);
    const int a_unit = row_unit(a.layout), out_unit = row_unit(out.layout);
    for (int row = 0; row < p.m; ++row) {
      const auto at = [&](const std::vector<Digit>& map, int unit) {
        const std::string text = digits(map, "r", count);
        return row == 0 ? text : text == "0" ? fmt::format("{}", row * unit) : fmt::format("{} + {}", text, row * unit);
      };
      const std::string to = element(out, at(to_out, out_unit));
      line("{0} = fmaf({1}, {2}, {0});", to, element(a, at(to_a, a_unit)), element(b, "r"));
    }
    if (padded) close();
    close();
  }
  // Digits of a register of `from` along its axis that make a register of `to` along the axis that is the same.
  static void match(const Layout& from, int from_axis, const Layout& to, int to_axis, std::vector<Digit>& map) {
    for (const Digit& f : from.register_digits(from_axis))
      for (const Digit& t : to.register_digits(to_axis))
        if (t.scale <= f.scale && f.scale < t.scale * t.size)
          map.push_back({f.unit, f.size, t.unit * (f.scale / t.scale)});
  }
  static int row_unit(const Layout& layout) {
    const auto rows = layout.register_digits(0);
    return rows.empty() ? 0 : rows[0].unit;
  }

  // --- loops

  void loop(const Step& step) {
    const std::string count = scalar(step.count);
    if (step.ahead.empty()) {
      open("for (int {0} = 0; {0} < {1}; ++{0}) {{", step.counter, count);
    } else {
      const int ahead = step.stages - 1;
      const std::string fetching = "fetching_" + step.counter;
      line("// {} rounds are under way at a time.", step.stages);  // one loop, so that a fetch is compiled once
      open("for (int {0} = 0; {0} - {1} < {2}; ++{0}) {{", fetching, ahead, count);
      open("if ({} >= {}) {{", fetching, ahead);
      line("copy_async_wait<{}>();", step.stages - 2);
      line("barrier();");
      close();
      open("if ({} < {}) {{", fetching, count);
      line("const int {} = {};", step.counter, fetching);
      for (const Step& inner : step.ahead) emit(inner);
      close();
      line("copy_async_commit();");
      line("if ({} < {}) continue;", fetching, ahead);
      line("const int {} = {} - {};", step.counter, fetching, ahead);
    }
    for (const Step& inner : step.body) emit(inner);
    close();
    if (!step.ahead.empty()) line("copy_async_wait<0>();");
  }

  const Plan& plan_;
  std::string text_;
  int depth_ = 0;
  int temporaries_ = 0;
  unsigned line_ = 0;                          // of the author
  std::vector<std::set<std::string>> scopes_;  // names declared so far
  std::set<std::string> used_, mentioned_;
  std::vector<ThreadTerm> terms_;
  std::string last_place_, last_ops_;
  int last_depth_ = -1;
};

}  // namespace

std::string emit(const Plan& plan) { return Emitter(plan).run(); }

}  // namespace tessera
