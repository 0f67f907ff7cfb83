#include "jit/compile/compiler.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "jit/compile/disassemble.hpp"
#include "jit/compile/dump.hpp"
#include "jit/compile/inspect_kernel.hpp"
#include "jit/compile/kept_choice.hpp"
#include "jit/compile/kernel_first.hpp"
#include "jit/compile/page_files.hpp"
#include "jit/compile/read_source.hpp"
#include "jit/inspect/page.hpp"
#include "jit/options/files.hpp"
#include "jit/options/log.hpp"
#include "jit/profile/profile.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> source_stages = {"plan", "remarks", "remarks-json", "cuda"};
constexpr std::string_view page_stage = "html";
constexpr std::array<std::string_view, 4> code_stages = {"ptx", "sass", "log", "stats"};

constexpr std::string_view unnamed = "__FILE__";  // how a printed text includes its file, whatever its name will be

bool is_one_of(std::string_view stage, const auto& stages) {
  return std::find(stages.begin(), stages.end(), stage) != stages.end();
}

std::string text_of(const KernelSource& source, std::string_view stage, std::string_view file) {
  if (stage == "plan") return source.plan;
  if (stage == "remarks-json") return to_json(source.remarks);
  if (stage == "remarks")
    return source.by_hand ? fmt::format("kernel {} is handwritten CUDA C++, which has no remarks\n", source.author)
                          : to_string(source.remarks);
  return kernel_first(source.shown.empty() ? source.text : source.shown, file);
}

std::string text_of_ptx(const CompiledCode& code) {
  const auto* begin = reinterpret_cast<const char*>(code.image.data());
  return {begin, std::find(begin, begin + code.image.size(), '\0')};
}

std::string stats(const KernelSource& source, Arch gpu, const CompiledCode& code, bool cached) {
  const CompileReport& report = code.report;
  // A launch parameter of a cuda_kernel that differs between launches is 0 or negative here.
  std::string text = fmt::format("{} for {}: {}, ", source.author, gpu.name(),
                                 source.threads > 0 ? fmt::format("{} threads", source.threads)
                                                    : "as many threads as the launch says");
  if (!code.is_ptx) {
    text += fmt::format("{} registers, {} + {} bytes of shared memory (dynamic + static), {} bytes of stack, ",
                        report.registers, source.shared_bytes >= 0 ? std::to_string(source.shared_bytes) : "the launch's", report.shared_bytes,
                        report.stack_bytes);
    text += fmt::format("spills of {} bytes stored and {} loaded, ", report.spill_store_bytes, report.spill_load_bytes);
  }
  text += fmt::format("{} bytes of workspace a block, ", source.workspace_bytes);
  if (!code.is_ptx) text += fmt::format("{} bytes of instructions, ", instructions_of(code.image).size());
  text += fmt::format("{} bytes of {}, compiled in {:.1f} ms, cache {}", code.image.size(),
                      code.is_ptx ? "PTX" : "cubin", report.compile_ms, cached ? "hit" : "miss");
  const std::size_t warnings = report.warnings.size();
  return warnings == 0 ? text : text + fmt::format(", {} warning{}", warnings, warnings == 1 ? "" : "s");
}

bool has_entry(const CompiledCode& code, std::string_view name) {
  return code.is_ptx ? text_of_ptx(code).find(fmt::format(".entry {}(", name)) != std::string::npos
                     : code.log.find(fmt::format("Compiling entry function '{}'", name)) != std::string::npos;
}

/// Warns once per process for each `reason`.
void warn_once(const std::string& text, const std::string& reason) {
  static std::mutex mutex;
  static std::set<std::string>& told = *new std::set<std::string>;  // never destroyed, like the compiler
  if (const std::lock_guard lock(mutex); !told.insert(reason).second) return;
  log_warn(text);
}

/// Dumps one line in place of a stage. In a file nobody might see it, so then a warning says the same, once per
/// process.
void dump_failure(const Options& options, std::string_view kernel, std::string_view stem, std::string_view stage,
                  const std::string& why) {
  write_dump(options, stem, stage, fmt::format("no {}: {}\n", stage, why));
  if (!options.dump_dir.empty())
    warn_once(fmt::format("kernel '{}' is dumped without its {}: {}", kernel, stage, why), why);
}

/// The text of `file`, if it exists.
std::optional<std::string> edited_text(const fs::path& file) {
  constexpr std::uint64_t most = 64 << 20;
  if (std::error_code error; !fs::is_directory(file.parent_path(), error))
    throw Error(fmt::format(
        "TESSERA_OVERRIDE_DIR={}: {}", file.parent_path().native(),
        error && error != std::errc::no_such_file_or_directory ? error.message() : "there is no such folder"));
  try {
    return read_regular_file(file, most);
  } catch (const std::exception& e) {
    throw Error(fmt::format("TESSERA_OVERRIDE_DIR: {}", e.what()));
  }
}

/// Calls `say` unless it is stopped within `patience`.
class Watch {
 public:
  Watch(std::chrono::milliseconds patience, std::function<void()> say)
      : thread_([this, patience, say = std::move(say)](std::stop_token stop) {
          std::unique_lock lock(mutex_);
          stopped_.wait_for(lock, stop, patience, [] { return false; });
          if (!stop.stop_requested()) said_ = true, say();
        }) {}
  /// Stops it; returns whether it called `say`.
  bool stop() {
    thread_.request_stop();
    thread_.join();
    return said_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any stopped_;
  bool said_ = false;
  std::jthread thread_;
};

/// Warns at the end of the process if TESSERA_DUMP_FILTER matched no kernel.
void watch_filter(const std::string& kernel) {
  struct Filter {
    std::mutex mutex;
    bool matched = false;
    std::set<std::string> others;
  };
  // Never destroyed, because kernels may be made until the end.
  static Filter& watch = *new Filter;
  static const bool begun = [] {
    std::atexit([] {
      const std::lock_guard lock(watch.mutex);
      if (!watch.matched)
        log_warn(fmt::format("nothing was dumped: TESSERA_DUMP_FILTER={} matches no kernel; the kernels were {}",
                             options().dump_filter, fmt::join(watch.others, ", ")));
    });
    return true;
  }();
  (void)begun;
  const std::lock_guard lock(watch.mutex);
  watch.matched = watch.matched || ::fnmatch(options().dump_filter.c_str(), kernel.c_str(), 0) == 0;
  if (!watch.matched) watch.others.insert(kernel);
}

std::string kernel_page(std::string_view kernel, Arch gpu, const KernelView& view) {
  return inspector_page(fmt::format("{} for {}", kernel, gpu.name()), view.description, {{view.json}});
}

}  // namespace

struct Compiler::Job {
  KernelSource source;
  Arch gpu;
  std::string stem;  // of its dump files
  fs::path edited;   // the file of a hand-edited text; empty if there is none
  std::function<void()> check;
};

struct Compiler::Code {
  std::shared_ptr<const CacheEntry> entry;
  bool cached = true;  // false: it was compiled just now
};

Compiler::Compiler(Options options, std::chrono::milliseconds patience, const Nvrtc& (*nvrtc)())
    : options_(std::move(options)), patience_(patience), nvrtc_(nvrtc), cache_(options_.cache_dir, log_warn) {}

Compiler& Compiler::instance() {
  // Never destroyed: a thread may still be compiling while the process ends.
  static Compiler& compiler = *new Compiler(tessera::internal::options());
  return compiler;
}

/// Warns, once per kernel, that TESSERA_OVERRIDE_DIR has files of the kernel for other code than that of `file`.
void Compiler::warn_of_others(const std::string& kernel, const fs::path& file) {
  const std::string name = file.filename();
  const std::string_view start = std::string_view(name).substr(0, name.rfind('-') + 1);
  if (options_.dump_dir == options_.override_dir && wants_dump(options_, kernel, "cuda")) return;  // it is dumped now
  std::vector<std::string> others;
  std::error_code unreadable;  // the names read so far count
  fs::directory_iterator entry(file.parent_path(), unreadable);
  for (; !unreadable && entry != fs::directory_iterator(); entry.increment(unreadable)) {
    std::string other = entry->path().filename();
    if (other.size() == name.size() && other.starts_with(start) && other.ends_with(".cu"))
      others.push_back(std::move(other));
  }
  if (others.empty()) return;
  if (const std::lock_guard lock(mutex_); !warned_.insert(kernel).second) return;
  std::sort(others.begin(), others.end());
  log_warn(
      fmt::format("kernel '{}' is compiled as generated: TESSERA_OVERRIDE_DIR={} has {} and not {}, because the "
                  "kernel, the GPU or the properties of its tensors differ from those of the dump; dump it again",
                  kernel, file.parent_path().native(), fmt::join(others, ", "), name));
}

/// Uses the edited text, if there is one.
Compiler::Job Compiler::start(KernelSource source, Arch gpu, std::function<void()> check) {
  const std::string stem = dump_stem(source.author, gpu.name(), source.text);
  fs::path edited;
  if (!options_.override_dir.empty()) {
    const fs::path file = fs::path(options_.override_dir) / dump_file(stem, "cuda");
    std::optional<std::string> text = edited_text(file);
    if (!text) {
      warn_of_others(source.author, file);
    } else if (const std::string as_generated = helpers_first(*text);
               as_generated != source.text && as_generated != source.shown) {
      log_warn(fmt::format("kernel '{}' is not compiled as generated but from {} (TESSERA_OVERRIDE_DIR)", source.author,
                           file.native()));
      source.text = std::move(*text);
      source.shown.clear();
      source.record.reset();
      source.waits_for_previous &= source.text.find(grid_dependency_wait) != source.text.npos;
      edited = file;
    }
  }
  return {std::move(source), gpu, stem, std::move(edited), std::move(check)};
}

/// Called before compilation, which may fail.
void Compiler::dump_source(const Job& job) const {
  const std::string file =
      options_.dump_dir.empty() ? std::string(unnamed) : fmt::format("\"{}\"", dump_file(job.stem, "cuda"));
  for (const std::string_view stage : source_stages)
    if (wants_dump(options_, job.source.author, stage))
      write_dump(options_, job.stem, stage, text_of(job.source, stage, file));
  dump_page(job, nullptr, "");
}

/// Writes the kernel's page, and the folder's index, if TESSERA_DUMP includes pages. The kernel runs also without it.
void Compiler::dump_page(const Job& job, const Code* code, const std::string& why_no_code) const {
  if (!wants_dump(options_, job.source.author, page_stage) || options_.dump_dir.empty()) return;
  try {
    const ViewRequest request{
        .label = job.gpu.name(),
        .command = fmt::format("TESSERA_DUMP=html TESSERA_DUMP_DIR={} TESSERA_DUMP_FILTER={} {}",
                               shell_word(options_.dump_dir), shell_word(job.source.author), command_line())};
    const KernelView view = this->view(job, code, why_no_code, request);
    write_dump(options_, job.stem, page_stage, kernel_page(job.source.author, job.gpu, view));
    if (code || !why_no_code.empty()) write_index(fs::absolute(options_.dump_dir));
  } catch (const std::exception& e) {
    warn_once(fmt::format("kernel '{}' is dumped without its page, or the page is not in the index: {}",
                          job.source.author, e.what()),
              e.what());
  }
}

KernelView Compiler::view(const Job& job, const Code* code, const std::string& why_no_code,
                          const ViewRequest& request) const {
  KernelSource source = job.source;
  if (!job.edited.empty()) source.text = helpers_first(source.text);  // which names no file of its own
  InspectedKernel kernel{.source = source,
                         .arch = job.gpu,
                         .label = request.label,
                         .command = request.command,
                         .with_source = request.with_source};
  add_facts(kernel);
  if (!job.edited.empty())
    kernel.notes.push_back(fmt::format(
        "The text is that of {} (TESSERA_OVERRIDE_DIR); remarks are of the generated one.", job.edited.native()));
  if (code)
    add_code(kernel, code->entry->code, this->request(job), nvrtc_());
  else
    kernel.code.why_no_ptx = kernel.code.why_no_sass = why_no_code.empty() ? "compilation has not ended" : why_no_code;
  return {view_json(kernel), description(kernel)};
}

KernelView Compiler::view(KernelSource source, Arch gpu, const ViewRequest& request) {
  const Job job = start(std::move(source), gpu);
  std::optional<Code> code;
  std::string why;
  try {
    code = this->code(job, options_.always_compile);
  } catch (const Error& e) {
    why = e.what();
  }
  return view(job, code ? &*code : nullptr, why, request);
}

/// From the cache, or compiled; always compiled if `anew`.
Compiler::Code Compiler::code(const Job& job, bool anew) {
  const Nvrtc& nvrtc = nvrtc_();
  const Nvrtc::Target target = nvrtc.target(job.gpu);
  static std::atomic<bool> noted = false;
  if (!target.note.empty() && !noted.exchange(true)) log_warn(target.note);

  const CompileRequest request = this->request(job);
  const std::string architecture = target.name();
  const std::vector<std::string> flags = nvrtc.options(request);
  const CacheKey key({.compiler = nvrtc.build(),
                      .architecture = architecture,
                      .flags = flags,
                      .source = request.source,
                      .line_info = request.line_info});
  if (anew) cache_.drop(key);
  Code code;
  code.entry = cache_.get(key, [&] {
    code.cached = false;
    if (job.check) job.check();
    Watch watch(patience_, [&] {
      const std::string& text = job.source.text;
      log_warn(fmt::format(
          "kernel '{}' is still compiling after {} s; its text has {} lines ({} kB). range() in place of a "
          "C++ loop, smaller tiles and shorter lines of sort and argsort compile faster (docs/language.md, Loops)",
          job.source.author, std::chrono::duration<double>(patience_).count(),
          std::count(text.begin(), text.end(), '\n'), (text.size() + 999) / 1000));
    });
    CacheEntry entry{.kernel = request.kernel, .source = job.source.text, .code = nvrtc.compile(request)};
    if (watch.stop())
      log_warn(
          fmt::format("kernel '{}' took {:.1f} s to compile", job.source.author, entry.code.report.compile_ms / 1000));
    return entry;
  });
  if (!job.edited.empty() && !has_entry(code.entry->code, job.source.name)) {
    throw Error(fmt::format("kernel '{}': {} defines no extern \"C\" __global__ void {} (TESSERA_OVERRIDE_DIR)",
                            job.source.author, job.edited.native(), job.source.name));
  }
  if (job.source.by_hand && !has_entry(code.entry->code, job.source.name))
    throw Error(fmt::format("kernel '{0}': its text defines no extern \"C\" __global__ void {0}", job.source.author));
  if (logs_debug()) log_debug(stats(job.source, job.gpu, code.entry->code, code.cached));
  return code;
}

CompileRequest Compiler::request(const Job& job) const {
  const std::string& text = job.source.text;
  return {.source = !job.edited.empty()  ? with_own_lines(text, job.edited)
                    : job.source.by_hand ? text
                                         : repeat_lines(text),
          .kernel = job.source.name,
          .author = job.source.author,
          .arch = job.gpu,
          .line_info = options_.debug};
}

std::string Compiler::text(const Job& job, const Code& code, std::string_view stage) const {
  const CompiledCode& compiled = code.entry->code;
  if (stage == "log") return compiled.log;
  if (stage == "stats") return stats(job.source, job.gpu, compiled, code.cached) + '\n';
  if (stage == "sass") {
    if (compiled.is_ptx) throw Error("the driver makes machine code for this GPU, from PTX");
    return disassemble(compiled.image);
  }
  if (compiled.is_ptx) return text_of_ptx(compiled);
  CompileRequest request = this->request(job);
  request.to_ptx = true;
  return text_of_ptx(nvrtc_().compile(request));
}

CompiledKernel Compiler::finish(const Job& job, bool anew) {
  const Code code = [&] {
    try {
      return this->code(job, anew);
    } catch (const Error& e) {
      dump_page(job, nullptr, e.what());
      throw;
    }
  }();
  profile::note_code(code.cached ? "cached" : "compiled", code.entry->code.report.registers);
  for (const std::string_view stage : code_stages) {
    if (!wants_dump(options_, job.source.author, stage)) continue;
    try {
      write_dump(options_, job.stem, stage, text(job, code, stage));
    } catch (const Error& e) {  // the kernel still runs
      dump_failure(options_, job.source.author, job.stem, stage, e.what());
    }
  }
  dump_page(job, &code, "");
  return {job.source, code.entry};
}

// If a kernel has several texts, the first one warns.
void Compiler::warn_of_tiles(const KernelSource& source) {
  if (source.slow.empty()) return;
  if (const std::lock_guard lock(mutex_); !slow_.insert(source.slow).second) return;
  log_warn(source.slow);
}

CompiledKernel Compiler::compile(KernelSource source, Arch gpu, std::function<void()> check) {
  warn_of_tiles(source);
  const Job job = start(std::move(source), gpu, std::move(check));
  dump_source(job);
  return finish(job, options_.always_compile);
}

CompiledKernel Compiler::recompile(KernelSource source, Arch gpu, std::function<void()> check) {
  return finish(start(std::move(source), gpu, std::move(check)), true);
}

KernelSource Compiler::dump(KernelSource source, Arch gpu) {
  warn_of_tiles(source);
  Job job = start(std::move(source), gpu);
  dump_source(job);
  const auto wanted = [&](std::string_view stage) { return wants_dump(options_, job.source.author, stage); };
  if (std::any_of(code_stages.begin(), code_stages.end(), wanted) || wanted(page_stage)) try {
      finish(job, options_.always_compile);
    } catch (const Error& e) {
      for (const std::string_view stage : code_stages)
        if (wanted(stage)) dump_failure(options_, job.source.author, job.stem, stage, e.what());
    }
  if (!job.edited.empty()) job.source.text = with_own_lines(job.source.text, job.edited);
  return std::move(job.source);
}

void Compiler::dump_findings(KernelSource source, Arch gpu, const std::vector<Remark>& findings) {
  if (!wants_dump(options_, source.author, page_stage)) return;
  source.remarks.insert(source.remarks.begin(), findings.begin(), findings.end());
  try {
    const Job job = start(std::move(source), gpu);
    try {
      const Code code = this->code(job, false);
      dump_page(job, &code, "");
    } catch (const Error& e) {
      dump_page(job, nullptr, e.what());
    }
  } catch (const std::exception& e) {  // the findings themselves are reported by the caller
    warn_once(fmt::format("findings are not on the kernel's page: {}", e.what()), e.what());
  }
}

KernelInfo Compiler::info(KernelSource source, Arch gpu) {
  const Job job = start(std::move(source), gpu);
  KernelInfo info{.threads = std::max(job.source.threads, 0),
                  .shared_bytes = std::max(job.source.shared_bytes, 0),
                  .workspace_bytes = job.source.workspace_bytes};
  try {
    nvrtc_();
  } catch (const Error& e) {
    info.why_not_compiled = e.what();
    return info;
  }
  const Code code = this->code(job, options_.always_compile);
  const CompiledCode& compiled = code.entry->code;
  const CompileReport& report = compiled.report;
  info.shared_bytes += report.shared_bytes;
  if (compiled.is_ptx) {
    info.why_not_compiled = compiled.note;
    return info;
  }
  info.registers = report.registers;
  info.stack_bytes = report.stack_bytes;
  info.spill_store_bytes = report.spill_store_bytes;
  info.spill_load_bytes = report.spill_load_bytes;
  info.instructions = static_cast<int>(instructions_of(compiled.image).size()) / bytes_of_instruction;
  return info;
}

std::vector<std::string> Compiler::texts(KernelSource source, Arch gpu, const std::vector<std::string>& stages) {
  const Job job = start(std::move(source), gpu);
  std::optional<Code> code;
  std::vector<std::string> texts;
  for (const std::string& stage : stages) {
    if (is_one_of(stage, code_stages) && !code) code = this->code(job, options_.always_compile);
    texts.push_back(is_one_of(stage, source_stages) ? text_of(job.source, stage, unnamed) : text(job, *code, stage));
  }
  return texts;
}

std::string Compiler::choice(std::string_view question, const std::function<std::string()>& measure) {
  const std::string settings = fmt::format("{} {} {}", options_.debug, options_.pdl, options_.tensor_cores);
  const CacheKey key({.compiler = "choice", .architecture = settings, .flags = {}, .source = question});
  if (options_.always_compile) cache_.drop(key);
  return cache_.get(key, [&] { return CacheEntry{.kernel = "choice", .source = measure(), .code = {}}; })->source;
}

// ---- Functions for the whole process

std::string kept_choice(std::string_view question, const std::function<std::string()>& measure) {
  return Compiler::instance().choice(question, measure);
}

namespace {

/// The name stem of the dump of the graph itself.
std::string stem_of(const Graph& graph) { return dump_stem(graph.name, "", to_string(graph)); }

/// Does someone read the kernel's text, so that it should be in the author's words, too?
bool is_read(const Graph& graph) {
  return !options().override_dir.empty() || wants_dump(options(), graph.name, "cuda") ||
         wants_dump(options(), graph.name, "plan") || wants_dump(options(), graph.name, page_stage);
}

/// Adds a first line that names the dump of the graph, because one graph may become several texts.
KernelSource generate_here(const Graph& graph, const Variant& variant, Arch gpu, bool read, bool verify = true,
                           bool record = false) {
  GenerateOptions how = generate_options();
  how.verify = verify;
  how.record = record || (read && wants_dump(options(), graph.name, page_stage));
  if (read) how.read_source = read_source;
  KernelSource source = generate(graph, variant, gpu, how);
  const std::string line = fmt::format("from {}\n", dump_file(stem_of(graph), "graph"));
  source.plan.insert(0, line);
  for (std::string* const text : {&source.text, &source.shown})
    if (!text->empty()) text->insert(0, "// " + line);
  return source;
}

/// The plan of a text is verified before the text is compiled, and not when it is found in the cache: verification
/// would be a fifth of the time of a warm start.
struct Checked {
  KernelSource source;
  std::function<void()> check;
};
Checked checked(const Graph& graph, const Variant& variant, Arch gpu) {
  return {generate_here(graph, variant, gpu, is_read(graph), false),
          [&graph, &variant, gpu] { generate_here(graph, variant, gpu, false); }};
}

}  // namespace

SplitKPolicy split_k_policy() {
  const std::string& name = options().split_k;
  return name == "none"       ? SplitKPolicy::none
         : name == "cluster"  ? SplitKPolicy::cluster
         : name == "stream_k" ? SplitKPolicy::stream_k
                              : SplitKPolicy::automatic;
}

MulticastPolicy multicast_policy() {
  const std::string& name = options().multicast;
  return name == "never"    ? MulticastPolicy::never
         : name == "always" ? MulticastPolicy::always
                            : MulticastPolicy::automatic;
}

GenerateOptions generate_options() {
  return {.debug = options().debug, .warp_specialize = options().tensor_cores == "wgmma"};
}

CompiledKernel compile_kernel(const Graph& graph, const Variant& variant, Arch gpu) {
  const Compiling compiling;
  const profile::Span span(profile::Kind::compile, [&] { return profile::Subject::of(graph); });
  Checked kernel = checked(graph, variant, gpu);
  return Compiler::instance().compile(std::move(kernel.source), gpu, std::move(kernel.check));
}

CompiledKernel recompile_kernel(const Graph& graph, const Variant& variant, Arch gpu) {
  const Compiling compiling;
  const profile::Span span(profile::Kind::compile, [&] { return profile::Subject::of(graph); });
  Checked kernel = checked(graph, variant, gpu);
  return Compiler::instance().recompile(std::move(kernel.source), gpu, std::move(kernel.check));
}

// The plans are verified as those of checked().
CompiledPersistent compile_persistent(std::string_view name, std::span<const SequenceLaunch> launches, int ctas,
                                      Arch gpu, bool again) {
  const Compiling compiling;
  const profile::Span span(profile::Kind::compile, [&] { return profile::named(std::string(name)); });
  GenerateOptions how = generate_options();
  how.verify = false;
  CompiledPersistent compiled{generate_persistent(name, launches, ctas, gpu, how), {}};
  const auto check = [=] { generate_persistent(name, launches, ctas, gpu, generate_options()); };
  Compiler& compiler = Compiler::instance();
  CompiledKernel kernel = again ? compiler.recompile(compiled.source.kernel, gpu, check)
                                : compiler.compile(compiled.source.kernel, gpu, check);
  compiled.source.kernel = std::move(kernel.source);
  compiled.entry = std::move(kernel.entry);
  return compiled;
}

void expect_dump(const std::string& kernel) {
  if (!options().dump.empty()) watch_filter(kernel);
}

void dump_graph(const Graph& graph) {
  expect_dump(graph.name);
  if (wants_dump(options(), graph.name, "graph"))
    write_dump(options(), stem_of(graph), "graph", to_string(graph, true));
}

void dump_cpu_kernel(const Graph& graph) {
  const auto wanted = [&](std::string_view stage) { return wants_dump(options(), graph.name, stage); };
  if (std::none_of(source_stages.begin(), source_stages.end(), wanted) &&
      std::none_of(code_stages.begin(), code_stages.end(), wanted) && !wanted(page_stage))
    return;
  const Arch gpu = options().dump_arch;
  Compiler::instance().dump(generate_here(graph, dense_variant(graph), gpu, is_read(graph)), gpu);
}

KernelSource emulated_kernel(const Graph& graph, const Variant& variant) {
  const Arch gpu = options().dump_arch;
  return Compiler::instance().dump(generate_here(graph, variant, gpu, is_read(graph)), gpu);
}

void dump_findings(const KernelSource& source, const std::vector<Remark>& findings) {
  Compiler::instance().dump_findings(source, options().dump_arch, findings);
}

std::vector<std::string> kernel_texts(const Graph& graph, const Variant& variant, Arch gpu,
                                      const std::vector<std::string>& stages) {
  constexpr std::string_view of_pass = "plan:";
  std::vector<std::string> beyond;  // stages other than the graph and intermediate plans
  for (const std::string& stage : stages) {
    if (stage == "graph" || stage == page_stage || stage.starts_with(of_pass)) continue;
    if (!is_one_of(stage, source_stages) && !is_one_of(stage, code_stages)) {
      throw Error(fmt::format("a kernel has no stage '{}'; choose from graph, {}, {}, {}, or plan:PASS", stage,
                              fmt::join(source_stages, ", "), fmt::join(code_stages, ", "), page_stage));
    }
    beyond.push_back(stage);
  }
  std::vector<std::string> texts;
  if (!beyond.empty()) texts = Compiler::instance().texts(generate_here(graph, variant, gpu, true), gpu, beyond);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const auto at = texts.begin() + static_cast<std::ptrdiff_t>(i);
    if (stages[i] == "graph") texts.insert(at, to_string(graph, true));
    if (stages[i] == page_stage) {
      const KernelView view = kernel_view(graph, variant, gpu, {.label = gpu.name(), .command = command_line()});
      texts.insert(at, kernel_page(graph.name, gpu, view));
    }
    if (stages[i].starts_with(of_pass))
      texts.insert(at, plan_after(graph, variant, gpu, stages[i].substr(of_pass.size()), generate_options()));
  }
  return texts;
}

KernelView kernel_view(const Graph& graph, const Variant& variant, Arch gpu, const ViewRequest& request) {
  return Compiler::instance().view(generate_here(graph, variant, gpu, request.with_source, true, true), gpu, request);
}

std::vector<std::string> kernel_texts(const Graph& graph, Arch gpu, const std::vector<std::string>& stages) {
  return kernel_texts(graph, dense_variant(graph), gpu, stages);
}

std::string cuda_source(const Graph& graph, Arch gpu) { return kernel_texts(graph, gpu, {"cuda"})[0]; }
std::string plan_text(const Graph& graph, Arch gpu) { return kernel_texts(graph, gpu, {"plan"})[0]; }

std::vector<Remark> kernel_remarks(const Graph& graph, Arch gpu) {
  return generate_here(graph, dense_variant(graph), gpu, false).remarks;
}
KernelInfo kernel_info(const Graph& graph, Arch gpu) {
  return Compiler::instance().info(generate_here(graph, dense_variant(graph), gpu, false), gpu);
}

}  // namespace tessera::internal
