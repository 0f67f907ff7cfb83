// Elementwise expressions, from the patterns in ops.def.
#include <cctype>
#include <cmath>

#include "codegen/emit/emit_values.hpp"
#include "codegen/plan/called.hpp"
#include "codegen/plan/names.hpp"
#include "codegen/plan/spelling.hpp"

namespace tessera::internal::codegen {
namespace {

// Longer expressions get a name. One number may be longer than the elements of a tile: inside of a ?: that evaluates one
// of its operands, compilers make other code of them.
constexpr std::size_t longest = 60, longest_of_number = 100;

// Narrow reals are held as f32, so a cast to f32 leaves them unchanged.
bool is_kept(const Term& term) {
  return term.op == Op::broadcast ||
         (term.op == Op::cast && term.type == ElementType::f32 && host_type(term.operand) == HostType::f32);
}

// Reinterprets the bits that a tensor would store for a value. Integers are their own bits, or the low ones if narrow.
std::string bitcast(ElementType from, ElementType to, const std::string& value) {
  const auto narrow = [](ElementType type) { return info(type).bytes < 4; };
  const auto real = [](ElementType type) { return info(type).kind == ElementKind::real; };
  std::string bits = value;
  if (real(from))
    bits = narrow(from) ? fmt::format("{}_bits({})", name(from), value) : fmt::format("bits_of({})", value);
  if (!real(to)) return fmt::format("cast_{}({})", name(to), bits);
  if (to == ElementType::f64) return fmt::format("double_of({})", bits);
  return narrow(to) ? fmt::format("{}_value({})", name(to), bits) : fmt::format("float_of({})", bits);
}

Spelled spell(const Writer& w, const Term& term, const std::vector<Spelled>& in) {
  if (is_kept(term)) return in[0];
  const auto call = [&](std::string_view function, std::string_view of) {
    std::string text;
    for (const Spelled& one : in) text += (text.empty() ? "" : ", ") + one.text;
    return Spelled{fmt::format("{}_{}({})", function, of, text)};
  };
  if (w.calls_functions && is_long(term)) return call("called", name(term.op));
  switch (term.op) {
    case Op::select:
      if (info(term.type).kind == ElementKind::integer)
        return {fmt::format("select({}, {}, {})", in[0].text, in[1].text, in[2].text)};
      return {fmt::format("{} ? {} : {}", in[0].operand(), in[1].operand(), in[2].operand()), Spelled::Binds::other};
    case Op::cast:
      if (term.small) return {fmt::format("cast_{}(small_to_real({}))", name(term.type), in[0].text)};
      return {fmt::format("cast_{}({})", name(term.type), in[0].text)};
    case Op::custom: {
      const Spelled result = call("user", w.plan.functions[static_cast<std::size_t>(term.function)].name);
      if (info(term.type).computes || term.type == ElementType::pred) return result;
      return {fmt::format("cast_{}({})", name(term.type), result.text)};
    }
    case Op::extent:
      return {fmt::format("{}[{}].extent[{}]", tensor_name(w.plan, term.argument), in[0].text, term.axis)};
    case Op::bitcast:
      return {bitcast(term.operand, term.type, in[0].text)};
    default: {
      const OpInfo& op = info(term.op);
      const bool real = info(term.operand).kind == ElementKind::real;
      return substitute(real ? op.cuda_real : op.cuda_integer, in[0], in.size() > 1 ? in[1] : Spelled(),
                        in.size() > 2 ? in[2] : Spelled());
    }
  }
}

Spelled operand(Writer& w, const Sweep& sweep, const std::vector<Spelled>& made, const Operand& o, ElementType type,
                const IndexExpression& index) {
  switch (o.kind) {
    case Operand::Kind::term:
      return made[static_cast<std::size_t>(o.index)];
    case Operand::Kind::value:
      return {element(w, o.value, digits(o.map, index) + o.first)};
    case Operand::Kind::fetched: {
      const TileAccess& read = sweep.reads[static_cast<std::size_t>(o.index)];
      return {name_of(read.label) + (read.vector > 1 || read.run > 1 ? "[r - g]" : "")};
    }
    case Operand::Kind::literal:
      return literal(type, decode(type, o.literal));
    case Operand::Kind::coordinate: {
      const IndexExpression at = coordinate(w, sweep, o.index, index);
      return {at.text(), at.is_primary() ? Spelled::Binds::primary : Spelled::Binds::other};
    }
  }
  return {};
}

// The first operand of a select is its condition.
ElementType type_of_operand(const Term& term, std::size_t k) {
  return term.op == Op::select && k == 0 ? ElementType::pred : term.operand;
}

}  // namespace

Spelled substitute(std::string_view pattern, const Spelled& a, const Spelled& b, const Spelled& c) {
  using Binds = Spelled::Binds;
  const bool call = pattern.find('(') != pattern.npos;
  // In "a - b" and the like, a may be an operation of the same precedence; b must bind tighter.
  const char infix = pattern.size() == 5 ? pattern[2] : ' ';
  const bool sum = infix == '+' || infix == '-', matmul = infix == '*' || infix == '/';
  Spelled result{"", call ? Binds::primary : sum ? Binds::sum : matmul ? Binds::matmul : Binds::other};
  const auto letter = [&](std::size_t i) {
    return i < pattern.size() && (std::isalnum(static_cast<unsigned char>(pattern[i])) || pattern[i] == '_');
  };
  const auto spelled = [&](char name) {
    const Spelled& value = name == 'a' ? a : name == 'b' ? b : c;
    if (call) return value.text;
    if (sum) return value.operand(name == 'a' ? Binds::sum : Binds::matmul);
    return value.operand(matmul && name == 'a' ? Binds::matmul : Binds::primary);
  };
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const bool operand = pattern[i] >= 'a' && pattern[i] <= 'c' && (i == 0 || !letter(i - 1)) && !letter(i + 1);
    result.text += operand ? spelled(pattern[i]) : std::string(1, pattern[i]);
  }
  return result;
}

Spelled spelled(Writer& w, const Sweep& sweep, const Operand& of, ElementType type, const IndexExpression& index) {
  return operand(w, sweep, {}, of, type, index);
}

Spelled literal(ElementType type, Cell cell) {
  std::string text = number(type, cell);
  const Spelled::Binds binds = text[0] != '-' ? Spelled::Binds::primary : Spelled::Binds::other;
  return {std::move(text), binds};
}

Spelled expression(Writer& w, const Sweep& sweep, const IndexExpression& index) {
  const auto& terms = sweep.expression.terms;
  std::vector<int> uses(terms.size());
  for (const Term& term : terms)
    for (const Operand& in : term.in)
      if (in.kind == Operand::Kind::term) ++uses[static_cast<std::size_t>(in.index)];
  const std::size_t most = sweep.layout == Layout(0) ? longest_of_number : longest;
  std::vector<Spelled> made;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const Term& term = terms[i];
    std::vector<Spelled> in;
    for (std::size_t k = 0; k < term.in.size(); ++k)
      in.push_back(operand(w, sweep, made, term.in[k], type_of_operand(term, k), index));
    Spelled spelled = spell(w, term, in);
    const bool last = i + 1 == terms.size();
    if (!last && (uses[i] > 1 || spelled.text.size() > most)) {
      Spelled named{w.temporary(term, term.op == Op::select ? "where" : name(term.op))};
      w.line("const {} {} = {};", register_type(term.type), named.text, spelled.text);
      spelled = std::move(named);
    }
    made.push_back(std::move(spelled));
  }
  return made.back();
}

bool is_zero(const Expression& expression) {
  for (std::size_t i = expression.terms.size() - 1;;) {
    const Term& term = expression.terms[i];
    if (!is_kept(term)) return false;
    const Operand& in = term.in[0];
    if (in.kind == Operand::Kind::term) {
      i = static_cast<std::size_t>(in.index);
      continue;
    }
    if (in.kind != Operand::Kind::literal || info(term.operand).kind != ElementKind::real) return false;
    return in.literal == 0;  // -0 is not
  }
}

}  // namespace tessera::internal::codegen
