// A shared library that a program opens at run time, so that the program also starts where the library is missing.
#pragma once
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tessera::internal {

/// An open shared library; closed by the destructor. Movable, not copyable.
class SharedLibrary {
 public:
  /// Opens the first of `candidates` that can be opened. A candidate without a '/' is searched for as the dynamic
  /// loader does (LD_LIBRARY_PATH, ld.so.cache); any other is the path of a file. Throws Error that names `wanted`,
  /// every place tried, and why each failed.
  static SharedLibrary open(std::string_view wanted, std::span<const std::string> candidates);

  /// The function `name` of the library: `library.symbol<int (*)(int)>("abs")`. Throws Error that names library and
  /// symbol.
  template <class Function>
  Function symbol(const char* name) const {
    return reinterpret_cast<Function>(address(name));
  }

  /// The path of the library, as far as the dynamic loader reports it, with symbolic links resolved.
  const std::filesystem::path& path() const { return path_; }

 private:
  SharedLibrary(void* handle, std::string_view candidate);
  void* address(const char* name) const;

  struct Close {
    void operator()(void* handle) const;
  };
  std::unique_ptr<void, Close> handle_;
  std::filesystem::path path_;
};

}  // namespace tessera::internal
