#include "codegen/lower/make_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/lower/begin_early.hpp"
#include "codegen/lower/keep_reads.hpp"
#include "codegen/lower/lower_atomic.hpp"
#include "codegen/lower/memory.hpp"
#include "codegen/lower/prune.hpp"
#include "codegen/lower/reads_in_order.hpp"
#include "codegen/lower/remarks.hpp"
#include "codegen/lower/split_products.hpp"
#include "codegen/lower/sync.hpp"
#include "codegen/lower/wishes.hpp"
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
  Walk walk(plan);
  walk.each([&](const Role& role, const Step& step, int, const std::vector<const Interval*>&) {
    const auto exchanges = [&](const Effect& effect) {
      return effect.space == Effect::Space::scratch && effect.index >= of_parts && !effect.write;
    };
    if (!at && std::ranges::any_of(effects(plan, role, step), exchanges)) at = step.location;
  });
  return at.value_or(plan.location);
}

// Teams have registers of their own, and no other memory for elements. Empty, or what needs some.
std::string needs_memory(const Facts& facts, const Plan& plan, Location& where) {
  const int of_parts = plan.phases[0].schedule.sharing != Sharing::none ? 1 : 0;
  if (plan.scratch.size() > of_parts) {
    where = exchange(plan, of_parts);
    return "its threads exchange elements of tiles";
  }
  for (const Storage& storage : plan.storages)
    if (storage.home != Home::registers && storage.home != Home::variable) {
      where = location_of(facts, storage.label);
      return fmt::format("{} registers of a thread for one tile", storage.registers);
    }
  return {};
}

std::pair<int, int> warp_groups(const Way& way) {
  if (const auto* const how = std::get_if<Specialisation>(&way)) return {how->groups, how->teams};
  return {std::get<Chain>(way).groups, 1};
}

Location location_of(const Facts& facts, const Way& way) {
  if (const auto* const how = std::get_if<Specialisation>(&way)) return facts[how->products[0]].location;
  return facts[std::get<Chain>(way).products[0].id].location;
}

Sharing sharing_of(const Way* way) {
  const auto* const how = way ? std::get_if<Specialisation>(way) : nullptr;
  return how ? how->sharing : Sharing::none;
}

// The next attempt is another way, or that of one role.
bool not_this_way(Planning& planning, std::string why, Location where) {
  planning.why_not = std::move(why);
  planning.where = where;
  ++planning.attempt;
  return false;
}

const Way* way_of(const Planning& planning) {
  const int way = planning.attempts[planning.attempt].way;
  return way >= 0 ? &planning.ways[static_cast<std::size_t>(way)] : nullptr;
}

// Who does the work of products, in the attempt at hand: roles, in one of the ways that there are, or one role, and
// why.
bool share_work(Planning& planning) {
  const Facts& facts = planning.facts;
  Plan& plan = planning.plan;
  plan = {};
  plan.kernel = kernel_identifier(facts.graph.name);
  plan.author = facts.graph.name;
  plan.debug = planning.debug;
  plan.location = facts.graph.location;
  plan.target = facts.target;
  plan.variant = facts.variant;
  plan.tensors = facts.graph.parameters;
  plan.reaches = planning.reaches;
  plan.functions = facts.graph.functions;
  std::vector<Role>& roles = plan.phases.emplace_back().roles;
  if (const Way* const way = way_of(planning)) {
    const auto [groups, teams] = warp_groups(*way);
    roles.push_back({.name = "producer", .warps = 4, .body = {}});
    roles.push_back({.name = "consumer", .first_warp = 4, .warps = 4 * groups, .teams = teams});
    add_remark(plan, location_of(facts, *way), Status::passed, remark_kind::wgmma, "{}",
               std::visit([&](const auto& how) { return text_of(facts, how); }, *way));
    if (!planning.why_not.empty())
      add_remark(plan, planning.where, Status::analysis, remark_kind::wgmma, "{}", planning.why_not);
  } else {
    roles.push_back({.name = "all", .warps = planning.attempts[planning.attempt].warps, .body = {}});
    if (!planning.why_not.empty())
      add_remark(plan, planning.where, Status::missed, remark_kind::wgmma, "{}", planning.why_not);
  }
  if (planning.has_products && plan.variant.sharing != Sharing::none && sharing_of(way_of(planning)) == Sharing::none)
    add_remark(plan, plan.location, Status::missed, remark_kind::split_k, "{}",
               planning.why_not_split.empty() ? "only tiles that go by wgmma share their k-iterations, where registers suffice"
                                              : planning.why_not_split);
  return true;
}

// Steps for the attempt at hand.
bool lower_graph(Planning& planning) {
  const Facts& facts = planning.facts;
  const Attempt& attempt = planning.attempts[planning.attempt];
  const Way* const way = way_of(planning);
  const Products products = way ? std::visit([&](const auto& how) { return products_of(facts, how); }, *way)
                            : planning.has_products ? plan_products(facts, attempt.warps)
                                                    : Products{};
  const Layouts layouts = choose_layouts(facts, products.plans, planning.has_products ? products.warps : attempt.warps);
  Plan& plan = planning.plan;
  Phase& phase = plan.phases[0];
  phase.roles.clear();
  phase.axes = static_cast<int>(facts.graph.grid.size());
  const bool has_block_products = std::any_of(products.plans.begin(), products.plans.end(), [&](const auto& entry) {
    return entry.second.product.kind != ProductKind::thin &&
           facts.graph.regions[facts.graph[entry.first].region].kind == RegionKind::loop;
  });
  if (phase.axes >= 2 && has_block_products) phase.schedule.group = 8;
  if (way) {
    std::visit([&](const auto& how) { lower_roles(facts, how, products, layouts, plan); }, *way);
    Location where;
    const std::string why = needs_memory(facts, plan, where);
    return why.empty() || not_this_way(planning, why, where);
  }
  Role role{.name = "all", .warps = layouts.warps, .body = {}};
  const std::set<Id> more =
      lower(facts, products.plans, layouts, attempt.most_registers, planning.in_memory, {}, plan, role);
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
  if (const Way* const way = way_of(planning)) {
    const auto* const how = std::get_if<Specialisation>(way);
    const auto [values, room] = role_pressure(plan, how && how->reads_ahead);
    return values <= room ||
           not_this_way(planning, fmt::format("{} registers for values, and a thread has {}", values, room),
                        location_of(planning.facts, *way));
  }
  const Pressure needed = pressure(plan);
  const Budget budget(plan.target, plan.threads(), planning.has_products);
  // Of rows ptxas would read ahead, with what they are multiplied by, until few fit a multiprocessor.
  const int values = pressure(plan, !planning.has_products).values;
  const int wished = wished_blocks(planning.facts, plan, planning.has_products, values);
  plan.blocks = wished > 0 ? wished : budget.blocks(plan, values);
  if (needed.all <= budget.registers() || planning.attempt + 1 == planning.attempts.size()) {
    keep_reads_in_order(plan);
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
    if (!multiply || multiply->product.kind != ProductKind::tensor) continue;
    Product& product = multiply->product;
    for (const ProductOperand* operand : {&product.a, &product.b}) {
      if (!operand->buffer || !plan.buffers[operand->buffer].in_workspace) continue;
      product.kind = ProductKind::block;
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
      add_remark(plan, location_of(planning.facts, plan.buffers[BufferId{i}].label), Status::missed,
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

bool early(Planning& planning) {
  begin_early(planning.plan);
  return true;
}

bool kept(Planning& planning) {
  keep_reads(planning.plan);
  return true;
}

bool barriers(Planning& planning) {
  insert_barriers(planning.plan);
  planning.plan.progress = Progress::synchronised;
  return true;
}

bool remarks(Planning& planning) {
  note_wishes(planning.facts, planning.plan);
  remark_steps(planning.facts, planning.plan);
  return true;
}

bool parameters(Planning& planning) {
  set_parameters(planning.plan);
  return true;
}

constexpr PlanPass passes[] = {
    {"specialise", "who does the work of products: roles, and how they share it, or one role, and why", share_work},
    {"lower", "steps for the graph, their layouts being chosen", lower_graph},
    {"prune", "steps whose results nobody names go", prune_steps},
    {"registers", "fewer elements in registers, or more threads, until a thread's registers suffice", fit_registers},
    {"memory", "offsets in shared memory; what does not fit goes to the workspace", memory},
    {"tensor_cores", "products with an operand in the workspace are made of other instructions", tensor_cores},
    {"copies", "how each tile of a fetch is copied", copies},
    {"early", "the launch begins while the one before it ends, and waits for it ahead of its first access", early},
    {"kept", "what is read once stays in the L2 cache longer than what is written", kept},
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
      if (axis != plan.variant.tensors[static_cast<std::size_t>(i)].unit_axis)
        plan.parameters.push_back({Kind::stride, i, axis});
  }
  for (const Phase& phase : plan.phases)
    for (int axis = 0; axis < phase.axes; ++axis) plan.parameters.push_back({Kind::grid, 0, phase.first_axis + axis});
  for (std::size_t i = 0; i < plan.phases.size(); ++i)
    if (plan.phases[i].schedule.kind != Schedule::Kind::grid)
      plan.parameters.push_back({Kind::blocks, static_cast<int>(i), 0});
  for (const Phase& phase : plan.phases)
    if (phase.sections_of_launch()) plan.parameters.push_back({Kind::section, 0, phase.first_axis});
  if (plan.workspace_bytes > 0) plan.parameters.push_back({Kind::workspace, 0, 0});
  if (plan.shared_by_grid())
    for (const Kind kind : {Kind::flags, Kind::abreast}) plan.parameters.push_back({kind, 0, 0});
  if (plan.tells_host()) plan.parameters.push_back({Kind::reports, 0, 0});
  if (!plan.brought_ahead().empty()) plan.parameters.push_back({Kind::ahead, 0, 0});
  plan.progress = Progress::complete;
}

Planning::Planning(const Facts& facts, std::vector<TileReach> reaches, bool debug)
    : facts(facts), reaches(std::move(reaches)), debug(debug) {
  const Products products = plan_products(facts, 1);
  has_products = !products.plans.empty();
  const bool tells =
      std::ranges::any_of(facts.graph.nodes, [&](const Node& node) { return info(node.op).role == OpRole::report; });
  if (has_products) {
    // What is told is known to all threads.
    const bool learns = learns_of_others(facts), by_all = tells || learns;
    Specialised specialised =
        by_all ? Specialised{.why_not = tells ? "it checks or prints" : "its atomics are of all threads"} : specialise(facts);
    if (debug)  // the copy engine looks at nothing that it stores
      for (Specialisation& way : specialised.ways) way.boxed.clear();
    Chains chains = by_all ? Chains{} : find_chains(facts);
    const bool is_chain = !chains.why_not.empty();
    why_not = is_chain ? chains.why_not : specialised.why_not;
    why_not_split = specialised.why_not_split;
    const Id at = is_chain ? chains.where : specialised.where;
    where = at == no_id ? facts[products.plans.begin()->first].location : facts[at].location;
    std::ranges::move(specialised.ways, std::back_inserter(ways));
    std::ranges::move(chains.ways, std::back_inserter(ways));
    if (!ways.empty()) why_not.clear();  // of the other kind
    for (int way = 0; way < static_cast<int>(ways.size()); ++way) attempts.push_back({0, 0, way});
    if (const int wished = wished_warps(facts.hints)) attempts.push_back({wished, 128});
    for (int warps : {products.warps, std::min(2 * products.warps, 16)}) attempts.push_back({warps, 128});
    for (int most = 64; most >= 1; most /= 2) attempts.push_back({products.warps, most});
  } else {
    const int wished = wished_warps(facts.hints);
    for (int warps = wished > 0 ? wished : choose_warps(facts); warps <= 32; warps *= 2)
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
  const Target target = Target::of(arch, options.specialise);
  const std::optional<Graph> split = split_products(whole, target);
  const Facts facts(split ? *split : whole, variant, target);
  Planning planning(facts, tile_reaches(whole), options.debug);
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
