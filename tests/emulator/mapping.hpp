// Memory straight from the system: zeros, of which untouched pages cost nothing.
#pragma once
#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <system_error>

namespace tessera::internal::emulator {

class Mapping {
 public:
  /// At least a byte: the system has no mapping of none.
  explicit Mapping(std::size_t bytes) : bytes_(bytes > 0 ? bytes : 1) {
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "memory of the emulator");
    data_ = static_cast<char*>(memory);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { munmap(data_, bytes_); }

  char* data() const { return data_; }
  std::size_t size() const { return bytes_; }

 private:
  std::size_t bytes_;
  char* data_;
};

}  // namespace tessera::internal::emulator
