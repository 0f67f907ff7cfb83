#include "codegen/lower/make_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/lower/hint_notes.hpp"
#include "codegen/lower/l2_policy.hpp"
#include "codegen/lower/lower_atomic.hpp"
#include "codegen/lower/memory.hpp"
#include "codegen/lower/no_hoist_loads.hpp"
#include "codegen/lower/plan_dce.hpp"
#include "codegen/lower/programmatic_launch.hpp"
#include "codegen/lower/remarks.hpp"
#include "codegen/lower/split_products.hpp"
#include "codegen/lower/sync.hpp"
#include "codegen/plan/budget.hpp"
#include "codegen/plan/effects.hpp"
#include "codegen/plan/names.hpp"
#include "codegen/plan/remarks.hpp"
#include "codegen/plan/verify_plan.hpp"
#include "codegen/prelude/identifier.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal::lowering {
namespace {

using Status = Remark::Status;

// Where a step first reads scratch memory other than for sums of other blocks of threads.
Location exchange(const Plan& plan, int of_parts) {
  std::optional<Location> at;
  PlanWalk walk(plan);
  walk.each([&](const Role& role, const Step& step, int, const std::vector<const Interval*>&) {
    const auto exchanges = [&](const Effect& effect) {
      return effect.space == Effect::Space::scratch && effect.index >= of_parts && !effect.write;
    };
    if (!at && std::ranges::any_of(effects(plan, role, step), exchanges)) at = step.location;
  });
  return at.value_or(plan.location);
}

// Teams have registers of their own, and no other memory for elements. Empty, or what needs some.
std::string needs_memory(const GraphAnalysis& analysis, const Plan& plan, Location& where) {
  const int of_parts = plan.phases[0].schedule.split_k != SplitK::none ? 1 : 0;
  if (plan.scratch.size() > of_parts) {
    where = exchange(plan, of_parts);
    return "its threads exchange elements of tiles";
  }
  for (const Storage& storage : plan.storages)
    if (storage.storage_class != StorageClass::registers && storage.storage_class != StorageClass::variable) {
      where = location_of(analysis, storage.label);
      return fmt::format("{} registers of a thread for one tile", storage.registers);
    }
  return {};
}

std::pair<int, int> warp_groups(const ScheduleCandidate& candidate) {
  if (const auto* const how = std::get_if<WarpSpecializedGemm>(&candidate)) return {how->groups, how->consumer_groups};
  return {std::get<FusedMatmul>(candidate).groups, 1};
}

Location location_of(const GraphAnalysis& analysis, const ScheduleCandidate& candidate) {
  if (const auto* const how = std::get_if<WarpSpecializedGemm>(&candidate)) return analysis[how->products[0]].location;
  return analysis[std::get<FusedMatmul>(candidate).products[0].id].location;
}

SplitK split_k_of(const ScheduleCandidate* candidate) {
  const auto* const how = candidate ? std::get_if<WarpSpecializedGemm>(candidate) : nullptr;
  return how ? how->split_k : SplitK::none;
}

// The next attempt is another way, or that of one role.
bool not_this_way(Planning& planning, std::string why, Location where) {
  planning.why_not = std::move(why);
  planning.where = where;
  ++planning.attempt;
  return false;
}

const ScheduleCandidate* candidate_of(const Planning& planning) {
  const int candidate = planning.attempts[planning.attempt].candidate;
  return candidate >= 0 ? &planning.candidates[static_cast<std::size_t>(candidate)] : nullptr;
}

// Who does the work of products, in the attempt at hand: roles, in one of the ways that there are, or one role, and
// why.
bool choose_schedule(Planning& planning) {
  const GraphAnalysis& analysis = planning.analysis;
  Plan& plan = planning.plan;
  plan = {};
  plan.kernel = kernel_identifier(analysis.graph.name);
  plan.author = analysis.graph.name;
  plan.debug = planning.debug;
  plan.location = analysis.graph.location;
  plan.target = analysis.target;
  plan.variant = analysis.variant;
  plan.tensors = analysis.graph.parameters;
  plan.reaches = planning.reaches;
  plan.functions = analysis.graph.functions;
  std::vector<Role>& roles = plan.phases.emplace_back().roles;
  if (const ScheduleCandidate* const candidate = candidate_of(planning)) {
    const auto [groups, consumer_groups] = warp_groups(*candidate);
    roles.push_back({.name = "producer", .warps = 4, .body = {}});
    roles.push_back({.name = "consumer", .first_warp = 4, .warps = 4 * groups, .consumer_groups = consumer_groups});
    add_remark(plan, location_of(analysis, *candidate), Status::passed, remark_kind::wgmma, "{}",
               std::visit([&](const auto& how) { return text_of(analysis, how); }, *candidate));
    if (!planning.why_not.empty())
      add_remark(plan, planning.where, Status::analysis, remark_kind::wgmma, "{}", planning.why_not);
  } else {
    roles.push_back({.name = "all", .warps = planning.attempts[planning.attempt].warps, .body = {}});
    if (!planning.why_not.empty())
      add_remark(plan, planning.where, Status::missed, remark_kind::wgmma, "{}", planning.why_not);
  }
  if (planning.has_products && plan.variant.split_k != SplitK::none &&
      split_k_of(candidate_of(planning)) == SplitK::none)
    add_remark(plan, plan.location, Status::missed, remark_kind::split_k, "{}",
               planning.why_not_split.empty() ? "only tiles that go by wgmma share their k-iterations, where registers suffice"
                                              : planning.why_not_split);
  return true;
}

// Steps for the attempt at hand.
bool lower_graph(Planning& planning) {
  const GraphAnalysis& analysis = planning.analysis;
  const Attempt& attempt = planning.attempts[planning.attempt];
  const ScheduleCandidate* const candidate = candidate_of(planning);
  const Products products = candidate
                                ? std::visit([&](const auto& how) { return products_of(analysis, how); }, *candidate)
                            : planning.has_products ? plan_products(analysis, attempt.warps)
                                                    : Products{};
  const Layouts layouts =
      choose_layouts(analysis, products.plans, planning.has_products ? products.warps : attempt.warps);
  Plan& plan = planning.plan;
  Phase& phase = plan.phases[0];
  phase.roles.clear();
  phase.axes = static_cast<int>(analysis.graph.grid.size());
  const bool has_block_products = std::any_of(products.plans.begin(), products.plans.end(), [&](const auto& entry) {
    return entry.second.product.kind != MatmulKind::gemv &&
           analysis.graph.regions[analysis.graph[entry.first].region].kind == RegionKind::loop;
  });
  if (phase.axes >= 2 && has_block_products) phase.schedule.raster_group = 8;
  if (candidate) {
    std::visit([&](const auto& how) { lower_roles(analysis, how, products, layouts, plan); }, *candidate);
    Location where;
    const std::string why = needs_memory(analysis, plan, where);
    return why.empty() || not_this_way(planning, why, where);
  }
  Role role{.name = "all", .warps = layouts.warps, .body = {}};
  const std::set<Id> more =
      lower(analysis, products.plans, layouts, attempt.most_registers, planning.in_memory, {}, plan, role);
  phase.roles.push_back(std::move(role));
  const std::size_t before = planning.in_memory.values.size();
  planning.in_memory.values.insert(more.begin(), more.end());
  return planning.in_memory.values.size() == before;
}

bool prune_steps(Planning& planning) {
  prune(planning.plan);
  return true;
}

// The fewest threads and the most in registers that a thread has registers for.
bool fit_registers(Planning& planning) {
  Plan& plan = planning.plan;
  if (const ScheduleCandidate* const candidate = candidate_of(planning)) {
    const auto* const how = std::get_if<WarpSpecializedGemm>(candidate);
    const auto [values, room] = role_pressure(plan, how && how->reads_ahead);
    return values <= room ||
           not_this_way(planning, fmt::format("{} registers for values, and a thread has {}", values, room),
                        location_of(planning.analysis, *candidate));
  }
  const Pressure needed = pressure(plan);
  const Budget budget(plan.target, plan.threads(), planning.has_products);
  // Of rows ptxas would read ahead, with what they are multiplied by, until few fit a multiprocessor.
  const int values = pressure(plan, !planning.has_products).values;
  const int hinted = hinted_blocks(planning.analysis, plan, planning.has_products, values);
  plan.blocks = hinted > 0 ? hinted : budget.blocks(plan, values);
  if (needed.all <= budget.registers() || planning.attempt + 1 == planning.attempts.size()) {
    forbid_load_hoisting(plan);
    return true;
  }
  ++planning.attempt;
  planning.in_memory.values.clear();
  return false;
}

bool memory(Planning& planning) {
  place_memory(planning.plan);
  for (Phase& phase : planning.plan.phases)
    if (planning.plan.workspace_bytes > 0 && phase.schedule.kind == Schedule::Kind::grid)
      phase.schedule.kind = Schedule::Kind::persistent;
  planning.plan.progress = Progress::placed;
  return true;
}

// Tensor cores read shared memory only: a product with a buffer elsewhere is made of other instructions, which in turn
// take no operand from registers. Returns the products that have one.
std::set<Id> leave_tensor_cores(Body& steps, const Plan& plan) {
  std::set<Id> left;
  for (Step& step : steps) {
    each_body(step, [&](Body& inner) { left.merge(leave_tensor_cores(inner, plan)); });
    Multiply* const multiply = step.action.as<Multiply>();
    if (!multiply || multiply->product.kind != MatmulKind::mma_sync) continue;
    Product& product = multiply->product;
    for (const ProductOperand* operand : {&product.a, &product.b}) {
      if (!operand->buffer || !plan.buffers[operand->buffer].in_workspace) continue;
      product.kind = MatmulKind::simt;
      if (product.reads_ahead) product.unrolled = plan.target.unrolled_rounds;
      product.reads_ahead = false;
      multiply->fetching = {};
      multiply->holds_last = false;
      if (product.a.value) left.insert(step.node);
    }
  }
  return left;
}
bool tensor_cores(Planning& planning) {
  Plan& plan = planning.plan;
  std::set<Id> left;
  for (Phase& phase : plan.phases)
    for (Role& role : phase.roles) left.merge(leave_tensor_cores(role.body, plan));
  for (int i = 0; i < plan.buffers.size(); ++i)
    if (plan.buffers[BufferId{i}].in_workspace)
      add_remark(plan, location_of(planning.analysis, plan.buffers[BufferId{i}].label), Status::missed,
                 remark_kind::shared, "{} does not fit into shared memory", name_of(plan, BufferId{i}));
  if (left.empty()) return true;
  planning.in_memory.left.insert(left.begin(), left.end());
  planning.in_memory.values.clear();
  planning.attempt = 0;
  return false;
}

bool copies(Planning& planning) {
  choose_copies(planning.plan);
  return true;
}

bool pdl(Planning& planning) {
  begin_early(planning.plan);
  return true;
}

bool l2_policy(Planning& planning) {
  set_l2_policy(planning.plan);
  return true;
}

bool barriers(Planning& planning) {
  insert_barriers(planning.plan);
  planning.plan.progress = Progress::synchronised;
  return true;
}

bool remarks(Planning& planning) {
  note_hints(planning.analysis, planning.plan);
  remark_steps(planning.analysis, planning.plan);
  return true;
}

bool parameters(Planning& planning) {
  set_parameters(planning.plan);
  return true;
}

constexpr PlanPass passes[] = {
    {"schedule", "what runs the matmuls: warp-specialized roles and how they split k, or one role, and why",
     choose_schedule, "specialise"},
    {"lower", "steps for the graph, their layouts being chosen", lower_graph},
    {"plan_dce", "removes steps whose results no step reads", prune_steps, "prune"},
    {"registers", "fewer elements in registers, or more threads, until a thread's registers suffice", fit_registers},
    {"memory", "offsets in shared memory; what does not fit goes to the workspace", memory},
    {"tensor_cores", "products with an operand in the workspace are made of other instructions", tensor_cores},
    {"copies", "how each tile of a fetch is copied", copies},
    {"pdl", "programmatic dependent launch: where the kernel waits for the launch before it", pdl, "early"},
    {"l2_policy", "evict_last for what is read again, so that writes do not evict it", l2_policy, "kept"},
    {"barriers", "where threads wait for one another", barriers},
    {"remarks", "what became of the author's statements", remarks},
    {"parameters", "what a launch fills in", parameters},
};

}  // namespace

std::span<const PlanPass> plan_passes() { return passes; }

void set_parameters(Plan& plan) {
  using Kind = KernelParameter::Kind;
  for (int i = 0; i < plan.tensor_maps.size(); ++i) plan.parameters.push_back({Kind::tensor_map, i, 0});
  for (int i = 0; i < static_cast<int>(plan.tensors.size()); ++i) {
    const Parameter& parameter = plan.tensors[static_cast<std::size_t>(i)];
    if (parameter.access == Access::scalar) {
      plan.parameters.push_back({Kind::scalar, i, 0});
      continue;
    }
    plan.parameters.push_back({Kind::pointer, i, 0});
    for (int axis = 0; axis < parameter.rank; ++axis) plan.parameters.push_back({Kind::extent, i, axis});
    for (int axis = 0; axis < parameter.rank; ++axis)
      if (axis != plan.variant.tensors[static_cast<std::size_t>(i)].contiguous_axis)
        plan.parameters.push_back({Kind::stride, i, axis});
  }
  for (const Phase& phase : plan.phases)
    for (int axis = 0; axis < phase.axes; ++axis) plan.parameters.push_back({Kind::grid, 0, phase.first_axis + axis});
  for (std::size_t i = 0; i < plan.phases.size(); ++i)
    if (plan.phases[i].schedule.kind != Schedule::Kind::grid)
      plan.parameters.push_back({Kind::blocks, static_cast<int>(i), 0});
  for (const Phase& phase : plan.phases)
    if (phase.l2_groups_of_launch()) plan.parameters.push_back({Kind::l2_group, 0, phase.first_axis});
  if (plan.workspace_bytes > 0) plan.parameters.push_back({Kind::workspace, 0, 0});
  if (plan.shared_by_grid())
    for (const Kind kind : {Kind::flags, Kind::lockstep_rows}) plan.parameters.push_back({kind, 0, 0});
  if (plan.tells_host()) plan.parameters.push_back({Kind::reports, 0, 0});
  if (!plan.prefetched_before_wait().empty()) plan.parameters.push_back({Kind::may_prefetch, 0, 0});
  plan.progress = Progress::complete;
}

Planning::Planning(const GraphAnalysis& analysis, std::vector<TileReach> reaches, bool debug)
    : analysis(analysis), reaches(std::move(reaches)), debug(debug) {
  const Products products = plan_products(analysis, 1);
  has_products = !products.plans.empty();
  const bool tells =
      std::ranges::any_of(analysis.graph.nodes, [&](const Node& node) { return info(node.op).role == OpRole::report; });
  if (has_products) {
    // What is told is known to all threads.
    const bool learns = learns_of_others(analysis), by_all = tells || learns;
    WarpSpecializedGemms warp_specialized =
        by_all ? WarpSpecializedGemms{.why_not = tells ? "it checks or prints" : "its atomics are of all threads"}
               : warp_specialize(analysis);
    if (debug)  // the copy engine looks at nothing that it stores
      for (WarpSpecializedGemm& candidate : warp_specialized.candidates) candidate.tma_tensors.clear();
    FusedMatmuls fused = by_all ? FusedMatmuls{} : match_fused_matmul(analysis);
    const bool is_fused_matmul = !fused.why_not.empty();
    why_not = is_fused_matmul ? fused.why_not : warp_specialized.why_not;
    why_not_split = warp_specialized.why_not_split;
    const Id at = is_fused_matmul ? fused.where : warp_specialized.where;
    where = at == no_id ? analysis[products.plans.begin()->first].location : analysis[at].location;
    std::ranges::move(warp_specialized.candidates, std::back_inserter(candidates));
    std::ranges::move(fused.candidates, std::back_inserter(candidates));
    if (!candidates.empty()) why_not.clear();  // of the other kind
    for (int candidate = 0; candidate < static_cast<int>(candidates.size()); ++candidate)
      attempts.push_back({0, 0, candidate});
    if (const int hinted = analysis.hints.warps) attempts.push_back({hinted, 128});
    for (int warps : {products.warps, std::min(2 * products.warps, 16)}) attempts.push_back({warps, 128});
    for (int most = 64; most >= 1; most /= 2) attempts.push_back({products.warps, most});
  } else {
    const int hinted = analysis.hints.warps;
    for (int warps = hinted > 0 ? hinted : choose_warps(analysis); warps <= 32; warps *= 2)
      attempts.push_back({warps, 64});
    for (int most = 32; most >= 1; most /= 2) attempts.push_back({16, most});
  }
}

}  // namespace tessera::internal::lowering

namespace tessera::internal::codegen {

Plan make_plan(const Graph& whole, const Variant& variant, Arch arch, const GenerateOptions& options,
               const AfterPass& after) {
  using namespace lowering;
  if (arch.number() < 80)
    throw Error(fmt::format("kernel '{}' cannot be generated for {}: sm_80 is the oldest architecture", whole.name,
                            arch.name()));
  const Target target = Target::of(arch, options.warp_specialize);
  const std::optional<Graph> split = split_products(whole, target);
  const GraphAnalysis analysis(split ? *split : whole, variant, target);
  Planning planning(analysis, tile_reaches(whole), options.debug);
  for (std::size_t i = 0; i < std::size(passes); ++i) {
    const bool done = passes[i].run(planning);
    if (done) {
      if (options.verify) verify(planning.plan, passes[i].name);
      if (after) after(passes[i].name, planning.plan);
    } else {
      i = static_cast<std::size_t>(-1);  // from the first on
    }
  }
  return std::move(planning.plan);
}

}  // namespace tessera::internal::codegen
