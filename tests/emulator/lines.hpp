// Maps addresses in compiled kernels to the author's lines.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "jit/options/files.hpp"

namespace tessera::internal::emulator {

/// A return address: the call is the instruction before it.
using Code = const void*;

class Lines {
 public:
  /// Lines of the shared library in `file`, compiled in `folder` and loaded where `inside` is an address in it.
  Lines(std::string folder, Descriptor file, Code inside);

  /// "file:line" of the kernel's statement that the address belongs to, regardless of functions inlined there.
  const std::string& operator[](Code code) const;

  /// An address as an offset in the library, and back.
  std::uint32_t offset(Code code) const { return static_cast<std::uint32_t>(static_cast<const char*>(code) - base_); }
  Code code(std::uint32_t offset) const { return base_ + offset; }
  /// Returns true if the address is in the library.
  bool contain(const void* address) const;

 private:
  std::string folder_;
  Descriptor file_;
  const char* base_;
  mutable std::mutex mutex_;
  mutable std::map<Code, std::string> known_;
};

}  // namespace tessera::internal::emulator
