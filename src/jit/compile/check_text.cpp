#include "jit/compile/check_text.hpp"

#include <fmt/format.h>

#include <mutex>
#include <set>

#include "codegen/raw_cuda.hpp"
#include "jit/compile/compiler.hpp"
#include "jit/compile/nvrtc.hpp"
#include "jit/options/log.hpp"
#include "tessera/graph/cuda_text.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

bool has_nvrtc() {
  static const bool has = [] {
    try {
      Nvrtc::instance();
      return true;
    } catch (const Error&) {
      return false;
    }
  }();
  return has;
}

bool is_new(const std::string& text) {
  static std::mutex& mutex = *new std::mutex;
  static std::set<std::string>& known = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return known.insert(text).second;
}

}  // namespace

void check_cuda_text(const Graph& graph) {
  if (!graph.cuda && graph.functions.empty()) return;
  KernelSource source = graph.cuda ? raw_cuda(graph) : functions_alone(graph);
  if (!is_new(source.text) || !has_nvrtc()) return;
  try {
    Compiler::instance().compile(std::move(source), options().dump_arch);
  } catch (const Error& error) {
    log_warn(fmt::format("{} (it still runs on the CPU)", error.what()));
  }
}

}  // namespace tessera::internal
