#include "opcheck/check.hpp"
#include "tessera/graph/error.hpp"
#ifdef TESSERA_HAS_EMULATOR
#include "codegen/passes.hpp"
#include "emulator/emulator.hpp"
#include "jit/options/options.hpp"
#include "opcheck/trial.hpp"
#endif

namespace tessera::internal::opcheck {

#ifdef TESSERA_HAS_EMULATOR

namespace {

/// All cases as one text, for a single start of a compiler.
void check(std::span<const Case> cases, std::span<Verdict> verdicts) {
  std::vector<Trial> trials;
  std::vector<Graph> graphs;
  std::vector<KernelSource> sources;
  for (const Case& each : cases) {
    const std::span<const Argument> arguments = trials.emplace_back(each).tensors().arguments();
    const Graph& graph = graphs.emplace_back(run_passes(each.graph));
    sources.push_back(generate(graph, classify(graph, arguments), options().dump_arch));
  }
  const Emulator emulator = Emulator::compile(sources);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Report report = emulator.run(i, graphs[i], trials[i].tensors().arguments(), trials[i].grid());
    verdicts[i] = report.clean() ? trials[i].difference() : report.faults.front().text;
  }
}

/// The same; a failure of all is traced to the cases that cause it.
void check_each(std::span<const Case> cases, std::span<Verdict> verdicts) try {
  check(cases, verdicts);
} catch (const std::exception& error) {
  if (cases.size() == 1) {
    verdicts[0] = error.what();
    return;
  }
  const std::size_t half = cases.size() / 2;
  check_each(cases.first(half), verdicts.first(half));
  check_each(cases.subspan(half), verdicts.subspan(half));
}

}  // namespace

void require_emulator() {}

std::vector<Verdict> check_emulated(std::span<const Case> cases) {
  std::vector<Verdict> verdicts(cases.size());
  if (!cases.empty()) check_each(cases, verdicts);
  return verdicts;
}

#else

void require_emulator() {
  throw Error("--device emulated: this program was built without Boost.Context (libboost-context-dev), which it needs");
}

std::vector<Verdict> check_emulated(std::span<const Case>) {
  require_emulator();
  return {};
}

#endif

}  // namespace tessera::internal::opcheck
