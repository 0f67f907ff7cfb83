#include "codegen/passes/plan/no_hoist_loads.hpp"

namespace tessera::internal::codegen {
namespace {

void keep(Body& steps, const Plan& plan) {
  int registers = 0;
  for (Step& step : steps) {
    each_body(step, [&](Body& inner) { keep(inner, plan); });
    each_read(step, [&](const Sweep& sweep, const TileAccess& read) {
      if (!sweep.unrolled) return;
      const bool wide = info(plan.tensors[static_cast<std::size_t>(read.parameter)].type).bytes == 8;
      registers += sweep.layout.registers() * (wide ? 2 : 1);
    });
  }
  if (registers <= plan.target.registers_of_reads) return;
  for (Step& step : steps)
    each_read(step, [](const Sweep& sweep, TileAccess& read) { read.in_order = sweep.unrolled; });
}

}  // namespace

void forbid_load_hoisting(Plan& plan) {
  if (plan.target.registers_of_reads == 0) return;
  for (Phase& phase : plan.phases)
    for (Role& role : phase.roles) keep(role.body, plan);
}

}  // namespace tessera::internal::codegen
