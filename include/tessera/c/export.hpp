// Exports kernels from a shared library under names, to be launched through libtessera_c (tessera_c.h):
//
//     auto scale() { return kernel("scale", [](In<f32, 1> x, Out<f32, 1> y, Scalar<f32> factor) { ... }); }
//     TESSERA_EXPORT_KERNEL(scale, scale())
//
// The macro is used in a source file of the shared library, outside of all namespaces. The library is linked with
// tessera::tessera and not with libtessera_c: it traces its kernels with its own copy of Tessera. libtessera_c, which
// opens the library, has the devices and does the launches. A traced kernel, which is plain data without virtual
// functions, passes from one copy to the other; opening the library checks that both copies have the same version and
// memory layout.
#pragma once
#include <exception>

#include "tessera/c/exported.hpp"
#include "tessera/tessera.hpp"

namespace tessera::internal {
namespace [[gnu::visibility("default")]] detail {

// Hidden, including its static variables, so that each library has its own, however many are loaded.
[[gnu::visibility("hidden")]] inline const ExportedKernel*& first_exported_kernel() {
  static const ExportedKernel* first = nullptr;
  return first;
}

template <class Make>
struct Export : ExportedKernel {
  explicit Export(const char* exported) : ExportedKernel{exported, &make, first_exported_kernel()} {
    first_exported_kernel() = this;
  }
  static void make(std::shared_ptr<const Executable>& made, std::string& failure) {
    try {
      made = Make()().shared_executable();
    } catch (const std::exception& error) {
      failure = error.what();
    }
  }
};

[[gnu::visibility("hidden")]] inline const ExportedKernels* exported_kernels() {
  static const std::string& layout = *new std::string(exported_layout());  // never destroyed: code that runs at exit
                                                                           // may open the library
  static const ExportedKernels kernels{layout.c_str(), first_exported_kernel()};
  return &kernels;
}

}  // namespace detail
}  // namespace tessera::internal

extern "C" [[gnu::visibility("default"), gnu::used]] inline const tessera::internal::detail::ExportedKernels*
tessera_exported_kernels() {
  return tessera::internal::detail::exported_kernels();
}

/// Exports a kernel under a name, which must be a C++ identifier: TESSERA_EXPORT_KERNEL(scale, make_scale()). The
/// expression is evaluated each time the kernel is requested.
#define TESSERA_EXPORT_KERNEL(name, ...)                                           \
  namespace {                                                                      \
  struct TesseraMakes_##name {                                                     \
    auto operator()() const { return __VA_ARGS__; }                                \
  };                                                                               \
  const tessera::internal::detail::Export<TesseraMakes_##name> tessera_export_##name(#name); \
  }
