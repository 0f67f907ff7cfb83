#include "support/compiled_device.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <future>
#include <mutex>
#include <ranges>
#include <set>
#include <sstream>

#include "jit/backend/backend.hpp"
#include "jit/compile/cache_key.hpp"
#include "jit/compile/compiler.hpp"
#include "jit/compile/nvrtc.hpp"
#include "jit/cpu/cpu_backend.hpp"
#include "support/catch.hpp"
#include "support/compiling.hpp"
#include "support/share.hpp"
#include "support/support.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal {
namespace {

std::string short_digest(std::string_view text) {
  const Digest digest = sha256(text);
  return fmt::format("{:02x}", fmt::join(std::span(digest).first(8), ""));
}

// The properties of launches that select different texts of a kernel.
std::string class_text(const Graph& graph, const Variant& variant) {
  std::string text = to_string(graph);
  for (const TensorClass& tensor : variant.tensors)
    text += fmt::format(
        " {},{},{}{}", int{tensor.contiguous_axis}, int{tensor.alignment}, int{tensor.row_alignment},
        std::string(tensor.tma_addressable ? ",tma_addressable" : "") + (tensor.has_elements ? "" : ",empty"));
  return text + (variant.index64 ? " wide" : "");
}

/// Each text once in the life of the process.
class CompiledTexts {
 public:
  void check(const Graph& graph, const Variant& variant) {
    if (!in_share(class_text(graph, variant), test_share(1))) return;
    std::vector<std::future<std::string>> checks;
    std::set<std::string> of_later;  // without comments, which name the GPU
    for (const Arch arch : test_archs() | std::views::reverse) {
      const KernelSource source = generate(graph, variant, arch);
      const bool same = !of_later.insert(strip_comments(source.text)).second;
      if (!done_.insert(arch.name() + source.text).second) continue;
      if (const char* list = std::getenv("TESSERA_TEST_TEXTS"); list && *list) {
        std::ofstream(list, std::ios::app)
            << fmt::format("{} {} {} {}\n", source.author, arch.name(), short_digest(class_text(graph, variant)),
                           short_digest(strip_comments(source.text)));
        if (const char* folder = std::getenv("TESSERA_TEST_TEXTS_DIR"); folder && *folder)
          write_text(std::filesystem::path(folder) / fmt::format("{}-{}-{}.cu", file_stem(source.author), arch.name(),
                                                                 short_digest(class_text(graph, variant))),
                     source.text);
        continue;
      }
      if (same) continue;
      checks.push_back(std::async(std::launch::async, compile_check, source, arch, false));
    }
    for (auto& check : checks)
      if (const std::string wrong = check.get(); !wrong.empty()) FAIL_CHECK(wrong);
  }

 private:
  std::set<std::string> done_;
};

class CompilingKernel final : public DeviceKernel {
 public:
  explicit CompilingKernel(const Graph& graph) : graph_(graph), cpu_(cpu_backend()->kernel(graph)) {}

  void launch(StreamBackend&, std::span<const Argument> arguments, std::span<const std::int64_t> grid) override {
    static CompiledTexts texts;
    const Variant variant = classify(graph_, arguments);
    if (std::ranges::find(checked_, variant) == checked_.end()) {
      texts.check(graph_, variant);
      checked_.push_back(variant);
    }
    cpu_->launch(*cpu_backend()->stream(), arguments, grid);
  }

 private:
  const Graph& graph_;
  std::unique_ptr<DeviceKernel> cpu_;
  std::vector<Variant> checked_;  // most launches equal an earlier one: no text is made for those
};

class CompilingStream final : public StreamBackend {
 public:
  explicit CompilingStream(DeviceBackend& device) : device_(device) {}
  DeviceBackend& device() override { return device_; }
  void synchronize() override {}
  void copy(void* to, const void* from, std::size_t bytes) override { cpu_->copy(to, from, bytes); }
  std::shared_ptr<EventBackend> record() override { return cpu_->record(); }
  void wait(EventBackend& event) override { cpu_->wait(event); }
  std::shared_ptr<GraphBackend> capture(const std::function<void()>& function) override {
    return cpu_->capture(function);
  }
  void launch(GraphBackend& graph) override { cpu_->launch(graph); }
  void* native() override { return nullptr; }

 private:
  DeviceBackend& device_;
  std::shared_ptr<StreamBackend> cpu_ = cpu_backend()->stream();
};

class CompilingBackend final : public DeviceBackend, public std::enable_shared_from_this<CompilingBackend> {
 public:
  CompilingBackend() {
    Nvrtc::instance();
    info_.name = "cpu, with kernels compiled";
  }
  const DeviceInfo& info() const override { return info_; }
  bool shares_host_memory() const override { return false; }  // so that everything is copied, as it is for a GPU
  std::shared_ptr<void> allocate(std::size_t bytes) override { return cpu_backend()->allocate(bytes); }
  std::shared_ptr<void> pinned(std::size_t bytes) override { return cpu_backend()->pinned(bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override { cpu_backend()->copy(to, from, bytes); }
  std::shared_ptr<StreamBackend> stream() override { return {shared_from_this(), &stream_}; }
  std::shared_ptr<StreamBackend> new_stream() override { return std::make_shared<CompilingStream>(*this); }
  std::shared_ptr<StreamBackend> stream_from(void* stream) override { return cpu_backend()->stream_from(stream); }
  std::unique_ptr<DeviceKernel> kernel(const Graph& graph) override { return std::make_unique<CompilingKernel>(graph); }

 private:
  DeviceInfo info_;
  CompilingStream stream_{*this};
};

}  // namespace
}  // namespace tessera::internal

using namespace tessera::internal;

Device compiled_device() {
  static const Device device{std::make_shared<CompilingBackend>()};
  return device;
}

const std::vector<Arch>& all_archs() {
  static const std::vector<Arch> archs = [] {
    std::vector<Arch> parsed;
    for (const char* name : {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120"})
      parsed.push_back(Arch::parse(name));
    return parsed;
  }();
  return archs;
}

std::vector<Arch> test_archs() {
  const char* text = std::getenv("TESSERA_TEST_ARCHS");
  if (!text || !*text) text = "sm_90a";
  if (std::string_view(text) == "all") return all_archs();
  std::vector<Arch> archs;
  std::istringstream names(text);
  for (std::string name; std::getline(names, name, ',');) archs.push_back(Arch::parse(name));
  return archs;
}

CompileReport compile_report(const KernelSource& source, Arch arch) {
  const CompiledKernel kernel = Compiler::instance().compile(source, arch);
  return parse_compile_log(kernel.entry->code.log, source.name);  // the parser may be newer than a cached log
}

bool is_clean(CompileReport report, std::string_view text) {
  const auto has = [&](std::string_view name) { return text.find(name) != text.npos; };
  const bool table = has("double sin_of(") || has("double cos_of(") || has("double tan_of(");
  if (table && report.stack_bytes <= 40) report.stack_bytes = 0;
  return report.clean();
}

std::string compile_check(const KernelSource& source, Arch arch, bool may_spill) try {
  const CompileReport report = compile_report(source, arch);
  std::string wrong;
  if (!report.warnings.empty()) wrong += fmt::format(" warns: {}", fmt::join(report.warnings, "; "));
  if (!may_spill && !is_clean(report, source.text))
    wrong += fmt::format(" has {} bytes of stack, {} and {} bytes of spills", report.stack_bytes,
                         report.spill_store_bytes, report.spill_load_bytes);
  if (wrong.empty()) return "";
  const auto kept = std::filesystem::temp_directory_path() /
                    fmt::format("tessera-test-{}-{}-{:08x}.cu", file_stem(source.name), arch.name(),
                                static_cast<std::uint32_t>(std::hash<std::string>()(source.text)));
  write_text(kept, source.text);
  return fmt::format("{} for {}{}; its text is in {}", source.name, arch.name(), wrong, kept.native());
} catch (const Error& error) {
  return fmt::format("{} for {}: {}", source.name, arch.name(), error.what());
}

void check_compiled(const std::vector<KernelSource>& sources, Arch arch) {
  if (!nvrtc_here()) return;
  std::vector<std::string> wrong(sources.size());
  in_parallel(sources.size(), [&](std::size_t i) {
    if (in_share(i)) wrong[i] = compile_check(sources[i], arch);
  });
  for (const std::string& one : wrong) CHECK(one == "");
}
