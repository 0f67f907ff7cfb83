#include "codegen/emit/emit_steps.hpp"
#include "codegen/plan/spelling.hpp"

namespace tessera::internal::codegen {
namespace {

// Order and scope as template arguments; empty if they are the prelude's defaults.
std::string in_order(const Atomic& atomic) {
  constexpr std::string_view orders[] = {"Relaxed", "Acquire", "Release", "AcquireRelease"};
  constexpr std::string_view scopes[] = {"BlockScope", "DeviceScope", "SystemScope"};
  if (atomic.order == MemoryOrder::relaxed && atomic.scope == MemoryScope::device) return "";
  return fmt::format("<{}, {}>", orders[static_cast<int>(atomic.order)], scopes[static_cast<int>(atomic.scope)]);
}

}  // namespace

void emit(Writer& w, const Atomic& atomic) {
  const TileAccess& access = atomic.access;
  const ElementType type = w.tensor(access.parameter).type;
  if (atomic.out) declare(w, atomic.out, false);
  w.open("{{");
  place(w, access, true);
  const IndexExpression mine = first_copy(w, atomic.sweep.layout);
  sweep(w, atomic.sweep, {}, [&](const IndexExpression& index) {
    const Spot at = spot(w, atomic.sweep, access, index);
    std::string operands = address(w, access, at);
    if (atomic.expected) operands += ", " + spelled(w, atomic.sweep, *atomic.expected, type, index).text;
    const std::string value = expression(w, atomic.sweep, index).text;
    operands += ", " + value;
    const std::string change = fmt::format("{}{}({})", name(atomic.op), in_order(atomic), operands);
    const IndexExpression exists = both(mine, at.inside);
    // Minimum and maximum ignore NaN.
    if (atomic.op != Op::atomic_max && atomic.op != Op::atomic_min) check_number(w, type, value, exists);
    if (atomic.out)
      w.line("{} = {};", element(w, atomic.out, index), where(exists, change, number(type, Cell{})));
    else
      w.line("{}{};", guard(exists), change);
  });
  w.close();
}

}  // namespace tessera::internal::codegen
