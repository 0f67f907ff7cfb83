// Memory mapped from the system: zeros; untouched pages take no memory.
#pragma once
#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include "tessera/graph/error.hpp"

namespace tessera::internal::emulator {

class Mapping {
 public:
  /// Maps at least one byte, as the system has no empty mappings. `what` appears in the message of OutOfMemory.
  explicit Mapping(std::size_t bytes, const std::string& what = "its own use") : bytes_(bytes > 0 ? bytes : 1) {
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) refuse(what);
    data_ = static_cast<char*>(memory);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { munmap(data_, bytes_); }

  char* data() const { return data_; }
  std::size_t size() const { return bytes_; }

  /// Makes some pages inaccessible.
  void close(std::size_t offset, std::size_t bytes, const std::string& what) {
    if (mprotect(data_ + offset, bytes, PROT_NONE) != 0) refuse(what);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw OutOfMemory("the emulator has no memory for " + what + ", " + std::to_string(bytes_) +
                      " bytes: " + std::strerror(errno));
  }

  std::size_t bytes_;
  char* data_;
};

}  // namespace tessera::internal::emulator
