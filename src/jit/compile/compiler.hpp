// From a graph to code for a GPU, with all intermediate representations available for inspection.
#pragma once
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/generate.hpp"
#include "codegen/persistent_source.hpp"
#include "codegen/schedule/cost_model.hpp"
#include "jit/compile/cache.hpp"
#include "jit/compile/compile_times.hpp"
#include "jit/options/options.hpp"
#include "tessera/jit/source.hpp"

namespace tessera::internal {

/// A kernel as text and as code.
struct CompiledKernel {
  KernelSource source;  ///< with the text that was compiled, which may come from TESSERA_OVERRIDE_DIR
  std::shared_ptr<const CacheEntry> entry;
};

/// The options of code generation, from the process's options.
GenerateOptions generate_options();
/// How matmuls split k over CTAs, from TESSERA_SPLIT_K.
SplitKPolicy split_k_policy();
/// When CTAs of a cluster multicast operands, from TESSERA_MULTICAST.
MulticastPolicy multicast_policy();

/// Lowers `graph` (after the passes) for a variant and a GPU, and compiles it, unless the process's cache has it. Dumps
/// the stages in TESSERA_DUMP, except the graph. May be called from any thread. Throws Error that names the kernel, the
/// first error and the folder that a failed compilation leaves, or the places where NVRTC was searched for.
CompiledKernel compile_kernel(const Graph& graph, const Variant& variant, Arch gpu);
/// The same, after the driver rejected the cached code: that is removed from the cache, also on disk, and compiled
/// again.
CompiledKernel recompile_kernel(const Graph& graph, const Variant& variant, Arch gpu);

/// A persistent kernel as text and as code.
struct CompiledPersistent {
  PersistentSource source;
  std::shared_ptr<const CacheEntry> entry;
};
/// The same for a sequence of launches; compiled `again` after the driver rejected the cached code. Throws
/// PersistentRefused as generate_persistent() does, too.
CompiledPersistent compile_persistent(std::string_view name, std::span<const SequenceLaunch> launches, int ctas,
                                      Arch gpu, bool again);

/// A kernel of this name will be made: so a TESSERA_DUMP_FILTER that matches it is right.
void expect_dump(const std::string& kernel);
/// Dumps the graph, if TESSERA_DUMP includes it: once per kernel, whatever device it will run on.
void dump_graph(const Graph& graph);
/// Dumps the other stages in TESSERA_DUMP for a kernel that runs on the CPU, for TESSERA_DUMP_ARCH and dense_variant().
/// A stage that is not available, for example without NVRTC, is replaced by a line that says why.
void dump_cpu_kernel(const Graph& graph);
/// The text that the emulator runs, for a variant and TESSERA_DUMP_ARCH; its stages are dumped as those of a kernel on
/// the CPU.
KernelSource emulated_kernel(const Graph& graph, const Variant& variant);
/// Adds findings of an executor, at the author's lines, to the kernel's page, if TESSERA_DUMP
/// includes pages.
void dump_findings(const KernelSource& source, const std::vector<Remark>& findings);

/// The texts that TESSERA_DUMP shows of a kernel for each of `stages` ("graph", "plan", "remarks", "remarks-json",
/// "cuda", "ptx", "sass", "log", "stats" or "html"; and "plan:PASS", the plan after one of its passes), for a variant,
/// or for dense_variant(). The kernel is compiled once for all stages but the page. Throws Error for any other stage,
/// and as compile_kernel does.
std::vector<std::string> kernel_texts(const Graph& graph, const Variant& variant, Arch gpu,
                                      const std::vector<std::string>& stages);
std::vector<std::string> kernel_texts(const Graph& graph, Arch gpu, const std::vector<std::string>& stages);

/// How a kernel's view on a page of the inspector is made.
struct ViewRequest {
  std::string label = {};    ///< of the view, where a page has several
  std::string command = {};  ///< makes the page again
  bool with_source = true;   ///< with the author's text and the names of his files
};
/// A page's view of a kernel (jit/inspect/kernel_view.hpp), and its description for an index.
struct KernelView {
  std::string json, description;
};
/// A part that cannot be had, for example PTX without NVRTC, is replaced by the reason.
KernelView kernel_view(const Graph& graph, const Variant& variant, Arch gpu, const ViewRequest& request);

/// The functions above, from the generated text on. The process has one instance; tests create their own.
class Compiler {
 public:
  /// Warns when a compilation takes longer than `patience`: NVRTC cannot be interrupted.
  explicit Compiler(Options options, std::chrono::milliseconds patience = std::chrono::seconds(5),
                    const Nvrtc& (*nvrtc)() = &Nvrtc::instance);
  static Compiler& instance();

  /// `check`, which may throw, runs before a text that is not in the cache is compiled.
  CompiledKernel compile(KernelSource source, Arch gpu, std::function<void()> check = {});
  CompiledKernel recompile(KernelSource source, Arch gpu, std::function<void()> check = {});
  /// Dumps the stages in TESSERA_DUMP, except the graph, for a kernel that no GPU runs, and returns the text that a GPU
  /// would run. A text from TESSERA_OVERRIDE_DIR has `#line` as its first line and nowhere else: its lines are those of
  /// its file.
  KernelSource dump(KernelSource source, Arch gpu);
  /// Makes the kernel's page again, with findings among the remarks.
  void dump_findings(KernelSource source, Arch gpu, const std::vector<Remark>& findings);
  KernelView view(KernelSource source, Arch gpu, const ViewRequest& request);
  /// All stages except the graph and the page, as for kernel_texts().
  std::vector<std::string> texts(KernelSource source, Arch gpu, const std::vector<std::string>& stages);
  KernelInfo info(KernelSource source, Arch gpu);

  /// See kept_choice.hpp.
  std::string choice(std::string_view question, const std::function<std::string()>& measure);

  CompileCache::Counters counters() const { return cache_.counters(); }
  const std::optional<CacheFolder>& cache_folder() const { return cache_.folder(); }

 private:
  struct Job;   // a kernel to be compiled
  struct Code;  // its code

  Job start(KernelSource source, Arch gpu, std::function<void()> check = {});
  void warn_of_others(const std::string& kernel, const std::filesystem::path& file);
  void warn_of_tiles(const KernelSource& source);
  void dump_source(const Job& job) const;
  CompileRequest request(const Job& job) const;
  Code code(const Job& job, bool anew);
  std::string text(const Job& job, const Code& code, std::string_view stage) const;
  CompiledKernel finish(const Job& job, bool anew);
  KernelView view(const Job& job, const Code* code, const std::string& why_no_code, const ViewRequest& request) const;
  void dump_page(const Job& job, const Code* code, const std::string& why_no_code) const;

  Options options_;
  std::chrono::milliseconds patience_;
  const Nvrtc& (*nvrtc_)();
  CompileCache cache_;
  std::mutex mutex_;              // guards the next two members
  std::set<std::string> warned_;  // kernels for which TESSERA_OVERRIDE_DIR has other code
  std::set<std::string> slow_;    // warnings given about slow tiles
};

}  // namespace tessera::internal
