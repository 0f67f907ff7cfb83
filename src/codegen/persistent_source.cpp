#include "codegen/persistent_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "codegen/emit/emit.hpp"
#include "codegen/emit/emit_head.hpp"
#include "codegen/kernel_source.hpp"
#include "codegen/make_plan.hpp"
#include "codegen/prelude/identifier.hpp"
#include "codegen/prelude/prelude.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

using namespace codegen;

constexpr std::size_t head_bytes = 8;     // of LaunchHead (prelude/persistent.cuh)
constexpr std::size_t staged_align = 16;  // of the launches in shared memory

std::size_t aligned(std::size_t bytes) { return (bytes + staged_align - 1) / staged_align * staged_align; }

/// Why a CTA of a persistent kernel cannot run the plan; empty: it can.
std::string why_alone(const Plan& plan) {
  if (plan.phases.size() > 1) return "it has several phases";
  if (plan.phases.front().roles.size() > 1) return "it is warp-specialized";
  if (plan.persistent() || plan.phases.front().in_clusters()) return "its CTAs are persistent or in clusters";
  if (plan.tensor_maps.size() > 0) return "it uses TMA";
  if (plan.workspace_bytes > 0) return "it needs a workspace";
  if (plan.learns_of_others()) return "its CTAs wait for one another";
  if (plan.variant.index64) return "its tensors need offsets of 64 bits";
  if (!plan.waits_for_previous()) return "it copies an operand through registers, so it has no place to wait";
  return "";
}

/// The functions of all codes, once each.
std::string functions_text(std::span<const Plan> plans) {
  std::string text;
  std::map<std::string, std::string> known;  // by all before the body
  for (const Plan& plan : plans)
    for (const std::string& function : functions_of(plan)) {
      const auto [at, is_new] = known.emplace(function.substr(0, function.find(" {")), function);
      if (is_new || function.starts_with("#line"))
        text += function + "\n";
      else if (at->second != function)
        throw PersistentRefused(fmt::format(
            "kernel '{}' and another launch of the sequence have different functions with one name", plan.author));
    }
  return text;
}

/// Runs the CTA's tiles of a launch. Threads beyond those of the code go on to the barrier at its end.
std::string case_text(std::size_t code, const Plan& plan, int threads) {
  const std::string few = plan.threads() < threads ? fmt::format("if (warp_index() < {}) ", plan.threads() / 32) : "";
  return fmt::format(
      R"(      case {0}:
        {1}for (u32 tile = block_index(); tile < own.tiles; tile += grid_size()) {{
          if (tile != block_index()) named_barrier(1, {2});
          {3}(own.parameters<{3}_launch>(), grid, tile);
        }}
        break;
)",
      code, few, plan.threads(), plan.kernel);
}

std::string entry_text(std::string_view kernel, std::span<const Plan> plans, int ctas, int threads,
                       std::size_t shared_bytes, std::size_t launch_bytes) {
  const std::size_t words = launch_bytes / sizeof(std::uint32_t), each = static_cast<std::size_t>(threads);
  std::string cases;
  for (std::size_t code = 0; code < plans.size(); ++code) cases += case_text(code, plans[code], threads);
  return fmt::format(
      R"(#line 1 "persistent kernel"
extern "C" __global__ void __launch_bounds__({0}, {6}) {1}(
    const u32* table, int launches, u32* arrivals) {{
  // The launch that runs, and the next one, which comes from the table meanwhile.
  u32* const staged = reinterpret_cast<u32*>(shared_memory() + {2});
  for (int i = thread_index(); i < {3}; i += {0}) staged[i] = table[i];
  barrier();
  GridBarrier grid = {{arrivals, 0}};
  for (int launch = 0; launch < launches; ++launch) {{
    u32 coming[{4}];
    #pragma unroll
    for (int i = 0; i < {4}; ++i) {{
      const int word = thread_index() + i * {0};
      coming[i] = word < {3} && launch + 1 < launches ? table[(launch + 1) * {3} + word] : 0;
    }}
    const LaunchHead& own = *reinterpret_cast<const LaunchHead*>(staged + launch % 2 * {3});
    if (block_index() >= own.tiles) {{
      grid_wait<{0}>(grid);
    }} else switch (own.code) {{
{5}    }}
    #pragma unroll
    for (int i = 0; i < {4}; ++i) {{
      const int word = thread_index() + i * {0};
      if (word < {3}) staged[(launch + 1) % 2 * {3} + word] = coming[i];
    }}
    grid.expected += grid_size();
    if (launch + 1 < launches)
      grid_arrive(grid);
    else
      grid_leave(grid);
  }}
}}
)",
      threads, kernel, shared_bytes, words, (words + each - 1) / each, cases, ctas);
}

}  // namespace

PersistentSource generate_persistent(std::string_view name, std::span<const SequenceLaunch> launches, int ctas,
                                     Arch arch, const GenerateOptions& options) {
  if (launches.empty()) throw Error(fmt::format("sequence '{}' has no launches", name));
  PersistentSource all;
  all.ctas = ctas;
  std::vector<Plan> plans;
  std::vector<const SequenceLaunch*> first;  // launch of each code
  GenerateOptions of_launch = options;
  of_launch.in_sequence = true;
  of_launch.read_source = {};
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const SequenceLaunch& launch = launches[i];
    const auto known = std::ranges::find_if(first, [&](const SequenceLaunch* other) {
      return other->graph == launch.graph && other->variant == launch.variant;
    });
    all.code_of.push_back(static_cast<std::size_t>(known - first.begin()));
    if (known != first.end()) continue;
    const auto refuse = [&](std::string_view why) {
      throw PersistentRefused(fmt::format("sequence '{}' cannot be one persistent kernel: launch {}, kernel '{}': {}",
                                          name, i + 1, launch.graph->name, why));
    };
    if (launch.graph->cuda) refuse("it is raw CUDA C++");
    Plan plan = make_plan(*launch.graph, launch.variant, arch, of_launch);
    if (const std::string why = why_alone(plan); !why.empty()) refuse(why);
    plan.kernel = fmt::format("{}_{}", plan.kernel, plans.size());
    first.push_back(&launch);
    plans.push_back(std::move(plan));
  }

  std::string text = functions_text(plans), decisions, steps;
  int threads = 0;
  std::size_t shared_bytes = 0;
  for (std::size_t code = 0; code < plans.size(); ++code) {
    const Plan& plan = plans[code];
    threads = std::max(threads, plan.threads());
    shared_bytes = std::max(shared_bytes, static_cast<std::size_t>(plan.shared_bytes));
    const ParameterBlock block(plan.parameters, *first[code]->graph, plan.variant.index64);
    all.launch_bytes = std::max(all.launch_bytes, aligned(head_bytes + block.bytes));
    const std::string line =
        fmt::format("code {}: {}, {} threads, {} bytes of shared memory, {} launches\n", code, plan.author,
                    plan.threads(), plan.shared_bytes, std::ranges::count(all.code_of, code));
    decisions += "// " + line;
    steps += fmt::format("{}{}\n", line, dump_text(plan));
    text += emit(plan) + "\n";
    all.codes.push_back(facts_of(plan));
  }
  shared_bytes = aligned(shared_bytes);

  KernelSource& kernel = all.kernel;
  kernel.author = name;
  kernel.name = kernel_identifier(name);
  text += entry_text(kernel.name, plans, ctas, threads, shared_bytes, all.launch_bytes);
  kernel.text = fmt::format("// persistent kernel {}: {} launches\n{}\n{}\n{}{}", name, launches.size(), decisions,
                            prelude_for(text), kernel_mark, text);
  kernel.plan = fmt::format("persistent kernel {}: {} launches\n{}", name, launches.size(), steps);
  using Kind = KernelParameter::Kind;
  kernel.parameters = {{Kind::pointer, 0, 0}, {Kind::blocks, 0, 0}, {Kind::flags, 0, 0}};
  kernel.threads = threads;
  kernel.shared_bytes = static_cast<int>(shared_bytes + 2 * all.launch_bytes);
  kernel.persistent = true;
  if (kernel.shared_bytes > arch.shared_bytes())
    throw PersistentRefused(
        fmt::format("sequence '{}' cannot be one persistent kernel: it needs {} bytes of shared "
                    "memory, and a CTA on {} has {}",
                    name, kernel.shared_bytes, arch.name(), arch.shared_bytes()));
  return all;
}

void write_launch(const PersistentSource& source, std::size_t launch, const Graph& graph,
                  std::span<const Argument> arguments, std::span<const std::int64_t> grid, const LaunchValues& values,
                  std::byte* to) {
  const KernelSource& code = source.codes[source.code_of[launch]];
  const std::int32_t number = static_cast<std::int32_t>(source.code_of[launch]);
  const auto tiles = static_cast<std::uint32_t>(values.blocks);
  std::memset(to, 0, source.launch_bytes);
  std::memcpy(to, &number, sizeof number);
  std::memcpy(to + sizeof number, &tiles, sizeof tiles);
  const ParameterBlock block(code.parameters, graph, code.index64);
  for (std::size_t i = 0; i < code.parameters.size(); ++i)
    write_parameter(code.parameters[i], bytes_of(code.parameters[i], graph, code.index64), arguments, grid, values,
                    graph, code.index64, to + head_bytes + block.offsets[i]);
}

}  // namespace tessera::internal
