// Kernels compiled for the CPU and loaded.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/generate.hpp"
#include "emulator/lines.hpp"
#include "jit/options/files.hpp"
#include "jit/options/shared_library.hpp"

namespace tessera::internal::emulator {

class Library {
 public:
  /// With `checks`, the code reports its memory accesses; with `contract`, multiplications and additions are fused.
  /// Throws Error with the compiler's message if it rejects the text. The latest hundred libraries are cached, since
  /// models that are created anew have the same kernels.
  static std::shared_ptr<const Library> of(std::span<const KernelSource> kernels, bool checks, bool contract);

  /// Calls the kernel with the cells of its parameters, in order: one cell for each 8 bytes.
  using Entry = void (*)(const std::uint64_t* cells);
  Entry entry(std::size_t kernel) const { return entries_[kernel]; }
  const Lines& lines() const { return lines_; }

 private:
  struct Built;
  Library(std::span<const KernelSource> kernels, Built built);

  SharedLibrary library_;
  std::vector<Entry> entries_;
  Lines lines_;
};

}  // namespace tessera::internal::emulator
