#include "codegen/generate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "codegen/kernel_source.hpp"
#include "codegen/make_plan.hpp"
#include "codegen/plan/plan.hpp"
#include "codegen/raw_cuda.hpp"
#include "codegen/record_lowering.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {

using namespace codegen;

KernelSource generate(const Graph& graph, const Variant& variant, Arch arch, const GenerateOptions& options) {
  if (graph.cuda) return raw_cuda(graph);
  if (!options.record) return kernel_source(make_plan(graph, variant, arch, options));
  LoweringRecorder recorder;
  return kernel_source(make_plan(graph, variant, arch, options, recorder.observer()), &recorder);
}

std::string plan_after(const Graph& graph, const Variant& variant, Arch arch, std::string_view pass,
                       const GenerateOptions& options) {
  std::vector<std::string_view> names;
  for (const lowering::PlanPass& known : lowering::plan_passes()) {
    names.push_back(known.name);
    if (!pass.empty() && known.was == pass)
      throw Error(fmt::format("the plan pass '{}' is now called {}", pass, known.name));
  }
  if (std::find(names.begin(), names.end(), pass) == names.end())
    throw Error(fmt::format("there is no plan pass '{}'; choose from {}", pass, fmt::join(names, ", ")));
  if (graph.cuda) throw Error(fmt::format("kernel '{}' is raw CUDA C++ and has no plan", graph.name));
  std::string text;
  make_plan(graph, variant, arch, options, {.after_pass = [&](const lowering::PlanPass& one, const Plan& plan) {
              if (one.name == pass) text = dump_text(plan);
            }});
  return text;
}

std::string repeat_lines(std::string_view text) {
  std::string result;
  std::string_view directive;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end);
    if (line.starts_with("#line "))
      directive = line;
    else
      result.append(directive).append(line);
  }
  return result;
}

}  // namespace tessera::internal
