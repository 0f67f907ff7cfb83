#include "codegen/emit_values.hpp"

namespace tessera {
namespace {

std::string spell(const Term& term, const std::vector<std::string>& in) {
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

}  // namespace

void ValueEmitter::close(std::string_view end) {
  --depth_;
  scopes_.pop_back();
  line("{}", end);
}

void ValueEmitter::unroll(bool unrolled) {
  if (unrolled) line("#pragma unroll");
}

std::string ValueEmitter::tensor_name(int parameter) const {
  constexpr std::string_view access[] = {"in", "out", "inout", "scalar"};
  return fmt::format("{}{}", access[static_cast<int>(tensor(parameter).access)], parameter);
}

std::string ValueEmitter::stride(int parameter, int axis) const {
  if (axis == plan_.variant.tensors[static_cast<std::size_t>(parameter)].unit_axis) return "";
  return fmt::format("{}_stride{}", tensor_name(parameter), axis);
}

std::string ValueEmitter::thread_term(const std::vector<std::pair<Factor, int>>& digits) {
  for (const ThreadTerm& term : terms_)
    if (term.digits == digits) return term.name;
  for (const auto& [factor, scale] : digits) use(factor.place == Place::lane ? "lane" : "warp");
  terms_.push_back({fmt::format("t{}", terms_.size()), digits});
  return terms_.back().name;
}

std::string ValueEmitter::coordinate(const Layout& layout, int axis, const std::string& index) {
  std::vector<std::string> parts;
  if (const auto of_thread = layout.thread_digits(axis); !of_thread.empty()) parts.push_back(thread_term(of_thread));
  if (const auto of_register = layout.register_digits(axis); !of_register.empty()) {
    const std::string text = digits(of_register, index, layout.registers());
    if (text != "0") parts.push_back(text);
  }
  return joined(parts, " + ", "0");
}

std::string ValueEmitter::element(const Value& v, const std::string& index) {
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
      return fmt::format("{0}[{1} / {2} * {3} + {1} % {2}]", v.name, atom(index), v.vector, plan_.threads() * v.vector);
  }
}

std::string ValueEmitter::mapped(const Operand& operand, const std::string& index, int count) {
  return element(value(operand.index), digits(operand.map, index, count));
}

std::string ValueEmitter::scalar(const Operand& operand) {
  if (operand.kind == Operand::Kind::literal) return fmt::format("{}", decode(ElementType::i32, operand.literal).i32);
  mention(value(operand.index).name);
  return value(operand.index).name;
}

void ValueEmitter::declare(ValueId id, bool array_only) {
  const Value& v = value(id);
  mention(v.name);
  if (v.home == Home::registers && scopes_.back().insert(v.name).second)
    line("{} {}[{}];", register_type(v.type), v.name, v.layout.registers());
  if (!array_only && v.home == Home::variable && scopes_.back().insert(v.name).second)
    line("{} {};", register_type(v.type), v.name);
  if (v.home == Home::shared) use("shared");
  if (v.home == Home::shared || v.home == Home::workspace) use("thread");
}

std::string ValueEmitter::assign(ValueId id, const std::string& index) {
  const Value& v = value(id);
  if (v.home != Home::variable) return element(v, index) + " = ";
  mention(v.name);
  if (!scopes_.back().insert(v.name).second) return v.name + " = ";
  return fmt::format("{}{} {} = ", v.changes ? "" : "const ", register_type(v.type), v.name);
}

std::string ValueEmitter::first_copy(const Layout& layout) {
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

std::string ValueEmitter::inside_tile(const Step& step, const std::string& index) {
  std::vector<std::string> parts;
  for (int axis = 0; axis < step.shape.rank(); ++axis)
    if (step.layout.covers_more(axis, step.shape))
      parts.push_back(fmt::format("{} < {}", coordinate(step.layout, axis, index), step.shape[axis]));
  return joined(parts, " && ", "");
}

std::string ValueEmitter::operand(const Step& step, const std::vector<std::string>& made, const Operand& o,
                                  ElementType type, const std::string& index, int count) {
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

std::string ValueEmitter::expression(const Step& step, const std::string& index) {
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
      std::string name = fmt::format("{}{}", term.op == Op::select ? "where" : tessera::name(term.op), temporaries_++);
      line("const {} {} = {};", register_type(term.type), name, text);
      text = std::move(name);
    }
    made.push_back(std::move(text));
  }
  return made.back();
}

}  // namespace tessera
