#include "codegen/passes/plan/l2_policy.hpp"

#include <algorithm>

#include "codegen/passes/plan/no_hoist_loads.hpp"
#include "codegen/passes/plan/planning.hpp"

namespace tessera::internal::codegen {
namespace {

std::int64_t bytes_of(const Plan& plan, const TileAccess& access) {
  std::int64_t bytes = info(plan.tensors[static_cast<std::size_t>(access.parameter)].type).bytes;
  for (const TileAccess::Axis& axis : access.axes) bytes *= axis.extent;
  return bytes;
}

// Does its place follow from the grid tile's?
bool is_of_block(const TileAccess& access) {
  return std::ranges::any_of(access.axes,
                             [](const TileAccess::Axis& axis) { return axis.index.kind == Operand::Kind::value; });
}

}  // namespace

void set_l2_policy(Plan& plan) {
  if (!plan.target.l2_policy || plan.phases.size() > 1 || plan.phases[0].roles.size() > 1) return;
  Body& steps = plan.phases[0].roles[0].body;
  std::int64_t written = 0;
  bool once = true;
  for (Step& step : steps) {
    once &= visit_kind([]<class Kind>(const Kind&) { return !OneOf<Kind, Loop, Branch, Mma>; }, step.action);
    if (const Store* const store = step.action.as<Store>()) written += bytes_of(plan, store->access);
    if (const Atomic* const atomic = step.action.as<Atomic>()) written += bytes_of(plan, atomic->access);
  }
  if (!once || written == 0) return;
  for (Step& step : steps)
    each_read(step, [&](const Sweep&, TileAccess& read) {
      const int bytes = read.vector * info(plan.tensors[static_cast<std::size_t>(read.parameter)].type).bytes;
      read.kept = bytes == 16 && read.in_order && !read.rows && !read.member && read.padding == 0 &&
                  is_of_block(read) && 2 * bytes_of(plan, read) >= written;
    });
}

}  // namespace tessera::internal::codegen

bool tessera::internal::plan_pass::l2_policy(lowering::Planning& planning) {
  codegen::set_l2_policy(planning.plan);
  return true;
}
