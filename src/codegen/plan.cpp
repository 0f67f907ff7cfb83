// The passes that fill a plan, in order.
#include "codegen/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "codegen/effects.hpp"
#include "codegen/identifier.hpp"
#include "codegen/lower.hpp"
#include "codegen/split_products.hpp"
#include "graph/error.hpp"

namespace tessera {
namespace lowering {
namespace {

// Steps whose results nobody names.
bool prune(std::vector<Step>& steps, const std::set<std::string>& named, const Plan& plan) {
  bool changed = false;
  for (Step& step : steps) changed |= prune(step.ahead, named, plan) | prune(step.body, named, plan);
  const auto count = std::erase_if(steps, [&](const Step& step) {
    const bool pure = step.kind == Step::Kind::compute || step.kind == Step::Kind::load || step.kind == Step::Kind::get;
    if (!pure) return false;
    const Value& value = plan.values[static_cast<std::size_t>(step.out)];
    return !value.changes && !named.contains(value.name);
  });
  return changed || count > 0;
}
void prune(Plan& plan) {
  for (bool changed = true; changed;) {
    std::set<std::string> named;
    int position = 0;
    std::vector<Interval*> loops;
    std::vector<std::unique_ptr<Interval>> all;
    walk(plan.steps, position, loops, all, [&](const Step& step, int, const auto&) {
      for (ValueId id : named_values(step, false)) named.insert(plan.values[static_cast<std::size_t>(id)].name);
    });
    changed = prune(plan.steps, named, plan);
  }
}

// Registers of a thread that hold values at the fullest point, by an estimate that knows no spill.
int pressure(const Plan& plan) {
  std::map<std::string, std::size_t> index;
  std::vector<int> words;
  for (const Value& value : plan.values) {
    if (value.home != Home::registers && value.home != Home::variable) continue;
    if (index.emplace(value.name, words.size()).second)
      words.push_back(value.layout.registers() * (value.type == ElementType::i64 ? 2 : 1));
  }
  Intervals intervals(words.size());
  std::vector<std::pair<int, int>> extra;  // position, registers that a product needs besides
  int position = 0;
  std::vector<Interval*> loops;
  std::vector<std::unique_ptr<Interval>> all;
  walk(plan.steps, position, loops, all, [&](const Step& step, int at, const std::vector<Interval*>& around) {
    for (ValueId id : named_values(step, true))
      if (const auto found = index.find(plan.values[static_cast<std::size_t>(id)].name); found != index.end())
        intervals.touch(found->second, at, around);
    // Addresses of elements that are moved one by one are computed ahead of the accesses.
    const bool moves = step.kind == Step::Kind::load || step.kind == Step::Kind::store;
    if (moves && step.unrolled && step.access->vector == 1)
      extra.emplace_back(at, step.layout.registers() * (plan.variant.wide ? 2 : 1));
    if (step.product && step.product->kind != ProductKind::thin) {
      const int m = step.layout.cover(0) / step.product->warps_m, n = step.layout.cover(1) / step.product->warps_n;
      extra.emplace_back(at, step.product->kind == ProductKind::tensor ? m / 4 + n / 4 : m / 2 + n / 2);
    }
  });
  std::vector<int> change(static_cast<std::size_t>(position) + 2);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const Interval in_use = intervals.of(i);
    if (in_use.last < 0) continue;
    change[static_cast<std::size_t>(in_use.first)] += words[i];
    change[static_cast<std::size_t>(in_use.last) + 1] -= words[i];
  }
  for (auto [at, registers] : extra) {
    change[static_cast<std::size_t>(at)] += registers;
    change[static_cast<std::size_t>(at) + 1] -= registers;
  }
  int now = 0, most = 0;
  for (int step : change) most = std::max(most, now += step);
  return most;
}

bool has_block_products(const std::map<Id, ProductPlan>& products, const Graph& graph) {
  return std::any_of(products.begin(), products.end(), [&](const auto& entry) {
    return entry.second.product.kind != ProductKind::thin &&
           graph.regions[graph[entry.first].region].kind == RegionKind::loop;
  });
}

// Tensor cores read shared memory only: a product with a buffer elsewhere is made of other instructions, which in turn
// take no operand from registers. Returns the products that have one.
std::set<Id> leave_tensor_cores(std::vector<Step>& steps, const Plan& plan) {
  std::set<Id> left;
  for (Step& step : steps) {
    left.merge(leave_tensor_cores(step.body, plan));
    if (!step.product || step.product->kind != ProductKind::tensor) continue;
    for (const ProductOperand* operand : {&step.product->a, &step.product->b}) {
      if (operand->buffer < 0 || !plan.buffers[static_cast<std::size_t>(operand->buffer)].in_workspace) continue;
      step.product->kind = ProductKind::block;
      if (step.product->a.value >= 0) left.insert(step.node);
    }
  }
  return left;
}

// Steps, with the fewest threads and the most in registers that a thread has registers for.
Plan plan_steps(const Facts& facts, InMemory in_memory) {
  Products products = plan_products(facts, 1);
  const bool has_products = !products.plans.empty();
  const int warps = has_products ? products.warps : choose_warps(facts);
  struct Try {
    int warps, most_registers;
  };
  std::vector<Try> tries;
  if (has_products) {
    for (int w : {warps, std::min(2 * warps, 16)}) tries.push_back({w, 128});
    for (int most = 64; most >= 1; most /= 2) tries.push_back({warps, most});
  } else {
    for (int w = warps; w <= 32; w *= 2) tries.push_back({w, 64});
    for (int most = 32; most >= 1; most /= 2) tries.push_back({16, most});
  }
  Plan plan;
  for (const Try& attempt : tries) {
    if (has_products) products = plan_products(facts, attempt.warps);
    const Layouts layouts = choose_layouts(facts, products.plans, has_products ? products.warps : attempt.warps);
    in_memory.values.clear();
    for (;;) {
      plan = {};
      plan.arch = facts.arch;
      plan.variant = facts.variant;
      plan.warps = layouts.warps;
      const std::set<Id> more = lower(facts, products.plans, layouts, attempt.most_registers, in_memory, plan);
      const std::size_t before = in_memory.values.size();
      in_memory.values.insert(more.begin(), more.end());
      if (in_memory.values.size() == before) break;
    }
    prune(plan);
    const int needed = pressure(plan);
    // For the same product ptxas takes more registers from sm_100 on.
    const int more = has_products && facts.arch.number() >= 100 ? 32 : 0;
    // Left to itself the compiler spills a little to make room for more blocks; so it is told how many.
    constexpr int most_threads = 1536, most_blocks = 8, besides = 64;
    plan.blocks = std::clamp(65536 / (plan.threads() * (needed + besides + more)), 1,
                             std::min(most_blocks, most_threads / plan.threads()));
    if (needed <= std::min(255, 65536 / plan.threads()) - (has_products ? 28 : 20) - more) break;
  }
  if (facts.graph.grid.size() >= 2 && has_block_products(products.plans, facts.graph)) plan.raster = 8;
  return plan;
}

}  // namespace
}  // namespace lowering

namespace {

void set_parameters(const Graph& graph, Plan& plan) {
  using Kind = KernelParameter::Kind;
  for (int i = 0; i < static_cast<int>(graph.parameters.size()); ++i) {
    const Parameter& parameter = graph.parameters[static_cast<std::size_t>(i)];
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
  for (int axis = 0; axis < static_cast<int>(graph.grid.size()); ++axis)
    plan.parameters.push_back({Kind::grid, 0, axis});
  if (plan.persistent) plan.parameters.push_back({Kind::blocks, 0, 0});
  if (!plan.persistent && plan.variant.wide) plan.parameters.push_back({Kind::first_block, 0, 0});
  if (plan.workspace_bytes > 0) plan.parameters.push_back({Kind::workspace, 0, 0});
}

}  // namespace

Plan make_plan(const Graph& whole, const Variant& variant, Arch arch, const GenerateOptions& options) {
  using namespace lowering;
  if (arch.number() < 80)
    throw Error(fmt::format("kernel '{}' cannot be generated for {}: sm_80 is the oldest architecture", whole.name,
                            arch.name()));
  const std::optional<Graph> split = split_products(whole, arch);
  const Graph& graph = split ? *split : whole;
  const Facts facts(graph, variant, arch);
  Plan plan;
  InMemory in_memory;
  for (;;) {
    plan = plan_steps(facts, in_memory);
    place_memory(plan);
    const std::set<Id> left = leave_tensor_cores(plan.steps, plan);
    if (left.empty()) break;
    in_memory.left.insert(left.begin(), left.end());
  }
  for (const Buffer& buffer : plan.buffers)
    if (buffer.in_workspace) plan.notes.push_back(fmt::format("{} does not fit into shared memory", buffer.name));
  plan.kernel = kernel_identifier(graph.name);
  plan.author = graph.name;
  plan.location = graph.location;
  plan.debug = options.debug;
  plan.tensors = graph.parameters;
  plan.persistent = plan.workspace_bytes > 0;
  insert_barriers(graph, plan);
  set_parameters(graph, plan);
  return plan;
}

}  // namespace tessera
