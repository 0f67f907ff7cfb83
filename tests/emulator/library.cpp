#include "emulator/library.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <list>
#include <mutex>
#include <string_view>
#include <system_error>
#include <utility>

#include "codegen/emit/emit_head.hpp"
#include "codegen/kernel_source.hpp"
#include "emulator/machine.hpp"
#include "emulator/prelude.hpp"
#include "emulator/texts.hpp"
#include "emulator/work_folder.hpp"
#include "jit/options/process.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal::emulator {
namespace {

namespace fs = std::filesystem;

/// Where the kernel begins, after the prelude.
std::size_t begin_of(const std::string& text) {
  const std::size_t found = text.find(kernel_mark);
  return found == text.npos ? 0 : found + kernel_mark.size();
}

/// A `#line` directive for the text from `begin` on: its line in the whole text; for a text that was edited, which
/// itself starts with a `#line`, its line in that file.
std::string line_of(const KernelSource& kernel, std::size_t begin) {
  const std::string_view before = std::string_view(kernel.text).substr(0, begin);
  const auto lines = [](std::string_view text) { return static_cast<std::size_t>(std::ranges::count(text, '\n')); };
  if (!before.starts_with("#line ")) return fmt::format("#line {} \"{}.cu\"", lines(before) + 1, kernel.name);
  const std::size_t last = before.rfind("\n#line ");
  const std::string_view rest = before.substr(last == before.npos ? 0 : last + 1);
  return std::string(rest.substr(0, rest.find('\n'))) + std::string(lines(rest) - 1, '\n');
}

/// The kernel as a function in any namespace.
std::string body(const KernelSource& kernel) {
  constexpr std::string_view head = "extern \"C\" __global__";
  std::string text = kernel.text.substr(begin_of(kernel.text));
  const std::size_t at = text.find(head);
  if (at == text.npos) throw InternalError("no extern \"C\" __global__ in the text of kernel " + kernel.name);
  text.replace(at, head.size(), "static __global__");
  // Each launch of a persistent kernel is a function of its own, so that lines of its author are found.
  constexpr std::string_view launch = codegen::head_of_launch_in_sequence;
  for (std::size_t from = 0; (from = text.find(launch, from)) != text.npos;)
    text.replace(from, launch.size(), "static __global__ void ");
  return text;
}

std::string translation_unit(std::span<const KernelSource> kernels, bool checks) {
  std::string text = "#include \"text.hpp\"\n";
  if (checks) text += "#include \"hooks.hpp\"\n";
  static const std::string& prelude = *new std::string(emulated_prelude());
  text += "#line 1 \"prelude\"\n" + prelude;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    text += fmt::format("namespace kernel_{0} {{\n{3}\n{2}\n}}\n#line 1 \"entry\"\nENTRY({0}, {1})\n", i,
                        kernels[i].name, repeat_lines(body(kernels[i])),
                        line_of(kernels[i], begin_of(kernels[i].text)));
  }
  return text;
}

/// The library with the emulator's functions, to link kernels against; empty if the functions are part of the program,
/// which exports them.
std::string emulator_library() {
  Dl_info here{};
  const bool library = ::dladdr(reinterpret_cast<void*>(&emulated_barrier), &here) != 0 && here.dli_fname &&
                       std::string_view(here.dli_fname).ends_with(".so");
  return library ? fs::canonical(here.dli_fname).string() : "";
}

/// Writes, compiles and links the text; returns the path of the resulting file.
fs::path build(const fs::path& folder, const std::string& text, bool checks, bool contract) {
  {
    OutputFile file(folder / "kernels.cpp");
    file.write(text);
    file.publish();
  }
  // Memory is read as other types than it was written as, so no strict aliasing. No libraries: the program has all
  // functions that the text calls, and -fsanitize=thread must not add ThreadSanitizer itself. With checks, optimizing
  // would take longer than most kernels run; but GCC contracts only when it optimizes.
  std::vector<std::string> command{"g++", "-std=c++20", checks && !contract ? "-O0" : "-O1",
                                   contract ? "-ffp-contract=fast" : "-ffp-contract=off"};
  if (checks) command.push_back("-fsanitize=thread");
  for (const char* const flag : {"-g1", "-w", "-march=native", "-fno-strict-aliasing", "-fno-exceptions", "-fPIC",
                                 "-fvisibility=hidden", "-shared", "-nostdlib", "-I"})
    command.push_back(flag);
  command.insert(command.end(), {texts_folder().string(), "kernels.cpp"});
  static const std::string& library = *new std::string(emulator_library());
  if (!library.empty()) command.push_back(library);
  command.insert(command.end(), {"-lgcc", "-o", "kernels.so"});
  Process compiler(command, {.folder = folder.string()});
  std::string log;
  if (!compiler.read(log) || !compiler.succeeded())
    throw Error(fmt::format("the host compiler rejects the emulated kernels, kept in {}:\n{}",
                            keep_for_users(text).string(), log.substr(0, 4000)));
  return folder / "kernels.so";
}

std::vector<Library::Entry> entries(const SharedLibrary& library, std::span<const KernelSource> kernels) {
  std::vector<Library::Entry> entries;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    entries.push_back(library.symbol<Library::Entry>(fmt::format("enter_{}", i).c_str()));
    const int count = *library.symbol<const int*>(fmt::format("parameters_{}", i).c_str());
    if (count != static_cast<int>(kernels[i].parameters.size())) {
      throw InternalError(fmt::format("kernel {} has {} parameters, but its description has {}", kernels[i].name, count,
                                      kernels[i].parameters.size()));
    }
  }
  return entries;
}

}  // namespace

/// Once it is loaded, the file needs no name: its folder is removed at once, so nothing is left however the process
/// ends.
struct Library::Built {
  std::string folder;
  Descriptor file;
  SharedLibrary library;

  static Built of(const std::string& text, bool checks, bool contract) {
    const WorkFolder folder;
    const fs::path path = build(folder.path(), text, checks, contract);
    Descriptor file(path, O_RDONLY);
    if (!file) throw_errno("read", path);
    return {folder.path().string(), std::move(file),
            SharedLibrary::open("the emulated kernels", std::array{path.string()})};
  }
};

Library::Library(std::span<const KernelSource> kernels, Built built)
    : library_(std::move(built.library)),
      entries_(entries(library_, kernels)),
      lines_(std::move(built.folder), std::move(built.file),
             entries_.empty() ? nullptr : reinterpret_cast<Code>(entries_.front())) {}

std::shared_ptr<const Library> Library::of(std::span<const KernelSource> kernels, bool checks, bool contract) {
  struct Compiled {
    std::string text;
    bool contract;
    std::shared_ptr<const Library> library;
  };
  static std::mutex mutex;
  static auto& latest = *new std::list<Compiled>;  // never destroyed: kernels may run at the end of the process
  constexpr std::size_t most = 100;
  std::string text = translation_unit(kernels, checks);
  const std::lock_guard lock(mutex);
  const auto known =
      std::ranges::find_if(latest, [&](const Compiled& one) { return one.contract == contract && one.text == text; });
  if (known != latest.end()) {
    latest.splice(latest.begin(), latest, known);
  } else {
    try {
      std::shared_ptr<const Library> library(new Library(kernels, Built::of(text, checks, contract)));
      latest.push_front({std::move(text), contract, std::move(library)});
    } catch (const std::system_error& error) {
      throw Error(fmt::format("the emulator cannot compile kernels with g++: {}", error.what()));
    }
    if (latest.size() > most) latest.pop_back();
  }
  return latest.front().library;
}

}  // namespace tessera::internal::emulator
