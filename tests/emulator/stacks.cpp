#include "emulator/stacks.hpp"

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

namespace tessera::internal::emulator {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t stride = 32 * page;  // of which the lowest page is never touched: an overflow ends there
constexpr std::size_t colour = 5 * 64;     // stacks that start at other lines of the cache do not evict each other
constexpr std::size_t colours = 12;

}  // namespace

Stacks::Stacks(int count) : memory_(static_cast<std::size_t>(count) * stride) {
  for (std::size_t at = 0; at < memory_.size(); at += stride) mprotect(memory_.data() + at, page, PROT_NONE);
}

int Stacks::count() const { return static_cast<int>(memory_.size() / stride); }

boost::context::stack_context Stacks::operator[](int index) const {
  const auto i = static_cast<std::size_t>(index);
  boost::context::stack_context stack;
  stack.sp = memory_.data() + (i + 1) * stride - i % colours * colour;
  stack.size = stride - page - i % colours * colour;
  // A thread that did not end left AddressSanitizer's marks here, if this program has it.
  ASAN_UNPOISON_MEMORY_REGION(memory_.data() + i * stride, stride);
  return stack;
}

}  // namespace tessera::internal::emulator
