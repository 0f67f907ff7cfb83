#include "codegen/lower/reads_in_order.hpp"

#include <concepts>
#include <variant>

namespace tessera::codegen {
namespace {

// What a step reads of inputs, each with its sweep.
template <class Each>
void each_read(Step& step, const Each& each) {
  std::visit([&]<class Kind>(Kind& kind) {
    if constexpr (requires { kind.sweep.reads; }) {
      if (!kind.sweep.unrolled) return;
      for (TileAccess& read : kind.sweep.reads)
        if (read.read_only) each(kind.sweep, read);
      if constexpr (std::same_as<Kind, Load>)
        if (kind.access.read_only) each(kind.sweep, kind.access);
    }
  }, step.action);
}

void keep(Body& steps, const Plan& plan) {
  int registers = 0;
  for (Step& step : steps) {
    each_body(step, [&](Body& inner) { keep(inner, plan); });
    each_read(step, [&](const Sweep& sweep, const TileAccess& read) {
      const bool wide = plan.tensors[static_cast<std::size_t>(read.parameter)].type == ElementType::i64;
      registers += sweep.layout.registers() * (wide ? 2 : 1);
    });
  }
  if (registers <= plan.target.registers_of_reads) return;
  for (Step& step : steps) each_read(step, [](const Sweep&, TileAccess& read) { read.in_order = true; });
}

}  // namespace

void keep_reads_in_order(Plan& plan) {
  if (plan.target.registers_of_reads == 0) return;
  for (Phase& phase : plan.phases)
    for (Role& role : phase.roles) keep(role.body, plan);
}

}  // namespace tessera::codegen
