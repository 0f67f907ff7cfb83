#include "codegen/generate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <sstream>

#include "codegen/plan.hpp"
#include "codegen/prelude.hpp"

namespace tessera {

KernelSource generate(const Graph& graph, const Variant& variant, Arch arch, const GenerateOptions& options) {
  const Plan plan = make_plan(graph, variant, arch, options);
  KernelSource source;
  source.author = plan.author;
  source.name = plan.kernel;
  source.plan = to_string(plan);
  std::istringstream lines(source.plan);
  for (std::string line; std::getline(lines, line);) fmt::format_to(std::back_inserter(source.text), "// {}\n", line);
  const std::string kernel = emit(plan);
  fmt::format_to(std::back_inserter(source.text), "\n{}\n// ---- kernel ----\n{}", prelude_for(kernel), kernel);
  source.parameters = plan.parameters;
  source.threads = plan.threads();
  source.shared_bytes = static_cast<int>(plan.shared_bytes);
  source.workspace_bytes = plan.workspace_bytes;
  source.persistent = plan.persistent;
  return source;
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

}  // namespace tessera
