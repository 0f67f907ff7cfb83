#include "common/timings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "jit/compile/compiler.hpp"

namespace tessera::internal {

void Timings::loaded() { load = std::max(total.milliseconds() - compile_times().waited, 0.0); }

std::string Timings::text() const {
  std::string lines;
  const auto line = [&](std::string_view name, double ms, const std::string& more) {
    lines += fmt::format("{}{:>12} = {:9.2f} ms{}", lines.empty() ? "" : "\n", name, ms, more);
  };
  const auto stage = [&](std::string_view name, double ms, std::size_t tokens) {
    const double each = ms / static_cast<double>(tokens);
    line(name, ms,
         tokens == 0 ? ""
                     : fmt::format(" / {:5} tokens ({:8.3f} ms per token, {:9.2f} tokens per second)", tokens, each,
                                   1e3 / each));
  };
  stage("load", load, 0);
  const CompileTimes compile = compile_times();
  if (compile.milliseconds > 0)
    line("compile", compile.milliseconds,
         fmt::format(" / {:5} kernels, and {} from the cache", compile.compiled, compile.cached));
  stage("prompt eval", prompt, prompt_tokens);
  stage("eval", evaluate, evaluated);
  stage("sample", sample, sampled);
  if (draft > 0) stage("draft", draft, drafted);
  if (drafted > 0)
    lines += fmt::format("\n{:>12} = {:9} of {} tokens accepted ({:.0f} %)", "drafts", accepted, drafted,
                         100.0 * static_cast<double>(accepted) / static_cast<double>(drafted));
  stage("total", total_milliseconds(), prompt_tokens + sampled);
  return lines;
}

void DeviceClock::read() {
  for (const Span& span : spans_) span.sum += std::max(span.end.milliseconds_since(span.begin) - span.compiled, 0.0);
  spans_.clear();
}

double DeviceClock::compiling() { return compile_times().waited; }

}  // namespace tessera::internal
