#include "jit/compile/inspect_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "codegen/target/target.hpp"
#include "jit/compile/disassemble.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

constexpr int warp_threads = 32;

/// How many CTAs a multiprocessor holds, and what limits that.
std::string occupancy_text(const Target& target, int threads, int registers, std::int64_t shared_bytes) {
  if (threads <= 0 || registers <= 0) return "unknown";
  const auto up = [](std::int64_t number, std::int64_t to) { return (number + to - 1) / to * to; };
  const std::int64_t warps = up(threads, warp_threads) / warp_threads;
  const std::int64_t of_warp = up(registers, target.register_unit) * warp_threads;
  const std::int64_t shared = shared_bytes + target.shared_bytes_of_system;
  const std::map<std::string_view, std::int64_t> limits = {
      {"registers", target.registers / (of_warp * warps)},
      {"shared memory", (target.shared_bytes + target.shared_bytes_of_system) / std::max<std::int64_t>(shared, 1)},
      {"threads", target.resident_threads / (warps * warp_threads)},
      {"the number of CTAs", target.resident_blocks}};
  const auto least = std::ranges::min_element(limits, {}, [](const auto& limit) { return limit.second; });
  return fmt::format("{} CTA{} ({} of {} warps) on a multiprocessor, limited by {}", least->second,
                     least->second == 1 ? "" : "s", least->second * warps, target.resident_threads / warp_threads,
                     least->first);
}

}  // namespace

void add_facts(InspectedKernel& kernel) {
  const KernelSource& source = kernel.source;
  const auto known = [](std::int64_t number, std::string_view unit) {
    return number >= 0 ? fmt::format("{} {}", number, unit) : std::string("as the launch says");
  };
  auto& facts = kernel.facts;
  facts.emplace_back("kernel",
                     fmt::format("{} for {}, by Tessera {}", source.author, kernel.arch.name(), TESSERA_VERSION));
  facts.emplace_back(
      "CTA", source.threads > 0 ? fmt::format("{} threads", source.threads) : "as many threads as the launch says");
  facts.emplace_back("dynamic shared memory", known(source.shared_bytes, "bytes"));
  if (source.workspace_bytes > 0) facts.emplace_back("workspace of a CTA", known(source.workspace_bytes, "bytes"));
  facts.emplace_back("grid", source.persistent ? "persistent: a CTA processes one grid tile after another"
                                               : "one CTA for each grid tile");
  if (!source.slow.empty()) kernel.notes.push_back(source.slow);
}

void add_code(InspectedKernel& kernel, const CompiledCode& compiled, CompileRequest request, const Nvrtc& nvrtc) {
  const CompileReport& report = compiled.report;
  auto& facts = kernel.facts;
  InspectedCode& code = kernel.code;
  facts.emplace_back("compiler", fmt::format("NVRTC {}.{}, {:.0f} ms", nvrtc.version().first, nvrtc.version().second,
                                             report.compile_ms));
  if (!compiled.is_ptx) {
    facts.emplace_back("registers of a thread", std::to_string(report.registers));
    facts.emplace_back("spills", fmt::format("{} bytes stored, {} loaded; {} bytes of stack", report.spill_store_bytes,
                                             report.spill_load_bytes, report.stack_bytes));
    facts.emplace_back("occupancy", occupancy_text(Target::of(kernel.arch), kernel.source.threads, report.registers,
                                                   std::max(kernel.source.shared_bytes, 0) + report.shared_bytes));
    facts.emplace_back("instructions",
                       fmt::format("{}", instructions_of(compiled.image).size() / bytes_of_instruction));
  }
  for (const std::string& warning : report.warnings) kernel.notes.push_back("compiler: " + warning);
  request.source = compiled_text(kernel.source);
  request.line_info = true;
  try {
    request.to_ptx = true;
    const CompiledCode ptx = nvrtc.compile(request);
    const auto* const text = reinterpret_cast<const char*>(ptx.image.data());
    code.ptx.assign(text, std::find(text, text + ptx.image.size(), '\0'));
  } catch (const Error& e) {
    code.why_no_ptx = e.what();
  }
  if (compiled.is_ptx) {
    code.why_no_sass = "the driver makes machine code for this GPU, from PTX";
    return;
  }
  try {
    request.to_ptx = false;
    const CompiledCode cubin = nvrtc.compile(request);
    code.sass = sass_listing(
        disassemble(cubin.image, {"--print-code", "--print-instruction-encoding", "--print-line-info-inline"}));
    const std::vector<std::byte> bytes = instructions_of(cubin.image);
    if (code.sass.size() * bytes_of_instruction != bytes.size()) {
      code.why_no_sass = fmt::format("{} printed {} of {} instructions, in a form that is not known",
                                     nvdisasm_path().native(), code.sass.size(), bytes.size() / bytes_of_instruction);
      code.sass.clear();
      return;
    }
    kernel.notes.push_back(bytes == instructions_of(compiled.image)
                               ? "The machine code shown here has the same bytes as the kernel that runs."
                               : "The machine code shown here was compiled with line information and differs from the "
                                 "kernel that runs.");
    if (const auto without =
            std::ranges::count_if(code.sass, [](const SassInstruction& one) { return one.lines.empty(); }))
      kernel.notes.push_back(
          fmt::format("{} of {} machine instructions belong to no line: functions that the compiler adds, "
                      "for divisions and roots, and what fills the space behind them.",
                      without, code.sass.size()));
    try {
      add_live_registers(
          code.sass, disassemble(cubin.image, {"--print-code", "--print-life-ranges", "--life-range-mode", "count"}));
    } catch (const Error& e) {
      kernel.notes.push_back(fmt::format("Live registers are not shown: {}", e.what()));
    }
  } catch (const Error& e) {
    code.why_no_sass = e.what();
  }
}

std::string description(const InspectedKernel& kernel) {
  std::string text;
  for (const auto& [name, value] : kernel.facts)
    if (name == "CTA" || name == "registers of a thread" || name == "instructions")
      text += fmt::format("{}{}", text.empty() ? "" : ", ",
                          name == "CTA" ? value : fmt::format("{} {}", value, name.substr(0, name.find(' '))));
  return text;
}

}  // namespace tessera::internal
