#include "jit/options/shared_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <iterator>

#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

namespace fs = std::filesystem;

/// Collects why each candidate failed. Missing files are grouped by folder, because they make up most of a search.
class Failures {
 public:
  void absent(const fs::path& file) {
    if (absent_from_ != file.parent_path()) {
      absent_from_ = file.parent_path();
      fmt::format_to(std::back_inserter(lines_), "{} {}: no {}", separator(), absent_from_.native(),
                     file.filename().native());
    } else {
      lines_ += ", " + file.filename().native();
    }
  }
  void failed(std::string_view place, std::string_view reason) {
    absent_from_.clear();
    fmt::format_to(std::back_inserter(lines_), "{} {}: {}", separator(), place, reason);
  }
  const std::string& lines() const { return lines_; }

 private:
  std::string_view separator() const { return lines_.empty() ? "" : ";"; }

  std::string lines_;
  fs::path absent_from_;
};

}  // namespace

void SharedLibrary::Close::operator()(void* handle) const { ::dlclose(handle); }

SharedLibrary::SharedLibrary(void* handle, std::string_view candidate) : handle_(handle), path_(candidate) {
  link_map* map = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_name && *map->l_name) path_ = map->l_name;
  std::error_code error;
  if (fs::path real = fs::canonical(path_, error); !error) path_ = std::move(real);
}

SharedLibrary SharedLibrary::open(std::string_view wanted, std::span<const std::string> candidates) {
  Failures failures;
  for (const std::string& candidate : candidates) {
    const bool is_file = candidate.find('/') != candidate.npos;
    std::error_code error;
    if (is_file && !fs::exists(candidate, error)) {
      failures.absent(candidate);
      continue;
    }
    if (is_file && !fs::is_regular_file(candidate, error)) {  // opening a FIFO would wait for a writer
      failures.failed(candidate, "it is not a regular file");
      continue;
    }
    // RTLD_LOCAL: the library's own copies of common symbols must not replace those of the program.
    if (void* handle = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL)) return SharedLibrary(handle, candidate);
    const char* reason = ::dlerror();
    std::string_view text = reason ? reason : "cannot be opened";
    if (text.starts_with(candidate + ": ")) text.remove_prefix(candidate.size() + 2);
    if (!is_file && text == "cannot open shared object file: No such file or directory") {
      // Most machines without a GPU report this for its driver at each start, so the text is short.
      if (candidates.size() == 1) throw Error(fmt::format("{} was not found (no {})", wanted, candidate));
      failures.absent(fs::path("the loader path") / candidate);
      continue;
    }
    failures.failed(is_file ? candidate : candidate + " on the loader path", text);
  }
  throw Error(
      fmt::format("{} was not found; tried{}", wanted, candidates.empty() ? " nowhere" : ":" + failures.lines()));
}

void* SharedLibrary::address(const char* name) const {
  if (void* found = ::dlsym(handle_.get(), name)) return found;
  throw Error(fmt::format("{} has no {}: it is not the expected library, or it is too old", path_.native(), name));
}

}  // namespace tessera::internal
