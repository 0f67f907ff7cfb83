// Shows the stages of a kernel on its way to machine code. No GPU is needed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "common/declared.hpp"
#include "common/kernels.hpp"
#include "common/program.hpp"
#include "jit/compile/compiler.hpp"

using namespace tessera::internal;

namespace {

const std::vector<std::string> arch_names = {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120"};
const std::vector<std::string> stage_names = {"graph", "plan", "remarks", "remarks-json", "cuda", "ptx", "sass", "log", "stats"};

/// The result of `look`. Its Error names the choices; the likely one is appended.
template <class Look>
auto with_suggestion(std::string_view word, std::span<const std::string> names, const Look& look) {
  try {
    return look();
  } catch (const Error& error) {
    throw Error(error.what() + did_you_mean(word, names));
  }
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream stream(list);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

void inspect(CommandLine& line) {
  std::string pattern, arch = "sm_90a", show = "cuda";
  bool list = false;
  std::vector<std::string> names;
  for (const NamedKernel& kernel : named_kernels()) names.push_back(kernel.name);
  line.option("kernel", pattern, "KERNEL", "Name of a kernel, or a pattern as 'linear*-bf16'", names);
  line.option("--arch", arch, "ARCH", "GPU to compile for: sm_80, sm_86, sm_89, sm_90a, ... [sm_90a]",
              arch_names);
  line.option("--show", show, "STAGES",
              "Any of graph, plan, plan:PASS, remarks, remarks-json, cuda, ptx, sass, log, stats, with commas [cuda]",
              stage_names);
  line.flag("--list", list, "Print the names of the kernels and exit");
  line.footer(
      "ptx, log and stats need NVRTC, sass needs nvdisasm, too: without them nothing is shown, and the exit status is 2.\n"
      "Kernels of another program are shown by that, on stderr, while it runs: TESSERA_DUMP=plan,cuda.");
  line.parse();
  if (list) {
    for (const std::string& name : names) print(name + "\n");
    return;
  }
  if (pattern.empty()) throw Error("name a kernel; inspect --list shows all");

  const Arch gpu = with_suggestion(arch, arch_names, [&] { return Arch::parse(arch); });
  const std::vector<NamedKernel> kernels = find_kernels(pattern, gpu);
  const std::vector<std::string> stages = split(show);
  if (stages.empty()) throw Error("--show: name a stage");
  for (const std::string& stage : stages)
    if (std::ranges::find(stage_names, stage) == stage_names.end() && !stage.starts_with("plan:"))
      throw Error(fmt::format("a kernel has no stage '{}'; choose from {}, or plan:PASS{}", stage,
                              fmt::join(stage_names, ", "), did_you_mean(stage, stage_names)));
  // A single text has no title, so that it can be piped into a file.
  const bool titles = kernels.size() > 1 || stages.size() > 1;
  for (const NamedKernel& kernel : kernels) {
    const Graph graph = kernel.graph();
    const std::vector<std::string> texts = kernel_texts(graph, kernel.variant(graph), gpu, stages);
    std::string text;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      if (titles) text += fmt::format("==== {}, {} ====\n", kernel.name, stages[i]);
      text += texts[i];
      if (!text.ends_with('\n')) text += '\n';
      if (titles) text += '\n';
    }
    print(text);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run_program(argc, argv, "inspect", "Shows a kernel's graph, plan, CUDA C++, PTX and more.", inspect);
}
