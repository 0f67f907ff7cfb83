#include "jit/compile/nvrtc.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <system_error>

#include "jit/compile/compile_times.hpp"
#include "jit/options/options.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

namespace fs = std::filesystem;

constexpr int success = 0;  // of nvrtcResult; for all other values NVRTC has a text

constexpr std::array library_names = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

void add_folder(std::vector<std::string>& places, const fs::path& folder) {
  for (const char* name : library_names) places.push_back((folder / name).string());
}

void add_toolkit(std::vector<std::string>& places, const fs::path& toolkit) {
  for (const char* folder : {"lib64", "lib", "targets/x86_64-linux/lib"}) add_folder(places, toolkit / folder);
}

/// True for flags that let files or the clock affect the result, which may depend only on the text and the options.
bool reaches_outside(std::string_view flag) {
  for (const std::string_view start :
       {"-I", "--include-path", "-include", "--pre-include", "-pch", "--pch", "-use-pch", "--use-pch", "-create-pch",
        "--create-pch", "-time", "--time", "--device-time-trace", "-fdevice-time-trace", "--fdevice-time-trace"}) {
    if (flag.starts_with(start)) return true;
  }
  return false;
}

bool next_line(std::string_view& rest, std::string_view& line) {
  if (rest.empty()) return false;
  const std::size_t end = rest.find('\n');
  line = rest.substr(0, end);
  rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return true;
}

/// The text between `before` and the next quote.
std::string_view quoted_after(std::string_view line, std::string_view before) {
  std::size_t at = line.find(before);
  if (at == line.npos) return {};
  line.remove_prefix(at + before.size());
  if (line.starts_with('\'')) line.remove_prefix(1);
  return line.substr(0, line.find('\''));
}

/// The integer in front of `unit`; 0 if there is none.
int number_before(std::string_view line, std::string_view unit) {
  const std::size_t end = line.find(unit);
  if (end == line.npos) return 0;
  std::size_t begin = end;
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(line[begin - 1]))) --begin;
  int value = 0;
  std::from_chars(line.data() + begin, line.data() + end, value);
  return value;
}

bool is_c75xx(std::string_view line) {
  const std::size_t at = line.find("(C75");
  return at != line.npos && line.substr(at).find(')') == 6;
}

bool is_echo(std::string_view line) { return line.starts_with("  "); }  // of the source, below a message

bool is_warning(std::string_view line) {
  return !is_echo(line) &&
         (is_c75xx(line) || line.find(" warning ") != line.npos || line.find(" warning:") != line.npos);
}

/// Turns `user.cpp(8): error: ...` into `user.cpp:8: error: ...`, which editors and terminals can follow.
std::string linked(std::string_view line) {
  const std::size_t close = line.find("): ");
  const std::size_t open = close == line.npos ? close : line.rfind('(', close);
  if (open == line.npos || open + 1 == close) return std::string(line);
  const std::string_view number = line.substr(open + 1, close - open - 1);
  if (number.find_first_not_of("0123456789") != number.npos) return std::string(line);
  return fmt::format("{}:{}{}", line.substr(0, open), number, line.substr(close + 1));
}

/// The first line that reports an error; empty if there is none.
std::string first_error(std::string_view log) {
  std::string_view line;
  while (next_line(log, line)) {
    if (is_echo(line)) continue;
    for (const std::string_view mark : {"error:", "error :", "error   :", "fatal   :", "error #", "catastrophic"}) {
      if (line.find(mark) != line.npos) return linked(line);
    }
  }
  return "";
}

}  // namespace

std::string file_stem(std::string_view kernel) {
  std::string stem(kernel.substr(0, 60));
  for (char& c : stem) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') c = '_';
  }
  return stem.empty() ? "kernel" : stem;
}

std::vector<fs::path> installed_toolkits() {
  std::vector<std::pair<std::pair<int, int>, fs::path>> found;
  std::error_code error;
  for (fs::directory_iterator i("/usr/local", error), end; !error && i != end; i.increment(error)) {
    const std::string name = i->path().filename().string();
    std::pair<int, int> version{0, 0};
    if (name == "cuda") {
      version.first = 1 << 20;
    } else if (std::sscanf(name.c_str(), "cuda-%d.%d", &version.first, &version.second) < 1) {
      continue;
    }
    found.emplace_back(version, i->path());
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<fs::path> toolkits;
  for (auto& [version, path] : found) toolkits.push_back(std::move(path));
  return toolkits;
}

bool CompileReport::clean() const {
  return stack_bytes == 0 && spill_store_bytes == 0 && spill_load_bytes == 0 &&
         std::none_of(warnings.begin(), warnings.end(), is_c75xx);
}

CompileReport parse_compile_log(std::string_view log, std::string_view kernel) {
  CompileReport report;
  // The properties of a function that is not an entry follow those of the entry that calls it. They are counted
  // whichever entry calls it: it is better to report a spill too many than one too few.
  std::string_view line, entry, function;
  while (next_line(log, line)) {
    if (is_warning(line)) report.warnings.emplace_back(line);
    if (line.find("ptxas") == line.npos && !is_echo(line)) continue;
    if (const std::string_view name = quoted_after(line, "Compiling entry function "); !name.empty()) entry = name;
    if (const std::string_view name = quoted_after(line, "Function properties for "); !name.empty()) function = name;
    if (line.find("bytes stack frame") != line.npos && (function == kernel || function != entry)) {
      report.stack_bytes = std::max(report.stack_bytes, number_before(line, " bytes stack frame"));
      report.spill_store_bytes += number_before(line, " bytes spill stores");
      report.spill_load_bytes += number_before(line, " bytes spill loads");
    }
    if (line.find(": Used ") != line.npos && entry == kernel) {
      report.registers = number_before(line, " registers");
      report.barriers = number_before(line, " barriers");
      report.shared_bytes = number_before(line, " bytes smem");
      report.stack_bytes = std::max(report.stack_bytes, number_before(line, " bytes cumulative stack size"));
      for (std::string_view rest = line; rest.find(" bytes cmem[") != rest.npos;) {
        report.constant_bytes += number_before(rest, " bytes cmem[");
        rest.remove_prefix(rest.find(" bytes cmem[") + 1);
      }
    }
  }
  return report;
}

std::vector<std::string> Nvrtc::places(std::string_view option,
                                       const std::function<std::string(std::string_view)>& environment) {
  std::vector<std::string> places;
  if (std::error_code error; fs::is_directory(option, error)) {
    add_folder(places, option);
  } else if (!option.empty()) {
    places.emplace_back(option);
  }
  if (!option.empty()) return places;
  places.assign(library_names.begin(), library_names.end());
  for (const std::string_view variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const std::string toolkit = environment(variable); !toolkit.empty()) add_toolkit(places, toolkit);
  }
  for (const fs::path& toolkit : installed_toolkits()) add_toolkit(places, toolkit);
  return places;
}

Nvrtc Nvrtc::open(const std::vector<std::string>& places) {
  return Nvrtc(
      SharedLibrary::open("NVRTC, the CUDA C++ compiler (libnvrtc; TESSERA_NVRTC can name its path),", places));
}

const Nvrtc& Nvrtc::instance() {
  // Never destroyed: a thread may still be compiling while the process ends.
  static const Nvrtc& nvrtc = *new Nvrtc(open(places(tessera::internal::options().nvrtc, [](std::string_view variable) {
    const char* value = std::getenv(std::string(variable).c_str());
    return std::string(value ? value : "");
  })));
  return nvrtc;
}

Nvrtc::Nvrtc(SharedLibrary library) : library_(std::move(library)) {
  const auto find = [&](auto& call, const char* name) {
    call = library_.symbol<std::remove_reference_t<decltype(call)>>(name);
  };
  find(calls_.version, "nvrtcVersion");
  find(calls_.count_archs, "nvrtcGetNumSupportedArchs");
  find(calls_.list_archs, "nvrtcGetSupportedArchs");
  find(calls_.create, "nvrtcCreateProgram");
  find(calls_.compile, "nvrtcCompileProgram");
  find(calls_.cubin_size, "nvrtcGetCUBINSize");
  find(calls_.cubin, "nvrtcGetCUBIN");
  find(calls_.ptx_size, "nvrtcGetPTXSize");
  find(calls_.ptx, "nvrtcGetPTX");
  find(calls_.log_size, "nvrtcGetProgramLogSize");
  find(calls_.log, "nvrtcGetProgramLog");
  find(calls_.destroy, "nvrtcDestroyProgram");
  find(calls_.error_text, "nvrtcGetErrorString");

  check(calls_.version(&version_.first, &version_.second), "nvrtcVersion");
  if (version_.first < 12) {
    throw Error(fmt::format("{} is NVRTC {}.{}; Tessera needs 12.0 or newer", path().native(), version_.first,
                            version_.second));
  }
  int count = 0;
  check(calls_.count_archs(&count), "nvrtcGetNumSupportedArchs");
  architectures_.resize(static_cast<std::size_t>(count));
  check(calls_.list_archs(architectures_.data()), "nvrtcGetSupportedArchs");
  std::sort(architectures_.begin(), architectures_.end());

  build_ = fmt::format("{}.{}", version_.first, version_.second);
  struct stat file {};
  if (::stat(path().c_str(), &file) == 0) {
    build_ += fmt::format(" {} {}.{:09}", file.st_size, file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
  }
}

void Nvrtc::check(int result, std::string_view call) const {
  if (result == success) return;
  throw Error(fmt::format("{} of {} failed: {}", call, path().native(), calls_.error_text(result)));
}

std::string Nvrtc::Target::name() const { return is_ptx ? "compute_" + arch.name().substr(3) : arch.name(); }

Nvrtc::Target Nvrtc::target(Arch gpu) const {
  const auto above = std::upper_bound(architectures_.begin(), architectures_.end(), gpu.number());
  if (above == architectures_.begin()) {
    throw Error(fmt::format("NVRTC {}.{} does not compile for {}; it supports sm_{}. Use a toolkit as old as the GPU",
                            version_.first, version_.second, gpu.name(), fmt::join(architectures_, ", sm_")));
  }
  const int best = above[-1];
  if (best == gpu.number()) return {.arch = gpu};
  const Arch known{best / 10, best % 10, 0};
  return {.arch = known,
          .is_ptx = true,
          .note = fmt::format("the GPU is {}, which NVRTC {}.{} does not support: it compiled PTX for compute_{}, "
                              "which the driver compiles further; a newer CUDA toolkit would generate faster code",
                              gpu.name(), version_.first, version_.second, best)};
}

Nvrtc::Target Nvrtc::target(const CompileRequest& request) const {
  Target target = this->target(request.arch);
  target.is_ptx |= request.to_ptx;
  return target;
}

std::vector<std::string> Nvrtc::options(const CompileRequest& request) const {
  std::vector<std::string> options = {"--gpu-architecture=" + target(request).name(), "--std=c++20",
                                      "--no-source-include", "--ptxas-options=-v"};
  // NVRTC's own cache, since 12.9, returns no log on a hit.
  if (version_ >= std::pair{12, 9}) options.push_back("--no-cache");
  // Omits the declarations of textures and of the runtime, which kernels do not use: saves 4 ms.
  if (version_ >= std::pair{12, 4}) options.push_back("--minimal");
  if (request.line_info) options.push_back("--generate-line-info");
  for (const std::string& flag : request.flags) {
    if (reaches_outside(flag)) {
      throw Error(fmt::format("kernel '{}': flag '{}' is rejected, because compiled code may depend only on its text",
                              request.title(), flag));
    }
    options.push_back(flag);
  }
  return options;
}

std::vector<std::byte> Nvrtc::output(Program program, int (*size)(Program, std::size_t*),
                                     int (*get)(Program, char*)) const {
  std::size_t bytes = 0;
  check(size(program, &bytes), "asking for the size of its output");
  std::vector<std::byte> data(bytes);
  if (bytes) check(get(program, reinterpret_cast<char*>(data.data())), "asking for its output");
  return data;
}

CompiledCode Nvrtc::compile(const CompileRequest& request) const {
  const Target target = this->target(request);
  const std::vector<std::string> options = this->options(request);
  std::vector<const char*> pointers;
  for (const std::string& option : options) pointers.push_back(option.c_str());

  struct Owned {
    Program program = nullptr;
    int (*destroy)(Program*);
    ~Owned() { destroy(&program); }
  } owned{.destroy = calls_.destroy};
  const std::string file = file_stem(request.title()) + ".cu";  // the name of the file that a failure leaves
  check(calls_.create(&owned.program, request.source.c_str(), file.c_str(), 0, nullptr, nullptr), "nvrtcCreateProgram");
  const auto text = [&](auto size, auto get) {
    const std::vector<std::byte> bytes = output(owned.program, size, get);
    const auto* begin = reinterpret_cast<const char*>(bytes.data());
    return std::string(begin, strnlen(begin, bytes.size()));
  };

  const auto start = std::chrono::steady_clock::now();
  const int result = calls_.compile(owned.program, static_cast<int>(pointers.size()), pointers.data());
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  wait_at_exit();

  CompiledCode code;
  code.log = text(calls_.log_size, calls_.log);
  if (result != success) fail(request, options, result, code.log, text(calls_.ptx_size, calls_.ptx));
  code.is_ptx = target.is_ptx;
  code.note = target.note;
  code.image = target.is_ptx ? output(owned.program, calls_.ptx_size, calls_.ptx)
                             : output(owned.program, calls_.cubin_size, calls_.cubin);
  code.report = parse_compile_log(code.log, request.kernel);
  code.report.compile_ms = time.count();
  return code;
}

void Nvrtc::fail(const CompileRequest& request, const std::vector<std::string>& options, int result,
                 std::string_view log, std::string_view ptx) const {
  std::string reason = first_error(log);
  // NVRTC mentions --gpu-architecture for an unknown number, and --nv_arch for a wrong suffix.
  if (reason.find("--gpu-architecture") != reason.npos || reason.find("--nv_arch") != reason.npos) {
    reason = fmt::format("there is no {}; NVRTC {}.{} supports sm_{}", request.arch.name(), version_.first,
                         version_.second, fmt::join(architectures_, ", sm_"));
  } else if (reason.empty()) {
    // ptxas may fail without a message; the most likely reason is too much static shared memory.
    reason = calls_.error_text(result);
    if (const CompileReport report = parse_compile_log(log, request.kernel); report.shared_bytes > 48 * 1024) {
      reason = fmt::format("{} bytes of static shared memory exceed the limit", report.shared_bytes);
    }
  }

  std::string kept;
  try {
    fs::path parent = request.failure_folder;
    if (parent.empty()) parent = fs::temp_directory_path();
    const std::string stem = file_stem(request.title());
    std::string folder = (parent / ("tessera-" + stem + "-XXXXXX")).string();
    if (!::mkdtemp(folder.data())) throw std::system_error(errno, std::generic_category(), folder);
    const auto write = [&](const std::string& name, std::string_view text) {
      std::ofstream file(fs::path(folder) / name, std::ios::binary);
      file.write(text.data(), static_cast<std::streamsize>(text.size()));
      if (!file.flush()) throw std::system_error(errno, std::generic_category(), folder + "/" + name);
    };
    write(stem + ".cu", request.source);
    write("options.txt", fmt::format("{}\n", fmt::join(options, "\n")));
    write("versions.txt",
          fmt::format("NVRTC {}\n{}\nGPU architecture {}\n", build_, path().native(), request.arch.name()));
    write("log.txt", log);
    if (!ptx.empty()) write(stem + ".ptx", ptx);  // messages of ptxas name its lines
    kept = fmt::format("source, options, versions and log are in {}", folder);
  } catch (const std::exception& e) {  // a full disk must not hide the error itself
    kept = fmt::format("source and log could not be kept: {}", e.what());
  }
  throw Error(
      fmt::format("kernel '{}' does not compile for {}: {}; {}", request.title(), request.arch.name(), reason, kept));
}

}  // namespace tessera::internal
