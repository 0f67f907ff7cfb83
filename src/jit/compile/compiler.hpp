// From a graph to code for a GPU, and everything that can be looked at on the way.
#pragma once
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/generate.hpp"
#include "codegen/schedule/split_k.hpp"
#include "jit/compile/cache.hpp"
#include "jit/options/options.hpp"
#include "tessera/jit/source.hpp"

namespace tessera::internal {

/// A kernel as text and as code.
struct CompiledKernel {
  KernelSource source;  ///< with the text that was compiled, which may be that of TESSERA_OVERRIDE_DIR
  std::shared_ptr<const CacheEntry> entry;
};

/// As the process's options have it.
GenerateOptions generate_options();
/// Who shares the rounds of products, as TESSERA_SPLIT_K says.
SplitKPolicy split_k_policy();

/// Lowers `graph` (as the passes leave it) for a class of launches on a GPU and compiles it; dumps what TESSERA_DUMP
/// asks for, the graph excepted. From the process's cache where it is there. Any number of threads may call it. Throws
/// Error naming kernel, first error and the folder that a failed compilation leaves, or where NVRTC was looked for.
CompiledKernel compile_kernel(const Graph& graph, const Variant& variant, Arch gpu);
/// The same, for when the driver refuses the cached code: that is forgotten, on disk too, and made again.
CompiledKernel recompile_kernel(const Graph& graph, const Variant& variant, Arch gpu);

/// What these two have done in this process so far, on all threads together.
struct CompileTimes {
  std::uint64_t compiled = 0;  ///< kernels, one for each kind of tensors that they were launched with, by NVRTC
  std::uint64_t cached = 0;    ///< the same from disk
  double milliseconds = 0;     ///< until they were there: from the graph on
  int running = 0;             ///< on their way now
};
CompileTimes compile_times();

/// Dumps the graph, if TESSERA_DUMP asks for it: once a kernel, whatever it will run on.
void dump_graph(const Graph& graph);
/// Dumps, for TESSERA_DUMP_ARCH and dense_variant(), what TESSERA_DUMP asks for beyond the graph: for a kernel that
/// runs on the CPU. What cannot be had, without NVRTC for one, is replaced by a line that says why.
void dump_cpu_kernel(const Graph& graph);

/// What TESSERA_DUMP shows of a kernel as each of `stages` ("graph", "plan", "remarks", "remarks-json", "cuda", "ptx",
/// "sass", "log" or "stats"; and "plan:PASS", the plan after one of the passes that make it), for a class of launches, or dense_variant(). It is
/// compiled once for all of them. Throws Error for another stage, and as compile_kernel does.
std::vector<std::string> kernel_texts(const Graph& graph, const Variant& variant, Arch gpu,
                                      const std::vector<std::string>& stages);
std::vector<std::string> kernel_texts(const Graph& graph, Arch gpu, const std::vector<std::string>& stages);

/// What the functions above do behind generation. The process has one; tests make their own.
class Compiler {
 public:
  /// Says so when a compilation takes longer than `patience`: NVRTC cannot be stopped.
  explicit Compiler(Options options, std::chrono::milliseconds patience = std::chrono::seconds(5),
                    const Nvrtc& (*nvrtc)() = &Nvrtc::instance);
  static Compiler& instance();

  /// `check`, which may throw, runs before a text is compiled that the cache does not have.
  CompiledKernel compile(KernelSource source, Arch gpu, std::function<void()> check = {});
  CompiledKernel recompile(KernelSource source, Arch gpu, std::function<void()> check = {});
  /// Dumps what TESSERA_DUMP asks for beyond the graph, of a kernel that no GPU runs: the text that one would be given.
  /// A text of TESSERA_OVERRIDE_DIR has `#line` as its first line, and no other: lines are those of its file.
  KernelSource dump(KernelSource source, Arch gpu);
  /// Stages beyond the graph, as kernel_texts() has them.
  std::vector<std::string> texts(KernelSource source, Arch gpu, const std::vector<std::string>& stages);
  KernelInfo info(KernelSource source, Arch gpu);

  CompileCache::Counters counters() const { return cache_.counters(); }

 private:
  struct Job;   // a kernel on its way
  struct Code;  // what became of it

  Job start(KernelSource source, Arch gpu, std::function<void()> check = {});
  void warn_of_others(const std::string& kernel, const std::filesystem::path& file);
  void warn_of_tiles(const KernelSource& source);
  void dump_source(const Job& job) const;
  CompileRequest request(const Job& job) const;
  Code code(const Job& job, bool anew);
  std::string text(const Job& job, const Code& code, std::string_view stage) const;
  CompiledKernel finish(const Job& job, bool anew);

  Options options_;
  std::chrono::milliseconds patience_;
  const Nvrtc& (*nvrtc_)();
  CompileCache cache_;
  std::mutex mutex_;              // of the next two
  std::set<std::string> warned_;  // kernels for which TESSERA_OVERRIDE_DIR has other code
  std::set<std::string> slow_;    // what was said of kernels
};

}  // namespace tessera::internal
