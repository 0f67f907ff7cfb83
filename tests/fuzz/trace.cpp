#include <fmt/format.h>

#include <map>

#include "fuzz/custom.hpp"
#include "fuzz/program.hpp"
#include "tessera/dsl/trace.hpp"

namespace tessera::internal::fuzz {
namespace {

class Tracer {
 public:
  explicit Tracer(const Program& program)
      : program_(program), trace_(fmt::format("fuzz_{}", program.seed), program.parameters, here_) {}

  Graph run() {
    for (std::size_t i = 0; i < program_.parameters.size(); ++i) {
      const Parameter& parameter = program_.parameters[i];
      if (parameter.list > 1) continue;  // a list's tensors are views that statements make
      const Op op = parameter.access == Access::scalar ? Op::scalar : Op::tensor;
      values_[static_cast<Name>(i)] =
          trace_.apply(op, parameter.type, std::vector<Handle>(), {static_cast<std::int64_t>(i)}, here_);
    }
    for (const Hints& hints : program_.hints) trace_.hints(hints);
    body(program_.body);
    return trace_.finish();
  }

 private:
  Handle value(Name name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) throw Error(fmt::format("the program uses value {} before it makes it", name));
    return found->second;
  }
  Trace::VarSlot var(Name name) const {
    const auto found = vars_.find(name);
    if (found == vars_.end()) throw Error(fmt::format("the program uses Var {} where there is none", name));
    return found->second;
  }

  void body(const Body& statements) {
    std::vector<Name> declared;
    for (const Statement& s : statements) {
      if (s.kind == Statement::Kind::declare) declared.push_back(s.to);
      statement(s);
    }
    for (std::size_t i = declared.size(); i-- > 0;) {
      trace_.drop_var(vars_.at(declared[i]));
      vars_.erase(declared[i]);
    }
  }

  void statement(const Statement& s) {
    switch (s.kind) {
      case Statement::Kind::apply:
        return apply(s);
      case Statement::Kind::blocks: {
        std::vector<Handle> extents;
        for (const Name name : s.from) extents.push_back(value(name));
        Name to = s.to;
        for (const Handle block : trace_.blocks(extents, here_)) values_[to++] = block;
        return;
      }
      case Statement::Kind::declare:
        vars_[s.to] = trace_.make_var(value(s.from[0]), here_);
        return;
      case Statement::Kind::assign:
        return trace_.assign_var(var(s.to), value(s.from[0]), here_);
      case Statement::Kind::read:
        values_[s.to] = trace_.var(var(s.from[0]), here_);
        return;
      case Statement::Kind::loop:
        if (s.attributes.size() == 1) return counted(s);
        values_[s.to] =
            trace_.begin_loop(value(s.from[0]), here_, s.attributes.empty() ? 0 : static_cast<int>(s.attributes[1]));
        body(s.body);
        return trace_.end_region();
      case Statement::Kind::branch: {
        trace_.begin_branch(value(s.from[0]), here_);
        body(s.body);
        return trace_.end_region();
      }
    }
  }

  /// A loop written as a while_.
  void counted(const Statement& s) {
    const ElementType i32 = ElementType::i32;
    const Trace::VarSlot counter = trace_.make_var(trace_.literal(i32, 0, here_), here_);
    const auto continues = [&] {
      return trace_.apply(Op::less, ElementType::pred, {trace_.var(counter, here_), value(s.from[0])}, {}, here_);
    };
    trace_.begin_repeat(continues(), here_);
    const Handle now = values_[s.to] = trace_.var(counter, here_);
    body(s.body);
    trace_.assign_var(counter, trace_.apply(Op::add, i32, {now, trace_.literal(i32, 1, here_)}, {}, here_), here_);
    trace_.end_region(continues());
    trace_.drop_var(counter);
  }

  void apply(const Statement& s) {
    std::vector<Handle> operands;
    for (const Name name : s.from) operands.push_back(value(name));
    if (s.op == Op::require) return trace_.require(operands[0], "what the program says", here_);
    if (s.op == Op::check) return trace_.check(operands[0], "what the program says", here_);
    if (s.op == Op::print) return trace_.print(print_text(s), operands, here_);
    if (s.op == Op::custom) {
      values_[s.to] = trace_.custom(customs()[static_cast<std::size_t>(s.attributes[0])].function, operands, here_);
      return;
    }
    const Handle result =
        trace_.apply(s.op, s.type, operands, s.attributes, here_, Shape(std::span<const int>(s.shape)));
    if (s.to != nothing) values_[s.to] = result;
  }

  static constexpr Location here_{"fuzz", 1};
  const Program& program_;
  Trace trace_;
  std::map<Name, Handle> values_;
  std::map<Name, Trace::VarSlot> vars_;
};

}  // namespace

std::string print_text(const Statement& print) {
  std::string text = "values:";
  for (std::size_t i = 0; i < print.from.size(); ++i) text += " {}";
  return text;
}

Graph trace(const Program& program) { return Tracer(program).run(); }

}  // namespace tessera::internal::fuzz
