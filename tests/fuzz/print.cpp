// A program as an author would write it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <map>

#include "fuzz/custom.hpp"
#include "fuzz/program.hpp"

namespace tessera::internal::fuzz {
namespace {

using Kind = Statement::Kind;

template <class N>
std::string braced(const std::vector<N>& numbers) {
  return fmt::format("{{{}}}", fmt::join(numbers, ", "));
}

std::string number(ElementType type, std::int64_t bits) {
  const Cell cell = decode(type, bits);
  if (info(type).kind != ElementKind::real) {
    return number_text(type, bits) + (type == ElementType::u64 ? "u" : "");
  }
  const bool wide = type == ElementType::f64;
  if (wide ? std::isnan(cell.f64) : std::isnan(cell.f32)) return "std::numeric_limits<double>::quiet_NaN()";
  if (wide ? std::isinf(cell.f64) : std::isinf(cell.f32)) return bits < 0 ? "-inf" : "inf";
  const std::string text = wide ? fmt::format("{}", cell.f64) : fmt::format("{}", cell.f32);
  return text + (text.find_first_of(".e") == text.npos ? ".0" : "") + (wide ? "" : "f");
}

/// The C++ operator of an op; empty if it has none.
std::string_view symbol(Op op) {
  switch (op) {
    case Op::add:
      return "+";
    case Op::sub:
      return "-";
    case Op::mul:
      return "*";
    case Op::div:
    case Op::floor_div:
      return "/";
    case Op::modulo:
      return "%";
    case Op::less:
      return "<";
    case Op::less_equal:
      return "<=";
    case Op::greater:
      return ">";
    case Op::greater_equal:
      return ">=";
    case Op::equal:
      return "==";
    case Op::not_equal:
      return "!=";
    case Op::logical_and:
    case Op::bitwise_and:
      return "&";
    case Op::logical_or:
    case Op::bitwise_or:
      return "|";
    case Op::logical_xor:
    case Op::bitwise_xor:
      return "^";
    case Op::shift_left:
      return "<<";
    case Op::shift_right:
      return ">>";
    default:
      return "";
  }
}

class Printer {
 public:
  explicit Printer(const Program& program) : program_(program) {
    for (std::size_t i = 0; i < program.parameters.size(); ++i) parameter_of_[static_cast<Name>(i)] = i;
    each_statement(program.body, [&](const Statement& s) {
      for (const Name name : s.from) ++uses_[name];
      if (s.kind != Kind::apply || s.to == nothing) return;
      made_by_[s.to] = &s;
      if (s.op == Op::member) ++uses_[static_cast<Name>(s.attributes[0])];
      if (is_view(s.op))
        parameter_of_[s.to] =
            s.op == Op::member ? static_cast<std::size_t>(s.attributes[0]) : parameter_of_.at(s.from[0]);
    });
  }

  std::string run() {
    std::string head;
    for (std::size_t i = 0; i < program_.parameters.size(); ++i) {
      const Parameter& parameter = program_.parameters[i];
      constexpr std::string_view letters = "xyzs";
      const auto name = static_cast<Name>(i);
      const int tensors = tensors_of_list(program_.parameters, i);
      if (parameter.list > 0 && tensors == 0) continue;
      call(name, letters[static_cast<std::size_t>(parameter.access)]);
      std::span<const Parameter> one(&parameter, 1);
      bool is_used = uses_[name] > 0;
      if (tensors > 0) {
        one = std::span(program_.parameters).subspan(i, static_cast<std::size_t>(tensors) + 1);
        names_[name + tensors] = names_[name] + ".size()";
        is_used |= uses_[name + tensors] > 0;
      }
      head += fmt::format("{}{}{}", i ? ", " : "", to_string(one), is_used ? " " + names_[name] : "");
    }
    for (const Hints& hints : program_.hints) {
      std::string text;
      const auto add = [&](std::string_view name, int value) {
        if (value) text += fmt::format("{}.{} = {}", text.empty() ? "" : ", ", name, value);
      };
      add("warps", hints.warps), add("stages", hints.stages), add("cluster", hints.cluster);
      add("occupancy", hints.occupancy);
      if (hints.deterministic) text += fmt::format("{}.deterministic = true", text.empty() ? "" : ", ");
      if (!hints.launch_dependents) text += fmt::format("{}.launch_dependents = false", text.empty() ? "" : ", ");
      if (!hints.arch.empty()) text += fmt::format("{}.arch = \"{}\"", text.empty() ? "" : ", ", hints.arch);
      line(1, fmt::format("hints({{{}}});", text));
    }
    body(program_.body, 1);
    return fmt::format("[]({}) {{\n{}}}", head, text_);
  }

 private:
  /// Gives a value its name in the text: a letter and the next number.
  const std::string& call(Name name, char letter) {
    return names_[name] = fmt::format("{}{}", letter, count_[letter]++);
  }
  void line(int depth, const std::string& text) { text_ += fmt::format("{:{}}{}\n", "", depth * 2, text); }
  std::string unused(Name name) { return uses_[name] ? "" : "[[maybe_unused]] "; }

  void body(const Body& statements, int depth) {
    for (const Statement& s : statements) statement(s, depth);
  }

  void statement(const Statement& s, int depth) {
    switch (s.kind) {
      case Kind::apply: {
        if (s.to == nothing) return line(depth, effect(s));
        if (is_inlined(s)) return;
        const std::string expression = this->expression(s);
        const std::string type = is_view(s.op) ? "auto" : "Tile";
        return line(depth, fmt::format("{}const {} {} = {};", unused(s.to), type, call(s.to, is_view(s.op) ? 'w' : 't'),
                                       expression));
      }
      case Kind::blocks: {
        std::vector<std::string> extents, names;
        bool all_used = true;
        for (const Name name : s.from) extents.push_back(literal_or_value(name));
        for (std::size_t i = 0; i < s.from.size(); ++i) {
          all_used &= uses_[s.to + static_cast<Name>(i)] > 0;
          names.push_back(call(s.to + static_cast<Name>(i), 'b'));
        }
        const std::string names_text =
            names.size() == 1 ? "Index " + names[0] : fmt::format("auto [{}]", fmt::join(names, ", "));
        return line(depth, fmt::format("{}{} = blocks({});", all_used ? "" : "[[maybe_unused]] ", names_text,
                                       fmt::join(extents, ", ")));
      }
      case Kind::declare:
        return line(depth, fmt::format("Var {1} = {0};", value(s.from[0]), call(s.to, 'v')));
      case Kind::assign:
        return line(depth, fmt::format("{} = {};", names_.at(s.to), value(s.from[0])));
      case Kind::read:
        return line(depth, fmt::format("{}const Tile {} = {};", unused(s.to), call(s.to, 't'), names_.at(s.from[0])));
      case Kind::loop: {
        const std::string count = literal_or_value(s.from[0]);
        if (s.attributes.size() == 1) {  // a while_
          const std::string now = call(s.to, 'i');
          line(depth, fmt::format("Var next_{} = constant<i32>(0);", now));
          line(depth, fmt::format("while_([&] {{ return next_{} < {}; }}, [&] {{", now, count));
          line(depth + 1, fmt::format("const Tile {0} = next_{0};", now));
          body(s.body, depth + 1);
          line(depth + 1, fmt::format("next_{0} = {0} + 1;", now));
          return line(depth, "});");
        }
        const std::string unroll = s.attributes.empty() ? "" : fmt::format(".unroll({})", s.attributes[1]);
        line(depth, fmt::format("for ({}Index {} : range({}){}) {{", unused(s.to), call(s.to, 'i'), count, unroll));
        body(s.body, depth + 1);
        return line(depth, "}");
      }
      case Kind::branch:
        line(depth, fmt::format("if_({}, [&] {{", value(s.from[0])));
        body(s.body, depth + 1);
        return line(depth, "});");
    }
  }

  std::string atomic(const Statement& s) {
    const auto view = static_cast<std::size_t>(view_operand(s.op));
    const std::string places = by_elements(s.op) ? "{" + named(s, view + 1) + "}" : braced(coordinates(s, view + 1));
    std::string text = fmt::format("{}({}, {}", name(at_position(s.op)), value(s.from[view]), places);
    for (std::size_t i = view; i-- > 0;) text += ", " + value(s.from[i]);
    const auto order = static_cast<MemoryOrder>(s.attributes[0]);
    const auto scope = static_cast<MemoryScope>(s.attributes[1]);
    if (order != MemoryOrder::relaxed || scope != MemoryScope::device)
      text += fmt::format(", MemoryOrder::{}, MemoryScope::{}", name(order), name(scope));
    return text + ")";
  }

  std::string effect(const Statement& s) {
    if (is_atomic(s.op)) return atomic(s) + ";";
    const auto at = [&](std::size_t first) { return braced(coordinates(s, first)); };
    switch (s.op) {
      case Op::require:
        return fmt::format("require({}, \"what the program says\");", value(s.from[0]));
      case Op::check:
        return fmt::format("check({}, \"what the program says\");", value(s.from[0]));
      case Op::print: {
        std::string text = fmt::format("print(\"{}\"", print_text(s));
        for (const Name name : s.from) text += ", " + value(name);
        return text + ");";
      }
      case Op::scatter_elements:
        return fmt::format("scatter({}, {{{}}}, {});", value(s.from[1]), named(s, 2), value(s.from[0]));
      case Op::scatter:
        return fmt::format("scatter({}, {}, {}{});", value(s.from[1]), value(s.from[2]),
                           s.shape.size() > 1 ? at(3) + ", " : "", value(s.from[0]));
      default:
        return fmt::format("{}({}, {}, {});", name(s.op), value(s.from[1]), at(2), value(s.from[0]));
    }
  }

  /// Is the value written where it is used? Constants are, and values that have one use and read nothing that may
  /// change.
  bool is_inlined(const Statement& s) {
    if (s.op == Op::constant) return true;
    if (is_atomic(s.op)) return false;
    const bool reads = is_read(s.op);
    if (reads && program_.parameters[parameter_of_.at(s.from[0])].access == Access::in_out) return false;
    return uses_[s.to] == 1 && expression(s).size() <= 48;
  }
  /// Tiles of indices, of the type that the language takes.
  std::string named(const Statement& s, std::size_t first) {
    std::string text;
    for (std::size_t i = first; i < s.from.size(); ++i)
      text += fmt::format("{}Tile({})", i > first ? ", " : "", value(s.from[i]));
    return text;
  }
  const Statement* constant(Name name) const {
    const auto found = made_by_.find(name);
    return found != made_by_.end() && found->second->op == Op::constant ? found->second : nullptr;
  }

  std::string value(Name name) {
    const auto found = made_by_.find(name);
    if (found == made_by_.end() || !is_inlined(*found->second)) return names_.at(name);
    return expression(*found->second);
  }
  /// Where a C++ number may stand for a value of rank 0.
  std::string literal_or_value(Name name) {
    const Statement* const found = constant(name);
    return found && found->shape.empty() ? number(found->type, found->attributes[0]) : value(name);
  }
  /// As operand of an operator.
  std::string operand(Name name, bool may_be_literal) {
    if (constant(name)) return may_be_literal ? literal_or_value(name) : value(name);
    const std::string text = value(name);
    const auto found = made_by_.find(name);
    const bool simple =
        found == made_by_.end() || !is_inlined(*found->second) ||
        (symbol(found->second->op).empty() && std::string_view("-!~").find(text[0]) == std::string_view::npos);
    return simple ? text : "(" + text + ")";
  }
  bool both_constant(Name a, Name b) const { return constant(a) && constant(b); }

  std::vector<std::string> coordinates(const Statement& s, std::size_t first) {
    std::vector<std::string> texts;
    for (std::size_t i = first; i < s.from.size(); ++i) texts.push_back(literal_or_value(s.from[i]));
    return texts;
  }

  /// All elements, or the first of them.
  std::string sorted(const Statement& s) {
    const auto made = made_by_.find(s.from[0]);
    const bool descending = s.attributes[1] != 0;
    if (made != made_by_.end() && made->second->shape == s.shape)
      return fmt::format("{}({}, {}{})", name(s.op), value(s.from[0]), s.attributes[0],
                         descending ? ", {.descending = true}" : "");
    return fmt::format("top_k({}, {}, {}{}).{}", value(s.from[0]), s.shape[static_cast<std::size_t>(s.attributes[0])],
                       s.attributes[0], descending ? "" : ", {.smallest = true}", s.op == Op::sort ? "value" : "index");
  }

  std::string expression(const Statement& s) {
    const auto in = [&](std::size_t i) { return value(s.from[i]); };
    if (is_atomic(s.op)) return atomic(s);
    const std::string shape = braced(s.shape), axes = braced(s.attributes);
    const auto padding = [&] { return s.attributes[0] == 0 ? "" : ", " + number(s.type, s.attributes[0]); };
    if (is_binary(s.op)) {
      const bool literals = !both_constant(s.from[0], s.from[1]);
      if (symbol(s.op).empty())
        return fmt::format("{}({}, {})", name(s.op), literals ? literal_or_value(s.from[0]) : in(0),
                           literal_or_value(s.from[1]));
      return fmt::format("{} {} {}", operand(s.from[0], literals), symbol(s.op), operand(s.from[1], true));
    }
    if (is_ternary(s.op)) {
      const bool literals = !constant(s.from[0]) || !constant(s.from[1]) || !constant(s.from[2]);
      return fmt::format("{}({}, {}, {})", name(s.op), literals ? literal_or_value(s.from[0]) : in(0),
                         literal_or_value(s.from[1]), literal_or_value(s.from[2]));
    }
    if (is_reduction(s.op))  // max(x, 0) does not compile: it might be maximum(x, 0)
      return fmt::format("{}({}, {})", name(s.op), in(0),
                         s.attributes[0] == 0 && s.op != Op::sum ? "axis(0)" : fmt::format("{}", s.attributes[0]));
    if (is_scan(s.op)) {
      const char* const options[] = {"", ", {.reverse = true}", ", {.exclusive = true}",
                                     ", {.reverse = true, .exclusive = true}"};
      return fmt::format("{}({}, {}{})", name(s.op), in(0), s.attributes[0], options[s.attributes[1]]);
    }
    switch (s.op) {
      case Op::neg:
        return "-" + operand(s.from[0], false);
      case Op::logical_not:
        return "!" + operand(s.from[0], false);
      case Op::bitwise_not:
        return "~" + operand(s.from[0], false);
      case Op::argmax:
        return fmt::format("{}({}, {})", name(s.op), in(0), s.attributes[0]);
      case Op::sort:
      case Op::argsort:
        return sorted(s);
      case Op::histogram:
      case Op::inverse_permutation:
        return fmt::format("{}({}, {}, {})", name(s.op), in(0), s.shape[static_cast<std::size_t>(s.attributes[0])],
                           s.attributes[0]);
      case Op::take_along_axis:
        return fmt::format("take_along_axis({}, {}, {})", in(0), in(1), s.attributes[0]);
      case Op::select: {
        const bool literals = !both_constant(s.from[1], s.from[2]);
        return fmt::format("where({}, {}, {})", in(0), literals ? literal_or_value(s.from[1]) : in(1),
                           literal_or_value(s.from[2]));
      }
      case Op::cast:
      case Op::bitcast:
        return fmt::format("{}<{}>({})", name(s.op), name(s.type), in(0));
      case Op::constant: {
        const std::string text = number(s.type, s.attributes[0]);
        return s.shape.empty() ? fmt::format("constant<{}>({})", name(s.type), text)
                               : fmt::format("full<{}>({}, {})", name(s.type), shape, text);
      }
      case Op::custom: {
        const Custom& custom = customs()[static_cast<std::size_t>(s.attributes[0])];
        std::string text;
        for (const Name operand : s.from) text += (text.empty() ? "" : ", ") + value(operand);
        return fmt::format("cuda_op(\"{}\", \"{}\", {})({})", custom.function.name, custom.function.expression,
                           custom.lambda, text);
      }
      case Op::iota:
        return fmt::format("iota({}, {})", shape, s.attributes[0]);
      case Op::member:
        return fmt::format("{}[{}]", names_.at(static_cast<Name>(s.attributes[0])), literal_or_value(s.from[0]));
      case Op::slice:
        return fmt::format("{}.slice({}, {}, {}{})", in(0), s.attributes[0], literal_or_value(s.from[1]),
                           literal_or_value(s.from[2]),
                           s.attributes[1] == 1 ? "" : fmt::format(", {}", s.attributes[1]));
      case Op::unfold_view:
        return fmt::format("{}.unfold({})", in(0), fmt::join(s.attributes, ", "));
      case Op::flatten_view:
        return fmt::format("{}.flatten({})", in(0), s.attributes[0]);
      case Op::permute_view:
        return fmt::format("{}.permute({})", in(0), axes);
      case Op::extent:
        return fmt::format("{}.extent({})", in(0), s.attributes[0]);
      case Op::load:
        return fmt::format("load({}, {}, {}{})", in(0), braced(coordinates(s, 1)), shape, padding());
      case Op::gather_elements:
        return fmt::format("gather({}, {{{}}}{})", in(0), named(s, 1), padding());
      case Op::gather: {
        const std::vector<int> rest(s.shape.begin() + 1, s.shape.end());
        const std::string place = rest.empty() ? "" : fmt::format(", {}, {}", braced(coordinates(s, 2)), braced(rest));
        return fmt::format("gather({}, {}{}{})", in(0), in(1), place, padding());
      }
      case Op::reshape:
        return s.shape.empty() ? fmt::format("item({})", in(0)) : fmt::format("reshape({}, {})", in(0), shape);
      case Op::permute:
        return fmt::format("permute({}, {})", in(0), axes);
      case Op::broadcast:
        return fmt::format("broadcast({}, {})", in(0), shape);
      case Op::concat: {
        std::string text = fmt::format("concat({}", s.attributes[0]);
        for (const Name part : s.from) text += ", " + value(part);
        return text + ")";
      }
      case Op::extract: {
        std::string text = in(0);
        const auto made = made_by_.find(s.from[0]);
        const auto is_whole = [&](std::size_t axis) {  // a slice of the whole axis would be a statement of its own
          const Statement* const first = constant(s.from[axis + 1]);
          return made != made_by_.end() && made->second->shape[axis] == s.shape[axis] && s.attributes[axis] == 1 &&
                 first && first->attributes[0] == 0;
        };
        const auto slice = [&](std::size_t axis) {
          text = fmt::format("slice({}, {}, {}, {}, {})", text, axis, value(s.from[axis + 1]), s.shape[axis],
                             s.attributes[axis]);
        };
        bool any = false;
        for (std::size_t axis = 0; axis < s.shape.size(); ++axis)
          if (!is_whole(axis)) slice(axis), any = true;
        if (!any) slice(0);
        return text;
      }
      case Op::mma:
        return fmt::format("mma({}, {}, {})", in(0), in(1), in(2));
      default:
        return fmt::format("{}({})", name(s.op), in(0));
    }
  }

  const Program& program_;
  std::map<Name, int> uses_;
  std::map<Name, const Statement*> made_by_;
  std::map<Name, std::size_t> parameter_of_;  // of views
  std::map<Name, std::string> names_;
  std::map<char, int> count_;
  std::string text_;
};

std::string indented(const std::string& text, int by) {
  std::string result;
  for (const char c : text) {
    result += c;
    if (c == '\n') result.append(static_cast<std::size_t>(by), ' ');
  }
  return result;
}

std::string print_given(const Given& given, Access access) {
  std::vector<std::string> words;
  if (access == Access::scalar) return fmt::format("{{.scalar = {}}}", given.scalar);
  words.push_back(".extents = " + braced(given.extents));
  if (!given.strides.empty()) words.push_back(".strides = " + braced(given.strides));
  if (given.offset) words.push_back(fmt::format(".offset = {}", given.offset));
  if (given.fill != Fill::real)
    words.push_back(fmt::format(".fill = Fill::{}", fill_names[static_cast<std::size_t>(given.fill)]));
  if (given.shares >= 0) words.push_back(fmt::format(".shares = {}", given.shares));
  return braced(words);
}

}  // namespace

std::string print_kernel(const Program& program) { return Printer(program).run(); }

std::string print_test(const Program& program, const std::string& finding) {
  std::string given;
  for (std::size_t i = 0; i < program.given.size(); ++i)
    given += fmt::format("            {},\n", print_given(program.given[i], program.parameters[i].access));
  return fmt::format(
      "// {0}\n"
      "#include \"fuzz/corpus.hpp\"\n\n"
      "TEST_CASE(\"fuzz {1}\", \"[fuzz][corpus]\") {{\n"
      "  const auto k = kernel(\"fuzz_{1}\", {2});\n"
      "  check(k.graph(), {1},\n"
      "        {{\n"
      "{3}"
      "        }});\n"
      "}}\n",
      finding, program.seed, indented(print_kernel(program), 2), given);
}

}  // namespace tessera::internal::fuzz
