#include "codegen/emit/emit_steps.hpp"
#include "codegen/plan/spelling.hpp"

namespace tessera::internal::codegen {
namespace {

// True for the threads in which none of the bits that distinguish partial sums is set.
IndexExpression is_first_part(Writer& w, const Compute& compute) {
  const auto no_bit = [](const IndexExpression& of, int bits) {
    return bits ? equal(of & bits, 0) : IndexExpression::always();
  };
  w.uses.lane |= compute.zero_lanes != 0;
  w.uses.warp |= compute.zero_warps != 0;
  return both(no_bit(IndexExpression::variable("lane"), compute.zero_lanes),
              no_bit(IndexExpression::variable("warp"), compute.zero_warps));
}

bool is_array(const Storage& storage) { return storage.storage_class == StorageClass::registers; }
bool is_same_array(const Storage& a, const Storage& b) {
  return is_array(a) && is_array(b) && a.registers == b.registers && a.packed == b.packed &&
         register_type(a.type) == register_type(b.type);
}
// Returns true if each register comes from the one of the same number.
bool is_identity(const Operand& operand, int registers) {
  const IndexExpression r = IndexExpression::variable("r", registers);
  return (digits(operand.map, r) + operand.first).text() == r.text();
}

// Packs two neighboring elements into each register.
void compute_pairs(Writer& w, const Compute& compute) {
  const std::string_view type = name(w.plan.storage(compute.out).type);
  declare(w, compute.out, true);
  const int count = compute.sweep.layout.registers();
  const IndexExpression g = IndexExpression::variable("g", count);
  w.unroll(compute.sweep);
  w.open("for (int g = 0; g < {}; g += 2) {{", count);
  const std::string low = expression(w, compute.sweep, g).text, high = expression(w, compute.sweep, g + 1).text;
  w.line("{}[g / 2] = pack_{}({}, {});", w.name(compute.out), type, low, high);
  w.close();
}

}  // namespace

void emit(Writer& w, const Compute& compute) {
  if (w.plan.storage(compute.out).inlined) {
    w.inlined[w.plan.values[compute.out].storage] = expression(w, compute.sweep, 0).text;
    return;
  }
  if (w.plan.storage(compute.out).packed == 2) return compute_pairs(w, compute);
  declare(w, compute.out, true);
  const IndexExpression first = is_first_part(w, compute);
  const bool masked = !first.is_always() && !is_zero(compute.sweep.expression);
  const std::vector<Term>& terms = compute.sweep.expression.terms;
  const Storage& storage = w.plan.storage(compute.out);
  if (terms.size() == 1 && terms[0].op == Op::broadcast && !masked && is_array(storage) && compute.sweep.unrolled &&
      compute.sweep.layout.registers() == storage.registers) {
    const Operand& of = terms[0].in[0];
    if (of.kind == Operand::Kind::literal)
      return w.line("fill({}, {});", w.name(compute.out), expression(w, compute.sweep, 0).text);
    if (of.kind == Operand::Kind::value && is_same_array(w.plan.storage(of.value), storage) &&
        is_identity(of, storage.registers))
      return w.line("copy({}, {});", w.name(compute.out), w.name(of.value));
  }
  sweep(w, compute.sweep, compute.out, [&](const IndexExpression& index) {
    const Spelled value = expression(w, compute.sweep, index);
    const std::string to = assign(w, compute.out, index);
    if (masked)
      w.line("{}{} ? {} : 0.0f;", to, first, value.operand());
    else
      w.line("{}{};", to, value.text);
  });
}

}  // namespace tessera::internal::codegen
