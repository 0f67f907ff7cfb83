// Compiles CUDA C++ to code for a GPU through NVRTC, which is opened on first use: a machine without NVRTC can build
// Tessera and run everything else. Neither a GPU nor a driver is needed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jit/options/shared_library.hpp"
#include "tessera/codegen/arch.hpp"

namespace tessera::internal {

/// The report of ptxas on a kernel. All zero for PTX, which the driver compiles later.
struct CompileReport {
  int registers = 0;
  int barriers = 0;        ///< NVRTC 12.0 does not report it
  int shared_bytes = 0;    ///< static shared memory
  int constant_bytes = 0;  ///< including the parameters; NVRTC 13.0 does not report it
  int stack_bytes = 0;     ///< local memory per thread
  int spill_store_bytes = 0, spill_load_bytes = 0;
  double compile_ms = 0;              ///< time of the whole compilation
  std::vector<std::string> warnings;  ///< lines of the compiler and of ptxas, including its C75xx remarks

  /// No spill, no local memory, and no C75xx remark, which ptxas gives where it had to serialize wgmma.
  bool clean() const;
  bool operator==(const CompileReport&) const = default;
};

/// `kernel` as a file name without extension: letters, digits and _, at most 60 characters.
std::string file_stem(std::string_view kernel);

/// The CUDA toolkits installed in the usual place, best first: /usr/local/cuda, which is the administrator's choice,
/// then /usr/local/cuda-13.1, cuda-13.0, cuda-12.9, cuda-12, ...
std::vector<std::filesystem::path> installed_toolkits();

/// Parses the log of NVRTC with --ptxas-options=-v. Spills and stack of functions that were not inlined count, too.
CompileReport parse_compile_log(std::string_view log, std::string_view kernel);

struct CompileRequest {
  std::string source;
  std::string kernel;       ///< its extern "C" entry point
  std::string author = {};  ///< its name in messages; empty: that of the entry point
  Arch arch;                ///< of the GPU
  std::vector<std::string> flags = {};
  bool line_info = false;  ///< tools then show the lines given by `#line`
  bool to_ptx = false;     ///< stops at PTX, for any GPU
  /// The parent folder for the files of a failed compilation; if empty, the system's folder for temporary files.
  std::filesystem::path failure_folder = {};

  const std::string& title() const { return author.empty() ? kernel : author; }
};

struct CompiledCode {
  std::vector<std::byte> image;  ///< a cubin, or PTX with its closing NUL, as cuModuleLoadData takes it
  bool is_ptx = false;
  CompileReport report;
  std::string log;   ///< verbatim
  std::string note;  ///< one line for the user; empty if there is none
  bool operator==(const CompiledCode&) const = default;
};

/// The compiler. Any number of threads may compile at the same time.
class Nvrtc {
 public:
  /// The instance of this process, from `places` of the environment. Throws Error that lists the places if there is
  /// none.
  static const Nvrtc& instance();
  /// The first of `places` (see SharedLibrary::open) that can be opened.
  static Nvrtc open(const std::vector<std::string>& places);
  /// The places to search: only `option` (TESSERA_NVRTC), a file or a folder, if it is set; otherwise the loader path,
  /// CUDA_HOME, CUDA_PATH and /usr/local/cuda*. `environment`: variable -> value, "" if unset.
  static std::vector<std::string> places(std::string_view option,
                                         const std::function<std::string(std::string_view)>& environment);

  std::pair<int, int> version() const { return version_; }
  /// Identifies the build of the compiler: its version, and the size and time of the library. Part of a cache key,
  /// because an update may keep the version.
  const std::string& build() const { return build_; }
  /// The architectures that it compiles for, ascending: 75, 80, ..., 120.
  const std::vector<int>& architectures() const { return architectures_; }
  const std::filesystem::path& path() const { return library_.path(); }

  /// The form of code for a GPU of architecture `gpu`: a cubin or, if NVRTC does not support it, PTX for the highest
  /// supported architecture below it, which the driver compiles. `note` is then a line that says so.
  struct Target {
    Arch arch;
    bool is_ptx = false;
    std::string note = {};
    std::string name() const;  ///< "sm_90a", or "compute_120" for PTX
  };
  /// Throws Error if NVRTC only supports architectures newer than `gpu`.
  Target target(Arch gpu) const;

  /// All options with which `request` is compiled, in order. Throws Error for a flag that makes the result depend on
  /// files.
  std::vector<std::string> options(const CompileRequest& request) const;

  /// Throws Error that names the kernel, the first error and a new folder with source, options, versions and log.
  CompiledCode compile(const CompileRequest& request) const;

 private:
  using Program = struct OpaqueProgram*;  // as in nvrtc.h
  struct Calls {
    int (*version)(int*, int*);
    int (*count_archs)(int*);
    int (*list_archs)(int*);
    int (*create)(Program*, const char* source, const char* name, int headers, const char* const*, const char* const*);
    int (*compile)(Program, int count, const char* const* options);
    int (*cubin_size)(Program, std::size_t*);
    int (*cubin)(Program, char*);
    int (*ptx_size)(Program, std::size_t*);
    int (*ptx)(Program, char*);
    int (*log_size)(Program, std::size_t*);
    int (*log)(Program, char*);
    int (*destroy)(Program*);
    const char* (*error_text)(int);
  };

  explicit Nvrtc(SharedLibrary library);
  void check(int result, std::string_view call) const;
  Target target(const CompileRequest& request) const;
  std::vector<std::byte> output(Program program, int (*size)(Program, std::size_t*), int (*get)(Program, char*)) const;
  [[noreturn]] void fail(const CompileRequest& request, const std::vector<std::string>& options, int result,
                         std::string_view log, std::string_view ptx) const;

  SharedLibrary library_;
  Calls calls_;
  std::pair<int, int> version_;
  std::string build_;
  std::vector<int> architectures_;
};

}  // namespace tessera::internal
