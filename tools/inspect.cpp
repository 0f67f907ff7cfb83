// Shows the stages of a kernel on its way to machine code. No GPU is needed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/declared.hpp"
#include "common/kernels.hpp"
#include "common/program.hpp"
#include "jit/compile/compiler.hpp"
#include "jit/compile/page_files.hpp"
#include "jit/inspect/page.hpp"
#include "jit/options/files.hpp"

using namespace tessera::internal;

namespace {

const std::vector<std::string> arch_names = {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120"};
const std::vector<std::string> stage_names = {"graph", "plan", "remarks", "remarks-json", "cuda",
                                              "ptx",   "sass", "log",     "stats",        "html"};

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

struct PageRequest {
  std::string file, compare;
  bool no_source = false;
};

/// The command that makes a page of a kernel again.
std::string page_command(const std::string& kernel, const std::string& archs, const PageRequest& request) {
  return fmt::format("inspect '{}' --arch {} --html {}.html{}", kernel, archs, kernel,
                     request.no_source ? " --no-source" : "");
}

/// Writes a page for each kernel, with a view for each GPU that has it; several pages into a folder, with an index.
void write_pages(const std::string& pattern, const std::string& archs, const std::vector<Arch>& gpus,
                 const PageRequest& request) {
  namespace fs = std::filesystem;
  constexpr std::uint64_t most = 64 << 20;
  std::map<std::string, std::vector<Arch>> found;
  std::vector<NamedKernel> kernels;
  std::string why;
  for (const Arch gpu : gpus) try {
      for (const NamedKernel& kernel : find_kernels(pattern, gpu)) {
        if (found[kernel.name].empty()) kernels.push_back(kernel);
        if (kernel.is_of(gpu)) found[kernel.name].push_back(gpu);
      }
    } catch (const Error& e) {
      why = e.what();
    }
  std::erase_if(kernels, [&](const NamedKernel& kernel) { return found[kernel.name].empty(); });
  if (kernels.empty()) throw Error(why.empty() ? fmt::format("no kernel '{}' is made for {}", pattern, archs) : why);
  std::vector<std::string> older;
  if (fs::path(request.file).filename() == "index.html")
    throw Error("--html: index.html is the name of a folder's index");
  if (!request.compare.empty()) {
    if (request.no_source) throw Error("--compare: the other page may have source, which --no-source leaves out");
    if (kernels.size() > 1)
      throw Error(fmt::format("--compare: {} kernels match '{}'; name one", kernels.size(), pattern));
    const std::optional<std::string> page = read_regular_file(request.compare, most);
    if (!page) throw Error(fmt::format("--compare: there is no file {}", request.compare));
    older = views_of_page(*page, request.compare);
    for (const std::string& view : older)
      if (!nlohmann::json::accept(view))
        throw Error(fmt::format("--compare: the data of {} is damaged", request.compare));
  }
  const bool folder = kernels.size() > 1 || request.file.ends_with('/') || fs::is_directory(request.file);
  if (folder) fs::create_directories(request.file);
  for (const NamedKernel& kernel : kernels) {
    const Graph graph = kernel.graph();
    std::vector<std::string> views;
    std::string description, title;
    for (const Arch gpu : found[kernel.name]) {
      KernelView view = kernel_view(graph, kernel.variant(graph), gpu,
                                    {.label = gpu.name(),
                                     .command = page_command(kernel.name, archs, request),
                                     .with_source = !request.no_source});
      views.push_back(std::move(view.json));
      if (description.empty()) description = view.description;
      title += fmt::format("{}{}", title.empty() ? kernel.name + " for " : ", ", gpu.name());
    }
    views.insert(views.end(), older.begin(), older.end());
    const fs::path file = folder ? fs::path(request.file) / (file_stem(kernel.name) + ".html") : fs::path(request.file);
    write_page(file, inspector_page(title, description, views));
    print(fmt::format("{}\n", file.native()));
  }
  if (folder) write_index(request.file);
}

void inspect(CommandLine& line) {
  std::string pattern, arch = "sm_90a", show = "cuda";
  bool list = false;
  PageRequest page;
  std::vector<std::string> names;
  for (const NamedKernel& kernel : named_kernels()) names.push_back(kernel.name);
  line.option("kernel", pattern, "KERNEL", "Name of a kernel, or a pattern as 'linear*-bf16'", names);
  line.option("--arch", arch, "ARCH",
              "GPU to compile for: sm_80, sm_86, sm_89, sm_90a, ... [sm_90a]; several, with commas, for --html",
              arch_names);
  line.option("--show", show, "STAGES",
              "Any of graph, plan, plan:PASS, remarks, remarks-json, cuda, ptx, sass, log, stats, with commas [cuda]",
              stage_names);
  line.option("--html", page.file, "FILE",
              "Write a page with all stages, linked line by line; into a folder, with an index, if FILE is one or "
              "several kernels match");
  line.option("--compare", page.compare, "PAGE", "Add the views of another page of --html, for comparison");
  line.flag("--no-source", page.no_source, "Leave the author's text and file names out of the page");
  line.flag("--list", list, "Print the names of the kernels and exit");
  line.footer(
      "ptx, log and stats need NVRTC, sass needs nvdisasm, too: without them nothing is shown, and the exit status is "
      "2.\n"
      "Kernels of another program are shown by that, on stderr, while it runs: TESSERA_DUMP=plan,cuda.");
  line.parse();
  if (list) {
    for (const std::string& name : names) print(name + "\n");
    return;
  }
  if (pattern.empty()) throw Error("name a kernel; inspect --list shows all");

  std::vector<Arch> gpus;
  for (const std::string& one : split(arch))
    gpus.push_back(with_suggestion(one, arch_names, [&] { return Arch::parse(one); }));
  if (gpus.empty()) throw Error("--arch: name a GPU");
  const Arch gpu = gpus.front();
  if (!page.file.empty()) return write_pages(pattern, arch, gpus, page);
  if (gpus.size() > 1) throw Error("--arch: several GPUs need --html");
  if (page.no_source || !page.compare.empty()) throw Error("--no-source and --compare need --html");
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
