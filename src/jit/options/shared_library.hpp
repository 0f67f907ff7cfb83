// A library that a program opens while it runs, so that it also starts where the library is missing.
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
  /// Opens the first of `candidates` that can be opened. One without a '/' is looked for where the loader looks
  /// (LD_LIBRARY_PATH, ld.so.cache), any other is a file. Throws Error that says what `wanted` is, every place tried
  /// and why it failed there.
  static SharedLibrary open(std::string_view wanted, std::span<const std::string> candidates);

  /// The function `name` of the library: `library.symbol<int (*)(int)>("abs")`. Throws Error naming library and symbol.
  template <class Function>
  Function symbol(const char* name) const {
    return reinterpret_cast<Function>(address(name));
  }

  /// The file, as far as the loader tells; symbolic links followed.
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
