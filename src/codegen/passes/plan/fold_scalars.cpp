#include "codegen/passes/plan/fold_scalars.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>

#include "codegen/passes/plan/plan_dce.hpp"
#include "codegen/passes/plan/planning.hpp"
#include "codegen/plan/effects.hpp"
#include "graph/evaluate.hpp"

namespace tessera::internal::codegen {
namespace {

bool is_integer(ElementType type) { return info(type).kind == ElementKind::integer; }
bool is_literal(const Operand& operand) { return operand.kind == Operand::Kind::literal; }
bool is_literal(const Operand& operand, std::int64_t number) {
  return is_literal(operand) && operand.literal == number;
}
Operand literal(std::int64_t number) { return {.kind = Operand::Kind::literal, .literal = number}; }

/// Folds the terms of one expression.
class Terms {
 public:
  explicit Terms(Expression& expression) : old_(std::move(expression.terms)), expression_(expression) {}

  void run() {
    for (const Term& from : old_) {
      Term term = from;
      for (Operand& in : term.in)
        if (in.kind == Operand::Kind::term) in = replaced_[static_cast<std::size_t>(in.index)];
      narrow(term);
      const bool last = &from == &old_.back();
      std::optional<Operand> simple = simplified(term);
      if (simple && last) {
        const ElementType type = term.type;
        term = {Op::broadcast, type, type, {*std::exchange(simple, {})}};
      }
      replaced_.push_back(simple ? *simple : made(made_.size()));
      if (!simple) made_.push_back(std::move(term));
    }
    drop_unused();
  }

 private:
  /// The number as an i32, if it is known to be one.
  std::optional<Operand> as_i32(const Operand& operand) const {
    if (is_literal(operand) && Limits::min() <= operand.literal && operand.literal <= Limits::max()) return operand;
    return is_from_i32(operand) ? std::optional(made_[static_cast<std::size_t>(operand.index)].in[0]) : std::nullopt;
  }
  /// x and c, if the number is x + c for an i32 x.
  std::optional<std::pair<Operand, std::int64_t>> as_sum(const Operand& operand) const {
    if (const std::optional<Operand> x = as_i32(operand)) return std::pair(*x, std::int64_t{0});
    if (operand.kind != Operand::Kind::term) return {};
    const Term& term = made_[static_cast<std::size_t>(operand.index)];
    if (term.op != Op::add || term.type != ElementType::i64 || !is_literal(term.in[1])) return {};
    const std::optional<Operand> x = as_i32(term.in[0]);
    return x && !is_literal(*x) && as_i32(term.in[1]) ? std::optional(std::pair(*x, term.in[1].literal)) : std::nullopt;
  }
  /// Computes in 32 bits what gives the same there.
  void narrow(Term& term) {
    if (term.operand != ElementType::i64 || term.in.size() != 2) return;
    if (term.op == Op::less || term.op == Op::less_equal) {
      const auto a = as_sum(term.in[0]), b = as_sum(term.in[1]);
      if (!a || !b || (a->second != b->second && !is_literal(b->first))) return;
      // x + c <= n, as x <= n - c
      const Operand right = is_literal(b->first) ? literal(b->first.literal + b->second - a->second) : b->first;
      if (is_literal(right) && !as_i32(right)) return;
      term.operand = ElementType::i32;
      term.in = {a->first, right};
    } else if (term.op == Op::minimum || term.op == Op::maximum) {
      const std::optional<Operand> a = as_i32(term.in[0]), b = as_i32(term.in[1]);
      if (!a || !b) return;
      Term narrow = term;
      narrow.type = narrow.operand = ElementType::i32;
      narrow.in = {*a, *b};
      made_.push_back(std::move(narrow));
      term = {Op::cast, ElementType::i64, ElementType::i32, {made(made_.size() - 1)}};
    }
  }
  static Operand made(std::size_t index) { return {.kind = Operand::Kind::term, .index = static_cast<int>(index)}; }

  /// An operand that equals the term, if there is one.
  std::optional<Operand> simplified(const Term& term) const {
    if (term.op == Op::custom || term.op == Op::select || term.op == Op::extent || term.in.empty()) return {};
    const Operand &a = term.in[0], &b = term.in.back();
    if (term.op == Op::broadcast) return is_literal(a) && is_integer(term.type) ? std::optional(a) : std::nullopt;
    if (!is_integer(term.operand) && term.operand != ElementType::pred) return {};
    if ((is_integer(term.type) || term.type == ElementType::pred) &&
        std::ranges::all_of(term.in, [](const Operand& in) { return is_literal(in); })) {
      const Cell first = decode(term.operand, a.literal), second = decode(term.operand, b.literal);
      if (term.op == Op::cast) return literal(encode(term.type, evaluate_cast(term.operand, term.type, first)));
      if (term.in.size() <= 2 && is_elementwise(term.op) && term.op != Op::bitcast)
        return literal(encode(term.type, evaluate(term.op, term.operand, first, second)));
      return {};
    }
    switch (term.op) {
      case Op::cast:
        return term.type == ElementType::i32 && term.operand == ElementType::i64 ? as_i32(a) : std::nullopt;
      case Op::add:
        return is_literal(a, 0) ? std::optional(b) : is_literal(b, 0) ? std::optional(a) : std::nullopt;
      case Op::sub:
        return is_literal(b, 0) ? std::optional(a) : std::nullopt;
      case Op::mul:
        if (is_literal(a, 0) || is_literal(b, 0)) return literal(0);
        return is_literal(a, 1) ? std::optional(b) : is_literal(b, 1) ? std::optional(a) : std::nullopt;
      case Op::less_equal: {
        const auto fits = [&](const Operand& in) { return term.operand == ElementType::i32 || is_from_i32(in); };
        const bool always = (fits(b) && is_literal(a) && a.literal <= Limits::min()) ||
                            (fits(a) && is_literal(b) && b.literal >= Limits::max());
        return always ? std::optional(literal(1)) : std::nullopt;
      }
      case Op::logical_and:
        return is_literal(a, 1) ? std::optional(b) : is_literal(b, 1) ? std::optional(a) : std::nullopt;
      default:
        return {};
    }
  }

  using Limits = std::numeric_limits<std::int32_t>;
  /// Is it a number of 32 bits?
  bool is_from_i32(const Operand& operand) const {
    if (operand.kind != Operand::Kind::term) return false;
    const Term& term = made_[static_cast<std::size_t>(operand.index)];
    return term.op == Op::cast && term.operand == ElementType::i32 && term.type == ElementType::i64;
  }

  void drop_unused() {
    std::vector<char> used(made_.size());
    used.back() = true;
    for (std::size_t i = made_.size(); i-- > 0;)
      for (const Operand& in : made_[i].in)
        if (used[i] && in.kind == Operand::Kind::term) used[static_cast<std::size_t>(in.index)] = true;
    std::vector<int> place(made_.size());
    for (std::size_t i = 0; i < made_.size(); ++i) {
      if (!used[i]) continue;
      place[i] = static_cast<int>(expression_.terms.size());
      for (Operand& in : made_[i].in)
        if (in.kind == Operand::Kind::term) in.index = place[static_cast<std::size_t>(in.index)];
      expression_.terms.push_back(std::move(made_[i]));
    }
  }

  const std::vector<Term> old_;
  std::vector<Term> made_;
  std::vector<Operand> replaced_;  // by old term
  Expression& expression_;
};

class Folder {
 public:
  explicit Folder(Plan& plan)
      : plan_(plan),
        writes_(static_cast<std::size_t>(plan.storages.size())),
        uses_(static_cast<std::size_t>(plan.storages.size())) {}

  void run() {
    each_role([&](Body& body) { count(body); });
    each_role([&](Body& body) { literals(body); });
    writes_.assign(writes_.size(), 0), uses_.assign(uses_.size(), 0);
    each_role([&](Body& body) { count(body); });
    each_role([&](Body& body) { join(body); });
    eliminate_dead_steps(plan_);
    each_role([&](Body& body) { inline_conditions(body); });
  }

 private:
  void each_role(const auto& act) {
    for (Phase& phase : plan_.phases) {
      act(phase.prologue);
      for (Role& role : phase.roles) act(role.body);
    }
  }
  StorageId storage(ValueId value) const { return plan_.values[value].storage; }
  std::size_t at(ValueId value) const { return static_cast<std::size_t>(storage(value).index); }

  void count(const Body& body) {
    for (const Step& step : body) {
      for (const ValueId id : results(step)) ++writes_[at(id)];
      for (const ValueId id : operands(step)) ++uses_[at(id)];
      each_body(step, [&](const Body& inner) { count(inner); });
    }
  }

  /// Is it one number, which never changes?
  bool is_fixed(ValueId id) const {
    const Storage& of = plan_.storage(id);
    return of.storage_class == StorageClass::variable && !of.changes &&
           (!std::holds_alternative<std::monostate>(of.known) || writes_[at(id)] == 1);
  }
  /// The integer that a step computes once for all threads alike, or null.
  Compute* number(Step& step) const {
    Compute* const compute = step.action.as<Compute>();
    const bool is_one = compute && compute->sweep.layout == Layout(0) && compute->sweep.reads.empty() &&
                        !compute->zero_lanes && !compute->zero_warps;
    return is_one && is_integer(plan_.storage(compute->out).type) && is_fixed(compute->out) ? compute : nullptr;
  }

  // --- literals

  struct Substitute : FieldVisitor {
    const Folder& folder;
    explicit Substitute(const Folder& folder) : folder(folder) {}
    void operand(Operand& operand) const {
      if (operand.kind != Operand::Kind::value) return;
      const auto found = folder.known_.find(folder.storage(operand.value));
      if (found != folder.known_.end()) operand = literal(found->second);
    }
    void element(Operand& operand) const { this->operand(operand); }
    void sweep(Sweep& sweep) const {
      for (Term& term : sweep.expression.terms)
        for (Operand& in : term.in) operand(in);
      for (TileAccess& read : sweep.reads) copy(read);
      if (!sweep.expression.terms.empty()) Terms(sweep.expression).run();
    }
    void access(TileAccess& access, Use) const { copy(access); }
    void copy(TileAccess& access) const {
      if (access.member) operand(*access.member);
      for (TileAccess::Axis& axis : access.axes) {
        operand(axis.index);
        if (axis.element) operand(*axis.element);
        for (TileAccess::Slice& slice : axis.slices) operand(slice.start), operand(slice.extent);
      }
    }
  };

  void literals(Body& body) {
    for (Step& step : body) {
      visit_kind([&](auto& kind) { each_field(kind, Substitute(*this)); }, step.action);
      if (const Compute* const compute = number(step)) {
        const Term& last = compute->sweep.expression.terms.back();
        if (last.op == Op::broadcast && is_literal(last.in[0])) known_[storage(compute->out)] = last.in[0].literal;
      }
      each_body(step, [&](Body& inner) { literals(inner); });
    }
  }

  // --- numbers on the way to a number

  void join(Body& body) {
    for (std::size_t i = 0; i < body.size(); ++i) {
      each_body(body[i], [&](Body& inner) { join(inner); });
      Compute* const user = number(body[i]);
      if (!user) continue;
      for (std::size_t j = i; j-- > 0 && on_one_line(body[j], body[i]);)
        if (const Compute* const part = number(body[j]); part && is_part(*part, *user)) splice(*part, *user);
    }
  }
  static bool on_one_line(const Step& a, const Step& b) {
    return a.location.line == b.location.line && std::string_view(a.location.file) == b.location.file &&
           *a.location.file;
  }
  /// Is the one number only used by the other, and are its operands the same there?
  bool is_part(const Compute& number, const Compute& user) const {
    constexpr std::size_t most_terms = 8;
    const auto& terms = user.sweep.expression.terms;
    const auto is_it = [&](const Operand& in) {
      return in.kind == Operand::Kind::value && storage(in.value) == storage(number.out);
    };
    std::ptrdiff_t uses = 0;
    for (const Term& term : terms) uses += std::ranges::count_if(term.in, is_it);
    if (uses != 1 || uses_[at(number.out)] != 1) return false;
    if (terms.size() + number.sweep.expression.terms.size() > most_terms) return false;
    return std::ranges::all_of(number.sweep.expression.terms, [&](const Term& term) {
      return std::ranges::all_of(
          term.in, [&](const Operand& in) { return in.kind != Operand::Kind::value || is_fixed(in.value); });
    });
  }
  void splice(const Compute& number, Compute& user) {
    std::vector<Term> terms = number.sweep.expression.terms;
    const int count = static_cast<int>(terms.size());
    for (Term term : user.sweep.expression.terms) {
      for (Operand& in : term.in) {
        if (in.kind == Operand::Kind::term) in.index += count;
        if (in.kind == Operand::Kind::value && storage(in.value) == storage(number.out))
          in = {.kind = Operand::Kind::term, .index = count - 1};
      }
      terms.push_back(std::move(term));
    }
    user.sweep.expression.terms = std::move(terms);
  }

  // --- conditions

  void inline_conditions(Body& body) {
    for (std::size_t i = 0; i < body.size(); ++i) {
      each_body(body[i], [&](Body& inner) { inline_conditions(inner); });
      if (i == 0) continue;
      const Branch* const branch = body[i].action.as<Branch>();
      const Compute* const number = body[i - 1].action.as<Compute>();
      if (!branch || !number) continue;
      const Operand& of = branch->condition;
      if (of.kind != Operand::Kind::value || storage(of.value) != storage(number->out)) continue;
      Storage& to = plan_.storage(number->out);
      const bool computes = number->sweep.layout == Layout(0) && number->sweep.reads.empty() && !number->zero_lanes &&
                            !number->zero_warps && std::holds_alternative<std::monostate>(to.known);
      to.inlined = computes && is_fixed(number->out) && uses_[at(number->out)] == 1;
    }
  }

  Plan& plan_;
  std::vector<int> writes_, uses_;  // by storage
  std::map<StorageId, std::int64_t> known_;
};

}  // namespace

void fold_scalars(Plan& plan) { Folder(plan).run(); }

}  // namespace tessera::internal::codegen

bool tessera::internal::plan_pass::fold_scalars(lowering::Planning& planning) {
  codegen::fold_scalars(planning.plan);
  return true;
}
